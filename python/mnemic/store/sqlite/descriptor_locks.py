"""Locks of bytes of a file that belong to a descriptor, where the system has them (Linux)."""

import os
import struct
import sys

if sys.platform != "win32":
    import fcntl

_LOCK = struct.Struct("@hhqqi4x")


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
