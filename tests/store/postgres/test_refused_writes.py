"""Writes that are refused, and those that are tried again."""

import random
import threading
from functools import partial

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.errors import DeadlineExceededError, InvalidEntryError, StoreBusyError, StoreError
from mnemic.index.loading import Loader
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.session import Connection, Session, prepare
from mnemic.store.postgres.target import target_of
from mnemic.store.sql import change_log
from tests.support.embedders import WordEmbedder
from tests.support.postgres_server import SERVER
from tests.support.threads import run_together
from tests.support.tiers import amount, examples
from tests.support.waiting import until

LETTERS = random.Random(0)  # noqa: S311 - no secret
TOO_LONG = "".join(chr(LETTERS.randrange(0x4E00, 0x9FFF)) for _ in range(6_000))
"""A user whose name is too long for an index of PostgreSQL, also once it is compressed."""

FAILING = """
CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF random() < 0.25 THEN
        RAISE 'refused' USING ERRCODE = (
            ARRAY['40001', '40P01', '23514', '22012', '54000', '57014', 'P0001']
        )[1 + floor(random() * 7)];
    END IF;
    RETURN NEW;
END $$;
"""
"""A trigger that has writes end with errors of many kinds, here and there."""
TABLES = ("entries", "embeddings", "links", "changes", "agents", "walls")


@pytest.mark.parametrize("before", range(amount(14, 7)))
def test_writes_that_share_a_transaction_with_a_refused_one_are_stored(database, before):
    with Memory(database, embedder=WordEmbedder()) as memory:
        for at in range(before):
            memory.add(f"memory {at}")
        for turn in range(amount(10, 3)):
            users = ["ann", TOO_LONG, "bob", "eve", TOO_LONG, "joe"]
            refused = []

            def add(user, turn=turn, refused=refused):
                try:
                    memory.add_many([f"a {turn} {user[:3]}", f"b {turn} {user[:3]}"], user_id=user)
                except InvalidEntryError:
                    refused.append(user)

            run_together(*[partial(add, user) for user in users])
            assert refused == [TOO_LONG, TOO_LONG]
            assert memory.count(user_id="joe") == 2 * (turn + 1)
        assert memory.verify().ok


@pytest.mark.parametrize("table", TABLES)
def test_no_error_of_any_statement_costs_a_later_write(database, table):
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("SET search_path = public")
        other.execute(FAILING)
        other.execute(
            f"CREATE TRIGGER fail BEFORE INSERT OR UPDATE ON mnemic.agent_memory_{table} "
            "FOR EACH ROW EXECUTE FUNCTION fail()"
        )
        with Memory(database, embedder=WordEmbedder()) as memory:
            stored = write_often(memory, random.Random(table))  # noqa: S311 - no secret
            other.execute(f"DROP TRIGGER fail ON mnemic.agent_memory_{table}")
            for at in range(20):
                stored.append(memory.add(f"in the end {at}").id)
                memory.update(stored[-1], add_tags=["x"])
            assert {entry.id for entry in memory.list(limit=1000)} == set(stored)
            assert memory.verify().ok


def write_often(memory, draw):
    """Write in many ways, of which some fail; return the ids of what was stored."""
    stored = []
    for at in range(amount(100, 25)):
        texts = [f"memory {at} {part}" for part in range(draw.choice([1, 2, 5, 40]))]
        try:
            if draw.random() < 0.7 or not stored:
                added = [memory.add(texts[0])] if len(texts) == 1 else memory.add_many(texts)
                stored += [one.id for one in added]
            elif draw.random() < 0.5:
                memory.update(draw.choice(stored), content=texts[0], add_tags=["y"])
            elif len(stored) > 1:
                memory.link(*draw.sample(stored, 2))
        except (StoreError, InvalidEntryError, DeadlineExceededError) as error:
            assert "26000" not in str(error)  # noqa: PT017 - of any error
    return stored


@examples(100)
@given(st.lists(st.sampled_from(["good", "bad", "undone", "late"]), min_size=1, max_size=30))
def test_a_connection_is_sound_after_any_error_in_any_pipeline(doubtful, kinds):
    """Statements are prepared by their fifth use, so each is used often, before and after."""
    for number, kind in enumerate(kinds):
        session = Session(doubtful, POSTGRES)
        session.script("BEGIN")
        session.savepoint()
        try:
            with session.pipeline():
                for at in range(4):
                    if at == number % 4 and kind != "good":
                        session.run("SELECT 1 / %s::int", (0,))
                    session.run(f"SELECT {at} + %s::int", (number,))
                if kind == "late":
                    session.fetch("SELECT 7 + %s::int", (number,))
        except psycopg.errors.DivisionByZero:
            if kind == "undone":
                session.undo()
                assert session.value("SELECT 1 + %s::int", (1,)) == 2
                session.run("COMMIT")
                doubtful.renew_statements()
            else:
                doubtful.rollback()
        else:
            assert kind == "good"
            session.release()
            session.run("COMMIT")
        for at in range(4):
            assert session.value(f"SELECT {at} + %s::int", (1,)) == at + 1


@pytest.fixture(scope="module")
def doubtful():
    """Return a connection that many examples share."""
    with Connection.connect(target_of(SERVER.url).conninfo, autocommit=True) as connection:
        prepare(connection)
        yield connection


def test_a_statement_that_the_server_does_not_know_is_prepared_anew(database):
    with Memory(database, embedder=WordEmbedder()) as memory:
        for at in range(10):
            memory.add(f"memory {at}")
        pool = memory.repository._store._database.connections._pool
        with pool.lease(10) as connection:
            connection.execute("DEALLOCATE ALL", prepare=False)
            connection.execute("SELECT 1")
            lost = connection.pgconn.exec_(b"DEALLOCATE ALL")  # psycopg does not hear of it
            assert lost.error_message == b""
        for at in range(10):
            memory.add(f"more {at}")
        assert memory.count() == 20


def test_serialisation_failures_of_many_writers_cost_no_other_error(database):
    """Of transactions that the server has to keep apart, one waits for none and fails."""
    url = f"{database}&options=-c%20default_transaction_isolation%3Dserializable"
    others = [f"{url}&application_name=process{at}" for at in range(3)]
    memories = [Memory(one, embedder=WordEmbedder()) for one in others]
    failed, stored = [], []

    def work(at):
        for number in range(amount(40, 10)):
            try:
                stored.append(memories[at % 3].add(f"{number} of {at}", user_id=f"u{at % 2}").id)
            except StoreBusyError:
                continue
            except StoreError as error:
                failed.append(error)

    run_together(*[partial(work, at) for at in range(6)])
    assert failed == []
    assert {one.id for one in memories[0].list(all_users=True, limit=1000)} == set(stored)
    for memory in memories:
        memory.close()


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
            until(lambda: witness.execute(WAITING).fetchone() == (1,))
            other.execute("SELECT FROM mnemic.agent_memory_entries FOR UPDATE")
            other.execute("ROLLBACK")
            writer.join(PATIENCE)
            assert changed[0].content == "b"
            until(lambda: witness.execute(DEADLOCKS).fetchone() == (1,))
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
            assert reader.repository.lister._active.is_loaded
            assert reader.count() == 27
            assert cut == [3]
