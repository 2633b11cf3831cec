"""Filters in SQL, on a real file."""

import pytest

from mnemic.store.sqlite.store import SqliteStore
from tests.support.entries import numbered
from tests.support.filters import keep, numbers_found


@pytest.fixture
def search(tmp_path):
    """Stores what it is given by name, and returns the names that a filter lets through."""

    paths = {}

    def stored(entries):
        path = str(tmp_path / f"{len(paths)}.db")
        store = SqliteStore(path)
        keep(store, [numbered(at, **fields) for at, fields in enumerate(entries.values())])
        store.close()
        return path

    def found(entries, asked):
        names, key = list(entries), repr(entries)
        if key not in paths:
            paths[key] = stored(entries)
        return {names[at] for at in numbers_found(paths[key], asked)}

    return found
