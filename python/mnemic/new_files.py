"""New files that appear under their names when complete, and leave nothing behind on failure.

The content is written to a file without a name, if the file system supports that (`O_TMPFILE`),
which disappears with its process. Otherwise it is a part, `.mnemic-<8 digits>.part` beside the
target, which its process keeps locked; an unlocked part was left by a process that was killed, and
the next process that makes a file in the same folder, or opens the part's target, removes it.
"""

import errno
import os
import re
import zlib
from collections.abc import Generator
from contextlib import contextmanager, suppress

from mnemic.errors import StoreBusyError, StoreError, StoreFileError, StoreFullError

_PART = re.compile(r"\.mnemic-[0-9a-f]{8}\.part")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})
_NO_ANONYMOUS = frozenset({errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS})
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_MAX_TRIES = 10
_PIECE = 1 << 20


@contextmanager
def new_file(
    target: str, *, overwrite: bool = False, is_one_of_many: bool = False
) -> Generator[int, None, None]:
    """Make a file of mode 0600 that gets its name when the block succeeds and it is on disk.

    Args:
        target: Its name.
        overwrite: Whether to replace an existing file.
        is_one_of_many: Whether the caller calls `tidy_folder` after the last file: with each file
            the folder would be read, which takes longer the more files there are.

    Yields:
        A descriptor to write to.

    Raises:
        FileExistsError: If the name exists and must not be replaced.
        StoreError: If the file cannot be made or named.
    """
    with file_errors(target):
        if not is_one_of_many:
            _remove_parts(_folder_of(target))
        descriptor = _anonymous(_folder_of(target))
    if descriptor is None:
        with new_part(target, overwrite=overwrite) as (named, _):
            yield named
        return
    try:
        yield descriptor
        with file_errors(target):
            os.fsync(descriptor)
            _name_anonymous(descriptor, target, overwrite=overwrite)
            if not is_one_of_many:
                _sync_folder(_folder_of(target))
    finally:
        os.close(descriptor)


def tidy_folder(folder: str) -> None:
    """Put the names in a folder on disk, and remove the parts that killed processes left.

    Raises:
        StoreError: If the folder cannot be opened.
    """
    with file_errors(folder):
        _remove_parts(folder)
        _sync_folder(folder)


@contextmanager
def new_part(target: str, *, overwrite: bool = False) -> Generator[tuple[int, str], None, None]:
    """Make a file like `new_file`, with a name of its own meanwhile.

    Yields:
        A descriptor, and the name.
    """
    with file_errors(target):
        _remove_parts(_folder_of(target))
        part = _part_of(target)
        descriptor = _locked(part)
    try:
        with file_errors(target):
            os.ftruncate(descriptor, 0)
        yield descriptor, part
        with file_errors(target):
            os.fsync(descriptor)
            _name(part, target, overwrite=overwrite)
            _sync_folder(_folder_of(target))
    finally:
        _remove(part)
        os.close(descriptor)


def remove_part(target: str) -> None:
    """Remove the part of this file that a killed process left."""
    part = _part_of(target)
    if os.path.lexists(part):
        _remove_if_left(part)


@contextmanager
def file_errors(target: str) -> Generator[None, None, None]:
    """Convert the system's errors to mnemic's, except FileExistsError."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        raise typed(error, target) from error
    except ValueError as error:
        raise StoreFileError(f"{target!r}: it is not a path in UTF-8 ({error})") from error


def typed(error: OSError, target: str) -> StoreError:
    """Return mnemic's error for an error of the system, with the file's name and advice."""
    if isinstance(error, FileNotFoundError):
        return StoreFileError(f"{target}: its directory does not exist; create it first")
    if error.errno in _FULL:
        return StoreFullError(f"{target}: the disk is full or failing ({error.strerror})")
    if error.errno in _NO_DESCRIPTORS:
        return StoreError(
            f"{target}: too many files are open ({error.strerror}); close some, or raise the limit"
        )
    return StoreFileError(f"{target}: it cannot be written ({error.strerror})")


def _sync_folder(folder: str) -> None:
    if os.name == "nt":  # a directory cannot be opened there
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _folder_of(target: str) -> str:
    return os.path.dirname(os.path.abspath(target))  # noqa: PTH100, PTH120 - pathlib is slow


def _part_of(target: str) -> str:
    name = os.path.basename(target)  # noqa: PTH119 - pathlib is slow to import
    number = zlib.crc32(os.fsencode(name))
    return os.path.join(_folder_of(target), f".mnemic-{number:08x}.part")  # noqa: PTH118 - the same


def _anonymous(folder: str) -> int | None:
    """Open a new file without a name; None if the system does not support it."""
    flags = getattr(os, "O_TMPFILE", None)
    if flags is None:
        return None
    try:
        return os.open(folder, flags | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _NO_ANONYMOUS:
            return None
        raise


def _name_anonymous(descriptor: int, target: str, *, overwrite: bool) -> None:
    part = _part_of(target)
    try:
        if not overwrite:
            _link_open(descriptor, target)
            return
        with suppress(FileNotFoundError):
            os.unlink(part)  # noqa: PTH108 - pathlib is slow to import
        _link_open(descriptor, part)
        os.replace(part, target)  # noqa: PTH105 - the same
    except FileExistsError:
        raise
    except OSError:  # this system cannot name it after all
        with new_part(target, overwrite=overwrite) as (named, _):
            _copy(descriptor, named)


def _copy(source: int, target: int) -> None:
    os.lseek(source, 0, os.SEEK_SET)
    while piece := os.read(source, _PIECE):
        os.write(target, piece)


def _link_open(descriptor: int, target: str) -> None:
    # Only with a folder given does Python call linkat, which can follow the link to an open file.
    folder = os.open(_folder_of(target), os.O_RDONLY | os.O_CLOEXEC)
    try:
        source = f"/proc/self/fd/{descriptor}"
        os.link(source, target, src_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _name(part: str, target: str, *, overwrite: bool) -> None:
    if overwrite:
        os.replace(part, target)  # noqa: PTH105 - pathlib is slow to import
        return
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:  # this file system has no second names for a file: take the name, replace it
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.replace(part, target)  # noqa: PTH105 - the same


def _locked(part: str) -> int:
    """Open a part, creating it if necessary, and lock it until it is closed."""
    for _ in range(_MAX_TRIES):
        descriptor = os.open(part, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | _NO_FOLLOW, 0o600)
        is_locked = _lock(descriptor)
        if is_locked is not False and _is_at(descriptor, part):
            return descriptor
        os.close(descriptor)  # it was removed before it was locked, or somebody else has it locked
        if is_locked is False:
            break
    raise StoreBusyError(f"{part}: another process makes the same file at this moment; try again")


def _remove_parts(folder: str) -> None:
    try:
        with os.scandir(folder) as found:
            parts = [entry.path for entry in found if _PART.fullmatch(entry.name)]
    except OSError:  # of which opening the file will tell
        return
    for part in parts:
        _remove_if_left(part)


def _remove_if_left(part: str) -> None:
    with suppress(OSError):
        descriptor = os.open(part, os.O_RDWR | os.O_CLOEXEC | _NO_FOLLOW)
        try:
            if _lock(descriptor) and _is_at(descriptor, part):
                _remove(part)
        finally:
            os.close(descriptor)


def _remove(part: str) -> None:
    for name in (part, f"{part}-journal"):  # SQLite leaves one when the disk is full
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 - pathlib is slow to import


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))  # noqa: PTH116 - the same
    except FileNotFoundError:
        return False


def _lock(descriptor: int) -> bool | None:
    """Lock a part; return False if another process has it, None if locks are not supported."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return None
    return True
