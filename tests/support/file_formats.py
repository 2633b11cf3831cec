"""Files of the formats as they are, which every later version opens or refuses.

    python -m tests.support.file_formats

writes `vector_map_v1`, `string_vector_map_v1`, and `snapshot_v1.db` with the snapshot of its index,
to `tests/fixtures`. A format that changes gets files with the next number, and earlier ones stay.

Files of approximate indexes are not kept: FAISS's version is in them, and those of any other
version are refused.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from mnemic import Memory, StringVectorMap, VectorMap
from mnemic.repository import index_snapshots
from tests.support.embedders import WordEmbedder
from tests.support.paths import FIXTURES

VECTOR_MAP = FIXTURES / "vector_map_v1"
STRING_VECTOR_MAP = FIXTURES / "string_vector_map_v1"
SNAPSHOT = FIXTURES / "snapshot_v1.db"
"""A store; the folder `snapshot_v1.db-index` beside it has the snapshot."""

LABEL = b"a label"
WORDS = ("tea", "boat", "Bergen", "garden", "bread", "winter", "piano")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def kept_rows(count, dim):
    """Return rows that no generator of random numbers has a part in, shape (count, dim)."""
    numbers = np.arange(count * dim).reshape(count, dim)
    return ((numbers * 7919 % 257 - 128) / 32).astype(np.float32)


def kept_map():
    ids = np.arange(70) * 3 - 32  # of both signs, and none is -1
    return VectorMap.from_rows(ids, kept_rows(70, 20), "inner_product")


def kept_string_map():
    ids = [f"ñ {number}" for number in range(20)]
    return StringVectorMap.from_rows(ids, kept_rows(20, 5))


def opened(path):
    return Memory(path, embedder=WordEmbedder(dimensions=16), track_access=False)


def fill(memory):
    for number in range(40):
        words = [WORDS[number * step % len(WORDS)] for step in (1, 2, 4)]
        memory.add(
            f"Ann told Bob of {' and '.join(words)} on day {number}",
            id=UUID(int=number + 1),
            user_id=("ann", "bob")[number % 2],
            session_id=f"session {number // 8}",
            speaker="Ann Lee",
            tags=words[:1],
            importance=number / 40,
            metadata={"number": number},
            created_at=BEGIN + timedelta(days=number),
        )


def write():
    kept_map().save(VECTOR_MAP, label=LABEL)
    kept_string_map().save(STRING_VECTOR_MAP)
    index_snapshots.MIN_ROWS = 1
    with opened(SNAPSHOT) as memory:
        fill(memory)
        memory.search("tea", user_id="ann")


if __name__ == "__main__":
    write()
