"""Searches of a loaded memory while its server is there, away, and back."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import DeadlineExceededError, StoreUnavailableError
from mnemic.model import Scope
from mnemic.store.postgres import connections
from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.notifications import digest_of
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder

OTHER_PROCESS = """
import sys
from mnemic import Memory
with Memory(sys.argv[1], embedder=None) as memory:
    memory.add(sys.argv[2], user_id="ann")
"""


@pytest.fixture
def reads(monkeypatch):
    """Return a list that grows by one with each read of the server."""
    made = []
    read = Connections.read

    def counted(self, *args, **options):
        made.append(1)
        return read(self, *args, **options)

    monkeypatch.setattr(Connections, "read", counted)
    return made


def awaited(condition, seconds=10.0):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "nothing happened in time"
        time.sleep(0.01)


def filled(url, **options):
    memory = Memory(url, embedder=WordEmbedder(), **options)
    for user in ("ann", "bob"):
        memory.add_many([f"{user} likes honey", f"{user} likes jam"], user_id=user)
    return memory


def answer(memory, user="ann", query="honey"):
    found = memory.search(query, user_id=user)
    return [(hit.entry.content, hit.score) for hit in found], found.stale_since


def settled(memory):
    """Search until the feed listens, and the server has nothing new."""
    store = memory.repository._store
    awaited(lambda: answer(memory) and store._database.feed.is_live)
    answer(memory)


@contextmanager
def away(server):
    server.stop("immediate")
    try:
        yield
    finally:
        server.start()


def test_a_search_reads_nothing_from_the_server_while_nothing_changes(database, reads):
    with filled(database, track_access=False) as memory:
        settled(memory)
        answer(memory, "bob")
        reads.clear()
        assert answer(memory)[0]
        assert answer(memory, "bob", "jam")[0]
        assert reads == []


def test_what_another_process_writes_is_found_without_asking(database):
    with filled(database) as memory:
        settled(memory)
        subprocess.run([sys.executable, "-c", OTHER_PROCESS, database, "a kiwi"], check=True)
        awaited(lambda: "a kiwi" in [text for text, _ in answer(memory, query="kiwi")[0]], 5.0)
        assert "a kiwi" not in [text for text, _ in answer(memory, "bob", "kiwi")[0]]


def test_loaded_memories_are_searched_while_the_server_is_away_and_say_since_when(server):
    url = server.new_database()
    with filled(url) as memory:
        settled(memory)
        fresh = [answer(memory, user) for user in ("ann", "bob")]
        assert [stale for _, stale in fresh] == [None, None]
        before = datetime.now(UTC)
        with away(server):
            for user, (hits, _) in zip(("ann", "bob"), fresh, strict=True):
                begun = time.monotonic()
                found, stale_since = answer(memory, user)
                assert found == hits
                assert before - timedelta(seconds=10) <= stale_since <= datetime.now(UTC)
                assert time.monotonic() - begun < 1.0
            with pytest.raises(StoreUnavailableError):
                memory.add("new", user_id="ann")
        awaited(lambda: answer(memory)[1] is None)
        memory.add("more honey", user_id="ann")
        assert "more honey" in [text for text, _ in answer(memory)[0]]


def test_stale_answers_end_after_their_time(server):
    url = server.new_database()
    with filled(url, max_stale=0.5) as memory:
        settled(memory)
        with away(server):
            time.sleep(0.6)  # as long as they may be stale
            with pytest.raises(StoreUnavailableError, match=r"max_stale is 0\.5 s"):
                answer(memory)
        awaited(lambda: memory.repository._store._database.feed.is_live)
        assert answer(memory)[1] is None


def test_memories_that_a_server_lost_are_found_no_more(server):
    url = server.new_database()
    with filled(url, track_access=False) as memory:
        settled(memory)
        with psycopg.connect(
            url
        ) as other:  # as if a replica had taken over that lacks the last ones
            other.execute("DELETE FROM mnemic.agent_memory_entries WHERE user_id = 'bob'")
            other.execute("DELETE FROM mnemic.agent_memory_changes WHERE user_id = 'bob'")
            other.execute("UPDATE mnemic.agent_memory_agents SET seq = 2")
        with away(server):
            pass
        awaited(lambda: answer(memory, "bob")[0] == [])
        assert answer(memory)[0]


def test_after_a_lost_connection_nothing_is_answered_before_its_changes_are_read(database):
    with filled(database) as memory:
        settled(memory)
        feed = memory.repository._store._database.feed
        reading, go_on = threading.Event(), threading.Event()
        catch_up = feed._catch_up

        def late(session):
            reading.set()
            go_on.wait(10)
            catch_up(session)

        feed._catch_up = late
        with psycopg.connect(database, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert reading.wait(10)
        subprocess.run([sys.executable, "-c", OTHER_PROCESS, database, "a kiwi"], check=True)
        found = []
        search = threading.Thread(target=lambda: found.extend(answer(memory, query="kiwi")[0]))
        search.start()
        search.join(0.5)
        assert search.is_alive()
        assert not found
        go_on.set()
        search.join(10)
        assert "a kiwi" in [text for text, _ in found]


def test_memories_of_one_database_share_its_connections(database):
    with psycopg.connect(database, autocommit=True) as other:

        def connections():
            (count,) = other.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            ).fetchone()
            return count

        before = connections()
        memories = [Memory(database, f"agent {at}", embedder=WordEmbedder()) for at in range(30)]
        for memory in memories:
            memory.add("a fig", user_id="ann")
        assert connections() <= before + 8 + 1
        memories[0].close()
        assert answer(memories[1], query="fig")[0]
        for memory in memories:
            memory.close()
        awaited(lambda: connections() == before)


FORGED = ["", "x", "{digest} 1", "{digest} x 1", "{digest} " + "9" * 7000 + " 1", "{digest} ² 1"]


@pytest.mark.parametrize("text", FORGED)
def test_notifications_that_are_none_do_not_end_the_feed(database, text):
    with filled(database) as memory:
        settled(memory)
        notify(database, text.format(digest=digest_of("default")))
        subprocess.run([sys.executable, "-c", OTHER_PROCESS, database, "a kiwi"], check=True)
        awaited(lambda: "a kiwi" in [text for text, _ in answer(memory, query="kiwi")[0]], 5.0)
        assert memory.repository._store._database.feed.is_live


def test_a_forged_position_hides_no_later_change_and_is_asked_about_once(database, reads):
    with filled(database, track_access=False) as memory:
        settled(memory)
        notify(database, f"{digest_of('default')} {2**63 - 1} {2**63 - 1}")
        awaited(lambda: memory.repository._store._database.feed._moved)
        assert answer(memory)[0]
        reads.clear()
        answer(memory)
        assert reads == []
        entry = memory.list(user_id="ann")[0]
        memory.update(entry.id, content="honey cake", user_id="ann")
        assert "honey cake" in [text for text, _ in answer(memory)[0]]


def test_a_slow_opening_of_one_database_holds_up_no_write_to_another(database, monkeypatch):
    opening, go_on = threading.Event(), threading.Event()
    migrate = connections.migrate

    def slow(session):
        if "slow" in session.connection.info.dsn:
            opening.set()
            go_on.wait(10)
        migrate(session)

    with filled(database) as memory:
        monkeypatch.setattr(connections, "migrate", slow)
        url = f"{database}&application_name=slow"
        other = threading.Thread(target=lambda: Memory(url, "b", embedder=None).close())
        other.start()
        assert opening.wait(10)
        memory.add("in time", user_id="ann")
        assert other.is_alive()
        go_on.set()
        other.join(10)


def notify(database, payload):
    with psycopg.connect(database, autocommit=True) as other:
        other.execute("SELECT pg_notify('mnemic_changes', %s)", (payload,))


def test_accesses_during_an_outage_are_counted_once_the_server_is_back(server, caplog):
    with filled(server.new_database()) as memory:
        store, ann = memory.repository._store, Scope("default", "ann")
        (one, *_) = memory.list(user_id="ann")
        row = store.row_of(ann, one.id, now=NOON)
        server.stop("immediate")
        store.touch("default", [row], NOON)
        awaited(lambda: "Accesses were not written" in caplog.text, 30.0)
        store.touch("default", [row], NOON)
        server.start()
        store.write_accesses().result()
        assert store.get(ann, [one.id], now=NOON)[one.id].access_count == 2


def test_a_read_waits_for_no_connection_beyond_its_deadline(database, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    with filled(database) as memory:
        pool = memory.repository._store._database.connections._pool
        with pool.connection():
            began = time.monotonic()
            with pytest.raises(DeadlineExceededError):
                memory.repository._store.count(Scope("default"), now=NOON, deadline=began + 0.2)
            assert time.monotonic() - began < 5
