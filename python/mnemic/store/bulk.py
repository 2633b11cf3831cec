"""The part of the contract of stores that writes many entries at once."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import datetime
from typing import Protocol
from uuid import UUID

from mnemic.arrays import Float32Array
from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import EVERY_ENTRY, Criteria
from mnemic.protocols import UserLimit
from mnemic.store.quota import NO_ENTRY_LIMITS, EntryLimits
from mnemic.store.values import UpdatedEntries


class BulkWrites(Protocol):
    """Writes over many entries of a scope, each in one transaction; see `Store` for the promises.

    A filter is decided inside the transaction, by the entries as they are stored then. Unknown ids
    are skipped.
    """

    def soft_delete_all(
        self, scope: Scope, now: datetime, criteria: Criteria = EVERY_ENTRY
    ) -> Future[list[UUID]]:
        """Mark the selected entries of a scope as deleted; return the ids of those marked now.

        A filter is decided inside the transaction, by the entries as they are stored then; each
        entry of any status is decided, expired ones too. Unknown ids are skipped.

        Args:
            scope: The scope.
            now: The time.
            criteria: The entries; all of the scope unless given.

        Raises:
            AmbiguousIdError: If the scope is of all users, and several have one of the ids.
        """
        ...

    def delete_all(self, scope: Scope, criteria: Criteria = EVERY_ENTRY) -> Future[list[UUID]]:
        """Delete the selected entries of a scope permanently, marked as deleted or not.

        Otherwise like `soft_delete_all`. On a full disk a store may delete them in several
        transactions, as it may in `purge`.

        Returns:
            Ids of the deleted entries.
        """
        ...

    def purge(
        self, scope: Scope, oldest: datetime, expired: datetime | None = None
    ) -> Future[list[UUID]]:
        """Delete permanently what was deleted or expired before `oldest`; return the ids.

        Args:
            scope: The scope.
            oldest: The time.
            expired: Also delete what expired at this time or before.
        """
        ...

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
        """Change the selected entries of a scope, all or none; otherwise like `update`.

        A filter is decided inside the transaction, by the entries as they are stored then. Unknown
        ids are skipped.

        Returns:
            The changed entries, in ascending order of their rows.

        Raises:
            AmbiguousIdError: If the scope is of all users, and several have one of the ids.
            EmbeddingModelMismatchError: If the agent's vectors come from another model.
            StorageQuotaExceededError: If the contents would exceed a quota.
        """
        ...
