"""Store, ask, close, reopen, ask again: `python -m mnemic.demo [FILE]`."""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import NAMESPACE_URL, UUID, uuid5

from mnemic._core import __version__, simd_kernel
from mnemic.demo.reading import BadLine, Piece, UnreadableFileError, read, shortened
from mnemic.errors import EntryNotFoundError, InvalidArgumentError, MnemicError
from mnemic.memory import Memory
from mnemic.model import SearchResults

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mnemic.embed.base import Embedder

AGENT = "demo"
_AT_ONCE = 64
_SHOWN_BAD_LINES = 10
_OWN_QUESTIONS = 5
_OWN_QUESTION_WORDS = 8
_WIDTH = 100


class Question(NamedTuple):
    """A question, and the turns (session, position) that answer it, if known."""

    text: str
    evidence: frozenset[tuple[str, int]] = frozenset()


class TimedEmbedder:
    """An embedder that adds up the seconds it took."""

    def __init__(self, embedder: "Embedder") -> None:
        self._embedder = embedder
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.seconds = 0.0

    def embed(
        self, texts: Sequence[str], /
    ) -> "NDArray[np.floating[Any]] | Awaitable[NDArray[np.floating[Any]]]":
        """Return one vector for each text; a coroutine's time is not added up."""
        start = time.perf_counter()
        vectors = self._embedder.embed(texts)
        self.seconds += time.perf_counter() - start
        return vectors


def main(arguments: Sequence[str] | None = None, embedder: "Embedder | None" = None) -> int:
    """Run the demo; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        pieces, questions = _load(options)
        with _database(options.db) as path:
            return _show(path, pieces, questions, options, embedder)
    except MnemicError as error:
        print(f"mnemic.demo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = f"; what was stored is in {options.db}" if options.db else ""
        print(f"\nmnemic.demo: stopped{kept}", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mnemic.demo", description=__doc__)
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE",
        help="your own JSONL, Markdown or text file; the example conversation if left out",
    )  # fmt: skip
    parser.add_argument(
        "--ask", action="append", default=[], metavar="QUESTION",
        help="a question; may be repeated",
    )  # fmt: skip
    parser.add_argument("--db", metavar="PATH", help="keep the memories in this file")
    parser.add_argument(
        "--limit", type=int, default=3, metavar="N", help="memories shown for each question (3)"
    )
    return parser


def _load(options: argparse.Namespace) -> tuple[list[Piece], list[Question]]:
    path = options.file or _example("conversation.jsonl")
    pieces, bad = read(path)
    _report(path, bad)
    if not pieces:
        raise UnreadableFileError(f"{path}: no line of it could be read")
    asked = [Question(text) for text in options.ask]
    if options.file is None and not asked:
        asked = list(_example_questions())
    return pieces, asked


def _example(name: str) -> Path:
    for folder in (Path(__file__).parents[3] / "examples", Path("examples")):
        if (folder / name).is_file():
            return folder / name
    raise UnreadableFileError(
        f"examples/{name} comes with the repository and is not here; "
        "name a file of your own: python -m mnemic.demo notes.md"
    )


def _example_questions() -> Iterator[Question]:
    for line in _example("questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        evidence = frozenset((session, position) for session, position in row["evidence"])
        yield Question(row["question"], evidence)


def _report(path: Path, bad: Sequence[BadLine]) -> None:
    for line, reason in bad[:_SHOWN_BAD_LINES]:
        print(f"{path}, line {line}: left out: {reason}", file=sys.stderr)
    if len(bad) > _SHOWN_BAD_LINES:
        print(f"{path}: {len(bad)} lines left out in all; correct them and run it again with --db "
              "to add them", file=sys.stderr)  # fmt: skip


@contextmanager
def _database(kept: str | None) -> Generator[str, None, None]:
    if kept:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="mnemic-demo-") as folder:
        yield str(Path(folder) / "demo.db")


def _show(
    path: str,
    pieces: Sequence[Piece],
    questions: list[Question],
    options: argparse.Namespace,
    embedder: "Embedder | None",
) -> int:
    print(f"mnemic {__version__}, kernel {simd_kernel()}")
    with _open(path, embedder) as memory:
        _store(memory, pieces, options.file or Path("the example conversation"))
        asked, before = list[Question](), list[SearchResults]()
        for question in questions or _questions_about(pieces):
            asked.append(question)
            before.append(_ask(memory, question, options.limit))
    print(f"Closed. Opening {path} again.\n")
    start = time.perf_counter()
    with _open(path, embedder) as memory:
        took = 1000 * (time.perf_counter() - start)
        print(f"Opened {_memories(memory.count())} in {took:.0f} ms. Asking again.")
        after = [memory.search(question.text, limit=options.limit) for question in asked]
    if after != before:
        print("The answers are NOT the same as before.")
        return 1
    print(f"All {len(asked)} answers are identical: same memories, same order, same scores.")
    if options.db:
        print(f"The memories are kept in {path} (agent {AGENT!r}).")
    return 0


def _open(path: str, embedder: "Embedder | None") -> Memory:
    if embedder is None:
        from mnemic.embed.minilm import MiniLmEmbedder  # noqa: PLC0415 - an optional extra

        embedder = MiniLmEmbedder()
    return Memory(path, AGENT, embedder=TimedEmbedder(embedder))


def _store(memory: Memory, pieces: Sequence[Piece], source: Path) -> None:
    start = time.perf_counter()
    new = [piece for piece in _with_ids(pieces) if not _has(memory, piece.fields["id"])]
    if len(new) < len(pieces):
        print(f"{len(pieces) - len(new)} of its memories are there already.")
    stored, reported = 0, start
    for first in range(0, len(new), _AT_ONCE):
        bad = _add(memory, new[first : first + _AT_ONCE])
        _report(source, bad)
        stored += len(new[first : first + _AT_ONCE]) - len(bad)
        if time.perf_counter() - reported > 1:
            reported = time.perf_counter()
            print(f"  {stored} of {len(new)} stored", flush=True)
    took = time.perf_counter() - start
    sessions = len({piece.fields.get("session_id") for piece in pieces} - {None})
    of = f" of {sessions} sessions" if sessions else ""
    print(f"Stored {_memories(stored)}{of} from {source} in {took:.2f} s, all of them on disk.\n")


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


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


def _add(memory: Memory, pieces: Sequence[Piece]) -> list[BadLine]:
    try:
        memory.add_many([piece.fields for piece in pieces])
    except InvalidArgumentError as error:
        if len(pieces) == 1:
            return [BadLine(pieces[0].line, _reason(error))]
        return [bad for piece in pieces for bad in _add(memory, [piece])]
    return []


def _reason(error: Exception) -> str:
    return str(error.__cause__ or error)


def _questions_about(pieces: Sequence[Piece]) -> Iterator[Question]:
    if sys.stdin.isatty():
        print("Ask something; an empty line ends.")
        yield from _typed_questions()
        return
    print("No --ask given: asking with the first words of some of its own memories.")
    step = max(1, len(pieces) // _OWN_QUESTIONS)
    for _, fields in pieces[step // 2 :: step][:_OWN_QUESTIONS]:
        words = str(fields["content"]).split()
        yield Question(" ".join(words[:_OWN_QUESTION_WORDS]))


def _typed_questions() -> Iterator[Question]:
    with suppress(EOFError):
        while text := input("? ").strip():
            yield Question(text)


def _ask(memory: Memory, question: Question, limit: int) -> SearchResults:
    embedder = memory.embedder
    before = embedder.seconds if isinstance(embedder, TimedEmbedder) else 0.0
    start = time.perf_counter()
    results = memory.search(question.text, limit=limit)
    took = time.perf_counter() - start
    embedding = embedder.seconds - before if isinstance(embedder, TimedEmbedder) else 0.0
    print(question.text)
    print(f"  {1000 * took:.2f} ms, of which {1000 * embedding:.2f} ms for the embedding")
    for hit in results:
        turn = (hit.session_id, hit.entry.position)
        mark = "+" if turn in question.evidence else " "
        who = f"{hit.entry.speaker}: " if hit.entry.speaker else ""
        print(f" {mark} {hit.score:.3f}  {hit.created_at:%Y-%m-%d}  "
              f"{shortened(who + hit.content, _WIDTH)}")  # fmt: skip
    print()
    return results


if __name__ == "__main__":
    sys.exit(main())
