"""New files that appear under their names when complete, and leave nothing behind on failure.

`mnemic._core.NewFile` has the algorithm, which vector maps and snapshots of indexes share.
"""

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager

from mnemic._core import NewFile, remove_part, remove_parts, sync_folder
from mnemic.errors import StoreBusyError, StoreError, StoreFileError, StoreFullError

__all__ = [
    "file_errors",
    "new_file",
    "new_part",
    "remove_part",
    "tidy_folder",
    "typed",
    "writing_errors",
]

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG})
_NO_FOLDER = "its directory does not exist; create it first"
_NO_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE})


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
    with _committed(target, overwrite=overwrite, is_one_of_many=is_one_of_many) as file:
        yield file.fileno()


@contextmanager
def new_part(target: str) -> Generator[tuple[int, str], None, None]:
    """Make a file like `new_file`, with a name of its own meanwhile.

    Yields:
        A descriptor, and the name.
    """
    with _committed(target, named=True) as file:
        yield file.fileno(), str(file.part)


@contextmanager
def _committed(
    target: str, *, overwrite: bool = False, named: bool = False, is_one_of_many: bool = False
) -> Generator[NewFile, None, None]:
    folder = os.path.dirname(os.path.abspath(target))  # noqa: PTH100, PTH120 - pathlib is slow
    with file_errors(target):
        if not is_one_of_many:
            remove_parts(folder)
        file = NewFile(target, overwrite=overwrite, named=named)
    try:
        yield file
        with file_errors(target):
            file.commit()
            if not is_one_of_many:
                sync_folder(folder)
    finally:
        file.discard()


def tidy_folder(folder: str) -> None:
    """Put the names in a folder on disk, and remove the parts that killed processes left.

    Raises:
        StoreError: If the folder cannot be opened.
    """
    with file_errors(folder):
        remove_parts(folder)
        sync_folder(folder)


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


@contextmanager
def writing_errors(target: str) -> Generator[None, None, None]:
    """Convert the system's errors in writing to an open file to mnemic's."""
    try:
        yield
    except OSError as error:
        raise typed(error, target) from error


def typed(error: OSError, target: str) -> StoreError:
    """Return mnemic's error for an error of the system, with the file's name and advice."""
    if isinstance(error, FileNotFoundError):
        folder = os.path.dirname(os.path.abspath(target))  # noqa: PTH100, PTH120 - as above
        which = "it does not exist" if os.path.isdir(folder) else _NO_FOLDER  # noqa: PTH112
        return StoreFileError(f"{target}: {which}")
    if isinstance(error, BlockingIOError):
        return StoreBusyError(
            f"{target}: another process makes the same file at this moment; try again"
        )
    if error.errno in _FULL:
        return StoreFullError(f"{target}: the disk is full or failing ({error.strerror})")
    if error.errno in _NO_DESCRIPTORS:
        return StoreError(
            f"{target}: too many files are open ({error.strerror}); close some, or raise the limit"
        )
    return StoreFileError(f"{target}: it cannot be used ({error.strerror})")
