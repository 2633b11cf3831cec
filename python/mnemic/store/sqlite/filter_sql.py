"""Compiles a parsed filter to an SQL condition that narrows `agent_memory_entries`.

The condition holds for every entry that matches. Tests that SQLite and the core evaluate alike go
to SQL; any other test becomes true, and the core decides the entries that are left. The condition
is 0 or 1 and never NULL. Values are bound; only constants of this module are concatenated.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from types import UnionType
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from mnemic.model import All, AnyOf, Expression, MemorySortOrder, Not, Op, Test
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import FILTERED, Kind
from mnemic.model.timestamps import to_microseconds
from mnemic.store.sqlite.sql import Condition, text_after

_NEVER: Final = "0"
_ALWAYS: Final = "1"
_MEMBERS = "(SELECT value FROM json_each(?))"
_UUIDS = "(SELECT unhex(value) FROM json_each(?))"
IDS: Final = "(SELECT DISTINCT unhex(value) AS wanted FROM json_each(?))"
"""A table of ids, bound as one value; see `bound_ids`."""

MAX_NUMBERS: Final = 64
"""Numbers of a list that are bound one by one; SQLite's reading of decimals may round another way.
"""


class Narrowed(NamedTuple):
    """An SQL condition that holds for every match.

    Attributes:
        sql: The condition; "0" or "1" if it is independent of the entry.
        values: Its bound values.
        is_exact: Whether it holds for matches alone.
    """

    sql: str
    values: list[object]
    is_exact: bool


def bound_ids(ids: Sequence[UUID]) -> object:
    """Return ids as the value to bind to `IDS`."""
    return _json([entry_id.bytes for entry_id in ids])


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


def narrowed(expression: Expression, *, is_negated: bool = False) -> Narrowed:
    """Return a condition that holds for every match of a filter, or of its negation.

    Negations are pushed to the tests, because the negation of a condition that holds for too many
    entries would hold for too few. Column names stand alone, without a table's name before them.
    """
    match expression:
        case All(parts):
            return _joined("OR" if is_negated else "AND", parts, is_negated=is_negated)
        case AnyOf(parts):
            return _joined("AND" if is_negated else "OR", parts, is_negated=is_negated)
        case Not(part):
            return narrowed(part, is_negated=not is_negated)
        case Test():
            condition = _condition(expression)
            if condition is None:
                return Narrowed(_ALWAYS, [], is_exact=False)
            return Narrowed(*(_negated(condition) if is_negated else condition), is_exact=True)


def _joined(word: str, parts: Sequence[Expression], *, is_negated: bool) -> Narrowed:
    narrow = [narrowed(part, is_negated=is_negated) for part in parts]
    # Constants go, which leaves at most as many parts as the tree has tests: SQLite counts depth.
    deciding, neutral = (_NEVER, _ALWAYS) if word == "AND" else (_ALWAYS, _NEVER)
    decided = [part for part in narrow if part.sql == deciding]
    if decided:
        return Narrowed(deciding, [], is_exact=any(part.is_exact for part in decided))
    is_exact = all(part.is_exact for part in narrow)
    kept = [part for part in narrow if part.sql != neutral]
    if not kept:
        return Narrowed(neutral, [], is_exact)
    joined = f" {word} ".join(part.sql for part in kept)
    return Narrowed(f"({joined})", [value for part in kept for value in part.values], is_exact)


def _condition(test: Test) -> Condition | None:
    """Return the exact condition of a test; None if the core has to decide it."""
    column, condition = _TESTED.get(test.field.name), _CONDITIONS.get(test.op)
    if column is None or condition is None or not _is_bindable(test.value):
        return None
    return condition(column, test.value)


def _is_bindable(value: object) -> bool:
    """Return whether SQLite has all numbers of a value."""
    if isinstance(value, tuple):
        return all(map(_is_bindable, value))
    return not isinstance(value, int) or _MIN_INT <= value <= _MAX_INT


_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1


def _negated(condition: Condition) -> Condition:
    sql, values = condition
    if not values and sql in _OPPOSITES:
        return _OPPOSITES[sql], []
    return f"(NOT {sql})", values


_OPPOSITES = {_NEVER: _ALWAYS, _ALWAYS: _NEVER}


class _Column(msgspec.Struct, frozen=True):
    """A column of one type. Types are compared here, as SQLite would convert values."""

    name: str
    holds: type | UnionType
    nullable: bool = False
    bound: Callable[[Any], object] = lambda value: value
    members: str | None = _MEMBERS
    """Subquery of the values of a list; None binds them one by one."""

    def missing(self) -> Condition:
        return (f"({self.name} IS NULL)", []) if self.nullable else (_NEVER, [])

    def compared(self, sign: str, value: object) -> Condition:
        if not self._fits(value):
            return _NEVER, []
        return self._known(f"{self.name} {sign} ?"), [self.bound(value)]

    def beginning(self, prefix: str) -> Condition:
        """Return the condition for texts that begin with a prefix, as a range of texts."""
        end = text_after(prefix)
        if end is None:
            return self.compared(">=", prefix)
        return self._known(f"{self.name} >= ? AND {self.name} < ?"), [prefix, end]

    def among(self, values: Sequence[object]) -> Condition | None:
        fitting = [self.bound(value) for value in values if self._fits(value)]
        if not fitting:
            return _NEVER, []
        if self.members is not None:
            return self._known(f"{self.name} IN {self.members}"), [_json(fitting)]
        if len(fitting) > MAX_NUMBERS:
            return None
        return self._known(f"{self.name} IN ({', '.join('?' * len(fitting))})"), fitting

    def _known(self, sql: str) -> str:
        return f"ifnull({sql}, 0)" if self.nullable else f"({sql})"  # the latter can use an index

    def _fits(self, value: object) -> bool:
        return isinstance(value, self.holds) and isinstance(value, bool) == (self.holds is bool)


def _json(values: Sequence[object]) -> str:
    plain = [value.hex() if isinstance(value, bytes) else value for value in values]
    return msgspec.json.encode(plain).decode()


def _equal(column: _Column, value: Any) -> Condition:
    return column.missing() if value is None else column.compared("=", value)


def _not_among(column: _Column, values: Any) -> Condition | None:
    among = column.among(values)
    if among is None:
        return None
    outside = _negated(among)
    if None not in values or not column.nullable:
        return outside
    present, _ = _negated(column.missing())
    return f"({present} AND {outside[0]})", outside[1]


def _exists(column: _Column, value: Any) -> Condition:
    return _negated(column.missing()) if value else column.missing()


_CONDITIONS: dict[Op, Callable[[_Column, Any], Condition | None]] = {
    Op.EQ: _equal,
    Op.NE: lambda column, value: _negated(_equal(column, value)),
    Op.GT: lambda column, value: column.compared(">", value),
    Op.GTE: lambda column, value: column.compared(">=", value),
    Op.LT: lambda column, value: column.compared("<", value),
    Op.LTE: lambda column, value: column.compared("<=", value),
    Op.IN: lambda column, value: column.among(value),
    Op.NIN: _not_among,
    Op.EXISTS: _exists,
    Op.PREFIX: lambda column, value: column.beginning(value),
}
"""Conditions by operator. SQLite does not fold texts as CONTAINS does; ANY and ALL test lists."""


def _bytes_of(identifier: UUID) -> bytes:
    return identifier.bytes


# Contents, tags and metadata are left to the core: a codec may seal them, and their tests in SQL
# would be a second truth table. Columns of texts have SQLite's default order, BINARY: in UTF-8 that
# is the order of code points.
_NUMBER = partial(_Column, holds=int | float, members=None)
_COLUMNS: dict[Kind, Callable[..., _Column]] = {
    Kind.UUID: partial(_Column, holds=UUID, bound=_bytes_of, members=_UUIDS),
    Kind.TYPE: partial(_Column, holds=int, bound=int),
    Kind.STATUS: partial(_Column, holds=int, bound=int),
    Kind.NAME: partial(_Column, holds=str),
    Kind.WHOLE: _NUMBER,
    Kind.FRACTION: _NUMBER,
    Kind.TIME: partial(_Column, holds=datetime, bound=to_microseconds),
    Kind.FLAG: partial(_Column, holds=bool, bound=int),
}
_TESTED = {
    field.name: _COLUMNS[field.kind](field.column, nullable=field.is_optional)
    for field in MEMORY_FIELDS
    if field.has(FILTERED) and field.kind in _COLUMNS
}
