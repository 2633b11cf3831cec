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
        """Link two memories, from the newer to the older.

        Linking them again with the same type changes the strength.

        Args:
            from_id: Source of the link.
            to_id: Target of the link.
            type: The relation. SUPERSEDES comes only from the field `supersedes` of a memory.
            strength: From 0 to 1.
            user_id: The user; None is the memories without a user.
            session_id: Only if they are of this session.
            all_users: Whether to find them among all users; not if a user is bound. Both must be of
                one user, or of none.

        Raises:
            EntryNotFoundError: If one of them does not exist.
            LinkAcrossUsersError: If they are of different users, or one is of none.
            InvalidArgumentError: If both are the same, the type is SUPERSEDES or unknown, or the
                strength is out of range.
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
        """Delete links from one memory to another, of one type or of all but SUPERSEDES.

        Returns:
            Number of deleted links.
        """
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
        """Return the links of a memory whose other ends are neither deleted nor expired.

        Args:
            id: Id of the memory; an unknown one has none.
            direction: "out" from it, "in" to it, or "both".
            types: Only these types.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            Oldest first, then by the ids, then by type.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._repository.linker.links(scope, required_uuid(id), direction, types)
