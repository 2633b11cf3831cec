"""Rows, queries, and the interface of every system."""

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
    """One memory; a system gets the fields that it has a place for."""

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
    """A search: a text and its vector among the memories of a user, and of a topic."""

    text: str
    vector: np.ndarray
    user: str
    k: int
    topic: str | None = None


class Peer(Protocol):
    """A system under its usual settings, with its files on a disk, without any network.

    `modes` are the ways it can search, `most_rows` how many rows it holds in reasonable time.
    Every search returns the texts with the ids, as a caller needs them.
    """

    name: str
    modes: tuple[str, ...]
    most_rows: int

    def __init__(self, folder: Path, vectors: StoredVectors) -> None:
        """Open an empty store in an empty folder; `vectors` look embeddings up."""

    def add(self, rows: Sequence[Row]) -> None:
        """Store all rows, and finish the system's work afterwards."""

    def search(self, query: Query, mode: str) -> list[str]:
        """Return the ids of the best `query.k` rows, best first."""

    def close(self) -> None:
        """Release everything but the folder."""
