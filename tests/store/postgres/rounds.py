"""A process that forks off one child per round, each of which writes to a database for a while.

Rounds are read from standard input, one JSON text a line, and answered by the child's exit code.
Whatever befalls the server meanwhile, the child goes on: a call that raises that the server is away
has stored nothing, and one whose outcome is unknown is noted as begun alone.
"""

import faulthandler
import json
import os
import signal
import sys
import threading
import time
import traceback
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import psycopg

from mnemic.errors import OutcomeUnknownError, StoreBusyError, StoreUnavailableError
from tests.faults.history import index_problems
from tests.faults.workload import DOORS, FORGOTTEN, LIVING, Log, PlainDoor, Worker
from tests.store.contract import entries_by_id

FAILED = 3
HANGS = 120
"""Seconds after which a round that has not ended shows its threads and ends."""

_NOT_DONE = (StoreUnavailableError, StoreBusyError)


class PersistentWorker(Worker):
    """A worker that goes on after errors of a server that is away."""

    def run_until(self, ends):
        """Do operations until a time of `time.monotonic()`."""
        while time.monotonic() < ends:
            try:
                self.run(1)
            except _NOT_DONE:  # of a read
                time.sleep(0.01)

    def _do(self, kind, outcome, act):
        try:
            super()._do(kind, outcome, act)
        except _NOT_DONE:
            self.log.note(failed=f"{self.name}-{self.number}")
            time.sleep(0.01)
        except OutcomeUnknownError:
            for entry_id in outcome:
                self.known.pop(entry_id, None)

    def _finds(self, entry_id, text):
        """Return whether a search finds a memory, or says that its answer may lack it."""
        begun, store = time.monotonic(), self.door.store
        return super()._finds(entry_id, text) or bool(store.stale_since("default", begun))


def write(*, url, log, seed, workers, seconds, known):
    """Let workers write until their time is over, and hold each index against the store."""
    notes = Log(log)
    doors = [_patient(DOORS[("plain", "async")[at % 2]], url) for at in range(workers)]
    notes.note(open=True)
    threads, ends = [], time.monotonic() + seconds
    for at, door in enumerate(doors):
        share = dict(list(known.items())[at::workers])
        worker = PersistentWorker(f"s{seed}w{at}", door, notes, share)
        threads.append(threading.Thread(target=_guarded, args=(worker, ends)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for door in doors:
        if isinstance(door, PlainDoor) and (wrong := _patient(_index_problems, url, door)):
            notes.note(wrong=wrong)
    for door in doors:
        door.close()


def states(url, door):
    """Return content and state of every memory that is stored, by its id."""
    with psycopg.connect(url) as connection:
        ids = [key for (key,) in connection.execute("SELECT id FROM mnemic.agent_memory_entries")]
    found = entries_by_id(
        door.store, door.view.scope, ids, now=datetime.now(UTC), include_deleted=True
    )
    return {
        str(UUID(str(key))): (entry.content, FORGOTTEN if entry.is_forgotten else LIVING)
        for key, entry in found.items()
    }


def _index_problems(url, door):
    """Hold what searching finds against the store, once nothing moves and no answer is stale."""
    while True:
        before, begun = door.store.position("default"), time.monotonic()
        found = states(url, door)
        living = {key: text for key, (text, state) in found.items() if state == LIVING}
        try:
            wrong = index_problems(door, living)
        except KeyError as missing:
            wrong = [f"found {missing}, which was not stored before"]
        is_stale = door.store.stale_since("default", begun) is not None
        if not is_stale and before == door.store.position("default"):
            return wrong


def _patient(call, *arguments):
    """Return what a call returns once the server is there."""
    while True:
        try:
            return call(*arguments)
        except (*_NOT_DONE, psycopg.OperationalError):
            time.sleep(0.05)


def _guarded(worker, ends):
    try:
        worker.run_until(ends)
    except BaseException:  # noqa: BLE001 - whatever it is, the round has failed
        traceback.print_exc()
        os._exit(FAILED)


def wait_for_opening(log):
    """Wait until a round has opened its memories."""
    while not Path(log).exists() or not Path(log).stat().st_size:
        time.sleep(0.005)


def main():
    for line in sys.stdin:
        what = json.loads(line)
        kill_after, pause = what.pop("kill_after"), what.pop("pause")
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(HANGS, exit=True)
            try:
                write(**what)
            except BaseException:  # noqa: BLE001 - whatever it is, the round has failed
                traceback.print_exc()
                os._exit(FAILED)
            os._exit(0)
        wait_for_opening(what["log"])
        if pause is not None:
            time.sleep(pause)
            os.kill(child, signal.SIGSTOP)
            time.sleep(pause)
            os.kill(child, signal.SIGCONT)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
