"""The stores that the contract is shown on; another one is one more line in each table."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from mnemic.errors import StoreError
from mnemic.store import open_store
from mnemic.store.sqlite import change_log


class Backend(NamedTuple):
    """How to open a store of one kind.

    Attributes:
        open: Takes a place, and `read_only`.
        place: Names a place that nothing is at, in a directory of this test.
    """

    open: Callable
    place: Callable[[Path, str], object]


SHARED = {"file": Backend(open_store, lambda folder, name: folder / f"{name}.db")}
"""Those that may be opened twice."""
BACKENDS = SHARED | {"memory": Backend(open_store, lambda _folder, _name: ":memory:")}


@pytest.fixture(params=BACKENDS)
def store(request, tmp_path):
    """Return a new store of each kind."""
    backend = BACKENDS[request.param]
    opened = backend.open(backend.place(tmp_path, "a"))
    yield opened
    with suppress(StoreError):  # closed, or meant to be damaged
        report = opened.verify()
        assert report.ok, report.problems
    opened.close()


@pytest.fixture(params=SHARED)
def opening(request, tmp_path):
    """Return what opens one place as often as it is called, or another one by name."""
    backend, opened = SHARED[request.param], []

    def opens(name="a", **options):
        opened.append(backend.open(backend.place(tmp_path, name), **options))
        return opened[-1]

    opens.place = lambda name: backend.place(tmp_path, name)
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
    monkeypatch.setattr(change_log, "MAX_CHANGES", 8)
    monkeypatch.setattr(change_log, "_PRUNE_EVERY", 1)
