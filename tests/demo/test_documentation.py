"""The pages for readers: their Python runs, and the files they name exist."""

import ast
import asyncio
import inspect
import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

from mnemic import Memory, MemoryEntry
from tests.support.paths import ROOT

PAGES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
PAGES += sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))
PAGES = [page for page in PAGES if (ROOT / page).is_file()]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
NAMED = re.compile(r"`([\w/.-]+(?:/|\.(?:py|rs|toml)))`")
FOLDERS = ("", "python/mnemic", "python/mnemic/store/sqlite", "rust/core/src", "tests")
FOLDERS += ("rust/core/src/text", "models/minilm")


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


def memory_of_alice():
    memory = Memory(":memory:")
    memory.add("Ana moved to Oslo in May", user_id="alice")
    memory.add("Allergic to peanuts", user_id="alice", tags=["health"])
    return memory


def entry_of_alice():
    return MemoryEntry(
        id=UUID(int=7),
        agent_id="aide",
        content="Turned dark mode on",
        user_id="alice",
        created_at=datetime(2026, 5, 1, tzinfo=UTC),
    )


GIVEN = {
    "docs/concepts/memory.md": {"entry": entry_of_alice},
    "docs/concepts/search.md": {"memory": memory_of_alice},
}
"""What a page's blocks have by then, by name."""

NOT_RUN = {("docs/concepts/context.md", 1): "needs a tokenizer's file"}


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(text_of(page))])
def test_the_python_of_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    pytest.importorskip("mnemic_minilm")
    monkeypatch.chdir(tmp_path)
    names = {name: make() for name, make in GIVEN.get(page, {}).items()}
    for number, block in enumerate(BLOCK.findall(text_of(page))):
        code = compile(
            block, f"{page}, block {number}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        )
        if (page, number) not in NOT_RUN:
            result = eval(code, names)  # noqa: S307 - the project's own pages
            if inspect.iscoroutine(result):
                asyncio.run(result)


@pytest.mark.parametrize("page", PAGES)
def test_the_files_that_a_page_links_or_names_exist(page):
    text = text_of(page)
    folder = (ROOT / page).parent
    assert not [link for link in LINK.findall(text) if not (folder / link).exists()]
    assert not [name for name in set(NAMED.findall(text)) if not exists(name)]


def exists(name):
    return any((ROOT / folder / name).exists() for folder in FOLDERS)


def test_no_page_for_users_has_the_number_of_a_requirement_or_ruling():
    found = {
        page: re.findall(r"\b[RCT]\d{3}\b|document 00[0-4]", text_of(page))
        for page in PAGES
        if page != "docs/decisions.md"
    }
    assert not {page: numbers for page, numbers in found.items() if numbers}
