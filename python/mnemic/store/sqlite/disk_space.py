"""Keeps disk space for deletions, so that a full disk can be emptied.

A deletion writes pages to the log, and room for them comes from emptying the log, whose pages then
need their places in the file. So a transaction that makes the file longer succeeds only if there is
disk space for the whole file, and for a log in which a deletion fits.
"""

import errno
import os
from contextlib import suppress

from mnemic._core import allocate, lock_calls
from mnemic.errors import StoreFullError

LOG_BYTES = 1024 * 1024
"""Bytes kept for the log. A deletion of one memory writes some 80 KB and its length, and one that
also drops old changes some 500 KB."""

_STEP = 64 * 1024
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class DiskSpace:
    """Reserves disk space for a file and its log, where a system can (Linux).

    Args:
        path: The database file, which is open.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_supported = bool(lock_calls())  # else a closed descriptor drops SQLite's locks
        self._reserved = 0

    def reserve(self, size: int) -> None:
        """Reserve space for a file of a number of bytes, and for its log.

        Raises:
            StoreFullError: If there is too little.
        """
        if size <= self._reserved or not self._is_supported:
            return
        wanted = -(-size // _STEP) * _STEP
        try:
            allocate_file(self._path, wanted)
            allocate_file(f"{self._path}-wal", LOG_BYTES)
        except OSError as error:
            if error.errno in _FULL:
                raise StoreFullError(
                    f"{self._path}: the disk is full ({error.strerror}); nothing of this write was "
                    "kept, and permanent deletions make room"
                ) from error
            self._is_supported = False
            return
        self._reserved = wanted

    def renew(self) -> None:
        """Reserve space for the log again, if there is any: it was emptied."""
        self._reserved = 0
        if self._is_supported:
            with suppress(OSError):
                allocate_file(f"{self._path}-wal", LOG_BYTES)


def allocate_file(path: str, size: int) -> None:
    """Allocate disk space for the first bytes of a file, which keeps its length."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        allocate(descriptor, size)
    finally:
        os.close(descriptor)
