"""Filters: the grammar for callers, and the expression tree that stores and the core evaluate."""

import enum
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, TypeAlias, TypeVar
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.description import described, hidden, is_word, quoted
from mnemic.errors import FilterError
from mnemic.model import validation
from mnemic.model.entry import MEMORY_FIELDS, MemoryStatus, MemoryType
from mnemic.model.fields import FILTERED, Kind
from mnemic.model.redacted import Redacted

MAX_DEPTH = 16
"""Maximum nesting of filters; the outermost has depth 1."""
MAX_TESTS = 256
MAX_LIST = 10_000
MAX_LIMIT = validation.MAX_LIMIT
"""Maximum number of memories of one call."""

Scalar: TypeAlias = bool | int | float | str | datetime | UUID | None
Value: TypeAlias = Scalar | tuple[Scalar, ...]
Read = TypeVar("Read")
Reader: TypeAlias = Callable[[str, object], Read]
"""Converts a value at a place to its final form, or raises FilterError."""


class MemorySortOrder(enum.Enum):
    """Sort order of a list of memories.

    Ties: newest first, then smallest id. Memories without the value come last.
    """

    CREATED_DESCENDING = "created_descending"
    CREATED_ASCENDING = "created_ascending"
    IMPORTANCE_DESCENDING = "importance_descending"
    ACCESSED_DESCENDING = "accessed_descending"
    ACCESS_COUNT_DESCENDING = "access_count_descending"


class Op(enum.Enum):
    """Operator of a test; the values are the names in the grammar."""

    EQ = "eq"
    NE = "ne"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    IN = "in"
    NIN = "nin"
    CONTAINS = "contains"
    ANY = "any"
    ALL = "all"
    EXISTS = "exists"


class Field(msgspec.Struct, frozen=True):
    """The field of a test.

    Attributes:
        name: A field of the grammar, or "metadata".
        path: For metadata its one key, dots included; otherwise None.
    """

    name: str
    path: tuple[str, ...] | None = None


class All(msgspec.Struct, frozen=True):
    """True if every part is; true without parts."""

    parts: tuple["Expression", ...]


class AnyOf(msgspec.Struct, frozen=True):
    """True if at least one part is; false without parts."""

    parts: tuple["Expression", ...]


class Not(msgspec.Struct, frozen=True):
    """True if the part is false; there is no third value."""

    part: "Expression"


class Test(msgspec.Struct, frozen=True):
    """One test of one field.

    Attributes:
        field: The field.
        op: The operator.
        value: The value to compare with: a tuple for IN, NIN, ANY and ALL, a bool for EXISTS. Times
            are aware and in UTC, types and statuses are numbers, ids are UUIDs.
    """

    __test__: ClassVar[bool] = False  # or pytest takes it for a class of tests

    field: Field
    op: Op
    value: Value


Expression: TypeAlias = All | AnyOf | Not | Test

IS_NOT_SENSITIVE = Test(Field("sensitive"), Op.EQ, value=False)


def references(expression: Expression, *names: str) -> bool:
    """Return whether an expression tests one of these fields."""
    if isinstance(expression, Test):
        return expression.field.name in names
    if isinstance(expression, Not):
        return references(expression.part, *names)
    return any(references(part, *names) for part in expression.parts)


def has_tests(expression: Expression) -> bool:
    """Return whether an expression has any test; without one it is always true or always false."""
    if isinstance(expression, Test):
        return True
    return any(
        map(has_tests, (expression.part,) if isinstance(expression, Not) else expression.parts)
    )


_TAG_FIELD, _TAG = "record", "memory_filter"
"""Distinguishes an encoded `MemoryFilter` from a filter in the grammar, which has no such field."""


class MemoryFilter(Redacted, frozen=True, kw_only=True, tag_field=_TAG_FIELD, tag=_TAG):
    """Conditions on memories, with number and order. All given conditions must hold.

    Lists are stored as tuples, names of types as types, times in UTC (a naive one is taken as UTC).

    Attributes:
        types: Any of these types; no memory matches if empty.
        tags: All of these tags.
        any_tags: At least one of these tags; no memory matches if empty.
        min_importance: From 0 to 1, inclusive.
        created_after: This time or later.
        created_before: Earlier than this time.
        content_contains: Part of the content; case and width are ignored.
        include_forgotten: Whether to include deleted memories.
        limit: From 1 to 1000; applied last.
        offset: Number of first memories to skip.
        sort_by: The order. None is newest first in a list, and the ranking in a retrieval.
        filters: A filter in the grammar, for all other conditions. It is copied; times and ids are
            stored as text.

    Raises:
        FilterError: If a value is invalid; the message names the place.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset(
        {"tags", "any_tags", "content_contains", "filters"}
    )

    types: tuple[MemoryType, ...] | None = None
    tags: tuple[str, ...] | None = None
    any_tags: tuple[str, ...] | None = None
    min_importance: float | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    content_contains: str | None = None
    include_forgotten: bool = False
    limit: int = 100
    offset: int = 0
    sort_by: MemorySortOrder | None = None
    filters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Check every field and convert it to its final form."""
        for name, read in _OPTIONS.items():
            force_setattr(self, name, read(name, getattr(self, name)))
        _tree(self)
        if self.filters is not None:
            force_setattr(self, "filters", _plain_filter(self.filters))

    @property
    def list_order(self) -> MemorySortOrder:
        """Order of a list: newest first unless another was given."""
        return MemorySortOrder.CREATED_DESCENDING if self.sort_by is None else self.sort_by


def parse_filter(given: MemoryFilter | Mapping[str, object] | None) -> Expression:
    """Return the expression of a filter; None matches everything.

    Limit, offset, order and `include_forgotten` are not part of it.

    Raises:
        FilterError: If a field or an operator is unknown, an operator or a value does not fit its
            field, or the filter is too large; the message names the place.
    """
    if isinstance(given, MemoryFilter):
        return _tree(given)
    return _Parser().filter({} if given is None else given, "", 1)


def copied_filter(
    given: MemoryFilter | Mapping[str, Any] | None,
) -> MemoryFilter | dict[str, Any] | None:
    """Return a checked copy of a filter, without references to the caller's objects.

    A dict decoded from an encoded `MemoryFilter` becomes one again.

    Raises:
        FilterError: If the filter is invalid; the message names the place.
    """
    if given is None or isinstance(given, MemoryFilter):
        return given
    if isinstance(given, Mapping) and given.get(_TAG_FIELD) == _TAG:
        try:
            return msgspec.convert(given, MemoryFilter)
        except msgspec.ValidationError as error:
            raise FilterError(str(error)) from None
    parse_filter(given)
    return _plain_filter(given)


def parse_times(since: object, until: object) -> list[Expression]:
    """Return the tests of the creation times given to a search.

    Raises:
        FilterError: If a value is not a time; the message names it.
    """
    parser, created_at = _Parser(), Field("created_at")
    given = (("since", Op.GTE, since), ("until", Op.LT, until))
    return [parser.test(created_at, op, time, name) for name, op, time in given if time is not None]


def _tree(given: MemoryFilter) -> Expression:
    parser = _Parser()
    parts: list[Expression] = [
        parser.test(Field(field), op, getattr(given, name), name)
        for name, field, op in _OPTION_TESTS
        if getattr(given, name) is not None
    ]
    if given.filters is not None:
        parts.append(parser.filter(given.filters, "filters", 1))
    return All(tuple(parts))


def _plain_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a deep copy of a checked filter that JSON and MessagePack preserve."""
    return {str(name): _plain(item) for name, item in given.items()}


def _plain(given: Any) -> Any:
    if isinstance(given, Mapping):
        return _plain_filter(given)
    if isinstance(given, set | frozenset):
        return sorted((_plain(item) for item in given), key=repr)
    if isinstance(given, list | tuple):
        return [_plain(item) for item in given]
    if isinstance(given, datetime):
        return validation.time("", given).isoformat()
    return str(given) if isinstance(given, str | UUID) else _scalar(given)


class _Parser:
    """Parses one filter, and counts its tests."""

    def __init__(self) -> None:
        self._tests = 0

    def filter(self, given: object, place: str, depth: int) -> All:
        if depth > MAX_DEPTH:
            raise _wrong(place, f"filters {depth} deep", f"{MAX_DEPTH}")
        if not isinstance(given, Mapping):
            raise _wrong(place or "filter", _shown(given), "a dict of fields, AND, OR and NOT")
        start = f"{place}." if place else ""
        return All(
            tuple(
                self._named(name, item, f"{start}{_step(name)}", depth)
                for name, item in given.items()
            )
        )

    def _named(self, name: object, given: object, place: str, depth: int) -> Expression:
        if name == "NOT":
            return Not(self.filter(given, place, depth + 1))
        if name in ("AND", "OR"):
            filters = enumerate(_items(place, given))
            parts = tuple(self.filter(part, f"{place}[{at}]", depth + 1) for at, part in filters)
            return All(parts) if name == "AND" else AnyOf(parts)
        field = _field(place, name)
        if not isinstance(given, Mapping):
            return self.test(field, Op.EQ, given, place)
        tests = ((op, value, f"{place}.{_step(op)}") for op, value in given.items())
        return All(tuple(self.test(field, _op(at, op), value, at) for op, value, at in tests))

    def test(self, field: Field, op: Op, value: object, place: str) -> Test:
        self._tests += 1
        if self._tests > MAX_TESTS:
            raise _wrong(place, f"test number {self._tests}", f"{MAX_TESTS} tests")
        ops, read = _FIELDS[field.name]
        if op not in ops:
            fitting = (each.value for each in Op if each in ops)
            raise _wrong(place, f"{op.value} on {field.name}", ", ".join(fitting))
        if op is Op.EXISTS:
            return Test(field, op, _read_flag(place, value))
        if op in _OF_LISTS:
            return Test(field, op, _tuple_of(read)(place, value))
        return Test(field, op, read(place, value))


def _field(place: str, name: object) -> Field:
    if isinstance(name, str) and name.startswith(_METADATA):
        return Field("metadata", (_read_text(place, name.removeprefix(_METADATA)),))
    if isinstance(name, str) and name in _PLAIN_FIELDS:
        return Field(name)
    known = ", ".join(_PLAIN_FIELDS)
    raise _wrong(place, f"field {quoted(name)}", f"{known}, metadata.<key>, AND, OR and NOT")


def _op(place: str, name: object) -> Op:
    if isinstance(name, str) and name.removeprefix("$") in _OPS:
        return _OPS[name.removeprefix("$")]
    raise _wrong(place, f"operator {quoted(name)}", ", ".join(_OPS))


def _wrong(place: str, found: str, allowed: str) -> FilterError:
    return FilterError(f"{place}: found {found}, allowed: {allowed}")


def _step(name: object) -> str:
    """Return a name as a part of a place; a name that is not a word may be content: hidden."""
    if not isinstance(name, str):
        return described(name)
    if is_word(name):
        return name
    if name.startswith(_METADATA):
        return f"{_METADATA}{hidden(name.removeprefix(_METADATA))}"
    return hidden(name)


def _shown(found: object) -> str:
    return _typed(described(found), found)


def _shown_word(found: object) -> str:
    return _typed(quoted(found), found)


def _typed(shown: str, found: object) -> str:
    names_type = shown.startswith(("a ", "an "))
    return shown if names_type else f"{shown} ({type(found).__name__})"


def _reader(
    parse: Callable[[Any], Read], allowed: str, shown: Callable[[object], str] = _shown
) -> Reader[Read]:
    def read(place: str, given: object) -> Read:
        with suppress(ValueError, OverflowError):
            return parse(given)
        raise _wrong(place, shown(given), allowed)

    return read


def _optional(read: Reader[Read]) -> Reader[Read | None]:
    return lambda place, given: None if given is None else read(place, given)


def _tuple_of(read: Reader[Read]) -> Reader[tuple[Read, ...]]:
    def read_all(place: str, given: object) -> tuple[Read, ...]:
        return tuple(read(f"{place}[{at}]", item) for at, item in enumerate(_items(place, given)))

    return read_all


def _items(place: str, given: object) -> tuple[object, ...]:
    if not isinstance(given, list | tuple | set | frozenset):
        raise _wrong(place, _shown(given), "a list")
    if len(given) > MAX_LIST:
        raise _wrong(place, f"{len(given)} values", f"{MAX_LIST}")
    return tuple(given)


def _scalar(given: object) -> Scalar:
    if given is None or isinstance(given, bool):
        return given
    if isinstance(given, str):
        given.encode()  # a lone surrogate is a ValueError
        return given
    if isinstance(given, int) and _MIN_INT <= given <= _MAX_INT:
        return int(given)
    if isinstance(given, float) and math.isfinite(given):
        return float(given)
    raise ValueError


def _string(given: object) -> str:
    if not isinstance(given, str):
        raise ValueError  # noqa: TRY004 - the reader turns it into a FilterError
    given.encode()
    return given


def _moment(given: object) -> datetime:
    return validation.time("", datetime.fromisoformat(given) if isinstance(given, str) else given)


def _limit(given: object) -> int:
    limit = validation.whole("", given, minimum=1)
    if limit > MAX_LIMIT:
        raise ValueError
    return limit


def _sort_order(given: object) -> MemorySortOrder:
    if not isinstance(given, MemorySortOrder):
        raise ValueError  # noqa: TRY004 - the reader turns it into a FilterError
    return given


_METADATA = "metadata."
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_OPS = {op.value: op for op in Op}
_OF_LISTS = frozenset({Op.IN, Op.NIN, Op.ANY, Op.ALL})

_SAME = frozenset({Op.EQ, Op.NE, Op.IN, Op.NIN, Op.EXISTS})
_ORDERED = _SAME | {Op.GT, Op.GTE, Op.LT, Op.LTE}
_TEXT = _ORDERED | {Op.CONTAINS}
_LIST = frozenset({Op.CONTAINS, Op.ANY, Op.ALL, Op.EXISTS})

_read_scalar = _reader(_scalar, "None, a bool, a finite number of 64 bits or a str of valid text")
_read_text = _reader(_string, "a str of valid text")
_read_flag = _reader(partial(validation.flag, ""), "True or False", _shown_word)
_read_id = _reader(partial(validation.uuid, ""), "a UUID or its text", _shown_word)
_read_time = _reader(
    _moment, "a datetime or its ISO 8601 text, in the years 1 to 9999", _shown_word
)
_read_type = _reader(
    MemoryType.parse, ", ".join(each.name.lower() for each in MemoryType), _shown_word
)
_read_status = _reader(
    MemoryStatus.parse, ", ".join(each.name.lower() for each in MemoryStatus), _shown_word
)

_TESTS: dict[Kind, tuple[frozenset[Op], Reader[Scalar]]] = {
    Kind.UUID: (_SAME, _optional(_read_id)),
    Kind.TYPE: (_SAME, _optional(_read_type)),
    Kind.STATUS: (_SAME, _optional(_read_status)),
    Kind.NAME: (_TEXT, _read_scalar),
    Kind.CONTENT: (_TEXT, _read_scalar),
    Kind.WHOLE: (_ORDERED, _read_scalar),
    Kind.FRACTION: (_ORDERED, _read_scalar),
    Kind.TIME: (_ORDERED, _optional(_read_time)),
    Kind.TAGS: (_LIST, _read_scalar),
    Kind.FLAG: (_SAME, _read_scalar),
    Kind.METADATA: (frozenset(Op), _read_scalar),
}
"""Operators of each kind of field, and the reader of their values."""

_FIELDS = {field.name: _TESTS[field.kind] for field in MEMORY_FIELDS if field.has(FILTERED)}
_PLAIN_FIELDS = [name for name in _FIELDS if name != "metadata"]

_OPTIONS: dict[str, Reader[Any]] = {
    "types": _optional(_tuple_of(_read_type)),
    "tags": _optional(_tuple_of(_read_text)),
    "any_tags": _optional(_tuple_of(_read_text)),
    "min_importance": _optional(_reader(partial(validation.fraction, ""), "a number from 0 to 1")),
    "created_after": _optional(_read_time),
    "created_before": _optional(_read_time),
    "content_contains": _optional(_read_text),
    "include_forgotten": _read_flag,
    "limit": _reader(_limit, f"an int from 1 to {MAX_LIMIT}"),
    "offset": _reader(partial(validation.whole, ""), "an int from 0 to 2**63 - 1"),
    "sort_by": _optional(_reader(_sort_order, "a MemorySortOrder, or None", _shown_word)),
}
_OPTION_TESTS = (
    ("types", "type", Op.IN),
    ("tags", "tags", Op.ALL),
    ("any_tags", "tags", Op.ANY),
    ("min_importance", "importance", Op.GTE),
    ("created_after", "created_at", Op.GTE),
    ("created_before", "created_at", Op.LT),
    ("content_contains", "content", Op.CONTAINS),
)
"""The test of each option of a MemoryFilter."""
