"""Queries of retrieval given as a text with keyword arguments."""

from collections.abc import Collection, Mapping
from datetime import date, timedelta
from typing import Any, TypedDict, cast
from uuid import UUID

import msgspec

from mnemic.errors import ArgumentMismatchError, InvalidArgumentError
from mnemic.model import validation
from mnemic.model.filter import MemoryFilter, parse_times
from mnemic.model.query import MemoryQuery
from mnemic.model.ranking import OnQueryError, Recency, SearchType, Weights
from mnemic.reporting.near_names import unknown_name


class RetrieveFields(TypedDict, total=False):
    """The fields of a query that a text is retrieved with.

    Attributes:
        limit: Maximum number of results, 1 to 1,000; 10 unless given.
        filters: Only memories that match, in the grammar of docs/concepts/filters.md, or a
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
_WEIGHTS = {
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
    _check_names(fields)
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


def _check_names(fields: Mapping[str, Any]) -> None:
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        raise ArgumentMismatchError(unknown_name("option", unknown[0], _FIELDS))


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
            f"retrieve has no weight salience; there are {', '.join(_WEIGHTS)}; recall ranks by it"
        )
    return {name: getattr(weights, weight) for weight, name in _WEIGHTS.items()}


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
