"""Uses everything of memories from several threads, with their locks recorded.

A program: `python -m tests.faults.lock_workload KIND SECONDS URL COPY FOLDER` prints what was seen,
as JSON. KIND is one of `tests.support.everything.OPTIONS`, or "inverted": a file, whose locks are
taken in the wrong order once.
"""
# ruff: noqa: E402 - the locks of what is imported below are recorded

from tests.support.recorded_locks import Recorder, record, record_shared, telling

RECORDER = Recorder()
record(RECORDER)

import faulthandler
import json
import logging
import subprocess
import sys
from contextlib import contextmanager

import apsw
import psycopg
from psycopg_pool import ConnectionPool

from mnemic.index.shared_lock import SharedLock
from mnemic.repository import index_snapshots
from mnemic.store.postgres import positions
from mnemic.store.sqlite import hardening, snapshot_folder
from mnemic.threads import sync_bridge
from mnemic.threads.event_loop_thread import EventLoopThread
from mnemic.threads.waited_future import WaitedFuture
from tests.support.everything import Everything, Told
from tests.support.processes import ENVIRONMENT

CALLERS, LINES, STORE = "callers' code", "log lines", "the store"

BESIDE = """
import sys, time
from mnemic import Encryption, Memory
from tests.support.keys import KEY
with Memory(sys.argv[1], "beside", embedder=None, encryption=Encryption(KEY)) as memory:
    ends = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < ends:
        memory.add("red beside")
        memory.search("red", limit=3)
        memory.delete(memory.add("gone").id, permanent=True)
"""


class Handler(logging.Handler):
    def emit(self, _record):
        RECORDER.does(LINES)


def record_deeds():
    """Record what reaches a store, the files of snapshots, callers' coroutines and logs."""
    for name in ("execute", "executemany"):
        asked = telling(RECORDER, STORE, getattr(apsw.Connection, name))
        setattr(hardening.GuardedConnection, name, asked)
    psycopg.Connection.wait = telling(RECORDER, STORE, psycopg.Connection.wait)
    positions._result = telling(RECORDER, STORE, positions._result)
    Told.calls = lambda: RECORDER.does(CALLERS)
    EventLoopThread.run = telling(RECORDER, CALLERS, EventLoopThread.run)
    record_shared(RECORDER, SharedLock)
    record_block(snapshot_folder.SnapshotFolder, "locked", "the file lock of snapshots")
    record_leases()
    record_waits()
    logging.getLogger("mnemic").addHandler(Handler())
    logging.getLogger("mnemic").setLevel(logging.DEBUG)
    logging.getLogger("mnemic").propagate = False


def record_block(kind, method, name):
    """Record what a context manager of a class holds, as a lock."""
    enter = getattr(kind, method)

    @contextmanager
    def hold(self, *values):
        with RECORDER.holding(self, name), enter(self, *values) as held:
            yield held

    setattr(kind, method, hold)


def record_waits():
    """Record the wait for a write that another thread makes, as that for its turn."""
    wait = sync_bridge._wait_here

    def noted(future):
        if isinstance(future, WaitedFuture):
            RECORDER.waits(None, "Connections.turn")
        wait(future)

    sync_bridge._wait_here = noted


def record_leases():
    """Record the connections of a pool, each as a lock."""
    lend, take_back = ConnectionPool.getconn, ConnectionPool.putconn
    names = {"mnemic": "a pooled connection", "mnemic-apart": "the connection apart"}

    def getconn(self, *values):
        name = names[self.name]
        RECORDER.waits(None, name)
        connection = lend(self, *values)
        RECORDER.has(connection, name)
        return connection

    def putconn(self, connection):
        take_back(self, connection)
        RECORDER.leaves(connection)

    ConnectionPool.getconn, ConnectionPool.putconn = getconn, putconn


def invert(memory):
    memory.search("red")
    sync = memory.repository._indexes.active
    with sync.accesses._lock, sync.accesses.moving:
        pass


def main(kind, seconds, url, copy, folder):
    faulthandler.dump_traceback_later(float(seconds) + 150, exit=True)
    record_deeds()
    index_snapshots.MIN_ROWS = index_snapshots.MIN_CHANGES = 20
    index_snapshots.CHECK_SECONDS = 0.0
    beside = None
    workload = Everything(kind, float(seconds), url, copy, folder)
    if kind in {"sqlite", "postgres"}:
        beside = subprocess.Popen([sys.executable, "-c", BESIDE, url, seconds], env=ENVIRONMENT)
    if kind == "inverted":
        invert(workload.memory)
    workload.run()
    if beside is not None and beside.wait(100):
        workload.failed.append("the other process failed")
    seen = {
        "pairs": [[*pair, where] for pair, where in RECORDER.pairs.items()],
        "deeds": [[*deed, where] for deed, where in RECORDER.deeds.items()],
        "taken": sorted(RECORDER.taken),
        "errors": workload.errors,
        "failed": workload.failed,
    }
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
