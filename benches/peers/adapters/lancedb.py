"""LanceDB: a table with its default full-text index and bitmaps of users and topics.

Vectors have no index of their own and are scanned, which is exact; hybrid search fuses by
reciprocal rank, its default.
"""

import os

import numpy as np

os.environ.setdefault("LANCEDB_LOG", "error")

import lancedb
import pyarrow as pa
from lancedb.index import FTS, Bitmap

from benches.peers.base import HYBRID, KEYWORD

COLUMNS = ["id", "text"]


class Lance:
    name = "LanceDB"
    modes = (HYBRID, KEYWORD)
    most_rows = 1_000_000

    def __init__(self, folder, vectors):
        self.dimensions = vectors.dimensions
        self.database = lancedb.connect(folder / "lance")

    def add(self, rows):
        self.table = self.database.create_table("memories", self.columns(rows))
        indexes = {"text": FTS(), "user": Bitmap(), "topic": Bitmap()}
        for column, config in indexes.items():
            self.table.create_index(column, config=config)
        self.table.wait_for_index([f"{column}_idx" for column in indexes])

    def columns(self, rows):
        vectors = np.concatenate([row.vector for row in rows])
        kept = ("id", "text", "user", "topic", "created_at", "session", "position", "speaker")
        columns = {name: [getattr(row, name) for row in rows] for name in kept}
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(vectors), self.dimensions)
        return pa.table({**columns, "vector": vectors})

    def search(self, query, mode):
        if mode == HYBRID:
            search = self.table.search(query_type="hybrid").vector(query.vector).text(query.text)
        else:
            search = self.table.search(query.text, query_type="fts")
        search = search.where(condition(query), prefilter=True).limit(query.k)
        return search.select(COLUMNS).to_arrow()["id"].to_pylist()

    def close(self):
        self.table = self.database = None


def condition(query):
    user = f"user = '{query.user}'"
    return user if query.topic is None else f"{user} AND topic = '{query.topic}'"
