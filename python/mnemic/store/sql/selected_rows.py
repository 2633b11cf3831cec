"""The rows that a write for many entries is for, decided inside its transaction."""

from collections.abc import Sequence
from operator import index
from typing import Any, Final
from uuid import UUID

from mnemic.model import Scope
from mnemic.model.filter import Criteria
from mnemic.store.duplicates import check_unambiguous
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import ENTRIES, in_scope, visible, with_ids
from mnemic.store.sql.filters import narrowed
from mnemic.store.sql.lists import matching_rows
from mnemic.store.sql.session import Condition, SqlSession

_ANY: Final[Condition] = ("true", [])


def selected(
    on: SqlSession,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    state: Condition = _ANY,
    *,
    limit: int | None = None,
) -> list[int]:
    """Return the rows of the selected entries of a scope, ascending.

    Args:
        on: In the transaction that writes.
        codec: Codec of the entries; those that it cannot read match no filter.
        scope: The scope.
        criteria: The entries.
        state: A further condition.
        limit: Maximum number of rows, which are any of them then; None is no limit.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    where, values = in_scope(scope)
    hint = ""
    if criteria.ids is not None:
        hint = on.dialect.by_row
        of_rows, rows = on.dialect.among_rows(_rows_of_ids(on, scope, criteria.ids))
        where, values = f"{where} AND {of_rows}", [*values, *rows]
    where, values = f"{where} AND {state[0]}", [*values, *state[1]]
    if criteria.expression is None:
        return rows_where(on, where, values, hint=hint, limit=limit)
    sql, bound, is_exact = narrowed(on.dialect, criteria.expression, seals=codec.seals)
    where, values = f"{where} AND {visible(codec)} AND ({sql})", [*values, *bound]
    if is_exact:
        return rows_where(on, where, values, hint=hint, limit=limit)
    found = matching_rows(on, codec, criteria.expression, (where, values), hint)
    return sorted(found)[:limit]


def rows_where(
    on: SqlSession,
    where: str,
    values: Sequence[Any],
    *,
    hint: str = "",
    limit: int | None = None,
) -> list[int]:
    """Return the rows of a condition, or some of them, ascending."""
    some = "" if limit is None else f" LIMIT {limit}"
    found = on.fetch(f"SELECT row FROM {ENTRIES} {hint} WHERE {where}{some}", values)
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
