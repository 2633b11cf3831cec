"""The verbs that delete memories and restore them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from mnemic.errors import InvalidArgumentError
from mnemic.model import DeleteResult, MemoryFilter
from mnemic.model.filter import Criteria, has_tests
from mnemic.model.scope import not_found
from mnemic.repository import criteria, required_uuid, unlimited
from mnemic.verbs.base import ScopedBase

_NAME_SOME = "name what to delete, or delete everything in the scope by delete_all"


class AsyncDeleteVerbs(ScopedBase):
    """Deletes, restores and purges memories."""

    async def delete(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        permanent: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete a memory; searches no longer find it. Deleting it again changes nothing.

        Args:
            id: Id of the memory.
            permanent: Delete its record, vectors and links too; it cannot be restored. Otherwise
                the record stays, marked as deleted, and can be restored within the `retention` that
                the memory was opened with: 90 days unless given.
            user_id: The user; None is the memories without a user.
            session_id: Only if it is of this session.
            all_users: Whether to find it among all users; not if a user is bound.

        Returns:
            1; its `erased` is true if the deleted bytes are gone from the file already.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
            AmbiguousIdError: If several users have one of this id, and all are included.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        entry_id = required_uuid(id)
        deleted = await self._repository.deleter.delete(scope, entry_id, permanent=permanent)
        if not deleted:
            raise not_found(entry_id, scope)
        return deleted

    async def delete_many(
        self,
        ids: Iterable[UUID | str] | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        permanent: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete the memories with these ids, those that match a filter, or those with both.

        All or none are deleted, by one write. The filter is decided by the memories as they are at
        the moment of that write, whatever other processes changed before. Archived, superseded and
        expired memories are deleted too, unless the filter tests their status.

        Args:
            ids: Ids; unknown ones are skipped.
            filters: Only memories that match, in the grammar of docs/concepts/filters.md; without a
                test it is refused, see `delete_all`.
            permanent: Delete records, vectors and links too, also of memories deleted before; they
                cannot be restored. Otherwise the records stay, and can be restored; see `delete`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            Number of memories deleted now; its `erased` is true if their bytes are gone already.

        Raises:
            InvalidArgumentError: If neither ids nor a test of a filter is given.
            FilterError: If the filter cannot be understood, or has a limit or an offset.
            AmbiguousIdError: If all users are named, and several have one of the ids.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        wanted = some_criteria(ids, filters)
        return await self._repository.deleter.delete_all(scope, wanted, permanent=permanent)

    async def delete_all(
        self,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        permanent: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete all memories of a scope: of a user, of those without a user, or of a part.

        Args:
            filters: Only memories that match; see `delete_many`.
            permanent: Delete records, vectors and links too, also of memories deleted before; they
                cannot be restored.
            user_id: The user; None is the memories without a user.
            session_id: Only those of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            Number of deleted memories; its `erased` is true if their bytes are gone already.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        wanted = Criteria(None, None if filters is None else unlimited(filters))
        return await self._repository.deleter.delete_all(scope, wanted, permanent=permanent)

    async def restore(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> bool:
        """Restore a memory that was deleted within the retention, and not permanently.

        Args:
            id: Id of the memory.
            user_id: The user; None is the memories without a user.
            session_id: Only if it is of this session.
            all_users: Whether to find it among all users; not if a user is bound.

        Returns:
            False if the scope has no such memory, if it is not deleted, or was so too long ago.

        Raises:
            AmbiguousIdError: If several users have one of this id, and all are included.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.deleter.restore(scope, required_uuid(id))

    async def purge(
        self,
        *,
        expired: bool = False,
        older_than: timedelta | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DeleteResult:
        """Delete memories permanently that were deleted or expired before the retention.

        The retention is that of the opening, 90 days unless given. Without end, none is deleted
        unless `expired` or `older_than` says so.

        Args:
            expired: Delete all that has expired, however long ago.
            older_than: Another time in place of the retention; `timedelta(0)` is everything that
                was deleted or has expired.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            Number of deleted memories; its `erased` is true if their bytes are gone already.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.deleter.purge(scope, older_than=older_than, expired=expired)


def some_criteria(
    ids: Iterable[UUID | str] | None, filters: MemoryFilter | Mapping[str, Any] | None
) -> Criteria:
    """Return the criteria of a deletion that names some memories.

    Raises:
        InvalidArgumentError: If neither ids nor a test of a filter is given.
        FilterError: If the filter cannot be understood, or has a limit or an offset.
    """
    wanted = criteria(ids, filters, otherwise=_NAME_SOME)
    if ids is None and wanted.expression is not None and not has_tests(wanted.expression):
        raise InvalidArgumentError(f"filters has no test; {_NAME_SOME}")
    return wanted
