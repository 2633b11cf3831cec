"""The verbs that read memories without ranking them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from mnemic.model import LongTermMemoryStats, MemoryEntry, MemoryFilter, MemoryPage
from mnemic.model.distinct import DistinctValue, distinct_query
from mnemic.model.scope import not_found
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
        """Return a memory by its id.

        Args:
            id: Id of the memory.
            embeddings: Whether to return it with its vectors in `embedding`, shape (d,), or
                (chunks, d) with several chunks, and their model in `embedding_model`; None for a
                memory without a vector.
            user_id: The user; None is the memories without a user.
            session_id: Only if it is of this session.
            all_users: Whether to find it among all users; not if a user is bound.

        Raises:
            AmbiguousIdError: If `all_users` is true, and several users have this id.
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        entry_id = required_uuid(id)
        flag("embeddings", embeddings)
        found = await self._repository.get(scope, [entry_id])
        if entry_id not in found:
            raise not_found(entry_id, scope)
        if not embeddings:
            return found[entry_id]
        return (await self._repository.vectors.attached([found[entry_id]]))[0]

    async def get_many(
        self,
        ids: Iterable[UUID | str],
        *,
        embeddings: bool = False,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> Entries:
        """Return memories by their ids.

        Ids that the scope does not have are left out: `{entry.id for entry in found}` has the
        others. Each memory that is found counts one access.

        Args:
            ids: Their ids.
            embeddings: Whether to return them with their vectors; see `get`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The memories in the order of the ids; one of a repeated id is repeated.

        Raises:
            AmbiguousIdError: If `all_users` is true, and several users have one of the ids.
            InvalidArgumentError: If one of them is neither a UUID nor its text.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        wanted = required_uuids("ids", ids)
        flag("embeddings", embeddings)
        found = await self._repository.get(scope, [*dict.fromkeys(wanted)])
        entries = [found[entry_id] for entry_id in wanted if entry_id in found]
        return await self._repository.vectors.attached(entries) if embeddings else entries

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

        With cursors, memories that are there all the while are on exactly one page, whatever is
        written between. With offsets a write may move a memory to another page.

        Args:
            limit: How many on a page, 1 to 1,000.
            offset: Number of memories to skip, counted from the cursor if there is one.
            cursor: From the page before; None begins.
            filters: Only those that match, in the grammar of docs/concepts/filters.md; the limit,
                offset and order of a `MemoryFilter` are not used.
            include_deleted: Those that can be restored, and expired ones, too.
            embeddings: As for `get`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            InvalidArgumentError: If limit or offset is out of range, or no page gave the cursor.
            FilterError: If the filter cannot be understood.
        """
        flag("embeddings", embeddings)
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
        return MemoryPage(tuple(await self._repository.vectors.attached(page.entries)), page.cursor)

    async def count(
        self,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Return the number of memories that a search can find; for the scope see the class.

        Args:
            filters: Only those that match, in the grammar of docs/concepts/filters.md; as in a
                list, a filter of the status counts archived or superseded ones too.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            FilterError: If the filter cannot be understood, or has a limit, an offset or
                `include_forgotten`.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
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
        """Return the distinct values of a field, each with its number of memories.

        Memories without a value, and null, are left out. A memory counts once for each of its tags.
        Numbers that are equal are one value, which is an int if it is whole.

        Args:
            field: A name such as "session_id" or "category", "type", "tags", "metadata.<key>", or
                a path into the metadata such as ("metadata", "address", "city").
            filters: As for `count`.
            prefix: Only texts that begin with it, exactly.
            limit: Maximum number of values, 1 to 10,000.
            offset: Number of first values to skip.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The values, ascending: booleans, numbers, texts by code points, lists, dicts; types by
            number.

        Raises:
            InvalidArgumentError: If the field has no values to count, or another argument is out of
                range.
            FilterError: As for `count`.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        query = distinct_query(field, prefix, limit, offset)
        return await self._repository.lister.distinct(scope, query, filters)

    async def stats(
        self,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> LongTermMemoryStats:
        """Return statistics of the memories; for the scope see the class.

        With a quota of the agent, the storage limit and the bytes used are those of the whole
        agent; with a quota per user they are the user's, unless all users are named.
        Figures of the embedder are returned with `all_users` alone.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.statistics.stats(scope)
