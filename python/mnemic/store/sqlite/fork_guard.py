"""Refuses files that were open when this process was forked: SQLite cannot open them again here.

SQLite keeps one record per file of the locks that the process holds, found by device and inode. A
fork copies the records but not the locks (POSIX), so a connection opened on such a file believes
that it holds locks. The parent, apparently the last to close the file, then deletes the log, and
with it the child's writes.
"""

import itertools
import os

from mnemic.errors import StoreError

_File = tuple[int, int]

_numbers = itertools.count()
_open: dict[int, _File] = {}
_inherited: set[_File] = set()


def check_not_inherited(path: str) -> None:
    """Raise a typed error if the file was open when this process was forked."""
    if _inherited and _file(path) in _inherited:
        raise inherited(path)


def inherited(path: str) -> StoreError:
    """Return the error for a file, and for a memory, that was open before a fork."""
    return StoreError(
        f"{path}: it was open when this process was forked, and cannot be used here; close it "
        "before a fork and open it afterwards in each process, or start processes with 'spawn'"
    )


def register_open(path: str) -> int:
    """Record that this process has opened a file; return a number for `register_closed`."""
    number, file = next(_numbers), _file(path)
    if file is not None:
        _open[number] = file
    return number


def register_closed(number: int) -> None:
    """Record that this process has released the file registered under this number."""
    _open.pop(number, None)


def _file(path: str) -> _File | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - pathlib is slow to import
    except (OSError, ValueError):  # none such, or ":memory:"
        return None
    return status.st_dev, status.st_ino


def _inherit() -> None:
    _inherited.update(_open.values())
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_inherit)
