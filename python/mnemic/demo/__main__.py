"""Store, ask, close, reopen, ask again: `python -m mnemic.demo [FILE]`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mnemic.demo.reading import Piece, UnreadableFileError, read
from mnemic.demo.tour import Example, Question, Tour, report
from mnemic.errors import MnemicError

if TYPE_CHECKING:
    from mnemic.embed.base import Embedder

_OWN_QUESTIONS = 5
_OWN_QUESTION_WORDS = 8
_EXAMPLE_QUESTIONS = 5
_EXAMPLE = Example(
    source="a made-up half-year of conversation between Elin and her assistant",
    statement="Elin lives in Oslo.",
    task="Answer an e-mail of the shipping company about the dashboard",
)


def main(arguments: Sequence[str] | None = None, embedder: "Embedder | None" = None) -> int:
    """Run the demo; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        pieces, questions = _load(options)
        with _database(options.db) as path:
            tour = Tour(path, embedder, options.limit, is_kept=bool(options.db))
            example = None if options.file else _EXAMPLE
            return tour.run(pieces, questions or _questions_about(pieces), options.file, example)
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
    report(path, bad)
    if not pieces:
        raise UnreadableFileError(f"{path}: no line of it could be read")
    asked = [Question(text) for text in options.ask]
    if options.file is None and not asked:
        asked = list(_example_questions())[:_EXAMPLE_QUESTIONS]
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


@contextmanager
def _database(kept: str | None) -> Generator[str, None, None]:
    if kept:
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="mnemic-demo-") as folder:
        yield str(Path(folder) / "demo.db")


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


if __name__ == "__main__":
    sys.exit(main())
