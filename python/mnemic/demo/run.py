"""Store, ask, close, reopen, ask again, and show it."""

import json
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mnemic._core import __version__, simd_kernel
from mnemic.demo.printing import printable
from mnemic.demo.reading import Piece, SkippedPart, UnreadableFileError, read
from mnemic.errors import InvalidArgumentError
from mnemic.memory import Memory
from mnemic.model import MemoryEntry, SearchResults
from mnemic.reporting.progress import reporting

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
