"""The code of the pages: it runs, and it prints what the page shows."""

import json

import pytest

from tests.docs import stand_ins
from tests.support.page_code import run
from tests.support.pages import NOT_RUN, PAGES, blocks_of, is_output, with_outputs

LEFT_OUT = 2
"""Blocks of Python that are not run; each has its reason above it."""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(block.is_run for block in blocks_of(page))]
)
def test_the_python_of_a_page_runs_as_it_stands(page, tmp_path, monkeypatch):
    pytest.importorskip("mnemic_minilm")
    if page == "docs/build/mcp.md":
        pytest.importorskip("mcp", reason="the extra mcp is not installed")
    monkeypatch.chdir(tmp_path)
    stand_ins.put(monkeypatch)
    names = {"__name__": "page"}
    for block, shown in with_outputs(blocks_of(page)):
        if block.is_run:
            printed = run(page, block.line, block.text, names)
            assert is_output(shown or "", printed), (
                f"{page}:{block.line} shows\n{shown}\nand prints\n{printed}"
            )


def test_every_block_names_its_language_and_those_left_out_their_reason():
    blocks = [(page, block) for page in PAGES for block in blocks_of(page)]
    assert not [(page, block.line) for page, block in blocks if not block.language]
    left_out = [block for _, block in blocks if block.language == "python" and not block.is_run]
    assert len(left_out) == LEFT_OUT
    assert all(len(block.note.removeprefix(NOT_RUN)) > 10 for block in left_out)


def test_json_of_the_pages_can_be_read():
    texts = [
        line
        for page in PAGES
        for block in blocks_of(page)
        for line in {"json": [block.text], "jsonl": block.text.splitlines()}.get(block.language, [])
    ]
    assert len(texts) > 1
    for text in texts:
        json.loads(text)


@pytest.mark.parametrize(
    ("shown", "printed", "is_the_same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\nb\n", "a\n", False),
        ("a ... c\n", "a b c\n", True),
        ("a ... c\n", "a b\nc\n", False),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\nd\n", "a\nb\nc\n", False),
        ("0.309 x\n", "0.310 x\n", True),
        ("0.309 x\n", "0.311 x\n", False),
        ("0.309 x\n", "0.31 x\n", False),
        ("-.5\n", "-.5\n", True),
        ("2 (1.5*)\n", "2 (1.5*)\n", True),
        ("2\n", "3\n", False),
    ],
)
def test_what_a_page_shows_is_compared_with_what_is_printed(shown, printed, is_the_same):
    assert is_output(shown, printed) is is_the_same
