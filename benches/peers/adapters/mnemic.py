"""mnemic, through `Memory.search`."""

from benches.peers.base import HYBRID, KEYWORD, SEMANTIC
from mnemic import Memory

AT_ONCE = 10_000


class Mnemic:
    name = "mnemic"
    modes = (HYBRID, SEMANTIC, KEYWORD)
    most_rows = 1_000_000

    def __init__(self, folder, vectors):
        self.memory = Memory(folder / "memory.db", embedder=vectors)

    def add(self, rows):
        for first in range(0, len(rows), AT_ONCE):
            self.memory.add_many([fields(row) for row in rows[first : first + AT_ONCE]])

    def search(self, query, mode):
        hits = self.memory.search(
            query.text,
            user_id=query.user,
            limit=query.k,
            search_type=mode,
            filters=query.topic and {"metadata.topic": query.topic},
        )
        return [hit.metadata["row"] for hit in hits]

    def close(self):
        self.memory.close()


def fields(row):
    return {
        "content": row.text,
        "user_id": row.user,
        "created_at": row.created_at,
        "session_id": row.session,
        "position": row.position,
        "speaker": row.speaker,
        "metadata": {"row": row.id, "topic": row.topic},
    }
