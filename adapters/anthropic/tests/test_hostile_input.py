"""Texts and paths of any kind are stored or refused, and lose no other file."""

import hostile
import pytest
from anthropic.lib.tools import ToolError
from anthropic_mnemic import MnemicMemoryTool

from mnemic import Memory

OTHER = "/memories/other"


@pytest.fixture
def tool():
    with Memory(":memory:", embedder=None) as memory:
        made = MnemicMemoryTool(memory)
        made.call({"command": "create", "path": OTHER, "file_text": "other"})
        yield made


def call(tool, command, **fields):
    """Call a command, after which the other file is as it was; return the refusals."""
    with hostile.refusals(ToolError) as refused:
        tool.call({"command": command, **fields})
    assert tool.call({"command": "view", "path": OTHER}).endswith("\tother")
    return refused


@hostile.texts
def test_a_text(tool, text):
    path = "/memories/a"
    if call(tool, "create", path=path, file_text=text):
        assert not call(tool, "create", path=path, file_text="tea")
    call(tool, "str_replace", path=path, old_str=text, new_str="cake")
    call(tool, "str_replace", path=path, old_str="tea", new_str=text)
    call(tool, "insert", path=path, insert_line=0, insert_text=text)
    assert not call(tool, "view", path=path)


@hostile.names
@pytest.mark.parametrize("path", ["{}", "/memories/{}", "/memories/{}/a"])
def test_a_path(tool, path, name):
    given = path.format(name)
    refused = call(tool, "create", path=given, file_text="tea")
    for command in ({"command": "view"}, {"command": "delete"}):
        if given.strip("/ ") != "memories":
            assert bool(call(tool, **command, path=given)) == bool(refused)
    call(tool, "rename", old_path=given, new_path="/memories/b")
    call(tool, "create", path="/memories/c", file_text="tea")
    call(tool, "rename", old_path="/memories/c", new_path=given)


@hostile.names
def test_a_user(name):
    with Memory(":memory:", embedder=None) as memory:
        named = MnemicMemoryTool(memory, user_id=name)
        with hostile.refusals():
            named.call({"command": "create", "path": "/memories/a", "file_text": "tea"})
        assert not memory.count()
