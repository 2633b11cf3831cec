"""The steps of a recall: ranking, access counts, telemetry."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import ClassVar
from uuid import UUID

import msgspec

from mnemic.contradictions import ContradictionJudge, Judgement, RuleJudge
from mnemic.errors import DeadlineExceededError, InvalidArgumentError, MnemicError, StoreError
from mnemic.index import RankedRow
from mnemic.licensing import RECALLING, Need
from mnemic.model import (
    KEYWORD,
    SEMANTIC,
    Expression,
    LinkType,
    MemoryEntry,
    MemoryRecallResult,
    MemoryRetrieverOptions,
    MemoryStatus,
    Ranking,
    RecallMode,
    RecallOptions,
    ReinforcementReason,
    SalienceBreakdown,
    SalienceOptions,
    SalienceWeights,
    Scope,
    ScoredMemory,
    Weights,
    validation,
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.filter import All, Field, Op, Test
from mnemic.model.link import Direction
from mnemic.model.marks import Marks
from mnemic.model.ranking import DOCUMENTED_SIMILARITY, Order
from mnemic.model.recall import (
    ANY_TIME,
    CONTRADICTION_CONFIDENCE,
    TimeRange,
    parse_types,
    salience_of,
    static_score_of,
)
from mnemic.model.rows import State
from mnemic.model.scope import not_found
from mnemic.model.search import DefaultFloors, Search
from mnemic.observability.table import RECALLED, RECALLED_BY_TIME, Row
from mnemic.observability.telemetry import milliseconds_since
from mnemic.recall.traversal import Traversal, linked_reason, scored_reason
from mnemic.reporting.description import described, must_be, quoted
from mnemic.repository import Follow, LinkedOutcome, Repository, SearchOutcome, Service
from mnemic.repository.service import ServiceTelemetry
from mnemic.threads.sync_bridge import called, run_blocking


def search_of(
    options: RecallOptions,
    *tests: Expression,
    order: Order | None = None,
    ranking: Ranking = SEMANTIC,
) -> Search:
    """Return the search that options and further tests describe."""
    states, statuses = _states(options)
    return Search(
        text=None,
        limit=options.max_results,
        ranking=ranking,
        filters=All((statuses, *filters_of(options), *tests)),
        with_total=options.with_total,
        order=order,
        min_salience=options.min_salience or None,
        states=states,
        explain=True,
    )


def filters_of(options: RecallOptions) -> list[Expression]:
    """Return the tests of type and project."""
    tests: list[Expression] = []
    if options.type_filter is not None:
        types = tuple(int(each) for each in parse_types(options.type_filter))
        tests.append(Test(Field("type"), Op.IN, types))
    if names_project(options):
        tests.append(Test(Field("project_id"), Op.EQ, options.project_id))
    return tests


def names_project(options: RecallOptions) -> bool:
    """Return whether the project is tested; None is the memories without one, if it is strict."""
    return options.project_id is not None or options.project_scope == "strict"


def statuses_of(options: RecallOptions) -> list[MemoryStatus]:
    """Return the statuses of the recalled memories."""
    wanted = [MemoryStatus.ACTIVE]
    if options.include_archived:
        wanted.append(MemoryStatus.ARCHIVED)
    if options.include_superseded:
        wanted.append(MemoryStatus.SUPERSEDED)
    return wanted


def uses_store(options: RecallOptions) -> bool:
    """Return whether links are followed in the store: the index has those of active memories."""
    return len(statuses_of(options)) > 1 or bool(options.min_salience)


def _states(options: RecallOptions) -> tuple[tuple[State, ...], Expression]:
    """Return the states of the searched memories, and the test of their status."""
    wanted = statuses_of(options)
    if len(wanted) == 1:
        return (State.ACTIVE,), All(())
    statuses = tuple(int(status) for status in wanted)
    return (State.ACTIVE, State.INACTIVE), Test(Field("status"), Op.IN, statuses)


def check_record(field: str, given: object, kind: type) -> None:
    """Check that an optional record is of its kind."""
    if given is not None and not isinstance(given, kind):
        raise must_be(field, kind.__name__, given, show=quoted)


CONTRADICTION_CANDIDATES = 20
MAX_DEPTH = 3
_DIRECTIONS = "out", "in", "both"

_POTENTIAL = "Potential contradiction"

_ORDERS = {
    RecallMode.RECENT: Order.ACCESSED,
    RecallMode.IMPORTANT: Order.SALIENCE,
    RecallMode.FREQUENT: Order.ACCESS_COUNT,
    RecallMode.TEMPORAL: Order.NEWEST,
}
_BY_QUERY = RecallMode.RELEVANT, RecallMode.TEMPORAL
"""Modes whose memories are similar to a query, if there is one."""


class RecallEngine(Service):
    """Recalls one agent's memories.

    Args:
        repository: The agent's memories.
        options: Ranking options.
        judge: Judges contradictions.
        log_queries: Whether logs show queries, if the memory permits it.
    """

    _needs: ClassVar[tuple[Need, ...]] = (RECALLING,)
    _by_meaning: ClassVar[tuple[Need, ...]] = ()

    def __init__(
        self,
        repository: Repository,
        options: MemoryRetrieverOptions,
        *,
        judge: ContradictionJudge,
        log_queries: bool,
    ) -> None:
        validation.of_kind("options", MemoryRetrieverOptions, "MemoryRetrieverOptions", options)
        super().__init__(
            repository,
            track_access=options.track_access,
            access_interval=options.access_interval,
        )
        self.options = options
        self._judge = judge
        shows = validation.flag("log_queries", log_queries)
        self._telemetry = ServiceTelemetry(repository, logs_queries=shows)

    async def recall(
        self,
        scope: Scope,
        query: str,
        options: RecallOptions,
        times: TimeRange = ANY_TIME,
    ) -> MemoryRecallResult:
        """Return the memories of a scope in the order of a mode, of a range of creation times."""
        mode = options.mode
        if mode is RecallMode.TEMPORAL and times == ANY_TIME:
            raise InvalidArgumentError(
                "mode temporal needs a time range: give recall since= or until=, or call "
                "AsyncMemoryRetriever.recall_temporal"
            )
        started = self.begin()
        search = self._search(query, options, times)
        if not search.uses_accesses:
            await self._write_accesses()
        found = await self._found(scope, search)
        now = self.repository.now()
        chunks = {hit.row: hit.chunk for hit in found.hits}
        passages = await self.repository.searcher.passages(chunks, found.entries, search.text)
        memories = [
            ScoredMemory(
                entry,
                *scored_reason(mode, self._explained(hit, entry, now)),
                passages.get(hit.row),
            )
            for hit, entry in found.memories
        ]
        self._count(found.entries, [hit.row for hit in found.hits])
        marks = found.marks if memories else await self._hinted(found.marks, "recall", scope)
        result = _result(memories, found.matches, started, marks)
        row = RECALLED_BY_TIME if mode is RecallMode.TEMPORAL else RECALLED
        start, end = times.start or "the begin", times.end or "now"
        return self._completed(result, mode.name.capitalize(), query, row, start=start, end=end)

    def _search(self, query: str, options: RecallOptions, times: TimeRange) -> Search:
        mode, given = options.mode, self.options
        if mode is RecallMode.TEMPORAL:
            times.check_order()
        name = "topic_filter" if mode is RecallMode.TEMPORAL else "query"
        validation.bounded(name, query)
        ranking = msgspec.structs.replace(SEMANTIC, salience=given.salience)
        if mode is RecallMode.RELEVANT:
            if not query.strip():
                raise InvalidArgumentError(
                    "query must be a text that is not empty where mode is relevant; the other "
                    "modes need none"
                )
            weights = Weights(relevance=given.similarity_weight, salience=given.salience_weight)
            ranking = msgspec.structs.replace(ranking, weights=weights)
        search = msgspec.structs.replace(
            search_of(options, *times.tests, order=_ORDERS.get(mode), ranking=ranking),
            **options.time_limit._asdict(),
        )
        if mode not in _BY_QUERY or not query.strip():
            return search
        return self._with_floor(msgspec.structs.replace(search, text=query))

    async def linked(
        self,
        scope: Scope,
        entry_id: UUID,
        types: object,
        options: RecallOptions,
        *,
        direction: Direction,
        depth: int,
    ) -> MemoryRecallResult:
        """Return the memories reached by links, strongest path first; None and [] are all types."""
        started, limit = self.begin(), options.time_limit
        validation.limit("depth", depth, MAX_DEPTH)
        validation.word("direction", direction, _DIRECTIONS)
        named = () if types is None else validation.items("types", types)
        kinds = {LinkType.parse(kind) for kind in named} or None
        follow = Follow(kinds, direction, depth, options.max_results, limit.deadline)

        def find() -> LinkedOutcome | None:
            locate, with_inactive = self.repository.reader.locate, uses_store(options)
            located = locate(scope, entry_id, include_inactive=with_inactive)
            return None if located is None else self._linked(scope, located.row, follow, options)

        if uses_store(options):
            await self._write_accesses()  # the traversal reads the store alone
        try:
            found = await run_blocking(find, self.repository)
        except DeadlineExceededError:
            if not limit.takes_partial:
                raise
            found = LinkedOutcome([], {}, 0, Marks(partial=True))
        if found is None:
            raise not_found(entry_id, scope)
        memories = [
            ScoredMemory(found.entries[hit.row], hit.strength, linked_reason(hit.kinds))
            for hit in found.hits
        ]
        self._count(found.entries, [hit.row for hit in found.hits])
        self.repository.finder.note_returned(found.entries)
        marks = found.marks._replace(stale_since=self.repository.freshness.stale_since)
        return self._completed(_result(memories, found.total, started, marks), "Linked", "")

    def _linked(
        self, scope: Scope, row: int, follow: Follow, options: RecallOptions
    ) -> LinkedOutcome | None:
        """Return the memories reached by links: active ones by the index, all by the store."""
        if uses_store(options):
            statuses, allows = statuses_of(options), self._allowed(options)
            reader = self.repository.reader
            traversal = Traversal(reader, scope, follow, statuses, allows)
            return traversal.traverse(row)
        tests = filters_of(options)
        return self.repository.finder.find_linked(
            scope,
            row,
            follow,
            filters=All(tuple(tests)) if tests else None,
            with_accesses=self._spaces_accesses,
        )

    def _allowed(self, options: RecallOptions) -> Callable[[MemoryEntry], bool]:
        """Return a test equivalent to `filters_of` and the minimum salience."""
        types = None if options.type_filter is None else parse_types(options.type_filter)
        asks_project, now = names_project(options), self.repository.now()

        def allows(entry: MemoryEntry) -> bool:
            return (
                (types is None or entry.type in types)
                and (not asks_project or entry.project_id == options.project_id)
                and static_score_of(entry, now, self.options.salience) >= options.min_salience
            )

        return allows

    async def contradictions(
        self,
        scope: Scope,
        content: str,
        options: RecallOptions,
        *,
        min_confidence: float = CONTRADICTION_CONFIDENCE,
        new: MemoryEntry | None = None,
    ) -> MemoryRecallResult:
        """Return memories that a text contradicts, highest confidence first.

        Args:
            scope: Whose memories.
            content: The text.
            options: Options of the recall.
            min_confidence: Judgements with a lower confidence are omitted.
            new: The memory of this text, which is about to be stored. What it replaces is omitted,
                the log shows no sensitive text, and nothing counts as recalled.
        """
        started, time_limit = self.begin(), options.time_limit
        least = validation.fraction("min_confidence", min_confidence)
        exclude = () if new is None or new.supersedes is None else (new.supersedes,)
        is_sensitive = new is not None and new.sensitive
        await self._write_accesses()
        found = await self._candidates(scope, content, options, exclude, time_limit)
        candidates = found.memories
        judged = await self._judged(content, [entry.content for _, entry in candidates])
        linked, is_late = await run_blocking(
            lambda: self._linked_pairs(scope, candidates, options, time_limit), self.repository
        )
        # A judge's reasons may quote both texts.
        scored = {
            hit.row: ScoredMemory(
                entry, judgement.confidence, _POTENTIAL if is_sensitive else judgement.reason
            )
            for (hit, entry), judgement in zip(candidates, judged, strict=True)
            if judgement.confidence >= least
        }
        for row, memory in linked:
            known = scored.get(row)
            if memory.memory.id not in exclude and (known is None or known.score < memory.score):
                scored[row] = memory
        surest = dict(sorted(scored.items(), key=_by_confidence)[: options.max_results])
        if new is None:
            self._count({row: each.entry for row, each in surest.items()}, list(surest))
        now = Marks(partial=is_late, stale_since=self.repository.freshness.stale_since)
        marks = now.united(found.marks)
        if not candidates and new is None:
            marks = await self._hinted(marks, "contradictions", scope)
        result = _result(surest.values(), len(scored), started, marks)
        return self._completed(result, "Contradictions", content, is_sensitive=is_sensitive)

    async def _candidates(
        self,
        scope: Scope,
        content: str,
        options: RecallOptions,
        exclude: tuple[UUID, ...],
        time_limit: TimeLimit,
    ) -> SearchOutcome:
        """Return the memories that a text may contradict."""
        if not validation.text("content", content).strip():
            raise must_be("content", "a text that is not empty", content)
        by_words = self.repository.embedder is None
        search = msgspec.structs.replace(
            search_of(options, ranking=KEYWORD if by_words else SEMANTIC),
            text=content[: validation.MAX_QUERY_LENGTH],
            limit=CONTRADICTION_CANDIDATES,
            exclude=exclude,
            with_total=False,
            keeps_vectors=False,
            **time_limit._asdict(),
        )
        if not by_words:
            search = self._with_floor(search)
        return await self._found(scope, search, partial(self._find, is_returned=False))

    async def _judged(self, content: str, others: Sequence[str]) -> Sequence[Judgement]:
        if not others:
            return []
        if isinstance(self._judge, RuleJudge):  # which needs no event loop, and no thread
            given: object = await self._judge.judge(content, others)
        else:
            given = await called(self._judge.judge, content, others)
        judged = validation.items("the judge's answer", given)
        if len(judged) != len(others):
            raise MnemicError(
                f"the judge of contradictions gave {len(judged)} judgements for {len(others)} "
                "memories; it must give one for each, in their order"
            )
        for judgement in judged:
            if not isinstance(judgement, Judgement):
                raise MnemicError(
                    f"the judge of contradictions gave {described(judgement)}; it must give a "
                    "Judgement for each memory"
                )
            validation.fraction("a judgement's confidence", judgement.confidence)
        return judged

    def _linked_pairs(
        self,
        scope: Scope,
        candidates: Sequence[tuple[RankedRow, MemoryEntry]],
        options: RecallOptions,
        time_limit: TimeLimit,
    ) -> tuple[list[tuple[int, ScoredMemory]], bool]:
        """Return both ends of the links of contradiction at the candidates.

        Whether the deadline passed before all links were followed, comes second.
        """
        found: list[tuple[int, ScoredMemory]] = []
        kinds, deadline = [LinkType.CONTRADICTS], time_limit.deadline
        follow = Follow(kinds, "both", 1, CONTRADICTION_CANDIDATES, deadline)
        for candidate, entry in candidates:
            try:
                linked = self._linked(scope, candidate.row, follow, options)
            except DeadlineExceededError:
                if not time_limit.takes_partial:
                    raise
                return found, True
            if linked is None or not linked.hits:
                continue
            similarity, strongest = candidate.shown_score, linked.hits[0].strength
            found.append((candidate.row, ScoredMemory(entry, similarity * strongest, _POTENTIAL)))
            for hit in linked.hits:
                reason = linked_reason(hit.kinds)
                memory = ScoredMemory(linked.entries[hit.row], similarity * hit.strength, reason)
                found.append((hit.row, memory))
        return found, False

    async def salience(
        self,
        scope: Scope,
        entry_id: UUID,
        query: str | None,
        weights: SalienceWeights | None,
        options: SalienceOptions | None,
    ) -> SalienceBreakdown:
        """Return the parts of a memory's current salience."""
        self.begin()
        check_record("weights", weights, SalienceWeights)
        check_record("options", options, SalienceOptions)
        if query is not None:
            validation.bounded("query", query)
        repository = self.repository
        await repository.shared.accesses.write()
        now = repository.now()
        located = repository.reader.locate(scope, entry_id)
        if located is None:
            raise not_found(entry_id, scope)
        row, entry = located
        relevance = None
        if query is not None and query.strip():
            repository.shared.models.check_embedder()
            relevance = await run_blocking(
                lambda: repository.finder.vectors.similarity(row, query), repository
            )
        return salience_of(
            entry,
            now,
            relevance=relevance,
            weights=weights,
            options=options,
            salience=self.options.salience,
        )

    async def reinforce(
        self, scope: Scope, entry_id: UUID, reason: object, options: SalienceOptions | None
    ) -> MemoryEntry:
        """Raise a memory's importance; return its new state."""
        self.begin()
        check_record("options", options, SalienceOptions)
        boosts = (SalienceOptions() if options is None else options).boosts
        boost = boosts.get(ReinforcementReason.parse(reason).value, 0.0)
        entry = await self.repository.updater.raise_importance(scope, entry_id, boost)
        if entry is None:
            raise not_found(entry_id, scope)
        return entry

    async def record_use(self, scope: Scope, ids: Sequence[UUID]) -> None:
        """Count an access of used memories."""
        self.begin()
        await self.repository.updater.touch(scope, ids)

    def _completed(
        self,
        result: MemoryRecallResult,
        mode: str,
        query: str,
        row: Row = RECALLED,
        **facts: object,
    ) -> MemoryRecallResult:
        """Return a result, and emit that it is complete."""
        took = result.query_time / timedelta(milliseconds=1)
        self._telemetry.record(
            row, mode=mode, query=query, result_count=len(result), latency_ms=took, **facts
        )
        return result

    def _explained(self, hit: RankedRow, entry: MemoryEntry, now: datetime) -> RankedRow:
        """Return a hit with its salience, which the index omits if its weight is 0."""
        if "salience" in hit.components:
            return hit
        salience = static_score_of(entry, now, self.options.salience)
        return hit._replace(components={**hit.components, "salience": salience})

    @property
    def _spaces_accesses(self) -> bool:
        """Whether an access counts only after an interval since the last one."""
        return self.options.track_access and bool(self.options.access_interval)

    async def _write_accesses(self) -> None:
        """Write accesses if the interval depends on them; searches by accesses do so themselves.

        Nothing is written to an unreachable server: that would wait for it.
        """
        if self._spaces_accesses and self.repository.freshness.stale_since is None:
            with suppress(StoreError):  # then it is written later
                await self.repository.shared.accesses.write()

    def _with_floor(self, search: Search) -> Search:
        """Return a search with the minimum cosine; 0 excludes nothing."""
        own = self.options.min_similarity
        return msgspec.structs.replace(
            search,
            min_similarity=own or None,
            uses_similarity_floor=own is None,
            default_floors=DefaultFloors(DOCUMENTED_SIMILARITY),
        )


def _result(
    memories: Iterable[ScoredMemory], total: int, started: float, marks: Marks
) -> MemoryRecallResult:
    took = timedelta(milliseconds=milliseconds_since(started))
    return MemoryRecallResult(tuple(memories), total, took, **marks.of(MemoryRecallResult))


def _by_confidence(of_row: tuple[int, ScoredMemory]) -> tuple[float, float, UUID, str]:
    scored = of_row[1]
    memory = scored.memory
    return -scored.score, -memory.created_at.timestamp(), memory.id, memory.user_id or ""
