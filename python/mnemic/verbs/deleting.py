"""The verbs that delete memories and restore them."""

from uuid import UUID

from mnemic.model import DeleteResult
from mnemic.model.scope import not_found
from mnemic.repository import required_uuid
from mnemic.verbs.base import ScopedBase


class AsyncDeleteVerbs(ScopedBase):
    """Deletes, restores and purges memories."""

    async def delete(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        permanent: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> DeleteResult:
        """Delete a memory; searches no longer find it. Deleting it again changes nothing.

        Args:
            id: Id of the memory.
            permanent: Delete its record, vectors and links too; it cannot be restored. Otherwise
                the record stays, marked as deleted, and can be restored for 90 days.
            user_id: The user; None is the memories without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Returns:
            1; its `erased` is true if the deleted bytes are gone from the file already.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope, entry_id = self._scope.narrowed(user_id, project_id, session_id), required_uuid(id)
        deleted = await self._repository.deleter.delete(scope, entry_id, permanent=permanent)
        if not deleted:
            raise not_found(entry_id, scope)
        return deleted

    async def delete_all(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        permanent: bool = False,
    ) -> DeleteResult:
        """Delete all memories of a scope: of a user, of those without a user, or of a part.

        Args:
            user_id: The user; None is the memories without a user.
            project_id: Only those of this project.
            session_id: Only those of this session.
            permanent: Delete records, vectors and links too, also of memories deleted before; they
                cannot be restored.

        Returns:
            Number of deleted memories.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.deleter.delete_all(scope, permanent=permanent)

    async def restore(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> bool:
        """Restore a memory that was deleted within the last 90 days, and not permanently.

        Returns:
            False if the scope has no such memory, if it is not deleted, or was so too long ago.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        return await self._repository.deleter.restore(scope, required_uuid(id))

    async def purge(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete memories permanently that were deleted or expired more than 90 days ago.

        For the scope see the class.

        Returns:
            Number of deleted memories; its `erased` is true if their bytes are gone already.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.deleter.purge(scope)
