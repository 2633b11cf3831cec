"""Connections to SQLite files: opened safely, checked, and migrated to the current version."""

import logging
import os
import stat
import threading
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TypeAlias

import apsw

from mnemic.errors import (
    MnemicError,
    OutOfMemoryError,
    ReadOnlyError,
    SchemaVersionError,
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFileError,
    StoreFullError,
)
from mnemic.model.deadline import check_deadline
from mnemic.new_files import remove_part
from mnemic.store.sqlite import migration_functions
from mnemic.store.sqlite.damage import RESTORE
from mnemic.store.sqlite.file_locks import install_file_locks
from mnemic.store.sqlite.filesystem import refuse_shared
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.index_room import IndexRoom
from mnemic.store.sqlite.log_check import log_problem
from mnemic.store.sqlite.log_mark import announce_log, check_log
from mnemic.store.sqlite.same_files import SameFiles
from mnemic.store.sqlite.schema import APPLICATION_ID, MIGRATIONS, Migration
from mnemic.store.sqlite.schema_check import check_indexes, check_schema
from mnemic.store.sqlite.wal import Checkpoints, remove_log

_log = logging.getLogger(__name__)

MEMORY_PATH = ":memory:"
BUSY_MILLISECONDS = 10_000

_Lease: TypeAlias = tuple[GuardedConnection, bool]
"""A connection, and whether it is reused for the next read."""

_creating = threading.Lock()

_MESSAGES: tuple[tuple[type[apsw.Error], type[MnemicError], str], ...] = (
    (apsw.NoMemError, OutOfMemoryError, "memory for it cannot be had; nothing was kept of a write"),
    (apsw.BusyError, StoreBusyError, "another process keeps it locked; try again"),
    (apsw.LockedError, StoreBusyError, "another process keeps it locked; try again"),
    (apsw.NotADBError, StoreFileError, "it is not a mnemic file; choose another path"),
    (apsw.CorruptError, StoreCorruptError, f"it is damaged; {RESTORE}"),
    (apsw.FullError, StoreFullError, "the disk is full; nothing of this write was kept"),
    (apsw.IOError, StoreFullError, "the disk is failing; a write that met this was not kept"),
    (apsw.CantOpenError, StoreFileError, "it cannot be opened; look at the path and its rights"),
    (
        apsw.ReadOnlyError,
        StoreFileError,
        f"it cannot be written; look at its rights; if it is damaged, {RESTORE}",
    ),
    (apsw.PermissionsError, StoreFileError, "access is denied; look at its rights"),
    (
        apsw.InterruptError,
        StoreCorruptError,
        f"its reading takes more work than its size can need; {RESTORE}",
    ),
)


@contextmanager
def typed_errors(path: str) -> Generator[None, None, None]:
    """Convert SQLite's errors to mnemic's, with the file's name and advice."""
    try:
        yield
    except apsw.Error as error:
        raise typed(error, path) from error


def typed(error: apsw.Error, path: str) -> MnemicError:
    """Return mnemic's error for an error of SQLite, with the file's name and advice."""
    for cause, kind, advice in _MESSAGES:
        if isinstance(error, cause):
            return kind(f"{path}: {advice} (SQLite: {error})")
    return StoreError(f"{path}: {error}; if the file is damaged, {RESTORE}")


def open_writer(path: str) -> GuardedConnection:
    """Open a file for writing; create it if it does not exist, readable by its owner alone.

    Raises:
        StoreError: If the path or its file cannot be used; the file is left unchanged.
    """
    if path != MEMORY_PATH:
        _prepare_file(path)
    with typed_errors(path):
        connection = _connect(path)
        try:
            _check_is_ours(connection, path)
            _configure(connection, path)
            connection.renew()  # a migration may take as much again
            _migrate(connection, path)
            check_indexes(connection, path)
            connection.pragma("foreign_keys", value=True)
        except BaseException:
            connection.close()
            remove_log(path, only_if_empty=True)
            raise
        return connection


def check_readable(path: str) -> None:
    """Check that a file is a memory of this version, without changing it.

    Raises:
        StoreError: If it does not exist, or cannot be read in its current state.
    """
    if path == MEMORY_PATH:
        raise StoreFileError(f"{path}: a new memory has nothing to read; open it for writing")
    _prepare_file(path, read_only=True)
    with typed_errors(path):
        connection, _ = _connect_reading(path)
        try:
            connection.execute("BEGIN")
            version = _version_if_ours(connection, path)
        finally:
            connection.close()
            _leave_no_empty_log(path)
    if version < len(MIGRATIONS):
        raise SchemaVersionError(
            f"{path}: its schema version {version} is older than this mnemic's "
            f"({len(MIGRATIONS)}); open it once for writing"
        )


def _connect_reading(path: str) -> _Lease:
    """Open a file read-only; return whether later writes of others are visible.

    Even a reader needs the log and its index, and creates them if they are missing. If it may not,
    then the file is open nowhere else at this moment, and it is read as if it never changed: for
    one read this holds, unless a writer both comes and copies its log during it.
    """
    has_log = os.path.exists(f"{path}-wal")  # noqa: PTH110 - pathlib is slow to import
    if has_log or _may_write(path):
        return _connect(path, apsw.SQLITE_OPEN_READONLY), True
    from urllib.parse import quote  # noqa: PLC0415 - the same

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return _connect(f"file:{quote(path)}?immutable=1", flags), False


def _may_write(path: str) -> bool:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 - the same
    return os.access(path, os.W_OK) and os.access(folder, os.W_OK)


def _leave_no_empty_log(path: str) -> None:
    if _may_write(path):
        remove_log(path, only_if_empty=True)


def _prepare_file(path: str, *, read_only: bool = False) -> None:
    try:
        path.encode()
        refuse_shared(path)
        mode = os.stat(path).st_mode if read_only else _mode_of(path)  # noqa: PTH116 - as below
    except FileNotFoundError:
        if read_only:
            raise StoreFileError(f"{path}: it does not exist") from None
        raise StoreFileError(f"{path}: its directory does not exist; create it first") from None
    except OSError as error:
        raise StoreFileError(f"{path}: it cannot be opened ({error.strerror})") from error
    except ValueError as error:
        raise StoreFileError(f"{path!r}: it is not a path in UTF-8 ({error})") from error
    if not stat.S_ISREG(mode):
        raise StoreFileError(f"{path}: it is not a regular file")
    try:
        if not read_only:
            remove_part(_resolved_path(path))
        check_log(_resolved_path(path), read_only=read_only)
    except OSError as error:
        raise StoreFileError(f"{path}: it cannot be opened ({error.strerror})") from error


def _mode_of(path: str) -> int:
    """Return the file's mode; create the file if it does not exist.

    An existing file is not opened: closing it again would drop every lock that this process holds
    on it (POSIX), and with them SQLite's sign that the file is in use.
    """
    with _creating:
        try:
            return os.stat(path).st_mode  # noqa: PTH116 - pathlib is slow to import
        except FileNotFoundError:
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            try:
                return os.fstat(descriptor).st_mode
            finally:
                os.close(descriptor)


def _connect(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> GuardedConnection:
    install_file_locks()
    # Without the flag that creates: a deleted file is an error, not an empty memory.
    connection = GuardedConnection(path, flags)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    # Its log is copied into the file by `Checkpoints` alone, never as it closes or commits.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.wal_autocheckpoint(0)
    migration_functions.register(connection)
    return connection


def _check_is_ours(connection: apsw.Connection, path: str) -> None:
    if connection.readonly("main"):
        raise StoreFileError(f"{path}: it cannot be written; look at its rights")
    connection.execute("BEGIN")  # one moment: others may be making the tables
    try:
        _version_if_ours(connection, path)
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


def _version_if_ours(connection: apsw.Connection, path: str) -> int:
    """Return the schema version, 0 for an empty file; read it inside a transaction."""
    application = connection.pragma("application_id")
    version = int(connection.pragma("user_version"))
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if application == 0 and version == 0 and is_empty:
        return 0
    if application != APPLICATION_ID:
        raise StoreFileError(f"{path}: it is another program's database; choose another path")
    if version > len(MIGRATIONS):
        raise SchemaVersionError(
            f"{path}: its schema version {version} is newer than this mnemic's "
            f"({len(MIGRATIONS)}); upgrade mnemic"
        )
    check_schema(connection, path, version)
    return version


def _configure(connection: apsw.Connection, path: str) -> None:
    if path != MEMORY_PATH:
        _use_write_ahead_log(connection, path)
    connection.pragma("synchronous", "FULL")
    connection.pragma("secure_delete", value=True)
    connection.pragma("temp_store", "MEMORY")


def _use_write_ahead_log(connection: apsw.Connection, path: str) -> None:
    # SQLite does not wait for a lock here when two processes open a new file at once.
    deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            mode = connection.pragma("journal_mode", "WAL")
            break
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
    if mode != "wal":
        raise StoreFileError(f"{path}: its file system cannot hold SQLite's write-ahead log")


def _migrate(connection: apsw.Connection, path: str) -> None:
    if connection.pragma("user_version") == len(MIGRATIONS):
        return
    if path != MEMORY_PATH:
        announce_log(path)
    connection.pragma("foreign_keys", value=False)  # has no effect inside a transaction
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Looked at again: another process may have been faster, and may be a newer mnemic.
        for step in MIGRATIONS[_version_if_ours(connection, path) :]:
            connection.execute(step.up)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(MIGRATIONS))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def downgrade(path: str, version: int) -> None:
    """Bring a file that is open nowhere back to an earlier schema version.

    Raises:
        SchemaVersionError: If the file's contents do not fit the earlier version.
        StoreError: If the path or its file cannot be used; the file is left unchanged.
    """
    with typed_errors(path):
        announce_log(path)
        connection = _connect(path)
        try:
            connection.pragma("secure_delete", value=True)
            connection.pragma("foreign_keys", value=False)
            connection.execute("BEGIN IMMEDIATE")
            steps = MIGRATIONS[version : _version_if_ours(connection, path)]
            for step in reversed(steps):
                _check_downgrade(connection, path, step)
                connection.execute(step.down)
            if steps:
                connection.pragma("user_version", version)
            connection.execute("COMMIT")
        finally:
            connection.close()
            remove_log(path)


def _check_downgrade(connection: apsw.Connection, path: str, step: Migration) -> None:
    found = connection.execute(step.obstacle).get if step.obstacle is not None else None
    if found is not None:
        raise SchemaVersionError(
            f"{path}: it cannot be brought back to an earlier schema version: {found}; export the "
            "memories, or delete those that stand in the way"
        )


def _resolved_path(path: str) -> str:
    """Return a path that remains the same file, and beside which SQLite's log lies.

    The process may change its directory while the file is open, and SQLite names the log after the
    file itself, not after a link to it.
    """
    if path == MEMORY_PATH or "\0" in path:  # which no file has; opening it says so
        return path
    return os.path.realpath(path)


class Connections:
    """One writing connection, and as many reading ones as threads read at once.

    A memory-only database has a single connection, which readers and the writer use in turn.

    Args:
        path: A file, or ":memory:".
        read_only: Whether the file must not be changed; then there is no writing connection.

    Attributes:
        turn: Lock of the writing connection.
        log_problem: Damage that the log had when it was opened, or None.
        holder: Id of the thread that holds `turn`: a signal handler or a finalizer may interrupt
            it, and must not wait for it.
    """

    def __init__(self, path: str, *, read_only: bool = False) -> None:
        self._given = path
        self._path = _resolved_path(path)
        self._writer: GuardedConnection | None = None
        self._checkpoints: Checkpoints | None = None
        self._same: SameFiles | None = None
        self._is_shared = path == MEMORY_PATH
        self.log_problem = log_problem(self._path)  # before SQLite writes over what it dropped
        if self.log_problem is not None:
            _log.warning("%s: %s", self._given, self.log_problem)
        if read_only:
            check_readable(path)
            self._same = SameFiles(self._path, is_log_used=False)
        else:
            self._open_for_writing(path)
        self._process = os.getpid()
        self.turn = threading.Lock()
        self.holder: int | None = None
        self._lock = threading.Lock()
        self._idle: list[GuardedConnection] = []
        self._is_closed = False

    def _open_for_writing(self, path: str) -> None:
        room = None if self._is_shared else IndexRoom(self._path)
        if room is not None:
            room.check_before_opening()
        self._writer = open_writer(path)
        if self._is_shared:
            return
        try:
            with typed_errors(path):
                self._same = SameFiles(self._path)
                self._checkpoints = Checkpoints(self._path, same=self._same, room=room)
        except BaseException:
            self._writer.close()
            raise
        if room is not None:
            room.take(0)
        self._writer.set_commit_hook(self._checkpoints.before_commit)
        self._writer.set_wal_hook(self._checkpoints.after_commit)

    @contextmanager
    def writing(self) -> Generator[apsw.Connection, None, None]:
        """Lend the writing connection to one thread at a time."""
        with self.turn:
            yield self.writer

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
        self.check_usable()  # before any lock, which a fork may have left locked for good
        if deadline is not None:
            return self._reading_until(deadline)
        if self._is_shared:
            return self._reading_in_turn()
        return _Reading(self._acquire, self._release, self._given)

    @contextmanager
    def _reading_in_turn(self) -> Generator[GuardedConnection, None, None]:
        with typed_errors(self._given), self._held():
            yield self.writer

    @contextmanager
    def _reading_until(self, deadline: float) -> Generator[GuardedConnection, None, None]:
        check_deadline(deadline)
        reading = _Reading(self._acquire, self._release, self._given)
        with self._reading_in_turn() if self._is_shared else reading as connection:
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
        """Empty the log, so that nothing of what was deleted is left in it or in the file.

        Waits for the transaction that is being written, and a moment for those who read.

        Returns:
            Whether it is so now. If not, it is tried again after later commits, and by whoever
            closes the file last. Without a file there is nothing to be left in.
        """
        self.check_writable()
        if self._checkpoints is None:
            return True
        with self._held():
            return self._checkpoints.erase()

    @contextmanager
    def _held(self) -> Generator[None, None, None]:
        if self.holder == threading.get_ident():
            raise StoreError(f"{self._path}: this thread is in the midst of using it")
        with self.turn:
            self.holder = threading.get_ident()
            try:
                self.check_usable()
                yield
            finally:
                self.holder = None

    def typed(self, error: apsw.Error) -> MnemicError:
        """Return mnemic's error for one of SQLite, which is its cause."""
        made = typed(error, self._given)
        made.__cause__ = error
        return made

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        return os.getpid() != self._process

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        self._check_open()
        if self.is_foreign:
            raise StoreError(f"{self._path}: opened before a fork; open it again in this process")

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreClosedError(f"{self._path}: the memory was closed")

    def check_writable(self) -> None:
        """Raise a typed error if the connections are for reading alone, or not usable at all."""
        self.check_usable()
        _ = self.writer

    def close(self) -> None:
        """Close every connection; one that is lent is closed when it comes back.

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

    def _acquire(self) -> _Lease:
        self._check_file()
        with self._lock:
            self._check_open()
            if self._idle:
                connection = self._idle.pop()
                connection.renew()
                return connection, True
        connection, is_kept = self._open_reader()
        connection.pragma("query_only", value=True)
        return connection, is_kept

    def _open_reader(self) -> _Lease:
        if self._writer is None:
            connection, is_kept = _connect_reading(self._path)
        else:
            connection, is_kept = _connect(self._path), True
        try:
            self._check_file()  # once more: by now it is clear which one was opened
        except BaseException:
            connection.close()
            raise
        connection.pragma("temp_store", "MEMORY")
        return connection, is_kept

    def _check_file(self) -> None:
        if self._same is not None:
            self._same.check_file()

    def _release(self, lent: _Lease) -> None:
        connection, is_kept = lent
        # One that an interrupt left in a transaction would show its state for good.
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
            _leave_no_empty_log(self._path)
        elif not self._is_shared:
            remove_log(self._path, same=self._same and self._same.without_log())


class _Reading:
    """Lends one connection; a generator-based context manager takes twice as long."""

    __slots__ = ("_acquire", "_lent", "_path", "_release")

    def __init__(
        self, take: Callable[[], _Lease], give_back: Callable[[_Lease], None], path: str
    ) -> None:
        self._acquire = take
        self._release = give_back
        self._path = path
        self._lent: _Lease | None = None

    def __enter__(self) -> GuardedConnection:
        try:
            lent = self._lent = self._acquire()
        except apsw.Error as error:
            raise typed(error, self._path) from error
        return lent[0]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lent is not None:
            self._release(self._lent)
        if isinstance(error, apsw.Error):
            raise typed(error, self._path) from error
