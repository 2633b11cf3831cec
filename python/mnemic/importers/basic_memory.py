"""Reads the notes of Basic Memory: each observation is a memory, and so is the text around them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from mnemic.importers.cleaning import at_path
from mnemic.importers.markdown import Note, notes
from mnemic.importers.record import Chosen, Lost, Record

RELATIONS: Final = "relations, which stay in the text and become no links"

_OBSERVATION = re.compile(r"\s*[-*]\s+\[(?![ xX-]\])([^\[\]]+)\]\s+(.+)")
_HEADING = re.compile(r"\s*#+\s.*")
_TAG = re.compile(r"(?<!\S)#([^\s#()]+)")
_OWN: Final = {"title", "permalink", "tags", "type", "created", "date"}


def read(path: Path, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    """Yield a record for each observation, and one for the rest of each note."""
    for note in notes(path, lost):
        yield from _records(note, chosen, lost)


def _records(note: Note, chosen: Chosen, lost: Lost) -> Iterator[Record]:
    title = str(note.values.get("title") or Path(note.name).stem)
    key = str(note.values.get("permalink") or note.name)
    fields = {
        "created_at": note.values.get("created") or note.values.get("date") or note.changed_at,
        "user_id": at_path(note.values, chosen.user_field) if chosen.user_field else None,
    }
    tags = _tags(note.values.get("tags"))
    known = {"title": title, "note": key}
    rest = []
    for number, line in enumerate(note.body.splitlines(), 1):
        found = _OBSERVATION.fullmatch(line)
        if found is None:
            is_item = line.lstrip().startswith(("- ", "* "))
            lost[RELATIONS] += is_item and 0 <= line.find("[[") < line.rfind("]]")
            rest.append(line)
            continue
        category, text = found[1].strip(), found[2].strip()
        own = {"category": category, "tags": _tags([*tags, *_TAG.findall(text)])}
        if category.casefold() == "preference":
            own["type"] = "preference"
        place = f"{note.name}, line {number} of its text"
        yield Record(f"{key}#{category}", place, f"{title}: {text}", {**fields, **own}, known)
    if any(line.strip() and _HEADING.fullmatch(line) is None for line in rest):
        further = {name: each for name, each in note.values.items() if name not in _OWN}
        metadata = {**further, **known, "kind": note.values.get("type")}
        text = "\n".join(rest).strip()
        if not text.startswith("# "):
            text = f"# {title}\n\n{text}"
        fields["tags"] = tags
        yield Record(key, note.name, text, fields, metadata, is_current=True)


def _tags(given: object) -> Any:
    if isinstance(given, str):
        given = given.split(",")
    found = given if isinstance(given, list) else []
    return list(dict.fromkeys(str(tag).strip() for tag in found if str(tag).strip()))
