"""Compiles a parsed filter to an SQL condition on `agent_memory_entries`.

A condition is 0 or 1 and never NULL, so that NOT is plain negation. Keys and values are bound; only
constants of this module are concatenated.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from types import UnionType
from typing import Any, Final, TypeAlias
from uuid import UUID

import apsw
import msgspec

from mnemic._core import fold
from mnemic.errors import StoreCorruptError
from mnemic.model import All, AnyOf, Expression, Field, MemorySortOrder, Not, Op, Test
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import FILTERED, Kind, MemoryField
from mnemic.model.timestamps import to_microseconds
from mnemic.store.sqlite.row_codec import DAMAGED

Condition = tuple[str, list[object]]
"""SQL and its bound values."""

_NEVER: Final = "0"
_ALWAYS: Final = "1"
_CONTAINS = "mnemic_contains"
_MEMBERS = "(SELECT value FROM json_each(?))"


def register(connection: apsw.Connection) -> None:
    """Register the SQL functions of conditions on a connection."""
    connection.create_scalar_function(_CONTAINS, _contains, 2, deterministic=True)


def _contains(*arguments: Any) -> bool:
    text, folded = arguments
    if text is None:
        return False
    if not isinstance(text, str):
        raise StoreCorruptError(f"a stored text is of another type; {DAMAGED}")
    return folded in fold(text)


def order_by(sort_by: MemorySortOrder) -> str:
    """Return the ORDER BY terms of an order: the key, newest first, then the id."""
    return _ORDERS[sort_by]


def _order(order: MemorySortOrder) -> str:
    key, _, direction = order.value.rpartition("_")
    field = _SORTED[key]
    last = " NULLS LAST" if field.is_optional else ""
    first = f"{field.column} DESC{last}" if direction == "descending" else f"{field.column}"
    return f"{first}, id" if key == "created" else f"{first}, created_at DESC, id"


_SORTED = {field.sort_key: field for field in MEMORY_FIELDS if field.sort_key is not None}
_ORDERS = {order: _order(order) for order in MemorySortOrder}


def compiled(expression: Expression) -> Condition:
    """Return an SQL condition and its values; a condition independent of the row is "0" or "1".

    Column names stand alone, without a table's name before them.
    """
    match expression:
        case All(parts):
            return _joined("AND", map(compiled, parts))
        case AnyOf(parts):
            return _joined("OR", map(compiled, parts))
        case Not(part):
            return _negated(compiled(part))
        case Test(field, op, value):
            return _TESTS[op](_operand(field), value)


def _joined(word: str, conditions: Iterable[Condition]) -> Condition:
    # Constants go, which leaves at most as many parts as the tree has tests: SQLite counts depth.
    deciding, neutral = (_NEVER, _ALWAYS) if word == "AND" else (_ALWAYS, _NEVER)
    kept = [condition for condition in conditions if condition[0] != neutral]
    if any(sql == deciding for sql, _ in kept):
        return deciding, []
    if not kept:
        return neutral, []
    joined = f" {word} ".join(sql for sql, _ in kept)
    return f"({joined})", [value for _, values in kept for value in values]


def _negated(condition: Condition) -> Condition:
    sql, values = condition
    if not values and sql in _OPPOSITES:
        return _OPPOSITES[sql], []
    return f"(NOT {sql})", values


_OPPOSITES = {_NEVER: _ALWAYS, _ALWAYS: _NEVER}


_Operand: TypeAlias = Any
"""The operand of a test: a column, the tags or a key of the metadata.

Each has a method for every operator that `parse_filter` allows on it; their conditions are never
NULL.
"""


class _Column(msgspec.Struct, frozen=True):
    """A column of one type. Types are compared here, as SQLite would convert values."""

    name: str
    holds: type | UnionType
    nullable: bool = False
    bound: Callable[[Any], object] = lambda value: value
    members: str = _MEMBERS

    def missing(self) -> Condition:
        return f"({self.name} IS NULL)", []

    def compared(self, sign: str, value: object) -> Condition:
        if not self._fits(value):
            return _NEVER, []
        return self._known(f"{self.name} {sign} ?"), [self.bound(value)]

    def among(self, values: Sequence[object]) -> Condition:
        fitting = [self.bound(value) for value in values if self._fits(value)]
        if not fitting:
            return _NEVER, []
        return self._known(f"{self.name} IN {self.members}"), [_json(fitting)]

    def contains(self, value: object) -> Condition:
        if not isinstance(value, str):
            return _NEVER, []
        return f"{_CONTAINS}({self.name}, ?)", [fold(value)]

    def _known(self, sql: str) -> str:
        return f"ifnull({sql}, 0)" if self.nullable else f"({sql})"  # the latter can use an index

    def _fits(self, value: object) -> bool:
        return isinstance(value, self.holds) and isinstance(value, bool) == (self.holds is bool)


class _Tags(msgspec.Struct, frozen=True):
    """The list of tags, which is never missing; an empty list is stored as NULL."""

    def missing(self) -> Condition:
        return _NEVER, []

    def contains(self, value: object) -> Condition:
        return self.any_of((value,))

    def any_of(self, values: Sequence[object]) -> Condition:
        return _joined("OR", _items("tags", "$", values, _has_some))

    def all_of(self, values: Sequence[object]) -> Condition:
        return _joined("AND", _items("tags", "$", values, _has_every))


class _Metadata(msgspec.Struct, frozen=True):
    """The value of one key of the metadata. Its JSON type is tested before its value."""

    path: str

    def missing(self) -> Condition:
        return "(ifnull(json_type(metadata, ?), 'null') = 'null')", [self.path]

    def compared(self, sign: str, value: object) -> Condition:
        if isinstance(value, bool | None):
            return self.among((value,)) if sign == "=" else (_NEVER, [])
        test = f"json_extract(metadata, ?) {sign} ?"
        return self._of_types(_json_types(value), (test, [self.path, value]))

    def among(self, values: Sequence[object]) -> Condition:
        return _joined("OR", (self._one_of(*group) for group in _by_json_types(values)))

    def contains(self, value: object) -> Condition:
        has_item = self.any_of((value,))
        if not isinstance(value, str):
            return has_item
        has_part: Condition = f"{_CONTAINS}(json_extract(metadata, ?), ?)", [self.path, fold(value)]
        return _joined("OR", (self._of_types(_TEXT, has_part), has_item))

    def any_of(self, values: Sequence[object]) -> Condition:
        some = _joined("OR", _items("metadata", self.path, values, _has_some))
        return self._of_types(_ARRAY, some)

    def all_of(self, values: Sequence[object]) -> Condition:
        every = _joined("AND", _items("metadata", self.path, values, _has_every))
        return self._of_types(_ARRAY, every)

    def _one_of(self, types: str, values: Sequence[object]) -> Condition:
        if types == _NULL:
            return _NEVER, []
        if types in _CONSTANTS:
            return self._of_types(types, (_ALWAYS, []))
        member: Condition = f"json_extract(metadata, ?) IN {_MEMBERS}", [self.path, _json(values)]
        return self._of_types(types, member)

    def _of_types(self, types: str, condition: Condition) -> Condition:
        sql, values = condition
        if sql == _NEVER:
            return condition
        case = f"CASE WHEN json_type(metadata, ?) IN {types} THEN {sql} ELSE 0 END"
        return case, [self.path, *values]


# Lists of JSON. Each group of values of one type is looked for with one pass through the list.


def _items(
    column: str, path: str, values: Sequence[object], has: Callable[[str, int], str]
) -> Iterator[Condition]:
    for types, group in _by_json_types(values):
        listed = f"FROM json_each({column}, ?) WHERE type IN {types}"
        if types in _CONSTANTS:
            yield f"EXISTS (SELECT 1 {listed})", [path]
        else:
            yield has(f"{listed} AND value IN {_MEMBERS}", len(group)), [path, _json(group)]


def _has_some(found: str, _count: int) -> str:
    return f"EXISTS (SELECT 1 {found})"


def _has_every(found: str, count: int) -> str:
    return f"((SELECT count(DISTINCT value) {found}) = {count})"


def _by_json_types(values: Sequence[object]) -> Iterable[tuple[str, list[object]]]:
    groups: dict[str, dict[object, None]] = {}  # of their own, because True == 1
    for value in values:
        groups.setdefault(_json_types(value), {})[value] = None
    return [(types, list(group)) for types, group in groups.items()]


def _json_types(value: object) -> str:
    if value is None:
        return _NULL
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return _TEXT if isinstance(value, str) else _NUMBER


def _json(values: Sequence[object]) -> str:
    plain = [value.hex() if isinstance(value, bytes) else value for value in values]
    return msgspec.json.encode(plain).decode()


_NULL, _TRUE, _FALSE, _TEXT, _ARRAY = "('null')", "('true')", "('false')", "('text')", "('array')"
_NUMBER = "('integer', 'real')"
_CONSTANTS = frozenset({_NULL, _TRUE, _FALSE})


# Tests


def _operand(field: Field) -> _Operand:
    if field.path is None:
        return _OPERANDS[field.name]
    (key,) = field.path
    # SQLite takes a NUL in a key of a path for its end; no stored key has one, nor is metadata a
    # list, so both find nothing.
    return _Metadata("$[0]" if "\0" in key else f"$.{_json_key(key)}")


def _json_key(key: str) -> str:
    return msgspec.json.encode(key).decode()


def _equal(operand: _Operand, value: Any) -> Condition:
    equal: Condition = operand.missing() if value is None else operand.compared("=", value)
    return equal


def _not_among(operand: _Operand, values: Any) -> Condition:
    outside = _negated(operand.among(values))
    if None not in values:
        return outside
    return _joined("AND", (_negated(operand.missing()), outside))


def _exists(operand: _Operand, value: Any) -> Condition:
    return _negated(operand.missing()) if value else operand.missing()


_TESTS: dict[Op, Callable[[_Operand, Any], Condition]] = {
    Op.EQ: _equal,
    Op.NE: lambda operand, value: _negated(_equal(operand, value)),
    Op.GT: lambda operand, value: operand.compared(">", value),
    Op.GTE: lambda operand, value: operand.compared(">=", value),
    Op.LT: lambda operand, value: operand.compared("<", value),
    Op.LTE: lambda operand, value: operand.compared("<=", value),
    Op.IN: lambda operand, value: operand.among(value),
    Op.NIN: _not_among,
    Op.CONTAINS: lambda operand, value: operand.contains(value),
    Op.ANY: lambda operand, value: operand.any_of(value),
    Op.ALL: lambda operand, value: operand.all_of(value),
    Op.EXISTS: _exists,
}


def _bytes_of(identifier: UUID) -> bytes:
    return identifier.bytes


_UUIDS = "(SELECT unhex(value) FROM json_each(?))"
_COLUMNS: dict[Kind, Callable[..., _Column]] = {
    Kind.UUID: partial(_Column, holds=UUID, bound=_bytes_of, members=_UUIDS),
    Kind.TYPE: partial(_Column, holds=int, bound=int),
    Kind.STATUS: partial(_Column, holds=int, bound=int),
    Kind.NAME: partial(_Column, holds=str),
    Kind.CONTENT: partial(_Column, holds=str),
    Kind.WHOLE: partial(_Column, holds=int | float),
    Kind.FRACTION: partial(_Column, holds=int | float),
    Kind.TIME: partial(_Column, holds=datetime, bound=to_microseconds),
    Kind.FLAG: partial(_Column, holds=bool, bound=int),
}


def _field_operand(field: MemoryField) -> _Operand:
    if field.kind is Kind.TAGS:
        return _Tags()
    return _COLUMNS[field.kind](field.column, nullable=field.is_optional)


_OPERANDS: dict[str, _Operand] = {
    field.name: _field_operand(field)
    for field in MEMORY_FIELDS
    if FILTERED in field.traits and field.kind is not Kind.METADATA
}
