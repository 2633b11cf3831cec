"""The tests of the contract know no implementation of it."""

import ast
from pathlib import Path

FOLDER = Path(__file__).parent
IMPLEMENTATIONS = (
    "mnemic.store.sqlite",
    "mnemic.store.postgres",
    "apsw",
    "psycopg",
    "sqlite3",
)


DRIVES_THE_SERVER = FOLDER.parent / "support" / "postgres_server.py"
"""It makes and empties databases in SQL."""


def imported(path):
    """Return the names of all modules that a file imports, and of what it imports from them."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def reached(names):
    """Return the files of the tests' own modules among names, and all that those import."""
    root, files, waiting = FOLDER.parents[1], set(), set(names)
    while waiting:
        path = root / f"{waiting.pop().replace('.', '/')}.py"
        if path.is_relative_to(FOLDER.parent) and path.exists() and path not in files:
            files.add(path)
            waiting |= imported(path)
    return files


def test_the_tests_of_the_contract_import_nothing_of_an_implementation():
    own = sorted(FOLDER.glob("*.py"))
    assert len(own) > 10
    shared = reached(name for path in own for name in imported(path) if name.startswith("tests."))
    assert FOLDER / "contract.py" in shared
    for path in {*own, *shared}:
        found = {name for name in imported(path) if name.startswith(IMPLEMENTATIONS)}
        assert found <= ({"psycopg"} if path == DRIVES_THE_SERVER else set()), path
