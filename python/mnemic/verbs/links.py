"""The verbs of links between memories."""

from collections.abc import Collection
from uuid import UUID

from mnemic.model import Direction, LinkType, MemoryLink
from mnemic.repository import required_uuid
from mnemic.verbs.base import ScopedBase


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
