"""What a write deletes to keep to its quotas.

For a quota a write frees at most what it adds, of the users whom it adds to: a quota that was
lowered deletes nothing by itself, and no user's entries go for another user's. It happens in the
transaction of the write, so that both are kept or neither.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import reduce
from typing import Final, NamedTuple

from mnemic.errors import StorageQuotaExceededError
from mnemic.model import Scope
from mnemic.store.changes import Change
from mnemic.store.values import NO_ENTRY_LIMITS, Quotas, limit_of

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


class Eviction(ABC):
    """Chooses the rows to delete for a write, which is not logged yet.

    What the write touches may not go for it. What is present may only if it is no more important
    than each entry of the user that grows, and never with an importance of 1.

    Args:
        write: The write.
    """

    def __init__(self, write: Write) -> None:
        self.write = write
        self._evicts = write.quotas.entry_limits.evicts

    def changes(self) -> list[Change]:
        """Delete entries so that the write keeps to its quotas; the caller logs that with it.

        Without eviction none are deleted, and budgets of entries alone are checked: bytes are
        checked where changes are logged.

        Returns:
            The deletions, in the order in which they make room.

        Raises:
            StorageQuotaExceededError: If the write exceeds a budget of entries, or with eviction
                any quota, and not enough may go.
        """
        if self.write.quotas.entry_limits == NO_ENTRY_LIMITS or not self.write.changes:
            return []
        rows = self._rows()
        place = {row: at for at, row in enumerate(rows)}
        return sorted(self.remove(rows), key=lambda change: place[change.row])

    @abstractmethod
    def used_bytes(self, scope: Scope) -> int:
        """Return the bytes of the contents of an agent or a user before the write."""

    @abstractmethod
    def number_of(self, scope: Scope) -> int:
        """Return the number of entries of an agent or a user, with those of the write."""

    @abstractmethod
    def least_importance(self, user_id: str | None, rows: Sequence[int]) -> float | None:
        """Return the least importance of rows of a user; None of none."""

    @abstractmethod
    def candidates(
        self, user_id: str | None, kept: Collection[int], least: float | None, number: int
    ) -> Sequence[tuple[int, int]]:
        """Return the first rows of a user that may go, with the bytes of each.

        Deleted and expired entries, the longest ago first; then superseded ones, and then all
        others; of these the least important, the least accessed, the one whose last access or
        creation is the longest ago, the oldest, the smallest id.

        Args:
            user_id: The user.
            kept: Rows that may not go.
            least: The importance up to which entries that are present may go; None is none.
            number: Maximum number of rows.
        """

    @abstractmethod
    def remove(self, rows: Sequence[int]) -> list[Change]:
        """Delete rows, with vectors and links."""

    def _rows(self) -> list[int]:
        """Return the rows to delete, in the order in which they make room."""
        agent_id, added = self.write.agent_id, self._added_by_user()
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
        for change in self.write.changes:
            amount = Amount(change.size, int(change.kind == "add"))
            added[change.user_id] = added.get(change.user_id, Amount()).plus(amount)
        return added

    def _account(self, scope: Scope, added: Amount) -> _Account:
        agent, user, entries = self.write.quotas
        if scope.all_users:
            size, tier = (None, None) if agent is None else agent
            number = entries.entries
        else:
            size, tier = limit_of(user, scope.user_id), None
            number = limit_of(entries.user_entries, scope.user_id)
        used = Amount(
            0 if size is None else self.used_bytes(scope),
            0 if number is None else self.number_of(scope) - added.entries,
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
        own = [change for change in self.write.changes if change.user_id == user_id]
        grown = [change.row for change in own if change.kind == "add" or change.size > 0]
        least = self.least_importance(user_id, grown)
        kept = {*self.write.kept, *(change.row for change in self.write.changes)}
        number = max(_AT_ONCE, needed.entries)
        while True:
            found = self.candidates(user_id, kept, least, number)
            rows, freed = _enough(found, needed)
            if len(found) < number or not any(needed.without(freed)):
                return rows, freed
            number *= _STEP


def _enough(found: Sequence[tuple[int, int]], needed: Amount) -> tuple[list[int], Amount]:
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
