"""The limits of a memory: the host's license policy, and the quota of bytes."""

from collections.abc import Sequence
from operator import attrgetter

from mnemic.licensing import STORING, LicensePolicy, Need, Quota, checked_policy
from mnemic.model import NewEntry, validation
from mnemic.observability.telemetry import Telemetry
from mnemic.store import Store
from mnemic.store.quota import check_quota


class Limits:
    """Checks licensed features and quotas of one agent.

    Args:
        license: The host's policy; with None nothing is checked.
        quota: Bytes of content that the agent may store, beside the policy's quota; None is none.
        store: Knows the bytes used.
        agent_id: Whose bytes.
        telemetry: Publishes warnings.

    Attributes:
        license: The host's policy.
    """

    def __init__(
        self,
        license: LicensePolicy | None,  # noqa: A002 - the field's name everywhere
        quota: int | None,
        *,
        store: Store,
        agent_id: str,
        telemetry: Telemetry,
    ) -> None:
        self.license = checked_policy(license)
        self._own_quota = (
            None if quota is None else Quota(validation.whole("quota", quota, minimum=0))
        )
        self._store = store
        self._agent_id = agent_id
        self._telemetry = telemetry

    @property
    def quota(self) -> Quota | None:
        """The smaller one of the two quotas; None is no limit."""
        licensed = None if self.license is None else self.license.quota
        if self._own_quota is None or licensed is None:
            return self._own_quota or licensed
        return min(self._own_quota, licensed, key=attrgetter("limit"))

    def require(self, *needs: Need) -> None:
        """Raise LicenseRestrictionError if the policy does not allow what a call needs."""
        if self.license is not None:
            self.license.require(*needs)

    def require_storing(self) -> None:
        """Raise LicenseRestrictionError if the policy does not include long-term memory."""
        self.require(STORING)

    async def check_room(self, entries: Sequence[NewEntry]) -> None:
        """Raise StorageQuotaExceededError if entries cannot fit; the write itself checks again.

        Entries with an idempotency key may be stored already, and are left to the write.
        """
        quota = self.quota
        size = sum(len(new.entry.content.encode()) for new in entries if new.key is None)
        if quota is None or not size:
            return
        used = self._store.used_bytes(self._agent_id)
        check_quota(quota, used, size)

    async def warn(self) -> None:
        """Publish a warning where the bytes used have passed the next step of the quota."""
        quota = self.quota
        if quota is not None:
            used = self._store.used_bytes(self._agent_id)
            await self._telemetry.used(used, quota.limit)

    async def reset_warnings(self) -> None:
        """Let warnings come again after memories were deleted for good."""
        quota = self.quota
        if quota is not None:
            self._telemetry.freed(self._store.used_bytes(self._agent_id), quota.limit)
