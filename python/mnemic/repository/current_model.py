"""The model of new vectors, which a re-embedding changes while the memory is in use."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbedderRequiredError, EmbeddingModelMismatchError
from mnemic.repository.vector_model import VectorModel
from mnemic.store import Store
from mnemic.threads.locks import Lock
from mnemic.threads.sync_bridge import run_blocking

Result = TypeVar("Result")


class CurrentModel:
    """The model of an agent's vectors, and the memory's embedder.

    Args:
        store: Records the model of the agent's vectors.
        agent_id: The agent.
        embedder: The memory's embedder; None without one.
        name: Name of the model without an embedder.
        may_wait: Whether the agent may have vectors of another model than the embedder's.

    Attributes:
        now: The model that new vectors are of; without an embedder while the memory waits for its
            own one's vectors.
        embedder: The memory's embedder, whose vectors it may still wait for.
        switching: Held while the store changes the model, until `now` is the new one.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        embedder: ValidatedEmbedder | None,
        name: str | None,
        *,
        may_wait: bool,
    ) -> None:
        self.now = VectorModel(store, agent_id, embedder, name if embedder is None else None)
        self.embedder = embedder
        if may_wait and embedder is not None and self.now.stored_name not in {None, embedder.model}:
            self.now = VectorModel(store, agent_id)
        self.switching = Lock()
        self._retired: list[ValidatedEmbedder] = []

    @property
    def is_waiting(self) -> bool:
        """Whether the agent has no vectors of the memory's embedder yet, but those of another."""
        return self.now.embedder is not self.embedder

    def check_embedder(self) -> None:
        """Raise EmbedderRequiredError if there is no embedder."""
        if self.embedder is None:
            raise no_embedder()

    def adopt(self, model: VectorModel) -> None:
        """Make new vectors by another embedder from now on."""
        if self.embedder is not None and self.embedder is not model.embedder:
            self._retired.append(self.embedder)  # calls of it may still be running
        self.now, self.embedder = model, model.embedder

    async def written(self, write: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of a write of vectors; it is repeated if the model changes meanwhile.

        Raises:
            EmbeddingModelMismatchError: If the agent's vectors come from a model that is not this
                memory's.
        """
        while True:
            model = self.now
            try:
                return await write()
            except EmbeddingModelMismatchError:
                if not await run_blocking(lambda: self._has_changed_from(model)):  # noqa: B023 - awaited here
                    raise

    def _has_changed_from(self, model: VectorModel) -> bool:
        with self.switching:
            return self.now is not model

    @property
    def has_loop(self) -> bool:
        """Whether an event loop runs for a coroutine embedder."""
        return any(embedder.calls.loop.is_running for embedder in self._embedders)

    def close(self) -> None:
        """Cancel running calls of coroutine embedders. May be repeated."""
        for embedder in self._embedders:
            embedder.close()

    @property
    def _embedders(self) -> list[ValidatedEmbedder]:
        return [*self._retired, *([] if self.embedder is None else [self.embedder])]


def no_embedder() -> EmbedderRequiredError:
    """Return the error of what needs an embedder."""
    return EmbedderRequiredError(
        "this memory was opened with embedder=None, and searching by meaning needs one; "
        "open it with an embedder, give the query's vector, or search by keywords"
    )
