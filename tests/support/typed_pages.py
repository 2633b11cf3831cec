"""Has mypy and basedpyright check the Python of the pages: `make types`.

A page is one module, below target/, whose lines have the numbers that they have in the page.
"""

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
from textwrap import indent

from tests.support.pages import PAGES, blocks_of
from tests.support.paths import ROOT

MODULES = ROOT / "target" / "pages"
_PAGES = {f"{page.replace('/', '.')}.py": page for page in PAGES}
_TOOLS = [
    # Names of a page may have a value of another type in a later block.
    ["mypy", "--allow-redefinition", "--follow-imports", "silent", MODULES],
    ["basedpyright", "--project", "tests/typed/pages.json"],
]


def main():
    shutil.rmtree(MODULES, ignore_errors=True)
    MODULES.mkdir(parents=True)
    for file, page in _PAGES.items():
        (MODULES / file).write_text(module_of(blocks_of(page)), encoding="utf-8")
    return max(_status(tool) for tool in _TOOLS)


def module_of(blocks):
    """Return the blocks that run as one module; from the first that awaits on as a function."""
    lines, margin = [], ""
    for block in blocks:
        if not block.is_run:
            continue
        code = inspect.cleandoc("\n" + block.text)
        lines += [""] * (block.line - 1 - len(lines))
        if not margin and _awaits(code):
            margin = "    "
            lines[-1] = "async def page() -> None:"
        lines += indent(code, margin).splitlines()
    return "\n".join([*lines, ""])


def _awaits(code):
    compiled = compile(code, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return bool(compiled.co_flags & inspect.CO_COROUTINE)


def with_pages(messages):
    """Return the messages of a type checker with pages in place of modules."""
    modules = rf"(?:{re.escape(str(ROOT))}/)?target/pages/([^:\s]+)"
    return re.sub(modules, lambda found: _PAGES[found[1]], messages)


def _status(tool):
    process = subprocess.run(
        [sys.executable, "-m", *tool],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": "tests/docs/stand_ins"},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    sys.stdout.write(with_pages(process.stdout))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
