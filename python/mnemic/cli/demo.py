"""The verb demo: an example conversation, stored and asked."""

import argparse

from mnemic.cli.call import Call


def declare_demo(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of demo."""
    parser.add_argument("file", nargs="?", help="your own JSON lines, Markdown or text file")
    parser.add_argument("--ask", action="append", default=[], help="a question; may be repeated")


def demo(call: Call) -> int:
    """Store, ask, close, open, ask again."""
    from mnemic.demo.__main__ import main  # noqa: PLC0415 - the example

    given = call.given
    arguments = [*([given.file] if given.file else []), *(["--db", given.db] if given.db else [])]
    return main([*arguments, *(part for text in given.ask for part in ("--ask", text))])
