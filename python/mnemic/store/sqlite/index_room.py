"""Room on the disk for the log's index, which SQLite maps into memory.

SQLite makes the index longer by writing the last byte of each of its pages of 4 KB. Where the file
system's blocks are smaller, the rest of the page has no room on the disk yet. When the disk is full
by the time something is written there, the system can tell nobody but by ending the process
(SIGBUS). So on such file systems room is taken for the index before it is needed.
"""

import errno
import os

from mnemic._core import allocate, lock_calls
from mnemic.errors import StoreFullError
from mnemic.new_files import typed

_PAGE = 4096
_REGION = 32 * 1024
_PAGES_OF_REGION = 4096
_REGIONS_AHEAD = 8
"""How many of these parts of the index have room; 256 KB, the index of a log of 128 MB."""

_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS})


class IndexRoom:
    """Keeps room for more of a log's index than is used.

    Where closing a descriptor of the index would drop SQLite's locks on it, nothing is done.

    Args:
        path: The file that the log belongs to.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._is_needed = bool(lock_calls()) and _has_small_blocks(path)
        self._regions = 0
        self._missing: OSError | None = None

    def check_before_opening(self) -> None:
        """Raise StoreFullError if not even the smallest index has room."""
        if not self._is_needed:
            return
        status = os.statvfs(os.path.dirname(self._path))  # noqa: PTH120 - pathlib is slow to import
        if status.f_bavail * status.f_frsize < 2 * _REGION:
            raise StoreFullError(f"{self._path}: the disk is full; make room, and open it again")

    def check(self) -> None:
        """Raise StoreFullError if the index of a longer log would have no room."""
        if self._missing is None:
            return
        error = self._taken(self._regions * _PAGES_OF_REGION)
        self._missing = error
        if error is not None:
            raise typed(error, self._path) from error

    def take(self, pages: int) -> None:
        """Take room for the index of a log of so many pages, and for some more."""
        self._missing = self._taken(pages)

    def _taken(self, pages: int) -> OSError | None:
        """Take room if there is too little; return what kept it from that."""
        regions = pages // _PAGES_OF_REGION + 1
        if not self._is_needed or regions + _REGIONS_AHEAD // 2 <= self._regions:
            return None
        regions += _REGIONS_AHEAD
        try:
            _allocate(f"{self._path}-shm", regions * _REGION)
        except OSError as error:
            self._is_needed = error.errno not in _UNSUPPORTED
            return error if self._is_needed else None
        self._regions = regions
        return None


def _allocate(path: str, size: int) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        allocate(descriptor, size)
    finally:
        os.close(descriptor)


def _has_small_blocks(path: str) -> bool:
    try:
        return os.statvfs(os.path.dirname(path)).f_bsize < _PAGE  # noqa: PTH120 - as above
    except (AttributeError, OSError, ValueError):  # no such call, or no such folder
        return False
