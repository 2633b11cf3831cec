"""areev: a file, a namespace a user, a memory an event; words and vectors fused by areev."""

import json

import areev

from benches.peers.base import HYBRID

AT_ONCE = 5_000
TELEMETRY_OFF = "off"


class Areev:
    name = "areev"
    modes = (HYBRID,)
    most_rows = 20_000

    def __init__(self, folder, vectors):
        self.path, self.vectors = str(folder / "areev.db"), vectors
        self.ids = {}

    def add(self, rows):
        """Load without the index of words, then build it, as areev advises for many at once."""
        file = areev.Areev(self.path, telemetry=TELEMETRY_OFF, index_text=False)
        for user in sorted({row.user for row in rows}):
            self.load(file, user, [row for row in rows if row.user == user])
        del file
        self.file = areev.Areev(self.path, telemetry=TELEMETRY_OFF, index_text=True)
        self.file.reindex_text()
        self.file.set_embedder(lambda text: self.vectors.vector(text).tolist())

    def load(self, file, user, rows):
        for first in range(0, len(rows), AT_ONCE):
            some = rows[first : first + AT_ONCE]
            grains = [{"grain_type": "event", "fields": fields(row)} for row in some]
            hashes = json.loads(file.add_batch(json.dumps(grains), ns=user))
            items = [
                {"hash": name, "vector": row.vector.tolist()}
                for name, row in zip(hashes, some, strict=True)
            ]
            file.add_embeddings(json.dumps(items))
            self.ids.update(zip(hashes, (row.id for row in some), strict=True))

    def search(self, query, mode):  # noqa: ARG002 - there is one
        if query.topic is None:
            found = json.loads(self.file.search(query.text, k=query.k, ns=query.user))
        else:
            found = json.loads(self.file.cal(statement(query)))["grains"]
        return [self.ids[grain["hash"]] for grain in found]

    def close(self):
        self.file = None


def fields(row):
    fields = {
        "content": row.text,
        "created_at": round(row.created_at.timestamp() * 1000),
        "session_id": row.session,
        "speaker": row.speaker,
        "tags": [row.topic],
    }
    return {name: value for name, value in fields.items() if value is not None}


def statement(query):
    """Write the filtered search in areev's language."""
    return (
        f"RECALL events ABOUT {json.dumps(query.text)} WHERE namespace = {json.dumps(query.user)} "
        f"AND tags INCLUDE [{json.dumps(query.topic)}] LIMIT {query.k}"
    )
