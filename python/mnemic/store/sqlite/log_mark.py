"""A mark in a file's header that names the log belonging to it; the log's own damage.

SQLite finds a log by its name alone. A backup copied over a file whose log is still there would be
opened with a log of another time, and pages of both would be mixed; a file copied without its log
would open without its last writes. So the file's header identifies the log that the file was last
used with, by the log's salts, which SQLite chooses when it begins a log; and it records that there
is no log, once the last connection has copied the log into the file.

The salts are known only when the first transaction of a log has been committed. So before that
transaction the mark records that a log is about to begin, and any log or none is accepted; and it
names the log before the transaction is acknowledged. A file without a mark, from before there were
marks, opens with any log.

The salts of a log follow those of the log before it, except where the log was truncated: then a
connection that has not yet begun a log itself chooses new ones. So a connection that truncates a
log first removes its name from the mark, while SQLite's lock excludes other writers.

The mark lies in the bytes 72 to 91 of SQLite's header, which SQLite reserves and does not read.
Those bytes of the file are locked while the mark is changed.

Another program, such as SQLite's own shell, knows no marks. If it looks at a file after a crash, it
copies the log into it and deletes the log: the file is complete, and needs none. So each
transaction writes the file's first page to the log (`FIRST_PAGE`). SQLite raises a counter in each
copy of that page, and the mark's checksum covers the counter: once another program has copied the
page into the file, the mark that is there fits it no longer, and counts as none.
"""

import enum
import os
import struct
import time
import zlib
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple, Self

from mnemic._core import lock_calls, lost_in_log
from mnemic.errors import StoreFileError
from mnemic.reporting.logs import logger
from mnemic.store.sqlite.file_locks import is_unlocked, opened, try_to_lock
from mnemic.store.sqlite.schema import APPLICATION_ID

MARK_OFFSET = 72
"""Offset of the mark in the file."""

MARK_SIZE = 20

COUNTER = slice(24, 28)
"""Bytes of the file that hold SQLite's change counter."""

FIRST_PAGE = f"PRAGMA application_id = {APPLICATION_ID}"
"""Writes the first page, as it is, in the transaction that it is part of."""

SALTS = range(16, 24)
"""Bytes of the salts in a log."""

_MARK = struct.Struct(">4sI8sI")
_MAGIC = b"mnem"
_LOG_HEADER = struct.Struct(">8I")
_LOG_NUMBERS = (0x377F0682, 0x377F0683)
_FIRST_FRAME = 32 + 24
_SHARED_BYTES = (0x40000002, 510)
_INDEX_IN_USE = (128, 1)  # of the log's index; everybody locks it who uses the log
_MARK_BYTES = (MARK_OFFSET, MARK_SIZE)
_MAX_TRIES = 200
_MAX_SALT_STEPS = (
    1 << 16
)  # logs; another file's log passes for one of these with probability 2**-16
_WAIT = 0.005
_MAX_CHECKED_BYTES = 256 * 1024 * 1024

_log = logger(__name__)


class LogState(enum.IntEnum):
    """The log that a file needs: none, the log with the salts of its mark, or any."""

    ENDED = 0
    USED = 1
    BEGINNING = 2


_STATES = frozenset(LogState)


class Mark(NamedTuple):
    """The mark of a file."""

    state: LogState
    salts: bytes = bytes(8)

    def encoded(self, counter: bytes) -> bytes:
        """Return the mark in its stored form, for a file with this change counter."""
        fields = _MARK.pack(_MAGIC, self.state, self.salts, 0)[:-4]
        return fields + zlib.crc32(fields + counter).to_bytes(4, "big")

    @classmethod
    def decoded(cls, stored: bytes, counter: bytes) -> Self | None:
        """Return a stored mark; None if it is not a mark of a file with this change counter."""
        if len(stored) != MARK_SIZE:
            return None
        name, state, salts, checksum = _MARK.unpack(stored)
        is_whole = checksum == zlib.crc32(stored[:-4] + counter)
        if name != _MAGIC or not is_whole or state not in _STATES:
            return None
        return cls(LogState(state), salts)

    @classmethod
    def of_page(cls, page: bytes) -> Self | None:
        """Return the mark in the beginning of a file; None if there is none that fits."""
        return cls.decoded(page[MARK_OFFSET : MARK_OFFSET + MARK_SIZE], page[COUNTER])


def read_mark(path: str) -> Mark | None:
    """Return the mark of a file; None if it has none."""
    with opened(path, os.O_RDONLY) as file:
        return Mark.of_page(os.read(file, MARK_OFFSET + MARK_SIZE))


def needs_log(path: str) -> bool:
    """Return whether a file is incomplete without the log that its mark names."""
    if not lock_calls():
        return False
    mark = read_mark(path)
    return mark is not None and mark.state is LogState.USED


def announce_log(path: str) -> None:
    """Mark a file as beginning a log, if it needs none so far."""
    if lock_calls() and read_mark(path) == Mark(LogState.ENDED):
        with mark_locked(path):
            if read_mark(path) == Mark(LogState.ENDED):
                _write_mark(path, Mark(LogState.BEGINNING))


@contextmanager
def mark_locked(path: str) -> Generator[None, None, None]:
    """Exclude other threads and processes from a file's mark between a read and a change.

    If no lock can be had, the change is made all the same: too many files are open, or a forked
    child of a process that was killed during a change still holds the lock.
    """
    with ExitStack() as stack:
        if lock_calls():
            with suppress(OSError):
                file = stack.enter_context(opened(path, os.O_RDWR))
                _wait_for_lock(file, *_MARK_BYTES)
        yield


def _wait_for_lock(descriptor: int, start: int, length: int) -> None:
    for _ in range(_MAX_TRIES):
        if try_to_lock(descriptor, start, length):
            return
        time.sleep(_WAIT)


def check_log(path: str, *, read_only: bool) -> None:
    """Make sure that a file is not opened with another file's log, or without its own.

    A log that belongs to another file is renamed to a name with `.foreign-` and the time at its
    end. Nothing is done while the file is open anywhere, and on systems without locks of open file
    descriptions, where reading the file would drop the process's locks.

    Raises:
        StoreFileError: If the file's log is missing, or is another file's and `read_only`; or if
            the log that it needs is in use elsewhere, or the log beside it is in use by others.
    """
    if not lock_calls():
        return
    _refuse_log_in_use(path)
    for _ in range(_MAX_TRIES):
        is_doubtful = _is_foreign(path) or _is_incomplete(path)
        if not is_doubtful and (read_only or not _is_outdated(path)):
            return
        with _exclusive(path, read_only=read_only) as is_alone:
            if is_alone:
                _settle(path, read_only=read_only)
                return
        if not is_doubtful:
            return
        time.sleep(
            _WAIT
        )  # another process is between a commit and its mark, or is closing the file
    raise StoreFileError(
        f"{path}: it is open in another program, and the log that it needs does not lie beside it; "
        "close it there first, and open it here under the same name"
    )


def _refuse_log_in_use(path: str) -> None:
    """Refuse a file whose place was another's, which is still open, and whose log is there.

    SQLite would take the index of that log, which is in use, for the file's own.
    """
    for _ in range(_MAX_TRIES):
        # Whoever uses the index has locked the file before.
        if not _is_locked(f"{path}-shm", _INDEX_IN_USE) or _is_locked(path, _SHARED_BYTES):
            return
        time.sleep(_WAIT)  # somebody closed the file between the two looks
    raise StoreFileError(
        f"{path}: it was put here while the file that was here before is still open, in this or "
        "another program; close that one first"
    )


def _is_locked(path: str, part: tuple[int, int]) -> bool:
    try:
        with opened(path, os.O_RDONLY) as file:
            return not is_unlocked(file, *part)
    except FileNotFoundError:
        return False


def _settle(path: str, *, read_only: bool) -> None:
    if _is_foreign(path):
        if read_only:
            raise StoreFileError(
                f"{path}: the log beside it, {path}-wal, belongs to another file or to another "
                "state of it; move the log away, or open the file for writing, which renames it"
            )
        _set_aside(path)
    if _is_incomplete(path):
        raise StoreFileError(
            f"{path}: it is incomplete, because what was written last lies in its log, {path}-wal, "
            "which is not there or was emptied before. Copy the log beside it, or restore a "
            "backup; to go on without what was in the log, make a new empty file of that name"
        )
    if not read_only and _is_outdated(path):
        _write_mark(path, Mark(LogState.ENDED))


def put_mark(descriptor: int, mark: Mark) -> None:
    """Write a mark into an open file."""
    os.lseek(descriptor, COUNTER.start, os.SEEK_SET)
    counter = os.read(descriptor, COUNTER.stop - COUNTER.start)
    os.lseek(descriptor, MARK_OFFSET, os.SEEK_SET)
    os.write(descriptor, mark.encoded(counter))


def _write_mark(path: str, mark: Mark) -> None:
    with opened(path, os.O_RDWR) as file:
        put_mark(file, mark)
        os.fsync(file)


def _is_outdated(path: str) -> bool:
    """Return whether a file's mark names a log that was copied completely and is empty.

    The next log has salts that do not follow those of the mark.
    """
    header = _read_log(path)
    if header is None or not needs_log(path):
        return False
    return len(header) < _FIRST_FRAME or not _is_whole(header)


def _is_incomplete(path: str) -> bool:
    """Return whether a file lacks the log that it needs.

    A log without content counts as an order to go on without that log, unless it is older than the
    file: a program that was killed left it, when it had the file open under another name.
    """
    return needs_log(path) and (
        _read_log(path) is None or (_is_outdated(path) and _log_age(path) > 0)
    )


def _is_foreign(path: str) -> bool:
    """Return whether there is a readable log that the file was not used with."""
    mark, header = read_mark(path), _read_log(path)
    if mark is None or header is None or len(header) < _FIRST_FRAME or not _is_whole(header):
        return False
    if mark.state is LogState.USED:
        return not _follows(header[SALTS.start : SALTS.stop], mark.salts)
    # One that is newer than the file was begun by a program without marks; a log that was there
    # before a file was copied over its own is older than that file.
    return mark.state is LogState.ENDED and _log_age(path) >= 0


def _log_age(path: str) -> int:
    """Return the nanoseconds from a log's last write to the file's last change, 0 if unknown."""
    with suppress(OSError):
        log, file = os.stat(f"{path}-wal"), os.stat(path)  # noqa: PTH116 - pathlib is slow to import
        return file.st_ctime_ns - log.st_mtime_ns
    return 0


def _follows(salts: bytes, marked: bytes) -> bool:
    """Return whether a log is the marked one, or one that SQLite began after it.

    SQLite increments the first salt and chooses the second at random. A process killed between the
    first commit of a log and its mark leaves the next log; a program without marks leaves a later
    one.
    """
    first, first_marked = (int.from_bytes(part[:4], "big") for part in (salts, marked))
    return salts == marked or 0 < (first - first_marked) % 2**32 <= _MAX_SALT_STEPS


def _read_log(path: str) -> bytes | None:
    """Return the first bytes of a file's log; None if it has no log."""
    try:
        with opened(f"{path}-wal", os.O_RDONLY) as file:
            return os.read(file, _FIRST_FRAME)
    except FileNotFoundError:
        return None


def _is_whole(header: bytes) -> bool:
    """Return whether SQLite would read a log with this header; otherwise it treats it as empty."""
    numbers = _LOG_HEADER.unpack(header[: _LOG_HEADER.size])
    if numbers[0] not in _LOG_NUMBERS:
        return False
    words = struct.unpack(">6I" if numbers[0] & 1 else "<6I", header[:24])
    first = second = 0
    for at in range(0, 6, 2):  # SQLite's checksum ("The WAL Header", section 4.4)
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return (first, second) == numbers[6:]


def _set_aside(path: str) -> None:
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    name = f"{path}-wal.foreign-{moment}-{os.urandom(2).hex()}"
    os.rename(f"{path}-wal", name)  # noqa: PTH104 - pathlib is slow to import
    os.chmod(name, 0o600)  # noqa: PTH101 - the same
    _log.warning(
        "%s: the log beside it belonged to another file or to another state of it, and is now %s. "
        "Nothing of it was read. If this file is a backup, that log holds what was written after "
        "it; delete it when it is not needed.",
        path,
        name,
    )


@contextmanager
def _exclusive(path: str, *, read_only: bool) -> Generator[bool, None, None]:
    """Prevent others from opening a file, and yield whether it is open nowhere else."""
    with opened(path, os.O_RDONLY if read_only else os.O_RDWR) as file:
        if read_only:  # which must not be able to lock anything
            yield is_unlocked(file, *_SHARED_BYTES)
        else:
            yield try_to_lock(file, *_SHARED_BYTES)


def log_problem(path: str) -> str | None:
    """Return a description of the commits that a file's log has lost to damage, or None.

    SQLite reads a log up to the first invalid frame and drops the rest. A tail that was being
    written at a power cut is not damage. Logs larger than 256 MB are not checked.
    """
    try:
        with open(f"{path}-wal", "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            if os.fstat(file.fileno()).st_size > _MAX_CHECKED_BYTES:
                return None
            log = file.read()
            file.seek(0)
            if (
                file.read(_LOG_HEADER.size) != log[: _LOG_HEADER.size]
            ):  # another process has begun it again
                return None
    except (OSError, ValueError):  # an invalid path is reported when it is opened
        return None
    lost = lost_in_log(log)
    if lost is None:
        return None
    frame, commits = lost
    return (
        f"frame {frame} of the log is damaged, and at least {commits} commits from there on cannot "
        "be read; keep copies of the file and its log, and restore a backup if they are needed"
    )
