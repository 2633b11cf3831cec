"""Runs the Python of a page: for the tests, and as a program where only a wheel is installed.

The program reads a page's name and its blocks, each a line and a text, as JSON from standard
input, and writes what each of them printed as JSON.
"""

import ast
import asyncio
import contextlib
import inspect
import io
import json
import sys
from pathlib import Path

STAND_INS = Path(__file__).parent.parent / "docs" / "stand_ins"


def run(page, line, text, names):
    """Run a block that begins at a line of a page, and return what it printed."""
    filled = "\n" * (line - 1) + inspect.cleandoc("\n" + text)
    code = compile(filled, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        result = eval(code, names)  # noqa: S307 - the project's own pages
        if inspect.iscoroutine(result):
            asyncio.run(result)
    return printed.getvalue()


if __name__ == "__main__":
    sys.path.append(str(STAND_INS))
    page, blocks = json.load(sys.stdin)
    names = {"__name__": "page"}
    json.dump([run(page, line, text, names) for line, text in blocks], sys.stdout)
