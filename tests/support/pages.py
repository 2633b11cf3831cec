"""The pages for readers, and the blocks of code in them.

Above a block, or hidden in the page, a comment says how it is run:

- `<!-- not run: reason -->` above a block of Python leaves it out.
- `<!-- python` … `-->` is Python that runs and is not shown, such as the memories of an example.

A block of `text` directly below one of Python is its output, and one that prints has one. There
`...` stands for anything in a line, and in a line of its own for any lines; numbers with decimals
may differ by one in the last.

The pages of the reference are made in memory; what `make docs` has left on disk is not read.
"""

import functools
import re
from typing import NamedTuple

from tests.support.paths import ROOT

_PLACES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "files/README.md"]
_PLACES += ["AGENTS.md", "CODE_OF_CONDUCT.md", "SUPPORT.md"]
_PLACES += sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))
BUILT = "docs/reference/api/"
PAGES = [page for page in _PLACES if (ROOT / page).is_file() and not page.startswith(BUILT)]
if (ROOT / "tools").is_dir():
    from tools.reference import page_list

    REFERENCE = [BUILT + file for file in ("README.md", *(page.file for page in page_list.PAGES))]
else:
    REFERENCE = []  # tools/ comes with the repository

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n+)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$"
    r"|^<!-- python\n(?P<hidden>.*?)^-->$",
    re.DOTALL | re.MULTILINE,
)
_ELISION = re.compile(r"^\.\.\.\n|\.\.\.|(?<![\d.])-?\d*\.\d+(?![\d.])", re.MULTILINE)
NOT_RUN = "not run: "


class Block(NamedTuple):
    """A fenced block of a page, or hidden Python; `line` is that of its first line."""

    language: str
    text: str
    line: int
    note: str = ""
    is_below: bool = False

    @property
    def is_run(self):
        return self.language == "python" and not self.note.startswith(NOT_RUN)


@functools.cache
def reference():
    """Make the reference; return it and the texts of its pages."""
    from tools.reference.pages import Reference  # noqa: PLC0415 - it needs griffe, the pages nothing

    made = Reference()
    return made, {BUILT + file: text for file, text in made.pages().items()}


def text_of(page):
    return reference()[1][page] if page in REFERENCE else (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page):
    return list(_blocks(text_of(page)))


def _blocks(text):
    end = 0
    for found in _BLOCK.finditer(text):
        is_below = not text[end : found.start()].strip()
        hidden = found["hidden"]
        group = "hidden" if hidden is not None else "text"
        line = text.count("\n", 0, found.start(group)) + 1
        end = found.end()
        yield Block(
            "python" if hidden is not None else found["language"],
            found[group],
            line,
            found["note"] or "",
            is_below,
        )


def with_outputs(blocks):
    """Give each block of Python with the output that the page shows for it, or None."""
    for block, following in zip(blocks, [*blocks[1:], None], strict=True):
        if block.language == "python":
            is_output = following and following.language == "text" and following.is_below
            yield block, following.text if is_output else None


def is_output(shown, printed):
    """Whether a program printed what a page shows."""
    numbers, parts, end = [], [], 0
    for found in _ELISION.finditer(shown):
        parts.append(re.escape(shown[end : found.start()]))
        parts.append(_pattern(found[0]))
        if not found[0].startswith("..."):
            numbers.append(found[0])
        end = found.end()
    whole = re.fullmatch("".join(parts) + re.escape(shown[end:]), printed)
    return whole is not None and all(
        _is_near(number, got) for number, got in zip(numbers, whole.groups(), strict=True)
    )


def _pattern(part):
    return {"...\n": r"(?:[^\n]*\n)*", "...": r"[^\n]*"}.get(part, r"(-?\d*\.\d+)")


def _is_near(shown, printed):
    digits = len(shown.partition(".")[2])
    return (
        len(printed.partition(".")[2]) == digits
        and abs(float(shown) - float(printed)) < 1.5 * 10.0**-digits
    )
