"""What importing does not load; benches/import_time.py has the times."""

import subprocess
import sys

import pytest

from mnemic import Memory

SELDOM_USED = {"sqlite3", "zoneinfo", "json", "ssl", "http", "email", "subprocess", "tempfile"}
SELDOM_USED |= {"dataclasses", "pathlib", "multiprocessing", "concurrent.futures", "logging"}
SELDOM_USED |= {"base64", "hashlib", "random", "statistics", "queue", "mmap"}
MODULES = {"retrieval", "recall", "context", "contradictions", "llm", "demo", "long_term", "policy"}
MODULES |= {"store", "index", "embed", "crypto", "observability", "licensing", "hyde"}
HEAVY = {"tokenizers", "mnemic_minilm", "httpx", "faiss", "asyncio"}
HEAVY |= {"cryptography"}
# What the installed command does from its start to its end.
COMMAND = """
import gc, sys
from mnemic.cli.main import command
sys.argv = ["mnemic", "search", "text", "--keyword", "--db", "agent.db"]
before = gc.get_stats()
code = command()
assert (code, gc.get_stats()) == (0, before) and gc.get_freeze_count() > 0
"""
UNUSED = {"hashlib", "_hashlib", "pathlib", "json", "base64", "shutil", "sqlite3", "asyncio"}
UNUSED |= {"numpy", "zoneinfo", "signal", "urllib.parse", "tempfile", "subprocess"}
OWN_MODULES = 247
OPENED = "from mnemic import Memory\nmemory = Memory({!r}, embedder=None)\n"


def modules_after(statement):
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(shown.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_but_what_loads_its_names():
    own = {each for each in modules_after("import mnemic") if each.startswith("mnemic")}
    assert own == {"mnemic", "mnemic.lazy_names"}


def test_importing_memory_loads_msgspec_and_no_other_package():
    loaded = modules_after("from mnemic import Memory") - modules_after("pass")
    packages = {each.partition(".")[0] for each in loaded} - sys.stdlib_module_names
    # msgspec takes typing_extensions where it is installed.
    assert packages - {"typing_extensions"} == {"mnemic", "msgspec"}


def test_importing_memory_loads_neither_what_serves_it_nor_seldom_used_modules():
    loaded = modules_after("from mnemic import Memory")
    assert "mnemic.memory" in loaded
    assert not loaded & HEAVY
    assert not (loaded - modules_after("import msgspec")) & SELDOM_USED
    assert not loaded & {f"mnemic.{module}" for module in MODULES}
    assert "mnemic.repository.repository" not in loaded


def test_the_first_logger_brings_the_handler_that_prints_nothing():
    code = "import mnemic.context.window, logging\nassert logging.getLogger('mnemic').handlers"
    assert "mnemic.reporting.logs" in modules_after(code)


def test_a_memory_with_an_embedder_of_ones_own_never_loads_the_local_one():
    loaded = modules_after("from mnemic import Memory\nMemory(':memory:', embedder=None).add('x')")
    assert not loaded & HEAVY


@pytest.mark.parametrize("place", [":memory:", "agent.db"])
def test_a_memory_without_vectors_never_loads_numpy(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    uses = (
        "entry = memory.add('one text')",
        "memory.add_many(['another text', 'a third'])",
        "assert len(memory.search('text')) == 2",
        "memory.update(entry.id, content='a new text')",
        "assert memory.get(entry.id) and memory.list() and memory.recent()",
        "assert memory.recall('', mode='recent') and memory.retrieve('text')",
        "memory.link(entry.id, memory.add('linked').id)",
        "memory.delete(entry.id)",
        "memory.export('export.jsonl')",
        "memory.stats(), memory.close()",
    )
    assert "numpy" not in modules_after(OPENED.format(place) + "\n".join(uses))
    if place != ":memory:":  # a later process loads the index from the file
        again = "assert memory.search('text')\nmemory.close()"
        assert "numpy" not in modules_after(OPENED.format(place) + again)


@pytest.mark.parametrize(
    "use",
    ["memory.add({'content': 'x', 'embedding': [1.0, 0.0]})", "memory.search(vector=[1.0, 0.0])"],
)
def test_a_given_vector_loads_numpy(use):
    assert "numpy" in modules_after(OPENED.format(":memory:") + use)


@pytest.mark.parametrize("name", ["Memory", "MemoryEntry", "MemoryType", "SearchResults"])
def test_lazy_names_are_there_when_asked_for(name):
    statement = f"import mnemic\nassert mnemic.{name}.__name__ == {name!r}"
    assert "mnemic.model" in modules_after(statement)


def test_a_search_of_the_command_loads_few_modules_and_collects_no_garbage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "UTC")  # others load zoneinfo
    Memory("agent.db", embedder=None).close()
    loaded = modules_after(COMMAND)
    assert not (loaded - modules_after("pass")) & UNUSED
    assert len([name for name in loaded if name.startswith("mnemic")]) <= OWN_MODULES
