"""Chroma: a persistent collection with its HNSW index of cosines."""

import os

os.environ["ANONYMIZED_TELEMETRY"] = "False"

import chromadb
from chromadb.config import Settings

from benches.peers.base import SEMANTIC


class Chroma:
    name = "Chroma"
    modes = (SEMANTIC,)
    most_rows = 100_000

    def __init__(self, folder, vectors):  # noqa: ARG002 - queries bring their vectors
        settings = Settings(anonymized_telemetry=False)
        self.client = chromadb.PersistentClient(str(folder / "chroma"), settings=settings)
        self.collection = self.client.create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, rows):
        at_once = self.client.get_max_batch_size()
        for first in range(0, len(rows), at_once):
            some = rows[first : first + at_once]
            self.collection.add(
                ids=[row.id for row in some],
                embeddings=[row.vector for row in some],
                documents=[row.text for row in some],
                metadatas=[metadata(row) for row in some],
            )

    def search(self, query, mode):  # noqa: ARG002 - there is one
        where = {"user": query.user}
        if query.topic is not None:
            where = {"$and": [where, {"topic": query.topic}]}
        found = self.collection.query(
            query_embeddings=[query.vector], n_results=query.k, where=where
        )
        return found["ids"][0]

    def close(self):
        self.client.close()


def metadata(row):
    fields = {
        "user": row.user,
        "topic": row.topic,
        "created_at": row.created_at.isoformat(),
        "session": row.session,
        "position": row.position,
        "speaker": row.speaker,
    }
    return {name: value for name, value in fields.items() if value is not None}
