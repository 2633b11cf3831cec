"""The steps of the demo, each with a sentence on what it shows."""

import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from mnemic._core import __version__, simd_kernel
from mnemic.demo.printing import Progress, memory_lines, reason, sentence, titled, why_words
from mnemic.demo.reading import BadLine, Piece
from mnemic.demo.timed_embedder import TimedEmbedder
from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from mnemic.memory import Memory
from mnemic.model import SearchResults

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

AGENT = "demo"
_AT_ONCE = 16
_SHOWN_BAD_LINES = 10
_CONTEXT_TOKENS = 150


class Question(NamedTuple):
    """A question, and the turns (session, position) that answer it, if known."""

    text: str
    evidence: frozenset[tuple[str, int]] = frozenset()


class Example(NamedTuple):
    """The example conversation: a name for it, a statement that it contradicts, and a task."""

    source: str
    statement: str
    task: str


class Taken(NamedTuple):
    """Seconds of a call, and of the embedder in it."""

    seconds: float
    embedding: float

    @property
    def without_embedding(self) -> float:
        """The seconds of all but the embedder."""
        return self.seconds - self.embedding


class Tour:
    """The demo on one file of memories."""

    def __init__(
        self, path: str, embedder: "Embedder | None", limit: int, *, is_kept: bool
    ) -> None:
        self._path = path
        self._embedder = TimedEmbedder(embedder or _default_embedder())
        self._limit = limit
        self._is_kept = is_kept
        self._start, self._embedded = 0.0, 0.0
        self._part = 0

    def run(
        self,
        pieces: Sequence[Piece],
        questions: Iterable[Question],
        file: Path | None,
        example: Example | None,
    ) -> int:
        """Show all steps; return the exit status, 1 if an answer changed by reopening."""
        _introduce(example)
        with self._open() as memory:
            storing = self._store(memory, pieces, file, example)
            answers = self._ask(memory, questions, example)
            if example:
                self._contradict(memory, example)
            self._build_context(memory, example.task if example else next(iter(answers), ""))
        is_same, opening = self._reopen(answers)
        self._sum_up(storing, list(answers.values()), opening)
        return 0 if is_same else 1

    def _open(self) -> Memory:
        return Memory(self._path, AGENT, embedder=self._embedder)

    def _begin(self, title: str) -> None:
        self._part += 1
        titled(self._part, title)

    def _begin_clock(self) -> None:
        self._start, self._embedded = time.perf_counter(), self._embedder.seconds

    def _taken(self) -> Taken:
        return Taken(time.perf_counter() - self._start, self._embedder.seconds - self._embedded)

    def _store(
        self, memory: Memory, pieces: Sequence[Piece], file: Path | None, example: Example | None
    ) -> Taken:
        self._begin("Storing")
        source = file or Path("the example conversation")
        new = [piece for piece in _with_ids(pieces) if not _has(memory, piece.fields["id"])]
        if len(new) < len(pieces):
            print(f"{len(pieces) - len(new)} of its memories are there already.")
        self._begin_clock()
        stored = _add_all(memory, new, source)
        taken = self._taken()
        sessions = len({piece.fields.get("session_id") for piece in pieces} - {None})
        of = f" of {sessions} sessions" if sessions else ""
        sentence(
            f"Stored {_memories(stored)}{of} from {example.source if example else source} in "
            f"{taken.seconds:.2f} s, {taken.embedding:.2f} s of them for the embedding (a small "
            "language model turns each text into a vector). All of them are on disk."
        )
        return taken

    def _ask(
        self, memory: Memory, questions: Iterable[Question], example: Example | None
    ) -> dict[str, tuple[SearchResults, Taken]]:
        self._begin("Asking")
        sentence(
            f"Every memory is ranked by meaning and words; the best {self._limit} are shown whole, "
            'with score and day. "why" has the parts that add up to the score, and the words that '
            f"matched.{' A + marks the memories that hold the answer.' if example else ''}"
        )
        return {one.text: self._answer(memory, one) for one in questions}

    def _answer(self, memory: Memory, question: Question) -> tuple[SearchResults, Taken]:
        self._begin_clock()
        results = memory.search(question.text, limit=self._limit, explain=True)
        taken = self._taken()
        print(f"\n   {question.text}")
        for hit in results:
            is_evidence = (hit.session_id, hit.entry.position) in question.evidence
            print(memory_lines(hit.score, hit.entry, "+" if is_evidence else " "))
            print(reason(why_words(hit)))
        print(
            f"   {1000 * taken.without_embedding:.2f} ms, "
            f"and {1000 * taken.embedding:.2f} ms for the embedding of the question"
        )
        return results, taken

    def _contradict(self, memory: Memory, example: Example) -> None:
        self._begin("A contradiction")
        sentence(
            f'memory.contradictions("{example.statement}") finds the memories that cannot hold '
            "beside this statement, and how sure that is. Rules decide, in English; no language "
            "model is asked, and nothing is stored or changed."
        )
        found = memory.contradictions(example.statement, limit=self._limit)
        for hit in found:
            print(memory_lines(hit.score, hit.entry))
            print(reason(hit.match_reason))
        if not found.memories:
            print("   (none found)")

    def _build_context(self, memory: Memory, task: str) -> None:
        self._begin("A text for a prompt")
        sentence(
            f'memory.context("{task}", max_tokens={_CONTEXT_TOKENS}) returns the memories that '
            "matter for a task as one text with numbers to cite:"
        )
        lines = memory.context(task, max_tokens=_CONTEXT_TOKENS).splitlines()
        print("\n".join(f"   {line}" for line in lines or ["(nothing matters for it)"]))

    def _reopen(self, answers: dict[str, tuple[SearchResults, Taken]]) -> tuple[bool, float]:
        self._begin("Closing and opening the file again")
        self._begin_clock()
        with self._open() as memory:
            count = memory.count()
            opening = self._taken().seconds
            print(
                f"Closed, and opened {_memories(count)} in {1000 * opening:.0f} ms. Asking again."
            )
            is_same = all(
                memory.search(text, limit=self._limit, explain=True) == before
                for text, (before, _) in answers.items()
            )
        if is_same:
            whole = "The answer is" if len(answers) == 1 else f"All {len(answers)} answers are"
            print(f"{whole} identical: same memories, same order, same scores.")
        else:
            print("The answers are NOT the same as before.")
        return is_same, opening

    def _sum_up(
        self, storing: Taken, answers: Sequence[tuple[SearchResults, Taken]], opening: float
    ) -> None:
        self._begin("In sum")
        with self._open() as memory:
            count = memory.count()
        size = sum(path.stat().st_size for path in _files(self._path))
        print(f"   memories   {count:,}, in a file of {size / 1e6:.1f} MB")
        print(f"   storing    {storing.seconds:.2f} s, {storing.without_embedding:.2f} s of them "
              "without the embedding")  # fmt: skip
        if answers:
            found = statistics.median(taken.without_embedding for _, taken in answers)
            embedded = statistics.median(taken.embedding for _, taken in answers)
            print(f"   a search   {1000 * found:.2f} ms without the embedding, which took "
                  f"{1000 * embedded:.2f} ms (medians of {len(answers)})")  # fmt: skip
        print(f"   opening    {1000 * opening:.0f} ms")
        if self._is_kept:
            print(f"The memories are kept in {self._path} (agent {AGENT!r}).")


def _default_embedder() -> "Embedder":
    from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - an optional extra

    return MiniLmEmbedder()


def _introduce(example: Example | None) -> None:
    print(f"mnemic {__version__}, vector kernel {simd_kernel()}")
    shown = "stores a conversation in one file, answers questions from it with the reasons, finds "
    shown += "what a statement contradicts, writes a text for a prompt, and gives the same answers "
    if not example:
        shown = "stores your file's texts as memories, answers questions from them with the "
        shown += "reasons, writes a text for a prompt, and gives the same answers "
    sentence(f"This demo {shown}after the file of memories was closed and opened again. All of it "
             "happens in this process: no server, no key, no network.")  # fmt: skip


def _add_all(memory: Memory, new: Sequence[Piece], source: Path) -> int:
    """Store memories in batches; return how many were stored."""
    stored, progress = 0, Progress(len(new), "stored")
    for first in range(0, len(new), _AT_ONCE):
        batch = new[first : first + _AT_ONCE]
        bad = _add(memory, batch)
        report(source, bad)
        stored += len(batch) - len(bad)
        progress.done(first + len(batch))
    progress.finish()
    return stored


def _add(memory: Memory, pieces: Sequence[Piece]) -> list[BadLine]:
    try:
        memory.add_many([piece.fields for piece in pieces])
    except InvalidArgumentError as error:
        if len(pieces) == 1:
            return [BadLine(pieces[0].line, str(error.__cause__ or error))]
        return [bad for piece in pieces for bad in _add(memory, [piece])]
    return []


def _with_ids(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Give each memory an id that is the same in every run, so that none is stored twice."""
    seen: Counter[str] = Counter()
    for line, fields in pieces:
        key = json.dumps(fields, sort_keys=True, default=str)
        seen[key] += 1
        yield Piece(line, {**fields, "id": uuid5(NAMESPACE_URL, f"mnemic-demo:{seen[key]}:{key}")})


def _has(memory: Memory, entry_id: UUID) -> bool:
    try:
        memory.get(entry_id)
    except EntryNotFoundError:
        return False
    return True


def report(path: Path, bad: Sequence[BadLine]) -> None:
    """Name the lines of a file that were left out, up to ten, on standard error."""
    for line, why in bad[:_SHOWN_BAD_LINES]:
        print(f"{path}, line {line}: left out: {why}", file=sys.stderr)
    if len(bad) > _SHOWN_BAD_LINES:
        print(f"{path}: {len(bad)} lines left out in all; correct them and run it again with --db "
              "to add them", file=sys.stderr)  # fmt: skip


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


def _files(path: str) -> Iterator[Path]:
    """Yield the file of a memory and the log beside it, where they are."""
    return (one for one in (Path(path), Path(f"{path}-wal")) if one.is_file())
