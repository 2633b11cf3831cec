"""Runs CrewAI's own tests of its memory over mnemic, which is both of CrewAI's storages.

The plugin is loaded before the tests are collected, and fails the run where the adapter was not
called, so that the suite cannot pass over CrewAI's own storage.
"""

import os
from collections import Counter
from functools import wraps
from pathlib import Path
from tempfile import mkdtemp

os.environ["CREWAI_DISABLE_TELEMETRY"] = "true"  # which waits for an answer from outside
os.environ["OTEL_SDK_DISABLED"] = "true"

import crewai.memory.storage.lancedb_storage
import crewai.memory.storage.qdrant_edge_storage
import pytest
from crewai_mnemic import MnemicStorage

calls = Counter()
EXPECTED = {
    *("save", "search", "update", "delete", "reset", "get_record", "list_records"),
    *("get_scope_info", "list_scopes", "list_categories", "count", "touch_records"),
}


class Swapped(MnemicStorage):
    """The adapter with the arguments of those in whose place it is: a folder, and a length."""

    def __init__(self, path=None, vector_dim=None, compact_every=0):
        """Make the folder; a new one where none is named."""
        del vector_dim, compact_every
        folder = Path(mkdtemp() if path is None else path)
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / "mnemic.db")


def _counted(name):
    method = getattr(MnemicStorage, name)

    @wraps(method)
    def count(*args, **named):
        calls[name] += 1
        return method(*args, **named)

    return count


def pytest_configure(config):
    """Put the adapter in the place of CrewAI's storage, and count what it is called for."""
    del config
    crewai.memory.storage.lancedb_storage.LanceDBStorage = Swapped
    crewai.memory.storage.qdrant_edge_storage.QdrantEdgeStorage = Swapped
    for name in EXPECTED:
        setattr(MnemicStorage, name, _counted(name))


def pytest_sessionfinish(session):
    """Fail the run where a method of the adapter was never called."""
    if EXPECTED - set(calls):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Print how often each method of the adapter was called; an absent one fails the run."""
    shown = ", ".join(f"{name} {count}" for name, count in calls.most_common())
    terminalreporter.write_line(f"calls of mnemic's adapter: {shown}")
