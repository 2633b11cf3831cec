"""The folder beside a file that holds snapshots of its indexes.

Snapshots hold what entries say, so erasing removes all of them. Whoever writes one holds a lock
meanwhile. If erasing gives up waiting for it, or cannot remove a file, it leaves a request in the
folder, the empty file `erase`. Whoever holds the lock then removes everything before it releases
it; and so does every later commit of the process that erased, whoever closes the file, and whoever
opens it for writing, also after a crash.
"""

# pyright: reportPossiblyUnboundVariable=false

import os
import sys
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

from mnemic.errors import StoreBusyError
from mnemic.new_files import file_errors
from mnemic.store.sqlite.file_locks import opened

if sys.platform != "win32":
    import fcntl

ERASE_SECONDS = 5.0
"""Seconds that erasing waits for whoever writes a snapshot."""

RETRY_SECONDS = 1.0
"""Seconds after a failed removal until a commit repeats it."""

_LOCK = "lock"
_REQUEST = "erase"
_POLL = 0.01
_NEW = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)


class SnapshotFolder:
    """Locks and empties the folder of a file; other processes do so too.

    Args:
        path: The file itself, not a link to it.

    Attributes:
        path: The folder, which need not exist.
    """

    def __init__(self, path: str) -> None:
        self.path = f"{path}-index"
        self._is_owed = False
        self._next_try = 0.0

    @contextmanager
    def locked(self, wait: float) -> Generator[None, None, None]:
        """Make the folder and lock it; remove what an erasure has requested, before and after.

        Args:
            wait: Maximum seconds to wait for the lock.

        Raises:
            StoreBusyError: If another thread or process has it for longer.
            StoreError: If the folder cannot be made, or its file system has no locks.
        """
        with ExitStack() as stack:
            with file_errors(self.path):
                with suppress(FileExistsError):
                    os.mkdir(self.path, 0o700)  # noqa: PTH102 - pathlib is slow to import
                folder = stack.enter_context(opened(self.path, _FOLDER))
                lock = stack.enter_context(opened(_LOCK, _NEW, folder))
                is_locked = _wait_for_lock(lock, wait)
            if not is_locked:
                raise StoreBusyError(f"{self.path}: a snapshot is being written; try again")
            stack.callback(_unlock, lock)
            stack.callback(_fulfil_request, folder)
            _fulfil_request(folder)
            yield

    def clear(self, wait: float = ERASE_SECONDS) -> bool:
        """Remove all files, also those that a killed process left; return whether none is left.

        Args:
            wait: Maximum seconds to wait for whoever writes a snapshot.
        """
        try:
            with opened(self.path, _FOLDER) as folder:
                is_cleared = _cleared(folder, wait)
        except FileNotFoundError:
            is_cleared = True
        except OSError:
            is_cleared = False
        self._is_owed = not is_cleared
        self._next_try = time.monotonic() + RETRY_SECONDS
        return is_cleared

    def repeat(self) -> None:
        """Repeat a removal of this process that failed, after a while and without waiting."""
        if self._is_owed and time.monotonic() >= self._next_try:
            self.clear(0.0)

    def clear_if_requested(self) -> None:
        """Remove all files if this or another process could not, without waiting."""
        if os.path.lexists(f"{self.path}/{_REQUEST}"):
            self.clear(0.0)


def _cleared(folder: int, wait: float) -> bool:
    with opened(_LOCK, _NEW, folder) as lock:
        try:
            is_locked = _wait_for_lock(lock, 0.0)
            if not is_locked:
                _request(folder)  # before the wait, so that it is not overlooked
                is_locked = _wait_for_lock(lock, wait)
        except OSError:  # no locks here, so no process writes a snapshot
            return _emptied(folder)
        try:
            return is_locked and _emptied(folder)
        finally:
            if is_locked:
                _unlock(lock)


def _fulfil_request(folder: int) -> None:
    with suppress(OSError):
        if _REQUEST in os.listdir(folder):
            _emptied(folder)


def _emptied(folder: int) -> bool:
    """Remove all files but the lock, and put that on disk; return whether none is left."""
    names = _files_in(folder)
    for name in names:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
    if names and _files_in(folder):
        _request(folder)
        return False
    with suppress(FileNotFoundError):
        os.unlink(_REQUEST, dir_fd=folder)
    if names:
        os.fsync(folder)
    return True


def _files_in(folder: int) -> list[str]:
    with os.scandir(folder) as found:
        return [
            entry.name
            for entry in found
            if entry.name not in {_LOCK, _REQUEST} and not entry.is_dir(follow_symlinks=False)
        ]


def _request(folder: int) -> None:
    with suppress(OSError):  # a full disk: then this process alone repeats the removal
        os.close(os.open(_REQUEST, _NEW, 0o600, dir_fd=folder))


def _wait_for_lock(lock: int, wait: float) -> bool:
    end = time.monotonic() + wait
    while not _try_to_lock(lock):
        if time.monotonic() >= end:
            return False
        time.sleep(_POLL)
    return True


def _try_to_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _unlock(lock: int) -> None:
    fcntl.flock(lock, fcntl.LOCK_UN)  # closing is not enough: a forked process may have it open
