"""docs/README.md: every page is there once, under its kind, in the order that readers go."""

import re

import pytest

from tests.docs.test_links import dead_links
from tests.support.pages import PAGES, text_of
from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").is_dir(), reason="docs/ comes with the repository"
)

FOLDERS = ("start", "build", "run", "tune", "explain", "reference")
KINDS = {folder.title(): rf"{folder}/[\w-]+\.md" for folder in FOLDERS}
KINDS["Project"] = r"(?:\.\./|project/(?:lab/)?)\w+\.md"
LINK = re.compile(r"\]\(([^)]+)\)")


def sections():
    _, *parts = re.split(r"^## (.+)$", text_of("docs/README.md"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_the_kinds_of_pages_come_in_the_order_that_readers_go():
    assert list(sections()) == list(KINDS)


def test_every_page_is_in_the_index_once_under_its_kind():
    links = {kind: LINK.findall(text) for kind, text in sections().items()}
    assert not [
        (kind, link)
        for kind, found in links.items()
        for link in found
        if not re.fullmatch(KINDS[kind], link)
    ]
    listed = [link for found in links.values() for link in found if not link.startswith("../")]
    pages = [page.removeprefix("docs/") for page in PAGES if page.startswith("docs/")]
    assert sorted(listed) == sorted(page for page in pages if page != "README.md")


def test_coding_agents_find_every_page_for_users_in_the_words_of_the_index():
    text = text_of("docs/llms.txt")
    assert not list(dead_links("docs/llms.txt", text))
    for_users, _ = text_of("docs/README.md").split("\n## Project\n")
    entries = {line for line in for_users.splitlines() if line.startswith("- [")}
    assert entries
    assert not entries - set(text.splitlines())


def test_every_page_begins_with_a_title_and_the_index_is_reached_from_the_readme():
    for page in PAGES:
        assert text_of(page).startswith("# "), page
    assert "](docs/README.md)" in text_of("README.md")
