"""Turn a file of JSON lines, Markdown or text into memories."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.errors import MnemicError
from mnemic.model.new_entry import FIELDS

# With a user the demo's questions would not see the memory.
_FIELDS = frozenset(FIELDS) - {"id", "user_id", "supersedes", "idempotency_key", "expires_at"}
_HEADING = re.compile(r"#{1,6}\s")
_FENCES = "```", "~~~"
_BEGINS_IN_MARKDOWN = re.compile(r"#{1,6}\s|[-*+]\s|\d+[.)]\s|```|~~~")
_MOST_TEXT = 1 << 26
_NEVER = re.compile(r"(?!)")
_ALWAYS = re.compile(r"")


class UnreadableFileError(MnemicError, ValueError):
    """The file cannot be read as a whole; the message says why."""


class Piece(NamedTuple):
    """One memory to be, and where it is in the file."""

    place: str
    fields: dict[str, Any]


class SkippedPart(NamedTuple):
    """A part of a file that gave no memory, and why."""

    place: str
    reason: str


def read(path: Path) -> tuple[list[Piece], list[SkippedPart]]:
    """Return a file's memories in order, and the lines that hold none.

    JSON lines: an object a line, with `content` (or `text`) and any argument of `Memory.add`; other
    keys go to metadata, but for ids and users. Markdown: a memory a paragraph, list item or code
    block, with its heading before it. Text: a memory a paragraph, or a line without blank lines.

    Raises:
        UnreadableFileError: If there is no such file, or it is not UTF-8 text, or holds nothing.
    """
    try:
        with path.open(encoding="utf-8-sig") as file:
            text = file.read(_MOST_TEXT + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableFileError(f"{path} cannot be read: {error}") from error
    if len(text) > _MOST_TEXT:
        raise UnreadableFileError(f"{path} has over {_MOST_TEXT:,} characters; give it in parts")
    if path.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
        pieces, left_out = _json_lines(text)
    else:
        is_markdown = path.suffix.lower() in {".md", ".markdown"}
        texts = _of_markdown(text) if is_markdown else _of_text(text)
        numbered = enumerate(texts, start=1)
        pieces, left_out = [Piece(f"part {at}", {"content": each}) for at, each in numbered], []
    if not pieces and not left_out:
        raise UnreadableFileError(f"{path}: there is nothing in it")
    return pieces, left_out


def _json_lines(text: str) -> tuple[list[Piece], list[SkippedPart]]:
    pieces: list[Piece] = []
    left_out: list[SkippedPart] = []
    for number, line in enumerate(text.split("\n"), start=1):
        place = f"line {number}"
        if line.strip():
            try:
                pieces.append(Piece(place, _fields_of(json.loads(line))))
            except (TypeError, ValueError, RecursionError) as error:
                left_out.append(SkippedPart(place, str(error)))
    return pieces, left_out


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the arguments of `Memory.add` that a line of JSON has."""
    if isinstance(value, str):
        return {"content": value}
    if not isinstance(value, dict):
        raise TypeError(f"it is a JSON {type(value).__name__}, not an object with a content")
    fields = {name: each for name, each in value.items() if name in _FIELDS}
    others = {name: each for name, each in value.items() if name not in _FIELDS}
    if "content" not in fields:
        fields["content"] = others.pop("text", None)
    if fields["content"] is None:
        raise ValueError(f"it has no content; its keys are {sorted(value)}")
    if others:
        fields["metadata"] = {**others, **(fields.get("metadata") or {})}
    return fields


def _of_text(text: str) -> Iterator[str]:
    has_blank_lines = re.search(r"\n[ \t]*\n", text.strip()) is not None
    for block in _blocks(text, _NEVER if has_blank_lines else _ALWAYS):
        yield "\n".join(block)


def _of_markdown(text: str) -> Iterator[str]:
    heading = ""
    for block in _blocks(text, _BEGINS_IN_MARKDOWN):
        rest = block
        if _HEADING.match(block[0]):
            heading, rest = block[0].strip("# \t"), block[1:]
        if rest:
            content = "\n".join(rest)
            yield f"{heading}: {content}" if heading else content


def _blocks(text: str, begins: re.Pattern[str]) -> Iterator[list[str]]:
    """Yield runs of lines between blank ones; a line that matches begins another.

    In Markdown a code block goes to its end.
    """
    block: list[str] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.strip()
        if block and not fence and (not bare or begins.match(line)):
            yield block
            block = []
        if block or bare:
            block.append(line)
        if fence and bare.startswith(fence):
            yield block
            block, fence = [], ""
        elif not fence and begins is _BEGINS_IN_MARKDOWN and bare.startswith(_FENCES):
            fence = bare[:3]
    if block:
        yield block
