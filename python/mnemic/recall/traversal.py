"""Traversal of links in the store, which includes archived and superseded memories."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypeAlias

from mnemic.index import LinkedRow
from mnemic.model import LinkType, MemoryEntry, MemoryStatus, Scope
from mnemic.model.deadline import check_deadline
from mnemic.model.link import Direction
from mnemic.repository import LinkedOutcome, Repository

Allows: TypeAlias = Callable[[MemoryEntry], bool]
"""Whether a memory may be found and traversed."""


class _Path(NamedTuple):
    strength: float
    kinds: tuple[int, ...]


class Traversal:
    """Follows links from one memory, as the index does among active ones.

    Args:
        repository: The memories.
        scope: Only memories of it are found.
        kinds: Only links of these types; None follows all.
        direction: Direction of the links.
        statuses: Only memories with these statuses are found and traversed.
        allows: Further test of a found memory.
        deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.
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
        deadline: float | None,
    ) -> None:
        self._finder = repository.finder
        self._scope = scope
        self._kinds = kinds
        self._direction: Direction = direction
        self._statuses = statuses
        self._allows = allows
        self._deadline = deadline
        self._entries: dict[int, MemoryEntry] = {}

    def traverse(self, row: int, depth: int, limit: int) -> LinkedOutcome | None:
        """Return the memories within a number of hops, strongest first; None without the first."""
        if row not in self._present([row]):
            return None
        found: dict[int, _Path] = {}
        edge = {row: _Path(1.0, ())}
        for _ in range(depth):
            edge = self._hop(row, edge, found)
            found |= edge
        hits = sorted(
            (LinkedRow(each, self._entries[each].id.bytes, *path) for each, path in found.items()),
            key=self._sort_key,
        )
        return LinkedOutcome(hits[:limit], {each: self._entries[each] for each in found}, len(hits))

    def _hop(self, first: int, edge: dict[int, _Path], found: dict[int, _Path]) -> dict[int, _Path]:
        better: dict[int, _Path] = {}
        for row, path in sorted(edge.items()):
            check_deadline(self._deadline)
            for end in self._finder.link_ends(self._scope, row, self._direction, self._kinds):
                strength = path.strength * end.strength
                known = better.get(end.row) or found.get(end.row)
                if end.row != first and (known is None or strength > known.strength):
                    better[end.row] = _Path(strength, (*path.kinds, int(end.type)))
        self._read([each for each in better if each not in self._entries])
        return {each: path for each, path in better.items() if each in self._entries}

    def _read(self, rows: list[int]) -> None:
        present = self._present(rows)
        self._entries |= {row: entry for row, entry in present.items() if self._allows(entry)}

    def _present(self, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        present = self._finder.present(self._scope, rows)
        return {row: entry for row, entry in present.items() if entry.status in self._statuses}

    def _sort_key(self, hit: LinkedRow) -> tuple[float, int, float, bytes, str]:
        entry = self._entries[hit.row]
        created_at, user = entry.created_at.timestamp(), entry.user_id or ""
        return -hit.strength, len(hit.kinds), -created_at, hit.id, user
