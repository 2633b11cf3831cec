"""Near duplicates among the memories of each user: by their vectors, else by their texts."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias
from uuid import UUID

from mnemic._core import VectorMap, duplicates
from mnemic.arrays import Float32Array, np
from mnemic.model.deadline import check_deadline
from mnemic.model.validation import MAX_DIMENSIONS
from mnemic.store.values import StoredEntry

BLOCK: Final = 256
"""Vectors that are compared in one pass over those before them; more are hardly faster each."""


class StoredName(NamedTuple):
    """Row, id and user of a memory."""

    row: int
    id: UUID
    user_id: str | None


class NearDuplicate(NamedTuple):
    """A memory, the id of the earlier one that it repeats, and their cosine; None for texts."""

    name: StoredName
    repeats: UUID
    similarity: float | None


_Vectors: TypeAlias = Float32Array
_Match: TypeAlias = tuple[float, StoredName]


class NearDuplicates:
    """Finds the near duplicates of an agent's memories, never between two users.

    In the order they come, a memory is compared with the earlier ones of its user that repeat none
    themselves. It repeats the most similar of those with a similarity of at least `near`, of equal
    ones the earliest. The similarity of memories with a vector is the cosine, of those in as many
    chunks as each other the mean of the cosines of their chunks, in order. Memories without a
    vector are compared with each other by their texts, as by `mnemic._core.duplicates`.

    Args:
        near: Smallest similarity, 0 to 1.
        deadline: In seconds of `time.monotonic()`; None is no limit.
    """

    def __init__(self, near: float, deadline: float | None) -> None:
        self._near = near
        self._deadline = deadline
        self._by_vectors: dict[tuple[str | None, int], _VectorComparison] = {}
        self._by_texts: defaultdict[str | None, _TextComparison] = defaultdict(_TextComparison)

    def take(self, stored: StoredEntry) -> list[NearDuplicate]:
        """Take a memory in; return the duplicates that are known by now and were not before."""
        entry = stored.entry
        name, vector = StoredName(stored.row, entry.id, entry.user_id), _vector_of(stored)
        if vector is None:
            self._by_texts[entry.user_id].add(name, entry.content)
            return []
        compared = self._by_vectors.get((entry.user_id, vector.size))
        if compared is None:
            compared = _VectorComparison(vector.size, self._near)
            self._by_vectors[entry.user_id, vector.size] = compared
        compared.add(name, vector)
        if not compared.is_full:
            return []
        check_deadline(self._deadline)
        return compared.found()

    def rest(self) -> Iterator[NearDuplicate]:
        """Yield the duplicates that are not known yet, after the last memory."""
        while self._by_vectors:  # which frees the vectors of each user
            _, compared = self._by_vectors.popitem()
            if compared.has_pairs:
                check_deadline(self._deadline)
                yield from compared.found()
        while self._by_texts:
            _, texts = self._by_texts.popitem()
            check_deadline(self._deadline)
            yield from texts.found(self._near)


class _TextComparison:
    """Compares texts with each other."""

    def __init__(self) -> None:
        self._names: list[StoredName] = []
        self._texts: list[str] = []

    def add(self, name: StoredName, text: str) -> None:
        if text:
            self._names.append(name)
            self._texts.append(text)

    def found(self, near: float) -> Iterator[NearDuplicate]:
        for place, original in enumerate(duplicates(self._texts, near)):
            if place != original:
                yield NearDuplicate(self._names[place], self._names[original].id, None)


class _VectorComparison:
    """Compares vectors of one length with those before them that repeat none.

    Args:
        size: Their length.
        near: Smallest cosine.
    """

    def __init__(self, size: int, near: float) -> None:
        self._near = near
        self._size = size
        self._originals: dict[int, StoredName] = {}
        self._map: VectorMap | None = None
        self._waiting: list[tuple[StoredName, _Vectors]] = []

    @property
    def is_full(self) -> bool:
        """Whether the waiting vectors are to be compared."""
        return len(self._waiting) >= BLOCK

    @property
    def has_pairs(self) -> bool:
        """Whether a waiting vector can be compared with another one."""
        return bool(self._waiting) and len(self._waiting) + len(self._originals) > 1

    def add(self, name: StoredName, vector: _Vectors) -> None:
        """Let a vector wait."""
        self._waiting.append((name, vector))

    def found(self) -> list[NearDuplicate]:
        """Compare the waiting vectors; return the duplicates among them, in their order."""
        waiting, self._waiting = self._waiting, []
        names = [name for name, _ in waiting]
        block = np.stack([vector for _, vector in waiting])
        before, within = self._nearest_before(block), self._within(block)
        found: list[NearDuplicate] = []
        fresh: dict[int, None] = {}
        for place, name in enumerate(names):
            inside = next((match for match in within[place] if match[1] in fresh), None)
            best = _better(before[place], inside and (inside[0], names[inside[1]]))
            if best is None:
                fresh[place] = None
            else:
                found.append(NearDuplicate(name, best[1].id, min(1.0, best[0])))
        self._keep([names[place] for place in fresh], block[list(fresh)])
        return found

    def _nearest_before(self, block: _Vectors) -> list[_Match | None]:
        """Return the most similar of the vectors compared before, for each of a block."""
        if self._map is None:
            return [None] * len(block)
        rows, similarities = self._map.search(block, k=1, min_score=self._near)
        pairs = zip(rows[:, 0].tolist(), similarities[:, 0].tolist(), strict=True)
        return [None if row < 0 else (cosine, self._originals[row]) for row, cosine in pairs]

    def _within(self, block: _Vectors) -> list[list[tuple[float, int]]]:
        """Return the similar places before each place of a block, the most similar first."""
        own = VectorMap.from_rows(np.arange(len(block)), block)
        limits, places, similarities = own.range_search(block, min_score=self._near)
        pairs = list(zip(similarities.tolist(), places.tolist(), strict=True))
        return [
            [match for match in pairs[limits[at] : limits[at + 1]] if match[1] < at]
            for at in range(len(block))
        ]

    def _keep(self, names: Sequence[StoredName], vectors: _Vectors) -> None:
        """Compare later vectors with these."""
        if self._map is None:
            self._map = VectorMap(self._size)
        self._map.upsert([name.row for name in names], vectors)
        self._originals.update((name.row, name) for name in names)


def _better(before: _Match | None, inside: _Match | None) -> _Match | None:
    """Return the better match; of equal ones the first, which is the earlier memory."""
    if before is None or inside is None:
        return before or inside
    return before if before[0] >= inside[0] else inside


def _vector_of(stored: StoredEntry) -> _Vectors | None:
    """Return the vector of a memory, the unit vectors of its chunks one after the other.

    None without one, and for chunks that are too long together.
    """
    first = stored.entry.embedding
    if first is None:
        return None
    chunks = np.stack([first, *stored.more])
    lengths = np.linalg.norm(chunks, axis=1, keepdims=True)
    if not lengths.all() or chunks.size > MAX_DIMENSIONS:
        return None
    return np.ravel(chunks / lengths).astype(np.float32)
