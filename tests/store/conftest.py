"""The stores that the contract is tested on: whatever a URL opens."""

import os
from contextlib import suppress

import pytest

from mnemic.errors import StoreError
from mnemic.store import changes, open_store

URLS = {"file": "sqlite:///{folder}/{name}.db", "memory": "sqlite:///:memory:"}
"""URLs of empty stores: `{folder}` is a directory of the test's own, `{name}` a name in it.

The environment variable MNEMIC_STORE_URL adds another store.
"""
if "MNEMIC_STORE_URL" in os.environ:
    URLS["other"] = os.environ["MNEMIC_STORE_URL"]
SHARED = {kind: url for kind, url in URLS.items() if "{name}" in url}
"""Those that may be opened twice."""


@pytest.fixture(params=URLS)
def store(request, tmp_path):
    """Return a new store of each kind."""
    opened = open_store(URLS[request.param].format(folder=tmp_path, name="a"))
    yield opened
    with suppress(StoreError):  # closed, or meant to be damaged
        report = opened.verify()
        assert report.ok, report.problems
    opened.close()


@pytest.fixture(params=SHARED)
def opening(request, tmp_path):
    """Return what opens one place as often as it is called, or another one by name."""
    opened = []

    def place(name):
        return SHARED[request.param].format(folder=tmp_path, name=name)

    def opens(name="a", **options):
        opened.append(open_store(place(name), **options))
        return opened[-1]

    opens.place = place
    yield opens
    for one in opened:
        one.close()


@pytest.fixture
def stores(opening):
    """Return two openings of one place."""
    return opening(), opening()


@pytest.fixture
def few_changes_are_kept(monkeypatch):
    """Let the stores keep eight changes, where it would take long to make more than they keep."""
    monkeypatch.setattr(changes, "MAX_CHANGES", 8)
    monkeypatch.setattr(changes, "PRUNE_EVERY", 1)
