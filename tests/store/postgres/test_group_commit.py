"""Writes that wait together share a transaction, and each has its own result."""

import asyncio
import signal
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen

import psycopg
import pytest

from mnemic import AsyncMemory, Memory
from mnemic.errors import OutcomeUnknownError, StoreBusyError
from mnemic.model import Scope
from mnemic.store import open_store
from mnemic.store.accesses import PendingAccesses
from mnemic.store.operations import SoftDelete, Update
from mnemic.store.postgres import connections
from tests.store.contract import added, adding, entries_by_id, exported, one
from tests.support.clock import NOON
from tests.support.cutting_proxy import Proxy
from tests.support.entries import numbered, only, uid

PATIENCE = 60
EVERYONE = Scope("a", all_users=True)
TRANSACTIONS = "SELECT count(DISTINCT xmin::text) FROM mnemic.agent_memory_changes"
LOCK = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"


@pytest.fixture
def store(database):
    opened = open_store(database)
    yield opened
    assert opened.verify().ok
    opened.close()


@pytest.fixture
def witness(database):
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection


def transactions(witness):
    return witness.execute(TRANSACTIONS).fetchone()[0]


def active(store):
    found = exported(store, EVERYONE)
    return {stored.entry.id for stored in found if stored.entry.forgotten_at is None}


def one_queue(agents):
    """Return those of these agents that share the writer of the first."""
    first = agents[0]
    return [agent for agent in agents if hash(agent) % 4 == hash(first) % 4]


@contextmanager
def gathering(store, agent="a"):
    """Keep the agent's writer busy, so that the writes of the block gather behind it."""
    added(store, agent, [numbered(900, agent_id=agent)])
    begun, may_end = threading.Event(), threading.Event()

    def change(entry):
        begun.set()
        assert may_end.wait(PATIENCE)
        return entry

    def hold():
        store.write(Update(Scope(agent), only(900), change=change, now=NOON)).result(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(PATIENCE)
    yield
    may_end.set()
    thread.join()


def handed_in(calls):
    """Hand in writes, each from a thread of its own, in their order; return their outcomes."""
    outcomes = [None] * len(calls)

    def run(at):
        try:
            outcomes[at] = calls[at]().result(PATIENCE)
        except BaseException as error:  # noqa: BLE001 - it is an outcome
            outcomes[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    return threads, outcomes


def gathered(store, calls, agent="a"):
    with gathering(store, agent):
        threads, outcomes = handed_in(calls)
    for thread in threads:
        thread.join(PATIENCE)
    return outcomes


def test_writes_that_wait_together_share_one_transaction(store, witness):
    calls = [lambda at=at: adding(store, "a", [numbered(at)]) for at in range(20)]
    outcomes = gathered(store, calls)
    assert all(stored.is_new == [True] for stored in outcomes)
    assert transactions(witness) == 3  # those of `gathering`, and one
    assert [stored.batch.seq for stored in outcomes] == list(range(3, 23))


def test_an_agent_whose_memories_another_program_locks_holds_up_no_other_agents_write(
    database, witness
):
    agents = one_queue(["a", *(f"agent {at}" for at in range(400))])[:3]
    store = open_store(f"{database}&options=-c%20lock_timeout%3D500ms")
    calls = [
        lambda agent=agent: adding(store, agent, [numbered(1, agent_id=agent)]) for agent in agents
    ]
    with gathering(store, "a"):
        witness.execute(LOCK, (agents[1],))
        threads, outcomes = handed_in(calls)
    for thread in threads:
        thread.join(PATIENCE)
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "WriteResult",
        StoreBusyError.__name__,
        "WriteResult",
    ]
    store.close()


@pytest.fixture(params=["after", "before"])
def cutting(request, database):
    """Return a store, and a change of a memory whose transaction is lost at its commit, once."""
    with Proxy(database) as proxy:
        wanted = [getattr(proxy, f"cut_{request.param}_commit")]

        def change(entry):
            while wanted:
                wanted.pop()()
            return entry

        opened = open_store(proxy.url)
        yield opened, change
        assert proxy.cuts == 1
        assert opened.verify().ok
        opened.close()


def test_a_group_whose_commit_got_no_answer_is_recognised_by_a_memory_that_it_stored(cutting):
    store, change = cutting
    stored, updated, deleted = gathered(
        store,
        [
            lambda: adding(store, "a", [numbered(1)]),
            lambda: store.write(Update(Scope("a"), only(900), change=change, now=NOON)),
            lambda: store.write(SoftDelete(Scope("a"), only(900), NOON)),
        ],
    )
    assert stored.is_new == [True]
    assert updated.last.id == uid(900)
    assert deleted == [uid(900)]
    assert active(store) == {uid(1)}


def test_the_outcome_of_a_group_that_stored_no_memory_is_unknown_to_each(cutting):
    store, change = cutting
    outcomes = gathered(
        store,
        [
            lambda: store.write(Update(Scope("a"), only(900), change=change, now=NOON)),
            lambda: store.write(SoftDelete(Scope("a"), only(900), NOON)),
        ],
    )
    assert [type(outcome) for outcome in outcomes] == [OutcomeUnknownError] * 2


def test_accesses_of_an_agent_whose_memories_are_locked_hold_up_no_other_agent(store, witness):
    agents = [f"agent {at}" for at in range(8)]
    for agent in agents:
        (row,) = added(store, agent, [numbered(1, agent_id=agent)]).rows
        store.touch(agent, [row], NOON)
    witness.execute(LOCK, (agents[0],))
    writing = store.write_accesses()
    free = [agent for agent in agents if hash(agent) % 4 != hash(agents[0]) % 4]
    for agent in free:
        added(store, agent, [numbered(2, agent_id=agent)])
    assert not writing.done()
    witness.execute("SELECT pg_advisory_unlock_all()")
    writing.result(PATIENCE)
    for agent in agents:
        found = entries_by_id(store, Scope(agent), [uid(1)], now=NOON)
        assert found[uid(1)].access_count == 1


def test_who_waits_for_accesses_cannot_cancel_them_and_nothing_is_logged(store, witness, caplog):
    (row,) = added(store, "a", [numbered(1)]).rows
    store.touch("a", [row], NOON)
    witness.execute(LOCK, ("a",))
    writing = store.write_accesses()
    assert not writing.cancel()  # as the end of an awaiting task tries
    witness.execute("SELECT pg_advisory_unlock_all()")
    writing.result(PATIENCE)
    assert entries_by_id(store, Scope("a"), [uid(1)], now=NOON)[uid(1)].access_count == 1
    assert not caplog.records


def test_a_write_waits_for_an_agents_lock_no_longer_than_for_a_while(
    database, witness, monkeypatch
):
    monkeypatch.setattr(
        connections, "_LIMIT_LOCKS", connections._LIMIT_LOCKS.replace("'10s'", "'1s'")
    )
    with Memory(database, "a", embedder=None) as memory:
        witness.execute(LOCK, ("a",))
        with pytest.raises(StoreBusyError, match="other writers keep it locked"):
            memory.add("an apple")
        witness.execute("SELECT pg_advisory_unlock_all()")
        memory.add("bread")
        assert [entry.content for entry in memory.list()] == ["bread"]


STOPPED = """
import os, signal, sys
from mnemic.store import open_store
from mnemic.store.operations import Update
from mnemic.store.postgres import connections
from mnemic.model import Scope
from tests.store.contract import added
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid
from tests.support.threads import run_together
store = open_store(sys.argv[1])
added(store, "a", [numbered(1)])
def stop(entry):
    print("stopping", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)
    return entry
wanted = Update(Scope("a"), only(1), change=stop, now=NOON)
print(store.write(wanted).result().last.id == uid(1), flush=True)
"""


def resume(process):
    """Continue a process that stops itself, once it has stopped: a signal before that is lost."""
    state = Path(f"/proc/{process.pid}/stat")
    while state.read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)
    process.send_signal(signal.SIGCONT)


def test_a_process_that_is_stopped_in_the_midst_of_a_write_holds_up_no_other_one_for_good(
    database,
):
    limited = f"import mnemic.store.postgres.connections as c; c._LIMIT_PAUSES = {LIMIT!r}; "
    other = Popen([sys.executable, "-c", limited + STOPPED, database], stdout=PIPE, text=True)
    try:
        assert other.stdout.readline() == "stopping\n"
        with Memory(database, "a", embedder=None) as memory:
            memory.add("an apple")
            resume(other)
            assert other.stdout.readline() == "stopping\n"  # its write is restarted
            resume(other)
            assert other.stdout.readline() == "True\n"
            assert memory.count() == 2
    finally:
        other.kill()
        other.communicate()


LIMIT = "SET LOCAL idle_in_transaction_session_timeout = '1s'"

ACTIVE = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
    "AND state = 'active' AND pid <> pg_backend_pid()"
)


def test_a_read_that_is_cancelled_is_ended_on_the_server(database, witness):
    async def until(number):
        ends = time.monotonic() + 10
        while witness.execute(ACTIVE).fetchone() != (number,):
            assert time.monotonic() < ends
            await asyncio.sleep(0.01)

    async def main():
        async with AsyncMemory(database, embedder=None) as memory:
            await memory.add("an apple")
            with psycopg.connect(database) as other:
                other.execute("LOCK TABLE mnemic.agent_memory_entries IN ACCESS EXCLUSIVE MODE")
                task = asyncio.create_task(memory.list())
                await until(1)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await until(0)  # though the table is locked still
            assert len(await memory.list()) == 1

    asyncio.run(main())


AGENTS = [f"agent {at}" for at in range(8)]
"""Some of them do not share a queue of writes with the accesses."""


def test_accesses_that_are_being_written_are_not_those_of_the_memory_stored_anew(
    database, monkeypatch
):
    store, taken, may_go_on = open_store(database), threading.Event(), threading.Event()
    agents = PendingAccesses.agents

    def slow(accesses):
        found = agents(accesses)
        if found and threading.current_thread() is not replacing:
            taken.set()
            may_go_on.wait(10)
        return found

    monkeypatch.setattr(PendingAccesses, "agents", slow)
    counts = {}
    for agent in AGENTS:
        taken.clear()
        may_go_on.clear()
        again = {"on_conflict": "replace"}
        old, new = numbered(1, agent_id=agent), numbered(1, agent_id=agent, content="again")
        replacing = threading.Thread(target=added, args=(store, agent, [new]), kwargs=again)
        (row,) = added(store, agent, [old]).rows
        store.touch(agent, [row], NOON)
        # What the store's own timer does a second after the access:
        writing = threading.Thread(target=lambda: store.write_accesses().result())
        writing.start()
        assert taken.wait(10)
        replacing.start()
        replacing.join(0.5)  # it may wait for the accesses, or not
        may_go_on.set()
        replacing.join()
        writing.join()
        counts[agent] = one(store, Scope(agent), 1).access_count
    store.close()
    assert counts == dict.fromkeys(AGENTS, 0)
