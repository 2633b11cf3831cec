"""LanceDB's hybrid search with its defaults: full-text index and vectors, by reciprocal rank."""

from __future__ import annotations

import os
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from benches.quality.methods.dense import Dense

os.environ.setdefault("LANCEDB_LOG", "error")

try:
    import lancedb
    import pyarrow as pa
    from lancedb.index import FTS
except ImportError as error:
    raise SystemExit("the row needs LanceDB: pip install lancedb==0.40.0") from error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benches.quality.datasets import Memory


class Lance(Dense):
    """A table of the same vectors, which are scanned, with the default full-text index."""

    name = "LanceDB hybrid"

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()

    def index(self, memories: Sequence[Memory]) -> None:
        super().index(memories)
        rows = self._vectors.astype(np.float32)
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), rows.shape[1])
        texts = [memory.content for memory in memories]
        columns = pa.table({"id": self._ids, "text": texts, "vector": vectors})
        database = lancedb.connect(self._folder.name)
        self._table = database.create_table("memories", columns, mode="overwrite")
        self._table.create_index("text", config=FTS())
        self._table.wait_for_index(["text_idx"])

    def search(self, question: str, limit: int) -> list[str]:
        text = question.replace('"', " ")  # a phrase, for which the index has no positions
        search = self._table.search(query_type="hybrid").vector(self._embed([question])[0])
        return search.text(text).limit(limit).select(["id"]).to_arrow()["id"].to_pylist()

    def close(self) -> None:
        self._folder.cleanup()
