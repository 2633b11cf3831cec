"""The verbs of `AsyncLongTermMemory` over many memories."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from mnemic.errors import InvalidArgumentError
from mnemic.model import (
    DeleteResult,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    OnEmbedError,
    UpdateResult,
)
from mnemic.model.update import Expiry
from mnemic.reporting.description import described
from mnemic.repository import criteria, required_uuids
from mnemic.verbs.base import ScopedBase
from mnemic.verbs.deleting import some_criteria


class AsyncLongTermBulkVerbs(ScopedBase):
    """Reads, changes and deletes many memories at once."""

    async def retrieve_batch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        user_id: str | None = None,
        all_users: bool = False,
        include_forgotten: bool = False,
    ) -> dict[UUID, MemoryEntry]:
        """Return the existing memories with these ids, like `retrieve`.

        Args:
            entry_ids: Their ids.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
            include_forgotten: Also deleted ones that can be restored, and expired ones.
        """
        return await self._repository.get(
            self._scope.narrowed(user_id, all_users=all_users),
            required_uuids("entry_ids", entry_ids),
            include_deleted=include_forgotten,
        )

    async def update_many(
        self,
        entry_ids: Iterable[UUID | str] | None = None,
        update: MemoryEntryUpdate | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        all_users: bool = False,
    ) -> UpdateResult:
        """Change the memories with these ids, those that match a filter, or those with both.

        All or none are changed; see `Memory.update_many`.

        Args:
            entry_ids: Ids; unknown ones are skipped.
            update: The change of each.
            filters: Only memories that match; `{}` is every memory of the user.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            Number of changed memories; its `evicted` has the ids of those deleted to make space.

        Raises:
            InvalidArgumentError: If neither ids nor a filter is given, or no update.
            FilterError: If the filter cannot be understood, or has a limit or an offset.
            AmbiguousIdError: If all users are named, and several have one of the ids.
            EmbeddingError: If the embedder fails; nothing is changed then.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        if not isinstance(update, MemoryEntryUpdate):
            raise InvalidArgumentError(
                f"update must be a MemoryEntryUpdate, got {described(update)}"
            )
        wanted = criteria(entry_ids, filters, otherwise="filters={} is every memory of the user")
        return await self._repository.updater.update_all(
            scope, wanted, update, on_embed_error=on_embed_error
        )

    async def touch(
        self,
        entry_ids: Sequence[UUID | str],
        *,
        expires_at: Expiry | None = None,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> None:
        """Count an access of memories that were used in another way; unknown ids are skipped.

        Accesses are written together, within about a second; a crash may lose the last ones. For
        the expiry see `Memory.touch`.

        Args:
            entry_ids: Their ids.
            expires_at: A new expiry of all of them, or "never"; None leaves it.
            user_id: The user; None is the memories stored without one.
            all_users: The memories of all users; goes with no `user_id`.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        await self._repository.touch(scope, required_uuids("entry_ids", entry_ids), expires_at)

    async def delete_many(
        self,
        entry_ids: Iterable[UUID | str] | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        permanent: bool = False,
        user_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete the memories with these ids, those that match a filter, or those with both.

        All or none are deleted, unless the disk is full; see `Memory.delete_many`.

        Args:
            entry_ids: Ids; unknown ones are skipped.
            filters: Only memories that match; without a test it is refused, see `delete_all`.
            permanent: Delete them permanently, also those deleted before.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            Number of memories deleted now; its `erased` is true if their bytes are gone already.

        Raises:
            InvalidArgumentError: If neither ids nor a test of a filter is given.
            FilterError: If the filter cannot be understood, or has a limit or an offset.
            AmbiguousIdError: If all users are named, and several have one of the ids.
        """
        scope = self._scope.narrowed(user_id, all_users=all_users)
        wanted = some_criteria(entry_ids, filters)
        return await self._repository.deleter.delete_all(scope, wanted, permanent=permanent)
