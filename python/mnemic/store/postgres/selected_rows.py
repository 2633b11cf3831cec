"""The rows of a scope that a filter selects."""

from collections.abc import Sequence
from typing import Any, Final

from mnemic.model import Scope
from mnemic.model.filter import Criteria
from mnemic.store.duplicates import check_unambiguous
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import AMONG, ENTRIES, in_scope, visible
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.filters import narrowed
from mnemic.store.sql.lists import matching_rows
from mnemic.store.sql.session import Condition

_ANY: Final[Condition] = ("true", [])


def selected(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    state: Condition = _ANY,
) -> list[int]:
    """Return the rows of the selected entries of a scope, ascending.

    Raises:
        AmbiguousIdError: If the scope is of all users, and several have one of the ids.
    """
    where, values = in_scope(scope)
    if criteria.ids is not None:
        sql = f"SELECT row, id FROM {ENTRIES} WHERE {where} AND id = ANY(%s)"
        found = session.fetch(sql, (*values, list(criteria.ids)))
        check_unambiguous(scope, [entry_id for _, entry_id in found])
        where, values = f"{where} AND {AMONG}", [*values, [row for row, _ in found]]
    where, values = f"{where} AND {state[0]}", [*values, *state[1]]
    if criteria.expression is None:
        return rows_where(session, where, values)
    sql, bound, is_exact = narrowed(session.dialect, criteria.expression, seals=codec.seals)
    where, values = f"{where} AND {visible(codec)} AND ({sql})", [*values, *bound]
    if is_exact:
        return rows_where(session, where, values)
    return matching_rows(session, codec, criteria.expression, (where, values))


def rows_where(session: Session, where: str, values: Sequence[Any]) -> list[int]:
    """Return the rows of a condition, ascending."""
    sql = f"SELECT row FROM {ENTRIES} WHERE {where} ORDER BY row"
    return [row for (row,) in session.fetch(sql, values)]
