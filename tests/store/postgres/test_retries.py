"""Writes that the server ends for another one's sake: they are restarted, for a while."""

import threading
import time

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import StoreBusyError, StoreError
from mnemic.index.loading import Loader
from mnemic.store.sql import change_log
from tests.support.embedders import WordEmbedder

PATIENCE = 30.0

REFUSING = """
CREATE SEQUENCE attempts;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('public.attempts') <= {times} THEN
        RAISE 'refused' USING ERRCODE = '{code}';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT ON mnemic.agent_memory_changes
FOR EACH ROW EXECUTE FUNCTION refuse();
"""
"""Has the first writes end with an error; what a sequence gave is not rolled back."""

SERIALISATION, DEADLOCK = "40001", "40P01"


@pytest.fixture
def other(database):
    """Return a connection of another program."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SET search_path = public")
        yield connection


def eventually(condition):
    """Wait until a condition holds."""
    ends = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)


@pytest.mark.parametrize("code", [SERIALISATION, DEADLOCK])
def test_a_write_is_begun_anew_after_a_serialisation_failure_or_a_deadlock(database, other, code):
    other.execute(REFUSING.format(times=3, code=code))
    with Memory(database, embedder=None) as memory:
        one = memory.add("an apple")
        assert [entry.id for entry in memory.list()] == [one.id]
        assert memory.verify().ok
    assert other.execute("SELECT last_value FROM attempts").fetchone() == (4,)


@pytest.mark.parametrize("code", [SERIALISATION, DEADLOCK])
def test_a_write_that_never_gets_through_is_a_typed_error_and_nothing_is_stored(
    database, other, code
):
    other.execute(REFUSING.format(times=1_000, code=code))
    with Memory(database, embedder=None) as memory:
        with pytest.raises(StoreBusyError):
            memory.add("an apple")
        assert memory.count() == 0
        other.execute("DROP TRIGGER refuse ON mnemic.agent_memory_changes")
        memory.add("bread")
        assert memory.count() == 1


def test_another_error_is_not_tried_again(database, other):
    other.execute(REFUSING.format(times=1, code="23514"))
    with Memory(database, embedder=None) as memory:
        with pytest.raises(StoreError, match="23514"):
            memory.add("an apple")
        assert memory.count() == 0
    assert other.execute("SELECT last_value FROM attempts").fetchone() == (1,)


def test_a_write_that_the_server_ends_to_resolve_a_deadlock_succeeds(database, other):
    changed = []
    with Memory(f"{database}&options=-c%20deadlock_timeout%3D2s", embedder=None) as memory:
        one = memory.add("an apple")
        other.execute("SET deadlock_timeout = '60s'")  # so it is the memory's write that is ended
        other.execute("BEGIN")
        other.execute("SELECT FROM mnemic.agent_memory_agents FOR UPDATE")
        writer = threading.Thread(target=lambda: changed.append(memory.update(one.id, content="b")))
        writer.start()
        with psycopg.connect(database, autocommit=True) as witness:
            eventually(lambda: witness.execute(WAITING).fetchone() == (1,))
            other.execute("SELECT FROM mnemic.agent_memory_entries FOR UPDATE")
            other.execute("ROLLBACK")
            writer.join(PATIENCE)
            assert changed[0].content == "b"
            eventually(lambda: witness.execute(DEADLOCKS).fetchone() == (1,))
        assert (memory.get(one.id).version, memory.count()) == (one.version + 1, 1)
        assert memory.verify().ok


WAITING = (
    "SELECT count(*) FROM pg_stat_activity "
    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
)
DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"


LOADING = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND state = 'idle in transaction'
"""
"""Ends the sessions that are in the midst of reading batches."""


@pytest.mark.parametrize("progress", [None, lambda *_: None], ids=["quiet", "reported"])
def test_an_index_that_is_read_anew_has_nothing_of_the_read_that_was_cut_short(
    database, other, monkeypatch, progress
):
    """Without that, what was deleted in between would stay in the index."""
    monkeypatch.setattr(change_log, "_PART", 10)
    add_records, cut = Loader.add_records, []
    with Memory(database, embedder=WordEmbedder()) as writer:
        ids = [entry.id for entry in writer.add_many([f"note {at}" for at in range(30)])]

        def interrupted(self, records):
            add_records(self, records)
            if not cut:
                cut.append(writer.delete_many(ids[:3], permanent=True))
                assert other.execute(LOADING).rowcount == 1

        monkeypatch.setattr(Loader, "add_records", interrupted)
        url = f"{database}&application_name=reader"
        with Memory(url, embedder=WordEmbedder(), progress=progress) as reader:
            assert len(reader.search("note", limit=100)) == 27
            assert reader.repository.lister._is_loaded
            assert reader.count() == 27
            assert cut == [3]
