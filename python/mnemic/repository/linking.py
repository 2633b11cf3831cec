"""Writes, deletes and lists links between memories."""

from collections.abc import Collection, Sequence
from typing import get_args
from uuid import UUID

from mnemic.errors import InvalidArgumentError
from mnemic.model import LinkType, MemoryLink, Scope
from mnemic.model.link import Direction
from mnemic.model.validation import items, word
from mnemic.repository.parts import Part
from mnemic.store.operations import AddLinks, Link, Links, Unlink
from mnemic.store.values import StoredLink
from mnemic.threads.sync_bridge import arrived, run_blocking

_DIRECTIONS: tuple[str, ...] = get_args(Direction)


class Linker(Part):
    """Links memories of one agent."""

    async def link(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | str, strength: float
    ) -> MemoryLink:
        """Write a link between two memories of a scope; return its new state."""
        self._limits.require_storing()
        link = MemoryLink(from_id, to_id, _own_type(kind), strength, self._now())
        written = await arrived(self._store.write(Link(scope, link, link.created_at)))
        await self._active.refresh()
        return written

    async def link_all(self, scope: Scope, links: Sequence[MemoryLink]) -> int:
        """Write the links between memories of a scope that are missing; return their number.

        Links to memories that are not in the scope are skipped.
        """
        self._limits.require_storing()
        if not links:
            return 0
        new = [StoredLink(link, scope.user_id) for link in links]
        written = await arrived(self._store.write(AddLinks(scope, new)))
        await self._active.refresh()
        return written

    async def unlink(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | str | None
    ) -> int:
        """Delete links from one memory of a scope to another; return their number."""
        self._limits.require_storing()
        own_type = None if kind is None else _own_type(kind)
        deleted = await arrived(self._store.write(Unlink(scope, from_id, to_id, own_type)))
        await self._active.refresh()
        return deleted

    async def links(
        self,
        scope: Scope,
        entry_id: UUID,
        direction: Direction,
        kinds: Collection[LinkType | str] | None,
    ) -> list[MemoryLink]:
        """Return the links of a memory of a scope, oldest first."""
        self._limits.require_storing()
        word("direction", direction, _DIRECTIONS)
        types = None if kinds is None else {LinkType.parse(kind) for kind in items("types", kinds)}
        wanted = Links(scope, self._now(), entry_id, direction, types)
        found = await run_blocking(lambda: self._store.read(wanted), self._store)
        return [linked.link for linked in found]


def _own_type(kind: LinkType | str) -> LinkType:
    """Return a link type that callers may write and delete."""
    parsed = LinkType.parse(kind)
    if parsed is LinkType.SUPERSEDES:
        raise InvalidArgumentError(
            "links of type SUPERSEDES come from the field of that name alone: store the new "
            "memory with supersedes= the old one's id"
        )
    return parsed
