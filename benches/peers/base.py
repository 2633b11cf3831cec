"""What is stored and searched, and the face that every system has."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    import numpy as np

    from benches.peers.vectors import StoredVectors

HYBRID, SEMANTIC, KEYWORD = "hybrid", "semantic", "keyword"


class Row(NamedTuple):
    """One memory; what a system has no place for it is not given."""

    id: str
    text: str
    vector: np.ndarray
    user: str
    topic: str
    created_at: datetime
    session: str | None = None
    position: int | None = None
    speaker: str | None = None


class Query(NamedTuple):
    """What is looked for: a text and its vector among the memories of a user, and of a topic."""

    text: str
    vector: np.ndarray
    user: str
    k: int
    topic: str | None = None


class Peer(Protocol):
    """A system under its usual settings, on a disk where it has files, without any network.

    `modes` are the ways it can search, `most_rows` how many rows it holds in reasonable time.
    Every search brings back the texts with the ids, as a caller needs them.
    """

    name: str
    modes: tuple[str, ...]
    most_rows: int

    def __init__(self, folder: Path, vectors: StoredVectors) -> None:
        """Open an empty store in an empty folder; `vectors` look embeddings up."""

    def add(self, rows: Sequence[Row]) -> None:
        """Store the rows, all there will be, and finish what the system does afterwards."""

    def search(self, query: Query, mode: str) -> list[str]:
        """Return the ids of the best `query.k` rows, best first."""

    def close(self) -> None:
        """Release everything but the folder."""
