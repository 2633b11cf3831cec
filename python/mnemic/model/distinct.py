"""Distinct values of a field: what a caller asks for, and the records of a result."""

from collections.abc import Iterable
from typing import Any, ClassVar, Final

from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.entry import MEMORY_FIELDS, MemoryType
from mnemic.model.fields import FILTERED, Kind, MemoryField
from mnemic.model.filter import All, Expression, Field, Op, Test
from mnemic.model.filter_values import MAX_LEVELS, MAX_LIST, METADATA
from mnemic.records import Redacted
from mnemic.reporting.description import described, must_be, quoted

MAX_VALUES: Final = MAX_LIST
"""Maximum number of values of one result: as many as a test of a filter takes."""


class DistinctValue(Redacted, frozen=True):
    """A value of a field.

    Attributes:
        value: A text; a `MemoryType` of the field `type`; any JSON value of metadata.
        count: Number of memories that have it.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"value"})

    value: Any
    count: int


class DistinctQuery(Redacted, frozen=True, kw_only=True):
    """A checked request for the distinct values of a field.

    Attributes:
        field: The field.
        declared: Its declaration.
        prefix: Only texts that begin with it are counted.
        limit: Maximum number of values.
        offset: Number of first values to skip.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"prefix"})

    field: Field
    declared: MemoryField
    prefix: str | None
    limit: int
    offset: int

    def narrowed(self, filters: Expression) -> Expression:
        """Return filters with a test that every memory with a counted value passes."""
        if self.prefix is None:
            return All((filters, Test(self.field, Op.EXISTS, value=True)))
        return All((filters, Test(self.field, Op.PREFIX, self.prefix)))

    def values(self, found: Iterable[tuple[Any, int]]) -> list[DistinctValue]:
        """Return the records of values as the core or a store has them."""
        if self.declared.kind is Kind.TYPE:
            return [DistinctValue(MemoryType.numbered(value), count) for value, count in found]
        return [DistinctValue(value, count) for value, count in found]


def distinct_query(field: object, prefix: object, limit: object, offset: object) -> DistinctQuery:
    """Return a checked request.

    Raises:
        InvalidArgumentError: If an argument is of the wrong type or out of range.
    """
    wanted = _field(field)
    declared = _COUNTED[wanted.name]
    return DistinctQuery(
        field=wanted,
        declared=declared,
        prefix=_prefix(prefix, declared),
        limit=validation.limit("limit", limit, maximum=MAX_VALUES),
        offset=validation.whole("offset", offset),
    )


def _field(given: object) -> Field:
    if isinstance(given, str):
        if given.startswith(METADATA):
            return Field("metadata", (_key(given.removeprefix(METADATA)),))
        if given in _COUNTED and given != "metadata":
            return Field(given)
    if isinstance(given, tuple | list) and given[:1] in (["metadata"], ("metadata",)):
        path = tuple(map(_key, given[1:]))
        if 0 < len(path) <= MAX_LEVELS:
            return Field("metadata", path)
    names = ", ".join(name for name in _COUNTED if name != "metadata")
    raise InvalidArgumentError(
        f"field must be one of {names}, metadata.<key>, or a path such as "
        f"('metadata', 'address', 'city') of at most {MAX_LEVELS} keys; got {quoted(given)}"
    )


def _key(given: object) -> str:
    if isinstance(given, str) and validation.lone_surrogate(given) is None:
        return given
    raise must_be("a key of field", "a str of valid text", given)


def _prefix(given: object, declared: MemoryField) -> str | None:
    if given is None:
        return None
    if not isinstance(given, str) or validation.lone_surrogate(given) is not None:
        raise InvalidArgumentError(
            f"prefix must be a str of valid text, or None; got {described(given)}"
        )
    if declared.kind is Kind.TYPE:
        raise InvalidArgumentError("prefix goes with texts; types are no texts, leave it out")
    return given


_COUNTED = {
    field.name: field
    for field in MEMORY_FIELDS
    if field.has(FILTERED) and field.kind in {Kind.NAME, Kind.TYPE, Kind.TAGS, Kind.METADATA}
}
