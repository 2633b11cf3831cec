"""The extension shows the docstrings and signatures of its stub file."""

import ast
import inspect
from pathlib import Path

import pytest

import mnemic
from mnemic import _core

STUB = ast.parse((Path(mnemic.__file__).parent / "_core.pyi").read_text())
FUNCTION = ast.FunctionDef


def documented():
    """Yield name and node of each class, and of each public function, method and property."""
    for node in STUB.body:
        if isinstance(node, ast.ClassDef | FUNCTION) and not node.name.startswith("_"):
            yield node.name, node
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, FUNCTION) and not member.name.startswith("_"):
                    yield f"{node.name}.{member.name}", member


DOCUMENTED = {name: node for name, node in documented() if ast.get_docstring(node)}


def runtime(name):
    found = _core
    for part in name.split("."):
        found = inspect.getattr_static(found, part)
    return found.__func__ if isinstance(found, staticmethod) else found


def test_the_stub_has_every_public_name_of_the_extension_and_a_text_for_it():
    names = set()
    for name, value in vars(_core).items():
        if name.startswith("_") or not (callable(value) or isinstance(value, type)):
            continue
        names.add(name)
        if isinstance(value, type):
            names |= {f"{name}.{member}" for member in vars(value) if not member.startswith("_")}
    assert names == set(DOCUMENTED)
    assert len(names) > 70


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_runtime_docstring_is_that_of_the_stub(name):
    assert runtime(name).__doc__ == inspect.cleandoc(ast.get_docstring(DOCUMENTED[name]))


def parameters(node):
    """Return name, kind and presence of a default of each parameter of a stub's function."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    defaults = len(positional) - len(given.defaults)
    for at, each in enumerate(positional):
        kind = "POSITIONAL_ONLY" if at < len(given.posonlyargs) else "POSITIONAL_OR_KEYWORD"
        yield each.arg, kind, at >= defaults
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield each.arg, "KEYWORD_ONLY", default is not None


def shown(found):
    for each in inspect.signature(found).parameters.values():
        yield each.name, each.kind.name, each.default is not each.empty


def is_property(node):
    return any(getattr(each, "id", None) == "property" for each in node.decorator_list)


SIGNED = [
    name
    for name, node in DOCUMENTED.items()
    if isinstance(node, FUNCTION) and not is_property(node)
]


@pytest.mark.parametrize("name", SIGNED)
def test_the_runtime_signature_is_that_of_the_stub(name):
    wanted = list(parameters(DOCUMENTED[name]))
    found = list(shown(runtime(name)))
    if "." in name:
        wanted, found = wanted[1:], found[1:]  # self, by position alone at run time
    assert found == wanted


MADE = ["VectorMap", "MemoryIndex", "Coverage", "VectorSums"]


@pytest.mark.parametrize("name", MADE)
def test_constructors_show_their_arguments(name):
    (made,) = (each for each in DOCUMENTED[name].body if getattr(each, "name", "") == "__new__")
    assert list(shown(runtime(name))) == list(parameters(made))[1:]
    assert "Ellipsis" not in str(inspect.signature(runtime(name)))
