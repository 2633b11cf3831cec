"""sqlite-vec and FTS5 in one file: a partition a user, ranks fused by their reciprocals.

Each list has four times as many as are wanted; the constant of the fusion is 60 (Cormack et al.,
SIGIR 2009). Keywords are FTS5's BM25 alone: it stems with Porter's algorithm, and a query is any of
its words.
"""

import re
from collections import defaultdict

import apsw
import sqlite_vec

from benches.peers.base import HYBRID, KEYWORD, SEMANTIC

CANDIDATES = 4
FUSION = 60
TABLES = """
CREATE TABLE memories (
  row INTEGER PRIMARY KEY, id TEXT, text TEXT, user TEXT, topic TEXT,
  created_at TEXT, session TEXT, position INTEGER, speaker TEXT);
CREATE INDEX memories_user ON memories (user, topic);
CREATE VIRTUAL TABLE words USING fts5(
  text, content='memories', content_rowid='row', tokenize='porter unicode61');
CREATE VIRTUAL TABLE vectors USING vec0(
  row INTEGER PRIMARY KEY, user TEXT PARTITION KEY, topic TEXT,
  embedding float[{}] distance_metric=cosine);
"""


class SqliteVec:
    name = "sqlite-vec"
    modes = (HYBRID, SEMANTIC, KEYWORD)
    most_rows = 100_000

    def __init__(self, folder, vectors):
        self.connection = apsw.Connection(str(folder / "memories.db"))
        self.connection.enable_load_extension(True)  # noqa: FBT003 - apsw's way
        self.connection.load_extension(sqlite_vec.loadable_path())
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute(TABLES.format(vectors.dimensions))

    def add(self, rows):
        places = list(enumerate(rows))
        with self.connection:
            self.connection.executemany(
                "INSERT INTO memories VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                [(at, *facts(row)) for at, row in places],
            )
            self.connection.executemany(
                "INSERT INTO vectors VALUES (?, ?, ?, ?)",
                [(at, row.user, row.topic, row.vector.tobytes()) for at, row in places],
            )
            self.connection.execute("INSERT INTO words (words) VALUES ('rebuild')")

    def search(self, query, mode):
        if mode == SEMANTIC:
            best = self.by_meaning(query, query.k)
        elif mode == KEYWORD:
            best = self.by_words(query, query.k)
        else:
            wanted = CANDIDATES * query.k
            best = fused([self.by_meaning(query, wanted), self.by_words(query, wanted)])[: query.k]
        texts = [
            self.connection.execute(
                "SELECT id, text FROM memories WHERE row = ?", (row,)
            ).fetchone()
            for row in best
        ]
        return [name for name, _ in texts]

    def by_meaning(self, query, k):
        sql = "SELECT row FROM vectors WHERE embedding MATCH ? AND k = ? AND user = ?"
        values = [query.vector.tobytes(), k, query.user]
        if query.topic is not None:
            sql += " AND topic = ?"
            values.append(query.topic)
        return [row for (row,) in self.connection.execute(sql, values)]

    def by_words(self, query, k):
        sql = (
            "SELECT row FROM words JOIN memories ON row = words.rowid "
            "WHERE words MATCH ? AND user = ?"
        )
        values = [any_word(query.text), query.user]
        if query.topic is not None:
            sql += " AND topic = ?"
            values.append(query.topic)
        sql += " ORDER BY rank LIMIT ?"
        return [row for (row,) in self.connection.execute(sql, [*values, k])]

    def close(self):
        self.connection.close()


def facts(row):
    time = row.created_at.isoformat()
    return row.id, row.text, row.user, row.topic, time, row.session, row.position, row.speaker


def any_word(text):
    return " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text)) or '""'


def fused(rankings):
    """Return the rows by the sum of 1 / (60 + rank), best first."""
    scores = defaultdict(float)
    for ranking in rankings:
        for rank, row in enumerate(ranking, 1):
            scores[row] += 1 / (FUSION + rank)
    return sorted(scores, key=scores.get, reverse=True)
