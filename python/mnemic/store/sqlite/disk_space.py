"""Reserves disk space: for deletions, so that a full disk can be emptied, and for the log's index.

A deletion writes pages to the log, and room for them comes from emptying the log, whose pages then
need their places in the file. So a transaction that makes the file longer succeeds only if there is
disk space for the whole file, and for a log in which a deletion fits.

SQLite maps the log's index into memory, and extends it by writing the last byte of each of its
pages of 4 KB. Where the file system's blocks are smaller, the rest of the page has no disk space
yet. If the disk is full when the page is written, the system can only terminate the process
(SIGBUS). So on such file systems space for the index is reserved before it is needed.
"""

import errno
import os
from contextlib import suppress

from mnemic._core import allocate, lock_calls
from mnemic.errors import StoreFullError
from mnemic.new_files import typed
from mnemic.store.sqlite.file_locks import opened

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
    with opened(path, os.O_RDWR) as descriptor:
        allocate(descriptor, size)


_PAGE = 4096
_REGION = 32 * 1024
_PAGES_OF_REGION = 4096
_REGIONS_AHEAD = 8
"""Regions of the index reserved ahead; 256 KB, the index of a log of 128 MB."""

_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS})


class LogIndexSpace:
    """Reserves space for more of a log's index than is used.

    Nothing is reserved where closing a descriptor of the index would drop SQLite's locks on it.

    Args:
        path: The database file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_needed = bool(lock_calls()) and _has_small_blocks(path)
        self._regions = 0
        self._missing: OSError | None = None

    def check_before_opening(self) -> None:
        """Raise StoreFullError if there is no space for the smallest index."""
        if not self._is_needed:
            return
        status = os.statvfs(os.path.dirname(self._path))  # noqa: PTH120 - pathlib is slow to import
        if status.f_bavail * status.f_frsize < 2 * _REGION:
            raise StoreFullError(f"{self._path}: the disk is full; make space, and open it again")

    def check(self) -> None:
        """Raise StoreFullError if there is no space for the index of a longer log."""
        if self._missing is None:
            return
        error = self._taken(self._regions * _PAGES_OF_REGION)
        self._missing = error
        if error is not None:
            raise typed(error, self._path) from error

    def take(self, pages: int) -> None:
        """Reserve space for the index of a log of so many pages, and some more."""
        self._missing = self._taken(pages)

    def _taken(self, pages: int) -> OSError | None:
        """Reserve space if there is too little; return the error that prevented it."""
        regions = pages // _PAGES_OF_REGION + 1
        if not self._is_needed or regions + _REGIONS_AHEAD // 2 <= self._regions:
            return None
        regions += _REGIONS_AHEAD
        try:
            allocate_file(f"{self._path}-shm", regions * _REGION)
        except OSError as error:
            self._is_needed = error.errno not in _UNSUPPORTED
            return error if self._is_needed else None
        self._regions = regions
        return None


def _has_small_blocks(path: str) -> bool:
    try:
        return os.statvfs(os.path.dirname(path)).f_bsize < _PAGE  # noqa: PTH120 - as above
    except (AttributeError, OSError, ValueError):  # no such call, or no such folder
        return False
