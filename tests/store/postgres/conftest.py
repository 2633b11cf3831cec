"""Databases for the tests of the PostgreSQL store."""

import pytest

from mnemic.store.postgres import connections
from tests.support.postgres_server import SERVER, Server


@pytest.fixture
def server(monkeypatch):
    """Return a durable server of the test's own, and let calls wait for it briefly."""
    monkeypatch.delenv("MNEMIC_TEST_POSTGRES", raising=False)
    monkeypatch.setattr(connections, "PATIENCE", 3.0)
    own = Server(fsync="on", synchronous_commit="on")
    yield own
    own.close()


@pytest.fixture
def database():
    """Return the URL of a new database with mnemic's tables."""
    url = SERVER.new_database()
    yield url
    SERVER.drop(url)


@pytest.fixture
def empty_database():
    """Return the URL of a new database without mnemic's tables."""
    url = SERVER.new_database(has_tables=False)
    yield url
    SERVER.drop(url)
