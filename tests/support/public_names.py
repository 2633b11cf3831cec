"""The names in the annotations of public signatures, read from the sources."""

import ast
import importlib
import inspect
import pkgutil
import sys
import textwrap

import mnemic
import mnemic_files
from mnemic import adapters, annotations, compat, embed, events, hyde, llm, model, policy, vectors

SHELVES = (adapters, annotations, compat, embed, events, hyde, llm, model, policy, vectors)
"""The modules that have public names beside `mnemic` and `mnemic.errors`."""

PACKAGES = (mnemic, mnemic_files)
INSIDE = tuple(f"{package.__name__}." for package in PACKAGES)
SKIPPED = ("mnemic.demo", "mnemic.mcp", "mnemic._core")


def modules():
    """Yield every module of the packages that a program imports."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith(SKIPPED):
                yield importlib.import_module(found.name)


def classes():
    """Yield every class of the packages whose name is not private."""
    for module in modules():
        for name, value in vars(module).items():
            is_own = isinstance(value, type) and value.__module__ == module.__name__
            if is_own and not name.startswith("_"):
                yield value


def names_in_signatures(objects):
    """Return the packages' names that annotate the public members of classes and functions.

    With each name the places it stands in. Methods and fields of base classes count.
    """
    found = {}
    for thing in objects:
        for part in inspect.getmro(thing) if inspect.isclass(thing) else (thing,):
            if not (part.__module__ or "").startswith(INSIDE) or not _has_source(part):
                continue
            own = _names_of_package(sys.modules[part.__module__])
            for place, name in _annotations(part, takes_constructor=part is thing):
                if name in own or name.startswith("mnemic."):
                    last = name.rpartition(".")[2]
                    found.setdefault(last, set()).add(f"{part.__module__}.{place}")
    return found


def _has_source(thing):
    try:
        inspect.getsource(thing)
    except (OSError, TypeError):
        return False
    return True


def _names_of_package(module):
    tree = ast.parse(inspect.getsource(module))
    names = set()
    for node in ast.walk(tree):
        module = getattr(node, "module", None) or ""
        if module.startswith("mnemic") and module != "mnemic.arrays":  # which has types of numpy
            names.update(each.asname or each.name for each in node.names)
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


def _annotations(thing, *, takes_constructor):
    tree = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    members = tree.body if isinstance(tree, ast.ClassDef) else [tree]
    for member in members:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef):
            if not member.name.startswith("_") or (member.name == "__init__" and takes_constructor):
                yield from _of_function(member)
        elif isinstance(member, ast.AnnAssign) and not member.target.id.startswith("_"):
            yield from ((member.target.id, name) for name in _names(member.annotation))


def _of_function(function):
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    parts = [each.annotation for each in arguments if each is not None]
    for part in [*parts, function.returns]:
        if part is not None:
            yield from ((function.name, name) for name in _names(part))


def _names(node):
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", None) == "Annotated":
        node = node.slice.elts[0]  # the rest is no type
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute) and part.attr[0].isupper():  # no module
            yield ast.unparse(part)
        elif isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield from _quoted(part.value)


def _quoted(text):
    try:
        yield from _names(ast.parse(text, mode="eval").body)
    except SyntaxError:
        return
