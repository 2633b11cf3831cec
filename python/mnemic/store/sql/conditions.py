"""Conditions of statements: states, scopes, filters.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.

A filter's condition narrows the entries to those that may match: it holds for every entry that
matches. Tests that the databases and the core evaluate alike go to SQL; any other test becomes
true, and the core decides the entries that are left. The condition is true or false and never NULL.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from types import UnionType
from typing import Any, Final, NamedTuple
from uuid import UUID

from mnemic.model import Expression, MemorySortOrder, Scope
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import FILTERED, Kind
from mnemic.model.filter import All, AnyOf, Not, Op, Test
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import SEALED_COLUMNS, RowCodec
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.session import Condition

ENTRIES: Final = "mnemic.agent_memory_entries"
LINKS: Final = "mnemic.agent_memory_links"
EMBEDDINGS: Final = "mnemic.agent_memory_embeddings"

HAS_ACTIVE_STATUS: Final = "forgotten_at IS NULL AND status = 0"
"""Condition of entries that an index of active ones has, expired ones included."""

IS_PRESENT: Final = "forgotten_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
"""Condition of entries that are neither deleted nor expired; the value to bind is the time now."""

IS_ACTIVE: Final = "forgotten_at IS NULL AND status = 0 AND (expires_at IS NULL OR expires_at > ?)"
"""The same, without archived and superseded entries: those that can be found."""

IS_NOT_SUPERSEDED: Final = f"{IS_PRESENT} AND status <> 2"
"""The same, archived entries included."""


def in_scope(scope: Scope) -> Condition:
    """Return the condition that restricts a statement to a scope."""
    where: str = "agent_id = ?"
    values: list[Any] = [scope.agent_id]
    if not scope.all_users:
        where, values = _of_user(where, values, scope.user_id)
    for column, value in (("project_id", scope.project_id), ("session_id", scope.session_id)):
        if value is not None:
            where, values = f"{where} AND {column} = ?", [*values, value]
    return where, values


def _of_user(where: str, values: list[Any], user_id: str | None) -> Condition:
    # No index of PostgreSQL serves IS NOT DISTINCT FROM.
    if user_id is None:
        return f"{where} AND user_id IS NULL", values
    return f"{where} AND user_id = ?", [*values, user_id]


def visible(codec: RowCodec) -> str:
    """Return the condition of rows that a codec can read: sealed ones need a key."""
    return "true" if codec.seals else "NOT is_encrypted"


def visible_in(scope: Scope, codec: RowCodec) -> Condition:
    """Return `in_scope` without rows that a codec cannot read."""
    where, values = in_scope(scope)
    return f"{where} AND {visible(codec)}", values


def with_id(dialect: Dialect, scope: Scope, entry_id: UUID) -> Condition:
    """Return `in_scope` for an id: at most one entry, unless the scope is of all users."""
    return _with_id(dialect, scope, "id = ?", entry_id)


def with_ids(dialect: Dialect, scope: Scope, ids: Sequence[UUID]) -> Condition:
    """Return `in_scope` for ids: at most one entry of each, unless the scope is of all users."""
    if len(ids) == 1:
        return with_id(dialect, scope, ids[0])
    return _with_id(dialect, scope, dialect.among_ids("id"), list(ids))


def _with_id(
    dialect: Dialect, scope: Scope, is_wanted: str, wanted: UUID | list[UUID]
) -> Condition:
    where, values = in_scope(scope)
    where, values = f"{where} AND {is_wanted}", [*values, wanted]
    if scope.all_users:
        return where, values
    return f"{where} AND {dialect.user_key} = ?", [*values, scope.user_id or ""]


def cut(limit: int, offset: int) -> tuple[int, int]:
    """Return a limit and an offset as they are bound: no table has more rows than they can say."""
    return min(limit, sys.maxsize), min(offset, sys.maxsize)


def assigned(names: Iterable[str]) -> str:
    """Return assignments of columns, of which a sealed content may be bytes."""
    marks = {"content": "CAST(? AS text)"}
    return ", ".join(f"{name} = {marks.get(name, '?')}" for name in names)


MAX_NUMBERS: Final = 64
"""Numbers of a list that are tested in SQL. They are bound one by one: SQLite's reading of decimals
may round another way, and an array of PostgreSQL would give all of them one type."""

_NEVER, _ALWAYS = "false", "true"


class NarrowingCondition(NamedTuple):
    """An SQL condition that holds for every match.

    Attributes:
        sql: The condition; "true" or "false" if it is independent of the entry.
        values: Its bound values.
        is_exact: Whether it holds for matches alone.
    """

    sql: str
    values: list[object]
    is_exact: bool


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


def narrowed(
    dialect: Dialect, expression: Expression, *, is_negated: bool = False, seals: bool = False
) -> NarrowingCondition:
    """Return a condition that holds for every match of a filter, or of its negation.

    Negations are pushed to the tests, because the negation of a condition that holds for too many
    entries would hold for too few. Column names stand alone, without a table's name before them.

    Args:
        dialect: How the database writes conditions.
        expression: The filter.
        is_negated: Whether its negation is meant.
        seals: Whether rows may be sealed, for which a test of a sealed column becomes true.
    """
    match expression:
        case All(parts) | AnyOf(parts):
            word = "AND" if isinstance(expression, All) != is_negated else "OR"
            return _joined(
                word,
                [narrowed(dialect, part, is_negated=is_negated, seals=seals) for part in parts],
            )
        case Not(part):
            return narrowed(dialect, part, is_negated=not is_negated, seals=seals)
        case Test():
            condition = _condition(dialect, expression)
            if condition is None:
                return NarrowingCondition(_ALWAYS, [], is_exact=False)
            sql, values = _negated(condition) if is_negated else condition
            if seals and _TESTED[expression.field.name].name in SEALED_COLUMNS:
                return NarrowingCondition(f"(is_encrypted OR {sql})", values, is_exact=False)
            return NarrowingCondition(sql, values, is_exact=True)


def _joined(word: str, narrow: Sequence[NarrowingCondition]) -> NarrowingCondition:
    # Constants go, which leaves at most as many parts as the tree has tests: SQLite counts depth.
    deciding, neutral = (_NEVER, _ALWAYS) if word == "AND" else (_ALWAYS, _NEVER)
    decided = [part for part in narrow if part.sql == deciding]
    if decided:
        return NarrowingCondition(deciding, [], is_exact=any(part.is_exact for part in decided))
    is_exact = all(part.is_exact for part in narrow)
    kept = [part for part in narrow if part.sql != neutral]
    if not kept:
        return NarrowingCondition(neutral, [], is_exact)
    joined = f" {word} ".join(part.sql for part in kept)
    return NarrowingCondition(
        f"({joined})", [value for part in kept for value in part.values], is_exact
    )


def _condition(dialect: Dialect, test: Test) -> Condition | None:  # noqa: PLR0911 - one for each operator
    """Return the exact condition of a test; None if the core has to decide it."""
    column = _TESTED.get(test.field.name)
    if column is None or not _is_bindable(test.value):
        return None
    value: Any = test.value
    match test.op:
        case Op.EQ:
            return column.equal(value)
        case Op.NE:
            return _negated(column.equal(value))
        case Op.IN:
            return column.among(dialect, value)
        case Op.NIN:
            return column.not_among(dialect, value)
        case Op.EXISTS:
            return _negated(column.missing()) if value else column.missing()
        case Op.PREFIX:
            return column.beginning(value)
        case _ if test.op in _SIGNS:
            return column.compared(_SIGNS[test.op], value)
        case _:  # no database folds texts as CONTAINS does; ANY and ALL test lists
            return None


def _is_bindable(value: object) -> bool:
    """Return whether both databases have all numbers and texts of a value."""
    if isinstance(value, tuple):
        return all(map(_is_bindable, value))
    if isinstance(value, str):
        return "\0" not in value  # PostgreSQL has no such text
    return not isinstance(value, int) or _MIN_INT <= value <= _MAX_INT


def _negated(condition: Condition) -> Condition:
    sql, values = condition
    if sql in (_NEVER, _ALWAYS):
        return (_ALWAYS if sql == _NEVER else _NEVER), []
    return f"(NOT {sql})", values


_SIGNS: Final = {Op.GT: ">", Op.GTE: ">=", Op.LT: "<", Op.LTE: "<="}


_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1

# Contents, tags and metadata are left to the core: a codec may seal them, and their tests in SQL
# would be a second truth table. Columns of texts are ordered by their bytes: in UTF-8 that is the
# order of code points.
_HELD: Final[Mapping[Kind, type | UnionType]] = {
    Kind.UUID: UUID,
    Kind.TYPE: int,
    Kind.STATUS: int,
    Kind.NAME: str,
    Kind.WHOLE: int | float,
    Kind.FRACTION: int | float,
    Kind.TIME: datetime,
    Kind.FLAG: bool,
}
"""Type of the values of each kind that SQL may test."""


_BOUND: Final[Mapping[Kind, Callable[[Any], object]]] = {
    Kind.TYPE: int,
    Kind.STATUS: int,
    Kind.TIME: to_microseconds,
    # Beside a double, PostgreSQL would compare a bigint as a double too.
    Kind.WHOLE: lambda value: Decimal(value) if isinstance(value, float) else value,
}
"""Functions that return values of a kind as they are bound; others are bound unchanged."""


class _Column(NamedTuple):
    """A column of one type. Types are compared here, as a database would convert values."""

    name: str
    kind: Kind
    nullable: bool

    def missing(self) -> Condition:
        return (f"({self.name} IS NULL)", []) if self.nullable else (_NEVER, [])

    def equal(self, value: object) -> Condition:
        return self.missing() if value is None else self.compared("=", value)

    def compared(self, sign: str, value: object) -> Condition:
        if not self._fits(value):
            return _NEVER, []
        return self._known(f"{self.name} {sign} ?"), [self._bound(value)]

    def beginning(self, prefix: str) -> Condition:
        sql, values = beginning_with(prefix, self.name)
        return self._known(sql), values

    def among(self, dialect: Dialect, values: Sequence[object]) -> Condition | None:
        fitting = [self._bound(value) for value in values if self._fits(value)]
        if not fitting:
            return _NEVER, []
        if self.kind not in (Kind.WHOLE, Kind.FRACTION):
            among = dialect.among_ids if self.kind is Kind.UUID else dialect.among
            return self._known(among(self.name)), [fitting]
        if len(fitting) > MAX_NUMBERS:
            return None
        return self._known(f"{self.name} IN ({', '.join('?' * len(fitting))})"), fitting

    def not_among(self, dialect: Dialect, values: Sequence[object]) -> Condition | None:
        among = self.among(dialect, values)
        if among is None:
            return None
        outside = _negated(among)
        if None not in values or not self.nullable:
            return outside
        present, _ = _negated(self.missing())
        return f"({present} AND {outside[0]})", outside[1]

    def _bound(self, value: Any) -> object:
        bound = _BOUND.get(self.kind)
        return value if bound is None else bound(value)

    def _known(self, sql: str) -> str:
        # The latter can use an index.
        return f"coalesce({sql}, false)" if self.nullable else f"({sql})"

    def _fits(self, value: object) -> bool:
        held = _HELD[self.kind]
        return isinstance(value, held) and isinstance(value, bool) == (held is bool)


_TESTED: Final = {
    field.name: _Column(str(field.column), field.kind, field.is_optional)
    for field in MEMORY_FIELDS
    if field.has(FILTERED) and field.kind in _HELD
}

_LAST_LETTER = chr(sys.maxunicode)
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000


def text_after(prefix: str) -> str | None:
    """Return the first text, by code points, after all that begin with a prefix; None if none."""
    shorter = prefix.rstrip(_LAST_LETTER)
    if not shorter:
        return None
    following = ord(shorter[-1]) + 1
    return shorter[:-1] + chr(_AFTER_SURROGATES if following == _SURROGATES else following)


def beginning_with(prefix: str, column: str) -> Condition:
    """Return the condition of rows whose text begins with a prefix: a range of a column."""
    end = text_after(prefix)
    if end is None:
        return f"{column} >= ?", [prefix]
    return f"{column} >= ? AND {column} < ?", [prefix, end]
