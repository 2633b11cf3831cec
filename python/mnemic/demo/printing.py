"""The demo's output: whole memories, the reasons for a score in words, and progress."""

import sys
import textwrap
import time
from collections.abc import Sequence

from mnemic.model import MemoryEntry, SearchHit, Why, WordMatch

WIDTH = 100
_SECONDS_BETWEEN_LINES = 5.0
_MOST_WORDS = 8
_SMALLEST_PART = 0.0005  # shown as 0.001
_PARTS = {
    "similarity": "meaning",
    "keyword": "words",
    "chunks": "one chunk of many",
    "neighbours": "turns beside it",
    "question": "it is a question",
    "date": "near the date",
    "speaker": "its speaker is named",
    "answer_type": "the kind of value asked for",
    "clamped": "brought back to 0 to 1",
}
_TURNS = {1: "one turn before: ", 2: "two turns before: "}


def titled(number: int, title: str) -> None:
    """Print the title of a part."""
    print(f"\n{number}. {title}\n")


def sentence(text: str) -> None:
    """Print a text within the width."""
    print(textwrap.fill(text, WIDTH))


def memory_lines(score: float, entry: MemoryEntry, mark: str = " ") -> str:
    """Return a whole memory below its score and day."""
    who = f"{entry.speaker}: " if entry.speaker else ""
    head = f" {mark} {score:.3f}  {entry.created_at:%Y-%m-%d}  "
    return _indented(head, f"{who}{entry.content}", len(" + 0.123  "))


def reason(text: str) -> str:
    """Return a reason, below the memory that it is for."""
    return _indented(f"{'':10}why: ", text, 15)


def why_words(hit: SearchHit) -> str:
    """Return the reasons for a hit in words, the largest part of its score first."""
    why = hit.why
    if why is None:
        return ""
    shown = [name for name, part in why.parts.items() if abs(part) >= _SMALLEST_PART]
    shown.sort(key=lambda name: -why.parts[name])
    return "; ".join(f"{_named(name, why)} {why.parts[name]:+.3f}" for name in shown)


def _named(part: str, why: Why) -> str:
    if part == "keyword":
        return f"words {_matched(why.words)}".rstrip()
    return f"said by the {why.role}" if part == "role" else _PARTS.get(part, part)


def _matched(words: Sequence[WordMatch]) -> str:
    """Return the first words in brackets, those of the memory itself before those of its turns."""
    by_turn = dict[int, list[str]]()
    for word in words[:_MOST_WORDS]:
        by_turn.setdefault(word.turn, []).append(_match(word))
    if len(words) > _MOST_WORDS:
        by_turn[max(by_turn)].append("…")
    groups = [f"{_TURNS.get(turn, '')}{', '.join(by_turn[turn])}" for turn in sorted(by_turn)]
    return f"({'; '.join(groups)})" if groups else ""


def _match(word: WordMatch) -> str:
    is_same = word.query.casefold() == word.memory.casefold()
    return word.query if is_same else f"{word.query} as {word.memory}"


def _indented(head: str, text: str, indent: int) -> str:
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )


class Progress:
    """How much is done: one line that changes at a terminal, else a line every few seconds."""

    def __init__(self, total: int, noun: str) -> None:
        self._total, self._noun = total, noun
        self._is_terminal = sys.stdout.isatty()
        self._shown = time.monotonic()

    def done(self, count: int) -> None:
        """Show that so many are done."""
        line = f"   {count:,} of {self._total:,} {self._noun}"
        if self._is_terminal:
            print(f"\r{line}", end="", flush=True)
        elif time.monotonic() - self._shown > _SECONDS_BETWEEN_LINES:
            self._shown = time.monotonic()
            print(line, flush=True)

    def finish(self) -> None:
        """Clear the line of a terminal."""
        if self._is_terminal:
            print("\r\x1b[K", end="", flush=True)
