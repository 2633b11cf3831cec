"""Links followed in the store, where archived and superseded memories are walked through too."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias
from uuid import UUID

from mnemic.index import Reached
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, Scope
from mnemic.repository import LinkedAnswer, Repository
from mnemic.store import Direction

Allows: TypeAlias = Callable[[MemoryEntry], bool]
"""Whether a memory may be found and walked through."""


class _Path(NamedTuple):
    strength: float
    kinds: tuple[int, ...]


class Walk:
    """Follows links from one memory, as the index does among living ones.

    Args:
        repository: Whose memories.
        scope: Only memories of it are found.
        kinds: Only links of these types; None follows all.
        direction: Which way.
        statuses: Only memories of these are found, and walked from.
        allows: What else must hold of a memory that is found.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        kinds: Collection[LinkType] | None,
        direction: Direction,
        *,
        statuses: Collection[MemoryStatus],
        allows: Allows,
    ) -> None:
        self._repository = repository
        self._scope = scope
        self._kinds = kinds
        self._direction: Direction = direction
        self._statuses = statuses
        self._allows = allows
        self._entries: dict[UUID, MemoryEntry] = {}

    def reached(self, entry_id: UUID, depth: int, limit: int) -> LinkedAnswer | None:
        """Return the memories within some hops, the strongest first; None without the first."""
        if entry_id not in self._present([entry_id]):
            return None
        found: dict[UUID, _Path] = {}
        edge = {entry_id: _Path(1.0, ())}
        for _ in range(depth):
            edge = self._hop(entry_id, edge, found)
            found |= edge
        reached = sorted(
            (Reached(0, each.bytes, *path) for each, path in found.items()), key=self._place
        )
        entries = {each.bytes: self._entries[each] for each in found}
        return LinkedAnswer(reached[:limit], entries, len(reached))

    def _hop(
        self, first: UUID, edge: dict[UUID, _Path], found: dict[UUID, _Path]
    ) -> dict[UUID, _Path]:
        better: dict[UUID, _Path] = {}
        for entry_id, path in sorted(edge.items()):
            for link in self._repository.links_of(
                self._scope, entry_id, self._direction, self._kinds
            ):
                other = _other_end(link, entry_id)
                strength = path.strength * link.strength
                known = better.get(other) or found.get(other)
                if other != first and (known is None or strength > known.strength):
                    better[other] = _Path(strength, (*path.kinds, int(link.type)))
        self._read([each for each in better if each not in self._entries])
        return {each: path for each, path in better.items() if each in self._entries}

    def _read(self, ids: list[UUID]) -> None:
        present = self._present(ids)
        self._entries |= {key: entry for key, entry in present.items() if self._allows(entry)}

    def _present(self, ids: Sequence[UUID]) -> dict[UUID, MemoryEntry]:
        present = self._repository.present(self._scope, ids)
        return {key: entry for key, entry in present.items() if entry.status in self._statuses}

    def _place(self, reached: Reached) -> tuple[float, int, float, bytes]:
        created_at = self._entries[UUID(bytes=reached.id)].created_at.timestamp()
        return -reached.strength, len(reached.kinds), -created_at, reached.id


def _other_end(link: MemoryLink, entry_id: UUID) -> UUID:
    return link.to_id if link.from_id == entry_id else link.from_id
