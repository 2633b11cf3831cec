"""The embedding model of one agent's vectors: the embedder's, or that of given vectors."""

import os
from collections.abc import Sequence

from mnemic.arrays import Float32Array
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    DimensionMismatchError,
    EmbedderRequiredError,
    EmbeddingModelMismatchError,
)
from mnemic.model import EmbeddingModel, Scope, validation
from mnemic.model.new_entry import NewEntry
from mnemic.store import Store, open_store
from mnemic.store.operations import AgentFacts
from mnemic.store.values import Model
from mnemic.threads.locks import Lock

OWN_MODEL = "own"
"""Model of vectors that callers give to a memory without an embedder, unless it is named."""


class VectorModel:
    """The embedding model of one agent's vectors; its dimension is learned from the first vector.

    Args:
        store: Records the model of the agent's vectors.
        agent_id: The agent.
        embedder: Its model is that of given vectors too; None for given vectors alone.
        name: Name of the model without an embedder; `OWN_MODEL` if None.

    Attributes:
        name: Name of the model.
        embedder: The embedder; None for given vectors alone.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        embedder: ValidatedEmbedder | None = None,
        name: str | None = None,
    ) -> None:
        self._store = store
        self._agent_id = agent_id
        self.embedder = embedder
        self._is_chosen = embedder is not None or name is not None
        chosen = name or OWN_MODEL
        self.name = chosen if embedder is None else embedder.model
        self._known: Model | None = None

    @property
    def known(self) -> Model | None:
        """Name and dimension; None before the agent's first vector."""
        if self._known is None:
            dimensions = None if self.embedder is None else self.embedder.dimensions
            recorded = self._recorded() if dimensions is None else (self.name, dimensions)
            if recorded is not None and recorded[0] == self.name:
                self._known = recorded
                if self.embedder is not None:
                    self.embedder.calls.learn(recorded[1])
        return self._known

    def _known_for(self, dimensions: int) -> Model | None:
        """Return name and dimension, read again before given vectors of another are refused.

        Without an embedder, an agent whose last vector is gone takes vectors of any dimension.
        """
        if self.embedder is None and self._known is not None and self._known[1] != dimensions:
            self._known = None
        return self.known

    def learn(self, dimensions: int) -> None:
        """Take the dimension of an embedder of this model, unless one is known."""
        if self.known is None:
            self._known = (self.name, dimensions)

    @property
    def stored_name(self) -> str | None:
        """Name of the model of the agent's stored vectors, chosen or not; None without any."""
        recorded = self._recorded()
        return None if recorded is None else recorded[0]

    def _recorded(self) -> Model | None:
        return self._store.read(AgentFacts(self._agent_id)).model

    def check_stored(self) -> None:
        """Raise EmbeddingModelMismatchError if the agent has vectors of another chosen model."""
        recorded = self._recorded()
        if recorded is None or not self._is_chosen:
            return
        known = self.known
        if recorded == known:
            return
        if self.embedder is not None:
            length = "an unknown number" if known is None else known[1]
            raise EmbeddingModelMismatchError(
                f"agent {self._agent_id!r} has vectors of {recorded[0]!r} with {recorded[1]} "
                f"dimensions, and the embedder is {self.name!r} with {length}; open the memory "
                "with the embedder of its vectors, or with reembed=True, which embeds all memories "
                "again in the background and searches by keywords meanwhile; memory.reembed(...) "
                "does so on a memory opened with the old embedder, which searches by it meanwhile"
            )
        raise self._other(recorded)

    def _other(self, recorded: Model) -> EmbeddingModelMismatchError:
        return EmbeddingModelMismatchError(
            f"agent {self._agent_id!r} has vectors of {recorded[0]!r} with {recorded[1]} "
            f"dimensions, and given vectors count as {self.name!r}; open the memory with "
            f"embedding_model={recorded[0]!r} if they are of that model, or use another file"
        )

    def check_query(self, vectors: Float32Array) -> bool:
        """Check given vectors of a query; return whether the agent has any vectors to compare.

        Raises:
            DimensionMismatchError: If they have another dimension than the agent's vectors.
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
        """
        known = self._known_for(vectors.shape[-1])
        if known is None:
            self._check_recorded()
            return False
        if vectors.shape[-1] != known[1]:
            unfit = DimensionMismatchError(
                f"vector has the shape {vectors.shape}, and the vectors of {known[0]!r} have "
                f"{known[1]} dimensions"
            )
            unfit.stored, unfit.given = known[1], vectors.shape[-1]
            raise unfit
        return True

    def check_new(self, given: Sequence[NewEntry]) -> int | None:
        """Check the embeddings of new entries, which all have one; return their dimension.

        Raises:
            EmbeddingModelMismatchError: If one is of another model or dimension than the agent's
                vectors or those before it.
        """
        known = self._known_for(given[0].shape[-1])
        dimensions = None if known is None else known[1]
        for new in given:
            model, size = new.entry.embedding_model or self.name, new.shape[-1]
            if model != self.name and not self._is_chosen:
                continue  # a record's own model, which the store compares with the agent's
            if dimensions is None:
                self._check_recorded()
                dimensions = size
            if (model, size) != (self.name, dimensions):
                raise self._unfit(new, model, dimensions, size)
        return dimensions

    def _check_recorded(self) -> None:
        recorded = self._recorded()
        if recorded is not None and recorded[0] != self.name:
            raise self._other(recorded)

    def _unfit(
        self, new: NewEntry, model: str, dimensions: int, size: int
    ) -> EmbeddingModelMismatchError:
        which = "the embedder is" if self.embedder is not None else "the memory's vectors are of"
        unfit = EmbeddingModelMismatchError(
            f"memory {new.entry.id} comes with an embedding of {model!r} with the shape "
            f"{new.shape}, and {which} {self.name!r} with {dimensions} dimensions; leave its "
            "embedding out"
        )
        if size != dimensions:
            unfit.stored, unfit.given = dimensions, size
        return unfit

    def fits(self, model: str | None, dimensions: int) -> bool:
        """Return whether vectors of a model fit; without a chosen model all do."""
        if not self._is_chosen:
            return True
        known = self.known
        return model == self.name and (known is None or known[1] == dimensions)


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

    def has_changed_from(self, model: VectorModel) -> bool:
        """Return whether new vectors are of another model by now: a write of them is repeated."""
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


def stored_model(path: str | os.PathLike[str], agent_id: str) -> EmbeddingModel | None:
    """Return the model of an agent's vectors; None if the file has no vector of this agent.

    Nothing is written, no model is loaded, and no embedder is needed.

    Args:
        path: An existing file.
        agent_id: The agent.

    Raises:
        StoreFileError: If there is no such file, or it holds something else.
        SchemaVersionError: If an earlier mnemic wrote the file; the message has the call that
            brings it up to date.
        StoreError: If it cannot be read.
    """
    named = Scope(agent_id)
    store = open_store(validation.path("path", path), read_only=True)
    try:
        found = store.read(AgentFacts(store.stored_agent_id(named.agent_id))).model
    finally:
        store.close()
    return None if found is None else EmbeddingModel(*found)
