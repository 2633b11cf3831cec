"""Deletes, restores and purges memories, and erases the bytes of deleted ones."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from mnemic.model import DeleteResult, Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.validation import duration, flag
from mnemic.observability.spans import RECORD_COUNT, records, traced
from mnemic.observability.table import EMPTIED, FORGOTTEN, PURGED
from mnemic.repository.parts import Part, Shared
from mnemic.store.operations import Delete, ForgetAgent, Purge, Restore, SoftDelete
from mnemic.store.values import MarkedIds
from mnemic.threads.sync_bridge import arrived

_FIRST_MOMENT = datetime.min.replace(tzinfo=UTC)


class Deleter(Part):
    """Deletes memories of one agent.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._retention = shared.settings.retention

    @traced("delete_memory", lambda done, given: records(given[1:2] if done else ()))
    async def delete(
        self, scope: Scope, entry_id: UUID, *, permanent: bool = False
    ) -> DeleteResult:
        """Delete a memory of a scope, permanently or not; return the number of deleted memories."""
        self._limits.require_storing()
        one = Criteria([entry_id])
        ids = await self._deleted(scope, one, permanent=flag("permanent", permanent))
        for deleted in ids:
            await self._telemetry.emit(FORGOTTEN, entry_id=deleted, permanent=permanent)
        return await self._result(len(ids) + len(ids.before), permanent=permanent)

    async def _deleted(self, scope: Scope, criteria: Criteria, *, permanent: bool) -> MarkedIds:
        """Delete memories, and let the index follow; return the ids of those deleted now."""
        if permanent:
            deleted = await self._write(Delete(scope, criteria))
            return MarkedIds(deleted)
        return await self._write(SoftDelete(scope, criteria, self._now()))

    @traced("delete_memory", lambda deleted, _: {RECORD_COUNT: int(deleted)})
    async def delete_all(
        self,
        scope: Scope,
        criteria: Criteria = EVERY_ENTRY,
        *,
        permanent: bool,
        soon: bool = False,
    ) -> DeleteResult:
        """Delete the selected memories of a scope, permanently or not; return their number.

        Args:
            scope: The scope.
            criteria: The memories.
            permanent: Whether they cannot be restored.
            soon: Whether their bytes are erased within about a second, and not before it returns.
        """
        self._limits.require_storing()
        await self._accesses.write_for(criteria)
        ids = await self._deleted(scope, criteria, permanent=flag("permanent", permanent))
        await self._telemetry.deleted(EMPTIED, ids, permanent=permanent, scope=scope)
        hint = None if ids else await self._user_hints.of("delete_all", scope)
        return await self._result(len(ids), permanent=permanent, soon=soon, hint=hint)

    @traced("update_memory", lambda done, given: records(given[1:2] if done else ()))
    async def restore(self, scope: Scope, entry_id: UUID) -> bool:
        """Restore a deleted memory of a scope; return False if there is none to restore."""
        self._limits.require_storing()
        now = self._now()
        oldest = earliest_kept(now, self._retention)
        restored = await self._write(Restore(scope, Criteria([entry_id]), oldest, now))
        return bool(restored)

    @traced("delete_memory", lambda deleted, _: {RECORD_COUNT: int(deleted)})
    async def purge(
        self, scope: Scope, *, older_than: timedelta | None = None, expired: bool = False
    ) -> DeleteResult:
        """Delete permanently what was deleted or expired too long ago in a scope.

        Args:
            scope: The scope.
            older_than: How long ago; None is the retention.
            expired: Whether to delete everything that has expired.
        """
        self._limits.require_storing()
        now = self._now()
        kept = self._retention if older_than is None else duration("older_than", older_than)
        until = now if flag("expired", expired) else None
        oldest = earliest_kept(now, kept)
        ids = await self._write(Purge(scope, oldest, until))
        await self._telemetry.deleted(PURGED, ids, permanent=True)
        hint = None if ids else await self._user_hints.of("purge", scope)
        return await self._result(len(ids), permanent=True, hint=hint)

    @traced("delete_memory_store", lambda deleted, _: {RECORD_COUNT: int(deleted)})
    async def forget_agent(self) -> DeleteResult:
        """Destroy the agent's keys, and delete all its memories permanently."""
        self._limits.require_storing()
        ids = await self._write(ForgetAgent(self._everyone.agent_id))
        await self._telemetry.deleted(EMPTIED, ids, permanent=True, scope=self._everyone)
        return await self._result(len(ids), permanent=True)

    async def erase_pending(self) -> bool | None:
        """Erase the bytes that earlier deletions left; return whether none are left, if known."""
        self._limits.require_storing()
        return await arrived(self._store.erase())

    async def _result(
        self, count: int, *, permanent: bool, soon: bool = False, hint: str | None = None
    ) -> DeleteResult:
        """Return the number of deleted memories, and whether their bytes are gone."""
        if permanent and count:
            await self._limits.reset_warnings()
        # Asked even if nothing was deleted now: an earlier deletion may have left its bytes.
        is_erased = await arrived(self._store.erase(soon=soon)) if permanent else False
        return DeleteResult(count, erased=is_erased, hint=hint)


def earliest_kept(now: datetime, retention: timedelta | None) -> datetime:
    """Return the time of deletion from which on a memory can be restored.

    Args:
        now: The time.
        retention: How long it can be; None is without end.
    """
    span = now - _FIRST_MOMENT
    return _FIRST_MOMENT if retention is None else now - min(retention, span)
