"""The reference that `make docs` builds: it has every public name with a text."""

import ast
import asyncio
import doctest
import inspect
import logging
import re

import pytest

import mnemic
import mnemic_files
from tests.support.pages import BUILT, REFERENCE, blocks_of, reference, text_of
from tests.support.public_names import SHELVES

pages = pytest.importorskip("tools.reference.pages", reason="tools/ comes with the repository")
program = pytest.importorskip("tools.reference.__main__")
source = pytest.importorskip("tools.reference.source")


def test_every_public_name_method_and_parameter_has_a_text():
    assert not reference()[0].problems


def test_make_docs_builds_every_page_and_fails_where_a_public_name_has_no_text(
    tmp_path, monkeypatch
):
    folder = tmp_path / "reference"
    folder.mkdir()
    (folder / "earlier.md").touch()
    monkeypatch.setattr(program, "FOLDER", folder)
    program.main()
    texts = {BUILT + page.name: page.read_text(encoding="utf-8") for page in folder.iterdir()}
    assert texts == {page: text_of(page) for page in REFERENCE}
    monkeypatch.setattr(pages, "shared_texts", lambda *_: {})
    with pytest.raises(SystemExit, match=r"Memory\.scoped\(user_id\) has no text"):
        program.main()


def test_the_reference_has_every_public_name_under_its_own_title():
    titles = {
        title.strip("`")
        for page in REFERENCE
        for title in re.findall("^## (.+)$", text_of(page), re.MULTILINE)
    }
    modules = {name for name in mnemic.__all__ if inspect.ismodule(getattr(mnemic, name))}
    assert modules == {"errors", *(shelf.__name__.removeprefix("mnemic.") for shelf in SHELVES)}
    sources = (mnemic, *SHELVES, mnemic_files)
    public = {name for source in sources for name in source.__all__} - modules
    errors = {name for name in vars(mnemic.errors) if name.endswith(("Error", "Exception"))}
    assert titles == public | errors


def test_every_public_verb_is_under_its_class():
    text = text_of(BUILT + "memory.md")
    verbs = {name for name in dir(mnemic.Memory) if not name.startswith("_")}
    assert not {
        name for name in verbs if f"### Memory.{name}\n" not in text and f"**{name}** `" not in text
    }
    listed = text_of(BUILT + "async.md")
    assert not {
        name
        for name in dir(mnemic.AsyncMemory)
        if not name.startswith("_")
        and hasattr(mnemic.AsyncMemory, name)
        and f"### AsyncMemory.{name}\n" not in listed
        and f"[`{name}`](memory.md#" not in listed
        and f"**{name}** `" not in listed
    }


def test_an_argument_described_once_is_described_at_each_call():
    head, *calls = re.split("^### ", text_of(BUILT + "memory.md"), flags=re.MULTILINE)
    (line,) = re.findall("^- [*][*]filters[*][*]: .*$", head, re.MULTILINE)
    taking = [call for call in calls if "\n    filters: " in call]
    assert len(taking) > 5
    assert all(line in call for call in taking)


def test_a_parameter_without_a_text_and_a_docstring_that_cannot_be_read_are_found(monkeypatch):
    monkeypatch.setattr(pages, "shared_texts", lambda *_: {})
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
        "    k: int = 10,",
        "    *,",
    ]


@pytest.mark.parametrize("page", REFERENCE)
def test_the_examples_of_docstrings_run_and_print_what_they_show(page, tmp_path, monkeypatch):
    pytest.importorskip("mnemic_minilm")
    monkeypatch.chdir(tmp_path)
    for block in blocks_of(page):
        if block.language == "pycon":
            check_example(block)


def check_example(block):
    with mnemic.Memory(":memory:") as memory:
        shelves = (mnemic, *SHELVES)
        names = {name: getattr(shelf, name) for shelf in shelves for name in shelf.__all__}
        names["memory"] = memory
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
