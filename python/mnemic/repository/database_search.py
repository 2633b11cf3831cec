"""Search in the database, for an agent whose index is not in memory."""

import time
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec

from mnemic.arrays import Float32Array
from mnemic.index import NativeIndex
from mnemic.model import SEMANTIC, Scope, SearchIn
from mnemic.model.rows import State
from mnemic.model.search import Search
from mnemic.repository.parts import Part, Shared
from mnemic.store import Store
from mnemic.store.operations import (
    BEFORE_EXPIRY,
    ActiveRows,
    ChangedRows,
    EntryCount,
    Nearest,
    RowsWithoutVectors,
)
from mnemic.store.values import Model, SelectedRows
from mnemic.threads.locks import InnerLock

SMALL_AGENT: Final = 2_000
"""Up to so many memories are loaded at once, in less than 100 ms; more only once that pays."""

_LOADED_PER_SECOND: Final = 30_000
"""Memories that a load takes in, by which its cost is estimated."""

_BYTES_OF_ROW: Final = 1_000
_BYTES_OF_COMPONENT: Final = 6
"""Bytes of an index for each memory and for each component of its vector, roughly."""

_SMALL_SHARE: Final = 4
"""A user's memories are loaded alone if they are at most 1/n of the agent's."""

_MAX_COUNTS: Final = 1_024


class Selection(NamedTuple):
    """The memories that the database selected.

    Attributes:
        ranked: An index of them alone.
        rows: They, which are decoded as they are found.
    """

    ranked: NativeIndex
    rows: SelectedRows


class DatabaseSearch(Part):
    """Makes small indexes of what the database selects for one search.

    A semantic search is answered by the nearest memories alone. Any other needs the words of all
    memories that it may see, so the user's memories are read. Either way the core ranks, and the
    answer is that of an index of all memories.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        settings = shared.settings
        self._search_in = settings.search_in if self._store.searches_vectors else "memory"
        self._pool = self._active.own.settings.pool
        self._exact_limit = settings.exact_limit
        self._counts = _Counts(self._store, self._agent_id)
        self._pending = _PendingRows(self._store, self._agent_id)
        self._seconds = 0.0
        self._lock = InnerLock()

    def serves(self, scope: Scope, search: Search) -> bool:
        """Return whether a search runs in the database."""
        if self._search_in == "memory" or search.states != (State.ACTIVE,):
            return False
        if self._active.own.model.known is None:
            return False
        if self._search_in == "auto" and self._active.is_loaded:
            self._seconds = 0.0
            return False
        # What is counted and pending follows from the position that is known.
        self._store.latest_position(self._agent_id, deadline=search.deadline)
        return self._search_in == "database" or self._is_cheaper(scope, search)

    def _is_cheaper(self, scope: Scope, search: Search) -> bool:
        """Return whether the database answers at less cost than loading the agent.

        The agent is loaded in the background once its searches here took as long as that takes: at
        most twice the time of the best choice in hindsight (rent or buy: Karlin et al.,
        "Competitive Snoopy Caching", Algorithmica 3, 1988).
        """
        memories = self._counts.of(self._everyone)
        if memories <= SMALL_AGENT:
            return False
        if self._fits(memories) and self._seconds * _LOADED_PER_SECOND >= memories:
            self._active.loading.begin()
        return is_by_vectors(search) or self._loads_alone(_user_scope(scope))

    def _loads_alone(self, scope: Scope) -> bool:
        """Return whether a user's memories are loaded without the rest of the agent's.

        They are if they are few beside the rest, or if the agent exceeds the budget.
        """
        if scope.all_users:
            return False
        memories = self._counts.of(self._everyone)
        return not self._fits(memories) or self._counts.of(scope) * _SMALL_SHARE <= memories

    def _fits(self, memories: int) -> bool:
        """Return whether an index of so many memories fits into the budget."""
        dimensions = 0 if self._active.own.model.known is None else self._active.own.model.known[1]
        nbytes = memories * (_BYTES_OF_ROW + _BYTES_OF_COMPONENT * dimensions)
        return self._pool is None or nbytes <= self._pool.max_bytes

    @contextmanager
    def timed(self) -> Generator[None, None, None]:
        """Count the time of a search in the database."""
        started = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._seconds += time.perf_counter() - started

    def nearest(
        self, scope: Scope, search: Search, vectors: Float32Array, now: int
    ) -> Selection | None:
        """Return an index of the memories most similar to a query; None if the agent has to load.

        Args:
            scope: The scope of the search.
            search: A search of which `is_by_vectors` is true.
            vectors: Its query, shape (m, dim).
            now: Microseconds since 1970 in UTC.
        """
        model = self._active.own.model.known
        if model is None:
            return None
        is_exact = self._counts.of(scope, self._exact_limit) <= self._exact_limit
        if not is_exact and self._pending.has_any(model, search.deadline):
            return None  # no index of vectors has them
        wanted = Nearest(
            scope=scope,
            filters=search.filters,
            vectors=vectors,
            model=model,
            limit=search.limit + search.offset + len(search.exclude),
            now=now,
            is_exact=is_exact,
        )
        found = self._store.read(wanted, deadline=search.deadline)
        return None if found is None else self._indexed(found)

    def load_user(self, scope: Scope, search: Search) -> Selection | None:
        """Return an index of all memories of a search's user; None if the agent has to load."""
        if self._search_in == "auto" and not self._loads_alone(_user_scope(scope)):
            return None
        if search.uses_accesses:
            self._active.accesses.write()
        wanted = ActiveRows(_user_scope(scope), self._active.own.model.known)
        rows = self._store.read(wanted, deadline=search.deadline)
        selection = self._indexed(rows)
        embeds = self._active.own.model.missing is not None
        return None if embeds and selection.ranked.summary().unembedded else selection

    def _indexed(self, rows: SelectedRows) -> Selection:
        index = self._active.own.new(self._active.own.model)
        index.apply(rows.batch)
        return Selection(index, rows)


def _user_scope(scope: Scope) -> Scope:
    """Return the scope of all memories whose words count in a search: those of its user."""
    return msgspec.structs.replace(scope, project_id=None, session_id=None)


def is_by_vectors(search: Search) -> bool:
    """Return whether a search ranks by similarity to its query alone, and by nothing else.

    Hypotheses are weighed by what the index knows of all memories.
    """
    has_query = search.text is not None or search.vectors is not None
    return (
        has_query
        and not search.has_hypotheses
        and search.ranking == SEMANTIC
        and search.limit > 0
        and search.order is None
        and search.min_salience is None
        and not (search.with_total or search.is_relative)
        and not (search.uses_similarity_floor or search.needs_evidence)
        and not search.uses_accesses
    )


class _Counts:
    """Numbers of memories of scopes. Thread-safe.

    A change adds or removes one memory at most, so a number that was read is off by no more than
    the changes since. Expired memories may be counted.
    """

    def __init__(self, store: Store, agent_id: str) -> None:
        self._store = store
        self._agent_id = agent_id
        self._known: OrderedDict[Scope, tuple[int, int]] = OrderedDict()
        self._lock = InnerLock()

    def of(self, scope: Scope, limit: int | None = None) -> int:
        """Return the number of memories of a scope, or whether it is above a limit exactly.

        Without a limit it may be off by an eighth.
        """
        seq = self._store.known_position(self._agent_id).seq
        with self._lock:
            known, at = self._known.get(scope, (None, 0))
        if known is not None:
            off = abs(seq - at)
            is_near = 8 * off <= known if limit is None else abs(known - limit) > off
            if is_near:
                return known
        count = self._store.read(EntryCount(scope, now=BEFORE_EXPIRY))
        with self._lock:
            self._known[scope] = count, seq
            self._known.move_to_end(scope)
            if len(self._known) > _MAX_COUNTS:
                self._known.popitem(last=False)
        return count


class _PendingRows:
    """The active rows of an agent without a vector. Thread-safe.

    They are looked for once; from then on only rows that have changed are.
    """

    def __init__(self, store: Store, agent_id: str) -> None:
        self._store = store
        self._agent_id = agent_id
        self._known: tuple[int, list[int]] | None = None  # change number, and rows
        self._lock = InnerLock()

    def has_any(self, model: Model, deadline: float | None) -> bool:
        """Return whether there are any."""
        seq = self._store.known_position(self._agent_id).seq
        with self._lock:
            if self._known is None or self._known[0] != seq:
                wanted = RowsWithoutVectors(self._agent_id, model, self._suspects())
                rows = self._store.read(wanted, deadline=deadline)
                self._known = seq, rows
            return bool(self._known[1])

    def _suspects(self) -> list[int] | None:
        """Return the rows that may have no vector; None if it may be any."""
        if self._known is None:
            return None
        changed = self._store.read(ChangedRows(self._agent_id, self._known[0]))
        return None if changed is None else [*self._known[1], *changed]


def loads_on_opening(store: Store, everyone: Scope, search_in: SearchIn) -> bool:
    """Return whether the index of an agent is loaded when its memory is opened."""
    if search_in == "memory" or not store.searches_vectors:
        return True
    return (
        search_in == "auto" and store.read(EntryCount(everyone, now=BEFORE_EXPIRY)) <= SMALL_AGENT
    )
