"""The reference: it has every public name with a text, and is that of the package as it is."""

import ast
import asyncio
import doctest
import inspect
import logging
import re
from datetime import UTC, datetime
from uuid import UUID

import pytest

import mnemic
from tests.support.pages import blocks_of
from tests.support.paths import ROOT

pages = pytest.importorskip("tools.reference.pages", reason="tools/ comes with the repository")
source = pytest.importorskip("tools.reference.source")
FOLDER = ROOT / "docs" / "reference"


@pytest.fixture(scope="module")
def reference():
    made = pages.Reference()
    return made, made.pages()


def test_the_reference_is_that_of_the_package_as_it_is(reference):
    written = {page.name: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}
    changed = [name for name, text in reference[1].items() if written.get(name) != text]
    assert not changed, "make docs writes these pages anew"
    assert set(written) == set(reference[1])


def test_every_public_name_method_and_parameter_has_a_text(reference):
    assert not reference[0].problems


def test_the_reference_has_every_public_name_under_its_own_title(reference):
    titles = {
        title
        for text in reference[1].values()
        for title in re.findall("^## (.+)$", text, re.MULTILINE)
    }
    modules = {name for name in mnemic.__all__ if inspect.ismodule(getattr(mnemic, name))}
    assert modules == {"annotations", "errors", "events", "hyde", "memory_files", "policy"}
    sources = (
        mnemic,
        mnemic.events,
        mnemic.annotations,
        mnemic.hyde,
        mnemic.memory_files,
        mnemic.policy,
    )
    public = {name for source in sources for name in source.__all__} - modules
    errors = {name for name in vars(mnemic.errors) if name.endswith(("Error", "Exception"))}
    assert titles == public | errors


def test_every_public_verb_is_under_its_class(reference):
    text = reference[1]["memory.md"]
    verbs = {name for name in dir(mnemic.Memory) if not name.startswith("_")}
    assert not {
        name for name in verbs if f"### Memory.{name}\n" not in text and f"**{name}** `" not in text
    }
    listed = reference[1]["async.md"]
    assert not {
        name
        for name in dir(mnemic.AsyncMemory)
        if not name.startswith("_")
        and f"### AsyncMemory.{name}\n" not in listed
        and f"[`{name}`](memory.md#" not in listed
        and f"**{name}** `" not in listed
    }


def test_a_parameter_without_a_text_and_a_docstring_that_cannot_be_read_are_found(monkeypatch):
    monkeypatch.setattr(pages, "SHARED", {})
    made = pages.Reference()
    logging.getLogger("griffe").warning("a.py:1: Failed to get 'name: description' pair")
    made.pages()
    assert "Memory.scoped(user_id) has no text" in made.problems
    assert "a.py:1: Failed to get 'name: description' pair" in made.problems


def test_signatures_are_those_of_stubs():
    package = source.loaded_package()
    function = source.object_at(package, "mnemic.VectorMap").members["search"]
    assert source.signature_of("search", function).splitlines()[:5] == [
        "search(",
        "    query: ArrayLike,",
        "    /,",
        "    *,",
        "    k: int = 10,",
    ]


EXAMPLES = [
    (page.name, block)
    for page in sorted(FOLDER.glob("*.md"))
    for block in blocks_of(page.relative_to(ROOT).as_posix())
    if block.language == "pycon"
]


@pytest.mark.parametrize("block", [block for _, block in EXAMPLES], ids=[at for at, _ in EXAMPLES])
def test_the_examples_of_docstrings_run_and_print_what_they_show(block, tmp_path, monkeypatch):
    pytest.importorskip("mnemic_minilm")
    monkeypatch.chdir(tmp_path)
    given = {
        "id": UUID(int=7),
        "agent_id": "aide",
        "content": "Turned dark mode on",
        "user_id": "alice",
        "created_at": datetime(2026, 5, 1, tzinfo=UTC),
    }
    with mnemic.Memory(":memory:") as memory:
        names = {name: getattr(mnemic, name) for name in mnemic.__all__}
        names |= {"memory": memory, "entry": mnemic.MemoryEntry(**given)}
        for example in doctest.DocTestParser().get_examples(block.text):
            shown = run(example.source, names)
            assert not example.want or shown == example.want.strip()


def run(text, names):
    """Run statements; return the repr of the last one's value, where it is an expression."""
    tree = ast.parse(text, mode="exec")
    last = tree.body[-1]
    inner = last.body[-1] if isinstance(last, ast.With | ast.AsyncWith) else last
    if isinstance(inner, ast.Expr):
        inner.value = ast.NamedExpr(ast.Name("shown", ast.Store()), inner.value)
    code = compile(
        ast.fix_missing_locations(tree), "docstring", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    result = eval(code, names)  # noqa: S307 - the project's own docstrings
    if inspect.iscoroutine(result):
        asyncio.run(result)
    return repr(names.pop("shown", None))
