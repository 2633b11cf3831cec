"""A consistent copy of a memory while others write to it."""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

from mnemic.errors import StoreFileError, StoreFullError
from mnemic.store.connections import MEMORY_PATH, Connections, typed_errors
from mnemic.store.log_mark import PLACE, LogState, Mark


def backup_to(connections: Connections, target: str) -> None:
    """Copy everything, as of one moment, to a new file of mode 0600, and flush it to the disk.

    Others read and write meanwhile, without waiting; the log grows by what they write, and cannot
    be emptied until the copy is made. The file appears under its name when it is complete.

    Args:
        connections: Those of the memory to be copied.
        target: Where to; nothing may be there, and its directory must exist.

    Raises:
        StoreFileError: If something is there already, or the path cannot be used.
        StoreFullError: If the disk is full or failing; nothing is left of the copy.
    """
    if target == MEMORY_PATH:
        raise StoreFileError(f"{target}: a backup needs a file to go to")
    with _file_errors(target):
        if os.path.lexists(target):
            raise FileExistsError
        part = f"{target}.{os.urandom(4).hex()}.part"
        descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            try:
                _copy(connections, part, target)
                os.pwrite(descriptor, Mark(LogState.ENDED).encoded(), PLACE)
                os.fsync(descriptor)  # SQLite does not, for VACUUM INTO
            finally:
                os.close(descriptor)  # before others can open it: this would drop their locks
            _name(part, target)
        finally:
            for left in (part, f"{part}-journal"):  # SQLite leaves one when the disk is full
                with suppress(FileNotFoundError):
                    os.unlink(left)  # noqa: PTH108 - pathlib is slow to import
        _sync_folder(target)


def _copy(connections: Connections, part: str, target: str) -> None:
    with typed_errors(target), connections.copying() as connection:
        connection.execute("VACUUM INTO ?", (part,))


def _name(part: str, target: str) -> None:
    """Give the copy its name; raise FileExistsError if something has come to lie there."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # this file system has no second names for a file: take the name, replace it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.replace(part, target)  # noqa: PTH105 - pathlib is slow to import


def _sync_folder(target: str) -> None:
    if os.name == "nt":  # a directory cannot be opened there
        return
    folder = os.open(os.path.dirname(os.path.abspath(target)), os.O_RDONLY | os.O_CLOEXEC)  # noqa: PTH100, PTH120 - the same
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def _file_errors(target: str) -> Generator[None, None, None]:
    try:
        yield
    except FileExistsError:
        raise StoreFileError(f"{target}: something is there already; choose another path") from None
    except FileNotFoundError:
        raise StoreFileError(f"{target}: its directory does not exist; create it first") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
            raise StoreFullError(f"{target}: the disk is full or failing ({error})") from error
        raise StoreFileError(f"{target}: it cannot be written ({error.strerror})") from error
    except ValueError as error:
        raise StoreFileError(f"{target!r}: it is not a path in UTF-8 ({error})") from error
