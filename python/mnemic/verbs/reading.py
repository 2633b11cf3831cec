"""The verbs that read memories without ranking them."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from mnemic.model import LongTermMemoryStats, MemoryEntry, MemoryFilter, MemoryPage
from mnemic.model.scope import not_found
from mnemic.model.validation import flag
from mnemic.repository import required_uuid
from mnemic.verbs.base import ScopedBase


class AsyncReadVerbs(ScopedBase):
    """Reads memories by id, in pages, and as numbers."""

    async def get(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        embeddings: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryEntry:
        """Return a memory by its id.

        Args:
            id: Id of the memory.
            embeddings: Whether to return it with its vectors in `embedding`, shape (d,), or
                (chunks, d) with several chunks, and their model in `embedding_model`; None for a
                memory without a vector.
            user_id: The user; None is the memories without a user.
            project_id: Only if it is of this project.
            session_id: Only if it is of this session.

        Raises:
            EntryNotFoundError: If the scope has no such memory; the message names the scope.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id)
        entry_id = required_uuid(id)
        flag("embeddings", embeddings)
        found = await self._repository.get(scope, [entry_id])
        if entry_id not in found:
            raise not_found(entry_id, scope)
        if not embeddings:
            return found[entry_id]
        return (await self._repository.vectors.attached([found[entry_id]]))[0]

    async def list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        include_deleted: bool = False,
        embeddings: bool = False,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryPage:
        """Return a page of the memories, newest first.

        Memories that are there all the while are on exactly one page, whatever is written between.

        Args:
            limit: How many on a page, 1 to 1,000.
            cursor: From the page before; None begins.
            filters: Only those that match, in the grammar of docs/filters.md; the limit, offset and
                order of a `MemoryFilter` are not used.
            include_deleted: Those that can be restored, and expired ones, too.
            embeddings: As for `get`.
            user_id: The user; None is the memories without a user.
            project_id: Only memories of this project.
            session_id: Only memories of this session.

        Raises:
            InvalidArgumentError: If the limit is out of range, or no page gave the cursor.
            FilterError: If the filter cannot be understood.
        """
        flag("embeddings", embeddings)
        page = await self._repository.page(
            self._scope.narrowed(user_id, project_id, session_id),
            limit=limit,
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
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Return the number of memories that a search can find; for the scope see the class."""
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.count(scope)

    async def stats(
        self,
        *,
        user_id: str | None = None,
        project_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> LongTermMemoryStats:
        """Return statistics of the memories; for the scope see the class.

        With a quota of the agent, the storage limit and the bytes used are those of the whole
        agent; with a quota per user they are the user's, unless all users are named.
        Figures of the embedder are returned with `all_users` alone.
        """
        scope = self._scope.narrowed(user_id, project_id, session_id, all_users=all_users)
        return await self._repository.statistics.stats(scope)
