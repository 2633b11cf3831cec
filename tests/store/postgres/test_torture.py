"""Processes that write while their server is killed, halted and cut off lose nothing.

`make torture-postgres` goes on for longer: MNEMIC_TORTURE_ROUNDS counts the rounds of each kind.
"""

import json
import os
import random
import signal
import threading
import time
from contextlib import ExitStack, contextmanager

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import StoreError
from tests.faults.history import History, index_problems, write_problems
from tests.faults.playing import player
from tests.faults.workload import LIVING, USER, PlainDoor
from tests.store.postgres import rounds
from tests.support.cutting_proxy import Proxy
from tests.support.embedders import WordEmbedder
from tests.support.pgbouncer import MISSING, PROGRAM, PgBouncer
from tests.support.postgres_server import Server

ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0")) or 2
SLOWEST = 60.0
"""Seconds that a call may take: ten of patience for the server, on a machine that is busy."""
KILLED = -9

WAITING = """
SELECT format('%s waits for a client that is gone', pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name IN ('mnemic', 'watcher')
"""
LOCKED = """
SELECT 'a lock is held for good' FROM pg_locks WHERE locktype = 'advisory'
AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
"""What processes that have ended may leave in the server."""


class Fault:
    """What befalls the processes of a round.

    Args:
        server: The server.
        url: The database.
        choose: Draws when and how.
    """

    kills, pauses, keeps_sessions = False, False, False

    def __init__(self, server, url, choose):
        self.server, self.url, self.choose = server, url, choose

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin(self):
        """Prepare a round."""

    def strike(self, ends):
        """Do it, until a time of `time.monotonic()`."""
        time.sleep(max(0.0, ends - time.monotonic()))


class ClientKilled(Fault):
    kills = True


class ClientStopped(Fault):
    pauses = True


class BackendKilled(Fault):
    """After which the server ends all sessions, and recovers as from a crash."""

    def strike(self, ends):
        time.sleep(self.choose.uniform(0.05, 0.5))
        with psycopg.connect(self.url) as connection:
            pids = [
                pid
                for (pid,) in connection.execute(
                    "SELECT pid FROM pg_stat_activity "
                    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
                )
            ]
        if pids:
            os.kill(self.choose.choice(pids), signal.SIGKILL)
        super().strike(ends)


class ServerKilled(Fault):
    """Its first process, by which all others end."""

    def strike(self, ends):
        time.sleep(self.choose.uniform(0.05, 0.5))
        self.server.kill()
        time.sleep(self.choose.uniform(0.0, 0.5))
        self.server.start()
        super().strike(ends)


class ShutDown(Fault):
    def strike(self, ends):
        time.sleep(self.choose.uniform(0.05, 0.5))
        self.server.stop("immediate")
        time.sleep(self.choose.choice([0.0, 0.3, 1.0]))
        self.server.start()
        super().strike(ends)


class Halted(Fault):
    """So long that searches are answered from memory, at times."""

    def strike(self, ends):
        time.sleep(self.choose.uniform(0.05, 0.3))
        with self.server.halted():
            time.sleep(self.choose.choice([0.1, 0.5, 4.0]))
        super().strike(ends)


class CutAtCommit(Fault):
    def __enter__(self):
        self._proxy = Proxy(self.url).__enter__()
        self.url = self._proxy.url
        return self

    def __exit__(self, *how):
        self._proxy.__exit__(*how)

    def strike(self, ends):
        while time.monotonic() < ends:
            self.choose.choice([self._proxy.cut_after_commit, self._proxy.cut_before_commit])()
            time.sleep(self.choose.uniform(0.01, 0.2))


class PoolerKilled(Fault):
    keeps_sessions = True  # as a pooler does

    def __enter__(self):
        self._pooler = PgBouncer(self.server)
        self.url = self._pooler.url(self.url)
        return self

    def __exit__(self, *_):
        self._pooler.close()

    def strike(self, ends):
        time.sleep(self.choose.uniform(0.05, 0.5))
        self._pooler.kill()
        time.sleep(self.choose.uniform(0.0, 0.3))
        self._pooler.start()
        super().strike(ends)


FAULTS = [
    *(ClientKilled, ClientStopped, BackendKilled, ServerKilled, ShutDown, Halted, CutAtCommit),
    pytest.param(PoolerKilled, marks=pytest.mark.skipif(PROGRAM is None, reason=MISSING)),
]


@pytest.fixture(scope="module")
def durable():
    """Return a durable server that may be killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MNEMIC_TEST_POSTGRES", raising=False)
        own = Server(fsync="on", synchronous_commit="on")
        own.new_database()
    yield own
    own.close()


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.timeout(ROUNDS * 120 + 600)
def test_nothing_acknowledged_is_lost_wrong_or_leaked_and_no_call_hangs(kind, durable, tmp_path):
    choose, history = random.Random(kind.__name__), History()  # noqa: S311 - not a secret
    url = durable.new_database()
    notes = []
    with kind(durable, url, choose) as fault, ExitStack() as stack:
        players = [stack.enter_context(player(rounds.__name__)) for _ in range(2)]
        for number in range(ROUNDS):
            logs = [tmp_path / f"{number}-{at}.log" for at in range(len(players))]
            codes = one_round(fault, players, logs, history, number)
            assert set(codes) <= ({0, KILLED} if fault.kills else {0}), f"round {number}: {codes}"
            for log in logs:
                history.read(log)
                notes += [json.loads(line) for line in whole_lines(log)]
            found = problems(url, history) + left_behind(url, fault)
            assert found == [], f"round {number}"
    assert [note for note in notes if "wrong" in note] == []
    assert max(note["took"] for note in notes if "took" in note) < SLOWEST
    assert sum("done" in note for note in notes) > 10 * ROUNDS


def whole_lines(log):
    text = log.read_text() if log.exists() else ""
    return text.rpartition("\n")[0].splitlines()


def one_round(fault, players, logs, history, number):
    """Let two processes write while something befalls them; return how they ended."""
    choose, known = fault.choose, sorted(history.known.items())
    seconds = choose.uniform(1.0, 2.0)
    for at, ((begin, _), log) in enumerate(zip(players, logs, strict=True)):
        begin(
            url=fault.url,
            log=str(log),
            seed=2 * number + at,
            workers=choose.randint(1, 3),
            seconds=seconds,
            known=dict(known[at::2][-20:]),
            kill_after=choose.uniform(0.05, seconds) if fault.kills else None,
            pause=choose.uniform(0.05, seconds / 2) if fault.pauses else None,
        )
    for log in logs:
        rounds.wait_for_opening(log)
    with watched(fault.url, logs):
        fault.strike(time.monotonic() + seconds)
        return [end() for _, end in players]


@contextmanager
def watched(url, logs):
    """Search meanwhile for what is deleted: no answer has it, unless it says that it is stale."""
    stopping, found = threading.Event(), []

    def watch():
        with Memory(f"{url}&application_name=watcher", embedder=WordEmbedder()) as memory:
            while not stopping.is_set():
                gone = deleted_texts(logs)
                for text in gone[-3:]:
                    try:
                        hits = memory.search(text, user_id=USER, limit=5)
                    except StoreError:
                        continue
                    if hits.stale_since is None and text in [hit.content for hit in hits]:
                        found.append(text)
                stopping.wait(0.01)

    thread = threading.Thread(target=_quietly, args=(watch, stopping))
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(60)
    assert not thread.is_alive()
    assert found == []


def _quietly(watch, stopping):
    """Watch again where the server was away at the opening."""
    while not stopping.is_set():
        try:
            watch()
        except StoreError:
            stopping.wait(0.05)


def deleted_texts(logs):
    """Return the texts of memories whose deletion was acknowledged, by logs as they are."""
    texts, begun, gone = {}, {}, []
    for log in logs:
        for line in whole_lines(log):
            note = json.loads(line)
            if "begin" in note:
                begun[note["begin"]] = note
                texts |= {key: text for key, (text, _) in note["outcome"].items() if text}
            elif "done" in note and begun[note["done"]]["kind"] == "erase":
                gone += [texts[key] for key in begun[note["done"]]["outcome"] if key in texts]
    return gone


def problems(url, history):
    """Hold a database against a history; return everything that is wrong with it."""
    door = _once_back(PlainDoor, url)
    try:
        found = rounds.states(url, door)
        wrong = history.settle(found)
        living = {key: text for key, (text, state) in found.items() if state == LIVING}
        wrong += index_problems(door, living) + write_problems(door)
        wrong += list(door.memory.verify().problems)
        wrong += history.left_in_bytes(dumped(url))
    finally:
        door.close()
    return wrong


def _once_back(call, *arguments):
    ends = time.monotonic() + 60
    while True:
        try:
            return call(*arguments)
        except (StoreError, psycopg.OperationalError):
            if time.monotonic() > ends:
                raise
            time.sleep(0.05)


def dumped(url):
    """Return all that the tables hold."""
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        data = b""
        for table in ("entries", "changes", "links", "walls", "sealed_vectors"):
            with cursor.copy(f"COPY (SELECT * FROM mnemic.agent_memory_{table}) TO STDOUT") as rows:  # noqa: S608 - constants
                data += b"".join(rows)
    return data


def left_behind(url, fault):
    """Return what ended processes have left in the server, after a moment."""
    ends = time.monotonic() + 30
    while True:
        with psycopg.connect(url) as connection:
            found = [one for (one,) in connection.execute(LOCKED)]
            if not fault.keeps_sessions:
                found += [one for (one,) in connection.execute(WAITING)]
        if not found or time.monotonic() > ends:
            return found
        time.sleep(0.1)
