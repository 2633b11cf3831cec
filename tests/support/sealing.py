"""Sealed memories of tests, and files that are changed behind a store's back."""

import base64
from itertools import groupby
from operator import itemgetter

import apsw
import numpy as np

from mnemic._core import row_sums, vector_sums
from mnemic.crypto import Encryption
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, KEY
from mnemic.store.sqlite.maintenance import repair_agents
from mnemic.store.sqlite.opening import connect
from tests.support import keys
from tests.support.embedders import WordEmbedder

_CHECKED = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries"  # noqa: S608 - constants


def encryption(key=keys.KEY, **options):
    return Encryption(key, **options)


class DenseEmbedder:
    """Embeds by words, into vectors none of whose components is 0."""

    max_tokens = None  # it sees all of any text
    similarity_floor = None

    def __init__(self, dimensions=32, model="dense"):
        self.model, self.dimensions = model, dimensions
        self._words = WordEmbedder()
        random = np.random.default_rng(1)
        self._projection = random.normal(size=(64, dimensions)).astype(np.float32)

    def embed(self, texts):
        return self._words.embed(texts) @ self._projection


def run(path, sql, *values):
    """Run a statement on a file; return its rows."""
    connection = apsw.Connection(str(path))
    try:
        connection.pragma("foreign_keys", value=False)
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def column(path, name, number, agent="a"):
    """Return a column of an entry of that number, a text as bytes."""
    sql = (  # a constant of the test is its column
        f"SELECT CASE WHEN typeof({name}) = 'text' THEN CAST({name} AS BLOB) ELSE {name} END "  # noqa: S608
        "FROM agent_memory_entries WHERE agent_id = ? AND id = ?"
    )
    ((value,),) = run(path, sql, agent, number.to_bytes(16, "big"))
    return value


def put(path, name, value, number, agent="a"):
    """Write a column of an entry of that number; bytes become a text, except in a fingerprint."""
    mark = "CAST(? AS TEXT)" if type(value) is bytes and "fingerprint" not in name else "?"
    sql = f"UPDATE agent_memory_entries SET {name} = {mark} WHERE agent_id = ? AND id = ?"  # noqa: S608 - as above
    run(path, sql, value, agent, number.to_bytes(16, "big"))


def opened_field(path, number, agent="a"):
    """Return the sealed field of an entry, out of its Base64."""
    return base64.b64decode(column(path, "content", number, agent), validate=True)


def put_field(path, field, number, agent="a"):
    """Write the sealed field of an entry, in Base64."""
    put(path, "content", base64.b64encode(field), number, agent)


def make_sums_right(path):
    """Write the checksums that the rows of a file ought to have, and those of their agents."""
    connection = connect(str(path))  # no trigger watches it
    try:
        with connection:
            _make_sums_right(connection)
    finally:
        connection.close()


def _make_sums_right(connection):
    rows = connection.execute(_CHECKED).fetchall()
    for row in rows:
        (own,) = row_sums([row[1 : KEY + 2]])
        connection.execute(
            "UPDATE agent_memory_entries SET row_sum = ? WHERE row = ?", (own, row[0])
        )
    vectors = connection.execute(
        "SELECT entry_row, model, embedding FROM agent_memory_embeddings "
        "WHERE substr(model, 1, 1) <> char(31) ORDER BY entry_row, model, part"
    ).fetchall()
    for row, parts in groupby(vectors, itemgetter(0)):
        of_row = list(parts)
        (own,) = vector_sums(of_row[0][1], [[blob for *_, blob in of_row]])
        connection.execute(
            "UPDATE agent_memory_entries SET vector_sum = ? WHERE row = ?", (own, row)
        )
    repair_agents(connection, RowCodec())
