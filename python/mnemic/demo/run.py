"""Read a file into memories; store, ask, close, reopen, ask again, and show it."""

import json
import re
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from mnemic._core import __version__, simd_kernel
from mnemic.demo.printing import printable
from mnemic.errors import InvalidArgumentError, MnemicError
from mnemic.memory import Memory
from mnemic.model import MemoryEntry, SearchResults
from mnemic.model.new_entry import FIELDS
from mnemic.reporting.progress import reporting

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


AGENT = "demo"
_AT_ONCE = 32
_WIDTH = 100
_EXAMPLE_CONVERSATION = Path(__file__).with_name("conversation.jsonl")
_EXAMPLE_QUESTIONS = Path(__file__).with_name("questions.jsonl")
_ASKED_AT_MOST = 5
_EXAMPLE_STATEMENT = "Elin lives in Oslo."
_EXAMPLE_TASK = "Answer an e-mail of the shipping company about the dashboard"
_CONTEXT_TOKENS = 150
_SHOWN_LEFT_OUT = 10


class Question(NamedTuple):
    """A question, and the turns (session, position) that answer it, if known."""

    text: str
    evidence: frozenset[tuple[str, int]] = frozenset()


def run(file: Path | None, asked: Sequence[str], limit: int, place: str | None) -> bool:
    """Show a memory on a file or the example; return whether opening again changed no answer.

    Args:
        file: JSON lines, Markdown or text; None is the example conversation.
        asked: Questions; without any those of the example, or those that are typed.
        limit: Number of memories shown for each.
        place: File that keeps the memories; without one they are gone at the end.

    Raises:
        UnreadableFileError: If there are no memories in the file.
        MnemicError: As `Memory` does.
    """
    with tempfile.TemporaryDirectory(prefix="mnemic-demo-") as folder:
        is_same = _run(file, asked, limit, place or f"{folder}/demo.db")
    if place:
        print(f"The memories are kept in {place} (agent {AGENT!r}).")
    return is_same


def _run(file: Path | None, asked: Sequence[str], limit: int, place: str) -> bool:
    read_from = file or _EXAMPLE_CONVERSATION
    pieces, left_out = read(read_from)
    print(f"mnemic {__version__}, vector kernel {simd_kernel()}")
    print("All of it happens in this process: no server, no key, no network.")
    with Memory(place, AGENT) as memory:
        _store(memory, read_from, pieces, left_out)
        answers = _ask(memory, _questions(file, asked), limit)
        if file is None:
            _contradict(memory, limit)
        _build_context(memory, _EXAMPLE_TASK if file is None else next(iter(answers), ""))
    started = time.perf_counter()
    with Memory(place, AGENT) as memory:
        taken = f"{1000 * (time.perf_counter() - started):.0f} ms"
        _begin("Closing and opening", f"Opened {memory.count()} memories in {taken}. Asking again.")
        same = sum(_found(memory, text, limit) == answers[text] for text in answers)
    print(f"{same} of {len(answers)} answers are identical: same memories, order and scores.")
    return same == len(answers)


def _questions(file: Path | None, asked: Sequence[str]) -> Iterator[Question]:
    if asked:
        yield from map(Question, asked)
    elif file is None:
        lines = _EXAMPLE_QUESTIONS.read_text("utf-8").splitlines()
        for line in islice(lines, _ASKED_AT_MOST):
            row = json.loads(line)
            yield Question(row["question"], frozenset(map(tuple, row["evidence"])))
    else:
        print("Ask something, here or by --ask; an empty line ends.")
        with suppress(EOFError):
            while text := input("? ").strip():
                yield Question(text)


def _begin(title: str, text: str) -> None:
    print(f"\n{title}\n\n{textwrap.fill(text, _WIDTH)}")


def _store(
    memory: Memory, file: Path, pieces: Sequence[Piece], unread: Sequence[SkippedPart]
) -> None:
    """Store what is not there yet, and name what of the file is left out."""
    started, before, left_out = time.perf_counter(), memory.count(), [*unread]
    with reporting(True, "storing") as report:  # noqa: FBT003 - a bar
        for first in range(0, len(pieces), _AT_ONCE):
            left_out += _add(memory, pieces[first : first + _AT_ONCE])
            report(min(first + _AT_ONCE, len(pieces)), len(pieces))
    taken, count = time.perf_counter() - started, memory.count()
    for place, reason in left_out[:_SHOWN_LEFT_OUT]:
        print(f"{file}, {place}: left out: {reason}", file=sys.stderr)
    if len(left_out) > _SHOWN_LEFT_OUT:
        print(f"{file}: {len(left_out)} left out in all", file=sys.stderr)
    if not count:
        raise UnreadableFileError(f"{file}: there is no memory in it")
    _begin(
        "Storing",
        f"Stored {count - before} memories of {file.name} in {taken:.2f} s, embedding included; "
        f"{before} were there already. All of them are on disk.",
    )


def _add(memory: Memory, pieces: Sequence[Piece]) -> list[SkippedPart]:
    """Store memories together, or one by one where one of them cannot be stored."""
    try:
        memory.add_many([piece.fields for piece in pieces], on_duplicate="skip")
    except InvalidArgumentError as error:
        if len(pieces) == 1:
            return [SkippedPart(pieces[0].place, str(error.__cause__ or error))]
        return [bad for piece in pieces for bad in _add(memory, [piece])]
    return []


def _ask(memory: Memory, questions: Iterator[Question], limit: int) -> dict[str, SearchResults]:
    _begin(
        "Asking",
        "Memories are ranked by meaning and words. The parts add up to the score. In the example, "
        "+ marks those that hold the answer.",
    )
    return {each.text: _answer(memory, each, limit) for each in questions}


def _found(memory: Memory, text: str, limit: int) -> SearchResults:
    return memory.search(text, limit=limit, explain=True)


def _answer(memory: Memory, question: Question, limit: int) -> SearchResults:
    started = time.perf_counter()
    results = _found(memory, question.text, limit)
    taken = time.perf_counter() - started
    print(f"\n   {question.text} ({1000 * taken:.1f} ms)")
    for hit in results:
        is_evidence = (hit.session_id, hit.entry.position) in question.evidence
        _show(hit.score, hit.entry, str(hit.why), "+" if is_evidence else " ")
    return results


def _contradict(memory: Memory, limit: int) -> None:
    _begin(
        "A contradiction",
        f'memory.contradictions("{_EXAMPLE_STATEMENT}") finds what cannot hold beside it. Rules '
        "decide, no language model is asked.",
    )
    for hit in memory.contradictions(_EXAMPLE_STATEMENT, limit=limit):
        _show(hit.score, hit.entry, hit.match_reason)


def _build_context(memory: Memory, task: str) -> None:
    if not task:  # nothing was asked
        return
    _begin(
        "A text for a prompt",
        f'memory.context("{task}", max_tokens={_CONTEXT_TOKENS}) gives the memories that matter '
        "for a task, with numbers to cite:",
    )
    print(printable(textwrap.indent(memory.context(task, max_tokens=_CONTEXT_TOKENS), "   ")))


def _show(score: float, entry: MemoryEntry, why: str, mark: str = " ") -> None:
    """Print a whole memory below its score and day, and the reasons."""
    who = f"{entry.speaker}: " if entry.speaker else ""
    head = f" {mark} {score:.3f}  {entry.created_at:%Y-%m-%d}  "
    for begin, text in ((head, f"{who}{entry.content}"), (f"{'':10}why: ", why)):
        flat = " ".join(text.split())
        filled = textwrap.fill(
            flat, _WIDTH, initial_indent=begin, subsequent_indent=" " * 10, break_on_hyphens=False
        )
        print(printable(filled))
