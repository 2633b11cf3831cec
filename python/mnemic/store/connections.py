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
from mnemic.store import sql
from mnemic.store.schema import APPLICATION_ID, MIGRATIONS

MEMORY_PATH = ":memory:"
BUSY_MILLISECONDS = 10_000

_creating = threading.Lock()

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
            _migrate(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare_file(path: str) -> None:
    if "://" in path:
        raise StoreFileError(f"{path}: only file paths and ':memory:' are supported")
    try:
        path.encode()
        mode = _mode_of(path)
    except FileNotFoundError:
        raise StoreFileError(f"{path}: its directory does not exist; create it first") from None
    except OSError as error:
        raise StoreFileError(f"{path}: it cannot be opened ({error.strerror})") from error
    except ValueError as error:
        raise StoreFileError(f"{path!r}: it is not a path in UTF-8 ({error})") from error
    if not stat.S_ISREG(mode):
        raise StoreFileError(f"{path}: it is not a regular file")


def _mode_of(path: str) -> int:
    """Return the file's mode; make it if there is none.

    A file that exists is not opened: closing it again would drop every lock that this process holds
    on it (POSIX), and with them SQLite's sign that somebody uses the file.
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


def _connect(path: str) -> apsw.Connection:
    # Without the flag that creates: a file that was taken away is an error, not an empty memory.
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    sql.register(connection)
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
    return version


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


def _migrate(connection: apsw.Connection, path: str) -> None:
    if connection.pragma("user_version") == len(MIGRATIONS):
        return
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
    """Bring a file that nobody has open back to an earlier schema version.

    Raises:
        StoreError: If the path or what lies there cannot be used; the file is left as it is.
    """
    with typed_errors(path):
        connection = _connect(path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            for step in reversed(MIGRATIONS[version : _version_if_ours(connection, path)]):
                connection.execute(step.down)
            connection.pragma("user_version", version)
            connection.execute("COMMIT")
        finally:
            connection.close()


class Connections:
    """One writing connection and as many reading ones as threads read at once.

    A memory-only database has a single connection, which readers and the writer take in turn.

    Args:
        path: A file, or ":memory:".

    Attributes:
        turn: Held by whoever uses the writing connection.
    """

    def __init__(self, path: str) -> None:
        # An absolute path: the process may change its directory while the file is open.
        self._path = path if path == MEMORY_PATH else os.path.abspath(path)  # noqa: PTH100 - pathlib is slow to import
        self._writer = open_writer(path)
        self._is_shared = path == MEMORY_PATH
        self._process = os.getpid()
        self.turn = threading.Lock()
        self._lock = threading.Lock()
        self._idle: list[apsw.Connection] = []
        self._is_closed = False

    @contextmanager
    def writing(self) -> Generator[apsw.Connection, None, None]:
        """Lend the writing connection to one at a time."""
        with self.turn:
            yield self._writer

    @property
    def writer(self) -> apsw.Connection:
        """The writing connection, for whoever holds `turn`."""
        return self._writer

    @contextmanager
    def reading(self) -> Generator[apsw.Connection, None, None]:
        """Lend a connection for one short read."""
        self.check_usable()  # before any lock, which a fork may have left locked for good
        if self._is_shared:
            with self.turn:
                self.check_usable()
                yield self._writer
            return
        connection = self._take()
        try:
            yield connection
        finally:
            self._give_back(connection)

    @property
    def is_foreign(self) -> bool:
        """Whether the connections belong to the process that this one was forked from."""
        return os.getpid() != self._process

    def check_usable(self) -> None:
        """Raise a typed error if the connections are closed or belong to another process."""
        if self._is_closed:
            raise StoreClosedError(f"{self._path}: the memory was closed")
        if self.is_foreign:
            raise StoreError(f"{self._path}: opened before a fork; open it again in this process")

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
        for connection in idle:
            connection.close()
        with self.turn:
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
