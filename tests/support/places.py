"""Places where tests keep memories: this process, files, and databases of PostgreSQL.

A database is emptied and used again, in 3 ms; to make one and to drop it takes 80.
"""

import atexit
from contextlib import ExitStack
from itertools import count

import psycopg

from mnemic import Memory
from tests.support.postgres_server import OWNER, SERVER

KINDS = {
    "sqlite": {},
    "postgres": {},
    "postgres-search": {"search_in": "database"},
    "postgres-policies": {"row_security": True},
}
"""Options with which memories are opened in a place of each kind."""

IN_POSTGRES = tuple(kind for kind in KINDS if kind != "sqlite")
STORES = ("sqlite", "postgres")
SEARCHED = (*STORES, "postgres-search")

TABLES = (
    *("links", "embeddings", "sealed_vectors", "entries"),
    *("changes", "walls", "agents", "keys"),
)
EMPTY = "; ".join(
    [
        *(f"DELETE FROM mnemic.agent_memory_{table}" for table in TABLES),  # noqa: S608 - constants
        "ALTER SEQUENCE mnemic.agent_memory_rows RESTART",
    ]
)
VECTOR_INDEXES = (
    "SELECT indexname FROM pg_indexes WHERE schemaname = 'mnemic' AND indexdef LIKE '%USING hnsw%'"
)


class Places:
    """Empty places of one kind, until the end of a test.

    Args:
        kind: One of `KINDS`.
        folder: Directory of the files; without one, memories of SQLite are those of this process.
    """

    def __init__(self, kind, folder=None):
        self.kind, self.options = kind, KINDS[kind]
        self._folder = folder
        self._numbers = count()
        self._closing = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Close what was opened here, and give the databases back."""
        self._closing.close()

    def new(self):
        """Return the URL of another empty place."""
        if self.kind == "sqlite":
            return (
                ":memory:" if self._folder is None else f"{self._folder}/{next(self._numbers)}.db"
            )
        pool = DATABASES["row_security" in self.options]
        url = pool.take()
        self._closing.callback(pool.give_back, url)
        return url

    def of_its_own(self, *, has_tables=True):
        """Return the URL of a new database of PostgreSQL, which is dropped at the end."""
        url = SERVER.new_database(has_tables=has_tables)
        self._closing.callback(SERVER.drop, url)
        return url

    def opened(self, agent_id="default", *, url=None, **options):
        """Open a memory, in another empty place unless one is named; it is closed at the end."""
        memory = Memory(url or self.new(), agent_id, **self.options, **options)
        self._closing.callback(memory.close)
        return memory


class Databases:
    """Empty databases, made when there are too few.

    Args:
        make: Makes one and returns its URL.
    """

    def __init__(self, make):
        self._make = make
        self._free = []
        self._connections = {}

    def take(self):
        """Return the URL of an empty database."""
        if not self._connections:
            SERVER.closing.callback(self._close)
        if self._free:
            return self._free.pop()
        url = self._make()
        superuser = url.replace(f"{OWNER}@", "mnemic@", 1)
        self._connections[url] = psycopg.connect(superuser, autocommit=True)
        return url

    def give_back(self, url):
        """Empty a database for its next use."""
        connection = self._connections[url]
        for (name,) in connection.execute(VECTOR_INDEXES).fetchall():
            connection.execute(f'DROP INDEX mnemic."{name}"')
        connection.execute(EMPTY)
        self._free.append(url)

    def _close(self):
        for url, connection in self._connections.items():
            connection.close()
            if SERVER.is_given:
                SERVER.drop(url)
        self._connections.clear()
        self._free.clear()


DATABASES = {False: Databases(SERVER.new_database), True: Databases(SERVER.new_guarded_database)}
"""Databases by whether policies keep agents apart."""

atexit.register(SERVER.close)
