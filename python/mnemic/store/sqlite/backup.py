"""A consistent copy of a memory while others write to it."""

import os

from mnemic.errors import StoreFileError
from mnemic.new_files import file_errors, new_part
from mnemic.store.sqlite.connections import Connections
from mnemic.store.sqlite.log_mark import MARK_OFFSET, LogState, Mark
from mnemic.store.sqlite.opening import MEMORY_PATH
from mnemic.store.sqlite.sqlite_errors import typed_errors


def backup_to(connections: Connections, target: str) -> None:
    """Copy everything, as of one moment, to a new file of mode 0600, and flush it to the disk.

    Other connections read and write meanwhile without waiting; the log grows by their writes and
    cannot be emptied before the copy is complete. The file appears under its name when it is
    complete.

    Args:
        connections: Connections of the memory to copy.
        target: Path of the copy; it must not exist, and its directory must.

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
            _copy(connections, part, target)
            with file_errors(target):
                os.lseek(descriptor, MARK_OFFSET, os.SEEK_SET)
                os.write(descriptor, Mark(LogState.ENDED).encoded())
    except FileExistsError:
        raise _exists(target) from None


def _check_path(target: str) -> None:
    try:
        target.encode()
        if os.path.lexists(target):
            raise _exists(target)
    except ValueError as error:
        raise StoreFileError(f"{target!r}: it is not a path in UTF-8 ({error})") from error


def _exists(target: str) -> StoreFileError:
    return StoreFileError(f"{target}: something is there already; choose another path")


def _copy(connections: Connections, part: str, target: str) -> None:
    with typed_errors(target), connections.copying() as connection:
        connection.execute("VACUUM INTO ?", (part,))
