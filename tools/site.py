"""Lay out the pages for the site, which Zensical then builds: `make site`.

Pages keep their places in the repository, so that their links hold; links to other files of it lead
to where it is hosted. docs/README.md has the pages in the order of the navigation.
"""

import os.path
import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path, PurePath

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "target" / "site" / "pages"
INDEX = "docs/README.md"
NAMES = "docs/reference/api/README.md"
"""The list of public names, which `make docs` builds with its pages."""
NOT_SEARCHED = (
    *("docs/project/", "AGENTS.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md"),
    "docs/reference/api/long-term.md",
)
"""Pages for contributors, and other names of the same calls, which would come before how-tos."""
UNSEARCHED = "---\nsearch:\n  exclude: true\n---\n"
STYLE = "tools/site.css"
LINK = re.compile(r"(?<=\]\()([^)#:\s]+)")
LISTED = re.compile(r"\[([^]]+)\]\(([^)#:\s]+)\)")
NAMED = re.compile(r"(?<=^- \*\*)" + LISTED.pattern, re.MULTILINE)
CODE = re.compile(r"(^ *```.*?^ *```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
NESTED = re.compile(r"^ {2,3}(?=[-*] )|(?<=\n\n) {2,3}(?=\S)", re.MULTILINE)
"""The margin of lists and paragraphs inside a list, which Zensical wants to be of four spaces."""
HIDDEN = re.compile(r"^<!--.*?-->\n", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Write all pages, their pictures and the navigation."""
    shutil.rmtree(PAGES, ignore_errors=True)
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.svg")]
    places = {file.relative_to(ROOT).as_posix() for file in files}
    for place in places:
        copy = PAGES / place
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / place).read_text(encoding="utf-8")
        is_page = copy.suffix == ".md"
        copy.write_text(published(place, text, places) if is_page else text, encoding="utf-8")
    shutil.copy(ROOT / STYLE, PAGES)
    navigation = "".join(f"{line}\n" for line in listed_pages())
    (PAGES / "SUMMARY.md").write_text(navigation, encoding="utf-8")


def published(place: str, text: str, places: set[str]) -> str:
    """Return a page without its hidden parts, with links to files beside the site made absolute."""
    parts = CODE.split(HIDDEN.sub("", text))
    parts[::2] = [
        NESTED.sub(" " * 4, LINK.sub(lambda link: reached(place, link[1], places), part))
        for part in parts[::2]
    ]
    return UNSEARCHED * place.startswith(NOT_SEARCHED) + "".join(parts)


def reached(place: str, link: str, places: set[str]) -> str:
    """Return where a link of a page leads: a page of the site, or a file where the code is."""
    goal = os.path.normpath(PurePath(place).parent / link)
    return link if goal in places else f"{repository()}/blob/main/{goal}"


def repository() -> str:
    """Return the address of the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["urls"]["Repository"])


def listed_pages() -> Iterator[str]:
    """Yield the navigation as a list: the sections of the index, and the pages of each."""
    yield "- [Home](README.md)"
    yield f"- [All pages]({INDEX})"
    for title, text in sections((ROOT / INDEX).read_text(encoding="utf-8"), "##"):
        own, *_ = text.split("\n### ")
        yield f"- {title}"
        yield from entries(INDEX, LISTED.findall(own), "    ")
        if title == "Reference":
            yield "    - Every public name"
            names = (ROOT / NAMES).read_text(encoding="utf-8")
            yield from entries(NAMES, NAMED.findall(names), "        ")
        for name, part in sections(text, "###"):
            yield f"    - {name}"
            yield from entries(INDEX, LISTED.findall(part), "        ")


def sections(text: str, mark: str) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts of a page's sections of one level."""
    _, *parts = re.split(rf"^{mark} (.+)$", text, flags=re.MULTILINE)
    yield from zip(parts[::2], parts[1::2], strict=True)


def entries(place: str, links: list[tuple[str, str]], margin: str) -> Iterator[str]:
    """Yield the pages that a page links, as a list."""
    for title, link in links:
        yield f"{margin}- [{title}]({os.path.normpath(PurePath(place).parent / link)})"


if __name__ == "__main__":
    main()
