"""Finds the conversations in the export of a chat: a zip, or the file in it."""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from mnemic.errors import SourceError
from mnemic.importers.record import Lost
from mnemic.importers.text_files import array_items, reading, text_of

Item = TypeVar("Item")

OTHER_FILES: Final = "other files of the export"

_NAME = re.compile(r"(?:[^/]+/)?conversations(?:-\d+)?\.json")
_MAX_BYTES: Final = 16 * 1024**3
_MAX_RATIO: Final = 500
_SMALL: Final = 16 * 1024**2
_ENCRYPTED: Final = 1


def conversations(path: Path, lost: Lost, kind: type[Item]) -> Iterator[tuple[str, Item]]:
    """Yield the conversations as objects of a kind, each with its place.

    Raises:
        SourceError: If one has another form, or the file is damaged.
    """
    for place, item in _items(path, lost):
        try:
            yield place, msgspec.convert(item, kind)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            raise SourceError(f"{path}, {place}: it is not as exports have it ({error})") from None


def _items(path: Path, lost: Lost) -> Iterator[tuple[str, Any]]:
    if path.is_file() and zipfile.is_zipfile(path):
        yield from _of_zip(path, lost)
        return
    with text_of(path) as file:
        for number, item in array_items(file, path):
            yield f"conversation {number}", item


def _of_zip(path: Path, lost: Lost) -> Iterator[tuple[str, Any]]:
    """Yield those of a zip, of which nothing is unpacked to a file."""
    with reading(path):
        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
                found = [each for each in members if _NAME.fullmatch(each.filename)]
                lost[OTHER_FILES] += len(members) - len(found)
                if not found:
                    raise SourceError(
                        f"{path}: there is no conversations.json in it; name the zip of an export"
                    )
                for each in sorted(found, key=lambda one: one.filename):
                    yield from _of_member(archive, each, path)
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError) as error:
            raise SourceError(f"{path}: the zip is damaged ({error}); get it again") from None


def _of_member(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path
) -> Iterator[tuple[str, Any]]:
    name = path / member.filename
    if member.flag_bits & _ENCRYPTED:
        raise SourceError(f"{path}: {member.filename} needs a password; unpack it first")
    is_dense = member.file_size > max(_SMALL, _MAX_RATIO * member.compress_size)
    if is_dense or member.file_size > _MAX_BYTES:
        raise SourceError(
            f"{path}: {member.filename} would have {member.file_size} bytes, of "
            f"{member.compress_size} in the zip, which no export has; unpack it and name the file"
        )
    with archive.open(member) as file, io.TextIOWrapper(file, "utf-8-sig", newline="") as text:
        for number, item in array_items(text, name):
            yield f"{member.filename}, conversation {number}", item
