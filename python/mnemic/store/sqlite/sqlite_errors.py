"""SQLite's errors as mnemic's, with the file's name and advice."""

from collections.abc import Generator
from contextlib import contextmanager

import apsw

from mnemic.errors import (
    MnemicError,
    OutOfMemoryError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFileError,
    StoreFullError,
)
from mnemic.store.sqlite.damage import RESTORE

_MESSAGES: tuple[tuple[type[apsw.Error], type[MnemicError], str], ...] = (
    (apsw.NoMemError, OutOfMemoryError, "memory for it cannot be had; nothing was kept of a write"),
    (apsw.BusyError, StoreBusyError, "another process keeps it locked; try again"),
    (apsw.LockedError, StoreBusyError, "another process keeps it locked; try again"),
    (apsw.NotADBError, StoreFileError, "it is not a mnemic file; choose another path"),
    (apsw.CorruptError, StoreCorruptError, f"it is damaged; {RESTORE}"),
    (apsw.FullError, StoreFullError, "the disk is full; nothing of this write was kept"),
    (
        apsw.IOError,
        StoreFullError,
        "the disk is full, over a quota or a limit, or failing; a write that met this was not kept",
    ),
    (apsw.CantOpenError, StoreFileError, "it cannot be opened; look at the path and its rights"),
    (
        apsw.ReadOnlyError,
        StoreFileError,
        (
            "it cannot be written; look at its rights; if another program was killed while it "
            f"wrote, open the file once without read_only; if it is damaged, {RESTORE}"
        ),
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
