"""Reads notes in Markdown: one, or a folder of them. Each is a memory."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from mnemic.importers.cleaning import records_of
from mnemic.importers.front_matter import parted
from mnemic.importers.record import Chosen, Lost, Record
from mnemic.importers.text_files import MAX_LINE, files_in, text_of

HUGE: Final = "files that are too large"

_OF_FILES: Final = frozenset({"version", "scope", "trigger", "related", "supersedes"})
_ENDS: Final = (".md", ".markdown")


class Note(NamedTuple):
    """A note.

    Attributes:
        name: Its path within the folder.
        values: Those of its front matter.
        body: Its text.
        changed_at: Time of its last change, in seconds since 1970.
    """

    name: str
    values: dict[str, Any]
    body: str
    changed_at: float


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
    return {
        name: value
        for name, value in note.values.items()
        if name not in _OF_FILES and (name, value) != ("session_id", "none")
    }


def notes(path: Path, lost: Lost) -> Iterator[Note]:
    """Yield the notes of a folder and the folders in it, or one file's.

    Hidden files and folders are passed over.
    """
    is_folder = path.is_dir()
    for file in files_in(path, _ENDS, lost) if is_folder else [path]:
        with text_of(file) as opened:
            text = opened.read(MAX_LINE + 1)
            changed_at = os.fstat(opened.fileno()).st_mtime
        if len(text) > MAX_LINE:
            lost[HUGE] += 1
            continue
        values, body = parted(text, lost)
        name = file.relative_to(path).as_posix() if is_folder else path.name
        yield Note(name, values, body.removesuffix("\n"), changed_at)
