"""Reads notes in Markdown: one, or a folder of them. Each is a memory."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from mnemic.errors import SourceError
from mnemic.importers.cleaning import records_of
from mnemic.importers.front_matter import parted
from mnemic.importers.record import Chosen, Lost, Record
from mnemic.importers.text_files import MAX_LINE, text_of

LINKS: Final = "links to other files and folders, which are not followed"
OTHERS: Final = "files that are no Markdown"
HUGE: Final = "files that are too large"

_OF_FILES: Final = frozenset({"version", "scope", "trigger", "related", "supersedes"})
_ENDS: Final = (".md", ".markdown")


class Note(NamedTuple):
    """A note.

    Attributes:
        name: Its path within the folder.
        values: Those of its front matter.
        body: Its text.
        changed_at: Time of its last change.
    """

    name: str
    values: dict[str, Any]
    body: str
    changed_at: datetime


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each note, with the fields that its front matter names."""
    for note in notes(path, lost):
        values = _values(note) | {"content": note.body}
        yield from records_of(
            values,
            chosen,
            lost,
            note.name,
            "" if "id" in values else note.name,
            defaults={"created_at": note.changed_at},
            metadata={"path": note.name},
        )


def _values(note: Note) -> dict[str, Any]:
    """Return the values of front matter without those that each memory file has."""
    if not str(note.values.get("id")).startswith("mem_"):
        return note.values
    has_session = note.values.get("session_id") != "none"
    own = _OF_FILES if has_session else _OF_FILES | {"session_id"}
    return {name: value for name, value in note.values.items() if name not in own}


def notes(path: Path, lost: Lost) -> Iterator[Note]:
    """Yield the notes of a folder and the folders in it, or one file's.

    Hidden files and folders are passed over.
    """
    if not path.is_dir():
        yield _note(path, path.name, lost)
        return
    for file in _files(path, lost):
        if file.stat().st_size > MAX_LINE:
            lost[HUGE] += 1
        else:
            yield _note(file, file.relative_to(path).as_posix(), lost)


def _files(folder: Path, lost: Lost) -> Iterator[Path]:
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
            elif each.is_file() and each.name.casefold().endswith(_ENDS):
                yield Path(each.path)
            else:
                lost[OTHERS] += 1


def _note(path: Path, name: str, lost: Lost) -> Note:
    with text_of(path) as file:
        text = file.read(MAX_LINE + 1)
        changed_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    values, body = parted(text, lost)
    return Note(name, values, body.removesuffix("\n"), changed_at)
