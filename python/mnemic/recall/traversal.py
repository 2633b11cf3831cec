"""Reasons of recalled memories, and links followed in the store, to inactive memories too."""

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from mnemic.index import LinkedRow, RankedRow
from mnemic.model import LinkType, MemoryEntry, MemoryStatus, RecallMode, Scope
from mnemic.model.deadline import check_deadline
from mnemic.repository import Follow, LinkedOutcome, Repository

Reason: TypeAlias = Callable[[RankedRow], tuple[float, str]]
"""The score of a hit, and its reason in words."""


def relevant_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of relevant recall."""
    similarity, salience = hit.components.get("similarity"), hit.components["salience"]
    topic = "" if similarity is None else f"Similarity: {similarity:.2f}, "  # as without a vector
    return hit.shown_score, f"{topic}Salience: {salience:.2f}"


def recent_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of recent recall."""
    recency = hit.components["recency"]
    return recency, f"Recency: {recency:.2f}, Salience: {hit.components['salience']:.2f}"


def important_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of important recall."""
    salience = hit.components["salience"]
    return salience, f"Salience: {salience:.2f}"


def frequent_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of frequent recall."""
    frequency = hit.components["access"]
    return frequency, f"Frequency: {frequency:.2f}, Salience: {hit.components['salience']:.2f}"


@lru_cache(maxsize=1024)  # there are few kinds, and hundreds of hits
def linked_reason(kinds: tuple[int, ...]) -> str:
    """Return the reason of a memory that links of these types lead to."""
    names = (LinkType.numbered(kind).name.title().replace("_", "") for kind in kinds)
    return f"Linked via {', '.join(names)}"


def temporal_reason(hit: RankedRow) -> tuple[float, str]:
    """Return the score and reason of recall from a time range, with or without a topic."""
    similarity = hit.components.get("similarity")
    topic = "" if similarity is None else f", Similarity: {similarity:.2f}"
    return hit.components["salience"], f"Temporal match{topic}"


REASONS: dict[RecallMode, Reason] = {
    RecallMode.RELEVANT: relevant_reason,
    RecallMode.RECENT: recent_reason,
    RecallMode.IMPORTANT: important_reason,
    RecallMode.FREQUENT: frequent_reason,
    RecallMode.TEMPORAL: temporal_reason,
}


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
        follow: The links to follow.
        statuses: Only memories with these statuses are found and traversed.
        allows: Further test of a found memory.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        follow: Follow,
        *,
        statuses: Collection[MemoryStatus],
        allows: Allows,
    ) -> None:
        self._reader = repository.reader
        self._scope = scope
        self._follow = follow
        self._statuses = statuses
        self._allows = allows
        self._entries: dict[int, MemoryEntry] = {}

    def traverse(self, row: int) -> LinkedOutcome | None:
        """Return the memories within a number of hops, strongest first; None without the first."""
        if row not in self._present([row]):
            return None
        found: dict[int, _Path] = {}
        edge = {row: _Path(1.0, ())}
        for _ in range(self._follow.depth):
            edge = self._hop(row, edge, found)
            found |= edge
        hits = sorted(
            (LinkedRow(each, self._entries[each].id.bytes, *path) for each, path in found.items()),
            key=self._sort_key,
        )
        entries = {each: self._entries[each] for each in found}
        return LinkedOutcome(hits[: self._follow.limit], entries, len(hits))

    def _hop(self, first: int, edge: dict[int, _Path], found: dict[int, _Path]) -> dict[int, _Path]:
        better: dict[int, _Path] = {}
        reader, (kinds, direction, _, _, deadline) = self._reader, self._follow
        for row, path in sorted(edge.items()):
            check_deadline(deadline)
            for linked in reader.links(self._scope, row, direction, kinds):
                link, end = linked.link, linked.other_end(row)
                strength = path.strength * link.strength
                known = better.get(end) or found.get(end)
                if end != first and (known is None or strength > known.strength):
                    better[end] = _Path(strength, (*path.kinds, int(link.type)))
        self._read([each for each in better if each not in self._entries])
        return {each: path for each, path in better.items() if each in self._entries}

    def _read(self, rows: list[int]) -> None:
        present = self._present(rows)
        self._entries |= {row: entry for row, entry in present.items() if self._allows(entry)}

    def _present(self, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        present = self._reader.present(self._scope, rows)
        return {row: entry for row, entry in present.items() if entry.status in self._statuses}

    def _sort_key(self, hit: LinkedRow) -> tuple[float, int, float, bytes, str]:
        entry = self._entries[hit.row]
        created_at, user = entry.created_at.timestamp(), entry.user_id or ""
        return -hit.strength, len(hit.kinds), -created_at, hit.id, user
