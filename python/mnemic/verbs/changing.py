"""The verbs that change memories, and the links between them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from mnemic.arrays import ArrayLike
from mnemic.model import (
    Direction,
    LinkType,
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryLink,
    MemoryStatus,
    MemoryType,
    OnEmbedError,
    UpdateResult,
)
from mnemic.model.new_entry import OwnVectors
from mnemic.model.scope import not_found
from mnemic.model.time_zones import naive_times_in
from mnemic.model.update import Expiry
from mnemic.repository import criteria, required_uuid, required_uuids
from mnemic.verbs.base import ScopedBase


class AsyncChangeVerbs(ScopedBase):
    """Changes memories, and counts accesses."""

    async def update(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        content: str | None = None,
        importance: float | None = None,
        add_tags: Sequence[str] | None = (),
        remove_tags: Sequence[str] | None = (),
        type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
        metadata: Mapping[str, Any] | None = None,
        status: MemoryStatus | str | None = None,
        replace_metadata: Mapping[str, Any] | None = None,
        expires_at: Expiry | None = None,
        embedding: ArrayLike | None = None,
        embed: str | Sequence[str] | None = None,
        if_version: int | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryEntry:
        """Change the fields of a memory that are given, and return it as it is then.

        `MemoryEntryUpdate` describes the fields. A new content is embedded, in place of vectors of
        the program's own too; without an embedder the old vectors go with the old content.

        Args:
            embedding: Vectors in place of the stored ones: shape (d,), or of chunks (chunks, d).
            embed: A text, or several, to embed in place of the content.
            if_version: Raise `VersionConflictError` if its `version` is another by then.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        given: dict[str, Any] = {
            "content": content,
            "importance": importance,
            "add_tags": add_tags,
            "remove_tags": remove_tags,
            "type": type,
            "metadata": metadata,
            "status": status,
            "replace_metadata": replace_metadata,
            "expires_at": expires_at,
        }
        with naive_times_in(self.time_zone):
            update = MemoryEntryUpdate(**given)
        entry_id = required_uuid(id)
        own = OwnVectors.of(embedding, embed)
        entry = await self._repository.updater.update(
            scope,
            entry_id,
            update,
            if_version=if_version,
            own=own,
            on_embed_error=on_embed_error,
        )
        if entry is None:
            raise not_found(entry_id, scope)
        return entry

    async def update_many(
        self,
        ids: Iterable[UUID | str] | None = None,
        *,
        filters: MemoryFilter | Mapping[str, Any] | None = None,
        content: str | None = None,
        importance: float | None = None,
        add_tags: Sequence[str] | None = (),
        remove_tags: Sequence[str] | None = (),
        type: MemoryType | str | None = None,  # noqa: A002 - the field's name everywhere
        metadata: Mapping[str, Any] | None = None,
        status: MemoryStatus | str | None = None,
        replace_metadata: Mapping[str, Any] | None = None,
        expires_at: Expiry | None = None,
        on_embed_error: OnEmbedError = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> UpdateResult:
        """Change the memories with these ids, those that match a filter, or those with both.

        `filters={}` is every memory of the scope. Superseded memories stay as they are, archived
        ones too unless the filter tests the status, or the call sets it.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        given: dict[str, Any] = {
            "content": content,
            "importance": importance,
            "add_tags": add_tags,
            "remove_tags": remove_tags,
            "type": type,
            "metadata": metadata,
            "status": status,
            "replace_metadata": replace_metadata,
            "expires_at": expires_at,
        }
        with naive_times_in(self.time_zone):
            wanted = criteria(ids, filters, otherwise="filters={} is every memory of the scope")
            update = MemoryEntryUpdate(**given)
        return await self._repository.updater.update_all(
            scope, wanted, update, on_embed_error=on_embed_error
        )

    async def touch(
        self,
        ids: Iterable[UUID | str],
        *,
        expires_at: Expiry | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> None:
        """Count an access of memories, and renew their expiry; `version` and `updated_at` stay."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        with naive_times_in(self.time_zone):
            await self._repository.updater.touch(scope, required_uuids("ids", ids), expires_at)


class AsyncLinkVerbs(ScopedBase):
    """Links memories, and returns and deletes links."""

    async def link(
        self,
        from_id: UUID | str,
        to_id: UUID | str,
        type: LinkType | str = LinkType.RELATED,  # noqa: A002 - the field's name everywhere
        strength: float = 1.0,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryLink:
        """Link two memories of one user; with the same type again, the strength changes.

        Args:
            from_id: Source of the link, the newer memory.
            to_id: Target of the link, the older one.
            type: The relation; SUPERSEDES comes only from the field `supersedes` of a memory.
            strength: From 0 to 1.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        ends = required_uuid(from_id), required_uuid(to_id)
        return await self._repository.linker.link(scope, *ends, type, strength)

    async def unlink(
        self,
        from_id: UUID | str,
        to_id: UUID | str,
        type: LinkType | str | None = None,  # noqa: A002 - the field's name everywhere
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> int:
        """Delete links from one memory to another, of one type or of all but SUPERSEDES."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        ends = required_uuid(from_id), required_uuid(to_id)
        return await self._repository.linker.unlink(scope, *ends, type)

    async def links(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        direction: Direction = "both",
        types: Collection[LinkType | str] | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> list[MemoryLink]:
        """Return a memory's links to and from others that are not deleted, oldest first."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.linker.links(scope, required_uuid(id), direction, types)
