"""The names of a package, which stand in its stub alone."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import mnemic

PACKAGE = Path(mnemic.__file__).parent
STUBS = [path for path in PACKAGE.rglob("*.pyi") if path.stem != "_core"]


def package_of(stub):
    parts = stub.relative_to(PACKAGE.parent).with_suffix("").parts
    return importlib.import_module(".".join(parts).removesuffix(".__init__"))


def imports_of(stub):
    """Yield the module, the name and the new name of each import, as Python's parser reads them."""
    for statement in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(statement, ast.ImportFrom)
        yield from ((statement.module, each.name, each.asname) for each in statement.names)


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_a_package_has_the_names_of_its_stub_and_nothing_else(stub):
    package, names = package_of(stub), [name for _, name, _ in imports_of(stub)]
    assert package.__all__ == dir(package) == sorted(names)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_each_name_is_what_the_stub_imports(stub):
    package = package_of(stub)
    for module, name, shown in imports_of(stub):
        assert shown == name  # otherwise type checkers take it for private
        namespace = {}
        exec(f"from {module} import {name}", namespace)  # noqa: S102 - as the stub says
        assert getattr(package, name) is namespace[name]


@pytest.mark.parametrize("stub", STUBS, ids=str)
def test_no_name_is_that_of_another_module_of_its_package(stub):
    package = package_of(stub).__name__
    inside = {path.stem for path in stub.parent.iterdir()} if stub.stem == "__init__" else set()
    assert not {name for module, name, _ in imports_of(stub) if module != package} & inside


def test_a_name_is_imported_once_and_kept():
    code = (
        "import mnemic\n"
        "assert 'Scope' not in vars(mnemic.model)\n"
        "assert mnemic.model.Scope is vars(mnemic.model)['Scope'] is mnemic.model.scope.Scope"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'mnemic' has no attribute 'Memoir'"):
        mnemic.Memoir  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'Memoir' from 'mnemic.model'"):
        exec("from mnemic.model import Memoir")  # noqa: S102 - as a program does
