"""What the store in a file does alone, deadlines in the midst of statements included."""

import numpy as np
import pytest

from mnemic.errors import DeadlineExceededError
from mnemic.model import MemoryFilter, deadline
from mnemic.model.filter import EVERY_ENTRY
from mnemic.model.rows import State
from mnemic.store import changes
from mnemic.store.changes import MAX_CHANGES
from mnemic.store.operations import (
    AccessesSince,
    EntriesById,
    EntriesByRow,
    Links,
    RowsSince,
    ScopeStatistics,
    SoftDelete,
    StoredEntries,
)
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql import change_log
from mnemic.store.sqlite import change_log as sqlite_log
from mnemic.store.sqlite import checksums, hardening
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import (
    AGENT,
    ALICE,
    EVERYONE,
    EVERYTHING,
    MODEL,
    Taken,
    added,
    changed,
    contents_of,
    count_of,
    embedded,
    linked,
    matching,
    rows_of,
    rows_since,
    seq_of,
)
from tests.support.clock import NOON
from tests.support.entries import numbered, uid

CODEC = RowCodec()


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    opened = SqliteStore(":memory:" if request.param == "memory" else tmp_path / "a.db")
    yield opened
    opened.close()


@pytest.mark.parametrize("agents", [1, 9])
def test_everything_is_taken_in_parts_of_one_size(store, monkeypatch, agents):
    monkeypatch.setattr(change_log, "_PART", 2)
    for number in range(agents):
        name = "a" if number == 0 else f"b{number}"
        entries = [embedded(at, (at + 1, number), agent_id=name) for at in range(5)]
        added(store, name, [*entries, numbered(5, agent_id=name)])
    taken = Taken()
    batch = rows_since(store, None, sink=taken)
    assert (batch.records, batch.vectors) == ([], None)
    assert [len(part) for part in taken.records] == [2, 2, 2]
    assert [record[0] for part in taken.records for record in part] == [1, 2, 3, 4, 5, 6]
    assert [len(rows) for rows, _ in taken.vectors] == [2, 2, 1]
    assert np.concatenate([rows for rows, _ in taken.vectors]).tolist() == [1, 2, 3, 4, 5]
    vectors = np.concatenate([part for _, part in taken.vectors])
    assert vectors.tolist() == [[at + 1, 0] for at in range(5)]


def test_a_hundred_thousand_changes_are_kept(store):
    end = -(-MAX_CHANGES // 1024) * 1024
    with store._connections._held() as connection:
        connection.execute(
            "INSERT INTO agent_memory_agents (agent_id, seq) VALUES ('a', ?)", (end - 2,)
        )
    added(store, "a", [embedded(1)])
    added(store, "a", [embedded(2)])
    assert seq_of(store) == end
    assert rows_since(store, end - MAX_CHANGES - 1).since is None
    assert rows_since(store, end - MAX_CHANGES).since == end - MAX_CHANGES
    assert rows_since(store, end + 1).since is None


def test_no_statement_reads_more_rows_than_it_needs(store):
    plans = []

    def explain(cursor, sql, values):
        if sql.startswith(("SELECT", "UPDATE")):
            explained = cursor.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            plans.append((sql, " | ".join(step[-1] for step in explained)))
        return True

    added(store, "a", [embedded(1), numbered(2)])
    with store._connections.reading() as connection:
        pass  # the next reads are on the same one
    for call in (
        lambda: store.read(EntriesById(ALICE, [uid(1)], now=NOON)),
        lambda: store.read(EntriesById(ALICE, [uid(1)], now=NOON, include_deleted=True)),
        lambda: store.read(EntriesById(EVERYONE, [uid(1)], now=NOON, include_deleted=True)),
        lambda: store.read(EntriesByRow(AGENT, [1, 2], now=NOON)),
        lambda: contents_of(store, "a", [1, 2]),
        *(
            lambda since=since, model=model, state=state: change_log.rows_since(
                connection, CODEC, RowsSince("a", model, since, state=state)
            )
            for since in (1, None)
            for model, state in (*((MODEL, each) for each in State), (None, State.ACTIVE))
        ),
        lambda: store.read(AccessesSince("a", 0)),
    ):
        connection.exec_trace = explain
        call()
        connection.exec_trace = None
    assert len(plans) == 49
    for sql, plan in plans:
        if sql in {sqlite_log._ALL_VECTORS, sqlite_log._LAST_VECTOR, sqlite_log._LONG}:
            continue
        if "entries_by_id" in plan:
            assert "(agent_id=? AND id=?" in plan, plan
            continue
        reads_all = "by_agent WHERE agent_id = ? AND " in sql and sql.endswith(" ORDER BY row")
        is_ranged = reads_all or sql in sqlite_log._PLACED.values() or "access_seq >" in sql
        assert any(key in plan for key in ("(rowid=?)", "(agent_id=?", "(from_row=?)")), plan
        assert ("entries_by_" in plan) == is_ranged, plan
        assert ("access_seq>?" in plan) == ("access_seq >" in sql), plan
        assert "TEMP B-TREE" not in plan, plan


LINK_READS = {
    "links": lambda store: store.read(Links(AGENT, NOON, uid(1))),
    "links of a row": lambda store: store.read(Links(AGENT, NOON, rows_of(store)[1])),
}


@pytest.mark.parametrize("name", LINK_READS)
def test_a_link_written_while_links_are_read_is_not_taken_for_damage(tmp_path, monkeypatch, name):
    store, writer = SqliteStore(tmp_path / "a.db"), SqliteStore(tmp_path / "a.db")
    added(store, "a", [numbered(1), numbered(2), numbered(3)])
    linked(store, 1, 2)
    before, with_sums = LINK_READS[name](store), checksums.rows_with_sums

    def late(connection, rows):
        linked(writer, 1, 3)
        return with_sums(connection, rows)

    monkeypatch.setattr(checksums, "rows_with_sums", late)
    assert LINK_READS[name](store) == before
    monkeypatch.undo()
    assert len(LINK_READS[name](store)) == 2
    writer.close()
    store.close()


SOME = 500


class SteppedClock:
    """A monotonic clock that ticks once each time it is read."""

    def __init__(self):
        self.reads = 0

    def monotonic(self):
        self.reads += 1
        return self.reads


@pytest.fixture(params=["file", "memory"])
def full(request, tmp_path):
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
    "stats": lambda full, at: full.read(ScopeStatistics(AGENT, now=NOON), deadline=at),
    "count": lambda full, at: count_of(full, AGENT, now=NOON, deadline=at),
    "matching": lambda full, at: matching(
        full, AGENT, EVERYTHING, MemoryFilter(), now=NOON, deadline=at
    ),
    "get_rows": lambda full, at: full.read(
        EntriesByRow(AGENT, range(1, SOME), now=NOON), deadline=at
    ),
    "stored_after": lambda full, at: full.read(
        StoredEntries(AGENT, 0, SOME, now=NOON, include_deleted=True, model=None), deadline=at
    ),
    "rows_since": lambda full, at: full.read(RowsSince("a", MODEL, 0), deadline=at),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_is_ended_in_its_midst_and_the_next_one_is_whole(full, clock, name):
    before = 3  # a deadline that both checks before the statement are in time for
    with pytest.raises(DeadlineExceededError):
        READS[name](full, before)
    assert before < clock.reads < 10
    looked = clock.reads
    READS[name](full, None)
    assert clock.reads == looked
    READS[name](full, 10**9)
    assert clock.reads > looked + before


def test_a_full_load_is_never_cut_short(full, clock, monkeypatch):
    monkeypatch.setattr(changes, "MAX_CHANGES", 8)
    monkeypatch.setattr(changes, "PRUNE_EVERY", 1)
    changed(full, 1, importance=0.1)
    for since in (None, 1):
        clock.reads = 0
        assert len(full.read(RowsSince("a", MODEL, since), deadline=4).records) == SOME
    clock.reads = 0
    with pytest.raises(DeadlineExceededError):
        full.read(RowsSince("a", MODEL, SOME), deadline=0)


@pytest.mark.usefixtures("clock")
def test_a_write_has_no_deadline_after_a_read_with_one(full):
    with pytest.raises(DeadlineExceededError):
        full.read(ScopeStatistics(AGENT, now=NOON), deadline=3)
    assert len(full.write(SoftDelete(AGENT, EVERY_ENTRY, NOON)).result()) == SOME
