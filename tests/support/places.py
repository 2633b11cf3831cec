"""Places where tests keep memories: this process, files, and databases of PostgreSQL."""

import atexit
from contextlib import ExitStack
from itertools import count

import pytest

from mnemic import Memory
from tests.support.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.support.postgres_server import SERVER

POOLED = "postgres-pooler"
KINDS = {
    "sqlite": {},
    "postgres": {},
    "postgres-search": {"search_in": "database"},
    "postgres-policies": {"row_security": True},
    POOLED: {"row_security": True},
}
"""Options with which memories are opened in a place of each kind."""

IN_POSTGRES = tuple(kind for kind in KINDS if kind != "sqlite" and (PROGRAM or kind != POOLED))
STORES = ("sqlite", "postgres")
SEARCHED = (*STORES, "postgres-search")


class Places:
    """Empty places of one kind, until the end of a test.

    Args:
        kind: One of `KINDS`.
        folder: Directory of the files; without one, memories of SQLite are those of this process.
    """

    def __init__(self, kind, folder=None):
        if kind == POOLED and PROGRAM is None:
            pytest.skip(MISSING)
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
        is_guarded = "row_security" in self.options
        url = SERVER.new_guarded_database() if is_guarded else SERVER.new_database()
        self._closing.callback(SERVER.drop, url)
        return POOLER.url(url) if self.kind == POOLED else url

    def new_for_a_copy(self):
        """Return the URL of a new database of PostgreSQL without tables."""
        url = SERVER.new_database(has_tables=False)
        self._closing.callback(SERVER.drop, url)
        return url

    def opened(self, agent_id="default", *, url=None, **options):
        """Open a memory, in another empty place unless one is named; it is closed at the end."""
        memory = Memory(url or self.new(), agent_id, **self.options, **options)
        self._closing.callback(memory.close)
        return memory


POOLER = PgBouncer(SERVER)

atexit.register(SERVER.close)
atexit.register(POOLER.close)
