"""The locks of an open file, and what else guards it: its name, forks, its place.

SQLite locks files with POSIX locks. They belong to the process, so two copies of SQLite in one
process, such as this one and Python's own `sqlite3`, do not see each other's locks; and as soon as
any code in the process closes a descriptor of a file, all of the process's locks on it are gone
(SQLite, "How To Corrupt An SQLite Database File", section 2.2). The other copy then deletes the log
while it is in use, and acknowledged writes are lost with it. On Linux SQLite's system calls are
replaced, so that its locks belong to their own descriptors (`F_OFD_SETLK`) and no other code in the
process can override or drop them. Elsewhere they stay POSIX locks, and a deleted log is detected at
the next commit. mnemic's own locks of bytes of a file are of the same kind.

SQLite names the log after the path. Opened by a hard link, or where the one file is mounted, a file
would have a log for each name, and the last one to be copied into it would overwrite what the
others hold. So whoever has a file open holds a shared lock in it, at an offset that stands for the
place of its log: its directory, which has the same numbers in every container, and its name there.

SQLite keeps one record per file of the locks that the process holds, found by device and inode. A
fork copies the records but not the locks (POSIX), so a connection opened on such a file believes
that it holds locks. The parent, apparently the last to close the file, then deletes the log, and
with it the child's writes. So files that were open at a fork are refused in the child.

All processes share the log's index as memory by mapping one file, so they must share one kernel
(SQLite, "Write-Ahead Logging", section 1). If the file lies on another machine, or on the host of a
virtual machine, each side has its own copy, and the file is damaged sooner or later.
"""

# pyright: reportPossiblyUnboundVariable=false

import os
import struct
import sys
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress
from copy import copy
from typing import Self, TypeAlias

import apsw

from mnemic._core import file_id, lock_calls
from mnemic.errors import StoreError, StoreFileError, StoreReplacedError
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
    vfs = apsw.VFS("mnemic-calls", "unix")  # any one will do: all of them share the table
    try:
        for name, address in calls:
            vfs.xSetSystemCall(name, address)
    finally:
        vfs.unregister()


@contextmanager
def opened(path: str, flags: int, folder: int | None = None) -> Generator[int, None, None]:
    """Open a file, readable by its owner alone if it is made, in a folder if one is given."""
    descriptor = os.open(path, flags, 0o600, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


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


_START = 1 << 60
"""Beyond the bytes that SQLite locks, and beyond the end of any file."""

_LENGTH = 1 << 32

_File: TypeAlias = tuple[int, int]
"""Device and inode."""

_held: "set[HeldName]" = set()
_inherited: set[_File] = set()


class HeldName:
    """Holds the name by which this process has a file open; others may hold the same name.

    Args:
        path: The file, which exists, without links.

    Attributes:
        file: Device and inode of the file.

    Raises:
        StoreFileError: If it is open under another name, here or in another process; or if it has
            several names, and the system's locks cannot tell which are in use.
        OSError: If it cannot be read.
    """

    def __init__(self, path: str) -> None:
        status = os.stat(path)  # noqa: PTH116 - pathlib is slow to import
        self.file: _File = status.st_dev, status.st_ino
        self._descriptor: int | None = None
        if not lock_calls():
            if status.st_nlink > 1:
                raise _error(path, "it has another name (a hard link)")
            _held.add(self)
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


def check_not_inherited(path: str) -> None:
    """Raise a typed error if the file was open when this process was forked."""
    try:
        status = os.stat(path)  # noqa: PTH116 - pathlib is slow to import
    except (OSError, ValueError):  # none such, or ":memory:"
        return
    if (status.st_dev, status.st_ino) in _inherited:
        raise inherited(path)


def inherited(path: str) -> StoreError:
    """Return the error for a file, and for a memory, that was open before a fork."""
    return StoreError(
        f"{path}: it was open when this process was forked, and cannot be used here; close it "
        "before a fork and open it afterwards in each process, or start processes with 'spawn'"
    )


def _leave_to_parent() -> None:
    """Let go of the parent's names: its locks would last as long as a child has the descriptors."""
    for held in list(_held):
        _inherited.add(held.file)
        held.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


class SameFiles:
    """Compares an open database and its log with the files that now have their names.

    SQLite keeps using the files that it opened, whatever their names refer to by now, but finds the
    log by its name: it would copy the log into another file, or delete another file's log.

    Args:
        path: The file; it and its log are open.
        is_log_used: Whether the file has a log.
    """

    def __init__(self, path: str, *, is_log_used: bool = True) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._file_is = file_id(path)
        self._log_is = file_id(self._log) if is_log_used else None

    def without_log(self) -> Self:
        """Return a copy that compares the database alone, for when it may not be open any more."""
        one = copy(self)
        one._log_is = None  # noqa: SLF001 - of the same class
        return one

    def check(self) -> None:
        """Raise StoreReplacedError if the database or its log is another file by now."""
        self.check_file()
        if self._log_is is not None and file_id(self._log) != self._log_is:
            raise self._error(self._log)

    def check_file(self) -> None:
        """Raise StoreReplacedError if the database is another file by now."""
        if file_id(self._path) != self._file_is:
            raise self._error(self._path)

    def are_same(self) -> bool:
        """Return whether database and log are still the files that were opened."""
        try:
            self.check()
        except StoreReplacedError:
            return False
        return True

    def _error(self, path: str) -> StoreReplacedError:
        return StoreReplacedError(
            f"{path}: it was moved, deleted or replaced while it was open, and nothing more is "
            f"written. Close this memory; put the file back together with its log, whose name ends "
            f"in -wal, or open what is there now"
        )


# The third to the fifth line: how a host shows its folders, such as Windows its drives in WSL and
# Docker Desktop those of a Mac (fakeowner since version 4.15).
_NAMES = """
nfs nfs4 cifs smb2 smb3 smbfs ncpfs afs auristorfs coda
ceph lustre gpfs beegfs fhgfs glusterfs orangefs pvfs2 gfs2 ocfs2 wekafs panfs acfs cvfs
9p virtiofs fakeowner grpcfuse osxfs drvfs vboxsf prl_fs vmhgfs hostfs
fuse.virtiofs fuse.virtiofsd fuse.fakeowner fuse.grpcfuse fuse.osxfs fuse.drvfs fuse.vboxsf
fuse.vmhgfs-fuse fuse.prl_fsd
fuse.sshfs fuse.smbnetfs fuse.gvfsd-fuse fuse.kio-fuse fuse.curlftpfs fuse.davfs fuse.davfs2
fuse.rclone fuse.glusterfs fuse.ceph fuse.ceph-fuse fuse.mfs fuse.moosefs fuse.juicefs
fuse.seaweedfs fuse.cubefs fuse.curvefs fuse.quobyte fuse.dfuse fuse.alluxio-fuse fuse.hdfs
fuse.s3fs fuse.goofys fuse.mount-s3 fuse.gcsfuse fuse.blobfuse fuse.blobfuse2 fuse.ossfs
"""
_SHARED = frozenset(_NAMES.split())
_ESCAPES = {ord(each): f"\\{ord(each):03o}" for each in " \t\n\\"}


def shared_type(mountinfo: str, device: int) -> str | None:
    """Return the type of a device's file system if several machines share it, else None.

    Args:
        mountinfo: The text of `/proc/self/mountinfo`.
        device: `st_dev` of a file on it. A device has one type, wherever it is mounted; an unlisted
            device, such as a subvolume, counts as not shared.
    """
    numbers = f" {os.major(device)}:{os.minor(device)} "
    start = mountinfo.find(numbers)
    if start < 0:
        return None
    line = mountinfo[start : mountinfo.find("\n", start)]
    # Six fields, any number of optional ones, a hyphen, and then the type; spaces are escaped.
    kind = line.partition(" - ")[2].split(" ", 1)[0]
    return kind if kind in _SHARED else None


def is_mount(mountinfo: str, path: str) -> bool:
    """Return whether something is mounted at a path, which is absolute and has no links."""
    escaped = path.translate(_ESCAPES)
    return any(line.split(" ", 5)[4:5] == [escaped] for line in mountinfo.splitlines())


def check_place(path: str, *, read_only: bool = False) -> None:
    """Refuse a file where its log would be lost or would damage it; only Linux is checked.

    Args:
        path: The file, which need not exist; its directory must.
        read_only: Whether nothing will be written.

    Raises:
        StoreFileError: If its file system, or that of its directory, is shared between machines;
            or if the file itself is mounted there, and would be written.
    """
    try:
        # The log lies beside the file itself, wherever links lead to it.
        file = os.path.realpath(path)
        devices = {os.stat(os.path.dirname(file)).st_dev}  # noqa: PTH116, PTH120 - pathlib is slow to import
        with suppress(FileNotFoundError):
            devices.add(os.stat(file).st_dev)  # noqa: PTH116 - the same
        with open("/proc/self/mountinfo", "rb", buffering=0) as opened:  # noqa: PTH123 - the same
            mountinfo = opened.read().decode(errors="surrogateescape")
    except OSError:
        return
    for device in devices:
        kind = shared_type(mountinfo, device)
        if kind is not None:
            raise StoreFileError(
                f"{path}: it lies on a file system shared between machines ({kind}), where "
                "SQLite's write-ahead log would damage it; choose a path on a local disk"
            )
    if not read_only and is_mount(mountinfo, file):
        raise StoreFileError(
            f"{path}: this one file is mounted here, and its log would not lie beside it where it "
            "comes from; mount the directory that it is in (docker run -v ./data:/data), or open "
            "it with read_only=True"
        )
