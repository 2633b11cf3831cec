"""Measure the sentences of the pages: `python tools/readability.py [PAGE …]`.

It prints for each page its words, its sentences, their median and the longest one, in words, and
exits with 1 where the median of the pages for users exceeds `MOST_MEDIAN`, or a sentence outside
of the lab notes has more than `MOST_WORDS` words. Code, tables, headings and comments have no
sentences, but the cells of the decisions have. Each item of a list ends a sentence, and what stands
between backticks is one word.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
BUILT = ROOT / "docs" / "reference" / "api"
MOST_MEDIAN = 16
MOST_WORDS = 45
FOR_CONTRIBUTORS = {"decisions.md", "releasing.md"}
LAB = "lab"

_NOT_READ = re.compile(r"^ *```.*?^ *```$|<!--.*?-->|^#.*?$", re.DOTALL | re.MULTILINE)
_RULE = re.compile(r"^ *\|[ :|-]+\|$", re.MULTILINE)
_TABLE = re.compile(r"^ *\|.*$", re.MULTILINE)
_CELL_END = re.compile(r"(?<!\\)\|")
_PARAGRAPH_END = re.compile(r"\n\s*\n|\n(?= *(?:[-*>]|\d+\.) )")
_MARK = re.compile(r"^\s*(?:[-*>]|\d+\.) ")
_CODE = re.compile(r"`[^`]+`")
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_\[]*(?:[A-Z0-9]|mnemic\b))")
_WORD = re.compile(r"\w")


def sentences_of(text: str, *, with_cells: bool = False) -> list[str]:
    """Return the sentences of a page."""
    text = _NOT_READ.sub("\n\n", text)
    if with_cells:
        rows = _RULE.sub("", text)
        text = _TABLE.sub(lambda row: _CELL_END.sub("\n\n", row[0]), rows)
    else:
        text = _TABLE.sub("", text)
    plain = _LINK.sub(r"\1", _CODE.sub("Code", text))
    parts = (_MARK.sub("", part) for part in _PARAGRAPH_END.split(plain))
    sentences = (one for part in parts for one in _SENTENCE_END.split(part.strip()))
    return [" ".join(one.split()) for one in sentences if _WORD.search(one)]


def words_in(sentence: str) -> int:
    """Count the words of a sentence."""
    return sum(bool(_WORD.search(word)) for word in sentence.split())


def is_for_users(page: Path) -> bool:
    """Whether a page is read by users: all but lab notes, decisions and releasing."""
    return LAB not in page.parts and page.name not in FOR_CONTRIBUTORS


def main(names: list[str]) -> bool:
    """Print the figures of pages, all unless some are named; return whether one is too hard."""
    pages = [Path(name) for name in names] or sorted((ROOT / "docs").rglob("*.md"))
    for_users: list[int] = []
    too_long: list[str] = []
    for page in pages:
        if BUILT in page.parents:
            continue
        text = page.read_text(encoding="utf-8")
        sentences = sentences_of(text, with_cells=page.name == "decisions.md")
        lengths = [words_in(sentence) for sentence in sentences] or [0]
        name = page.relative_to(ROOT) if page.is_absolute() else page
        sys.stdout.write(
            f"{name!s:45}{len(text.split()):8,} words{len(sentences):6} sentences"
            f"{median(lengths):6g} median{max(lengths):5} longest\n"
        )
        if is_for_users(page):
            for_users += lengths
        if LAB not in page.parts:
            both = zip(sentences, lengths, strict=False)
            too_long += [f"{name}: {one}" for one, length in both if length > MOST_WORDS]
    middle = median(for_users or [0])
    sys.stdout.write(f"median of the pages for users: {middle:g}, at most {MOST_MEDIAN}\n")
    sys.stdout.writelines(f"more than {MOST_WORDS} words: {one}\n" for one in too_long)
    return middle > MOST_MEDIAN or bool(too_long)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
