"""What the parts of one agent's index share: its rows, what they are made for, and one lock."""

from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace

from mnemic.errors import EmbeddingModelMismatchError
from mnemic.index import NativeIndex, SourceChoice
from mnemic.model.rows import RowBatch, State
from mnemic.protocols import Clock, system_clock
from mnemic.reporting.progress import Progress
from mnemic.repository.index_pool import PooledIndexes
from mnemic.repository.index_snapshots import IndexKind, IndexSnapshots
from mnemic.repository.missing_vectors import MissingVectors
from mnemic.repository.vector_model import VectorModel
from mnemic.store import Store
from mnemic.store.operations import RowsSince
from mnemic.store.values import BatchSink, Model
from mnemic.threads.background import Background
from mnemic.threads.locks import Lock


class IndexSettings(NamedTuple):
    """Settings of an index.

    Attributes:
        language: The language of the entries, "auto" or None; see `Options`.
        can_write: Whether new vectors may be stored.
        pool: Bounds the bytes of loaded indexes; None for no bound.
        keeps_snapshots: Whether snapshots of an index of active memories are loaded and saved.
        choose_source: Chooses the index's candidate source; None for none.
        progress: Gets full loads that a call waits for.
        clock: Gives the time.
        unloaded: Called when the pool has dropped the index; None for nothing to call.
        is_lazy: Whether even an index with an embedder is loaded by its first use alone.
    """

    language: str | None = "auto"
    can_write: bool = True
    pool: PooledIndexes | None = None
    keeps_snapshots: bool = True
    choose_source: SourceChoice | None = None
    progress: Progress | None = None
    clock: Clock = system_clock
    unloaded: Callable[[], object] | None = None
    is_lazy: bool = False


class IndexModel(NamedTuple):
    """What an index is made for.

    Attributes:
        vectors: The model of the agent's vectors.
        known: Its name and dimension; None before the agent's first vector.
        missing: Embeds memories without a vector; None where they stay without.
        snapshots: Files of the index; None without.
    """

    vectors: VectorModel
    known: Model | None
    missing: MissingVectors | None = None
    snapshots: IndexSnapshots | None = None


class AgentIndex:
    """The index of one agent's memories of one state.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        settings: Its settings.
        state: State of the memories.
        vectors: The model of the agent's vectors.
        repair: Loads the rows again, after their snapshot was found damaged.

    Attributes:
        store: Where the memories are.
        agent_id: Whose memories.
        settings: Its settings.
        state: State of the memories.
        model: What it is made for.
        native: Its rows; none before they are loaded, and after they were dropped.
        lock: Held by whoever applies the store's changes, or replaces the rows.
        is_switching: Whether the agent's vectors may already be those of another model.
        is_stopped: Whether its memory is closed.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        settings: IndexSettings,
        state: State,
        vectors: VectorModel,
        *,
        repair: Callable[[], object],
    ) -> None:
        self.store = store
        self.agent_id = agent_id
        self.settings = settings
        self.state = state
        self.lock = Lock()
        self.is_switching = self.is_stopped = False
        self._starting = Lock()
        self._repair = repair
        self.model = IndexModel(vectors, vectors.known)
        self.native = self.new(self.model)

    @property
    def is_loaded(self) -> bool:
        """Whether the rows are in memory."""
        return self.native.seq is not None

    @property
    def lacks_model(self) -> bool:
        """Whether there are vectors of another model: the first, or after the last were deleted."""
        known = self.model.vectors.known
        return known is not None and known != self.model.known

    def new(self, model: IndexModel) -> NativeIndex:
        """Return an empty index for the vectors of a model."""
        choose, dim = self.settings.choose_source, None if model.known is None else model.known[1]
        make_source = None if dim is None or choose is None else choose()
        embedder = model.vectors.embedder
        coverage = None if embedder is None else embedder.coverage
        return NativeIndex(dim, make_source, coverage, self.settings.language, self._repair)

    def snapshots_of(self, vectors: VectorModel, known: Model | None) -> IndexSnapshots | None:
        """Return the snapshots of the index for a model, if any are kept."""
        if self.state is not State.ACTIVE or not self.settings.keeps_snapshots:
            return None
        embedder = vectors.embedder
        languages = None if embedder is None else embedder.languages
        kind = IndexKind(self.agent_id, known, self.settings.language, languages)
        return IndexSnapshots(self.store, kind, None if embedder is None else embedder.coverage)

    def unembedded(self) -> list[int]:
        """Return the rows without a vector, ascending."""
        return list(self.native.summary().unembedded)

    def is_current(self) -> bool:
        """Return whether it has all changes of the store that are known."""
        return self.store.known_position(self.agent_id).seq == self.native.seq

    def rows_since(
        self,
        seq: int | None,
        model: Model | None,
        sink: BatchSink | None = None,
        deadline: float | None = None,
        *,
        with_sensitive: bool = False,
    ) -> RowBatch:
        """Read changes of the store; without vectors if they are of another model by now."""
        wanted = RowsSince(self.agent_id, model, seq, sink, self.state, with_sensitive)
        try:
            return self.store.read(wanted, deadline=deadline)
        except EmbeddingModelMismatchError:
            if not self.is_switching:
                raise
        return self.store.read(replace(wanted, model=None), deadline=deadline)

    def begin(self, thread: Background, work: Callable[..., object], *values: object) -> None:
        """Begin work in the background, unless some goes on, or the memory is closed."""
        with self._starting:
            if not self.is_stopped:
                thread.begin(work, *values)

    def stop(self) -> None:
        """Begin nothing in the background from now on."""
        self.is_stopped = True
        with self._starting:
            pass  # whoever has begun a thread under this lock has started it
