"""Says of a call without a user that it left out the memories of users."""

import msgspec

from mnemic.index import ListRequest
from mnemic.model import Scope
from mnemic.model.filter import All
from mnemic.model.scope import NO_USER
from mnemic.model.timestamps import to_microseconds
from mnemic.observability.table import HINTED
from mnemic.observability.telemetry import Telemetry
from mnemic.protocols import Clock
from mnemic.repository.index_sync import IndexSync
from mnemic.store import Store
from mnemic.store.operations import EntryCount
from mnemic.threads.sync_bridge import run_blocking


class UserHints:
    """Hints for calls of one agent that leave out the memories of users.

    They have neither names nor numbers, and no call with a user gets one.

    Args:
        store: Counts the memories while the index is not loaded.
        active: The index of active memories.
        telemetry: Logs the first hint of each call.
        clock: Gives the time.
    """

    def __init__(self, store: Store, active: IndexSync, telemetry: Telemetry, clock: Clock) -> None:
        self._store = store
        self._active = active
        self._telemetry = telemetry
        self._now = clock
        self._logged: set[str] = set()

    async def of(self, call: str, scope: Scope) -> str | None:
        """Return a hint if a scope has no user, and users have active memories; else None.

        Only those of its project and session count. The index is not brought up to date.

        Args:
            call: Name of the call, for the log.
            scope: Its scope.
        """
        if scope.user_id is not None or scope.all_users:
            return None
        if not await run_blocking(lambda: self._leaves_out(scope), self._store):
            return None
        if call not in self._logged:
            self._logged.add(call)
            self._telemetry.record(HINTED, call=call, hint=NO_USER)
        return NO_USER

    def _leaves_out(self, scope: Scope) -> bool:
        everybody = msgspec.structs.replace(scope, all_users=True)
        return self._count(everybody) > self._count(scope)

    def _count(self, scope: Scope) -> int:
        now = self._now()
        if not self._active.is_loaded:
            return self._store.read(EntryCount(scope, now=now))
        wanted = ListRequest(scope=scope, now=to_microseconds(now), filters=All(()), limit=0)
        return self._active.index.counted(wanted)
