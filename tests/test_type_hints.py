"""Annotations of public names are resolved at run time, as frameworks do that read them."""

import inspect
import subprocess
import sys
import typing

import pytest

import mnemic
import mnemic_files
from mnemic import errors
from tests.support.public_names import SHELVES

HOMES = (mnemic, errors, *SHELVES, mnemic_files)


def public_things():
    """Return every public class and function by name; several shelves may have one."""
    named = {name: getattr(home, name) for home in HOMES for name in dir(home) if name[0] != "_"}
    return {
        name: thing
        for name, thing in named.items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and thing.__module__.startswith("mnemic")
    }


def functions_of(thing):
    """Yield the name and the function of the constructor, public methods and properties."""
    if inspect.isfunction(thing):
        yield thing.__name__, thing
        return
    for name in dir(thing):
        member = inspect.getattr_static(thing, name)
        if isinstance(member, property):
            member = member.fget
        member = getattr(member, "__func__", member)
        if inspect.isfunction(member) and (name[0] != "_" or name == "__init__"):
            yield name, member


@pytest.mark.parametrize("name", sorted(public_things()))
def test_every_annotation_is_resolved(name):
    thing = public_things()[name]
    if inspect.isclass(thing):
        typing.get_type_hints(thing)
    for _, function in functions_of(thing):
        hints = typing.get_type_hints(function)
        assert not any(isinstance(hint, str | typing.ForwardRef) for hint in hints.values())


@pytest.mark.parametrize("name", sorted(public_things()))
def test_signatures_are_read_with_their_types(name):
    thing = public_things()[name]
    for _, function in functions_of(thing):
        shape = inspect.signature(function, eval_str=True)
        assert not any(isinstance(each.annotation, str) for each in shape.parameters.values())


def test_the_walk_finds_constructors_methods_and_properties():
    found = dict(functions_of(mnemic.Memory))
    assert {"__init__", "add", "model_of", "events", "search"} <= set(found)
    assert len(public_things()) > 200


def test_annotations_are_resolved_in_a_program_that_imported_one_name():
    code = (
        "import typing; from mnemic import Memory; hints = typing.get_type_hints; "
        "print(hints(Memory.__init__)['expander'], hints(Memory.context)['return'])"
    )
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert shown.startswith("mnemic.retrieval.") or "Expander" in shown
    assert "MemoryContext" in shown
