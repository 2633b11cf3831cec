"""The links and names in the pages: what they lead to exists."""

import os.path
import re
from pathlib import Path

import pytest

from tests.support.pages import BUILT, PAGES, REFERENCE, text_of
from tests.support.paths import ROOT

LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMED = re.compile(r"`([\w/.-]+(?:/|\.(?:py|rs|toml)))`")
FOLDERS = ("", "python/mnemic", "python/mnemic/store/sqlite", "rust/core/src", "tests", "files")
FOLDERS += ("rust/core/src/text", "models/minilm")


@pytest.mark.parametrize("page", [*PAGES, *REFERENCE])
def test_the_files_and_sections_that_a_page_links_or_names_exist(page):
    text = text_of(page)
    assert not list(dead_links(page, text))
    assert not [name for name in set(NAMED.findall(text)) if not exists(name)]


def dead_links(page, text):
    for file, part in LINK.findall(without_code(text)):
        place = os.path.normpath(Path(page).parent / file) if file else page
        if not is_reached(place, page) or (part and part not in sections(place)):
            yield f"{file}#{part}"


def is_reached(place, page):
    """Whether a page's reader finds a place: a checkout is without the reference."""
    if f"{place}/".startswith(BUILT) or place in REFERENCE:
        return page in REFERENCE and place in REFERENCE
    return (ROOT / place).exists()


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("README.md", "docs/none.md"),
        ("README.md", "docs/reference/api/memory.md"),
        ("docs/README.md", "reference/api/README.md#reference"),
        ("docs/README.md", "reference/api"),
        ("docs/README.md", "start/tutorial.md#none"),
        ("docs/README.md", "#none"),
        ("docs/reference/api/memory.md", "none.md"),
        ("docs/reference/api/memory.md", "README.md#none"),
        ("docs/reference/api/memory.md", "../../explain/none.md"),
    ],
)
def test_a_dead_link_is_found(page, link):
    assert len(list(dead_links(page, f"[text]({link})"))) == 1


def without_code(text):
    return re.sub(
        r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    )


def sections(page):
    """Name the sections of a page as its host does: small letters, spaces as hyphens."""
    text = re.sub(r"^```.*?^```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in HEADING.findall(text)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def exists(name):
    return name == BUILT or any((ROOT / folder / name).exists() for folder in FOLDERS)


MODULES = [ROOT / "python/mnemic", ROOT / "rust/core/src"]
TOO_SMALL = {"bits.rs", "deadline.rs", "error.rs", "ids.rs", "lib.rs"}
"""Files of the core that hold less than a module."""


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="docs/ comes with the repository")
def test_the_map_of_the_code_names_every_module():
    modules = {
        place.name + "/" * place.is_dir()
        for folder in MODULES
        for place in folder.iterdir()
        if place.suffix in {".py", ".rs"} or (place.is_dir() and place.name != "__pycache__")
    }
    text = text_of("CONTRIBUTING.md")
    assert not [module for module in modules - TOO_SMALL - {"__init__.py"} if module not in text]


def test_no_page_for_users_has_the_number_of_a_requirement_or_ruling():
    found = {
        page: re.findall(r"\b[RCT]\d{3}\b|document 00[0-4]", text_of(page))
        for page in [*PAGES, *REFERENCE]
        if page != "docs/project/decisions.md"
    }
    assert not {page: numbers for page, numbers in found.items() if numbers}
