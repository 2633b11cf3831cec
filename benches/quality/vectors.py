"""The default embedder's vectors, stored so that the next run of a set embeds nothing."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benches.quality.progress import Line
from benches.support.datasets import CACHE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mnemic.embed import Embedder, MiniLmEmbedder

AT_ONCE = 200
"""Texts embedded between two writes to the file."""

WAIT_SECONDS = 60


class StoredEmbedder:
    """An embedder that keeps its vectors in an SQLite file, under a hash of model and text.

    A vector comes back bit for bit. Thread-safe; several processes may share the file.
    """

    def __init__(self, embedder: MiniLmEmbedder, path: Path, made_by: str = "") -> None:
        """Open the file, made if missing. `made_by` is hashed as well."""
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.max_tokens = embedder.max_tokens
        self.similarity_floor = embedder.similarity_floor
        self.score_floors = embedder.score_floors
        self.languages = embedder.languages
        self.characters_seen = embedder.characters_seen
        self.embedded = 0
        self._embedder: Embedder = embedder
        self._made_by = made_by
        self._lock = threading.Lock()
        self._seconds = 0.0
        self._line = Line()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = sqlite3.connect(path, timeout=WAIT_SECONDS, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = OFF")  # a lost vector is computed again
        self._file.execute(
            "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB) WITHOUT ROWID"
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the texts' vectors, shape (len(texts), dimensions), float32."""
        keys = [self._key(text) for text in texts]
        with self._lock:
            found = self._stored(keys)
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            found |= self._embedded_now(missing)
        rows = [np.frombuffer(found[key], np.float32) for key in keys]
        return np.stack(rows) if rows else np.empty((0, self.dimensions), np.float32)

    def close(self) -> None:
        self._file.close()

    def _key(self, text: str) -> bytes:
        named = f"{self.model}\0{self._made_by}\0{text}"
        return hashlib.sha256(named.encode()).digest()[:16]

    def _stored(self, keys: list[bytes]) -> dict[bytes, bytes]:
        select = "SELECT vector FROM vectors WHERE key = ?"
        rows = ((key, self._file.execute(select, (key,)).fetchone()) for key in keys)
        return {key: row[0] for key, row in rows if row is not None}

    def _embedded_now(self, missing: dict[bytes, str]) -> dict[bytes, bytes]:
        """Embed the texts by key and store their vectors, so many at once as are lost at most."""
        found: dict[bytes, bytes] = {}
        keys = list(missing)
        for first in range(0, len(keys), AT_ONCE):
            some = keys[first : first + AT_ONCE]
            begin = time.monotonic()
            vectors = self._embedder.embed([missing[key] for key in some])
            self._seconds += time.monotonic() - begin
            rows = [np.asarray(vector, np.float32).tobytes() for vector in vectors]
            made = dict(zip(some, rows, strict=True))
            with self._file:
                self._file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", made.items())
            found |= made
            self._report(len(some), len(keys) - first - len(some))
        return found

    def _report(self, count: int, left: int) -> None:
        self.embedded += count
        rate = self.embedded / max(self._seconds, 1e-9)
        self._line.show(
            f"embedded {self.embedded:,} texts, {rate:.0f}/s, {left:,} more of this call"
        )


@cache
def minilm() -> StoredEmbedder:
    """Return the default embedder with its vectors stored in target/bench-data."""
    from mnemic.embed import MiniLmEmbedder  # noqa: PLC0415 - keyword rows need no model

    (probe,) = (embedder := MiniLmEmbedder()).embed(["of these weights and this encoder"])
    made = hashlib.sha256(probe.tobytes()).hexdigest()
    return StoredEmbedder(embedder, CACHE / "quality-vectors.sqlite", made)
