"""The steps of a retrieval: cache lookup, expansion, ranking, telemetry."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, ClassVar, NamedTuple
from uuid import UUID

import msgspec

from mnemic.arrays import np
from mnemic.context import ContextWindow
from mnemic.errors import (
    DeadlineExceededError,
    ExpanderError,
    StoreError,
)
from mnemic.index import RankedRow
from mnemic.licensing import RETRIEVING_BY_MEANING, Need
from mnemic.model import (
    HYBRID,
    KEYWORD,
    SEMANTIC,
    ExpandedQuery,
    Expression,
    MemoryEntry,
    MemoryFilter,
    MemoryQuery,
    MemoryRetrievalResult,
    MemorySearchResult,
    MemorySortOrder,
    RankedMemory,
    Ranking,
    RelevanceScores,
    RetrievalStats,
    Salience,
    Scope,
    Suggestions,
    Weights,
    validation,
)
from mnemic.model.deadline import NO_LIMIT, TimeLimit, check_deadline
from mnemic.model.filter import IS_NOT_SENSITIVE, All, Field, Not, Op, Test
from mnemic.model.hit import Passage
from mnemic.model.marks import Marks
from mnemic.model.ranking import BY_SEARCH_TYPE, DOCUMENTED_SIMILARITY, Order
from mnemic.model.rows import State
from mnemic.model.search import DefaultFloors, Search
from mnemic.observability import table
from mnemic.observability.telemetry import milliseconds_since
from mnemic.repository import Repository, SearchOutcome, Service, ServiceTelemetry
from mnemic.retrieval.augmentation import augment, window_contents
from mnemic.retrieval.cache import (
    CACHED_ANSWERS,
    CACHED_BYTES,
    CachedAnswer,
    CachedHit,
    Key,
    answer_cache,
    depends_on_accesses,
    key_of,
)
from mnemic.retrieval.expansion import (
    MIN_CONFIDENCE,
    Expander,
    Related,
    Suggester,
    answer_of,
    with_terms,
)
from mnemic.store import LogPosition
from mnemic.threads.sync_bridge import run_blocking

DOCUMENTED_RELEVANCE = 0.5
"""Minimum score of a semantic query, where neither the embedder nor the memories have a scale."""

FEEDBACK_MEMORIES = 5
MAX_RELATED = 16
HALF_SUPPORT = 0.05
"""Number of feedback memories, maximum number of related words, and the best memory's score at
which the confidence is one half; see docs/reference/retrieval.md."""

EXPANSION_BLEND = 0.1
"""Share of an expansion in a hybrid query's vector; measured, see docs/reference/retrieval.md."""


class CacheLookup(NamedTuple):
    """A result with its memories.

    Attributes:
        answer: The part that may be cached.
        entries: Memories by row.
        from_cache: Whether nothing had to be ranked for it.
    """

    answer: CachedAnswer
    entries: Mapping[int, MemoryEntry]
    from_cache: bool


class RetrievalEngine(Service):
    """Answers `MemoryQuery`s over one agent's memories.

    Args:
        repository: The agent's memories.
        expander: Adds related terms to queries.
        log_queries: Whether logs and events show queries, if the memory permits it.
        similarity_floor: Minimum cosine of a semantic result; None is the embedder's own floor, or
            the one that is learned from the memories.
        min_confidence: Expansions with a lower confidence are not used.
        cache_size: Maximum number of cached results of one user.
        cache_bytes: Maximum bytes of all cached results.
        track_access: Whether returned memories count as accessed, if the memory tracks accesses.
    """

    _by_meaning: ClassVar[tuple[Need, ...]] = (RETRIEVING_BY_MEANING,)

    def __init__(
        self,
        repository: Repository,
        *,
        expander: Expander,
        log_queries: bool,
        similarity_floor: float | None = None,
        min_confidence: float = MIN_CONFIDENCE,
        cache_size: int = CACHED_ANSWERS,
        cache_bytes: int = CACHED_BYTES,
        track_access: bool = True,
    ) -> None:
        super().__init__(repository, track_access=validation.flag("track_access", track_access))
        self._expander = expander
        self._similarity_floor = (
            None
            if similarity_floor is None
            else validation.fraction("similarity_floor", similarity_floor)
        )
        self._min_confidence = validation.fraction("min_confidence", min_confidence)
        self._cache = answer_cache(
            validation.whole("cache_size", cache_size, minimum=1),
            validation.whole("cache_bytes", cache_bytes, minimum=0),
        )
        self._milliseconds = deque[float](maxlen=WINDOW_SIZE)
        self._telemetry = ServiceTelemetry(
            repository, logs_queries=validation.flag("log_queries", log_queries)
        )
        self._telemetry.record(table.READY)

    async def retrieve(
        self, scope: Scope, query: MemoryQuery, time_limit: TimeLimit = NO_LIMIT
    ) -> MemoryRetrievalResult:
        """Return the memories of a scope that match a query, best first."""
        validation.of_kind("query", MemoryQuery, "a MemoryQuery", query)
        query = query.in_time_zone(self.repository.shared.time_zone)
        compares_query = query.query is not None and query.search_type != "keyword"
        by_meaning = compares_query or query.context_boost is not None
        started = self.begin(by_meaning=by_meaning)
        if by_meaning:  # before the cache lookup
            self.repository.shared.models.check_embedder()
        given = await self._lookup(scope, query, time_limit)
        hits, marks = given.answer.hits, given.answer.marks
        entries = given.entries
        current = [hit.row for hit in hits if entries[hit.row].forgotten_at is None]
        self._count(entries, current)
        milliseconds = milliseconds_since(started)
        if not hits and not query.offset:
            marks = await self._hinted(marks, "retrieve", scope)
        chunks = {hit.row: hit.chunk for hit in hits}
        passages = await self.repository.searcher.passages(chunks, entries, query.query)
        result = _result(query, given, passages, marks, milliseconds)
        self._milliseconds.append(milliseconds)
        if not hits:
            self._telemetry.record(table.NO_RESULTS, query=result.original_query)
        await self._telemetry.emit(
            table.ANSWERED,
            query=result.original_query,
            result_count=len(hits),
            total_matches=result.total_matches,
            from_cache=result.from_cache,
            is_expanded=result.expanded_query is not None,
            latency_ms=milliseconds,
            retrieval_time=result.retrieval_time,
        )
        return result

    async def to_context(
        self,
        scope: Scope,
        query: MemoryQuery,
        window: ContextWindow,
        *,
        include_sensitive: bool = False,
        time_limit: TimeLimit = NO_LIMIT,
    ) -> int:
        """Add the results to a context window as far as they fit; return the number of items."""
        validation.of_kind("window", ContextWindow, "a mnemic.compat.ContextWindow", window)
        validation.flag("include_sensitive", include_sensitive)
        if not include_sensitive and isinstance(query, MemoryQuery):
            query = _without_sensitive(query)
        result = await self.retrieve(scope, query, time_limit)
        items, tokens = await run_blocking(
            lambda: augment(window, result.results, window_contents(scope, window)),
            self.repository,
        )
        await self._telemetry.emit(
            table.AUGMENTED, query=query.query, items_added=items, tokens_added=tokens
        )
        return items

    async def expand(
        self, scope: Scope, query: str, time_limit: TimeLimit = NO_LIMIT
    ) -> ExpandedQuery:
        """Return a query with related terms."""
        self.begin(by_meaning=self.repository.embedder is not None)
        expansion = await self._expanded(scope, query, time_limit)
        if expansion.failed:
            return expansion
        is_used = bool(expansion.added_terms) and expansion.confidence >= self._min_confidence
        await self._telemetry.emit(
            table.EXPANDED if is_used else table.NOT_EXPANDED,
            original_query=expansion.original,
            expanded_query=expansion.expanded,
            terms_added=len(expansion.added_terms),
            confidence=expansion.confidence,
        )
        if is_used:
            return expansion
        return msgspec.structs.replace(expansion, expanded=query, added_terms=())

    async def _expanded(self, scope: Scope, query: str, time_limit: TimeLimit) -> ExpandedQuery:
        """Return the expander's result; the query alone if it fails."""

        async def find_related(text: str) -> Related:
            return await run_blocking(
                lambda: self._related(scope, text, time_limit), self.repository
            )

        try:
            answer = await answer_of(self._expander.expand, query, callback=find_related)
            return validation.of_kind("an expansion", ExpandedQuery, "an ExpandedQuery", answer)
        except (StoreError, ExpanderError):  # later reads would fail too, and so would later calls
            raise
        except Exception as error:  # noqa: BLE001 - it may be anybody's code, or a network's fault
            if isinstance(error, DeadlineExceededError):  # that of an expander may be its own
                check_deadline(time_limit.deadline)
            # Its text may contain the query.
            self._telemetry.record(table.EXPANSION_FAILED, error=type(error).__name__)
            return msgspec.structs.replace(with_terms(query, (), 0.0), failed=True)

    async def similar(
        self, scope: Scope, entry_id: UUID, limit: int, exclude: tuple[UUID, ...]
    ) -> list[MemorySearchResult] | None:
        """Return the memories most similar to one of a scope; None if the scope has none such."""
        repository = self.repository
        self.begin(by_meaning=True)
        repository.shared.models.check_embedder()
        validation.limit("limit", limit)
        search = Search(text=None, limit=limit, ranking=SEMANTIC, exclude=exclude)
        like = repository.searcher.like(scope, entry_id, search)
        if like is None:
            return None
        found = await self._found(scope, like.search)
        self._count(found.entries, [hit.row for hit in found.hits])
        return [
            MemorySearchResult(entry, hit.shown_score, rank)
            for rank, (hit, entry) in enumerate(found.memories, start=1)
        ]

    async def suggest(
        self, suggester: Suggester, scope: Scope, context: str, limit: int
    ) -> Suggestions:
        """Return queries that fit a conversation, from the user's memories.

        The list is empty if the suggester fails.
        """
        self.begin()
        validation.limit("limit", limit)
        validation.of_kind("conversation_context", str, "a text", context)
        recent = validation.text("conversation_context", context)[-validation.MAX_QUERY_LENGTH :]
        if not recent.strip():
            return Suggestions()

        async def find_phrases(text: str, limit: int) -> Sequence[tuple[str, float]]:
            return await run_blocking(
                lambda: self.repository.finder.key_phrases(scope, text, limit), self.repository
            )

        try:
            answer = await answer_of(suggester.suggest, recent, limit, callback=find_phrases)
            suggested = validation.items("suggestions", answer)
            return Suggestions(validation.text("a suggestion", each) for each in suggested[:limit])
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._telemetry.record(table.SUGGESTION_FAILED, error=type(error).__name__)
            return Suggestions(failed=True)

    def stats(self) -> RetrievalStats:
        """Return the statistics so far."""
        return statistics_of(self._telemetry.sums.read(), self._milliseconds.copy())

    def _related(self, scope: Scope, text: str, time_limit: TimeLimit) -> Related:
        """Return the words of the best matching memories: pseudo-relevance feedback.

        Sensitive memories are excluded: the words appear in logs, events and results.
        """
        chosen = KEYWORD if self.repository.embedder is None else HYBRID
        search = Search(
            text=text,
            limit=FEEDBACK_MEMORIES,
            ranking=chosen,
            filters=IS_NOT_SENSITIVE,
            falls_back=True,
            deadline=time_limit.deadline,
        )
        found = self._find(scope, search, is_returned=False)
        texts = [
            (entry.content[: validation.MAX_QUERY_LENGTH], 1 / rank)
            for rank, (_, entry) in enumerate(found.memories, start=1)
        ]
        index = self.repository.shared.indexes.active.index
        terms = index.core.related(text, texts, scope, MAX_RELATED)
        best = found.hits[0].score if found.hits else 0.0
        return Related(terms, best / (best + HALF_SUPPORT) if best > 0 else 0.0)

    async def _lookup(self, scope: Scope, query: MemoryQuery, time_limit: TimeLimit) -> CacheLookup:
        expression = query.expression
        if not query.use_cache or depends_on_accesses(query, expression):
            return await self._compute(scope, query, time_limit)
        stands = self.repository.freshness.position_and_revision(scope, time_limit.deadline)
        if stands is None:  # it is unknown whether a cached result is outdated
            return await self._compute(scope, query, time_limit)
        position, revision = stands
        key = key_of(scope, query, expression, revision)
        answer, given = self._cache.get(key), None
        if answer is not None and answer.is_valid(self.repository.now(), query.cache_ttl):
            given = self._from_cache(scope, key, answer, position)
        if given is None and time_limit.deadline is not None:
            given = await self._compute(scope, query, time_limit)
            self._cache.put(key, given.answer, revision)
        elif given is None:
            given = await self._compute_once(scope, query, key, position)
        self._telemetry.record(table.CACHE_HIT if given.from_cache else table.CACHE_MISS)
        return given

    async def _compute_once(
        self, scope: Scope, query: MemoryQuery, key: Key, position: LogPosition
    ) -> CacheLookup:
        """Compute a result, or wait for a concurrent identical query."""
        made: list[CacheLookup] = []

        async def make() -> CachedAnswer:
            made.append(await self._compute(scope, query, NO_LIMIT))
            return made[0].answer

        now = self.repository.now()
        answer = await self._cache.get_or_compute(
            key,
            make,
            is_valid=lambda kept: kept.is_valid(now, query.cache_ttl),
            revision=key.revision,
        )
        if made:
            return made[0]
        # Its memories are read as those of a kept one.
        given = self._from_cache(scope, key, answer, position)
        return given or await self._compute(scope, query, NO_LIMIT)

    def _from_cache(
        self, scope: Scope, key: Key, answer: CachedAnswer, position: LogPosition
    ) -> CacheLookup | None:
        """Return a cached result with its memories; None if one of them no longer exists."""
        now = self.repository.now()
        rows = [hit.row for hit in answer.hits]
        entries = self.repository.shared.cache.get_rows(scope, rows, now, position)
        if len(entries) < len(rows):
            self._cache.drop([key])
            return None
        self.repository.finder.note_returned(entries)
        return CacheLookup(answer, entries, from_cache=True)

    async def _compute(
        self, scope: Scope, query: MemoryQuery, time_limit: TimeLimit
    ) -> CacheLookup:
        also: tuple[str, ...] = ()
        expanded, expansion_failed = None, False
        if query.expand_query and query.query is not None:
            try:
                expansion = await self.expand(scope, query.query, time_limit)
            except DeadlineExceededError:
                if not time_limit.takes_partial:
                    raise
            else:
                expansion_failed = expansion.failed
                if expansion.added_terms:
                    also, expanded = (expansion.expanded,), expansion.expanded
        started = self.repository.now()
        search = _search(query, self._similarity_floor, also, time_limit)
        rank = partial(self._ranked, query, time_limit)
        found = await self._found(scope, search, rank)
        expires_at = None
        if query.use_cache:
            # Only now the index contains all the memories of the result.
            expires_at = self.repository.freshness.next_expiry(scope, started, _states(query))
        answer = CachedAnswer(
            hits=tuple(_hit(hit) for hit in found.hits),
            total=found.matches,
            expanded=expanded,
            computed_at=started,
            lifetime=query.cache_ttl,
            expires_at=expires_at,
            expansion_failed=expansion_failed,
            marks=found.marks,
        )
        return CacheLookup(answer, found.entries, from_cache=False)

    def _ranked(
        self, query: MemoryQuery, time_limit: TimeLimit, scope: Scope, search: Search
    ) -> SearchOutcome:
        if query.order is MemorySortOrder.ACCESSED_DESCENDING:
            found = self._by_access(scope, search)
        else:
            found = self._find(scope, search)
        if query.order is not None and found.hits:
            found = self._scored(scope, query, found, time_limit)
        return found._replace(hits=found.hits[query.offset :])

    def _by_access(self, scope: Scope, search: Search) -> SearchOutcome:
        """Return memories by their last access; those without one come last, newest first."""
        replace = msgspec.structs.replace
        accessed = replace(search, filters=_and(search.filters, _WAS_ACCESSED))
        never = _and(search.filters, Not(_WAS_ACCESSED))
        others = replace(search, filters=never, order=Order.NEWEST)
        # In this order, a memory accessed between the two rankings is in both, not in neither.
        last, first = (self._find(scope, each) for each in (others, accessed))
        both = first.joined(last)
        twice = len(first.hits) + len(last.hits) - len(both.hits)
        total = (first.total or 0) + (last.total or 0) - twice if search.with_total else None
        return both._replace(hits=both.hits[: search.limit], total=total)

    def _scored(
        self, scope: Scope, query: MemoryQuery, found: SearchOutcome, time_limit: TimeLimit
    ) -> SearchOutcome:
        """Return the memories of a given order with their scores; those that get one in time."""
        ordered = found.hits
        ids = tuple(UUID(bytes=hit.id) for hit in ordered)
        among = Test(Field("id"), Op.IN, ids)
        search = msgspec.structs.replace(
            _search(query, None, time_limit=time_limit),
            order=None,
            with_total=False,
            filters=All((query.expression, among)),
        )
        while True:
            ranked = self._find(scope, search)
            scored = {hit.row: hit for hit in ranked.hits}
            has_all = all(hit.row in scored for hit in ordered)
            if has_all or ranked.marks.partial or len(ranked.hits) < search.limit:
                hits = [scored[hit.row] for hit in ordered if hit.row in scored]
                return found._replace(hits=hits, marks=found.marks.united(ranked.marks))
            # Other users' memories of the same ids took some places.
            search = msgspec.structs.replace(search, limit=2 * search.limit)


def _search(
    query: MemoryQuery,
    min_similarity: float | None,
    also: tuple[str, ...] = (),
    time_limit: TimeLimit = NO_LIMIT,
) -> Search:
    is_semantic = query.query is not None and query.search_type == "semantic"
    return Search(
        text=query.query,
        also=also,
        blend=None if query.search_type == "semantic" else EXPANSION_BLEND,
        context=query.context_boost,
        limit=query.limit + query.offset,
        ranking=_ranking(query),
        filters=query.expression,
        exclude=query.exclude_ids,
        # 0 excludes nothing.
        min_similarity=(min_similarity or None) if is_semantic else None,
        uses_similarity_floor=is_semantic and min_similarity is None,
        min_score=query.min_relevance,
        default_floors=DefaultFloors(DOCUMENTED_SIMILARITY, DOCUMENTED_RELEVANCE)
        if is_semantic
        else DefaultFloors(),
        with_total=query.with_total,
        order=None if query.order is None else _ORDERS[query.order],
        # Matches of words are small beside times and importance: few memories have all the words
        # of a query.
        is_relative=query.query is not None and query.search_type != "semantic",
        states=_states(query),
        explain=True,
        falls_back=query.on_embed_error == "keywords",
        time_zone=query.time_zone,
        **time_limit._asdict(),
    )


def _without_sensitive(query: MemoryQuery) -> MemoryQuery:
    """Exclude sensitive memories by filter, so that they do not count in the limit."""
    given = query.filters
    if isinstance(given, MemoryFilter):
        filters = msgspec.structs.replace(given, filters=_not_sensitive(given.filters))
        return msgspec.structs.replace(query, filters=filters)
    return msgspec.structs.replace(query, filters=_not_sensitive(given))


def _not_sensitive(expression: Mapping[str, Any] | None) -> dict[str, Any]:
    if expression is not None and "sensitive" in expression:
        return {"AND": [expression, {"sensitive": False}]}
    return {**(expression or {}), "sensitive": False}


_ORDERS = {
    MemorySortOrder.CREATED_DESCENDING: Order.NEWEST,
    MemorySortOrder.CREATED_ASCENDING: Order.OLDEST,
    MemorySortOrder.IMPORTANCE_DESCENDING: Order.IMPORTANCE,
    MemorySortOrder.ACCESSED_DESCENDING: Order.ACCESSED,
    MemorySortOrder.ACCESS_COUNT_DESCENDING: Order.ACCESS_COUNT,
}


def _states(query: MemoryQuery) -> tuple[State, ...]:
    return (State.ACTIVE, State.DELETED) if query.includes_forgotten else (State.ACTIVE,)


def _ranking(query: MemoryQuery) -> Ranking:
    weights = Weights(
        relevance=0.0 if query.query is None else query.similarity_weight,
        recency=query.recency_weight,
        importance=query.importance_weight,
        access=query.access_weight,
        context=0.0 if query.context_boost is None else query.context_weight,
    )
    chosen = BY_SEARCH_TYPE[query.search_type]
    # In an order that was asked for, ties go to the newer memory, not to the more salient.
    return msgspec.structs.replace(
        chosen, weights=weights, recency=query.recency, salience=_NO_SALIENCE
    )


def _and(expression: Expression | None, also: Expression) -> Expression:
    return also if expression is None else All((expression, also))


_WAS_ACCESSED = Test(Field("last_accessed_at"), Op.EXISTS, value=True)
_NO_SALIENCE = Salience(recency=0.0, frequency=0.0, importance=0.0)


def _result(
    query: MemoryQuery,
    given: CacheLookup,
    passages: Mapping[int, Passage],
    marks: Marks,
    milliseconds: float,
) -> MemoryRetrievalResult:
    answer, entries = given.answer, given.entries
    return MemoryRetrievalResult(
        results=tuple(
            RankedMemory(
                entry=entries[hit.row],
                score=hit.score,
                rank=rank,
                scores=hit.scores,
                passage=passages.get(hit.row),
            )
            for rank, hit in enumerate(answer.hits, start=1 + query.offset)
        ),
        total_matches=answer.total,
        total_is_lower_bound=marks.partial or not query.with_total,
        original_query=query.query or "",
        expanded_query=answer.expanded,
        expansion_failed=answer.expansion_failed,
        from_cache=given.from_cache,
        retrieval_time=timedelta(milliseconds=milliseconds),
        **marks.of(MemoryRetrievalResult),
    )


def _hit(ranked: RankedRow) -> CachedHit:
    part = ranked.components.get
    scores = RelevanceScores(
        similarity=part("similarity"),
        relevance=part("relevance"),
        recency=part("recency"),
        importance=part("importance"),
        access_frequency=part("access"),
        context_boost=part("context"),
        keyword=part("keyword"),
    )
    return CachedHit(ranked.row, ranked.shown_score, scores, ranked.chunk)


WINDOW_SIZE = 10_000
"""Number of last retrievals whose durations are kept."""


def statistics_of(sums: Counter[str], milliseconds: deque[float]) -> RetrievalStats:
    """Return the statistics of what was added up, and of the last durations."""
    each = max(1, sums["retrievals"])
    return RetrievalStats(
        total_retrievals=sums["retrievals"],
        cache_hit_rate=100 * sums["hits"] / max(1, sums["lookups"]),
        average_retrieval_time_ms=sums["latency_ms"] / each,
        p95_retrieval_time_ms=float(np.quantile(milliseconds, 0.95)) if milliseconds else 0.0,
        average_results_per_query=sums["result_count"] / each,
        expansion_usage_rate=100 * sums["is_expanded"] / each,
        context_augmentations=sums["augmentations"],
    )
