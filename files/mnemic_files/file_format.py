"""The text of a memory file: a tolerant reader of it, and a writer with one form."""

import logging
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

from mnemic.errors import InvalidArgumentError
from mnemic_files.errors import MemoryFileFormatError
from mnemic_files.front_matter import (
    MAX_CHARACTERS,
    Node,
    Scalar,
    parse_yaml,
    plain_value,
    yaml_text,
    yaml_time,
    yaml_value,
)
from mnemic_files.ids import shown_id
from mnemic_files.inside import described, validation
from mnemic_files.memory_file import CATEGORIES, MemoryFile, RelatedFile

_DELIMITER: Final = "---\n"
_OPENING = re.compile(r"---[ \t]*(\r\n|\n|\r)")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\r\n|\n|\r|\Z)", re.MULTILINE)
_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANK_LINE = re.compile(r"[ \t]*(?:\r\n|\n)")
_FRACTION = re.compile(r"(\.[0-9]{6})[0-9]+")

_TEXTS: Final = ("id", "scope", "category", "session_id", "trigger")
_TIMES: Final = ("created_at", "updated_at")
_KNOWN_KEYS: Final = frozenset({*_TEXTS, *_TIMES, "version", "supersedes", "related"})

_log = logging.getLogger("mnemic_files")


def parse_memory_file(text: str, *, name: str | None = None) -> MemoryFile:
    r"""Return the memory file that a text holds.

    A byte order mark, line ends of Windows, blanks after a delimiter, `...` as the closing one,
    values with or without quotes and unknown keys are accepted. Of the body one blank line after
    the closing delimiter and one line end at its end are left out, if they are there; the body's
    own lines may be `---`. In a file whose first line ends as on Windows all line ends become
    `\n`.

    Args:
        text: The whole file.
        name: Its name, for messages and the log.

    Raises:
        MemoryFileFormatError: If it has no front matter, which begins the message with "missing
            front-matter delimiter" or "unclosed front-matter block"; or if a value is missing, of
            the wrong type or out of range.
    """
    try:
        front, body = _parts(text)
        file = _file(parse_yaml(front), body)
    except MemoryFileFormatError as error:
        raise _named(error, name) from None
    except InvalidArgumentError as error:
        raise _named(MemoryFileFormatError(str(error)), name) from None
    if file.category not in CATEGORIES:
        _log.warning(
            "memory file %s has the unknown category %s, which is kept",
            shown_id(file.id),
            described(file.category),
        )
    return file


def _named(error: MemoryFileFormatError, name: str | None) -> MemoryFileFormatError:
    where = "" if name is None else f" (in {shown_id(name)})"
    return MemoryFileFormatError(f"{error}{where}")


def _parts(text: object) -> tuple[str, str]:
    """Return the front matter and the body."""
    if not isinstance(text, str):
        raise MemoryFileFormatError(f"a memory file is a str, got {described(text)}")
    at = validation.lone_surrogate(text)
    if at is not None or "\0" in text:
        raise MemoryFileFormatError("a memory file holds a NUL character or a lone surrogate")
    whole = text.removeprefix("\ufeff")
    opening = _OPENING.match(whole)
    if opening is None:
        raise MemoryFileFormatError(
            "missing front-matter delimiter: the first line of a memory file is ---; the text of a "
            "plain Markdown file is stored by memory.add"
        )
    closing = _CLOSING.search(whole, opening.end())
    if closing is None:
        raise MemoryFileFormatError(
            "unclosed front-matter block: a line --- ends the front matter of a memory file"
        )
    front = _LINE_END.sub("\n", whole[opening.end() : closing.start()])
    body = whole[closing.end() :]
    return front, _body(body if opening[1] == "\n" else _LINE_END.sub("\n", body))


def _body(text: str) -> str:
    blank = _BLANK_LINE.match(text)
    return (text if blank is None else text[blank.end() :]).removesuffix("\n")


def _file(nodes: dict[str, Node], body: str) -> MemoryFile:
    fields: dict[str, Any] = {key: _text(key, nodes[key]) for key in _TEXTS if key in nodes}
    fields |= {key: _time(key, nodes[key]) for key in _TIMES if key in nodes}
    for key in (*_TEXTS, "created_at", "version"):
        if key not in nodes:
            raise MemoryFileFormatError(f"{key} is missing from the front matter")
    superseded = _text("supersedes", nodes.get("supersedes", _NOTHING))
    return MemoryFile(
        **fields,
        version=_version(nodes["version"]),
        supersedes=superseded or None,
        related=tuple(_related(nodes.get("related", _NOTHING))),
        content="" if body.isspace() else body,
        keys={key: plain_value(node) for key, node in nodes.items() if key not in _KNOWN_KEYS},
    )


_NOTHING: Final = Scalar("", is_plain=True)


def _text(key: str, node: Node) -> str:
    """Return the text of a scalar as it was written; that of null is empty."""
    if not isinstance(node, Scalar):
        raise MemoryFileFormatError(f"{key} must be a text")
    return "" if node.is_plain and node.value is None else node.text


def _time(key: str, node: Node) -> datetime:
    text = _FRACTION.sub(r"\1", _text(key, node).strip())
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise MemoryFileFormatError(
            f"{key} must be a time such as 2026-05-01T12:30:00Z, got {described(text)}"
        ) from None


def _version(node: Node) -> int:
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:  # noqa: PLR2004 - an int of 64 bits
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise MemoryFileFormatError("version must be a whole number from 1")
    return value


def _related(node: Node) -> Iterable[RelatedFile]:
    if isinstance(node, Scalar) and node.value is None:
        return
    if not isinstance(node, list):
        raise MemoryFileFormatError("related must be a list of edges with id and relationship")
    for edge in node:
        if not isinstance(edge, dict) or not {"id", "relationship"} <= edge.keys():
            raise MemoryFileFormatError("an edge of related must have id and relationship")
        yield RelatedFile(_text("id", edge["id"]), _text("relationship", edge["relationship"]))


def serialise_memory_file(file: MemoryFile) -> str:
    """Return the text of a memory file.

    Keys have a fixed order, further ones follow by name; each value takes one line, so none can
    begin a line with a delimiter. A blank line separates the body, which a line end completes.
    `parse_memory_file` returns an equal file.

    Args:
        file: The file.

    Raises:
        MemoryFileFormatError: If a field is missing, of the wrong type or out of range.
    """
    if not isinstance(file, MemoryFile):
        raise MemoryFileFormatError(f"file must be a MemoryFile, got {described(file)}")
    try:
        file.__post_init__()  # a copy by msgspec's replace, or a pickle, is not checked
    except InvalidArgumentError as error:
        raise MemoryFileFormatError(str(error)) from None
    front = "".join(_lines(file))
    if len(front) > MAX_CHARACTERS:
        raise MemoryFileFormatError(
            f"the front matter has {len(front)} characters; at most {MAX_CHARACTERS} are read"
        )
    return f"{_DELIMITER}{front}{_DELIMITER}\n{file.content}\n"


def _lines(file: MemoryFile) -> Iterator[str]:
    yield f"id: {yaml_text(file.id)}\n"
    yield f"created_at: {yaml_time(file.created_at)}\n"
    yield f"updated_at: {yaml_time(file.updated_at)}\n"
    yield f"version: {file.version}\n"
    yield f"scope: {yaml_text(file.scope)}\n"
    yield f"category: {yaml_text(file.category)}\n"
    if file.supersedes is not None:
        yield f"supersedes: {yaml_text(file.supersedes)}\n"
    if file.related:
        yield "related:\n"
    for edge in file.related:
        yield f"  - id: {yaml_text(edge.id)}\n"
        yield f"    relationship: {yaml_text(edge.relationship)}\n"
    yield f"session_id: {yaml_text(file.session_id)}\n"
    yield f"trigger: {yaml_text(file.trigger)}\n"
    for key in sorted(file.keys.keys() - _KNOWN_KEYS):
        yield f"{yaml_text(key)}: {yaml_value(file.keys[key])}\n"
