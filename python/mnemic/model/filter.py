"""Filters: the grammar for callers, and the expression tree that stores and the core evaluate."""

import enum
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias
from uuid import UUID

import msgspec
from msgspec.structs import force_setattr

from mnemic.errors import FilterError
from mnemic.model import filter_values as values
from mnemic.model import validation
from mnemic.model.entry import MEMORY_FIELDS, MemoryType
from mnemic.model.fields import FILTERED, Kind
from mnemic.model.filter_values import MAX_LEVELS, MAX_LIST, METADATA, Reader, Value
from mnemic.records import NamedFields, Redacted
from mnemic.reporting.description import described, quoted
from mnemic.reporting.near_names import suggestion

MAX_DEPTH = 16
"""Maximum nesting of filters; the outermost has depth 1."""
MAX_TESTS = 256
MAX_LIMIT = validation.MAX_LIMIT
"""Maximum number of memories of one call."""


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
    PREFIX = "prefix"
    ANY = "any"
    ALL = "all"
    EXISTS = "exists"


class Field(msgspec.Struct, frozen=True):
    """The field of a test.

    Attributes:
        name: A field of the grammar, or "metadata".
        path: For metadata the keys that lead to the value, dots included; otherwise None.
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
        value: The value to compare with: a tuple of values for IN, NIN, ANY and ALL, a bool for
            EXISTS, a text for PREFIX. A list is a tuple, and a dict a `JsonObject`. Times are aware
            and in UTC, types and statuses are numbers, ids are UUIDs.
    """

    __test__: ClassVar[bool] = False  # or pytest takes it for a class of tests

    field: Field
    op: Op
    value: Value


Expression: TypeAlias = All | AnyOf | Not | Test
"""A parsed filter."""

IS_NOT_SENSITIVE = Test(Field("sensitive"), Op.EQ, value=False)


class Criteria(NamedTuple):
    """The entries of a scope that a write is for; with both, both must hold.

    Attributes:
        ids: Entries with these ids; None is any id.
        expression: Entries that match this filter; None is any entry.
    """

    ids: Sequence[UUID] | None = None
    expression: Expression | None = None


EVERY_ENTRY = Criteria()
"""All entries of a scope."""


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


class MemoryFilter(
    Redacted,
    frozen=True,
    kw_only=True,
    tag_field=_TAG_FIELD,
    tag=_TAG,
    metaclass=NamedFields,
):
    """Conditions on memories, with number and order. All given conditions must hold.

    Lists are stored as tuples, names of types as types, times in UTC: without a zone they are of
    the system's, and in `filters` of the call's.

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

    if TYPE_CHECKING:  # what construction takes, and what it makes of it, are of different types

        def __init__(
            self,
            *,
            types: Sequence[MemoryType | str] | None = None,
            tags: Sequence[str] | None = None,
            any_tags: Sequence[str] | None = None,
            min_importance: float | None = None,
            created_after: date | str | None = None,
            created_before: date | str | None = None,
            content_contains: str | None = None,
            include_forgotten: bool = False,
            limit: int = 100,
            offset: int = 0,
            sort_by: MemorySortOrder | None = None,
            filters: Mapping[str, Any] | None = None,
        ) -> None: ...

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
        FilterError: If a value is not a time, or `since` is after `until`; the message names them.
    """
    read = values.optional(values.read_time)
    begin, end = read("since", since), read("until", until)
    if begin is not None and end is not None and begin > end:
        raise FilterError(
            f"the range ends before it begins: since {begin.isoformat()} until {end.isoformat()}; "
            "exchange the two"
        )
    created_at = Field("created_at")
    given = ((Op.GTE, begin), (Op.LT, end))
    return [Test(created_at, op, time) for op, time in given if time is not None]


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
    """Return a deep copy of a checked filter that JSON preserves.

    MessagePack does too, except for ints of more than 64 bits.
    """
    return {str(name): _plain(item) for name, item in given.items()}


def _plain(given: Any) -> Any:
    if isinstance(given, Mapping):
        return _plain_filter(given)
    if isinstance(given, set | frozenset):
        return sorted((_plain(item) for item in given), key=repr)
    if isinstance(given, list | tuple):
        return [_plain(item) for item in given]
    if isinstance(given, date):
        values.read_time("", given)
        return given.isoformat()  # without a zone where it has none: the call that reads it has one
    return str(given) if isinstance(given, str | UUID) else values.scalar(given)


class _Parser:
    """Parses one filter, and counts its tests and the keys below metadata."""

    def __init__(self) -> None:
        self._tests = 0
        self._keys = 0

    def filter(self, given: object, place: str, depth: int) -> All:
        if depth > MAX_DEPTH:
            raise values.wrong(place, f"filters {depth} deep", f"{MAX_DEPTH}")
        if not isinstance(given, Mapping):
            raise values.wrong(
                place or "filter", values.shown(given), "a dict of fields, AND, OR and NOT"
            )
        start = f"{place}." if place else ""
        return All(
            tuple(
                self._named(name, item, f"{start}{values.step(name)}", depth)
                for name, item in given.items()
            )
        )

    def _named(self, name: object, given: object, place: str, depth: int) -> Expression:
        if name == "NOT":
            return Not(self.filter(given, place, depth + 1))
        if name in ("AND", "OR"):
            filters = enumerate(values.items(place, given))
            parts = tuple(self.filter(part, f"{place}[{at}]", depth + 1) for at, part in filters)
            return All(parts) if name == "AND" else AnyOf(parts)
        if name == "metadata":
            return All(tuple(self._below((), given, place)))
        field = _field(place, name)
        if isinstance(given, Mapping):
            return All(tuple(self._tests_of(field, given, place)))
        return self.test(field, Op.EQ, given, place)

    def _below(self, path: tuple[str, ...], given: object, place: str) -> Iterator[Test]:
        """Yield the tests of a dict below metadata, whose keys lead deeper."""
        if not isinstance(given, Mapping):
            raise values.wrong(
                place, values.shown(given), "a dict of keys, or the field metadata.<key>"
            )
        if len(path) == MAX_LEVELS:
            raise values.wrong(place, f"keys {MAX_LEVELS + 1} deep", f"{MAX_LEVELS}")
        for name, item in given.items():
            at = f"{place}.{values.step(name)}"
            deeper = (*path, _key(at, name))
            self._keys = values.counted(at, "keys", self._keys, MAX_LIST)
            if not isinstance(item, Mapping):
                yield self.test(Field("metadata", deeper), Op.EQ, item, at)
            elif all(map(_is_op, item)):
                yield from self._tests_of(Field("metadata", deeper), item, at)
            else:
                yield from self._below(deeper, item, at)

    def _tests_of(self, field: Field, given: Mapping[object, object], place: str) -> Iterator[Test]:
        for name, value in given.items():
            at = f"{place}.{values.step(name)}"
            yield self.test(field, _op(at, name, field), value, at)

    def test(self, field: Field, op: Op, value: object, place: str) -> Test:
        self._tests += 1
        if self._tests > MAX_TESTS:
            raise values.wrong(place, f"test number {self._tests}", f"{MAX_TESTS} tests")
        readers = _FIELDS[field.name]
        if op not in readers:
            fitting = (each.value for each in Op if each in readers)
            raise values.wrong(place, f"{op.value} on {field.name}", ", ".join(fitting))
        return Test(field, op, readers[op](place, value))


def _field(place: str, name: object) -> Field:
    if isinstance(name, str) and name.startswith(METADATA):
        return Field("metadata", (values.read_text(place, name.removeprefix(METADATA)),))
    if isinstance(name, str) and name in _PLAIN_FIELDS:
        return Field(name)
    known = ", ".join(_PLAIN_FIELDS)
    allowed = f"{known}, metadata.<key>, AND, OR and NOT"
    near = suggestion(name, [*_PLAIN_FIELDS, "metadata", "AND", "OR", "NOT"])
    raise values.wrong(place, f"field {quoted(name)}", f"{allowed}{near}")


def _key(place: str, name: object) -> str:
    """Return the key that a name below metadata stands for; a backslash may precede any key."""
    if not isinstance(name, str):
        raise values.wrong(place, f"key {described(name)}", "a str")
    if name.startswith("$"):
        allowed = f"{', '.join(_OPS)}, alone; a key that begins with $ has a backslash before it"
        allowed += suggestion(name.removeprefix("$"), _OPS)
        raise values.wrong(place, f"operator {quoted(name)}", allowed)
    return values.read_text(place, name.removeprefix("\\"))


def _is_op(name: object) -> bool:
    return isinstance(name, str) and name.removeprefix("$") in _OPS


def _op(place: str, name: object, field: Field) -> Op:
    if isinstance(name, str) and _is_op(name):
        return _OPS[name.removeprefix("$")]
    allowed = ", ".join(_OPS)
    if field.name == "metadata":
        allowed += "; a dict is compared by eq, and {'metadata': {key: {key: …}}} leads deeper"
    if isinstance(name, str):
        allowed += suggestion(name.removeprefix("$"), _OPS)
    raise values.wrong(place, f"operator {quoted(name)}", allowed)


def _limit(given: object) -> int:
    limit = validation.whole("", given, minimum=1)
    if limit > MAX_LIMIT:
        raise ValueError
    return limit


def _sort_order(given: object) -> MemorySortOrder:
    if not isinstance(given, MemorySortOrder):
        raise ValueError  # noqa: TRY004 - the reader turns it into a FilterError
    return given


_OPS = {op.value: op for op in Op}

_Readers: TypeAlias = dict[Op, Reader[Value]]


def _equality(read: Reader[Value], read_all: Reader[Value] | None = None) -> _Readers:
    read_all = values.tuple_of(read) if read_all is None else read_all
    return {
        Op.EQ: read,
        Op.NE: read,
        Op.IN: read_all,
        Op.NIN: read_all,
        Op.EXISTS: values.read_flag,
    }


def _order(read: Reader[Value]) -> _Readers:
    return {Op.GT: read, Op.GTE: read, Op.LT: read, Op.LTE: read}


def _elements(read: Reader[Value], read_all: Reader[Value]) -> _Readers:
    return {Op.CONTAINS: read, Op.PREFIX: values.read_text, Op.ANY: read_all, Op.ALL: read_all}


_NUMBER = _equality(values.read_scalar) | _order(values.read_scalar)
_TEXT = {**_NUMBER, Op.CONTAINS: values.read_scalar, Op.PREFIX: values.read_text}
_TESTS: dict[Kind, _Readers] = {
    Kind.UUID: _equality(values.optional(values.read_id)),
    Kind.TYPE: _equality(values.optional(values.read_type_number)),
    Kind.STATUS: _equality(values.optional(values.read_status_number)),
    Kind.NAME: _TEXT,
    Kind.CONTENT: _TEXT,
    Kind.WHOLE: _NUMBER,
    Kind.FRACTION: _NUMBER,
    Kind.TIME: _equality(values.optional(values.read_time))
    | _order(values.optional(values.read_time)),
    Kind.TAGS: _equality(values.read_tags, values.read_tag_lists)
    | _elements(values.read_scalar, values.tuple_of(values.read_scalar)),
    Kind.FLAG: _equality(values.read_scalar),
    Kind.METADATA: _equality(values.read_value, values.read_values)
    | _order(values.read_scalar)
    | _elements(values.read_value, values.read_values),
}
"""Operators of each kind of field, and the readers of their values."""

_FIELDS = {field.name: _TESTS[field.kind] for field in MEMORY_FIELDS if field.has(FILTERED)}
_PLAIN_FIELDS = [name for name in _FIELDS if name != "metadata"]

_OPTIONS: dict[str, Reader[Any]] = {
    "types": values.optional(values.tuple_of(values.read_type)),
    "tags": values.optional(values.tuple_of(values.read_text)),
    "any_tags": values.optional(values.tuple_of(values.read_text)),
    "min_importance": values.optional(
        values.reader(partial(validation.fraction, ""), "a number from 0 to 1")
    ),
    "created_after": values.optional(values.read_time),
    "created_before": values.optional(values.read_time),
    "content_contains": values.optional(values.read_text),
    "include_forgotten": values.read_flag,
    "limit": values.reader(_limit, f"an int from 1 to {MAX_LIMIT}"),
    "offset": values.reader(partial(validation.whole, ""), "an int from 0 to 2**63 - 1"),
    "sort_by": values.optional(
        values.reader(_sort_order, "a MemorySortOrder, or None", values.shown_word)
    ),
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


def canonical(expression: Expression) -> str:
    """Return a text that is equal for filters whose parts differ in order or nesting alone.

    Values of different types differ: True, 1 and 1.0 are equal in Python but not in a filter.
    """
    if isinstance(expression, Test):
        value = expression.value
        if isinstance(value, tuple) and expression.op in _OF_SETS:
            shown = f"{sorted({repr(item) for item in value})}"
        else:
            shown = repr(value)
        return f"{expression.field.name}{expression.field.path} {expression.op.value} {shown}"
    if isinstance(expression, Not):
        return f"not({canonical(expression.part)})"
    kind = type(expression)
    parts = sorted(set(_parts(expression, kind)))
    return parts[0] if len(parts) == 1 else f"{kind.__name__}({', '.join(parts)})"


_OF_SETS = frozenset({Op.IN, Op.NIN, Op.ANY, Op.ALL})
"""Operators for which the order of their values has no meaning; that of an equal list has."""


def _parts(joined: All | AnyOf, kind: type[All | AnyOf]) -> Iterator[str]:
    """Yield the parts, with parts of the same kind replaced by their parts."""
    for part in joined.parts:
        if isinstance(part, kind):
            yield from _parts(part, kind)
        else:
            yield canonical(part)
