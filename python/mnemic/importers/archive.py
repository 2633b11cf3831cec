"""Finds the conversations in the export of a chat: a zip, or the file in it."""

import io
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, TypeVar

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
    with reading(path):
        for name, file in _texts(path, lost):
            for number, item in array_items(file, path / name):
                place = f"{name}, conversation {number}" if name else f"conversation {number}"
                try:
                    yield place, msgspec.convert(item, kind)
                except (msgspec.ValidationError, UnicodeEncodeError) as error:
                    raise SourceError(
                        f"{path}, {place}: it is not as exports have it ({error})"
                    ) from None


def _texts(path: Path, lost: Lost) -> Iterator[tuple[str, IO[str]]]:
    """Yield the file, or those of a zip by their names; nothing is unpacked to a file."""
    if not zipfile.is_zipfile(path):
        with text_of(path) as file:
            yield "", file
        return
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        found = [each for each in members if _NAME.fullmatch(each.filename)]
        lost[OTHER_FILES] += len(members) - len(found)
        if not found:
            raise SourceError(
                f"{path}: there is no conversations.json in it; name the zip of an export"
            )
        for each in sorted(found, key=lambda one: one.filename):
            _check(each, path)
            with io.TextIOWrapper(archive.open(each), "utf-8-sig") as text:
                yield each.filename, text


def _check(member: zipfile.ZipInfo, path: Path) -> None:
    is_dense = member.file_size > max(_SMALL, _MAX_RATIO * member.compress_size)
    if is_dense or member.file_size > _MAX_BYTES:
        raise SourceError(
            f"{path}: {member.filename} would have {member.file_size} bytes, of "
            f"{member.compress_size} in the zip, which no export has; unpack it and name the file"
        )
    is_plain = member.compress_type in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    if member.flag_bits & _ENCRYPTED or not is_plain:
        raise SourceError(
            f"{path}: {member.filename} needs a password or another program; unpack it first"
        )
