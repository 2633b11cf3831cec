"""The rows of a scope that a filter selects."""

import sys
from collections.abc import Generator, Sequence
from typing import Any, Final

from mnemic.model import Expression, Scope
from mnemic.model.filter import Criteria
from mnemic.store.duplicates import check_unambiguous
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import AMONG, ENTRIES, ROW, in_scope, visible
from mnemic.store.postgres.stored import reading_stored
from mnemic.store.row_codec import RowCodec
from mnemic.store.selection import selected as decided
from mnemic.store.sql.filters import NarrowingCondition, narrowed
from mnemic.store.sql.lists import EntryList, decision
from mnemic.store.sql.session import Condition

_ANY: Final[Condition] = ("true", [])
AT_ONCE: Final = 512
"""Rows that a list reads at once."""


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


def listed(session: Session, codec: RowCodec, wanted: EntryList) -> list[Columns]:
    """Return the rows of a list; the core decides them unless the condition is exact."""
    narrow, expression, order, limit, offset = wanted
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {narrow.sql} ORDER BY {order}"
    if narrow.is_exact:
        cut = (min(limit, sys.maxsize), min(offset, sys.maxsize))
        return session.fetch(f"{sql} LIMIT %s OFFSET %s", (*narrow.values, *cut))
    rows, decide = (
        streamed(session, sql, narrow.values),
        decision(codec, expression, reading_stored),
    )
    return decided(rows, decide, limit=limit, offset=offset)


def streamed(
    session: Session, sql: str, values: Sequence[object]
) -> Generator[Columns, None, None]:
    """Yield the rows that a statement finds."""
    for batch in session.batches(sql, values, AT_ONCE):
        yield from batch


def matching_rows(
    session: Session, codec: RowCodec, expression: Expression, where: Condition
) -> list[int]:
    """Return the rows of a condition that match a filter, decided in batches by the core."""
    narrow = NarrowingCondition(*where, is_exact=False)
    found = listed(session, codec, EntryList(narrow, expression, "row", sys.maxsize))
    return [row for row, *_ in found]
