"""Turn a JSONL, Markdown or text file into memories."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from mnemic.errors import MnemicError
from mnemic.model.new_entry import FIELDS

MAX_PIECE_LENGTH = 900  # characters; about what the local embedder sees of a text
# With a user the demo's questions would not see the memory; ids are the demo's own.
_FIELDS = frozenset(FIELDS) - {"id", "user_id", "supersedes", "idempotency_key", "expires_at"}
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")  # noqa: RUF001 - CJK marks
_HEADING = re.compile(r"#{1,6}\s+(?=\S)")
_WORD = re.compile(r"\S")
_LIST_ITEM = re.compile(r"(?:[-*+]|\d+[.)])\s+")
_FENCE = ("```", "~~~")


class UnreadableFileError(MnemicError, ValueError):
    """The file cannot be read as a whole; the message says why and what to do."""


class Piece(NamedTuple):
    """One memory to be, and the line it starts at."""

    line: int
    fields: dict[str, Any]


class BadLine(NamedTuple):
    """A line that was left out, and why."""

    line: int
    reason: str


def read(path: Path) -> tuple[list[Piece], list[BadLine]]:
    """Return a file's memories in order, and the lines that hold none.

    JSONL: one object a line, with `content` (or `text`) and any argument of `Memory.add`; other
    keys, ids and users go to metadata. A bad line is left out and reported; the others are kept.
    Markdown: one memory a paragraph or list item, with its heading before it. Text: one memory a
    paragraph, or a line if there are no blank lines. Long paragraphs are split between sentences.

    Raises:
        UnreadableFileError: If there is no such file, or it is not UTF-8 text, or holds nothing.
    """
    text = _text_of(path)
    if path.suffix.lower() in {".jsonl", ".ndjson", ".json"}:
        if text.lstrip().startswith(("[\n", "{\n")):
            raise UnreadableFileError(
                f"{path}: its first value goes over several lines; write one object a line, "
                f"for instance with: jq -c '.[]' {path.name} > lines.jsonl"
            )
        pieces, bad = _read_json_lines(text)
    elif path.suffix.lower() in {".md", ".markdown"}:
        pieces, bad = list(_read_markdown(text)), []
    else:
        pieces, bad = list(_read_paragraphs(text)), []
    if not pieces and not bad:
        raise UnreadableFileError(
            f"{path}: there is nothing in it; write a paragraph and try again"
        )
    return pieces, bad


def _text_of(path: Path) -> str:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise UnreadableFileError(f"{path}: there is no such file") from None
    except OSError as error:
        raise UnreadableFileError(f"{path}: it cannot be read ({error.strerror})") from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UnreadableFileError(
            f"{path}, line {line}: byte 0x{data[error.start]:02x} is not UTF-8; convert the file, "
            f"for instance with: iconv -f latin1 -t utf-8 {path.name} > converted{path.suffix}"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise UnreadableFileError(
            f"{path}, line {line}: there is a NUL character, so this is not a text file; "
            "name a JSONL, Markdown or text file"
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _read_json_lines(text: str) -> tuple[list[Piece], list[BadLine]]:
    pieces: list[Piece] = []
    bad: list[BadLine] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                pieces.append(Piece(number, _fields_of(json.loads(line))))
            except RecursionError:
                bad.append(BadLine(number, "it is nested too deeply"))
            except json.JSONDecodeError as error:
                found = shortened(line, 60)
                reason = f"not JSON at column {error.colno} ({error.msg}): {found!r}"
                bad.append(BadLine(number, reason))
            except ValueError as error:
                bad.append(BadLine(number, str(error)))
    return pieces, bad


def _fields_of(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        return {"content": value}
    if not isinstance(value, dict):
        raise ValueError(  # noqa: TRY004 - reported as a bad line like every other
            f"it is a JSON {type(value).__name__}, not an object with a content"
        )
    fields = {key: item for key, item in value.items() if key in _FIELDS}
    if "content" not in fields and "text" in value:
        fields["content"] = value["text"]
    if fields.get("content") is None:
        raise ValueError(f"it has no content; its keys are {sorted(value)}")
    others = {key: item for key, item in value.items() if key not in _FIELDS and key != "text"}
    if others:
        metadata = fields.get("metadata")
        fields["metadata"] = {**others, **(metadata if isinstance(metadata, dict) else {})}
    return fields


def _read_paragraphs(text: str) -> Iterator[Piece]:
    has_blank_lines = re.search(r"\n[ \t]*\n", text.rstrip()) is not None
    for line, block in _blocks(text) if has_blank_lines else _lines(text):
        for part in split_long(" ".join(block.split())):
            yield Piece(line, {"content": part})


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, line


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield runs of lines between blank ones, each with the number of its first line."""
    start, lines = 1, list[str]()
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        if line.strip():
            start = start if lines else number
            lines.append(line)
        elif lines:
            yield start, "\n".join(lines)
            lines = []


def _read_markdown(text: str) -> Iterator[Piece]:
    heading = ""
    for line, block in _markdown_blocks(text):
        if _HEADING.match(block):
            heading = _title(block)
            continue
        is_code = block.startswith(_FENCE)
        for part in [block] if is_code else split_long(" ".join(block.split())):
            content = f"{heading}: {part}" if heading else part
            fields: dict[str, Any] = {"content": content}
            if heading:
                fields["metadata"] = {"heading": heading}
            yield Piece(line, fields)


def _title(line: str) -> str:
    """Return the text of a heading without its hash signs, before and behind it."""
    marked = _HEADING.sub("", line, count=1).rstrip()
    return marked.rstrip("#").rstrip() or marked


def _markdown_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield headings, list items, code blocks and paragraphs, each with its first line's number."""
    start, lines, fence = 1, list[str](), ""
    for number, line in enumerate([*text.split("\n"), ""], start=1):
        bare = line.strip()
        if fence:
            lines.append(line)
            if bare.startswith(fence):
                yield start, "\n".join(lines)
                lines, fence = [], ""
            continue
        begins = not bare or bare.startswith(_FENCE) or _HEADING.match(bare)
        if lines and (begins or (_LIST_ITEM.match(bare) and not line[0].isspace())):
            yield start, "\n".join(lines)
            lines = []
        if bare:
            start = start if lines else number
            lines.append(bare if not lines else line)
            fence = bare[:3] if bare.startswith(_FENCE) else ""
            if _HEADING.match(bare):
                yield number, lines.pop()
    if lines:
        yield start, "\n".join(lines)


def split_long(text: str) -> Iterator[str]:
    """Yield a text in parts of at most `LONGEST` characters, cut between sentences or words."""
    part = ""
    for sentence in _SENTENCE_END.split(text):
        for piece in _cut(sentence):
            if part and len(part) + 1 + len(piece) > MAX_PIECE_LENGTH:
                yield part
                part = piece
            else:
                part = f"{part} {piece}" if part else piece
    if part:
        yield part


def _cut(sentence: str) -> Iterator[str]:
    begin = 0
    while len(sentence) - begin > MAX_PIECE_LENGTH:
        space = sentence.rfind(" ", begin + 1, begin + MAX_PIECE_LENGTH)
        end = space if space > 0 else begin + MAX_PIECE_LENGTH
        yield sentence[begin:end]
        word = _WORD.search(sentence, end)
        begin = len(sentence) if word is None else word.start()
    if begin < len(sentence):
        yield sentence[begin:]


def shortened(text: str, width: int) -> str:
    """Return a text on one line, cut to `width` characters."""
    line = " ".join(text.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
