"""A memory through PgBouncer in transaction mode, where each transaction may get another session.

PgBouncer 1.18, which Debian has, supports no prepared statements there.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest

from mnemic import Encryption, Memory
from mnemic.errors import ReadOnlyError, StoreUnavailableError
from mnemic.store.postgres import connections, session
from tests.store.postgres.test_positions import OtherProcess, filled
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY
from tests.support.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.support.postgres_server import SERVER
from tests.support.tiers import amount
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(PROGRAM is None, reason=MISSING)

SESSIONS = 3
LEFT = """
SELECT name || ' = ' || setting FROM pg_settings
WHERE source = 'session' AND name NOT IN ('application_name', 'client_encoding')
UNION ALL SELECT 'agents ' || current_setting('mnemic.agents', true)
WHERE current_setting('mnemic.agents', true) <> ''
UNION ALL SELECT 'prepared ' || statement FROM pg_prepared_statements
UNION ALL SELECT 'listens to ' || channel FROM pg_listening_channels() AS channel
UNION ALL SELECT 'locks ' || objid FROM pg_locks WHERE pid = pg_backend_pid()
AND locktype = 'advisory'
"""
"""What a session has that would not be there without mnemic."""


@pytest.fixture
def pooler():
    made = PgBouncer(SERVER, SESSIONS)
    yield made
    made.close()


@pytest.fixture
def pooled(pooler, database):
    """Return the URL of a database with mnemic's tables, through the pooler."""
    return pooler.url(database)


def left_in_sessions(url):
    """Return what is left in the sessions of the server, all of them at once."""
    found, processes = [], set()
    with ExitStack() as stack:
        for _ in range(SESSIONS):
            program = stack.enter_context(psycopg.connect(url, prepare_threshold=None))
            processes.add(program.execute("SELECT pg_backend_pid()").fetchone())
            found += program.execute(LEFT).fetchall()
    assert len(processes) == SESSIONS
    return found


def use(memory):
    """Call all that reads and writes, in the order that makes most of it."""
    ann = memory.scoped(user_id="ann")
    first = ann.add("ann likes honey", idempotency_key="k")
    entries = ann.add_many([f"ann has {at} jars of honey" for at in range(70)])
    ann.update(first.id, content="ann likes jam")
    ann.link(first.id, entries[0].id)
    assert ann.search("honey")
    assert ann.search("honey", search_type="semantic")
    assert ann.context("honey", min_score=None).hits
    assert ann.retrieve("honey")
    assert ann.recall("honey", mode="important")
    assert ann.list(limit=5, filters={"content": {"contains": "jars"}})
    assert ann.count() == 71
    ann.delete(entries[0].id)
    ann.restore(entries[0].id)
    ann.delete(entries[1].id, permanent=True)
    ann.delete_many(filters={"content": {"contains": "2 jars"}}, permanent=True)
    memory.stats()
    assert memory.verify().ok


OPTIONS = {
    "plain": {},
    "database": {"search_in": "database"},
    "index": {"search_in": "database", "exact_limit": 1},
    "sealed": {"encryption": Encryption(KEY, encrypt_all=True)},
}


@pytest.mark.parametrize("kind", OPTIONS)
def test_nothing_is_left_in_the_sessions_that_other_programs_use(pooled, kind):
    with Memory(pooled, embedder=WordEmbedder(), **OPTIONS[kind]) as memory:
        use(memory)
        if kind == "index":
            memory.add_many([f"jar {at}" for at in range(300)], user_id="ann")
            assert memory.index.create()
            assert memory.search("honey", user_id="ann", search_type="semantic").approximate
        assert left_in_sessions(pooled) == []
    assert left_in_sessions(pooled) == []


def test_the_first_opening_of_a_database_leaves_nothing_in_the_sessions(pooler, empty_database):
    url = pooler.url(empty_database)
    with Memory(url, embedder=WordEmbedder()) as memory:
        memory.add("ann likes honey", user_id="ann")
    assert left_in_sessions(url) == []


def test_policies_hold_and_leave_nothing_in_the_sessions(pooler):
    guarded = SERVER.new_guarded_database()
    url = pooler.url(guarded)
    with Memory(url, "ann", embedder=WordEmbedder(), row_security=True) as memory:
        use(memory)
        with Memory(url, "bob", embedder=WordEmbedder()) as other:
            assert other.count(all_users=True) == 0
        assert left_in_sessions(url) == []
    SERVER.drop(guarded)


def test_a_memory_that_is_only_read_does_not_keep_other_programs_from_writing(pooled, database):
    with Memory(database, embedder=WordEmbedder()) as writer:
        writer.add("ann likes honey", user_id="ann")
    with (
        Memory(pooled, embedder=WordEmbedder(), read_only=True) as reader,
        psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as program,
        Memory(f"{pooled}?application_name=writer", embedder=WordEmbedder()) as writer,
    ):
        program.execute("CREATE TABLE public.orders (number integer)")
        for at in range(30):
            assert reader.search("honey", user_id="ann")
            assert reader.list(user_id="ann")
            program.execute("INSERT INTO public.orders VALUES (%s)", (at,))
            writer.add(f"order {at}", user_id="bob")
        with pytest.raises(ReadOnlyError):
            reader.add("new", user_id="ann")
        assert program.execute("SELECT count(*) FROM public.orders").fetchone() == (30,)
        assert reader.count(user_id="bob") == 30
        assert left_in_sessions(pooled) == []


def test_many_writers_and_readers_at_once_fail_in_nothing(pooled):
    urls = [f"{pooled}?application_name=process{at}" for at in range(3)]
    with ExitStack() as stack:
        memories = [
            stack.enter_context(Memory(url, embedder=WordEmbedder(), track_access=False))
            for url in urls
        ]

        def work(at):
            memory, user = memories[at % 3], f"user {at}"
            for number in range(amount(40, 8)):
                one = memory.add(f"apple {number} of {at}", user_id=user)
                assert memory.get(one.id, user_id=user) == one
                found = memory.search(f"apple {number}", user_id=user, limit=1000)
                assert one.id in [hit.id for hit in found]
                memory.update(one.id, add_tags=["red"], user_id=user)
            return memory.count(user_id=user)

        with ThreadPoolExecutor(6) as threads:
            assert list(threads.map(work, range(6))) == [amount(40, 8)] * 6
        assert memories[0].verify().ok


def test_a_pooler_that_does_not_show_itself_costs_no_write(pooled, monkeypatch):
    prepare = session.prepare

    def unaware(connection):
        prepare(connection)
        connection.is_pooled, connection.prepare_threshold = False, 5

    monkeypatch.setattr(connections, "prepare", unaware)
    with ExitStack() as stack:
        urls = [f"{pooled}?application_name=process{at}" for at in range(3)]
        memories = [stack.enter_context(Memory(url, embedder=WordEmbedder())) for url in urls]
        for at in range(60):
            memories[at % 3].add(f"apple {at}", user_id="ann")
            assert len(memories[at % 3].list(user_id="ann", limit=100)) == at + 1
        assert memories[0].verify().ok


def test_what_another_process_was_told_is_done_is_seen_by_the_next_search(pooled, database):
    with filled(pooled, track_access=False) as memory, OtherProcess(database) as other:
        for at in range(amount(50, 10)):
            name = f"kiwi{at}"
            other.does("add", name)
            found = memory.search(name, user_id="ann", search_type="keyword")
            assert f"{name} likes honey" in [hit.content for hit in found]
            other.does("erase", name)
            found = memory.search(name, user_id="ann", search_type="keyword")
            assert f"{name} likes honey" not in [hit.content for hit in found]


def test_searches_go_on_while_the_pooler_is_away_and_have_a_mark(pooler, pooled):
    with filled(pooled) as memory:
        hits = memory.search("honey", user_id="ann")
        pooler.kill()
        until(lambda: memory.search("honey", user_id="ann").stale_since is not None)
        assert [hit.id for hit in memory.search("honey", user_id="ann")] == [h.id for h in hits]


def test_two_processes_build_an_index_of_vectors_one_after_the_other(pooled):
    urls = [f"{pooled}?application_name=process{at}" for at in range(2)]
    with ExitStack() as stack:
        memories = [
            stack.enter_context(Memory(url, embedder=WordEmbedder(), search_in="database"))
            for url in urls
        ]
        memories[0].add_many([f"ann has {at} jars of honey" for at in range(200)], user_id="ann")
        built = []
        builders = [
            threading.Thread(target=lambda one=one: built.append(one.index.create()))
            for one in memories
        ]
        for builder in builders:
            builder.start()
        for builder in builders:
            builder.join(60)
        assert built == [True, True]
    assert left_in_sessions(pooled) == []


def test_an_option_that_the_pooler_refuses_is_named_in_the_error(pooled):
    with pytest.raises(StoreUnavailableError, match="options"):
        Memory(f"{pooled}?options=-c%20lock_timeout%3D5s", embedder=None)
