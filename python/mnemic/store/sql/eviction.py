"""Which entries a write deletes to keep to its quotas: how much must go, and what goes first.

A write frees at most what it adds, of the users whom it adds to: a quota that was lowered deletes
nothing by itself, and no user's entries go for another user's. It happens in the transaction of
the write, so that both are kept or neither.
"""

from collections.abc import Collection, Sequence
from functools import reduce
from typing import Final, NamedTuple

from mnemic.errors import StorageQuotaExceededError
from mnemic.model import Scope
from mnemic.store.changes import Change
from mnemic.store.quota import NO_ENTRY_LIMITS, Quotas, limit_of
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import ENTRIES, in_scope
from mnemic.store.sql.deletes import remove
from mnemic.store.sql.selected_rows import numbers_of, selected
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.sql.usage import used_by_user, used_bytes
from mnemic.store.values import Selection

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


class Limit(NamedTuple):
    """A maximum in each unit; None is no limit.

    Attributes:
        size: Bytes of content.
        entries: Number of entries.
        tier: Name of the license tier that limits the bytes; None without one.
    """

    size: int | None
    entries: int | None
    tier: str | None = None


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
    """

    scope: Scope
    limit: Limit
    used: Amount
    added: Amount

    @property
    def excess(self) -> Amount:
        """By how much the write exceeds the limit, at most by what it adds."""
        size, entries = self.limit.size, self.limit.entries
        excess = Amount(
            0 if size is None else self.used.size + self.added.size - size,
            0 if entries is None else self.used.entries + self.added.entries - entries,
        )
        return excess.lesser(self.added)

    def error(self, *, is_of_entries: bool, evicts: bool) -> StorageQuotaExceededError:
        """Return the error of a write that exceeds the limit."""
        used, limit, added = self.used.size, self.limit.size, self.added.size
        if is_of_entries:
            used, limit, added = self.used.entries, self.limit.entries, self.added.entries
        return StorageQuotaExceededError(
            used,
            limit or 0,
            None if is_of_entries else self.limit.tier,
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
        limit = self._limit(scope)
        size = 0 if limit.size is None else _used_bytes(self._on, scope)
        entries = 0 if limit.entries is None else _number(self._on, scope)
        return _Account(scope, limit, Amount(size, entries - added.entries), added)

    def _limit(self, scope: Scope) -> Limit:
        agent, user, entries = self._write.quotas
        if scope.all_users:
            size, tier = (None, None) if agent is None else agent
            return Limit(size, entries.entries, tier)
        return Limit(limit_of(user, scope.user_id), limit_of(entries.user_entries, scope.user_id))

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
            f"AND NOT ({self._on.dialect.among()}) ORDER BY {_ORDER} LIMIT ?"
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
        among = self._on.dialect.among()
        sql = f"SELECT min(importance) FROM {ENTRIES} WHERE {where} AND {among}"
        least = self._on.value(sql, (*values, grown))
        return None if least is None else float(least)


def _used_bytes(on: SqlSession, scope: Scope) -> int:
    """Return the bytes of an agent's or a user's entries before the write."""
    if scope.all_users:
        return used_bytes(on, scope.agent_id)
    return used_by_user(on, scope.agent_id, scope.user_id)


def _number(on: SqlSession, scope: Scope) -> int:
    where, values = in_scope(scope)
    return int(on.value(f"SELECT count(*) FROM {ENTRIES} WHERE {where}", values))


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
