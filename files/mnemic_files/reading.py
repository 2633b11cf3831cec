"""Reads the files of a directory without leaving it."""

import errno
import os
import stat
from collections.abc import Iterator
from typing import Final, NamedTuple

from mnemic.errors import StoreFileError
from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.front_matter import MAX_CHARACTERS
from mnemic_files.ids import SUFFIX
from mnemic_files.inside import validation

MAX_FILE_BYTES: Final = validation.MAX_CONTENT_BYTES + 4 * MAX_CHARACTERS

# A pipe would block, and a link could lead out of the directory.
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_IS_LINK: Final = frozenset({errno.ELOOP, errno.EMLINK})


class Signature(NamedTuple):
    """State of a file: an equal one means an unchanged file.

    Attributes:
        modified: Time of the last change, in nanoseconds.
        changed: Time of the last change of its entry in the file system, which no program sets.
        size: Bytes.
        number: Its inode.
    """

    modified: int
    changed: int
    size: int
    number: int

    @classmethod
    def of(cls, found: os.stat_result) -> "Signature":
        """Return that of a file."""
        return cls(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def signatures(directory: str) -> dict[str, Signature]:
    """Return the names and signatures of the files of a directory that may be memory files.

    Hidden files and directories are left out; a directory that does not exist has none. A
    symbolic link has the signature of its target; one that leads nowhere has that of a file
    without bytes.
    """
    try:
        with os.scandir(directory) as found:
            return dict(_signed(found))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # a name that no directory can have is a ValueError
        reason = getattr(error, "strerror", error)
        raise StoreFileError(f"{directory!r}: the directory cannot be read ({reason})") from error


def _signed(found: "Iterator[os.DirEntry[str]]") -> Iterator[tuple[str, Signature]]:
    for entry in found:
        if not entry.name.endswith(SUFFIX) or entry.name.startswith("."):
            continue
        try:
            state = entry.stat()
        except FileNotFoundError:  # it was removed meanwhile, or a link leads nowhere
            if entry.is_symlink():
                yield entry.name, Signature(0, 0, 0, 0)
            continue
        except OSError:  # such as links in a circle
            yield entry.name, Signature(0, 0, 0, 0)
            continue
        if not stat.S_ISDIR(state.st_mode):
            yield entry.name, Signature.of(state)


def read_text(directory: str, name: str) -> tuple[str, Signature]:
    """Return the text of a file, and the signature it had then.

    Raises:
        FileNotFoundError: If there is no such file.
        MemoryFileFormatError: If it is no regular file inside the directory, is too large, is not
            in UTF-8, or cannot be read.
    """
    try:
        descriptor = _opened(directory, name)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise MemoryFileFormatError(f"the file cannot be read ({error.strerror})") from None
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise MemoryFileFormatError("it is no regular file")
        return _text(file.read(MAX_FILE_BYTES + 1)), Signature.of(state)


def _opened(directory: str, name: str) -> int:
    path = os.path.join(directory, name)  # noqa: PTH118 - pathlib is slow
    try:
        return os.open(path, _FLAGS)
    except OSError as error:
        if error.errno not in _IS_LINK:
            raise
    target = os.path.realpath(path)
    root = os.path.realpath(directory)
    if os.path.commonpath([root, target]) != root:
        raise MemoryFileFormatError("it is a symbolic link that leads out of its directory")
    return os.open(target, _FLAGS)


def _text(given: bytes) -> str:
    if len(given) > MAX_FILE_BYTES:
        raise MemoryFileFormatError(f"it has more than {MAX_FILE_BYTES} bytes")
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise MemoryFileFormatError(f"it is not in UTF-8 from byte {error.start} on") from None
