"""Deadlines end SQLite's statements in their midst."""

import pytest

from mnemic.errors import DeadlineExceededError
from mnemic.model import MemoryFilter, deadline
from mnemic.store import changes
from mnemic.store.operations import EntriesByRow, ScopeStatistics, SoftDeleteAll, StoredEntries
from mnemic.store.sqlite import hardening
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import AGENT, EVERYTHING, MODEL, added, changed, count_of, matching
from tests.support.clock import NOON
from tests.support.entries import numbered

SOME = 500


class SteppedClock:
    """A monotonic clock that ticks once each time it is read."""

    def __init__(self):
        self.reads = 0

    def monotonic(self):
        self.reads += 1
        return self.reads


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    opened = SqliteStore(":memory:" if request.param == "memory" else tmp_path / "a.db")
    added(opened, "a", [numbered(at, tags=["one", "two"]) for at in range(SOME)])
    yield opened
    opened.close()


@pytest.fixture
def clock(monkeypatch):
    stepped = SteppedClock()
    monkeypatch.setattr(deadline, "time", stepped)
    monkeypatch.setattr(hardening, "STEPS_PER_LOOK", 100)
    return stepped


READS = {
    "stats": lambda store, at: store.read(ScopeStatistics(AGENT, now=NOON), deadline=at),
    "count": lambda store, at: count_of(store, AGENT, now=NOON, deadline=at),
    "matching": lambda store, at: matching(
        store, AGENT, EVERYTHING, MemoryFilter(), now=NOON, deadline=at
    ),
    "get_rows": lambda store, at: store.read(
        EntriesByRow(AGENT, range(1, SOME), now=NOON), deadline=at
    ),
    "stored_after": lambda store, at: store.read(
        StoredEntries(AGENT, 0, SOME, now=NOON, include_deleted=True, model=None), deadline=at
    ),
    "rows_since": lambda store, at: store.rows_since("a", MODEL, 0, deadline=at),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_ended_in_its_midst_and_the_next_one_is_whole(store, clock, name):
    before = 3  # a deadline that both checks before the statement are in time for
    with pytest.raises(DeadlineExceededError):
        READS[name](store, before)
    assert before < clock.reads < 10
    looked = clock.reads
    READS[name](store, None)
    assert clock.reads == looked
    READS[name](store, 10**9)
    assert clock.reads > looked + before


def test_a_full_load_is_never_cut_short(store, clock, monkeypatch):
    monkeypatch.setattr(changes, "MAX_CHANGES", 8)
    monkeypatch.setattr(changes, "PRUNE_EVERY", 1)
    changed(store, 1, importance=0.1)
    for since in (None, 1):
        clock.reads = 0
        assert len(store.rows_since("a", MODEL, since, deadline=4).records) == SOME
    clock.reads = 0
    with pytest.raises(DeadlineExceededError):
        store.rows_since("a", MODEL, SOME, deadline=0)


@pytest.mark.usefixtures("clock")
def test_a_write_has_no_deadline_after_a_read_with_one(store):
    with pytest.raises(DeadlineExceededError):
        store.read(ScopeStatistics(AGENT, now=NOON), deadline=3)
    assert len(store.write(SoftDeleteAll(AGENT, NOON)).result()) == SOME
