"""Which entries a write deletes to keep to its quotas: how much must go, and what goes first.

A write frees at most what it adds, of the users whom it adds to: a quota that was lowered deletes
nothing by itself, and no user's entries go for another user's. Every store does it in the
transaction of the write, so that both happen or neither.
"""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, Protocol

from mnemic.errors import StorageQuotaExceededError
from mnemic.model import Scope
from mnemic.store.changes import Change
from mnemic.store.quota import NO_ENTRY_LIMITS, Quotas, limit_of
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.session import Condition

EVICTION_ORDER: Final = (
    "ended_at IS NULL, ended_at, status <> 2, importance, access_count, "
    "coalesce(last_accessed_at, created_at), created_at, id"
)
"""The order, in SQL: deleted and expired entries, the longest ago first; then superseded ones, and
then all others; of these the least important, the least accessed, the one whose last access or
creation is the longest ago, the oldest, the smallest id."""

ENDED_AT: Final = "coalesce(forgotten_at, CASE WHEN expires_at <= {now} THEN expires_at END)"
"""When an entry was deleted or has expired, in SQL; NULL for one that is present."""

IS_EVICTABLE: Final = "(ended_at IS NOT NULL OR (importance < 1 AND importance <= {bar}))"
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


class Candidate(NamedTuple):
    """A row that may go, and the bytes of its content."""

    row: int
    size: int


class EvictionReads(Protocol):
    """Reads inside the transaction of a write, before it is logged."""

    def usage(self, scope: Scope, limit: Limit) -> Amount:
        """Return the bytes of an agent or a user before the write, and its entries after it.

        What is not limited is not read, and 0.
        """
        ...

    def candidates(self, user_id: str | None, number: int) -> list[Candidate]:
        """Return the first rows of a user, in `EVICTION_ORDER`, that may go for the write."""
        ...


class EvictionSql(Protocol):
    """What differs in the SQL of stores.

    Attributes:
        table: The entries.
        mark: The place of a bound value.
        among: Condition of a row that is one of those of a value of `rows`.
    """

    table: str
    mark: str
    among: str

    def fetch(self, sql: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run a statement in the transaction; return all its rows."""
        ...

    def rows(self, rows: Sequence[int]) -> object:
        """Return rows as one value to bind."""
        ...

    def in_scope(self, scope: Scope) -> Condition:
        """Return the condition of the entries of a scope."""
        ...

    def used_bytes(self, scope: Scope) -> int:
        """Return the bytes of an agent's or a user's entries before the write."""
        ...


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


class SqlEvictionReads:
    """The reads of a store in SQL.

    Args:
        sql: The store's.
        codec: Codec of its entries.
        write: The write. What it touches may not go for it. What is present may only if it is no
            more important than each entry of the user that grows, and never with an importance of
            1.
    """

    def __init__(self, sql: EvictionSql, codec: RowCodec, write: Write) -> None:
        self._sql = sql
        self._size = codec.content_size_sql
        self._write = write

    def usage(self, scope: Scope, limit: Limit) -> Amount:
        """Return the bytes of an agent or a user before the write, and its entries after it."""
        size = 0 if limit.size is None else self._sql.used_bytes(scope)
        return Amount(size, 0 if limit.entries is None else self._entries(scope))

    def _entries(self, scope: Scope) -> int:
        where, values = self._sql.in_scope(scope)
        sql = f"SELECT count(*) FROM {self._sql.table} WHERE {where}"
        ((number,),) = self._sql.fetch(sql, values)
        return int(number)

    def candidates(self, user_id: str | None, number: int) -> list[Candidate]:
        """Return the first rows of a user that may go for the write."""
        write, mark, table = self._write, self._sql.mark, self._sql.table
        where, values = self._sql.in_scope(Scope(write.agent_id, user_id))
        ended_at = ENDED_AT.format(now=mark)
        sql = (
            f"SELECT row, size FROM (SELECT *, {self._size} AS size, {ended_at} AS ended_at "
            f"FROM {table} WHERE {where}) AS own WHERE {IS_EVICTABLE.format(bar=mark)} "
            f"AND NOT ({self._sql.among}) ORDER BY {EVICTION_ORDER} LIMIT {mark}"
        )
        kept = self._sql.rows([*write.kept, *(change.row for change in write.changes)])
        bound = (write.now, *values, self._least_importance(user_id), kept, number)
        return [Candidate(row, size) for row, size in self._sql.fetch(sql, bound)]

    def _least_importance(self, user_id: str | None) -> float | None:
        """Return the least importance of the user's entries that grow."""
        grown = [
            change.row
            for change in self._write.changes
            if change.user_id == user_id and (change.kind == "add" or change.size > 0)
        ]
        where, values = self._sql.in_scope(Scope(self._write.agent_id, user_id))
        sql = f"SELECT min(importance) FROM {self._sql.table} WHERE {where} AND {self._sql.among}"
        ((least,),) = self._sql.fetch(sql, (*values, self._sql.rows(grown)))
        return None if least is None else float(least)


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


def rows_to_evict(reads: EvictionReads, write: Write) -> list[int]:
    """Return the rows to delete for a write, so that it keeps to its quotas, in that order.

    Without eviction there are none, and budgets of entries alone are checked: bytes are checked
    where changes are logged.

    Raises:
        StorageQuotaExceededError: If the write exceeds a budget of entries, or with eviction any
            quota, and not enough may go.
    """
    agent_id, changes, quotas, *_ = write
    if quotas.entry_limits == NO_ENTRY_LIMITS or not changes:
        return []
    added = _added_by_user(changes)
    agent = _agent_account(reads, agent_id, list(added.values()), quotas)
    rows: list[int] = []
    excess = agent.excess
    for user_id, amount in added.items():
        user = _user_account(reads, Scope(agent_id, user_id), amount, quotas)
        freed = Amount()
        needed = user.excess.greater(excess.lesser(amount))
        if quotas.entry_limits.evicts and any(needed):
            chosen, freed = _first_rows(reads, user_id, needed)
            rows += chosen
        _check(user, user.excess.without(freed), quotas)
        excess = excess.without(freed)
    _check(agent, excess, quotas)
    return rows


def in_order(changes: Sequence[Change], rows: Sequence[int]) -> list[Change]:
    """Return changes in the order of their rows."""
    place = {row: at for at, row in enumerate(rows)}
    return sorted(changes, key=lambda change: place[change.row])


def _added_by_user(changes: Sequence[Change]) -> dict[str | None, Amount]:
    """Return what changes add for each user, in the order of the first change of each."""
    added: dict[str | None, Amount] = {}
    for change in changes:
        amount = Amount(change.size, int(change.kind == "add"))
        added[change.user_id] = added.get(change.user_id, Amount()).plus(amount)
    return added


def _agent_account(
    reads: EvictionReads, agent_id: str, added: Sequence[Amount], quotas: Quotas
) -> _Account:
    size, tier = (None, None) if quotas.agent is None else quotas.agent
    total = Amount(sum(one.size for one in added), sum(one.entries for one in added))
    everyone = Scope(agent_id, all_users=True)
    return _account(reads, everyone, total, Limit(size, quotas.entry_limits.entries, tier))


def _user_account(reads: EvictionReads, scope: Scope, added: Amount, quotas: Quotas) -> _Account:
    size, entries = (
        limit_of(limit, scope.user_id) for limit in (quotas.user, quotas.entry_limits.user_entries)
    )
    return _account(reads, scope, added, Limit(size, entries))


def _account(reads: EvictionReads, scope: Scope, added: Amount, limit: Limit) -> _Account:
    size, entries = reads.usage(scope, limit)
    return _Account(scope, limit, Amount(size, entries - added.entries), added)


def _check(account: _Account, excess: Amount, quotas: Quotas) -> None:
    """Raise if a write still exceeds a limit; without eviction bytes are checked elsewhere."""
    evicts = quotas.entry_limits.evicts
    if excess.entries or (excess.size and evicts):
        raise account.error(is_of_entries=bool(excess.entries), evicts=evicts)


def _first_rows(
    reads: EvictionReads, user_id: str | None, needed: Amount
) -> tuple[list[int], Amount]:
    """Return the first rows that free enough, or all that may go, and what they free."""
    number = max(_AT_ONCE, needed.entries)
    while True:
        found = reads.candidates(user_id, number)
        rows, freed = _enough(found, needed)
        if len(found) < number or not any(needed.without(freed)):
            return rows, freed
        number *= _STEP


def _enough(found: Sequence[Candidate], needed: Amount) -> tuple[list[int], Amount]:
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
