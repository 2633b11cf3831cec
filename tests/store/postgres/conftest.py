"""Databases for the tests of the PostgreSQL store."""

import pytest

from tests.support.postgres_server import SERVER


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
