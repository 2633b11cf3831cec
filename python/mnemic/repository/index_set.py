"""The indexes of one agent's memories, one for each state."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial

from mnemic.model.rows import State
from mnemic.repository.agent_index import IndexSettings
from mnemic.repository.index_sync import IndexSync
from mnemic.repository.vector_model import VectorModel
from mnemic.store import Store
from mnemic.threads.locks import InnerLock


class IndexSet:
    """Indexes of active, inactive and deleted memories.

    That of active memories is loaded at once where there is an embedder; the others are built on
    first use.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        model: Model of the vectors.
        options: Options of the index of active memories; the others have no candidate source, and
            report nothing.

    Attributes:
        active: The index of active memories.
        generation: A number that is odd while the indexes of another model take the place of these,
            and another one afterwards: an answer that began before is not to be used.
        is_switching: Whether the agent's vectors may already be those of another model.
    """

    def __init__(
        self, store: Store, agent_id: str, model: VectorModel, options: IndexSettings
    ) -> None:
        self._model = model
        self._lock = InnerLock()
        self.is_switching = False
        self.generation = 0
        self._make = partial(IndexSync, store, agent_id)
        # Two threads may make one at the same time, and one of these is used: only that is loaded.
        self._plain = options._replace(
            choose_source=None, progress=None, unloaded=None, is_lazy=True
        )
        self.active = self._make(model, options)
        self._syncs = {State.ACTIVE: self.active}

    def of(self, state: State) -> IndexSync:
        """Return the index of a state."""
        if state is State.ACTIVE:
            return self.active
        known = self._known(state)
        while known is None:
            model, is_switching = self._model, self.is_switching
            made = self._make(model, self._plain, state, is_switching=is_switching)
            with self._lock:
                if (model, is_switching) == (self._model, self.is_switching):
                    known = self._syncs.setdefault(state, made)
            if known is not made:
                made.stop()
        return known

    def _known(self, state: State) -> IndexSync | None:
        with self._lock:
            known = self._syncs.get(state)
            if known is None or known.own.model.vectors is self._model:
                return known
            del self._syncs[state]
        known.stop()
        return None

    def begin_switch(self) -> None:
        """Go on with the indexes while the agent's model changes; see `IndexSync.own`."""
        self._set_switching(is_switching=True)

    def end_switch(self) -> None:
        """End that, because the model did not change."""
        self._set_switching(is_switching=False)

    def _set_switching(self, *, is_switching: bool) -> None:
        with self._lock:
            self.is_switching = is_switching
            for sync in self.built():
                sync.own.is_switching = is_switching

    def adopt(self, model: VectorModel, taken: Callable[[], object]) -> None:
        """Replace the indexes by those of another model's vectors, which the agent has now.

        Args:
            model: The model.
            taken: Called as soon as they are in place; must be short.
        """

        @contextmanager
        def swapping() -> Generator[None, None, None]:
            self.generation += 1
            try:
                yield
                if self.active.own.model.vectors is model:
                    self._model = model
                    self.is_switching = False
                    taken()
            finally:
                self.generation += 1

        self.active.change.adopt(model, swapping)

    def is_changed(self, generation: int) -> bool:
        """Return whether an answer that began with a generation must not be used."""
        return generation % 2 == 1 or generation != self.generation

    def built(self) -> list[IndexSync]:
        """Return the indexes built so far."""
        return list(self._syncs.values())

    def stop(self) -> None:
        """End all work in the background."""
        with self._lock:
            syncs = self.built()
        for sync in syncs:
            sync.stop()
