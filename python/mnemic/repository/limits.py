"""The limits of a memory: the host's license policy, and the quota of bytes."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from mnemic.licensing import STORING, Need
from mnemic.model import Scope
from mnemic.model.new_entry import NewEntry
from mnemic.observability.telemetry import MemoryTelemetry
from mnemic.repository.settings import Settings
from mnemic.store import Store
from mnemic.store.operations import StoredAmount
from mnemic.store.values import (
    Quotas,
    check_entries,
    check_quota,
    check_user_quota,
    limit_of,
)
from mnemic.threads.sync_bridge import arrived


class Usage(NamedTuple):
    """Bytes of content, and their limit."""

    size: int
    limit: int | None


class Limits:
    """Checks licensed features and quotas of one agent.

    Args:
        settings: The options of the memory.
        store: Knows the bytes used, and erases those of evicted memories.
        agent_id: Whose bytes.
        telemetry: Publishes warnings and evictions.

    Attributes:
        license: The host's policy.
        user_quota: Bytes of content that each user may store; None is no limit.
        entry_limits: Budgets of entries, and whether the least important go for new ones.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        agent_id: str,
        telemetry: MemoryTelemetry,
    ) -> None:
        self.license = settings.license
        self._own_quota = settings.quota
        self.user_quota = settings.user_quota
        self.entry_limits = settings.entry_limits
        self._store = store
        self._agent_id = agent_id
        self._everyone = Scope(agent_id, all_users=True)
        self._telemetry = telemetry

    @property
    def quotas(self) -> Quotas:
        """All that a write is checked against; of the agent's two quotas the smaller one."""
        quota, licensed = self._own_quota, None if self.license is None else self.license.quota
        if licensed is not None and (quota is None or licensed.limit < quota.limit):
            quota = licensed
        return Quotas(quota, self.user_quota, self.entry_limits)

    def require(self, *needs: Need) -> None:
        """Raise LicenseRestrictionError if the policy does not allow what a call needs."""
        if self.license is not None:
            self.license.require(*needs)

    def require_storing(self) -> None:
        """Raise LicenseRestrictionError if the policy does not include long-term memory."""
        if self.license is not None:
            self.license.require(STORING)

    def check_capacity(self, entries: Sequence[NewEntry], quotas: Quotas) -> None:
        """Raise StorageQuotaExceededError if entries cannot fit; the write itself checks again.

        Entries with an idempotency key may be stored already, and are left to the write; so is
        everything where less important entries go for new ones.
        """
        quota, limits = quotas.agent, quotas.entry_limits
        if limits.evicts:
            return
        if not (limits.entries is limits.user_entries is None):
            self._check_number(entries)
        if quota is None and quotas.user is None:
            return
        sizes = Counter[str | None]()
        for new in entries:
            if new.key is None:
                sizes[new.entry.user_id] += len(new.entry.content.encode())
        if self.user_quota is not None:
            for user_id, size in sizes.items():
                used = self._used(Scope(self._agent_id, user_id))
                check_user_quota(self.user_quota, user_id, used, size)
        if quota is not None:
            check_quota(quota, self._used(self._everyone), sizes.total())

    def _check_number(self, entries: Sequence[NewEntry]) -> None:
        of_user, of_all = self.entry_limits.user_entries, self.entry_limits.entries
        numbers = Counter(new.entry.user_id for new in entries if new.key is None)
        for user_id, number in numbers.items():
            limit = limit_of(of_user, user_id)
            self._check_entries(Scope(self._agent_id, user_id), limit, number)
        self._check_entries(self._everyone, of_all, numbers.total())

    def _check_entries(self, scope: Scope, limit: int | None, number: int) -> None:
        if limit is not None and number:
            check_entries(limit, scope, self._store.read(StoredAmount(scope, "entries")), number)

    def usage(self, scope: Scope) -> Usage | None:
        """Return the bytes that a quota limits, as a caller of this scope may see them.

        With a quota per user these are the user's own; otherwise, and for all users, the agent's.
        """
        quota = self.quotas.agent
        if self.user_quota is not None and not scope.all_users:
            return Usage(self._used(scope), limit_of(self.user_quota, scope.user_id))
        if quota is None:
            return None
        return Usage(self._used(self._everyone), quota.limit)

    def _used(self, scope: Scope) -> int:
        """Return the bytes of the contents of a user or of the agent."""
        return self._store.read(StoredAmount(scope, "bytes"))

    async def warn(self) -> None:
        """Publish a warning where the bytes used have passed the next step of the quota."""
        quota = self.quotas.agent
        if quota is not None:
            used = self._used(self._everyone)
            await self._telemetry.used(used, quota.limit)

    async def report_evicted(self, ids: Sequence[UUID]) -> None:
        """Make known what a write deleted to make space, and erase its bytes.

        Where a reader keeps the bytes from being erased, that is repeated as after `delete`.
        """
        if not ids:
            return
        await self._telemetry.evicted(ids)
        await self.reset_warnings()
        await arrived(self._store.erase())

    async def reset_warnings(self) -> None:
        """Let warnings come again after memories were deleted permanently."""
        quota = self.quotas.agent
        if quota is not None:
            self._telemetry.freed(self._used(self._everyone), quota.limit)
