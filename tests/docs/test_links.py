"""The links and names in the pages: what they lead to exists."""

import re

import pytest

from tests.support.pages import PAGES, text_of
from tests.support.paths import ROOT

LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
NAMED = re.compile(r"`([\w/.-]+(?:/|\.(?:py|rs|toml)))`")
FOLDERS = ("", "python/mnemic", "python/mnemic/store/sqlite", "rust/core/src", "tests")
FOLDERS += ("rust/core/src/text", "models/minilm")


@pytest.mark.parametrize("page", PAGES)
def test_the_files_and_sections_that_a_page_links_or_names_exist(page):
    text = text_of(page)
    links = [
        ((ROOT / page).parent / file if file else ROOT / page, part)
        for file, part in LINK.findall(without_code(text))
    ]
    assert not [file for file, _ in links if not file.exists()]
    assert not [(file.name, part) for file, part in links if part and part not in sections(file)]
    assert not [name for name in set(NAMED.findall(text)) if not exists(name)]


def without_code(text):
    return re.sub(
        r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
    )


def sections(file):
    """Name the sections of a page as its host does: small letters, spaces as hyphens."""
    text = re.sub(
        r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    titles = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in HEADING.findall(text)]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def exists(name):
    return any((ROOT / folder / name).exists() for folder in FOLDERS)


ROOMS = [ROOT / "python/mnemic", ROOT / "rust/core/src"]
TOO_SMALL = {"bits.rs", "deadline.rs", "error.rs", "ids.rs", "lib.rs"}
"""Files of the core that hold less than a room."""


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="docs/ comes with the repository")
@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/design.md"])
def test_the_maps_of_the_code_name_every_room(page):
    rooms = {
        place.name + "/" * place.is_dir()
        for folder in ROOMS
        for place in folder.iterdir()
        if place.suffix in {".py", ".rs"} or (place.is_dir() and place.name != "__pycache__")
    }
    text = text_of(page)
    assert not [room for room in rooms - TOO_SMALL - {"__init__.py"} if room not in text]


def test_no_page_for_users_has_the_number_of_a_requirement_or_ruling():
    found = {
        page: re.findall(r"\b[RCT]\d{3}\b|document 00[0-4]", text_of(page))
        for page in PAGES
        if page != "docs/decisions.md"
    }
    assert not {page: numbers for page, numbers in found.items() if numbers}
