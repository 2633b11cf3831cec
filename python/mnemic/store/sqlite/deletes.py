"""SQL statements that delete entries and restore them; each runs in a transaction."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

import apsw

from mnemic.model import Scope
from mnemic.model.filter import Criteria
from mnemic.store.changes import Change
from mnemic.store.duplicates import single
from mnemic.store.filter_sql import Condition
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite.change_log import Charge, log_changes
from mnemic.store.sqlite.checksums import (
    ADD_TO_ROW,
    Sums,
    column_change,
    difference,
    rows_with_sums,
    rows_with_sums_where,
)
from mnemic.store.sqlite.damage import uuids_of
from mnemic.store.sqlite.links import links_leading_to
from mnemic.store.sqlite.selected_rows import selected
from mnemic.store.sqlite.sql import AMONG, fetch, in_scope, json_array, with_id


class RemovedEntries(NamedTuple):
    """Deleted entries, not logged yet.

    Attributes:
        changes: For the change log.
        sums: Change of the agent's sums.
    """

    changes: list[Change]
    sums: Sums


def soft_delete(connection: apsw.Connection, scope: Scope, entry_id: UUID, now: int) -> bool | None:
    """Mark an entry as deleted; return whether it was not marked before, None if there is none."""
    where, values = with_id(scope, entry_id)
    sql = f"SELECT row, user_id, forgotten_at FROM agent_memory_entries WHERE {where}"
    found = single(fetch(connection, sql, values), scope, entry_id)
    if found is None:
        return None
    row, user_id, forgotten_at = found
    if forgotten_at is not None:
        return False
    before = rows_with_sums(connection, [row])
    connection.execute(
        f"UPDATE agent_memory_entries SET forgotten_at = ?, {ADD_TO_ROW} WHERE {where} AND row = ?",
        (now, column_change("forgotten_at", None, now), *values, row),
    )
    sums = difference(before, rows_with_sums(connection, [row]))
    changes = [Change(row, entry_id.bytes, "forget", user_id)]
    log_changes(connection, scope.agent_id, changes, charge=Charge(sums=sums))
    return True


def restore(
    connection: apsw.Connection, scope: Scope, entry_id: UUID, oldest: int, now: int
) -> bool:
    """Take a forgotten entry back unless it was forgotten before `oldest` or has expired."""
    where, values = with_id(scope, entry_id)
    sql = (
        f"SELECT row, user_id, forgotten_at FROM agent_memory_entries WHERE {where} "
        "AND forgotten_at >= ? AND (expires_at IS NULL OR expires_at > ?)"
    )
    found = single(fetch(connection, sql, (*values, oldest, now)), scope, entry_id)
    if found is None:
        return False
    row, user_id, forgotten_at = found
    before = rows_with_sums(connection, [row])
    connection.execute(
        f"UPDATE agent_memory_entries SET forgotten_at = NULL, {ADD_TO_ROW} WHERE row = ?",
        (column_change("forgotten_at", forgotten_at, None), row),
    )
    sums = difference(before, rows_with_sums(connection, [row]))
    change = Change(row, entry_id.bytes, "restore", user_id)
    log_changes(connection, scope.agent_id, [change], charge=Charge(sums=sums))
    return True


def delete(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, entry_id: UUID
) -> list[UUID]:
    """Delete an entry, forgotten or not, with its vectors and links; return its id if it was."""
    where, values = with_id(scope, entry_id)
    deleted = _delete(connection, codec, scope.agent_id, where, values)
    single(deleted, scope, entry_id)
    return deleted


def soft_delete_all(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, criteria: Criteria, now: int
) -> list[UUID]:
    """Mark the selected entries of a scope as forgotten that are not; return their ids."""
    where, values = selected(connection, codec, scope, criteria, ("forgotten_at IS NULL", []))
    before = rows_with_sums_where(connection, where, values)
    forgotten = fetch(
        connection,
        f"UPDATE agent_memory_entries SET forgotten_at = ?, {ADD_TO_ROW} "
        f"WHERE {where} RETURNING row, id, user_id",
        (now, column_change("forgotten_at", None, now), *values),
    )
    if forgotten:
        sums = difference(before, rows_with_sums(connection, [row for row, *_ in forgotten]))
        changes = [Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in forgotten]
        log_changes(connection, scope.agent_id, changes, charge=Charge(sums=sums))
    return uuids_of(entry_id for _, entry_id, _ in forgotten)


def delete_all(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    criteria: Criteria,
    *,
    limit: int | None = None,
) -> list[UUID]:
    """Delete the selected entries of a scope, forgotten or not, or some; return their ids."""
    where, values = _some(connection, selected(connection, codec, scope, criteria), limit)
    return _delete(connection, codec, scope.agent_id, where, values)


def purge(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    oldest: int,
    expired: int | None,
    *,
    limit: int | None = None,
) -> list[UUID]:
    """Delete what a scope forgot before `oldest`, and what expired then or by `expired`.

    Args:
        connection: In a transaction.
        codec: Codec of the entries.
        scope: The scope.
        oldest: A time.
        expired: A time; None is `oldest`.
        limit: Maximum number of entries that were forgotten, and of those that expired.

    Returns:
        The ids of the deleted.
    """
    where, values = in_scope(scope)
    last = oldest - 1 if expired is None else max(oldest - 1, expired)
    deleted: list[UUID] = []
    for moment, bound in (("forgotten_at", oldest - 1), ("expires_at", last)):
        due = _some(connection, (f"{where} AND {moment} <= ?", [*values, bound]), limit)
        deleted += _delete(connection, codec, scope.agent_id, *due)
    return deleted


def _some(connection: apsw.Connection, which: Condition, limit: int | None) -> Condition:
    """Return the condition of some of the rows that meet a condition; of all without a limit."""
    if limit is None:
        return which
    where, values = which
    sql = f"SELECT row FROM agent_memory_entries WHERE {where} LIMIT {limit}"
    return AMONG, [json_array([row for (row,) in fetch(connection, sql, values)])]


def _delete(
    connection: apsw.Connection,
    codec: RowCodec,
    agent_id: str,
    where: str,
    values: Sequence[Any],
) -> list[UUID]:
    deleted = remove(connection, codec, where, values)
    if deleted.changes:
        log_changes(connection, agent_id, deleted.changes, charge=Charge(sums=deleted.sums))
    return uuids_of(change.entry_id for change in deleted.changes)


def remove(
    connection: apsw.Connection, codec: RowCodec, where: str, values: Sequence[Any]
) -> RemovedEntries:
    """Delete the entries that meet a condition, with vectors and links; the caller logs that."""
    sql = (
        f"DELETE FROM agent_memory_entries WHERE {where} "
        f"RETURNING row, id, user_id, {codec.content_size_sql}"
    )
    before = rows_with_sums_where(connection, where, values)
    sums = links_leading_to(connection, before, where, values)
    changes = [
        Change(row, entry_id, "delete", user_id, -size)
        for row, entry_id, user_id, size in fetch(connection, sql, values)
    ]
    return RemovedEntries(changes, sums.plus(difference(before, [])))
