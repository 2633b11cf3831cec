"""What importing does not load; benches/import_time.py has the times."""

import subprocess
import sys

import pytest

SELDOM_USED = {"sqlite3", "zoneinfo", "json", "ssl", "http", "email", "subprocess", "tempfile"}
SELDOM_USED |= {"dataclasses", "pathlib", "multiprocessing", "concurrent.futures.thread"}
SERVICES = {"retrieval", "recall", "context", "contradictions", "llm", "demo", "long_term"}
SERVICES |= {"policy"}
HEAVY = {"onnxruntime", "tokenizers", "mnemic_minilm", "httpx", "faiss", "asyncio"}
HEAVY |= {"cryptography"}


def modules_after(statement):
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(shown.stdout.split())


def test_importing_the_package_loads_nothing_but_what_loads_its_names():
    own = {each for each in modules_after("import mnemic") if each.startswith("mnemic")}
    assert own == {"mnemic", "mnemic.lazy_names"}


def test_the_first_logger_brings_the_handler_that_prints_nothing():
    code = "import mnemic.context.window, logging\nassert logging.getLogger('mnemic').handlers"
    assert "mnemic.logs" in modules_after(code)


def test_importing_memory_does_not_load_an_embedder_or_an_event_loop():
    loaded = modules_after("from mnemic import Memory")
    assert not loaded & HEAVY
    assert "mnemic.memory" in loaded


def test_importing_memory_loads_neither_the_services_nor_seldom_used_modules():
    loaded = modules_after("from mnemic import Memory") - modules_after("import numpy")
    assert not loaded & SELDOM_USED
    assert not loaded & {f"mnemic.{service}" for service in SERVICES}


def test_a_memory_with_an_embedder_of_ones_own_never_loads_the_local_one():
    loaded = modules_after("from mnemic import Memory\nMemory(':memory:', embedder=None).add('x')")
    assert not loaded & HEAVY


@pytest.mark.parametrize("name", ["Memory", "MemoryEntry", "MemoryType", "SearchResults"])
def test_lazy_names_are_there_when_asked_for(name):
    statement = f"import mnemic\nassert mnemic.{name}.__name__ == {name!r}"
    assert "mnemic.model" in modules_after(statement)
