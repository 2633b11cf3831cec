"""Searches of a loaded memory while its server is there, away, and back."""

import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import DeadlineExceededError
from mnemic.hyde import HydeEngine
from mnemic.model import Scope
from mnemic.store.postgres import connections, positions
from mnemic.store.postgres.connections import Connections
from tests.store.contract import count_of, entries_by_id, row_of
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.hyde import PlainModel
from tests.support.processes import ENVIRONMENT
from tests.support.tiers import amount, seeds
from tests.support.waiting import until

WRITER = """
import sys
from mnemic import Memory
from tests.support.embedders import WordEmbedder

with Memory(sys.argv[1], embedder=WordEmbedder()) as memory:
    ann, known = memory.scoped(user_id="ann"), {}
    print("open", flush=True)
    for line in sys.stdin:
        verb, name = line.split()
        if verb == "add":
            known[name] = ann.add(f"{name} likes honey").id
        elif verb == "update":
            ann.update(known[name], content=f"{name} dislikes honey")
        elif verb == "restore":
            ann.restore(known[name])
        else:
            ann.delete(known.get(name, name), permanent=verb == "erase")
        print("done", flush=True)
"""


class OtherProcess:
    """Writes Ann's memories in another process, which says when a write is acknowledged."""

    def __init__(self, url):
        pipe, command = subprocess.PIPE, [sys.executable, "-c", WRITER, url]
        self._process = subprocess.Popen(
            command, stdin=pipe, stdout=pipe, text=True, env=ENVIRONMENT
        )
        assert self._process.stdout.readline() == "open\n"

    def does(self, verb, name):
        """Add a memory, or change, delete, restore or erase the one of a name or id."""
        self._process.stdin.write(f"{verb} {name}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self._process:
            self._process.stdin.close()


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


@pytest.fixture
def questions(monkeypatch):
    """Return a list that grows by one with each question for positions."""
    put = []
    answer = positions.Positions._answer

    def counted(asking, connection, agents, ends):
        put.append(set(agents))
        return answer(asking, connection, agents, ends)

    monkeypatch.setattr(positions, "BEAT_SECONDS", 600.0)
    monkeypatch.setattr(positions.Positions, "_answer", counted)
    return put


def filled(url, **options):
    memory = Memory(url, embedder=WordEmbedder(), **options)
    for user in ("ann", "bob"):
        memory.add_many([f"{user} likes honey", f"{user} likes jam"], user_id=user)
    return memory


def answer(memory, user="ann", query="honey"):
    found = memory.search(query, user_id=user)
    return [(hit.entry.content, hit.score) for hit in found], found.stale_since


def settled(memory):
    """Search until the server answers, and has nothing new."""
    store = memory.repository._store
    until(lambda: answer(memory) and store._database.positions._connection)
    answer(memory)


@contextmanager
def away(server):
    server.stop("immediate")
    try:
        yield
    finally:
        server.start()


def test_a_search_asks_for_the_position_once_and_reads_nothing_while_nothing_changes(
    database, reads, questions
):
    with filled(database, track_access=False) as memory:
        settled(memory)
        answer(memory, "bob")
        reads.clear()
        for search in (
            lambda: answer(memory),
            lambda: answer(memory, "bob", "jam"),
            lambda: memory.search("honey", user_id="ann", search_type="keyword"),
            lambda: memory.context("honey", user_id="ann"),
        ):
            questions.clear()
            assert search()
            assert questions == [{"default"}]
        assert reads == []


@pytest.mark.parametrize("seed", seeds(10))
def test_what_another_process_was_told_is_done_is_seen_by_the_next_search(database, seed):
    draw = random.Random(seed)  # noqa: S311 - no secret
    present, deleted = {}, {}  # contents by name
    with filled(database, track_access=False) as memory, OtherProcess(database) as other:
        settled(memory)
        for at in range(60):
            verb = draw.choice(["add", "add", "update", "delete", "restore", "erase"])
            name = f"kiwi{at}"
            if verb != "add":
                among = sorted(deleted if verb == "restore" else present)
                if not among:
                    continue
                name = draw.choice(among)
            other.does(verb, name)
            found = memory.search(name, user_id="ann", search_type="keyword", limit=100)
            if verb == "restore":
                present[name] = deleted.pop(name)
            elif verb == "delete":
                deleted[name] = present.pop(name)
            elif verb == "erase":
                del present[name]
            else:
                present[name] = f"{name} {'likes' if verb == 'add' else 'dislikes'} honey"
            own = [hit.content for hit in found if hit.content.split()[0] == name]
            assert own == ([present[name]] if name in present else [])
            assert found.stale_since is None


@pytest.mark.parametrize("call", ["search", "context", "retrieve", "recall", "turn", "database"])
def test_a_memory_deleted_for_good_by_another_process_is_in_no_answer(database, call):
    in_database = {"search_in": "database"} if call == "database" else {}
    with (
        filled(database, **in_database) as memory,
        OtherProcess(database) as other,
        HydeEngine(memory.scoped(user_id="ann"), memory.embedder, PlainModel("honey")) as engine,
    ):
        assert engine.ready(10)
        ann = memory.scoped(user_id="ann")
        calls = {
            "context": lambda: ann.context("honey", min_score=None).hits,
            "retrieve": lambda: ann.retrieve("honey"),
            "recall": lambda: ann.recall("honey"),
        }
        with engine.turn("honey?", turn_id="1") as turn:
            calls["turn"] = turn.retrieve
            find = calls.get(call, lambda: ann.search("honey"))
            for at in range(amount(50, 10)):
                other.does("add", f"plum{at}")
                if call != "turn":
                    assert f"plum{at} likes honey" in [hit.content for hit in find()]
                other.does("erase", f"plum{at}")
                assert f"plum{at} likes honey" not in [hit.content for hit in find()]
            for kept in turn.memories:
                other.does("erase", kept.id)
                assert kept.content not in [hit.content for hit in find()]


def test_searches_at_once_share_questions_and_none_gets_an_earlier_answer(database):
    with filled(database, track_access=False) as memory:
        settled(memory)
        with OtherProcess(database) as other, ThreadPoolExecutor(8) as threads:
            for at in range(amount(50, 10)):
                other.does("add", f"plum{at}")
                query = f"plum{at} likes honey"
                found = threads.map(lambda _, query=query: answer(memory, query=query)[0], range(8))
                assert [query in dict(hits) for hits in found] == [True] * 8


def test_a_server_that_hangs_is_away_after_some_seconds_and_answers_have_a_mark(
    server, monkeypatch
):
    monkeypatch.setattr(positions, "ANSWER_SECONDS", 0.5)
    with filled(server.new_database()) as memory:
        settled(memory)
        hits, _ = answer(memory)
        with server.halted():
            begun = time.monotonic()
            found, stale_since = answer(memory)
            assert found == hits
            assert stale_since is not None
            assert time.monotonic() - begun < 3.0
            begun = time.monotonic()
            assert answer(memory)[1] == stale_since
            assert time.monotonic() - begun < 0.4
        until(lambda: answer(memory)[1] is None)


def test_a_question_keeps_to_the_deadline_of_its_search(server):
    with filled(server.new_database()) as memory:
        settled(memory)
        with server.halted():
            begun = time.monotonic()
            with pytest.raises(DeadlineExceededError):
                memory.search("honey", user_id="ann", timeout=0.2)
            assert time.monotonic() - begun < 2.0


def test_the_mark_is_no_later_than_the_last_moment_at_which_nothing_was_missing(
    server, monkeypatch
):
    monkeypatch.setattr(positions, "BEAT_SECONDS", 0.05)
    url = server.new_database()
    with filled(url) as memory:
        settled(memory)
        answer(memory)
        with OtherProcess(url) as other:
            other.does("add", "eve")  # which no search of this memory has seen
            acknowledged = datetime.now(UTC)
            time.sleep(0.5)
        with away(server):
            until(lambda: memory.repository.freshness.stale_since is not None)
            found, stale_since = answer(memory)
            assert "eve likes honey" not in dict(found)
            assert stale_since <= acknowledged
        until(lambda: "eve likes honey" in dict(answer(memory)[0]))


def test_an_answer_has_its_mark_though_a_commit_beside_it_has_no_known_outcome(server, monkeypatch):
    latest = positions.Positions.latest

    def unsettled(asking, agent_id, *how):
        given = latest(asking, agent_id, *how)
        asking.forget([agent_id])  # as a write does that lost its connection just now
        return given

    with filled(server.new_database()) as memory:
        settled(memory)
        fresh = answer(memory)
        with away(server), monkeypatch.context() as patch:
            patch.setattr(positions.Positions, "latest", unsettled)
            hits, stale_since = answer(memory)
        assert (hits, fresh[1]) == (fresh[0], None)
        assert stale_since is not None
        until(lambda: answer(memory) == fresh)


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
        until(lambda: answer(memory, "bob")[0] == [])
        assert answer(memory)[0]


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
        until(lambda: connections() == before)


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


def test_accesses_during_an_outage_are_counted_once_the_server_is_back(server, caplog):
    with filled(server.new_database()) as memory:
        store, ann = memory.repository._store, Scope("default", "ann")
        (one, *_) = memory.list(user_id="ann")
        row = row_of(store, ann, one.id, now=NOON)
        server.stop("immediate")
        store.touch("default", [row], NOON)
        until(lambda: "Accesses were not written" in caplog.text, 30.0)
        store.touch("default", [row], NOON)
        server.start()
        store.write_accesses().result()
        assert entries_by_id(store, ann, [one.id], now=NOON)[one.id].access_count == 2


def test_a_read_waits_for_no_connection_beyond_its_deadline(database, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 1)
    with filled(database) as memory:
        pool = memory.repository._store._database.connections._pool
        with pool.lease(10):
            began = time.monotonic()
            with pytest.raises(DeadlineExceededError):
                count_of(memory.repository._store, Scope("default"), now=NOON, deadline=began + 0.2)
            assert time.monotonic() - began < 5


@pytest.mark.parametrize("call", ["list", "add"])
def test_a_call_goes_on_once_the_server_is_back_after_longer_than_attempts_to_connect_last(
    server, monkeypatch, call
):
    monkeypatch.setattr(connections, "_BACKOFF", 0.2)
    monkeypatch.setattr(connections, "PATIENCE", 30.0)
    with Memory(server.new_database(), embedder=None) as memory:
        calls = {"list": memory.list, "add": lambda: memory.add("a plum")}
        memory.add("a fig")
        server.stop("immediate")
        starting = threading.Timer(1.0, server.start)
        starting.start()
        calls[call]()
        starting.join()
        assert memory.count() == (2 if call == "add" else 1)
