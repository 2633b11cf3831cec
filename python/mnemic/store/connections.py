"""SQLite files: opened safely, checked to be ours, brought to the current version."""

import os
import stat
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import apsw

from mnemic.errors import (
    SchemaVersionError,
    StoreBusyError,
    StoreClosedError,
    StoreCorruptError,
    StoreError,
    StoreFileError,
    StoreFullError,
)
from mnemic.store.schema import APPLICATION_ID, MIGRATIONS

MEMORY_PATH = ":memory:"
BUSY_MILLISECONDS = 10_000

_MESSAGES: tuple[tuple[type[apsw.Error], type[StoreError], str], ...] = (
    (apsw.BusyError, StoreBusyError, "another process keeps it locked; try again"),
    (apsw.LockedError, StoreBusyError, "another process keeps it locked; try again"),
    (apsw.NotADBError, StoreFileError, "it is not a mnemic file; choose another path"),
    (apsw.CorruptError, StoreCorruptError, "it is damaged; keep it, and restore a backup"),
    (apsw.FullError, StoreFullError, "the disk is full; nothing of this write was kept"),
    (apsw.IOError, StoreFullError, "the disk is failing; nothing of this write was kept"),
    (apsw.CantOpenError, StoreFileError, "it cannot be opened; look at the path and its rights"),
    (apsw.ReadOnlyError, StoreFileError, "it cannot be written; look at its rights"),
    (apsw.PermissionsError, StoreFileError, "access is denied; look at its rights"),
)


@contextmanager
def typed_errors(path: str) -> Generator[None, None, None]:
    """Turn SQLite's errors into mnemic's, with the file's name and what to do about it."""
    try:
        yield
    except apsw.Error as error:
        for cause, typed, advice in _MESSAGES:
            if isinstance(error, cause):
                raise typed(f"{path}: {advice} (SQLite: {error})") from error
        raise StoreError(f"{path}: {error}") from error


def open_writer(path: str) -> apsw.Connection:
    """Open a file for writing; make it if there is none, readable by its owner alone.

    Raises:
        StoreError: If the path or what lies there cannot be used; the file is left as it is.
    """
    if path != MEMORY_PATH:
        _prepare_file(path)
    with typed_errors(path):
        connection = _connect(path)
        try:
            _check_is_ours(connection, path)
            _configure(connection, path)
            _migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare_file(path: str) -> None:
    if "://" in path:
        raise StoreFileError(f"{path}: only file paths and ':memory:' are supported")
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        raise StoreFileError(f"{path}: its directory does not exist; create it first") from None
    except OSError as error:
        raise StoreFileError(f"{path}: it cannot be opened ({error.strerror})") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise StoreFileError(f"{path}: it is not a regular file")
    finally:
        os.close(descriptor)


def _connect(path: str) -> apsw.Connection:
    connection = apsw.Connection(path)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    return connection


def _check_is_ours(connection: apsw.Connection, path: str) -> None:
    application = connection.pragma("application_id")
    version = connection.pragma("user_version")
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if application == 0 and version == 0 and is_empty:
        return
    if application != APPLICATION_ID:
        raise StoreFileError(f"{path}: it is another program's database; choose another path")
    if version > len(MIGRATIONS):
        raise SchemaVersionError(
            f"{path}: its schema version {version} is newer than this mnemic's "
            f"({len(MIGRATIONS)}); upgrade mnemic"
        )


def _configure(connection: apsw.Connection, path: str) -> None:
    if path != MEMORY_PATH:
        _use_write_ahead_log(connection, path)
    connection.pragma("synchronous", "FULL")
    connection.pragma("secure_delete", value=True)
    connection.pragma("temp_store", "MEMORY")
    connection.pragma("foreign_keys", value=True)


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


def _migrate(connection: apsw.Connection) -> None:
    if connection.pragma("user_version") == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for step in MIGRATIONS[connection.pragma("user_version") :]:
            connection.execute(step)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", len(MIGRATIONS))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


class Connections:
    """One writing connection and as many reading ones as threads read at once.

    A memory-only database has a single connection, which readers and the writer take in turn.

    Args:
        path: A file, or ":memory:".
    """

    def __init__(self, path: str) -> None:
        # An absolute path: the process may change its directory while the file is open.
        self._path = path if path == MEMORY_PATH else os.path.abspath(path)  # noqa: PTH100 - pathlib is slow to import
        self._writer = open_writer(path)
        self._is_shared = path == MEMORY_PATH
        self._process = os.getpid()
        self._turn = threading.Lock()
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._is_closed = False

    @contextmanager
    def writing(self) -> Generator[apsw.Connection, None, None]:
        """Lend the writing connection; only the writer's thread asks for it."""
        with self._turn:
            yield self._writer

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """Lend a connection for one short read."""
        if self._is_shared:
            with self._turn:
                self.check_usable()
                yield self._writer
            return
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        if self._is_closed:
            raise StoreClosedError(f"{self._path}: the memory was closed")
        if os.getpid() != self._process:
            raise StoreError(f"{self._path}: opened before a fork; open it again in this process")

    def close(self) -> None:
        """Close every connection; one that is lent is closed when it comes back."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        with self._turn:
            self._writer.close()

    def _take(self) -> apsw.Connection:
        with self._lock:
            self.check_usable()
            if self._idle:
                return self._idle.pop()
        connection = _connect(self._path)
        connection.pragma("query_only", value=True)
        connection.pragma("temp_store", "MEMORY")
        return connection

    def _give_back(self, connection: apsw.Connection) -> None:
        with self._lock:
            if not self._is_closed:
                self._idle.append(connection)
                return
        connection.close()
