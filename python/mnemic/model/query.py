"""MemoryQuery, what the retrieval service is asked, and what it answers (document 000)."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.description import described, quoted
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.entry import MemoryEntry
from mnemic.model.filter import (
    Expression,
    MemoryFilter,
    MemorySortOrder,
    copied_filter,
    parse_filter,
)
from mnemic.model.ranking import SEARCH_TYPES, OnQueryError, Recency, SearchType, falls_back
from mnemic.model.redacted import Redacted

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
        Any  # msgspec decodes no union of a record and a dict; the constructor tells them apart
    )


class MemoryQuery(Redacted, frozen=True, kw_only=True, dict=True):
    """What to retrieve, and by what to rank it (R148 to R163). Every field is checked.

    The score is the weighted mean of the parts in play: without a query there is no similarity,
    without a context no boost (C008, C009).

    Attributes:
        query: What to look for; None or white space retrieves by the filters alone.
        filters: Only memories that match; in the grammar of docs/filters.md, or a `MemoryFilter`,
            whose offset is applied to the ranked answer and whose limit is not used. A dict is
            copied; times and ids in it are kept as their texts.
        limit: How many at most, 1 to 1,000.
        min_relevance: The least score, 0 to 1. None is 0.5 for a semantic query where the embedder
            has no floor of its own; otherwise the embedder's floor decides, and without a query
            nothing does (C009, C151).
        similarity_weight: Of the match with the query.
        recency_weight: Of how new a memory is.
        importance_weight: Of its importance.
        access_weight: Of how often it was read.
        expand_query: Whether related terms are looked for too.
        use_cache: Whether an answer given before will do, and this one be kept.
        cache_ttl: How long it is kept, and how old a kept one may be, by the memory's clock; a
            number is seconds.
        context_boost: Recent conversation or task; memories near to it are raised.
        context_weight: Of that nearness, where there is a context.
        exclude_ids: Never these.
        search_type: What the match is made of: "semantic" as documented, "hybrid" or "keyword".
        sort_by: The order without a query, in place of the ranking; that of a `MemoryFilter` serves
            as well.
        recency: The curve of age: a straight line over a year unless given (C016).
        on_embed_error: "keywords" answers a hybrid query by keywords where the embedder fails, and
            marks the answer as `degraded`; "raise" does not. A semantic query always raises.
        with_total: Whether all matches are counted; otherwise `total_matches` is how many are
            returned, and flagged as a lower bound, which is sooner done (C155).

    Raises:
        InvalidArgumentError: If a field is outside its range, if all weights in play are 0, or if
            there is neither a query nor a filter.
        FilterError: If the filter cannot be understood.
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

    def __post_init__(self) -> None:
        """Check every field and put it in its final form (C015)."""
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
        if not any(getattr(self, name) for name in self._weights_in_play()):
            raise InvalidArgumentError(
                "the weights of the terms in play add up to 0; at least one must be above it"
            )

    @classmethod
    def semantic(cls, query: str, limit: int = 10) -> Self:
        """Return a query by meaning (R162)."""
        return cls(query=query, limit=limit)

    @classmethod
    def filtered(
        cls,
        filter: MemoryFilter | Mapping[str, Any],  # noqa: A002 - the document's name
        limit: int = 100,
    ) -> Self:
        """Return a query by filters alone (R163)."""
        return cls(filters=filter, limit=limit)

    @cached_property
    def expression(self) -> Expression:
        """The tree of the filter, read once."""
        return parse_filter(self.filters)

    @property
    def offset(self) -> int:
        """How many of the best to leave out: the filter's."""
        return self.filters.offset if isinstance(self.filters, MemoryFilter) else 0

    @property
    def includes_forgotten(self) -> bool:
        """Whether the filter asks for forgotten memories too."""
        return isinstance(self.filters, MemoryFilter) and self.filters.include_forgotten

    @property
    def order(self) -> MemorySortOrder | None:
        """The order that was asked for in place of the ranking, where there is no query (C009)."""
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
        if self.search_type not in SEARCH_TYPES:
            known = ", ".join(SEARCH_TYPES)
            raise InvalidArgumentError(
                f"search_type must be one of {known}, got {quoted(self.search_type)}"
            )
        falls_back(self.on_embed_error)
        if self.sort_by is not None and not isinstance(self.sort_by, MemorySortOrder):
            raise InvalidArgumentError(
                f"sort_by must be a MemorySortOrder, got {quoted(self.sort_by)}"
            )
        if not isinstance(self.recency, Recency):
            raise InvalidArgumentError(
                f"recency must be a mnemic.Recency, got {described(self.recency)}"
            )


class RelevanceScores(msgspec.Struct, frozen=True, kw_only=True):
    """What a score is made of, each from 0 to 1; None for a part without a weight.

    Attributes:
        similarity: Cosine with the query; known for every semantic and hybrid query, whatever it
            weighs.
        recency: How new.
        importance: Its importance.
        access_frequency: How often it was read.
        context_boost: Cosine with the context.
        keyword: Match of the words, in hybrid and keyword searches.
    """

    similarity: float | None = None
    recency: float | None = None
    importance: float | None = None
    access_frequency: float | None = None
    context_boost: float | None = None
    keyword: float | None = None


class RankedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of an answer (R168).

    Attributes:
        entry: The memory, without its embedding.
        rank: From 1; with an offset the first has a later one.
        relevance_score: From 0 to 1.
        scores: What that is made of.
    """

    entry: MemoryEntry
    rank: int
    relevance_score: float
    scores: RelevanceScores


class MemoryRetrievalResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a `MemoryQuery` (R164 to R167). It iterates over its results.

    Attributes:
        results: Best first; ties go to the newest, then to the smallest id.
        total_matches: How many memories pass the filters and the floors, whatever the limit (C011).
        original_query: As it was asked; "" without a query.
        expanded_query: With the terms that were added; None if none were.
        from_cache: Whether the answer was known.
        retrieval_time: What this call took.
        total_is_lower_bound: Whether there may be more matches than that.
        expansion_failed: Whether the query was to be expanded and the expander failed; it was
            answered as it was asked then.
        degraded: Whether the embedder failed, so that a hybrid query was answered by keywords.
    """

    results: tuple[RankedMemory, ...]
    total_matches: int
    original_query: str
    expanded_query: str | None = None
    from_cache: bool
    retrieval_time: timedelta
    total_is_lower_bound: bool = False
    expansion_failed: bool = False
    degraded: bool = False

    def __iter__(self) -> Iterator[RankedMemory]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, at: int) -> RankedMemory:
        return self.results[at]


class ExpandedQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query and what was added to it (R170).

    Attributes:
        original: As it was asked.
        expanded: With the terms added; the original where nothing was.
        added_terms: What was added, the weightiest first.
        confidence: How likely they belong to what was meant, from 0 to 1.
        failed: Whether the expander failed; nothing was added then.

    Raises:
        InvalidArgumentError: If a text is no text, or the confidence is not from 0 to 1.
    """

    original: str
    expanded: str
    added_terms: tuple[str, ...]
    confidence: float
    failed: bool = False

    def __post_init__(self) -> None:
        """Check every field and put it in its final form."""
        for name in ("original", "expanded"):
            validation.text(name, getattr(self, name))
        terms = validation.items("added_terms", self.added_terms)
        force_setattr(self, "added_terms", tuple(validation.text("a term", term) for term in terms))
        force_setattr(self, "confidence", validation.fraction("confidence", self.confidence))
        validation.flag("failed", self.failed)


class Suggestions(list[str]):
    """Queries that a conversation makes worth asking, the most promising first.

    Attributes:
        failed: Whether the suggester failed; there are no suggestions then.
    """

    failed: bool

    def __init__(self, queries: Iterable[str] = (), *, failed: bool = False) -> None:
        super().__init__(queries)
        self.failed = failed


class RetrievalStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a retrieval service did since it was made (R171 to R176).

    Attributes:
        total_retrievals: Queries answered, from the cache or not (C006).
        cache_hit_rate: Percent of look-ups in the cache that found an answer.
        average_retrieval_time_ms: Over all.
        p95_retrieval_time_ms: Over the last 10,000 (C025).
        average_results_per_query: Memories returned.
        expansion_usage_rate: Percent of queries whose expansion was used.
        context_augmentations: Times that memories were added to a context window.
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
    if not isinstance(given, str):
        raise InvalidArgumentError(f"{name} must be a text or None, got {described(given)}")
    validation.text(name, validation.bounded(name, given))
    return given if given.strip() else None


def _duration(name: str, given: object) -> timedelta:
    if isinstance(given, int | float) and not isinstance(given, bool):
        try:
            given = timedelta(seconds=given)
        except (OverflowError, ValueError):
            given = None
    if not isinstance(given, timedelta) or given <= timedelta():
        raise InvalidArgumentError(
            f"{name} must be a timedelta or seconds above 0, got {described(given)}"
        )
    return given


def _ids(name: str, given: object) -> tuple[UUID, ...]:
    values = () if given is None else validation.items(name, given)
    return tuple(validation.uuid(f"{name}[{at}]", value) for at, value in enumerate(values))
