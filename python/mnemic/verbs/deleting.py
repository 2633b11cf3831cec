"""The verbs that delete memories and restore them."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from mnemic.errors import InvalidArgumentError
from mnemic.model import DeleteResult, MemoryFilter
from mnemic.model.filter import Criteria, has_tests
from mnemic.model.scope import not_found
from mnemic.model.time_zones import naive_times_in
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
        """Delete a memory; searches no longer find it. Deleting it again changes nothing."""
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

        Archived, superseded and expired memories are deleted too, unless the filter tests their
        status. A filter without a test is refused: `delete_all` deletes everything.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        with naive_times_in(self.time_zone):
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
        """Delete all memories of the scope; with `permanent` also those deleted before."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        with naive_times_in(self.time_zone):
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
        """Restore a memory that was deleted within the retention; return whether it was."""
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

        Args:
            expired: Delete all that has expired, however long ago.
            older_than: In place of the retention; `timedelta(0)` is all that is deleted or expired.
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
