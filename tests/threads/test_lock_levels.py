"""The tables of docs/project/design.md: every lock has a level, and every thread a line."""

import ast
import re
from pathlib import Path

import pytest

import mnemic_files
from tests.support.lock_levels import OTHERS, levels, thread_names
from tests.support.paths import ROOT
from tests.support.recorded_locks import PACKAGE, last_name, named_sites, sites_in

PRIMITIVES = {
    *("Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier", "Event"),
    *("Thread", "Timer"),
}
PROGRAMS = {PACKAGE / "cli", PACKAGE / "mcp", PACKAGE / "importers"}
"""Rooms that use public names alone, as programs of others do."""
MODULES = [
    path
    for folder in (PACKAGE, Path(mnemic_files.__file__).parent)
    for path in sorted(folder.rglob("*.py"))
    if path.parent not in {PACKAGE / "threads", *PROGRAMS}
]


def test_every_lock_has_one_level():
    assert set(levels()) == {*named_sites().values(), *OTHERS}


def primitives(tree):
    """Return the lines that make a primitive of `threading`."""
    modules, names = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {one.asname or one.name for one in node.names if one.name == "threading"}
        if isinstance(node, ast.ImportFrom) and node.module == "threading":
            names |= {one.asname or one.name for one in node.names if one.name in PRIMITIVES}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        if getattr(node.func, "id", None) in names
        or (
            last_name(node.func) in PRIMITIVES
            and getattr(getattr(node.func, "value", None), "id", None) in modules
        )
    ]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_locks_and_threads_are_made_by_the_modules_of_threads(path):
    assert primitives(ast.parse(path.read_text())) == []


def test_what_the_checks_look_for_is_found():
    text = "import threading as t\nfrom threading import Lock as L\n"
    text += "class C:\n    x = t.RLock()\n    def f(self): self.y, self._z = 1, L()\n"
    assert primitives(ast.parse(text)) == [4, 5]
    made = sites_in(ast.parse("class C:\n    def f(self):\n        self.a: X = InnerLock()\n"), "m")
    assert made == [("C.a", 3)]


NAMES = re.compile(
    r"""(?:thread_of|Background|CallThreads|EventLoopThread)\(\s*"([\w-]+)"
      | ThreadPoolExecutor\(.*"mnemic-([\w-]+)"
      | name\("mnemic-([\w-]+)"
      | Thread\(.*name="mnemic-([\w-]+)"
      | owner:\ str\ =\ "(\w+)" """,
    re.VERBOSE,
)


def test_every_thread_is_listed():
    rust = [path for path in sorted((ROOT / "rust").rglob("*.rs")) if "target" not in path.parts]
    texts = [path.read_text() for path in (*PACKAGE.rglob("*.py"), *rust)]
    found = {f"mnemic-{''.join(names)}" for text in texts for names in NAMES.findall(text)}
    of_pools = {"mnemic-worker-…", "mnemic-scheduler", "mnemic-apart-…"}
    assert thread_names() == found | of_pools
