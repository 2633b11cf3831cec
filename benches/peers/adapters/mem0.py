"""mem0 with its default store, Qdrant in a folder, and no language model (`infer=False`).

Its extras for keywords and entities load models from the network and are not there, so it ranks by
meaning. Rows are written into its store in one go, as `add(infer=False)` writes them one by one.
"""

import hashlib
import logging
import os
from uuid import NAMESPACE_OID, uuid5

from benches.peers.base import SEMANTIC
from benches.support.datasets import CACHE

os.environ["MEM0_TELEMETRY"] = "False"
# Its configuration goes here instead of the home folder.
os.environ["MEM0_DIR"] = str(CACHE / "mem0")
# A client of a language model is made and never used.
os.environ["OPENAI_API_KEY"] = "unused"

import mem0

AT_ONCE = 1_000
# It warns about its missing extras.
logging.getLogger("mem0").setLevel(logging.ERROR)
# Qdrant's advice to run a server for more than 20,000 points.
logging.getLogger("qdrant_client").setLevel(logging.ERROR)


class SharedVectors:
    """The members that mem0 requires of an embedder."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed(self, text, memory_action=None):  # noqa: ARG002 - the same for all
        return self.vectors.vector(text).tolist()

    def embed_batch(self, texts, memory_action=None):  # noqa: ARG002 - the same for all
        return self.vectors.embed(texts).tolist()


class Mem0:
    name = "mem0"
    modes = (SEMANTIC,)
    most_rows = 20_000

    def __init__(self, folder, vectors):
        store = {"path": str(folder / "qdrant"), "embedding_model_dims": vectors.dimensions}
        self.memory = mem0.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.memory.embedding_model = SharedVectors(vectors)
        self.ids = {}

    def add(self, rows):
        for first in range(0, len(rows), AT_ONCE):
            some = rows[first : first + AT_ONCE]
            ids = [str(uuid5(NAMESPACE_OID, row.id)) for row in some]
            self.memory.vector_store.insert(
                vectors=[row.vector.tolist() for row in some],
                payloads=[payload(row) for row in some],
                ids=ids,
            )
            self.ids.update(zip(ids, (row.id for row in some), strict=True))

    def search(self, query, mode):  # noqa: ARG002 - there is one
        filters = {"user_id": query.user}
        if query.topic is not None:
            filters["topic"] = query.topic
        # Its floor of .1 would hide matches of the filter.
        found = self.memory.search(query.text, top_k=query.k, filters=filters, threshold=0.0)
        return [self.ids[memory["id"]] for memory in found["results"]]

    def close(self):
        self.memory.close()
        self.memory.vector_store.client.close()


def payload(row):
    fields = {
        "data": row.text,
        "text_lemmatized": row.text,
        "hash": hashlib.md5(row.text.encode(), usedforsecurity=False).hexdigest(),
        "created_at": row.created_at.isoformat(),
        "updated_at": row.created_at.isoformat(),
        "role": "user",
        "user_id": row.user,
        "run_id": row.session,
        "actor_id": row.speaker,
        "position": row.position,
        "topic": row.topic,
    }
    return {name: value for name, value in fields.items() if value is not None}
