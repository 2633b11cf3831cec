"""Refuses a file that is open under another name, where it would have a second log.

SQLite names the log after the path. Opened by a hard link, or where the one file is mounted, a file
would have a log for each name, and the last one to be copied into it would overwrite what the
others hold. So whoever has a file open holds a shared lock in it, at an offset that stands for the
place of its log: its directory, which has the same numbers in every container, and its name there.
"""

import os
import zlib
from collections.abc import Generator
from contextlib import contextmanager

from mnemic._core import lock_calls
from mnemic.errors import StoreFileError
from mnemic.store.sqlite.file_locks import is_unlocked, try_to_lock

_START = 1 << 60
"""Beyond the bytes that SQLite locks, and beyond the end of any file."""

_LENGTH = 1 << 32

_held: "set[HeldName]" = set()


class HeldName:
    """Holds the name by which this process has a file open; others may hold the same name.

    Args:
        path: The file, which exists, without links.

    Raises:
        StoreFileError: If it is open under another name, here or in another process; or if it has
            several names, and the system's locks cannot tell which are in use.
        OSError: If it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._descriptor: int | None = None
        if not lock_calls():
            if os.stat(path).st_nlink > 1:  # noqa: PTH116 - pathlib is slow to import
                raise _error(path, "it has another name (a hard link)")
            return
        self._descriptor = descriptor = os.open(path, os.O_RDONLY)
        _held.add(self)
        # Locked first: of two that open it at once under two names, at least one sees the other.
        place = _place(path)
        try_to_lock(descriptor, place, 1, shared=True)
        below, above = (_START, place - _START), (place + 1, _START + _LENGTH - place)
        if not (is_unlocked(descriptor, *below) and is_unlocked(descriptor, *above)):
            self.release()
            raise _error(path, "it is open under another name (a hard link, or a mount of it)")

    def hold_alone(self, path: str) -> bool:
        """Refuse the file to others from now on; return False if one has it open.

        True where the system's locks cannot tell.
        """
        if not lock_calls():
            return True
        self.release()
        self._descriptor = os.open(path, os.O_RDWR)
        _held.add(self)
        return try_to_lock(self._descriptor, _START, _LENGTH)

    def release(self) -> None:
        """Let go of the name; repeated calls have no effect."""
        _held.discard(self)
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def alone(name: HeldName, path: str) -> Generator[None, None, None]:
    """Have a file open alone, and let go of its name.

    Raises:
        StoreFileError: If it is open elsewhere.
    """
    try:
        if not name.hold_alone(path):
            raise StoreFileError(
                f"{path}: it is open, here or in another process; close it there first"
            )
        yield
    except OSError as error:
        raise StoreFileError(f"{path}: it cannot be opened ({error.strerror})") from error
    finally:
        name.release()


def _place(path: str) -> int:
    """Return an offset between the ends of the range that stands for where a file's log lies."""
    folder, name = os.path.split(path)
    status = os.stat(folder)  # noqa: PTH116 - pathlib is slow to import
    log = f"{status.st_dev} {status.st_ino} {name}"
    return _START + 1 + zlib.crc32(log.encode()) % (_LENGTH - 1)


def _error(path: str, problem: str) -> StoreFileError:
    return StoreFileError(
        f"{path}: {problem}, and SQLite would keep a log for each name, of which one would be "
        "lost; use one name for it in every program, or close it there first"
    )


def _release_inherited() -> None:
    """Let go of the parent's names: its locks would last as long as a child has the descriptors."""
    for held in list(_held):
        held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_inherited)
