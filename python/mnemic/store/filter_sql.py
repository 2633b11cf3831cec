"""Compiles a parsed filter to an SQL condition that narrows `agent_memory_entries`.

The condition holds for every entry that matches. Tests that a database and the core evaluate alike
go to SQL; any other test becomes true, and the core decides the entries that are left. The
condition is true or false and never NULL. Values are bound; only constants of this module and of a
dialect are concatenated.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import UnionType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from mnemic.model import Expression, MemorySortOrder
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import FILTERED, Kind
from mnemic.model.filter import All, AnyOf, Not, Op, Test
from mnemic.store.sealed_columns import SEALED_COLUMNS

Condition: TypeAlias = tuple[str, list[Any]]
"""SQL, and the values bound to its placeholders."""


class Dialect(Protocol):
    """How a database writes conditions.

    Attributes:
        mark: Placeholder of a value.
        never: The condition that no row meets.
        always: The condition that every row meets.
        sealed: The condition that a row is sealed.
        holds_nul: Whether texts may have a NUL; else the core decides about values with one.
        bound: Functions that return values of a kind as they are bound; others are bound unchanged.
    """

    mark: str
    never: str
    always: str
    sealed: str
    holds_nul: bool
    bound: Mapping[Kind, Callable[[Any], object]]

    def known(self, condition: str) -> str:
        """Return a condition that is false where the given one is NULL."""
        ...

    def among(self, column: str, kind: Kind, values: Sequence[object]) -> Condition | None:
        """Return the condition that a column has one of these values; None if SQL cannot."""
        ...


class NarrowingCondition(NamedTuple):
    """An SQL condition that holds for every match.

    Attributes:
        sql: The condition; `never` or `always` of the dialect if it is independent of the entry.
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


class FilterSql:
    """Compiles filters for one database.

    Args:
        dialect: How the database writes conditions.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._never, self._always = dialect.never, dialect.always
        self._is_sealed = dialect.sealed
        self._holds_nul = dialect.holds_nul
        self._tested = {
            field.name: _Column(dialect, str(field.column), field.kind, field.is_optional)
            for field in MEMORY_FIELDS
            if field.has(FILTERED) and field.kind in _HELD
        }

    def narrowed(
        self, expression: Expression, *, is_negated: bool = False, seals: bool = False
    ) -> NarrowingCondition:
        """Return a condition that holds for every match of a filter, or of its negation.

        Negations are pushed to the tests, because the negation of a condition that holds for too
        many entries would hold for too few. Column names stand alone, without a table's name before
        them.

        Args:
            expression: The filter.
            is_negated: Whether its negation is meant.
            seals: Whether rows may be sealed, for which a test of a sealed column becomes true.
        """
        match expression:
            case All(parts):
                word = "OR" if is_negated else "AND"
                return self._joined(word, parts, is_negated=is_negated, seals=seals)
            case AnyOf(parts):
                word = "AND" if is_negated else "OR"
                return self._joined(word, parts, is_negated=is_negated, seals=seals)
            case Not(part):
                return self.narrowed(part, is_negated=not is_negated, seals=seals)
            case Test():
                condition = self._condition(expression)
                if condition is None:
                    return NarrowingCondition(self._always, [], is_exact=False)
                sql, values = self._negated(condition) if is_negated else condition
                if seals and _COLUMNS[expression.field.name] in SEALED_COLUMNS:
                    return NarrowingCondition(
                        f"({self._is_sealed} OR {sql})", values, is_exact=False
                    )
                return NarrowingCondition(sql, values, is_exact=True)

    def _joined(
        self, word: str, parts: Sequence[Expression], *, is_negated: bool, seals: bool
    ) -> NarrowingCondition:
        narrow = [self.narrowed(part, is_negated=is_negated, seals=seals) for part in parts]
        # Constants go, which leaves at most as many parts as the tree has tests: SQLite counts
        # depth.
        constants = self._never, self._always
        deciding, neutral = constants if word == "AND" else constants[::-1]
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

    def _condition(self, test: Test) -> Condition | None:  # noqa: PLR0911 - one for each operator
        """Return the exact condition of a test; None if the core has to decide it."""
        column = self._tested.get(test.field.name)
        if column is None or not self._is_bindable(test.value):
            return None
        value: Any = test.value
        match test.op:
            case Op.EQ:
                return column.equal(value)
            case Op.NE:
                return self._negated(column.equal(value))
            case Op.IN:
                return column.among(value)
            case Op.NIN:
                return self._not_among(column, value)
            case Op.EXISTS:
                return self._negated(column.missing()) if value else column.missing()
            case Op.PREFIX:
                return column.beginning(value)
            case _ if test.op in _SIGNS:
                return column.compared(_SIGNS[test.op], value)
            case _:  # no database folds texts as CONTAINS does; ANY and ALL test lists
                return None

    def _is_bindable(self, value: object) -> bool:
        """Return whether the database has all numbers and texts of a value."""
        if isinstance(value, tuple):
            return all(map(self._is_bindable, value))
        if isinstance(value, str):
            return self._holds_nul or "\0" not in value
        return not isinstance(value, int) or _MIN_INT <= value <= _MAX_INT

    def _not_among(self, column: "_Column", values: Any) -> Condition | None:
        among = column.among(values)
        if among is None:
            return None
        outside = self._negated(among)
        if None not in values or not column.nullable:
            return outside
        present, _ = self._negated(column.missing())
        return f"({present} AND {outside[0]})", outside[1]

    def _negated(self, condition: Condition) -> Condition:
        sql, values = condition
        if not values and sql in (self._never, self._always):
            return (self._always if sql == self._never else self._never), []
        return f"(NOT {sql})", values


_COLUMNS: Final = {field.name: field.column for field in MEMORY_FIELDS}
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


class _Column(NamedTuple):
    """A column of one type. Types are compared here, as a database would convert values."""

    dialect: Dialect
    name: str
    kind: Kind
    nullable: bool

    def missing(self) -> Condition:
        return (f"({self.name} IS NULL)", []) if self.nullable else (self.dialect.never, [])

    def equal(self, value: object) -> Condition:
        return self.missing() if value is None else self.compared("=", value)

    def compared(self, sign: str, value: object) -> Condition:
        if not self._fits(value):
            return self.dialect.never, []
        return self._known(f"{self.name} {sign} {self.dialect.mark}"), [self._bound(value)]

    def beginning(self, prefix: str) -> Condition:
        """Return the condition for texts that begin with a prefix, as a range of texts."""
        end, mark = text_after(prefix), self.dialect.mark
        if end is None:
            return self.compared(">=", prefix)
        return self._known(f"{self.name} >= {mark} AND {self.name} < {mark}"), [prefix, end]

    def among(self, values: Sequence[object]) -> Condition | None:
        fitting = [self._bound(value) for value in values if self._fits(value)]
        if not fitting:
            return self.dialect.never, []
        condition = self.dialect.among(self.name, self.kind, fitting)
        return None if condition is None else (self._known(condition[0]), condition[1])

    def _bound(self, value: Any) -> object:
        bound = self.dialect.bound.get(self.kind)
        return value if bound is None else bound(value)

    def _known(self, sql: str) -> str:
        # The latter can use an index.
        return self.dialect.known(sql) if self.nullable else f"({sql})"

    def _fits(self, value: object) -> bool:
        held = _HELD[self.kind]
        return isinstance(value, held) and isinstance(value, bool) == (held is bool)


_LAST_LETTER = chr(sys.maxunicode)
_SURROGATES, _AFTER_SURROGATES = 0xD800, 0xE000


def text_after(prefix: str) -> str | None:
    """Return the first text, by code points, after all that begin with a prefix; None if none."""
    shorter = prefix.rstrip(_LAST_LETTER)
    if not shorter:
        return None
    following = ord(shorter[-1]) + 1
    return shorter[:-1] + chr(_AFTER_SURROGATES if following == _SURROGATES else following)


def beginning_with(prefix: str, column: str, mark: str) -> Condition:
    """Return the condition of rows whose text begins with a prefix: a range of a column.

    Args:
        prefix: The prefix; one without a character holds for every row.
        column: The column, which is never NULL.
        mark: Placeholder of a value.
    """
    if not prefix:
        return "true", []
    end = text_after(prefix)
    if end is None:
        return f"{column} >= {mark}", [prefix]
    return f"{column} >= {mark} AND {column} < {mark}", [prefix, end]
