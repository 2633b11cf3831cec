"""SQLite's file locks, kept safe from other code of the process.

SQLite locks files with POSIX locks. They belong to the process, so two copies of SQLite in one
process, such as ours and that of Python's own `sqlite3`, do not see each other's locks; and as soon
as anything in the process closes a descriptor of a file, all of the process's locks on it are gone
(SQLite, "How To Corrupt An SQLite Database File", section 2.2). The other copy then takes the log
away while it is in use, and acknowledged writes are lost with it.

On Linux SQLite's calls are replaced here, so that its locks belong to descriptors of their own
(`F_OFD_SETLK`) and nobody else in the process can pass over or drop them. Elsewhere they stay
POSIX locks, and a log that was taken away is noticed at the next commit.
"""

import os
import threading

import apsw

from mnemic._core import after_fork_in_child, after_fork_in_parent, before_fork, lock_calls

_replacing = threading.Lock()
_is_done = False


def install_file_locks() -> None:
    """Replace SQLite's system calls for locks, once in a process.

    They are replaced for every file that apsw opens from now on, also those of other packages.
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
