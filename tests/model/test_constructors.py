"""Constructors that stand in records for type checkers alone."""

import ast
import inspect
from textwrap import dedent

import pytest

from mnemic import MemoryEntry, MemoryEntryUpdate, MemoryFilter


@pytest.mark.parametrize("record", [MemoryEntry, MemoryEntryUpdate, MemoryFilter])
def test_type_checkers_read_a_constructor_with_every_field(record):
    nodes = ast.walk(ast.parse(dedent(inspect.getsource(record))))
    made = next(node for node in nodes if getattr(node, "name", "") == "__init__")
    named = {each.arg for each in (*made.args.args, *made.args.kwonlyargs)}
    assert named - {"self"} == set(record.__struct_fields__)
