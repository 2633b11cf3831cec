"""The stores that the contract is tested on: whatever a URL opens."""

import os
from contextlib import closing, suppress

import pytest

from mnemic.crypto import Encryption
from mnemic.errors import StoreError
from mnemic.store import changes, open_store
from tests.support.dict_store.store import DictStore
from tests.support.keys import KEY
from tests.support.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.support.postgres_server import SERVER
from tests.support.tiers import is_sampled

URLS = {
    "dict": "dict://",
    "file": "sqlite:///{folder}/{name}.db",
    "memory": "sqlite:///:memory:",
    "sealed": "sqlite:///{folder}/{name}.db",
    "postgres": "postgres {folder} {name}",
    "sealed postgres": "postgres {folder} {name}",
    "pooled postgres": "postgres through PgBouncer {folder} {name}",
}
"""URLs of empty stores: `{folder}` is a directory of the test's own, `{name}` a name in it.

Those whose kind names "sealed" seal every entry. A dict has neither keys nor a place to last in.

The environment variable MNEMIC_STORE_URL adds another store, MNEMIC_ROW_SECURITY one whose
database keeps agents apart by policies.
"""
if "MNEMIC_ROW_SECURITY" in os.environ:
    URLS["guarded"] = "postgres with policies {folder} {name}"
if "MNEMIC_STORE_URL" in os.environ:
    URLS["other"] = os.environ["MNEMIC_STORE_URL"]
POOLER = PgBouncer(SERVER)
SHARED = {kind: url for kind, url in URLS.items() if "{name}" in url}
"""Those that may be opened twice."""


class Places:
    """The URLs of one test's stores, by name; a name in PostgreSQL is a database of its own."""

    def __init__(self, kind, folder):
        if kind == "pooled postgres" and PROGRAM is None:
            pytest.skip(MISSING)
        self._kind = kind
        self._folder = folder
        self._databases = {}

    def url(self, name="a"):
        if "postgres" not in self._kind and self._kind != "guarded":
            return URLS[self._kind].format(folder=self._folder, name=name)
        if name not in self._databases:
            self._databases[name] = self._new(has_tables=name == "a")
        url = self._databases[name]
        return POOLER.url(url) if self._kind == "pooled postgres" else url

    def _new(self, *, has_tables):
        if self._kind == "guarded" and has_tables:
            return SERVER.new_guarded_database()
        return SERVER.new_database(has_tables=has_tables)

    def drop(self):
        for url in self._databases.values():
            SERVER.drop(url)


def encryption_of(kind):
    """Return the encryption of a kind of store; None seals nothing."""
    return Encryption(KEY, encrypt_all=True) if "sealed" in kind else None


def pytest_collection_modifyitems(config, items):
    """Leave out what a store is not made for: sealing every entry, or lasting no longer than it."""
    left_out = {item for item in items if is_of_plain_text(item) or is_beyond_a_dict(item)}
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=list(left_out))


def is_beyond_a_dict(item):
    """Return whether an item asks of a dict what only a store does that lasts."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return params.get("store") == "dict" and item.get_closest_marker("beyond_a_dict") is not None


def is_of_plain_text(item):
    """Return whether an item runs a test of plain text on a store that seals every entry."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    is_sealed = any(isinstance(value, str) and "sealed" in value.split() for value in params)
    return is_sealed and item.get_closest_marker("plain_text") is not None


@pytest.fixture(scope="session", autouse=True)
def postgres_server():
    """Stop the server and the pooler, if a test has started them."""
    yield
    POOLER.close()
    SERVER.close()


@pytest.fixture(params=URLS)
def store(request, tmp_path):
    """Return a new store of each kind."""
    if request.param == "dict":
        with closing(DictStore()) as opened:
            yield opened
        return
    places = Places(request.param, tmp_path)
    opened = open_store(places.url(), encryption=encryption_of(request.param))
    yield opened
    if is_sampled(request.node.nodeid):
        with suppress(StoreError):  # closed, or meant to be damaged
            report = opened.verify()
            assert report.ok, report.problems
    opened.close()
    places.drop()


@pytest.fixture(params=SHARED)
def opening(request, tmp_path):
    """Return what opens one place as often as it is called, or another one by name."""
    opened, places = [], Places(request.param, tmp_path)

    def opens(name="a", **options):
        encryption = encryption_of(request.param)
        opened.append(open_store(places.url(name), encryption=encryption, **options))
        return opened[-1]

    opens.place = places.url
    yield opens
    for one in opened:
        one.close()
    places.drop()


@pytest.fixture
def stores(opening):
    """Return two openings of one place."""
    return opening(), opening()


@pytest.fixture
def few_changes_are_kept(monkeypatch):
    """Let the stores keep eight changes, where it would take long to make more than they keep."""
    monkeypatch.setattr(changes, "MAX_CHANGES", 8)
    monkeypatch.setattr(changes, "PRUNE_EVERY", 1)
