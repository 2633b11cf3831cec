"""Connections to a SQLite file: one that writes, and those leased to readers."""

import os
import sys
import threading
from collections.abc import Generator, Hashable
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import apsw

from mnemic._core import file_id
from mnemic.errors import (
    ReadOnlyError,
    StoreClosedError,
    StoreFileError,
)
from mnemic.model.deadline import check_deadline
from mnemic.reporting.logs import logger
from mnemic.store.sqlite.disk_space import LogIndexSpace
from mnemic.store.sqlite.file_locks import SameFiles, inherited
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.log_mark import log_problem
from mnemic.store.sqlite.opening import (
    MEMORY_PATH,
    Lease,
    check_readable,
    connect,
    connect_reading,
    leave_no_empty_log,
    open_writer,
    prepare_file,
    resolved_path,
)
from mnemic.store.sqlite.snapshot_folder import SnapshotFolder
from mnemic.store.sqlite.sqlite_errors import typed, typed_errors
from mnemic.store.sqlite.wal import Checkpoints, remove_log
from mnemic.threads.locks import InnerLock

if TYPE_CHECKING:
    from mnemic.store.sqlite.file_locks import HeldName

_log = logger(__name__)

# A signal handler's write would wait for SQLite's lock of the file, which its own thread may have.
_turns: "WeakValueDictionary[Hashable, InnerLock]" = WeakValueDictionary()

_READ_CACHE = 8192
"""KiB of pages that a reading connection keeps at most: with SQLite's own 2 MB, reading a thousand
of 100,000 memories takes half as long again."""


class Connections:
    """One writing connection, and as many reading ones as threads read at once.

    A memory-only database has a single connection, which readers and the writer use in turn.

    Args:
        path: A file, or ":memory:".
        read_only: Whether the file must not be changed; then there is no writing connection.

    Attributes:
        turn: Lock of the writing connection, and of those of other memories of the file.
        file: Equal for connections of the same file in this process.
        log_problem: Damage that the log had when it was opened, or None.
        snapshots: Folder of snapshots beside the file; None if none may be kept.
        holder: Id of the thread that holds `turn`: a signal handler or a finalizer may interrupt
            it, and must not wait for it.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self._given = path
        self._path = resolved_path(path)
        self._writer: GuardedConnection | None = None
        self._checkpoints: Checkpoints | None = None
        self._same: SameFiles | None = None
        self._is_shared = path == MEMORY_PATH
        self.snapshots: SnapshotFolder | None = None
        self.log_problem = log_problem(self._path)  # before SQLite writes over what it dropped
        if self.log_problem is not None:
            _log.warning("%s: %s", self._given, self.log_problem)
        self._name: HeldName | None = None
        try:
            self._open(path, read_only=read_only)
        except BaseException:
            self._release_name()
            raise
        self._process = os.getpid()
        self.file: Hashable = object() if self._is_shared else file_id(self._path) or self._path
        self.turn = _turns.setdefault(self.file, InnerLock())
        self.holder: int | None = None
        self._lock = InnerLock()
        self._idle: list[GuardedConnection] = []
        self._is_closed = False

    def _open(self, path: str, *, read_only: bool) -> None:
        if read_only:
            self._name = prepare_file(path, read_only=True)
            check_readable(path)
            self._same = SameFiles(self._path, is_log_used=False)
        else:
            self._open_for_writing(path)

    def _release_name(self) -> None:
        if self._name is not None:
            self._name.release()

    def _open_for_writing(self, path: str) -> None:
        index_space = None if self._is_shared else LogIndexSpace(self._path)
        if index_space is not None:
            index_space.check_before_opening()
            self._name = prepare_file(path)
        self._writer = open_writer(path)
        if self._is_shared:
            return
        try:
            with typed_errors(path):
                self._same = SameFiles(self._path)
                self._checkpoints = Checkpoints(
                    self._path, same=self._same, index_space=index_space
                )
        except BaseException:
            self._writer.close()
            raise
        if index_space is not None:
            index_space.take(0)
        self._writer.set_commit_hook(self._checkpoints.before_commit)
        self._writer.set_wal_hook(self._checkpoints.after_commit)
        if sys.platform != "win32":  # it has no `flock`
            self._use_snapshots(SnapshotFolder(self._path), self._checkpoints)

    def _use_snapshots(self, snapshots: SnapshotFolder, checkpoints: Checkpoints) -> None:
        def after_commit(connection: apsw.Connection, name: str, pages: int) -> int:
            snapshots.repeat()
            return checkpoints.after_commit(connection, name, pages)

        self.snapshots = snapshots
        snapshots.clear_if_requested()
        self.writer.set_wal_hook(after_commit)

    @property
    def writer(self) -> GuardedConnection:
        """The writing connection, for the thread that holds `turn`."""
        if self._writer is None:
            raise ReadOnlyError(f"{self._path}: opened for reading alone; open it for writing")
        return self._writer

    def reading(self, deadline: float | None = None) -> AbstractContextManager[GuardedConnection]:
        """Lend a connection for one read; SQLite's errors in it become mnemic's.

        Args:
            deadline: Statements that run past it raise DeadlineExceededError; None is no limit.
        """
        self.check_usable()  # before any lock, which a fork may have left locked forever
        lent = self._held() if self._is_shared else _Reading(self)
        return lent if deadline is None else self._until(deadline, lent)

    @contextmanager
    def _until(
        self, deadline: float, lent: AbstractContextManager[GuardedConnection]
    ) -> Generator[GuardedConnection, None, None]:
        check_deadline(deadline)
        with lent as connection:
            check_deadline(deadline)  # another thread may have held the only connection
            connection.set_deadline(deadline)
            try:
                yield connection
            finally:
                connection.set_deadline(None)

    @contextmanager
    def copying(self) -> Generator[apsw.Connection, None, None]:
        """Lend a connection for a copy of the whole database; no other caller waits for it."""
        self.check_usable()
        if self._is_shared:
            with self.reading() as connection:
                yield connection
            return
        self._check_file()
        connection = self._open_reader()[0]
        try:
            yield connection
        finally:
            self._close_one(connection)

    def erase(self) -> bool:
        """Empty the log and remove snapshots, so that neither they nor the file hold deleted data.

        Waits for the current write transaction, briefly for readers, and `ERASE_SECONDS` for
        whoever writes a snapshot; other writers go on meanwhile.

        Returns:
            Whether deleted data is gone. If not, removal is repeated after later commits and when
            the last process closes the file. Without a file the result is True.
        """
        self.check_writable()
        if self._checkpoints is None:
            return True
        with self._held():
            is_erased = self._checkpoints.erase()
        return (self.snapshots is None or self.snapshots.clear()) and is_erased

    def reserve_space(self, pages: int) -> None:
        """Reserve disk space for the file with a number of pages, and for its log.

        Raises:
            StoreFullError: If there is too little.
        """
        if self._checkpoints is not None:
            self._checkpoints.space.reserve(pages * int(self.writer.pragma("page_size")))

    def empty_log(self) -> bool:
        """Copy the log into the file to make room; return whether it was emptied."""
        return self._checkpoints is not None and self._checkpoints.empty()

    @contextmanager
    def locked_snapshots(self, wait: float) -> Generator[str, None, None]:
        """Lock the folder of snapshots, and give its path; see `Store.locked_snapshots`."""
        self.check_writable()
        if self.snapshots is None:
            raise StoreFileError(f"{self._given}: no snapshots of its indexes are kept")
        with self.snapshots.locked(wait):
            self._check_file()
            yield self.snapshots.path

    @contextmanager
    def _held(self) -> Generator[GuardedConnection, None, None]:
        with typed_errors(self._given), self.turn:
            self.holder = threading.get_ident()
            try:
                self.check_usable()
                yield self.writer
            finally:
                self.holder = None

    def typed(self, error: BaseException) -> BaseException:
        """Return mnemic's error for one of SQLite, which is its cause, or another error itself."""
        if not isinstance(error, apsw.Error):
            return error
        made = typed(error, self._given)
        made.__cause__ = error
        return made

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        return os.getpid() != self._process

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        if self._is_closed:
            raise StoreClosedError(f"the memory was closed ({self._path})")
        if os.getpid() != self._process:
            raise inherited(self._path)

    def check_writable(self) -> None:
        """Raise a typed error if the connections are for reading alone, or not usable at all."""
        self.check_usable()
        _ = self.writer

    def close(self) -> None:
        """Close every connection; one that is leased is closed when it comes back.

        In a process that was forked off nothing happens: the connections are the parent's, and so
        are the locks, which its other threads may have held at that moment.
        """
        if self.is_foreign:
            return
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        are_same = self._are_same()
        for connection in idle:
            connection.close()
        with self.turn:
            if self._writer is not None:
                self._writer.close()
            if self._checkpoints is not None:
                self._checkpoints.close()
        if are_same:
            self._leave_no_log()
            if self.snapshots is not None:
                self.snapshots.clear_if_requested()
        self._release_name()

    def acquire(self) -> Lease:
        """Return a connection for one read."""
        if self._same is not None:
            self._same.check_file()
        with self._lock:
            self.check_usable()
            if self._idle:
                connection = self._idle.pop()
                connection.renew()
                return connection, True
        connection, is_kept = self._open_reader()
        connection.pragma("query_only", value=True)
        return connection, is_kept

    def _open_reader(self) -> Lease:
        if self._writer is None:
            connection, is_kept = connect_reading(self._path)
        else:
            connection, is_kept = connect(self._path), True
        try:
            self._check_file()  # once more: by now it is clear which one was opened
        except BaseException:
            connection.close()
            raise
        connection.pragma("temp_store", "MEMORY")
        connection.pragma("cache_size", -_READ_CACHE)
        return connection, is_kept

    def _check_file(self) -> None:
        if self._same is not None:
            self._same.check_file()

    def release_reader(self, lease: Lease) -> None:
        """Take a connection back."""
        connection, is_kept = lease
        # One that an interrupt left in a transaction would show its state permanently.
        is_kept = is_kept and not connection.in_transaction
        with self._lock:
            if is_kept and not self._is_closed:
                self._idle.append(connection)
                return
        self._close_one(connection)

    def _close_one(self, connection: GuardedConnection) -> None:
        connection.close()
        if self._is_closed:
            # It may have begun a log of its own, after `close` had taken the first one away.
            self._leave_no_log()

    def _are_same(self) -> bool:
        # Asked while a connection is open: later others may take the log away and make a new one.
        return self._same is None or self._same.are_same()

    def _leave_no_log(self) -> None:
        if self._writer is None:
            leave_no_empty_log(self._path)
        elif not self._is_shared:
            remove_log(self._path, same=self._same and self._same.without_log())


class _Reading:
    """Lends one connection; a generator-based context manager takes twice as long."""

    __slots__ = ("_connections", "_lease")

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._lease: Lease | None = None

    def __enter__(self) -> GuardedConnection:
        try:
            lease = self._lease = self._connections.acquire()
        except apsw.Error as error:
            raise self._connections.typed(error) from error
        return lease[0]

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._lease is not None:
            self._connections.release_reader(self._lease)
        if isinstance(error, apsw.Error):
            raise self._connections.typed(error) from error
