"""LangGraph's InMemoryStore: a namespace a user, the text embedded; nothing goes to a disk."""

import os

os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from benches.peers.base import SEMANTIC

NAMESPACE = "memories"


class LangGraph:
    name = "LangGraph InMemoryStore"
    modes = (SEMANTIC,)
    most_rows = 20_000

    def __init__(self, folder, vectors):  # noqa: ARG002 - it has no files
        def embed(texts):
            return vectors.embed(texts).tolist()

        index = {"dims": vectors.dimensions, "embed": embed, "fields": ["text"]}
        self.store = InMemoryStore(index=index)

    def add(self, rows):
        self.store.batch([PutOp((NAMESPACE, row.user), row.id, value(row)) for row in rows])

    def search(self, query, mode):  # noqa: ARG002 - there is one
        topic = {"topic": query.topic} if query.topic else None
        found = self.store.search(
            (NAMESPACE, query.user), query=query.text, filter=topic, limit=query.k
        )
        return [item.key for item in found]

    def close(self):
        self.store = None


def value(row):
    return {
        "text": row.text,
        "topic": row.topic,
        "created_at": row.created_at.isoformat(),
        "session": row.session,
        "position": row.position,
        "speaker": row.speaker,
    }
