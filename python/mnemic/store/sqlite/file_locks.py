"""Protects SQLite's file locks from other code in the process.

SQLite locks files with POSIX locks. They belong to the process, so two copies of SQLite in one
process, such as this one and Python's own `sqlite3`, do not see each other's locks; and as soon as
any code in the process closes a descriptor of a file, all of the process's locks on it are gone
(SQLite, "How To Corrupt An SQLite Database File", section 2.2). The other copy then deletes the log
while it is in use, and acknowledged writes are lost with it.

On Linux this module replaces SQLite's system calls, so that its locks belong to their own
descriptors (`F_OFD_SETLK`) and no other code in the process can override or drop them. Elsewhere
they stay POSIX locks, and a deleted log is detected at the next commit. mnemic's own locks of bytes
of a file are of the same kind.
"""

# pyright: reportPossiblyUnboundVariable=false

import os
import struct
import sys

import apsw

from mnemic._core import after_fork_in_child, after_fork_in_parent, before_fork, lock_calls
from mnemic.threads.locks import Lock

if sys.platform != "win32":
    import fcntl  # now: later a process may have given up the right to read modules

_LOCK = struct.Struct("@hhqqi4x")

_replacing = Lock()
_is_done = False


def install_file_locks() -> None:
    """Replace SQLite's system calls for locks, once in a process.

    The replacement holds for every file that apsw opens from now on, also in other packages.
    """
    global _is_done  # noqa: PLW0603 - SQLite's table of system calls is the process's too
    if _is_done:
        return
    with _replacing:
        if not _is_done:
            _replace(lock_calls())
            _is_done = True


def _replace(calls: list[tuple[str, int]]) -> None:
    if not calls:
        return
    os.register_at_fork(
        before=before_fork,
        after_in_parent=after_fork_in_parent,
        after_in_child=after_fork_in_child,
    )
    vfs = apsw.VFS("mnemic-calls", "unix")  # any one will do: all of them share the table
    try:
        for name, address in calls:
            vfs.xSetSystemCall(name, address)
    finally:
        vfs.unregister()


def try_to_lock(descriptor: int, start: int, length: int, *, shared: bool = False) -> bool:
    """Lock bytes until the descriptor is closed; return whether nobody else's lock prevents it."""
    kind = fcntl.F_RDLCK if shared else fcntl.F_WRLCK
    lock = _LOCK.pack(kind, os.SEEK_SET, start, length, 0)
    try:
        fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, lock)
    except OSError:
        return False
    return True


def is_unlocked(descriptor: int, start: int, length: int) -> bool:
    """Return whether no other descriptor, here or in another process, has a lock on bytes."""
    lock = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, start, length, 0)
    found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, lock)
    return bool(_LOCK.unpack(found)[0] == fcntl.F_UNLCK)
