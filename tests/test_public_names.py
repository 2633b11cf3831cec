import ast
import enum
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Literal, get_origin

import msgspec
import pytest

import mnemic
import mnemic_files
from mnemic import annotations, errors, events, model
from mnemic.threads.locks import Event
from tests.support.public_names import SHELVES, classes, names_in_signatures
from tests.support.signatures import parameters

INTERNAL_ENUMS = {
    "Kind",  # of a declared field
    "NumberedEnum",  # base of the public ones
    "LogState",  # of SQLite's log
    "Op",  # of a parsed filter
    "Order",  # of a request to the index
    "State",  # of a row
}
INTERNAL_TYPES = {
    "AddFields",  # of the overloads of `add`, whose docstring has them
    "DistinctValues",  # list[DistinctValue], in a class that has a method `list`
    "Entries",  # list[MemoryEntry], likewise
    "Filters",  # MemoryFilter, or a dict of the grammar
    "Repository",  # services of the package take it
    "TimeLimit",  # of options that compute it
}


def public_names():
    modules = (mnemic, *SHELVES, mnemic_files)
    return {*vars(errors), *(name for module in modules for name in module.__all__)}


def public_objects():
    modules = (mnemic, *SHELVES, mnemic_files)
    found = [getattr(module, name) for module in modules for name in module.__all__]
    return [thing for thing in found if inspect.isclass(thing) or inspect.isfunction(thing)]


def test_dir_shows_the_public_names_and_nothing_else():
    assert dir(mnemic) == sorted(mnemic.__all__)


@pytest.mark.parametrize("name", sorted(mnemic.__all__))
def test_each_public_name_can_be_imported(name):
    namespace = {}
    exec(f"from mnemic import {name}", namespace)  # noqa: S102 - as a program does
    assert namespace[name] is getattr(mnemic, name)


def test_the_modules_with_public_names_are_there_after_importing_the_package():
    code = (
        "import mnemic; mnemic.errors.MnemicError; mnemic.events.Events; mnemic.annotations.Clock; "
        "mnemic.policy.RetrievalPolicy; mnemic.hyde.AsyncHydeEngine"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_error_is_in_the_module_of_errors_or_with_the_memory_files():
    own = {each for each in classes() if issubclass(each, errors.MnemicError)}
    homes = {each: mnemic_files if _is_of_files(each) else errors for each in own}
    assert own == {each for each in own if getattr(homes[each], each.__name__, None) is each}
    assert {each for each in own if _is_of_files(each)}


def _is_of_files(thing):
    return thing.__module__.startswith("mnemic_files.")


def test_every_event_is_in_the_module_of_events():
    kinds = {each for each in classes() if each.__name__.endswith("Event")} - {Event}
    assert all(issubclass(kind, msgspec.Struct) for kind in kinds)
    assert kinds == {getattr(events, name) for name in events.__all__ if name.endswith("Event")}
    memory = mnemic.Memory(":memory:", embedder=None)
    for kind in kinds:
        memory.events.subscribe(kind, print)()  # refused for what is no event


def test_every_enum_is_public_or_named_as_internal():
    enums = {each.__name__ for each in classes() if issubclass(each, enum.Enum)}
    assert enums - INTERNAL_ENUMS <= public_names()
    assert enums >= INTERNAL_ENUMS


def test_every_result_is_public():
    ends = ("Result", "Results", "Report", "Stats", "Page", "Usage", "Options", "Breakdown")
    names = {each.__name__ for each in classes() if each.__name__.endswith(ends)}
    internal = {
        "AddOptions",
        "AsyncRetrievalStats",
        "EntryPage",
        "RankedPage",
        "SqlUsage",
        "Usage",
    }  # of modules
    internal |= {"AdditionResult", "ScanResult", "WriteResult"}
    assert names - internal <= public_names()


def test_every_type_of_a_public_signature_is_public():
    found = names_in_signatures(public_objects())
    missing = {name: sorted(at) for name, at in found.items() if name not in public_names()}
    assert {name: at for name, at in missing.items() if name not in INTERNAL_TYPES} == {}
    assert set(missing) == INTERNAL_TYPES


def test_the_values_of_arguments_are_with_the_annotations():
    words = {
        name
        for module in (model, annotations)
        for name in module.__all__
        if get_origin(getattr(module, name)) is Literal
    }
    assert words >= {"OnConflict", "SearchType"}
    assert words <= set(annotations.__all__)


def functions_of(thing):
    if not inspect.isclass(thing):
        return [thing]
    methods = [each for each in vars(thing).values() if inspect.isfunction(each)]
    return [each for each in methods if not each.__name__.startswith("_")]


def test_signatures_name_no_type_that_help_cannot_print_as_a_word():
    shown = {
        f"{each.__qualname__}{inspect.signature(each)}"
        for thing in public_objects()
        for each in functions_of(thing)
    }
    shown |= {f"{each.__name__}{inspect.signature(each)}" for each in (mnemic.MemoryEntry,)}
    assert any("mnemic.arrays.ArrayLike" in each for each in shown)
    unreadable = ("numpy._typing", "ForwardRef", "MemoryField")
    assert [each for each in shown if any(word in each for word in unreadable)] == []


@pytest.mark.parametrize("door", [mnemic.Memory, mnemic.AsyncMemory, mnemic.ScopedMemory])
@pytest.mark.parametrize("verb", ["add", "search"])
def test_add_and_search_take_at_most_seventeen_arguments(door, verb):
    assert len(parameters(getattr(door, verb))) <= 17


def test_the_walk_finds_the_types_of_methods_fields_and_bases():
    found = names_in_signatures([mnemic.Memory, mnemic.AsyncMemory, mnemic.SearchHit])
    assert {"MemoryPage", "OnConflict", "Why", "MemoryEntry"} <= set(found)


@pytest.mark.parametrize("module", [*SHELVES, mnemic_files])
def test_each_name_of_a_service_module_can_be_imported(module):
    assert all(getattr(module, name) is not None for name in module.__all__)


@pytest.mark.parametrize("module", [errors, *SHELVES, mnemic_files])
def test_the_module_says_what_it_has(module):
    assert module.__doc__
    public = [value for name, value in vars(module).items() if not name.startswith("_")]
    assert all(thing.__doc__ for thing in public if inspect.isclass(thing))


def test_the_programs_use_public_names_alone_as_those_of_strangers():
    rooms = ("cli", "importers", "mcp")
    own_modules = tuple(f"mnemic.{room}" for room in (*rooms, "demo"))
    shelves = {each.__name__: set(each.__all__) for each in (mnemic, *SHELVES)}
    shelves["mnemic.errors"] = set(vars(errors))
    own, foreign = 0, set()
    for path in (Path(mnemic.__file__).parent / room for room in rooms):
        for module, name in imported_names(path):
            if module.startswith(own_modules):
                own += 1
            elif name not in shelves.get(module, ()):
                foreign.add(f"{path.name}: {module}.{name}")
    assert foreign == set()
    assert own > 50


def imported_names(folder):
    """Yield what the modules of a folder import of mnemic: modules, with names from them."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((each.name, "") for each in node.names if is_of_package(each.name))
            elif isinstance(node, ast.ImportFrom) and is_of_package(node.module or "mnemic"):
                yield from ((node.module or "mnemic", each.name) for each in node.names)


def is_of_package(module):
    return module.partition(".")[0] == "mnemic"
