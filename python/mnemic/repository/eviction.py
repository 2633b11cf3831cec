"""Reports memories that a write deleted to make space, and erases their bytes."""

from collections.abc import Sequence
from uuid import UUID

from mnemic.observability.telemetry import Telemetry
from mnemic.repository.limits import Limits
from mnemic.store import Store
from mnemic.threads.sync_bridge import arrived


class EvictionReporter:
    """Makes known what went for new memories of one agent.

    Args:
        store: Erases the bytes of deleted memories.
        limits: Warn of the quota again after a deletion.
        telemetry: Reports deletions.
    """

    def __init__(self, store: Store, limits: Limits, telemetry: Telemetry) -> None:
        self._store = store
        self._limits = limits
        self._telemetry = telemetry

    async def report(self, ids: Sequence[UUID]) -> None:
        """Log, count and publish deleted memories, and erase their bytes.

        Where a reader keeps the bytes from being erased, that is repeated as after `delete`.
        """
        if not ids:
            return
        await self._telemetry.evicted(ids)
        await self._limits.reset_warnings()
        await arrived(self._store.erase())
