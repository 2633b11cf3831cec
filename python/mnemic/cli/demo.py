"""The verb demo: an example conversation, stored and asked."""

import argparse
from pathlib import Path

from mnemic.cli.call import Call


def declare_demo(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of demo."""
    parser.add_argument(
        "file",
        nargs="?",
        type=Path,
        help="your own JSON lines, Markdown or text file; an example conversation if left out",
    )
    parser.add_argument("--ask", action="append", default=[], help="a question; may be repeated")
    parser.add_argument("-n", "--limit", type=int, default=3, help="shown for each question (3)")


def demo(call: Call) -> int:
    """Store, ask, close, open, ask again; return 1 if an answer changed."""
    from mnemic.demo.run import run  # noqa: PLC0415 - the example

    given = call.given
    return int(not run(given.file, given.ask, given.limit, given.db))
