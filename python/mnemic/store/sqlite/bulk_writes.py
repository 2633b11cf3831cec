"""The writes over many entries of the SQLite store."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypeVar
from uuid import UUID

import apsw

from mnemic.arrays import Float32Array
from mnemic.errors import StoreFullError
from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.model.timestamps import to_microseconds
from mnemic.protocols import UserLimit
from mnemic.store.added import vectors_of
from mnemic.store.quota import NO_ENTRY_LIMITS, EntryLimits, Quotas
from mnemic.store.sqlite import bulk_updates, deletes
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.values import UpdatedEntries

Result = TypeVar("Result")

PART = 64
"""Entries that a transaction deletes on a full disk; fewer if they do not fit."""


Deletion: TypeAlias = Callable[[int | None, apsw.Connection], list[UUID]]
"""Deletes at most so many entries, in a transaction; returns their ids."""


class SqliteBulkWrites(SqliteFile):
    """Deletes and changes many entries; see `BulkWrites`."""

    def soft_delete_all(
        self, scope: Scope, now: datetime, criteria: Criteria = EVERY_ENTRY
    ) -> Future[list[UUID]]:
        """Mark the selected entries of a scope as deleted; return the ids of those marked now."""
        time = to_microseconds(now)
        return self._write(
            lambda on: deletes.soft_delete_all(on, self._codec, scope, criteria, time)
        )

    def delete_all(self, scope: Scope, criteria: Criteria = EVERY_ENTRY) -> Future[list[UUID]]:
        """Delete the selected entries of a scope permanently; return their ids."""
        return self._write_or_parts(
            lambda limit, on: deletes.delete_all(on, self._codec, scope, criteria, limit=limit)
        )

    def purge(
        self, scope: Scope, oldest: datetime, expired: datetime | None = None
    ) -> Future[list[UUID]]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids."""
        times = to_microseconds(oldest), None if expired is None else to_microseconds(expired)
        return self._write_or_parts(
            lambda limit, on: deletes.purge(on, self._codec, scope, *times, limit=limit)
        )

    def _write_or_parts(self, job: Deletion) -> Future[list[UUID]]:
        """Delete in one transaction, or on a full disk in several that fit into the log."""
        whole = self._write(partial(job, None))
        return self._workers.run(partial(self._deleted, job, whole))

    def _deleted(self, job: Deletion, whole: Future[list[UUID]]) -> list[UUID]:
        with suppress(StoreFullError):
            return whole.result()
        deleted: list[UUID] = []
        limit = PART
        while True:
            try:
                part = self._write(partial(job, limit)).result()
            except StoreFullError as error:
                if limit == 1 and not deleted:
                    raise
                if limit == 1:
                    raise StoreFullError(f"{error}; {len(deleted)} were deleted before") from error
                limit //= 4
                continue
            deleted += part
            if len(part) < limit:  # not until none is left: others may go on adding
                return deleted

    def update_all(
        self,
        scope: Scope,
        criteria: Criteria,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, Float32Array] | None = None,
        *,
        now: datetime,
        quota: Quota | None = None,
        user_quota: UserLimit | None = None,
        entry_limits: EntryLimits = NO_ENTRY_LIMITS,
        include_archived: bool = False,
    ) -> Future[UpdatedEntries]:
        """Change the selected entries of a scope, all or none; return those changed."""
        vectors, time = vectors_of(embedded), to_microseconds(now)
        self._codec.prepare(scope.agent_id)
        return self._write_with_eviction(
            entry_limits,
            lambda on: bulk_updates.update_all(
                on,
                self._codec,
                scope,
                criteria,
                change,
                vectors=vectors,
                now=time,
                quotas=Quotas(quota, user_quota, entry_limits),
                include_archived=include_archived,
            ),
        )
