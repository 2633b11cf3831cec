"""The one way to a ranking: refresh the index, embed the query, rank, read the memories.

Every search, retrieval, recall, context and check for contradictions goes through `Finder.find`.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial, reduce
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from mnemic.errors import DeadlineExceededError, EmbeddingError, MnemicError
from mnemic.index import (
    Hops,
    LinkedRow,
    LinkSearch,
    ListRequest,
    NativeIndex,
    NeighbourRow,
    NeighbourSearch,
    RankedPage,
    RankedRow,
    RankInputs,
)
from mnemic.licensing import SEARCHING_BY_MEANING, STORING, Need
from mnemic.model import Expression, LinkType, MemoryEntry, Scope, Weights
from mnemic.model.deadline import check_deadline
from mnemic.model.filter import All
from mnemic.model.marks import UNMARKED, Marks
from mnemic.model.ranking import SEMANTIC
from mnemic.model.rows import Access, State
from mnemic.model.search import CosineScale, Search
from mnemic.model.time_zones import offset_changes
from mnemic.model.timestamps import to_microseconds
from mnemic.observability.spans import RECORD_COUNT, Attributes, content_of, phase, traced
from mnemic.repository.accesses import show_accesses
from mnemic.repository.database_search import DatabaseSearch, is_by_vectors
from mnemic.repository.found import (
    NOT_IN_TIME,
    NOTHING,
    Expansion,
    Find,
    Follow,
    LinkedHits,
    LinkedOutcome,
    NeighbourOutcome,
    SearchOutcome,
    why_of,
)
from mnemic.repository.parts import Part, Shared
from mnemic.repository.proposals import rank
from mnemic.repository.query_vectors import AnnouncedSearch, QueryVectors
from mnemic.repository.vector_model import no_embedder
from mnemic.store import LogPosition
from mnemic.store.operations import EntriesByRow
from mnemic.store.values import SelectedRows
from mnemic.threads.sync_bridge import run_blocking

if TYPE_CHECKING:
    from mnemic.repository.recall_guard import RecallGuard


def _on_scale(
    search: Search, scale: CosineScale, find: Callable[[Search], SearchOutcome]
) -> SearchOutcome:
    """Return what is found on a learned scale, or without it where memories are all alike."""
    found = find(search)
    if not (found.hits or search.uses_similarity_floor):
        return found
    if not found.hits or _are_below_limit(found, scale):
        least = None if search.uses_similarity_floor else search.min_similarity
        given = None if search.evidence is None or search.evidence.is_learned else search.evidence
        freely = msgspec.structs.replace(search, scale=None, evidence=given, min_similarity=least)
        # Not by these hits alone, so that all pages are of one ranking.
        nearest = msgspec.structs.replace(
            freely, ranking=SEMANTIC, order=None, limit=1, offset=0, min_score=None
        )
        if _are_below_limit(find(nearest), scale):
            return find(freely)
    return found.marked(hint=search.hint) if search.uses_similarity_floor else found


def _are_below_limit(found: SearchOutcome, scale: CosineScale) -> bool:
    cosines = [hit.similarity for hit in found.hits if hit.similarity is not None]
    return max(cosines, default=scale.lower_limit) < scale.lower_limit


READ_AT_ONCE = 128
"""Entries that are read between two looks at a deadline."""

MAX_ROUNDS = 4
"""How often memories of several states are ranked while concurrent writes move them."""


class _Moment(NamedTuple):
    """The moment of one search, shared by its steps.

    Attributes:
        now: Memories that expired before are left out.
        position: Where the store stood when the index was refreshed.
        searched: The index that ranks the memories.
        deadline: When to give up, in seconds of `time.monotonic()`; None is never.
        takes_partial: Whether entries that are read at the deadline are returned in place of an
            error.
        selected: The memories that the database selected; None for all of the agent.
    """

    now: datetime
    position: LogPosition
    searched: NativeIndex
    deadline: float | None = None
    takes_partial: bool = False
    selected: SelectedRows | None = None


class Finder(Part):
    """Finds memories of one agent.

    Args:
        shared: What it shares with the others.
        vectors: Embeds queries; an attribute, which a change of the model replaces.
        guard: Notes the memories that the program gets; None for none.
    """

    def __init__(self, shared: Shared, vectors: QueryVectors, guard: "RecallGuard | None") -> None:
        super().__init__(shared)
        settings = shared.settings
        self.vectors = vectors
        self._guard = guard
        is_in_database = self._store.searches_vectors and settings.search_in != "memory"
        self._database = DatabaseSearch(shared) if is_in_database else None
        self._exact_limit = settings.exact_limit
        self._time_zone = shared.time_zone

    def found(
        self, scope: Scope, search: Search, find: Find | None = None
    ) -> Awaitable[SearchOutcome]:
        """Return the best memories of a scope, without blocking an event loop.

        Args:
            scope: The scope.
            search: The request, which those that are awaited together know of each other.
            find: Finds the memories; `find` for the verbs of a memory, unless given.
        """
        # One piece of work: each change to another thread takes as long as a short search.
        return run_blocking(
            partial(self.find, scope, search, SEARCHING_BY_MEANING)
            if find is None
            else partial(find, scope, search),
            self._store,
            announced=AnnouncedSearch(self.vectors, scope, search),
        )

    @traced("search_memory", lambda found, given: _facts(found, given[1]))
    def find(
        self,
        scope: Scope,
        search: Search,
        *needs: Need,
        expansion: Expansion | None = None,
        is_returned: bool = True,
    ) -> SearchOutcome:
        """Return the best memories of a scope, best first; runs in the caller's thread.

        The only way to a ranking: license, index, vectors, ranking, memories. It publishes no event
        and counts no access.

        Args:
            scope: Only its memories are ranked.
            search: The query, the filters and the ranking.
            needs: Licensed features, where the search compares vectors.
            expansion: Neighbours to find with them, for a search of active memories alone; they
                match the search's filters. An error of following links is in the result.
            is_returned: Whether the program gets the memories.

        Raises:
            DeadlineExceededError: If the search's deadline passes, and it takes no partial answer.
            EmbedderRequiredError: If it compares vectors, and there is no embedder.
            EmbeddingError: If the embedder fails, and the search does not fall back to keywords.
            LicenseRestrictionError: If the license policy does not allow it.
            StoreError: If the store cannot be read.
        """
        self._limits.require(STORING, *(needs if search.uses_meaning else ()))
        if self._models.embedder is None and search.needs_embedder:
            raise no_embedder()
        if not (search.limit or search.with_total):
            return SearchOutcome([], {}, None)
        begun = time.monotonic()
        try:
            found = self._find(scope, search, expansion)
        except DeadlineExceededError:
            if not search.takes_partial:
                raise
            found = NOT_IN_TIME
        stale_since = self._store.stale_since(self._agent_id, begun)
        if stale_since is not None:
            found = found.marked(stale_since=stale_since)
        if search.is_near_best:
            found = found.near_best(search.offset)
        if is_returned:
            self.note_returned(found.entries)
        return found

    def note_returned(self, entries: Mapping[int, MemoryEntry]) -> None:
        """Note memories that are returned to the program, for the guard against recall loops."""
        if self._guard is not None:
            self._guard.note(entries)

    def _find(
        self, scope: Scope, search: Search, expansion: Expansion | None = None
    ) -> SearchOutcome:
        """Find by the vectors of one model: again, if the model changes meanwhile."""
        if search.is_near_best:  # the best hit is needed on every page
            limit = search.limit + search.offset
            search = msgspec.structs.replace(search, limit=limit, offset=0, is_near_best=False)
        while True:
            generation = self._indexes.generation
            try:
                found = self._find_once(scope, search, expansion)
            except MnemicError:
                if not self._indexes.is_changed(generation):
                    raise
            else:
                if not self._indexes.is_changed(generation):
                    return found

    def _find_once(
        self, scope: Scope, search: Search, expansion: Expansion | None = None
    ) -> SearchOutcome:
        search = self.vectors.adapted(search)
        try:
            found, database = None, self._database
            if database is not None and database.serves(scope, search):
                with database.timed():
                    found = self._find_in_database(database, scope, search, expansion)
            return self._find_in_memory(scope, search, expansion) if found is None else found
        except EmbeddingError as error:
            fallback = search.fallback
            if fallback is None:
                raise
            self._telemetry.falls_back(error)
            found = self._find_once(scope, fallback)
            return found.marked(degraded=True, degraded_reason=str(error))

    def _find_in_database(
        self,
        database: DatabaseSearch,
        scope: Scope,
        search: Search,
        expansion: Expansion | None,
    ) -> SearchOutcome | None:
        """Return the best of the memories that the database selects; None if it cannot."""
        check_deadline(search.deadline)
        position = self._store.known_position(self._agent_id)
        now = self._now()
        microseconds = to_microseconds(now)
        selection, vectors, context = None, None, None
        if is_by_vectors(search) and expansion is None:
            vectors, context = self.vectors.of(scope, search, microseconds)
            if vectors is None:
                return None
            selection = database.nearest(scope, search, vectors, microseconds)
        if selection is None:
            selection = database.load_user(scope, search)
            if selection is None:
                return None
            vectors, context = self.vectors.of(scope, search, microseconds, selection.ranked)
            search = self.vectors.with_learned_scale(search, scope, microseconds, selection.ranked)
        check_deadline(search.deadline)
        limits = search.deadline, search.takes_partial
        moment = _Moment(now, position, selection.ranked, *limits, selection.rows)
        zone = offset_changes(search.time_zone or self._time_zone)
        inputs = RankInputs(scope, microseconds, vectors, context, time_zone=zone)
        find = partial(self._find_active, inputs=inputs, moment=moment, expansion=expansion)
        found = find(search) if search.scale is None else _on_scale(search, search.scale, find)
        return found.marked(approximate=selection.rows.approximate, searched_in="database")

    def _find_in_memory(
        self, scope: Scope, search: Search, expansion: Expansion | None
    ) -> SearchOutcome:
        refreshed = partial(
            self._active.catch_up, with_accesses=search.uses_accesses, deadline=search.deadline
        )
        with phase("refresh"):
            position, now, index = refreshed(), self._now(), self._active.index
        vectors, context = self.vectors.of(scope, search, to_microseconds(now), index)
        if vectors is not None and self._active.waits_for_embedder:
            # The embedder has just answered: memories that it failed on are found at once, and so
            # are those that waited for the length of its vectors.
            position, index = refreshed(), self._active.index
        check_deadline(search.deadline)
        if vectors is None and search.text is None and search.vectors is not None:
            return NOTHING  # no memory has a vector
        moment = _Moment(now, position, index, search.deadline, search.takes_partial)
        zone = offset_changes(search.time_zone or self._time_zone)
        inputs = RankInputs(scope, to_microseconds(now), vectors, context, time_zone=zone)
        search = self.vectors.with_learned_scale(search, scope, inputs.now, index)
        if search.states == (State.ACTIVE,):
            find = partial(self._find_active, inputs=inputs, moment=moment, expansion=expansion)
        else:
            find = partial(self._find_in_states, inputs=inputs, moment=moment)
        return find(search) if search.scale is None else _on_scale(search, search.scale, find)

    def find_linked(
        self,
        scope: Scope,
        row: int,
        follow: Follow,
        *,
        filters: Expression | None,
        with_accesses: bool,
    ) -> LinkedOutcome:
        """Return the active memories of a scope that links lead to.

        Args:
            scope: Only its memories are visited and found.
            row: The row of the first memory, one of the scope.
            follow: The links to follow.
            filters: Only memories that match are visited and found; the first need not match.
            with_accesses: Whether entries show accesses that are not in the store yet.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        check_deadline(follow.deadline)
        position = self._active.catch_up(with_accesses=with_accesses)
        moment = _Moment(self._now(), position, self._active.index, follow.deadline)
        kinds = LinkType if follow.kinds is None else set(follow.kinds)
        search = LinkSearch(
            scope=scope,
            now=to_microseconds(moment.now),
            row=row,
            direction=follow.direction,
            kinds=sum(1 << kind.number for kind in kinds),
            depth=follow.depth,
            limit=follow.limit,
            filters=filters,
            deadline=follow.deadline,
        )
        found, total = moment.searched.core.linked(search)
        hits = [LinkedRow(*hit) for hit in found]
        entries, _ = self._entries(scope, hits, moment)
        return LinkedOutcome([hit for hit in hits if hit.row in entries], entries, total)

    def neighbours(
        self,
        scope: Scope,
        starts: Sequence[tuple[int, float]],
        hops: Hops,
        *,
        filters: Expression | None = None,
        deadline: float | None = None,
    ) -> NeighbourOutcome:
        """Return the active memories of a scope that links lead to from several of its memories.

        Each has the score of its best path: that of the start, times decay and strength of each
        link; see `NativeIndex.neighbours`. A link to a superseded memory leads to the head of its
        versions. Missing, deleted and expired memories are passed over.

        Args:
            scope: Only its memories are traversed and found.
            starts: Rows of memories with their scores; they are not found again.
            hops: The links to follow.
            filters: Only memories that match are traversed and found; starts need not match.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Raises:
            DeadlineExceededError: If the deadline passes.
        """
        if not starts or not hops.limit:
            return NeighbourOutcome([], {})
        position = self._active.catch_up(deadline=deadline)
        moment = _Moment(self._now(), position, self._active.index, deadline)
        search = NeighbourSearch(
            scope=scope,
            now=to_microseconds(moment.now),
            starts=starts,
            hops=hops,
            filters=filters,
            deadline=deadline,
        )
        hits = moment.searched.neighbours(search)
        entries, _ = self._entries(scope, hits, moment)
        return NeighbourOutcome([hit for hit in hits if hit.row in entries], entries)

    def _linked(
        self,
        search: Search,
        inputs: RankInputs,
        hits: Sequence[RankedRow],
        expansion: Expansion,
        index: NativeIndex,
    ) -> LinkedHits:
        """Return the neighbours of hits, by an index as it is."""
        starts, hops = expansion.starts(hits), expansion.hops
        if not (starts and hops.depth and hops.limit):
            return LinkedHits([])
        wanted = NeighbourSearch(
            scope=inputs.scope,
            now=inputs.now,
            starts=starts,
            hops=hops,
            filters=search.filters,
            deadline=search.deadline,
        )
        try:
            return LinkedHits(index.neighbours(wanted))
        except Exception as error:  # noqa: BLE001 - the search has its result
            return LinkedHits([], error)

    def key_phrases(self, scope: Scope, text: str, limit: int) -> list[tuple[str, float]]:
        """Return phrases of a text that the user's memories hold, best first."""
        self._active.catch_up()
        return self._active.index.core.key_phrases(text, scope, limit)

    def _find_active(
        self,
        search: Search,
        inputs: RankInputs,
        moment: _Moment,
        expansion: Expansion | None = None,
    ) -> SearchOutcome:
        index, limit = moment.searched, search.limit
        while True:
            asked = inputs._replace(limit=limit)
            with phase("rank"):
                if index.has_source:
                    page = rank(index, search, asked, self._exact_limit)
                else:
                    page = index.rank(search, asked)
            if search.max_tokens is not None:
                rows = [hit.row for hit in page.ranked]
                places = index.core.filling(rows, search.max_tokens)
                page = page._replace(ranked=[page.ranked[place] for place in places])
            linked = None
            if expansion is not None:
                linked = self._linked(search, inputs, page.ranked, expansion, index)
            neighbours = () if linked is None else linked.hits
            with phase("read"):
                entries, is_cut = self._entries(inputs.scope, [*page.ranked, *neighbours], moment)
            marks = _marks_of(page, is_cut=is_cut)
            hits = [hit for hit in page.ranked if hit.row in entries]
            if marks.partial or len(hits) >= search.limit or len(page.ranked) < limit:
                found = SearchOutcome(
                    hits[: search.limit],
                    entries,
                    page.total,
                    marks,
                    share=page.share,
                    seq=moment.position.seq,
                    linked=linked and _read(linked, entries),
                )
                return _explained(found, search, index) if search.with_reasons else found
            # Some were deleted between the ranking and the reading: rank further down.
            limit = 2 * limit + 8

    def has_memories(self, scope: Scope, deadline: float | None = None) -> bool:
        """Return whether a scope has any active memory; the index is brought up to date first.

        Args:
            scope: The scope.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Raises:
            DeadlineExceededError: If the deadline passes while changes are read.
        """
        self._active.catch_up(deadline=deadline)
        return self.active_count(scope) > 0

    def active_count(self, scope: Scope) -> int:
        """Return the number of active memories of a scope; the index is not brought up to date."""
        now = to_microseconds(self._now())
        wanted = ListRequest(scope=scope, now=now, filters=All(()), limit=0)
        return self._active.index.counted(wanted)

    def _find_in_states(self, search: Search, inputs: RankInputs, moment: _Moment) -> SearchOutcome:
        """Find memories of several states, whose indexes do not change at one moment."""
        if search.offset:
            whole = msgspec.structs.replace(search, limit=search.limit + search.offset, offset=0)
            found = self._find_in_states(whole, inputs, moment)
            return found._replace(hits=found.hits[search.offset :])
        if search.is_relative:  # no index alone knows the best match
            best = self._find_in_each(_best_match_search(search), inputs, moment)
            if best.marks.partial:
                return NOT_IN_TIME
            score = best.hits[0].score if best.hits else 0.0
            inputs = inputs._replace(best_match=score if score > 0 else 1.0)
        found = self._find_in_each(search, inputs, moment)
        for _ in range(MAX_ROUNDS - 1):
            if (
                found.marks.partial
                or self._store.known_position(self._agent_id).seq == moment.position.seq
            ):
                break
            # A memory that changed its state between two rankings would be in neither.
            try:
                position = self._active.catch_up(
                    with_accesses=search.uses_accesses, deadline=search.deadline
                )
                moment = moment._replace(position=position, searched=self._active.index)
            except DeadlineExceededError:
                if not moment.takes_partial:
                    raise
                return found.marked(partial=True)
            found = self._find_in_each(search, inputs, moment)
        return found

    def _find_in_each(self, search: Search, inputs: RankInputs, moment: _Moment) -> SearchOutcome:
        found = [self._find_active(search, inputs, moment)]
        try:
            for state in search.states:
                if state is not State.ACTIVE:
                    check_deadline(moment.deadline)
                    found.append(self._find_in(state, search, inputs, moment))
        except DeadlineExceededError:
            if not moment.takes_partial:
                raise
            found.append(NOT_IN_TIME)
        return _merged(found, search)

    def _find_in(
        self, state: State, search: Search, inputs: RankInputs, moment: _Moment
    ) -> SearchOutcome:
        """Find inactive or deleted memories, which are not in the entry cache."""
        sync = self._indexes.of(state)
        sync.catch_up(with_accesses=True, deadline=moment.deadline)
        page = sync.index.rank(search, inputs)

        def read(rows: list[int], deadline: float | None) -> dict[int, MemoryEntry]:
            return self._store.read(
                EntriesByRow(inputs.scope, rows, now=moment.now, include_deleted=True),
                deadline=deadline,
            )

        entries, is_cut = _in_time([hit.row for hit in page.ranked], moment, read)
        show_accesses(entries, _accesses(page.ranked))
        hits = [hit for hit in page.ranked if hit.row in entries]
        return SearchOutcome(hits, entries, page.total, _marks_of(page, is_cut=is_cut))

    def _entries(
        self, scope: Scope, hits: Sequence[RankedRow | LinkedRow | NeighbourRow], moment: _Moment
    ) -> tuple[dict[int, MemoryEntry], bool]:
        """Return the entries of hits, and whether the deadline passed before all were read."""

        def read(rows: list[int], deadline: float | None) -> dict[int, MemoryEntry]:
            if moment.selected is not None:
                return moment.selected.entries(scope, rows, moment.now)
            return self._cache.get_rows(scope, rows, moment.now, moment.position, deadline=deadline)

        entries, is_cut = _in_time([hit.row for hit in hits], moment, read)
        show_accesses(entries, _accesses(hits))
        return entries, is_cut


def _facts(found: SearchOutcome, search: Search) -> Attributes:
    """Return what a search's span says of it."""
    entries = [found.entries[hit.row] for hit in found.hits]
    return {RECORD_COUNT: len(entries), **content_of(search.text, entries)}


def _marks_of(page: RankedPage, *, is_cut: bool) -> Marks:
    partial = page.partial or is_cut
    if not (partial or page.approximate or page.by_another):
        return UNMARKED
    return Marks(partial=partial, approximate=page.approximate, by_another=page.by_another)


def _explained(found: SearchOutcome, search: Search, index: NativeIndex) -> SearchOutcome:
    """Return hits with the reasons for their scores, by the index that ranked them."""
    whys = {hit.row: why_of(hit, found.entries[hit.row], search.text, index) for hit in found.hits}
    return found._replace(reasons={row: why for row, why in whys.items() if why is not None})


def _read(linked: LinkedHits, entries: Mapping[int, MemoryEntry]) -> LinkedHits:
    """Return the neighbours whose entries were read."""
    return linked._replace(hits=[hit for hit in linked.hits if hit.row in entries])


def _in_time(
    rows: list[int],
    moment: _Moment,
    read: Callable[[list[int], float | None], dict[int, MemoryEntry]],
) -> tuple[dict[int, MemoryEntry], bool]:
    """Read entries, and return whether the deadline passed before all were read.

    The first ones are read in any case where a partial answer is taken: there would be no answer
    without them.
    """
    if not moment.takes_partial or moment.deadline is None:
        check_deadline(moment.deadline)
        return read(rows, moment.deadline), False
    entries = read(rows[:READ_AT_ONCE], None)
    try:
        for at in range(READ_AT_ONCE, len(rows), READ_AT_ONCE):
            check_deadline(moment.deadline)
            entries |= read(rows[at : at + READ_AT_ONCE], moment.deadline)
    except DeadlineExceededError:
        return entries, True
    return entries, False


def _accesses(hits: Sequence[RankedRow | LinkedRow | NeighbourRow]) -> list[Access]:
    return [(hit.row, hit.last_accessed_at, hit.access_count) for hit in hits]


def _best_match_search(search: Search) -> Search:
    """Return a search for the best match alone."""
    return msgspec.structs.replace(
        search,
        ranking=msgspec.structs.replace(search.ranking, weights=Weights()),
        limit=1,
        min_score=None,
        with_total=False,
        is_relative=False,
    )


def _merged(parts: Sequence[SearchOutcome], search: Search) -> SearchOutcome:
    """Return the best of several rankings, with the ties of the core (`rank/`, `columns/tie.rs`).

    Ties in a sort order are decided by salience first.
    """
    entries = {row: entry for part in parts for row, entry in part.entries.items()}

    def sort_key(hit: RankedRow) -> tuple[float, float, float, bytes, str]:
        salience = 0.0 if search.order is None else hit.components["salience"]
        entry = entries[hit.row]
        created_at, user = to_microseconds(entry.created_at), entry.user_id or ""
        return -hit.score, -salience, -created_at, hit.id, user

    # A memory that changed its state between two rankings may be in both; it is one all the same.
    hits = {hit.row: hit for part in parts for hit in part.hits}
    marks = reduce(Marks.united, (part.marks for part in parts))
    is_counted = search.with_total and not marks.partial
    total = sum(part.total or 0 for part in parts) if is_counted else None
    best = sorted(hits.values(), key=sort_key)[: search.limit]
    share = parts[0].share  # that of active memories
    return SearchOutcome(best, entries, total, marks, share)
