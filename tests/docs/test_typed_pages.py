"""What type checkers see of a page."""

from tests.support.pages import Block
from tests.support.typed_pages import MODULES, module_of, with_pages


def test_a_module_has_the_lines_of_its_page():
    blocks = [
        Block("python", "x = 1\n", 4),
        Block("text", "1\n", 8),
        Block("python", "left out\n", 12, "not run: it needs a server"),
        Block("python", "  if x:\n      y = x\n", 15),
    ]
    lines = module_of(blocks).split("\n")
    assert {at: line for at, line in enumerate(lines, start=1) if line} == {
        4: "x = 1",
        15: "if x:",
        16: "    y = x",
    }


def test_blocks_from_the_first_that_awaits_on_are_a_function():
    blocks = [
        Block("python", "import asyncio\n", 3),
        Block("python", "await asyncio.sleep(0)\n", 8),
        Block("python", "x = 1\n", 12),
    ]
    lines = module_of(blocks).split("\n")
    assert {at: line for at, line in enumerate(lines, start=1) if line} == {
        3: "import asyncio",
        7: "async def page() -> None:",
        8: "    await asyncio.sleep(0)",
        12: "    x = 1",
    }


def test_messages_name_the_page_and_its_line():
    mypy = "target/pages/docs.build.paging.md.py:7: error: no\n"
    pyright = f"{MODULES}/README.md.py\n  {MODULES}/README.md.py:7:1 - error: no\n"
    assert with_pages(mypy) == "docs/build/paging.md:7: error: no\n"
    assert with_pages(pyright) == "README.md\n  README.md:7:1 - error: no\n"
