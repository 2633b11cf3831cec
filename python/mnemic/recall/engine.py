"""The steps of a recall: ranking, access counts, telemetry."""

import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec

from mnemic.contradictions import ContradictionJudge, Judgement, RuleJudge
from mnemic.errors import DeadlineExceededError, InvalidArgumentError, MnemicError, StoreError
from mnemic.index import RankedRow
from mnemic.licensing import RECALLING
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
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.filter import All, Field, Op, Test
from mnemic.model.link import Direction
from mnemic.model.ranking import DOCUMENTED_SIMILARITY, Order
from mnemic.model.recall import CONTRADICTION_CONFIDENCE, parse_types, salience_of, static_score_of
from mnemic.model.rows import State
from mnemic.model.scope import not_found
from mnemic.model.search import Search
from mnemic.model.time_range import ANY_TIME, TimeRange
from mnemic.model.validation import MAX_QUERY_LENGTH, bounded, flag, fraction, items, text, word
from mnemic.observability.telemetry import milliseconds_since
from mnemic.recall import reasons
from mnemic.recall.telemetry import RecallTelemetry
from mnemic.recall.traversal import Traversal
from mnemic.reporting.description import described, must_be, quoted
from mnemic.repository import LinkedOutcome, Repository, SearchOutcome
from mnemic.threads.calling import called
from mnemic.threads.sync_bridge import run_blocking


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
}


class Recall(NamedTuple):
    """A search with the scores of its results.

    Attributes:
        search: Ranks or orders the memories.
        reason: Computes their scores.
    """

    search: Search
    reason: reasons.Reason


class _Candidate(NamedTuple):
    """A memory that a text may contradict, its row, and its similarity."""

    row: int
    entry: MemoryEntry
    similarity: float


class RecallEngine:
    """Recalls one agent's memories.

    Args:
        repository: The agent's memories.
        options: Ranking options.
        judge: Judges contradictions.
        log_queries: Whether logs show queries, if the memory permits it.
    """

    def __init__(
        self,
        repository: Repository,
        options: MemoryRetrieverOptions,
        *,
        judge: ContradictionJudge,
        log_queries: bool,
    ) -> None:
        if not isinstance(options, MemoryRetrieverOptions):
            raise must_be("options", "MemoryRetrieverOptions", options)
        self.repository = repository
        self.options = options
        self._judge = judge
        shows = flag("log_queries", log_queries) and repository.logs_content
        self._telemetry = RecallTelemetry(repository.meter, logs_queries=shows)

    async def recall(
        self,
        scope: Scope,
        query: str,
        options: RecallOptions,
        times: TimeRange = ANY_TIME,
    ) -> MemoryRecallResult:
        """Return the memories of a scope in the order of a mode, of a range of creation times."""
        if options.mode is RecallMode.TEMPORAL:
            if times == ANY_TIME:
                raise InvalidArgumentError(
                    "mode temporal needs a time range: give recall since= or until=, or call "
                    "AsyncMemoryRetriever.recall_temporal"
                )
            return await self.temporal(scope, options, times, query)
        started, limit = time.perf_counter(), options.time_limit
        self._check_license()
        mode = options.mode
        bounded("query", text("query", query))
        if mode is RecallMode.RELEVANT:
            request = self._relevant(query, options, times)
        else:
            search = search_of(options, *times.tests, order=_ORDERS[mode])
            request = Recall(search, reasons.REASONS[mode])
        result = await self._recalled(scope, request, started, limit)
        self._telemetry.recalled(
            mode.name.capitalize(), query, len(result), milliseconds_since(started)
        )
        return result

    async def temporal(
        self,
        scope: Scope,
        options: RecallOptions,
        times: TimeRange,
        topic: str | None,
    ) -> MemoryRecallResult:
        """Return the memories created in a time range, newest first."""
        started, limit = time.perf_counter(), options.time_limit
        self._check_license()
        times.check_order()
        search = search_of(options, *times.tests, order=Order.NEWEST)
        if topic is not None:
            bounded("topic_filter", text("topic_filter", topic))
        if topic is None or not topic.strip():
            request = Recall(search, reasons.temporal_reason)
        else:
            topical = msgspec.structs.replace(search, text=topic, min_similarity=self._floor())
            request = Recall(topical, reasons.topical_reason)
        result = await self._recalled(scope, request, started, limit)
        self._telemetry.recalled_temporal(
            len(result), times.start, times.end, milliseconds_since(started)
        )
        return result

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
        started, time_limit = time.perf_counter(), options.time_limit
        self._check_license()
        _check_depth(depth)
        word("direction", direction, _DIRECTIONS)
        named = () if types is None else items("types", types)
        kinds = {LinkType.parse(kind) for kind in named} or None

        def find() -> LinkedOutcome | None:
            row = self.repository.finder.row_of(
                scope, entry_id, include_inactive=uses_store(options)
            )
            if row is None:
                return None
            limit, deadline = options.max_results, time_limit.deadline
            return self._linked(
                scope, row, kinds, options, direction, depth=depth, limit=limit, deadline=deadline
            )

        if uses_store(options):
            await self._write_accesses()  # the traversal reads the store alone
        partial = False
        try:
            found = await run_blocking(find, self.repository)
        except DeadlineExceededError:
            if not time_limit.takes_partial:
                raise
            found, partial = LinkedOutcome([], {}, 0), True
        if found is None:
            raise not_found(entry_id, scope)
        memories = tuple(
            ScoredMemory(found.entries[hit.row], hit.strength, reasons.linked_reason(hit.kinds))
            for hit in found.hits
        )
        self._count(memories, [hit.row for hit in found.hits])
        self.repository.note_returned(found.entries)
        stale_since = self.repository.finder.stale_since
        marks = SearchOutcome([], {}, None, partial=partial, stale_since=stale_since)
        result = _result(memories, found.total, started, marks)
        self._telemetry.recalled("Linked", "", len(result), milliseconds_since(started))
        return result

    def _linked(
        self,
        scope: Scope,
        row: int,
        kinds: Collection[LinkType] | None,
        options: RecallOptions,
        direction: Direction,
        *,
        depth: int,
        limit: int,
        deadline: float | None,
    ) -> LinkedOutcome | None:
        """Return the memories reached by links: active ones by the index, all by the store."""
        if uses_store(options):
            statuses, allows = statuses_of(options), self._allowed(options)
            traversal = Traversal(
                self.repository,
                scope,
                kinds,
                direction,
                statuses=statuses,
                allows=allows,
                deadline=deadline,
            )
            return traversal.traverse(row, depth, limit)
        tests = filters_of(options)
        return self.repository.finder.find_linked(
            scope,
            row,
            kinds,
            direction,
            depth=depth,
            limit=limit,
            filters=All(tuple(tests)) if tests else None,
            with_accesses=self._spaces_accesses,
            deadline=deadline,
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
        started, time_limit = time.perf_counter(), options.time_limit
        self._check_license()
        least = fraction("min_confidence", min_confidence)
        exclude = () if new is None or new.supersedes is None else (new.supersedes,)
        is_sensitive = new is not None and new.sensitive
        await self._write_accesses()
        found = await self._candidates(scope, content, options, exclude, time_limit)
        candidates = [
            _Candidate(hit.row, found.entries[hit.row], hit.shown_score) for hit in found.hits
        ]
        judged = await self._judged(content, candidates)
        linked, is_late = await run_blocking(
            lambda: self._linked_pairs(scope, candidates, options, time_limit), self.repository
        )
        # A judge's reasons may quote both texts.
        scored = {
            row: ScoredMemory(
                entry, judgement.confidence, _POTENTIAL if is_sensitive else judgement.reason
            )
            for (row, entry, _), judgement in zip(candidates, judged, strict=True)
            if judgement.confidence >= least
        }
        for row, memory in linked:
            known = scored.get(row)
            if memory.memory.id not in exclude and (known is None or known.score < memory.score):
                scored[row] = memory
        surest = dict(sorted(scored.items(), key=_by_confidence)[: options.max_results])
        memories = tuple(surest.values())
        if new is None:
            self._count(memories, list(surest))
        found = found._replace(
            partial=found.partial or is_late,
            stale_since=self.repository.finder.stale_since or found.stale_since,
        )
        hint = None if candidates else await self.repository.user_hints.of("contradictions", scope)
        result = _result(memories, len(scored), started, found, hint)
        self._telemetry.recalled(
            "Contradictions",
            content,
            len(result),
            milliseconds_since(started),
            is_sensitive=is_sensitive,
        )
        return result

    async def _candidates(
        self,
        scope: Scope,
        content: str,
        options: RecallOptions,
        exclude: tuple[UUID, ...],
        time_limit: TimeLimit,
    ) -> SearchOutcome:
        """Return the memories that a text may contradict."""
        if not text("content", content).strip():
            raise must_be("content", "a text that is not empty", content)
        by_words = self.repository.embedder is None
        search = msgspec.structs.replace(
            search_of(options, ranking=KEYWORD if by_words else SEMANTIC),
            text=content[:MAX_QUERY_LENGTH],
            limit=CONTRADICTION_CANDIDATES,
            min_similarity=None if by_words else self._floor(),
            exclude=exclude,
            with_total=False,
            keeps_vectors=False,
            deadline=time_limit.deadline,
            takes_partial=time_limit.takes_partial,
        )
        return await run_blocking(
            lambda: self.repository.find(scope, search, is_returned=False), self.repository
        )

    async def _judged(
        self, content: str, candidates: "Sequence[_Candidate]"
    ) -> Sequence[Judgement]:
        if not candidates:
            return []
        others = [each.entry.content for each in candidates]
        if isinstance(self._judge, RuleJudge):  # which needs no event loop, and no thread
            given: object = await self._judge.judge(content, others)
        else:
            given = await called(self._judge.judge, content, others)
        judged = items("the judge's answer", given)
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
            fraction("a judgement's confidence", judgement.confidence)
        return judged

    def _linked_pairs(
        self,
        scope: Scope,
        candidates: "Sequence[_Candidate]",
        options: RecallOptions,
        time_limit: TimeLimit,
    ) -> tuple[list[tuple[int, ScoredMemory]], bool]:
        """Return both ends of the links of contradiction at the candidates.

        Whether the deadline passed before all links were followed, comes second.
        """
        found: list[tuple[int, ScoredMemory]] = []
        for row, entry, similarity in candidates:
            try:
                linked = self._linked(
                    scope,
                    row,
                    [LinkType.CONTRADICTS],
                    options,
                    "both",
                    depth=1,
                    limit=CONTRADICTION_CANDIDATES,
                    deadline=time_limit.deadline,
                )
            except DeadlineExceededError:
                if not time_limit.takes_partial:
                    raise
                return found, True
            if linked is None or not linked.hits:
                continue
            strongest = linked.hits[0].strength
            found.append((row, ScoredMemory(entry, similarity * strongest, _POTENTIAL)))
            for hit in linked.hits:
                reason = reasons.linked_reason(hit.kinds)
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
        self._check_license()
        check_record("weights", weights, SalienceWeights)
        check_record("options", options, SalienceOptions)
        if query is not None:
            bounded("query", text("query", query))
        repository = self.repository
        await repository.accesses.write()
        now = repository.now()
        located = await repository.locate(scope, entry_id)
        if located is None:
            raise not_found(entry_id, scope)
        row, entry = located
        relevance = None
        if query is not None and query.strip():
            repository.check_embedder()
            relevance = await run_blocking(
                lambda: repository.finder.similarity(row, query), repository
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
        self._check_license()
        check_record("options", options, SalienceOptions)
        boosts = (SalienceOptions() if options is None else options).boosts
        boost = boosts.get(ReinforcementReason.parse(reason).value, 0.0)
        entry = await self.repository.updater.raise_importance(scope, entry_id, boost)
        if entry is None:
            raise not_found(entry_id, scope)
        return entry

    async def record_use(self, scope: Scope, ids: Sequence[UUID]) -> None:
        """Count an access of used memories."""
        self._check_license()
        await self.repository.touch(scope, ids)

    def _relevant(self, query: str, options: RecallOptions, times: TimeRange) -> Recall:
        if not query.strip():
            raise InvalidArgumentError(
                "query must be a text that is not empty where mode is relevant; the other modes "
                "need none"
            )
        given = self.options
        weights = Weights(relevance=given.similarity_weight, salience=given.salience_weight)
        ranking = msgspec.structs.replace(SEMANTIC, weights=weights, salience=given.salience)
        search = search_of(options, *times.tests, ranking=ranking)
        relevant = msgspec.structs.replace(search, text=query, min_similarity=self._floor())
        return Recall(relevant, reasons.relevant_reason)

    async def _recalled(
        self, scope: Scope, recall: Recall, started: float, time_limit: TimeLimit
    ) -> MemoryRecallResult:
        salience = self.options.salience
        ranking = msgspec.structs.replace(recall.search.ranking, salience=salience)
        search = msgspec.structs.replace(
            recall.search,
            ranking=ranking,
            deadline=time_limit.deadline,
            takes_partial=time_limit.takes_partial,
        )
        if not search.uses_accesses:
            await self._write_accesses()
        found = await run_blocking(
            lambda: self.repository.find(scope, search),
            self.repository,
            announced=self.repository.finder.announced(scope, search),
        )
        now = self.repository.now()
        memories = tuple(
            ScoredMemory(entry, *recall.reason(self._explained(hit, entry, now)))
            for hit in found.hits
            for entry in (found.entries[hit.row],)
        )
        self._count(memories, [hit.row for hit in found.hits])
        hint = None if memories else await self.repository.user_hints.of("recall", scope)
        return _result(memories, _total(found), started, found, hint)

    def _explained(self, hit: RankedRow, entry: MemoryEntry, now: datetime) -> RankedRow:
        """Return a hit with its salience, which the index omits if its weight is 0."""
        if "salience" in hit.components:
            return hit
        salience = static_score_of(entry, now, self.options.salience)
        return hit._replace(components={**hit.components, "salience": salience})

    def _count(self, recalled: Sequence[ScoredMemory], rows: Sequence[int]) -> None:
        """Count accesses. They are written later, so a failing write fails no recall."""
        if not self.options.track_access:
            return
        interval = self.options.access_interval
        if interval:
            accessed = [scored.memory.last_accessed_at for scored in recalled]
            last = dict(zip(rows, accessed, strict=True))
            self.repository.accesses.record_spaced(last, interval)
        else:
            self.repository.accesses.record(rows)

    @property
    def _spaces_accesses(self) -> bool:
        """Whether an access counts only after an interval since the last one."""
        return self.options.track_access and bool(self.options.access_interval)

    async def _write_accesses(self) -> None:
        """Write accesses if the interval depends on them; searches by accesses do so themselves.

        Nothing is written to an unreachable server: that would wait for it.
        """
        if self._spaces_accesses and self.repository.finder.stale_since is None:
            with suppress(StoreError):  # then it is written later
                await self.repository.accesses.write()

    def _floor(self) -> float | None:
        """Return the minimum cosine; None for 0, which excludes nothing."""
        own = self.options.min_similarity
        floor = self.repository.similarity_floor(DOCUMENTED_SIMILARITY) if own is None else own
        return floor or None

    def _check_license(self) -> None:
        self.repository.limits.require(RECALLING)


def _result(
    memories: tuple[ScoredMemory, ...],
    total: int,
    started: float,
    found: SearchOutcome,
    hint: str | None = None,
) -> MemoryRecallResult:
    """Return memories as a result with the marks of what was found."""
    took = timedelta(milliseconds=milliseconds_since(started))
    return MemoryRecallResult(
        memories, total, took, found.partial, found.approximate, found.stale_since, hint
    )


def _total(found: SearchOutcome) -> int:
    return len(found.hits) if found.total is None else found.total


def _by_confidence(of_row: tuple[int, ScoredMemory]) -> tuple[float, float, UUID, str]:
    scored = of_row[1]
    memory = scored.memory
    return -scored.score, -memory.created_at.timestamp(), memory.id, memory.user_id or ""


def _check_depth(depth: object) -> None:
    if isinstance(depth, bool) or not isinstance(depth, int) or not 1 <= depth <= MAX_DEPTH:
        raise must_be("depth", f"an int from 1 to {MAX_DEPTH}", depth, show=quoted)
