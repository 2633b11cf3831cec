"""The verbs that read memories without ranking them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

import msgspec

from mnemic.model import LongTermMemoryStats, MemoryEntry, MemoryFilter, MemoryPage
from mnemic.model.distinct import DistinctValue, distinct_query
from mnemic.model.scope import not_found
from mnemic.model.time_zones import naive_times_in
from mnemic.model.validation import flag
from mnemic.repository import required_uuid, required_uuids
from mnemic.verbs.base import ScopedBase

Entries: TypeAlias = list[MemoryEntry]
DistinctValues: TypeAlias = list[DistinctValue]


class AsyncReadVerbs(ScopedBase):
    """Reads memories by id, in pages, and as numbers."""

    async def get(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        embeddings: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryEntry:
        """Return a memory by its id."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        entry_id = required_uuid(id)
        flag("embeddings", embeddings)
        found = await self._repository.reader.get(scope, [entry_id])
        if entry_id not in found:
            raise not_found(entry_id, scope)
        if not embeddings:
            return found[entry_id]
        return (await self._repository.reader.attached([found[entry_id]]))[0]

    async def get_many(
        self,
        ids: Iterable[UUID | str],
        *,
        embeddings: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> Entries:
        """Return memories in the order of their ids, without those that the scope does not have."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        wanted = required_uuids("ids", ids)
        flag("embeddings", embeddings)
        found = await self._repository.reader.get(scope, [*dict.fromkeys(wanted)])
        entries = [found[entry_id] for entry_id in wanted if entry_id in found]
        return await self._repository.reader.attached(entries) if embeddings else entries

    async def list(
        self,
        *,
        limit: int = 100,
        offset: int = 0,
        cursor: str | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        include_deleted: bool = False,
        embeddings: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryPage:
        """Return a page of the memories, newest first.

        Args:
            cursor: From the page before; None begins. What is there all the while is then on one
                page, whatever is written between. An offset is counted from the cursor.
        """
        flag("embeddings", embeddings)
        with naive_times_in(self.time_zone):
            page = await self._repository.lister.page(
                self._scope.narrowed(user_id, session_id=session_id, all_users=all_users),
                limit=limit,
                offset=offset,
                cursor=cursor,
                filters=filters,
                include_deleted=flag("include_deleted", include_deleted),
            )
        if not embeddings:
            return page
        entries = tuple(await self._repository.reader.attached(page.entries))
        return msgspec.structs.replace(page, entries=entries)

    async def count(
        self,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Return the number of memories that a search can find, or with a status of the filter."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        with naive_times_in(self.time_zone):
            return await self._repository.lister.count(scope, filters)

    async def distinct(
        self,
        field: str | Sequence[str],
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        prefix: str | None = None,
        limit: int = 1000,
        offset: int = 0,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> DistinctValues:
        """Return the distinct values of a field, ascending, each with its number of memories.

        Args:
            field: A name such as "session_id", "tags" or "metadata.<key>", or a path into the
                metadata such as ("metadata", "address", "city").
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        query = distinct_query(field, prefix, limit, offset)
        with naive_times_in(self.time_zone):
            return await self._repository.lister.distinct(scope, query, filters)

    async def stats(
        self,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> LongTermMemoryStats:
        """Return statistics of the memories; those of the embedder only with `all_users`."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.reader.stats(scope)
