"""The verbs of `LongTermMemory` over many memories."""

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from mnemic.description import described
from mnemic.errors import InvalidArgumentError
from mnemic.model import DeleteResult, MemoryEntryUpdate, MemoryFilter, OnEmbedError
from mnemic.repository import criteria
from mnemic.verbs.base import ScopedBase
from mnemic.verbs.deleting import some_criteria


class AsyncLongTermBulkVerbs(ScopedBase):
    """Changes and deletes many memories of users by one write."""

    async def update_many(
        self,
        entry_ids: Iterable[UUID | str] | None = None,
        update: MemoryEntryUpdate | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Change the memories with these ids, those that match a filter, or those with both.

        All or none are changed; see `Memory.update_many`.

        Args:
            entry_ids: Ids; unknown ones are skipped.
            update: The change of each.
            filters: Only memories that match; `{}` is every memory of the user.
            on_embed_error: As for `store`.
            user_id: The user; None is the memories without a user.
            all_users: Whether to include all users.

        Returns:
            Number of changed memories.

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

        All or none are deleted; see `Memory.delete_many`.

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
