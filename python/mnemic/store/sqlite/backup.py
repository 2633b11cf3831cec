"""A consistent copy of a memory while others write to it."""

import os

import apsw

from mnemic.errors import StoreFileError
from mnemic.new_files import file_errors, new_part
from mnemic.reporting.progress import Report, silent
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.log_mark import LogState, Mark, put_mark
from mnemic.store.sqlite.opening import MEMORY_PATH
from mnemic.store.sqlite.sqlite_errors import typed_errors

STEPS_PER_REPORT = 2_000
"""Steps of SQLite between two reports: some two hundred rows."""


def backup_to(connections: Connections, target: str, report: Report = silent) -> None:
    """Copy everything, as of one moment, to a new file of mode 0600, and flush it to the disk.

    Other connections read and write meanwhile without waiting; the log grows by their writes and
    cannot be emptied before the copy is complete. The file appears under its name when it is
    complete.

    Args:
        connections: Connections of the memory to copy.
        target: Path of the copy; it must not exist, and its directory must.
        report: Called periodically with the bytes written so far and their expected number.

    Raises:
        StoreFileError: If the path exists or cannot be used.
        StoreFullError: If the disk is full or failing; nothing is left of the copy.
        StoreBusyError: If another process makes a backup to this path at the same time.
    """
    if target == MEMORY_PATH:
        raise StoreFileError(f"{target}: a backup needs a file to go to")
    _check_path(target)
    try:
        with new_part(target) as (descriptor, part):
            _copy(connections, part, target, report)
            with file_errors(target):
                put_mark(descriptor, Mark(LogState.ENDED))
    except FileExistsError:
        raise _exists(target) from None


def _check_path(target: str) -> None:
    try:
        os.path.realpath(target).encode()
        if os.path.lexists(target):
            raise _exists(target)
    except ValueError as error:
        raise StoreFileError(f"{target!r}: it is not a path in UTF-8 ({error})") from error


def _exists(target: str) -> StoreFileError:
    return StoreFileError(f"{target}: something is there already; choose another path")


def _copy(connections: Connections, part: str, target: str, report: Report) -> None:
    with typed_errors(target), connections.copying() as connection:
        if report is silent:
            connection.execute("VACUUM INTO ?", (part,))
            return
        size = _size(connection)

        def look() -> bool:
            report(min(os.stat(part).st_size, size), size)  # noqa: PTH116 - pathlib is slow to import
            return False

        connection.set_progress_handler(look, STEPS_PER_REPORT, id=_copy)
        try:
            connection.execute("VACUUM INTO ?", (part,))
        finally:
            connection.set_progress_handler(None, id=_copy)
        report(size, size)


def _size(connection: apsw.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = (
        int(connection.pragma(name)) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size
