"""A process that forks off one child per round, each of which writes until it is stopped.

Rounds are read from standard input, one JSON text a line, and answered by the child's exit code.
Forking from a process that has loaded everything, and has no other thread, starts a round in
milliseconds.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

from mnemic.repository import index_snapshots
from mnemic.store.sqlite import wal
from tests.faults.disk import Disk
from tests.faults.history import inner_problems
from tests.faults.workload import DOORS, Log, PlainDoor, Worker

FAILED = 3

# Snapshots of small indexes are saved, and saved again, while others write, erase and are killed.
index_snapshots.MIN_ROWS, index_snapshots.MIN_CHANGES = 5, 5
index_snapshots.CHANGED_SHARE, index_snapshots.CHECK_SECONDS = 10**9, 0.0


def write(
    *, folder, log, seed, workers, operations, known, synchronous, checkpoint_pages, others=0
):
    """Let workers write to the folder's file until they are done, then close it.

    With `others`, wait until as many processes are done, and hold each index against the store.
    """
    path, notes = Path(folder) / "a.db", Log(log)
    doors = [DOORS[("plain", "async")[at % 2]](path) for at in range(workers)]
    wal.COPY_PAGES = checkpoint_pages
    for door in doors:
        with door.store._connections._held() as connection:
            if synchronous:
                connection.pragma("synchronous", synchronous)
    shares = [dict(list(known.items())[at::workers]) for at in range(workers)]
    threads = [
        threading.Thread(
            target=_guarded,
            args=(Worker(f"s{seed}w{at}", door, notes, shares[at]), operations),
        )
        for at, door in enumerate(doors)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if others:
        _wait_for(Path(folder), others)
        for door in doors:
            if isinstance(door, PlainDoor) and (wrong := inner_problems(door)):
                notes.note(wrong=wrong)
    for door in doors:
        door.close()


def _wait_for(folder, others):
    (folder / f"{os.getpid()}.done").touch()
    deadline = time.monotonic() + 120
    while len(list(folder.glob("*.done"))) < others:
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.005)


def _guarded(worker, operations):
    try:
        worker.run(operations)
    except BaseException:  # noqa: BLE001 - whatever it is, the round has failed
        traceback.print_exc()
        os._exit(FAILED)


def one_round(cut_after, **what):
    """Write on a disk whose power is cut at an operation, at the latest after closing."""
    disk = Disk(what["folder"], what["seed"], cut_after) if cut_after else None
    write(**what)
    if disk:
        disk.cut()


def main():
    for line in sys.stdin:
        what = json.loads(line)
        kill_after = what.pop("kill_after")
        child = os.fork()
        if child == 0:
            try:
                one_round(**what)
            except BaseException:  # noqa: BLE001 - whatever it is, the round has failed
                traceback.print_exc()
                os._exit(FAILED)
            os._exit(0)
        if kill_after is not None:
            time.sleep(kill_after)
            os.kill(child, signal.SIGKILL)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
