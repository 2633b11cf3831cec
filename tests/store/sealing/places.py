"""Stores of sealed memories, and what somebody who has no key may read and change in them."""

import base64

import apsw
import numpy as np
import psycopg

from mnemic.crypto import Encryption
from mnemic.errors import SealBrokenError
from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.store import open_store
from mnemic.store.operations import ScopeStatistics, Update
from tests.store.contract import AGENT, EVERYONE, added, embedded, linked
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid
from tests.support.keys import KEY
from tests.support.postgres_server import SERVER
from tests.support.sealing import make_sums_right
from tests.support.secret_forms import shown, written_in

SECRET = "zqsecret"  # noqa: S105 - no password
LOG = "Failed to decrypt memory entry"
VECTOR = (0.123456789, -0.987654321)
SEALED_TEXTS = {
    name: f"{SECRET} {name}"
    for name in ("speaker", "role", "category", "scope", "source", "message_id")
}


class Place:
    """A place in which stores are opened with any key, and tables changed behind their backs."""

    def __init__(self):
        self._opened = []

    def open(self, key=KEY, *, read_only=False, url=None, **options):
        """Open a store, with a key unless told otherwise."""
        encryption = None if key is None else Encryption(key, **options)
        url = self.url if url is None else url
        self._opened.append(open_store(url, encryption=encryption, read_only=read_only))
        return self._opened[-1]

    def close(self):
        for store in self._opened:
            store.close()

    def shows(self, *texts, vectors=(VECTOR,)):
        """Return what the place shows of texts and vectors, in any form."""
        data = self.bytes()
        forms = {
            vector: [np.array(vector, order).tobytes() for order in ("<f4", ">f4")]
            for vector in vectors
        }
        found = [vector for vector, own in forms.items() if any(form in data for form in own)]
        return shown(data, texts or (SECRET,)) + found

    def column(self, name, number, agent="a"):
        """Return a column of an entry of that number."""
        sql = f"SELECT {name} FROM agent_memory_entries WHERE agent_id = ? AND id = ?"  # noqa: S608
        ((value,),) = self.run(sql, agent, self.id_of(number))
        return value

    def put(self, name, value, number, agent="a"):
        """Write a column of an entry of that number."""
        sql = f"UPDATE agent_memory_entries SET {name} = ? WHERE agent_id = ? AND id = ?"  # noqa: S608
        self.run(sql, value, agent, self.id_of(number))

    def field(self, number):
        """Return the sealed field of an entry, out of its Base64."""
        return base64.b64decode(self.column("content", number), validate=True)

    def put_field(self, field, number):
        self.put("content", base64.b64encode(field).decode(), number)

    def vectors(self):
        """Return the stored bytes of each vector by its row, in the order of rows."""
        table, column = self.of_vectors
        sql = f"SELECT entry_row, {column} FROM {table} ORDER BY entry_row, part"  # noqa: S608
        return [(row, bytes(value)) for row, value in self.run(sql)]

    def put_vector(self, value, row):
        table, column = self.of_vectors
        self.run(f"UPDATE {table} SET {column} = ? WHERE entry_row = ?", value, row)  # noqa: S608

    def keys(self):
        """Return the agent and the salt of every key."""
        found = self.run("SELECT agent_id, salt FROM agent_memory_keys ORDER BY agent_id")
        return [(agent, bytes(salt)) for agent, salt in found]

    def make_sums_right(self):
        """Write the checksums that the rows ought to have, where there are any."""


class FilePlace(Place):
    """A file."""

    has_sums = has_plain_vectors = True
    of_vectors = "agent_memory_embeddings", "embedding"

    def __init__(self, folder):
        super().__init__()
        self._folder, self.url = folder, str(folder / "a.db")
        self.copy, self.other_url = str(folder / "copy.db"), self.url

    def bytes(self):
        return b"\n".join(data for _, data in sorted(written_in(self._folder).items()))

    def run(self, sql, *values):
        """Run a statement; return its rows."""
        with apsw.Connection(self.url) as connection:
            return connection.execute(sql, values).fetchall()

    def id_of(self, number):
        return number.to_bytes(16, "big")

    def make_sums_right(self):
        make_sums_right(self.url)

    def drop(self):
        self.close()


class ServerPlace(Place):
    """A database of a server, with a table for sealed vectors alone and no checksums of rows."""

    has_sums = has_plain_vectors = False
    of_vectors = "agent_memory_sealed_vectors", "sealed"

    def __init__(self, _folder):
        super().__init__()
        self.url, self.copy = SERVER.new_database(), SERVER.new_database(has_tables=False)
        self.other_url = f"{self.url}&application_name=other"

    def bytes(self):
        """Return all that the tables have, as the server sends it: texts, bytes and vectors."""
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'mnemic'"
        parts = []
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            for (table,) in cursor.execute(f"{tables} ORDER BY 1").fetchall():
                sql = f"COPY (SELECT * FROM mnemic.{table}) TO STDOUT (FORMAT BINARY)"  # noqa: S608
                with cursor.copy(sql) as rows:
                    parts.extend(map(bytes, rows))
        return b"\n".join(parts)

    def run(self, sql, *values):
        """Run a statement; return its rows."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET search_path TO mnemic, public")
            found = connection.execute(sql.replace("?", "%s"), values)
            return found.fetchall() if found.description else []

    def id_of(self, number):
        return uid(number)

    def drop(self):
        self.close()
        SERVER.drop(self.url)
        SERVER.drop(self.copy)


PLACES = {"file": FilePlace, "sealed postgres": ServerPlace}


def secret(number, vector=VECTOR, **fields):
    """Return a sensitive entry with a vector, secret in every field that is sealed."""
    given = {
        "content": f"{SECRET} {number}",
        "sensitive": True,
        "tags": [SECRET],
        "metadata": {f"{SECRET} key": f"{SECRET} value"},
        **SEALED_TEXTS,
    }
    return embedded(number, vector, **{**given, **fields})


def filled(store):
    """Store two sensitive entries, one of alice's, and a plain one of each."""
    added(store, "a", [secret(1), embedded(2), secret(3, user_id="alice")], ["k1", "k2", "k3"])
    added(store, "a", [numbered(4, user_id="alice")])


def sealed_and_plain(place):
    """Store three linked sealed entries of agent a, a plain one, and a sealed one of agent b."""
    store = place.open()
    entries = [secret(1), secret(2, (3, 4)), secret(3, user_id="alice"), embedded(4)]
    added(store, "a", entries, ["k", None, None, None])
    linked(store, 1, 2)
    added(store, "b", [secret(1, agent_id="b", content="of b")])
    store.close()


def updated(store, number, scope=AGENT, **fields):
    """Update an entry as the repository does, which looks for what makes it sensitive."""
    update = MemoryEntryUpdate(**fields)

    def change(old):
        return store.marked(update.applied_to(old, NOON))

    return store.write(Update(scope, only(number), change=change, now=NOON)).result()


def flipped(data, place):
    """Return bytes of which one bit is another."""
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)


def problems(store):
    """Return what a verification found, whether or not it raised an error."""
    try:
        return store.verify().problems
    except SealBrokenError as error:
        return error.report.problems


def everyone(agent):
    return Scope(agent, all_users=True)


def statistics(store, scope=EVERYONE):
    return store.read(ScopeStatistics(scope, NOON))
