"""The rows that a write for many entries is for, decided inside its transaction."""

from collections.abc import Sequence
from operator import index
from typing import Any, Final, NamedTuple
from uuid import UUID

from mnemic.model import Scope
from mnemic.model.filter import Criteria
from mnemic.store.duplicates import check_unambiguous
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import ENTRIES, in_scope, visible, with_ids
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.filters import narrowed
from mnemic.store.sql.lists import matching_rows
from mnemic.store.sql.session import Condition, SqlSession

_ANY: Final[Condition] = ("true", [])


class Rows(NamedTuple):
    """Which rows a statement is for.

    Attributes:
        where: The condition.
        values: Its bound values.
        hint: Hint, behind the table's name, of how to reach them.
    """

    where: str
    values: Sequence[Any]
    hint: str = ""


def of_rows(dialect: Dialect, agent_id: str, rows: Sequence[int]) -> Rows:
    """Return rows of an agent by their numbers."""
    among, values = dialect.among_rows(rows)
    return Rows(f"agent_id = ? AND {among}", [agent_id, *values], dialect.by_row)


def selected(
    on: SqlSession, codec: RowCodec, scope: Scope, criteria: Criteria, state: Condition = _ANY
) -> Rows:
    """Return the rows of the selected entries of a scope.

    Args:
        on: In the transaction that writes.
        codec: Codec of the entries; those that it cannot read match no filter.
        scope: The scope.
        criteria: The entries.
        state: A further condition.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    which = Rows(*in_scope(scope))
    if criteria.ids is not None:
        rows = _rows_of_ids(on, scope, criteria.ids)
        which = of_rows(on.dialect, scope.agent_id, rows)
    which = _narrowed(which, *state)
    if criteria.expression is None:
        return which
    sql, bound, is_exact = narrowed(on.dialect, criteria.expression, seals=codec.seals)
    which = _narrowed(which, f"{visible(codec)} AND ({sql})", bound)
    if is_exact:
        return which
    found = matching_rows(
        on, codec, criteria.expression, (which.where, list(which.values)), which.hint
    )
    return of_rows(on.dialect, scope.agent_id, found)


def _narrowed(which: Rows, where: str, values: Sequence[Any]) -> Rows:
    return Rows(f"{which.where} AND {where}", [*which.values, *values], which.hint)


def numbers_of(on: SqlSession, which: Rows, limit: int | None = None) -> list[int]:
    """Return the numbers of rows, or of some of them, ascending."""
    some = "" if limit is None else f" LIMIT {limit}"
    sql = f"SELECT row FROM {ENTRIES} {which.hint} WHERE {which.where}{some}"
    found = on.fetch(sql, which.values)
    with on.dialect.reading_stored("a row's number"):  # in a damaged file it may be anything
        return sorted(index(row) for (row,) in found)


def _rows_of_ids(on: SqlSession, scope: Scope, ids: Sequence[UUID]) -> list[int]:
    """Return the rows of the entries of a scope that have one of these ids, in any state."""
    where, values = with_ids(on.dialect, scope, ids)
    found = on.fetch(
        f"SELECT row, id FROM {ENTRIES} {on.dialect.by_index('id')} WHERE {where}", values
    )
    check_unambiguous(scope, [entry_id for _, entry_id in found])
    with on.dialect.reading_stored("a row's number"):
        return [index(row) for row, _ in found]
