"""A disk that fails at the n-th call: SQLite's own file layer, with system calls that answer errno.

The calls are replaced below SQLite, so that it is SQLite that decides what an error becomes. Its
table has no call for syncing; that one is failed by a VFS of our own, see `FailingSync`.
"""

import ctypes
from contextlib import contextmanager

import apsw

WRITES = ("open", "pwrite64", "pwrite", "write", "ftruncate", "fallocate", "unlink")
"""Every call by which SQLite changes a file, its size or its name."""

READS = ("pread64", "pread", "read")

_INT, _LONG, _POINTER = ctypes.c_int, ctypes.c_ssize_t, ctypes.c_void_p
_SIGNATURES = {
    "open": (_INT, _POINTER, _INT, _INT),
    "pwrite64": (_LONG, _INT, _POINTER, ctypes.c_size_t, ctypes.c_int64),
    "pwrite": (_LONG, _INT, _POINTER, ctypes.c_size_t, ctypes.c_int64),
    "write": (_LONG, _INT, _POINTER, ctypes.c_size_t),
    "ftruncate": (_INT, _INT, ctypes.c_int64),
    "fallocate": (_INT, _INT, ctypes.c_int64, ctypes.c_int64),
    "unlink": (_INT, _POINTER),
    "pread64": (_LONG, _INT, _POINTER, ctypes.c_size_t, ctypes.c_int64),
    "pread": (_LONG, _INT, _POINTER, ctypes.c_size_t, ctypes.c_int64),
    "read": (_LONG, _INT, _POINTER, ctypes.c_size_t),
}


class FailingCalls:
    """Counts SQLite's system calls, and fails some of them.

    Args:
        names: Which calls are counted.

    Attributes:
        count: How many there were since `fail` was last called.
        failed: The names of those that failed.
    """

    def __init__(self, names):
        self._vfs = apsw.VFS("failing-calls", "unix")
        self._real = {name: self._vfs.xGetSystemCall(name) for name in names}
        self._real = {name: pointer for name, pointer in self._real.items() if pointer}
        self._kept = []
        self.never()

    def fail(self, at, errno, *, lasting=False):
        """Fail the call of this number from now on, counted from 1; if lasting, all after it."""
        self.count, self.failed = 0, []
        self._at, self._errno, self._lasting = at, errno, lasting

    def never(self):
        self.fail(0, 0)

    def __enter__(self):
        for name, pointer in self._real.items():
            made = ctypes.CFUNCTYPE(*_SIGNATURES[name], use_errno=True)
            replaced = made(self._wrapped(name, made(pointer)))
            self._kept.append(replaced)
            self._vfs.xSetSystemCall(name, ctypes.cast(replaced, _POINTER).value)
        return self

    def __exit__(self, *_):
        for name, pointer in self._real.items():
            self._vfs.xSetSystemCall(name, pointer)
        self._vfs.unregister()

    def _wrapped(self, name, real):
        def call(*arguments):
            self.count += 1
            if self._at and (self.count == self._at or (self._lasting and self.count > self._at)):
                self.failed.append(name)
                ctypes.set_errno(self._errno)
                return -1
            return real(*arguments)

        return call


class FailingSync(apsw.VFS):
    """The default VFS while it is used; the n-th sync fails.

    An error that a VFS written in Python raises reaches the caller even where SQLite would pass
    over it, which is so for checkpoints after a commit and while closing. So this one counts the
    syncs of commits only: those of a file that was written to since it was last synced, other
    than the database itself.
    """

    def __init__(self):
        self.never()
        super().__init__("failing-sync", "unix", makedefault=True)

    def fail(self, at):
        self.count, self.failed, self._at = 0, [], at

    def never(self):
        self.fail(0)

    def xOpen(self, name, flags):  # noqa: N802 - SQLite's name
        return _FailingFile(self, name, flags)

    def sync(self):
        self.count += 1
        if self.count == self._at:
            self.failed.append("sync")
            error = apsw.IOError("disk I/O error")
            error.extendedresult = apsw.SQLITE_IOERR_FSYNC
            raise error


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        self._disk = disk
        self._counts = not flags[0] & apsw.SQLITE_OPEN_MAIN_DB
        self._is_written = False
        super().__init__("unix", name, flags)

    def xWrite(self, data, offset):  # noqa: N802
        self._is_written = True
        super().xWrite(data, offset)

    def xSync(self, flags):  # noqa: N802
        if self._counts and self._is_written:
            self._disk.sync()
            self._is_written = False
        super().xSync(flags)


@contextmanager
def failing_sync():
    """Lend a `FailingSync`, which stays the default VFS until the end of the block."""
    vfs = FailingSync()
    try:
        yield vfs
    finally:
        vfs.unregister()
