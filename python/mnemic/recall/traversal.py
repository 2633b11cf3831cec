"""Reasons of recalled memories, and links followed in the store, to inactive memories too."""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import msgspec

from mnemic.index import LinkedRow, RankedRow
from mnemic.model import LinkType, MemoryEntry, MemoryStatus, RecallMode, Scope
from mnemic.model.deadline import check_deadline
from mnemic.repository import Follow, LinkedOutcome
from mnemic.repository.reading import Reader

_PARTS = {RecallMode.RECENT: ("recency", "Recency"), RecallMode.FREQUENT: ("access", "Frequency")}
"""The component that scores a mode, and its name in a reason."""


def scored_reason(mode: RecallMode, hit: RankedRow) -> tuple[float, str]:
    """Return the score of a hit in a mode, and its reason in words."""
    salience, similarity = hit.components["salience"], hit.components.get("similarity")
    shown = f"Salience: {salience:.2f}"
    topic = "" if similarity is None else f"Similarity: {similarity:.2f}"  # as without a vector
    if mode is RecallMode.RELEVANT:
        return hit.shown_score, ", ".join(filter(None, (topic, shown)))
    if mode is RecallMode.TEMPORAL:
        return salience, ", ".join(filter(None, ("Temporal match", topic)))
    if mode is RecallMode.IMPORTANT:
        return salience, shown
    name, noun = _PARTS[mode]
    return hit.components[name], f"{noun}: {hit.components[name]:.2f}, {shown}"


@lru_cache(maxsize=1024)  # there are few kinds, and hundreds of hits
def linked_reason(kinds: tuple[int, ...]) -> str:
    """Return the reason of a memory that links of these types lead to."""
    names = (LinkType.numbered(kind).name.title().replace("_", "") for kind in kinds)
    return f"Linked via {', '.join(names)}"


Allows: TypeAlias = Callable[[MemoryEntry], bool]
"""Whether a memory may be found and traversed."""


class _Path(NamedTuple):
    strength: float
    kinds: tuple[int, ...]


class Traversal(msgspec.Struct, eq=False):
    """Follows links from one memory, as the index does among active ones.

    Args:
        reader: Reads the memories and their links.
        scope: Only memories of it are found.
        follow: The links to follow.
        statuses: Only memories with these statuses are found and traversed.
        allows: Further test of a found memory.
        entries: Those that were read.
    """

    reader: Reader
    scope: Scope
    follow: Follow
    statuses: Collection[MemoryStatus]
    allows: Allows
    entries: dict[int, MemoryEntry] = msgspec.field(default_factory=dict)

    def traverse(self, row: int) -> LinkedOutcome | None:
        """Return the memories within a number of hops, strongest first; None without the first."""
        if row not in self._present([row]):
            return None
        found: dict[int, _Path] = {}
        edge = {row: _Path(1.0, ())}
        for _ in range(self.follow.depth):
            edge = self._hop(row, edge, found)
            found |= edge
        hits = sorted(
            (LinkedRow(each, self.entries[each].id.bytes, *path) for each, path in found.items()),
            key=self._sort_key,
        )
        entries = {each: self.entries[each] for each in found}
        return LinkedOutcome(hits[: self.follow.limit], entries, len(hits))

    def _hop(self, first: int, edge: dict[int, _Path], found: dict[int, _Path]) -> dict[int, _Path]:
        better: dict[int, _Path] = {}
        reader, (kinds, direction, _, _, deadline) = self.reader, self.follow
        for row, path in sorted(edge.items()):
            check_deadline(deadline)
            for linked in reader.links(self.scope, row, direction, kinds):
                link, end = linked.link, linked.other_end(row)
                strength = path.strength * link.strength
                known = better.get(end) or found.get(end)
                if end != first and (known is None or strength > known.strength):
                    better[end] = _Path(strength, (*path.kinds, int(link.type)))
        self._read([each for each in better if each not in self.entries])
        return {each: path for each, path in better.items() if each in self.entries}

    def _read(self, rows: list[int]) -> None:
        present = self._present(rows)
        self.entries |= {row: entry for row, entry in present.items() if self.allows(entry)}

    def _present(self, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        present = self.reader.present(self.scope, rows)
        return {row: entry for row, entry in present.items() if entry.status in self.statuses}

    def _sort_key(self, hit: LinkedRow) -> tuple[float, int, float, bytes, str]:
        entry = self.entries[hit.row]
        created_at, user = entry.created_at.timestamp(), entry.user_id or ""
        return -hit.strength, len(hit.kinds), -created_at, hit.id, user
