"""The one thread that writes: jobs that wait together share a transaction."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import apsw

from mnemic.errors import StoreClosedError
from mnemic.store.connections import Connections

Result = TypeVar("Result")
Job = Callable[[apsw.Connection], Any]
_Item = tuple[Job, "Future[Any]"]
_Outcome = tuple["Future[Any]", Any, Exception | None]

LARGEST_GROUP = 512


class Writer:
    """Runs write jobs one after the other, in the order they came.

    Jobs that wait while a commit is on its way to the disk are committed together by the next one,
    so durability costs one flush per group. Each job has its own savepoint: one that fails is
    undone alone.

    Args:
        connections: Where the writing connection comes from.
    """

    def __init__(self, connections: Connections) -> None:
        self._jobs: SimpleQueue[_Item | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._is_closed = False
        self._connections = connections
        self._thread = threading.Thread(
            target=_work, args=(self._jobs, connections), name="mnemic-writer", daemon=True
        )
        self._thread.start()

    def submit(self, job: Callable[[apsw.Connection], Result]) -> "Future[Result]":
        """Hand in a job; its future is settled once its group is on disk, or has failed."""
        future: Future[Result] = Future()
        if self._connections.is_foreign:  # asked before the lock, which a fork may have left locked
            self._connections.check_usable()
        with self._lock:
            if self._is_closed:
                raise StoreClosedError("the memory was closed")
            self._connections.check_usable()
            self._jobs.put((job, future))
        return future

    def close(self) -> bool:
        """Finish what was handed in, and stop.

        Returns:
            Whether it has stopped. It has not if the writing thread itself is the one that asks,
            which happens when the garbage collector runs there; it stops as soon as it can. In a
            process that was forked off there is nothing to stop.
        """
        if self._connections.is_foreign:
            return True
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._jobs.put(None)
        if threading.current_thread() is self._thread:
            return False
        if self._thread.is_alive():
            self._thread.join()
        return True


def _work(jobs: "SimpleQueue[_Item | None]", connections: Connections) -> None:
    while True:
        group, is_last = _next_group(jobs)
        if group:
            _run_group(group, connections)
        if is_last:
            return


def _next_group(jobs: "SimpleQueue[_Item | None]") -> tuple[list[_Item], bool]:
    group: list[_Item] = []
    item = jobs.get()
    while item is not None:
        group.append(item)
        if len(group) == LARGEST_GROUP:
            return group, False
        try:
            item = jobs.get_nowait()
        except Empty:
            return group, False
    return group, True


def _run_group(group: list[_Item], connections: Connections) -> None:
    wanted = [item for item in group if item[1].set_running_or_notify_cancel()]
    try:
        with connections.writing() as connection:
            outcomes = _commit(wanted, connection)
    except Exception as failure:  # noqa: BLE001 - every caller is told
        outcomes = [(future, None, failure) for _, future in wanted]
    for future, result, error in outcomes:
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)


def _commit(group: list[_Item], connection: apsw.Connection) -> list[_Outcome]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        outcomes = [_run_job(job, future, connection) for job, future in group]
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return outcomes


def _run_job(job: Job, future: "Future[Any]", connection: apsw.Connection) -> _Outcome:
    connection.execute("SAVEPOINT job")
    try:
        result = job(connection)
    except Exception as error:
        # A full or failing disk may have undone the whole transaction, so the group with it.
        if not connection.in_transaction:
            raise
        connection.execute("ROLLBACK TO job")
        connection.execute("RELEASE job")
        return future, None, error
    connection.execute("RELEASE job")
    return future, result, None
