"""One connection to a SQLite file: opened safely, checked, and migrated to this version."""

import os
import stat
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import TypeAlias

import apsw

from mnemic.errors import (
    SchemaVersionError,
    StoreFileError,
)
from mnemic.model.results import SchemaVersions
from mnemic.new_files import remove_part
from mnemic.store.errors import PATIENCE
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.file_locks import HeldName, alone, check_place, install_file_locks, opened
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.log_mark import announce_log, check_log
from mnemic.store.sqlite.schema import (
    APPLICATION_ID,
    MIGRATIONS,
    Migration,
    register_functions,
)
from mnemic.store.sqlite.schema_check import check_indexes, check_schema
from mnemic.store.sqlite.sqlite_errors import reading_stored, typed_errors
from mnemic.store.sqlite.wal import remove_log
from mnemic.threads.locks import Lock

MEMORY_PATH = ":memory:"
BUSY_MILLISECONDS = int(PATIENCE * 1000)

Lease: TypeAlias = tuple[GuardedConnection, bool]
"""A connection, and whether it is reused for the next read."""

_creating = Lock()


def open_writer(path: str) -> GuardedConnection:
    """Open a file for writing that `prepare_file` has prepared, or ":memory:".

    Raises:
        StoreError: If the path or its file cannot be used; the file is left unchanged.
    """
    with typed_errors(path):
        connection = connect(path)
        try:
            _check_is_ours(connection, path)
            _configure(connection, path)
            connection.renew()  # a migration may take as much again
            _bring_up_to_date(connection, path)
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
        StoreError: If it cannot be read in its current state.
    """
    with typed_errors(path):
        connection, _ = connect_reading(path)
        try:
            connection.execute("BEGIN")
            version = _version_if_ours(connection, path)
        finally:
            connection.close()
            leave_no_empty_log(path)
    if version < len(MIGRATIONS):
        raise SchemaVersionError(
            f"{path}: its schema version {version} is older than this mnemic's "
            f"({len(MIGRATIONS)}); open it once for writing, "
            "as by Memory(path, embedder=None).close(), which keeps all that it holds"
        )


def connect_reading(path: str) -> Lease:
    """Open a file read-only; return whether later writes of others are visible.

    Even a reader needs the log and its index, and creates them if they are missing. If it may not,
    then the file is open nowhere else at this moment, and it is read as if it never changed: for
    one read this holds, unless a writer both comes and copies its log during it.
    """
    has_log = os.path.exists(f"{path}-wal")  # noqa: PTH110 - pathlib is slow to import
    if has_log or _may_write(path):
        return connect(path, apsw.SQLITE_OPEN_READONLY), True
    from urllib.parse import quote  # noqa: PLC0415 - the same

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    return connect(f"file:{quote(path)}?immutable=1", flags), False


def _may_write(path: str) -> bool:
    folder = os.path.dirname(os.path.abspath(path))  # noqa: PTH100, PTH120 - the same
    return os.access(path, os.W_OK) and os.access(folder, os.W_OK)


def leave_no_empty_log(path: str) -> None:
    """Remove an empty log that a reader left, where that is possible."""
    if _may_write(path):
        remove_log(path, only_if_empty=True)


def prepare_file(path: str, *, read_only: bool = False) -> HeldName:
    """Check a file and its log before SQLite opens them, and hold its name.

    Without `read_only`, a file that does not exist is created, readable by its owner alone.

    Raises:
        StoreFileError: If the path or its file cannot be used.
    """
    if path == MEMORY_PATH:
        raise StoreFileError(f"{path}: a new memory has nothing to read; open it for writing")
    resolved = resolved_path(path)
    try:
        resolved.encode()
        check_place(path, read_only=read_only)
        if not read_only:
            _remove_unfinished(path, resolved)
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
        name = HeldName(resolved)
        try:
            check_log(resolved, read_only=read_only)
        except BaseException:
            name.release()
            raise
    except OSError as error:
        raise StoreFileError(f"{path}: it cannot be opened ({error.strerror})") from error
    return name


def _remove_unfinished(path: str, resolved: str) -> None:
    """Remove what a killed backup left; say so where there is nothing else."""
    folder = os.path.dirname(resolved)  # noqa: PTH120 - pathlib is slow to import
    before = set() if os.path.exists(resolved) else _parts_in(folder)  # noqa: PTH110 - the same
    remove_part(resolved)
    if before and before - _parts_in(folder):
        raise StoreFileError(
            f"{path}: it is an unfinished backup, whose program was killed, and what there was of "
            "it is removed now; make the backup again, or open the path again for a new memory"
        )


def _parts_in(folder: str) -> set[str]:
    try:
        names = os.listdir(folder)  # noqa: PTH208 - the same
    except OSError:  # none such, which is reported next, or not to be read
        return set()
    return {name for name in names if name.startswith(".mnemic-") and name.endswith(".part")}


def _mode_of(path: str) -> int:
    """Return the file's mode; create the file if it does not exist.

    An existing file is not opened: closing it again would drop every lock that this process holds
    on it (POSIX), and with them SQLite's sign that the file is in use.
    """
    with _creating:
        try:
            return os.stat(path).st_mode  # noqa: PTH116 - pathlib is slow to import
        except FileNotFoundError:
            with opened(path, os.O_CREAT | os.O_RDWR) as descriptor:
                return os.fstat(descriptor).st_mode


def connect(path: str, flags: int = apsw.SQLITE_OPEN_READWRITE) -> GuardedConnection:
    """Open a file that exists, with the locks and functions of every connection."""
    install_file_locks()
    # Without the flag that creates: a deleted file is an error, not an empty memory.
    connection = GuardedConnection(path, flags, SQLITE)
    connection.set_busy_timeout(BUSY_MILLISECONDS)
    # Its log is copied into the file by `Checkpoints` alone, never as it closes or commits.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.wal_autocheckpoint(0)
    register_functions(connection)
    return connection


def _check_is_ours(connection: GuardedConnection, path: str) -> None:
    if connection.readonly("main"):
        raise StoreFileError(f"{path}: it cannot be written; look at its rights")
    with connection.one_moment():  # others may be making the tables
        _version_if_ours(connection, path)


def _version_if_ours(connection: GuardedConnection, path: str) -> int:
    """Return the schema version, 0 for an empty file; read it inside a transaction."""
    try:
        with connection.bounded_schema():
            return _bounded_version(connection, path)
    except (apsw.InterruptError, apsw.TooBigError) as error:
        raise StoreFileError(
            f"{path}: its schema is much larger than the one that mnemic makes; do not trust the "
            "file, and restore a backup"
        ) from error


def _bounded_version(connection: GuardedConnection, path: str) -> int:
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


def _bring_up_to_date(connection: GuardedConnection, path: str) -> None:
    if connection.pragma("user_version") == len(MIGRATIONS):
        return
    if path != MEMORY_PATH:
        announce_log(path)
    connection.pragma("foreign_keys", value=False)  # has no effect inside a transaction
    with _committed(connection):
        # Looked at again: another process may have been faster, and may be a newer mnemic.
        _take_steps(connection, path, _version_if_ours(connection, path), len(MIGRATIONS))


def migrate(path: str, version: int | None = None, *, dry_run: bool = False) -> SchemaVersions:
    """Bring a file that is open nowhere to a schema version; see `mnemic.store.migrate`."""
    from mnemic.store.rules import checked_version  # noqa: PLC0415 - rarely needed

    wanted = checked_version(version, len(MIGRATIONS))
    with alone(prepare_file(path, read_only=True), path), typed_errors(path):
        announce_log(path)
        connection = connect(path)
        try:
            connection.pragma("secure_delete", value=True)
            connection.pragma("foreign_keys", value=False)
            with _committed(connection, undo=dry_run):
                found = _version_if_ours(connection, path)
                _take_steps(connection, path, found, wanted)
        finally:
            connection.close()
            remove_log(path)
    return SchemaVersions(found, wanted, len(MIGRATIONS))


@contextmanager
def _committed(connection: GuardedConnection, *, undo: bool = False) -> Generator[None, None, None]:
    """Run statements in a transaction, which ends in a commit unless it is to be undone."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("ROLLBACK" if undo else "COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _take_steps(connection: GuardedConnection, path: str, found: int, wanted: int) -> None:
    """Lead from one schema version to another, up or down."""
    if found == wanted:
        return
    for step in MIGRATIONS[found:wanted]:
        _run(connection, step.up)
    for step in reversed(MIGRATIONS[wanted:found]):
        _check_way_back(connection, path, step)
        _run(connection, step.down)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", wanted)


def _run(connection: GuardedConnection, step: str) -> None:
    with reading_stored("a value of an earlier version"):
        connection.execute(step)


def _check_way_back(connection: GuardedConnection, path: str, step: Migration) -> None:
    found = connection.execute(step.obstacle).get if step.obstacle is not None else None
    if found is not None:
        raise SchemaVersionError(
            f"{path}: it cannot be brought back to an earlier schema version: {found}; export the "
            "memories, or delete those that stand in the way"
        )


def resolved_path(path: str) -> str:
    """Return a path that remains the same file, and beside which SQLite's log lies.

    The process may change its directory while the file is open, and SQLite names the log after the
    file itself, not after a link to it.
    """
    try:
        return path if path == MEMORY_PATH else os.path.realpath(path)
    except ValueError:  # a NUL, or what no encoding has; opening it says so
        return path
