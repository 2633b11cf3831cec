"""Reads text files piece by piece: lines, and the items of one long JSON array."""

import codecs
import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

from mnemic.errors import SourceError
from mnemic.importers.record import Lost

LINKS: Final = "links to other files and folders, which are not followed"
OTHERS: Final = "files of other kinds"

MAX_LINE: Final = 16 * 1024 * 1024
"""Characters of a line; a memory has at most 10 MB."""

MAX_ITEM: Final = 32 * 1024 * 1024
"""Characters of an array's item, such as a conversation; as objects it takes ten times that."""

_PIECE: Final = 1024 * 1024
_MARKS: Final = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, EOFError)
"""What reading a zip raises, beside the errors of files."""

_NEXT = re.compile(r"[^\s,]|\Z")


@contextmanager
def reading(path: Path) -> Generator[None, None, None]:
    """Turn what fails in reading a file into errors that name it; it must be a regular one.

    Others, such as a pipe, may never end.
    """
    if not path.is_file():
        kind = "is no regular file" if path.exists() else "is not there"
        raise SourceError(f"{path}: it {kind}; name the file")
    try:
        yield
    except UnicodeDecodeError as error:
        raise SourceError(
            f"{path}: it is not {error.encoding.upper()} ({error.reason}); convert it first, as by "
            "iconv -f latin1 -t utf-8"
        ) from None
    except _DAMAGED as error:
        raise SourceError(f"{path}: it is damaged ({error}); get it again") from None
    except OSError as error:
        raise SourceError(f"{path}: it cannot be read ({error.strerror or error})") from None


def files_in(folder: Path, ends: tuple[str, ...], lost: Lost) -> Iterator[Path]:
    """Yield the files with one of these ends in a folder and those in it; no hidden ones."""
    waiting = [folder]  # no recursion: folders may be nested deeper than calls
    while waiting:
        folder = waiting.pop()
        try:
            found = sorted(os.scandir(folder), key=lambda each: each.name)
        except OSError as error:
            raise SourceError(f"{folder}: it cannot be read ({error.strerror})") from None
        for each in found:
            if each.name.startswith("."):
                continue
            if each.is_symlink():
                lost[LINKS] += 1
            elif each.is_dir():
                waiting.append(Path(each.path))
            elif each.is_file() and each.name.casefold().endswith(ends):
                yield Path(each.path)
            else:
                lost[OTHERS] += 1


@contextmanager
def text_of(path: Path) -> Generator[IO[str], None, None]:
    """Open a text file, of UTF-8, or of UTF-16 with its mark."""
    with reading(path):
        with path.open("rb") as file:
            encoding = _MARKS.get(file.read(2), "utf-8-sig")
        with path.open(encoding=encoding, newline="") as file:
            yield file


def lines_of(file: IO[str], path: Path) -> Iterator[str]:
    """Yield lines, with their ends."""
    number = 0
    while line := file.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise SourceError(f"{path}, line {number}: it is longer than {MAX_LINE} characters")
        yield line


def json_of(text: object, where: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        SourceError: If it is none; the message begins with where it is.
    """
    try:
        return json.loads(text if isinstance(text, str | bytes) else "")
    except (ValueError, RecursionError) as error:
        reason = getattr(error, "msg", error)
        raise SourceError(f"{where}: it is no JSON ({reason}); correct it") from None


def array_items(file: IO[str], path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the items of the array that a JSON text is, numbered from 1, one at a time.

    An item that the end of what was read cuts off is decoded again with twice as much.
    """
    decode = json.JSONDecoder().raw_decode
    text, at, number = file.read(_PIECE).lstrip(), 1, 0
    if not text.startswith("["):
        raise _damaged(path, 1, "it is no array")
    while True:
        following = _NEXT.search(text, at)
        at = following.start() if following else len(text)
        if text.startswith("]", at):
            return
        value, reason = None, "it is cut off"
        try:
            value, end = decode(text, at)
        except json.JSONDecodeError as error:
            end, reason = len(text), error.msg
        except (ValueError, RecursionError) as error:
            raise _damaged(path, number + 1, str(error)) from None
        if end < len(text):  # what ends there may go on, as a number does
            number += 1
            yield number, value
            at = end
            continue
        piece = file.read(max(_PIECE, end - at))
        if not piece or end - at > MAX_ITEM:
            raise _damaged(path, number + 1, reason)
        text, at = text[at:] + piece, 0


def _damaged(path: Path, number: int, reason: str) -> SourceError:
    return SourceError(
        f"{path}, item {number}: {reason}; it is damaged, cut off or larger than {MAX_ITEM} "
        "characters: get it again"
    )
