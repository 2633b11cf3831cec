"""MemoryQuery, the request of the retrieval service, also from a text, and its results."""

from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypedDict, cast
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import ArgumentMismatchError, InvalidArgumentError
from mnemic.model import validation
from mnemic.model.entry import MemoryEntry
from mnemic.model.filter import (
    Expression,
    MemoryFilter,
    MemorySortOrder,
    copied_filter,
    parse_filter,
    parse_times,
)
from mnemic.model.hit import Hit, Passage
from mnemic.model.marks import SHOWN
from mnemic.model.ranking import (
    ON_QUERY_ERROR,
    SEARCH_TYPES,
    OnQueryError,
    Recency,
    SearchType,
    Weights,
)
from mnemic.model.time_zones import checked_time_zone, naive_times_in
from mnemic.records import Listing, NamedFields, Record, Redacted, with_checked
from mnemic.reporting.description import must_be, quoted
from mnemic.reporting.near_names import checks_arguments, unknown_name

_WEIGHTS = (
    "similarity_weight",
    "recency_weight",
    "importance_weight",
    "access_weight",
    "context_weight",
)

if TYPE_CHECKING:
    Filters: TypeAlias = MemoryFilter | Mapping[str, Any] | None
else:
    Filters = (
        Any  # msgspec decodes no union of a record and a dict; the constructor distinguishes them
    )


class MemoryQuery(Redacted, frozen=True, kw_only=True, dict=True, metaclass=NamedFields):
    """A structured query and its ranking. Every field is checked.

    The score is the weighted mean of the parts in play: without a query the similarity is left out,
    without a context the boost is.

    Attributes:
        query: The query; None or white space retrieves by the filters alone.
        filters: Conditions on memories; in the grammar of docs/tune/filters.md, or a
            `MemoryFilter`, whose offset is applied to the ranked result and whose limit is ignored.
            A dict is copied; times and ids in it are stored as text.
        limit: Maximum number of results, 1 to 1,000.
        min_relevance: Minimum score, 0 to 1. None is 0.5 for a semantic query if the embedder has
            no floor of its own and the user has fewer than 32 memories with vectors; otherwise the
            embedder's floor decides, or the one that is learned from the memories. Without a query
            there is no floor.
        similarity_weight: Weight of the match with the query.
        recency_weight: Weight of recency.
        importance_weight: Weight of importance.
        access_weight: Weight of the number of accesses.
        expand_query: Whether to search for related terms too.
        use_cache: Whether the result may come from the cache, and be stored there.
        cache_ttl: Maximum age of a cached result, by the memory's clock; a number is seconds.
        context_boost: Recent conversation or task; memories similar to it get a higher score.
        context_weight: Weight of that similarity, if there is a context.
        exclude_ids: Ids of memories to exclude.
        search_type: Parts of the match: "semantic" (the documented one), "hybrid" or "keyword".
        sort_by: Order without a query, in place of the ranking; that of a `MemoryFilter` is used as
            well.
        recency: Curve of age: linear over a year unless given.
        on_embed_error: "keywords" answers a hybrid query by keywords if the embedder fails, and
            marks the result as `degraded`; "raise" raises. A semantic query always raises.
        with_total: Whether to count all matches; otherwise `total_matches` is the number of
            results, marked as a lower bound, which is faster.
        time_zone: Name of the zone of days that the query names and of times in the filter that
            name none; None is the memory's.

    Raises:
        InvalidArgumentError: If a field is out of range, if all weights in play are 0, or if there
            is neither a query nor a filter.
        FilterError: If the filter is invalid.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"query", "context_boost", "filters"})

    query: str | None = None
    filters: Filters = None
    limit: int = 10
    min_relevance: float | None = None
    similarity_weight: float = 0.6
    recency_weight: float = 0.2
    importance_weight: float = 0.15
    access_weight: float = 0.05
    expand_query: bool = False
    use_cache: bool = True
    cache_ttl: timedelta = timedelta(minutes=5)
    context_boost: str | None = None
    context_weight: float = 0.1
    exclude_ids: tuple[UUID, ...] = ()
    search_type: SearchType = "semantic"
    sort_by: MemorySortOrder | None = None
    recency: Recency = Recency()
    with_total: bool = True
    on_embed_error: OnQueryError = "keywords"
    time_zone: str | None = None

    def __post_init__(self) -> None:
        """Check every field and convert it to its final form."""
        for name in ("query", "context_boost"):
            force_setattr(self, name, _optional_text(name, getattr(self, name)))
        if self.query is None and self.filters is None:
            raise InvalidArgumentError("Query must have either Query or Filters")
        force_setattr(self, "filters", copied_filter(self.filters))
        validation.limit("limit", self.limit)
        if self.min_relevance is not None:
            validation.fraction("min_relevance", self.min_relevance)
        for name in _WEIGHTS:
            validation.fraction(name, getattr(self, name))
        for name in ("expand_query", "use_cache", "with_total"):
            validation.flag(name, getattr(self, name))
        force_setattr(self, "cache_ttl", _duration("cache_ttl", self.cache_ttl))
        force_setattr(self, "exclude_ids", _ids("exclude_ids", self.exclude_ids))
        self._check_choices()
        force_setattr(self, "time_zone", checked_time_zone(self.time_zone))
        if not any(getattr(self, name) for name in self._weights_in_play()):
            raise InvalidArgumentError(
                "the weights of the terms in play add up to 0; at least one must be above it"
            )

    @classmethod
    @checks_arguments
    def semantic(cls, query: str, limit: int = 10) -> Self:
        """Return a query by meaning.

        Args:
            query: The text.
            limit: Maximum number of results.
        """
        return cls(query=query, limit=limit)

    @classmethod
    @checks_arguments
    def filtered(
        cls,
        filter: MemoryFilter | Mapping[str, Any],  # noqa: A002 - the document's name
        limit: int = 100,
    ) -> Self:
        """Return a query by filters alone.

        Args:
            filter: Only memories that match; docs/tune/filters.md has the grammar.
            limit: Maximum number of results.
        """
        return cls(filters=filter, limit=limit)

    @cached_property
    def expression(self) -> Expression:
        """The parsed filter, computed once."""
        with naive_times_in(self.time_zone):
            return parse_filter(self.filters)

    def in_time_zone(self, name: str) -> Self:
        """Return this query with a zone, unless it has one.

        Args:
            name: Name of the zone, which is checked.
        """
        return self if self.time_zone else with_checked(self, "time_zone", name)

    @property
    def offset(self) -> int:
        """Number of best results to skip, from the filter."""
        return self.filters.offset if isinstance(self.filters, MemoryFilter) else 0

    @property
    def includes_forgotten(self) -> bool:
        """Whether the filter includes deleted memories."""
        return isinstance(self.filters, MemoryFilter) and self.filters.include_forgotten

    @property
    def order(self) -> MemorySortOrder | None:
        """The given order in place of the ranking, if there is no query."""
        if self.query is not None:
            return None
        if self.sort_by is None and isinstance(self.filters, MemoryFilter):
            return self.filters.sort_by
        return self.sort_by

    def _weights_in_play(self) -> tuple[str, ...]:
        similarity, *others, context = _WEIGHTS
        return (
            *((similarity,) if self.query is not None else ()),
            *others,
            *((context,) if self.context_boost is not None else ()),
        )

    def _check_choices(self) -> None:
        validation.word("search_type", self.search_type, SEARCH_TYPES)
        validation.word("on_embed_error", self.on_embed_error, ON_QUERY_ERROR)
        if self.sort_by is not None and not isinstance(self.sort_by, MemorySortOrder):
            raise must_be("sort_by", "a MemorySortOrder", self.sort_by, show=quoted)
        validation.of_kind("recency", Recency, "a mnemic.model.Recency", self.recency)


class RelevanceScores(Record, frozen=True, kw_only=True):
    """Parts of a score, each from 0 to 1; None for a part without a weight.

    The score is the mean of relevance, recency, importance, access_frequency and context_boost by
    the weights of the query, of those that are not None.

    Attributes:
        similarity: Cosine with the query; given for every semantic and hybrid query, whatever its
            weight.
        relevance: What `similarity_weight` weighs: the similarity in a semantic query, on the scale
            of the memories if the embedder has no floors; else the match of similarity, words and
            session, divided by the best one of the scope.
        recency: Recency.
        importance: Importance.
        access_frequency: Frequency of accesses.
        context_boost: Cosine with the context.
        keyword: Match of the words, in hybrid and keyword searches.
    """

    similarity: float | None = None
    relevance: float | None = None
    recency: float | None = None
    importance: float | None = None
    access_frequency: float | None = None
    context_boost: float | None = None
    keyword: float | None = None


class RankedMemory(Hit, frozen=True, kw_only=True):
    """A memory of a retrieval result.

    Attributes:
        entry: The memory, without its embedding.
        score: From 0 to 1.
        rank: From 1; higher at the beginning if there is an offset.
        scores: Parts of the score.
        passage: The sentences of a long memory that the query is about, as those of a `SearchHit`.
    """

    rank: int
    scores: RelevanceScores
    passage: Passage | None = None

    @property
    def relevance_score(self) -> float:
        """The score, under its documented name."""
        return self.score


class MemoryRetrievalResult(Listing[RankedMemory], frozen=True, kw_only=True):
    """The result of a `MemoryQuery`. Iterating gives its results.

    Attributes:
        results: Best first. Ties: newest first, then smallest id.
        total_matches: Number of memories that pass the filters and the floors, regardless of the
            limit.
        original_query: The given query; "" without a query.
        expanded_query: The query with added terms; None if none were added.
        from_cache: Whether the result comes from the cache.
        retrieval_time: Duration of this call.
        total_is_lower_bound: Whether there may be more matches than `total_matches`.
        expansion_failed: Whether an expansion was requested and the expander failed; the original
            query was answered then.
        degraded: Whether the embedder failed, so that a hybrid query was answered by keywords.
        degraded_reason: Why the embedder failed, without a word of a memory; else None.
        partial: Whether the timeout passed, so that better results may be missing.
        approximate: Whether an approximate index chose the memories that were ranked: better ones
            may be missing.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
        hint: A sentence about the cause of an empty result, if one is likely; else None.
        by_another: Whether the query names one speaker, and the best memory is by another.
    """

    _items_field: ClassVar[str] = "results"
    _entry_fields: ClassVar[tuple[str, ...]] = MemoryEntry.__struct_fields__
    _hit_fields: ClassVar[tuple[str, ...]] = ("score", "rank")
    _total_field: ClassVar[str] = "total_matches"
    _marks: ClassVar[tuple[str, ...]] = ("from_cache", "expansion_failed", *SHOWN)

    results: tuple[RankedMemory, ...]
    total_matches: int
    original_query: str
    expanded_query: str | None = None
    from_cache: bool
    retrieval_time: timedelta
    total_is_lower_bound: bool = False
    expansion_failed: bool = False
    degraded: bool = False
    degraded_reason: str | None = None
    partial: bool = False
    approximate: bool = False
    stale_since: datetime | None = None
    hint: str | None = None
    by_another: bool = False


class ExpandedQuery(Record, frozen=True, kw_only=True):
    """A query and the terms added to it.

    Attributes:
        original: The given query.
        expanded: With the added terms; the original if none were added.
        added_terms: Added terms, highest weight first.
        confidence: Probability that the terms belong to the query, from 0 to 1.
        failed: Whether the expander failed; no terms were added then.

    Raises:
        InvalidArgumentError: If a text is invalid, or the confidence is not from 0 to 1.
    """

    original: str
    expanded: str
    added_terms: tuple[str, ...]
    confidence: float
    failed: bool = False

    def __post_init__(self) -> None:
        """Check every field and convert it to its final form."""
        for name in ("original", "expanded"):
            validation.text(name, getattr(self, name))
        terms = validation.items("added_terms", self.added_terms)
        force_setattr(self, "added_terms", tuple(validation.text("a term", term) for term in terms))
        force_setattr(self, "confidence", validation.fraction("confidence", self.confidence))
        validation.flag("failed", self.failed)


class Suggestions(list[str]):
    """Suggested queries for a conversation, most promising first.

    Attributes:
        failed: Whether the suggester failed; there are no suggestions then.
    """

    failed: bool

    def __init__(self, queries: Iterable[str] = (), *, failed: bool = False) -> None:
        super().__init__(queries)
        self.failed = failed

    def to_dict(self) -> dict[str, Any]:
        """Return queries and `failed`."""
        return {"queries": list(self), "failed": self.failed}


class RetrievalStats(Record, frozen=True, kw_only=True):
    """Statistics of a retrieval service since its construction.

    Attributes:
        total_retrievals: Queries answered, from the cache or not.
        cache_hit_rate: Percent of cache lookups that hit.
        average_retrieval_time_ms: Mean over all retrievals.
        p95_retrieval_time_ms: 95th percentile of the last 10,000.
        average_results_per_query: Mean number of returned memories.
        expansion_usage_rate: Percent of queries whose expansion was used.
        context_augmentations: Number of times that memories were added to a context window.
    """

    total_retrievals: int = 0
    cache_hit_rate: float = 0.0
    average_retrieval_time_ms: float = 0.0
    p95_retrieval_time_ms: float = 0.0
    average_results_per_query: float = 0.0
    expansion_usage_rate: float = 0.0
    context_augmentations: int = 0


def _optional_text(name: str, given: object) -> str | None:
    if given is None:
        return None
    text = validation.of_kind(name, str, "a text or None", given)
    validation.bounded(name, text)
    return text if text.strip() else None


def _duration(name: str, given: object) -> timedelta:
    if validation.is_number(given):
        try:
            given = timedelta(seconds=float(given))
        except (OverflowError, ValueError):
            given = None
    if not isinstance(given, timedelta) or given <= timedelta():
        raise must_be(name, "a timedelta or seconds above 0", given)
    return given


def _ids(name: str, given: object) -> tuple[UUID, ...]:
    values = () if given is None else validation.items(name, given)
    return tuple(validation.uuid(f"{name}[{at}]", value) for at, value in enumerate(values))


class RetrieveFields(TypedDict, total=False):
    """The fields of a query that a text is retrieved with.

    Attributes:
        limit: Maximum number of results, 1 to 1,000; 10 unless given.
        filters: Only memories that match, in the grammar of docs/tune/filters.md, or a
            `MemoryFilter`.
        since: Only memories created then or later; a text is read as ISO 8601.
        until: Only memories created before.
        search_type: "hybrid", "semantic" or "keyword".
        weights: Weights of relevance, recency, importance, access and context, by name; the others
            are 0. By default .6, .2, .15, .05, and .1 for a context.
        expand: Whether to search for related terms too.
        context: Recent conversation or task; memories similar to it get a higher score.
        exclude_ids: Ids of memories to exclude.
        min_score: Minimum score, 0 to 1.
        recency: Curve of age.
        total: Whether to count all matches.
        with_total: The same, under its documented name; one of both can be given.
        use_cache: Whether the answer may come from the cache, and be stored there.
        cache_ttl: Maximum age of a cached answer.
        on_embed_error: "keywords" answers by keywords if the query cannot be embedded; "raise".
        time_zone: Name of the zone of the days that the text names; the memory's unless given.
    """

    limit: int
    filters: MemoryFilter | Mapping[str, Any] | None
    since: date | str | None
    until: date | str | None
    search_type: SearchType
    weights: Weights | Mapping[str, float] | None
    expand: bool
    context: str | None
    exclude_ids: Collection[UUID | str]
    min_score: float | None
    recency: Recency
    total: bool
    with_total: bool
    use_cache: bool
    cache_ttl: timedelta | float
    on_embed_error: OnQueryError
    time_zone: str | None


_FIELDS = tuple(RetrieveFields.__annotations__)
_RENAMED = {
    "expand": "expand_query",
    "context": "context_boost",
    "min_score": "min_relevance",
    "total": "with_total",
}
_SHARES = {
    "relevance": "similarity_weight",
    "recency": "recency_weight",
    "importance": "importance_weight",
    "access": "access_weight",
    "context": "context_weight",
}


def query_of(
    query: object, fields: RetrieveFields, *, by_words: bool, time_zone: str
) -> MemoryQuery:
    """Return the query that a caller gave as a text with fields, or as a `MemoryQuery`.

    Args:
        query: A text or a `MemoryQuery`.
        fields: Fields of the query; only with a text.
        by_words: Whether the text is searched by keywords alone, for want of an embedder.
        time_zone: Name of its time zone, unless it has one.

    Raises:
        InvalidArgumentError: If the query is neither, or a field is unknown or out of range, or
            given beside a `MemoryQuery`.
        FilterError: If the filter or a time is invalid.
    """
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        raise ArgumentMismatchError(unknown_name("option", unknown[0], _FIELDS))
    if isinstance(query, MemoryQuery):
        if fields:
            raise InvalidArgumentError(
                f"{next(iter(fields))} goes with a text; a MemoryQuery has fields of its own: "
                "give it there"
            )
        return query.in_time_zone(time_zone)
    validation.of_kind("query", str, "a text or a MemoryQuery", query)
    text = _query_of_text(validation.query(query), fields, by_words=by_words)
    return text.in_time_zone(time_zone)


def _query_of_text(text: str, fields: RetrieveFields, *, by_words: bool) -> MemoryQuery:
    given: dict[str, Any] = {"search_type": "keyword" if by_words else "hybrid", **fields}
    times = {name: given.pop(name, None) for name in ("since", "until")}
    weights = given.pop("weights", None)
    if weights is not None:
        given |= _weights(weights)
    if "total" in given and "with_total" in given:
        raise InvalidArgumentError("total and with_total are the same option; give one of them")
    filters = _filters(given.pop("filters", None), times["since"], times["until"])
    named = {_RENAMED.get(name, name): value for name, value in given.items()}
    return MemoryQuery(query=text, filters=filters, **named)


def _weights(given: object) -> dict[str, float]:
    weights = Weights.parse(given)
    if weights.salience:
        raise InvalidArgumentError(
            f"retrieve has no weight salience; there are {', '.join(_SHARES)}; recall ranks by it"
        )
    return {name: getattr(weights, weight) for weight, name in _SHARES.items()}


def _filters(filters: object, since: object, until: object) -> Any:
    """Return the filters together with the range of creation times."""
    parse_times(since, until)  # its errors name the argument
    tests = {op: time for op, time in (("gte", since), ("lt", until)) if time is not None}
    if not tests:
        return filters
    times = {"created_at": tests}
    if isinstance(filters, MemoryFilter):
        return msgspec.structs.replace(filters, filters=_both(filters.filters, times))
    return _both(cast("Mapping[str, Any] | None", filters), times)


def _both(filters: Mapping[str, Any] | None, times: dict[str, Any]) -> dict[str, Any]:
    return times if filters is None else {"AND": [filters, times]}
