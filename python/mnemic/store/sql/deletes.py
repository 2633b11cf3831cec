"""The deletions of the stores in SQL, and their undoing; what a write deletes to keep to quotas.

For a quota a write frees at most what it adds, of the users whom it adds to: a quota that was
lowered deletes nothing by itself, and no user's entries go for another user's. It happens in the
transaction of the write, so that both are kept or neither.
"""

import sys
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple
from uuid import UUID

from mnemic.errors import StorageQuotaExceededError
from mnemic.model import Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change
from mnemic.store.operations import (
    Delete,
    DeleteAll,
    ForgetAgent,
    Purge,
    Restore,
    SoftDelete,
    SoftDeleteAll,
)
from mnemic.store.quota import NO_ENTRY_LIMITS, Quotas, limit_of
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, in_scope, single, with_id
from mnemic.store.sql.lists import Rows, numbers_of, of_rows, selected
from mnemic.store.sql.sealing import delete_keys
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.sql.usage import number_of, used_bytes
from mnemic.store.values import Selection

_MARK: Final = f"UPDATE {ENTRIES} SET forgotten_at = ? WHERE agent_id = ? AND row = ?"


def soft_delete(on: SqlSession, codec: RowCodec, wanted: SoftDelete) -> bool | None:
    """Mark an entry as deleted; return whether it was not before, None if there is none."""
    del codec
    agent_id, entry_id = wanted.agent_id, wanted.entry_id
    where, values = with_id(on.dialect, wanted.scope, entry_id)
    sql = f"SELECT row, user_id, forgotten_at FROM {ENTRIES} WHERE {where}"
    found = single(on.fetch(sql, values), wanted.scope, entry_id)
    if found is None:
        return None
    row, user_id, forgotten_at = found
    if forgotten_at is not None:
        return False
    on.run(_MARK, (to_microseconds(wanted.now), agent_id, row))
    log_changes(on, agent_id, [Change(row, entry_id.bytes, "forget", user_id)])
    return True


def restore(on: SqlSession, codec: RowCodec, wanted: Restore) -> bool:
    """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
    del codec
    agent_id, entry_id = wanted.agent_id, wanted.entry_id
    where, values = with_id(on.dialect, wanted.scope, entry_id)
    sql = (
        f"SELECT row, user_id FROM {ENTRIES} WHERE {where} "
        "AND forgotten_at >= ? AND (expires_at IS NULL OR expires_at > ?)"
    )
    times = to_microseconds(wanted.oldest), to_microseconds(wanted.now)
    found = single(on.fetch(sql, (*values, *times)), wanted.scope, entry_id)
    if found is None:
        return False
    row, user_id = found
    on.run(_MARK, (None, agent_id, row))
    log_changes(on, agent_id, [Change(row, entry_id.bytes, "restore", user_id)])
    return True


def delete(on: SqlSession, codec: RowCodec, wanted: Delete) -> list[UUID]:
    """Delete an entry permanently, marked as deleted or not; return its id."""
    where, values = with_id(on.dialect, wanted.scope, wanted.entry_id)
    deleted = _removed(on, codec, Rows(where, values))
    single(deleted, wanted.scope, wanted.entry_id)
    return _logged(on, wanted.agent_id, deleted)


def soft_delete_all(on: SqlSession, codec: RowCodec, wanted: SoftDeleteAll) -> list[UUID]:
    """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
    agent_id, present = wanted.agent_id, ("forgotten_at IS NULL", list[Any]())
    rows = selected(on, codec, wanted.scope, wanted.criteria, present)
    marked = on.dialect.mark_deleted(on, agent_id, rows, to_microseconds(wanted.now))
    changes = [
        Change(row, entry_id, "forget", user_id) for row, entry_id, user_id in sorted(marked)
    ]
    return _logged(on, agent_id, changes)


def delete_all(on: SqlSession, codec: RowCodec, wanted: DeleteAll, limit: int | None) -> list[UUID]:
    """Delete the selected entries of a scope permanently, or some; return their ids."""
    which = selected(on, codec, wanted.scope, wanted.criteria)
    return _delete(on, codec, wanted.agent_id, which, limit)


def purge(on: SqlSession, codec: RowCodec, wanted: Purge, limit: int | None) -> list[UUID]:
    """Delete permanently what was deleted or expired before `oldest`; return the ids."""
    where, values = in_scope(wanted.scope)
    last = to_microseconds(wanted.oldest) - 1
    latest = last if wanted.expired is None else max(last, to_microseconds(wanted.expired))
    deleted: list[UUID] = []
    for moment, bound in (("forgotten_at", last), ("expires_at", latest)):
        due = Rows(f"{where} AND {moment} <= ?", [*values, bound])
        deleted += _delete(on, codec, wanted.agent_id, due, limit)
    return deleted


def forget_agent(
    on: SqlSession, codec: RowCodec, wanted: ForgetAgent, limit: int | None
) -> list[UUID]:
    """Destroy the keys of an agent, and delete its entries; return their ids."""
    delete_keys(on, wanted.agent_id)
    everyone = Scope(wanted.agent_id, all_users=True)
    return delete_all(on, codec, DeleteAll(everyone), limit)


def _delete(
    on: SqlSession, codec: RowCodec, agent_id: str, which: Rows, limit: int | None
) -> list[UUID]:
    if limit is not None:
        which = of_rows(on.dialect, agent_id, numbers_of(on, which, limit))
    return _logged(on, agent_id, _removed(on, codec, which))


def remove(on: SqlSession, codec: RowCodec, agent_id: str, rows: Sequence[int]) -> list[Change]:
    """Delete rows, with vectors and links, in ascending order; the caller logs that."""
    if not rows:
        return []
    return _removed(on, codec, of_rows(on.dialect, agent_id, rows))


def _removed(on: SqlSession, codec: RowCodec, which: Rows) -> list[Change]:
    where, values, hint = which
    returned = f"row, id, user_id, {codec.content_size_sql}"
    sql = f"DELETE FROM {ENTRIES} {hint} WHERE {where} RETURNING {returned}"
    return [
        Change(row, entry_id, "delete", user_id, -size)
        for row, entry_id, user_id, size in sorted(on.fetch(sql, values))
    ]


def _logged(on: SqlSession, agent_id: str, changes: Sequence[Change]) -> list[UUID]:
    """Log changes; return the ids of their entries."""
    if changes:
        log_changes(on, agent_id, changes)
    return ids_of(on, changes)


def ids_of(on: SqlSession, changes: Iterable[Change]) -> list[UUID]:
    """Return the ids of changed entries.

    Raises:
        StoreCorruptError: If one is invalid.
    """
    with on.dialect.reading_stored("a memory's id"):
        return [uuid_of(change.entry_id) for change in changes]


_ORDER: Final = (
    "ended_at IS NULL, ended_at, status <> 2, importance, access_count, "
    "coalesce(last_accessed_at, created_at), created_at, id"
)
"""The order, in SQL: deleted and expired entries, the longest ago first; then superseded ones, and
then all others; of these the least important, the least accessed, the one whose last access or
creation is the longest ago, the oldest, the smallest id."""

_ENDED_AT: Final = "coalesce(forgotten_at, CASE WHEN expires_at <= ? THEN expires_at END)"
"""When an entry was deleted or has expired, in SQL; NULL for one that is present."""

_IS_EVICTABLE: Final = "(ended_at IS NOT NULL OR (importance < 1 AND importance <= ?))"
"""Condition, in SQL, of entries that may go for one of an importance."""

_AT_ONCE: Final = 16
_STEP: Final = 8
"""Candidates that are read at first, and how many times more each time that they do not suffice."""


class Amount(NamedTuple):
    """Bytes of content, and a number of entries."""

    size: int = 0
    entries: int = 0

    def plus(self, other: "Amount") -> "Amount":
        """Return the sum of two."""
        return Amount(self.size + other.size, self.entries + other.entries)

    def without(self, other: "Amount") -> "Amount":
        """Return what is left of it, at least 0."""
        return Amount(max(0, self.size - other.size), max(0, self.entries - other.entries))

    def lesser(self, other: "Amount") -> "Amount":
        """Return the smaller of both, in each unit, at least 0."""
        size, entries = min(self.size, other.size), min(self.entries, other.entries)
        return Amount(max(0, size), max(0, entries))

    def greater(self, other: "Amount") -> "Amount":
        """Return the larger of both, in each unit."""
        return Amount(max(self.size, other.size), max(self.entries, other.entries))


class Write(NamedTuple):
    """A write whose changes are not logged yet.

    Attributes:
        agent_id: The agent.
        changes: What it has done.
        quotas: Its quotas.
        now: Its time, in microseconds since 1970 in UTC.
        kept: Rows that must stay, beside those that changed.
    """

    agent_id: str
    changes: Sequence[Change]
    quotas: Quotas
    now: int
    kept: Collection[int] = ()


def evict_entries(on: SqlSession, codec: RowCodec, write: Write) -> list[Change]:
    """Delete entries so that a write keeps to its quotas; the caller logs that with the write.

    Without eviction none are deleted, and budgets of entries alone are checked: bytes are checked
    where changes are logged.

    Returns:
        The deletions, in the order in which they make room.

    Raises:
        StorageQuotaExceededError: If the write exceeds a budget of entries, or with eviction any
            quota, and not enough may go.
    """
    if write.quotas.entry_limits == NO_ENTRY_LIMITS or not write.changes:
        return []
    rows = _Eviction(on, codec, write).rows()
    place = {row: at for at, row in enumerate(rows)}
    return sorted(remove(on, codec, write.agent_id, rows), key=lambda change: place[change.row])


def remove_others(
    on: SqlSession, codec: RowCodec, which: Selection, kept: Collection[int]
) -> list[Change]:
    """Delete the selected entries but those of some rows; the caller logs that."""
    found = numbers_of(on, selected(on, codec, *which))
    rows = [row for row in found if row not in kept]
    return remove(on, codec, which.scope.agent_id, rows)


class _Account(NamedTuple):
    """What an agent or a user may store, has stored, and gets by a write.

    Attributes:
        scope: All entries of the agent, or those of the user.
        limit: The maximum.
        used: What was stored before the write.
        added: What the write adds; negative where it takes away.
        tier: Name of the license tier that limits the bytes; None without one.
    """

    scope: Scope
    limit: Amount
    used: Amount
    added: Amount
    tier: str | None = None

    @property
    def excess(self) -> Amount:
        """By how much the write exceeds the limit, at most by what it adds."""
        return self.used.plus(self.added).without(self.limit).lesser(self.added)

    def error(self, *, is_of_entries: bool, evicts: bool) -> StorageQuotaExceededError:
        """Return the error of a write that exceeds the limit."""
        used, limit, added = self.used.size, self.limit.size, self.added.size
        if is_of_entries:
            used, limit, added = self.used.entries, self.limit.entries, self.added.entries
        return StorageQuotaExceededError(
            used,
            limit,
            None if is_of_entries else self.tier,
            "agent" if self.scope.all_users else "user",
            self.scope.user_id,
            added=added,
            unit="entries" if is_of_entries else "bytes",
            when_full="evict" if evicts else "refuse",
        )


class _Eviction:
    """Chooses the rows to delete for a write.

    Args:
        on: In the transaction of the write, which is not logged yet.
        codec: Codec of the entries.
        write: The write. What it touches may not go for it. What is present may only if it is no
            more important than each entry of the user that grows, and never with an importance of
            1.
    """

    def __init__(self, on: SqlSession, codec: RowCodec, write: Write) -> None:
        self._on = on
        self._size = codec.content_size_sql
        self._write = write
        self._evicts = write.quotas.entry_limits.evicts

    def rows(self) -> list[int]:
        """Return the rows to delete, in the order in which they make room."""
        agent_id, added = self._write.agent_id, self._added_by_user()
        agent = self._account(Scope(agent_id, all_users=True), reduce(Amount.plus, added.values()))
        rows: list[int] = []
        excess = agent.excess
        for user_id, amount in added.items():
            user = self._account(Scope(agent_id, user_id), amount)
            freed = Amount()
            needed = user.excess.greater(excess.lesser(amount))
            if self._evicts and any(needed):
                chosen, freed = self._first_rows(user_id, needed)
                rows += chosen
            self._check(user, user.excess.without(freed))
            excess = excess.without(freed)
        self._check(agent, excess)
        return rows

    def _added_by_user(self) -> dict[str | None, Amount]:
        """Return what changes add for each user, in the order of the first change of each."""
        added: dict[str | None, Amount] = {}
        for change in self._write.changes:
            amount = Amount(change.size, int(change.kind == "add"))
            added[change.user_id] = added.get(change.user_id, Amount()).plus(amount)
        return added

    def _account(self, scope: Scope, added: Amount) -> _Account:
        agent, user, entries = self._write.quotas
        if scope.all_users:
            size, tier = (None, None) if agent is None else agent
            number = entries.entries
        else:
            size, tier = limit_of(user, scope.user_id), None
            number = limit_of(entries.user_entries, scope.user_id)
        used = Amount(
            0 if size is None else used_bytes(self._on, scope),
            0 if number is None else number_of(self._on, scope) - added.entries,
        )
        unlimited = sys.maxsize
        limit = Amount(unlimited if size is None else size, unlimited if number is None else number)
        return _Account(scope, limit, used, added, tier)

    def _check(self, account: _Account, excess: Amount) -> None:
        """Raise if a write still exceeds a limit; without eviction bytes are checked elsewhere."""
        if excess.entries or (excess.size and self._evicts):
            raise account.error(is_of_entries=bool(excess.entries), evicts=self._evicts)

    def _first_rows(self, user_id: str | None, needed: Amount) -> tuple[list[int], Amount]:
        """Return the first rows that free enough, or all that may go, and what they free."""
        number = max(_AT_ONCE, needed.entries)
        while True:
            found = self._candidates(user_id, number)
            rows, freed = _enough(found, needed)
            if len(found) < number or not any(needed.without(freed)):
                return rows, freed
            number *= _STEP

    def _candidates(self, user_id: str | None, number: int) -> list[Columns]:
        """Return the first rows of a user that may go for the write, with the bytes of each."""
        write = self._write
        where, values = in_scope(Scope(write.agent_id, user_id))
        sql = (
            f"SELECT row, size FROM (SELECT *, {self._size} AS size, {_ENDED_AT} AS ended_at "
            f"FROM {ENTRIES} WHERE {where}) AS own WHERE {_IS_EVICTABLE} "
            f"AND NOT ({self._on.dialect.among('row')}) ORDER BY {_ORDER} LIMIT ?"
        )
        kept = [*write.kept, *(change.row for change in write.changes)]
        bound = (write.now, *values, self._least_importance(user_id), kept, number)
        return self._on.fetch(sql, bound)

    def _least_importance(self, user_id: str | None) -> float | None:
        """Return the least importance of the user's entries that grow."""
        grown = [
            change.row
            for change in self._write.changes
            if change.user_id == user_id and (change.kind == "add" or change.size > 0)
        ]
        where, values = in_scope(Scope(self._write.agent_id, user_id))
        among = self._on.dialect.among("row")
        sql = f"SELECT min(importance) FROM {ENTRIES} WHERE {where} AND {among}"
        least = self._on.value(sql, (*values, grown))
        return None if least is None else float(least)


def _enough(found: Sequence[Columns], needed: Amount) -> tuple[list[int], Amount]:
    """Return the first rows that free enough, without those that free nothing needed."""
    rows: list[int] = []
    freed = Amount()
    for row, size in found:
        missing = needed.without(freed)
        if not any(missing):
            break
        if missing.entries or size:
            rows.append(row)
            freed = freed.plus(Amount(size, 1))
    return rows, freed
