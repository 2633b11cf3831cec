"""Runs LangGraph's own tests of a store over mnemic: `InMemoryStore` is the adapter.

The plugin is loaded before the tests are collected, and fails the run where the adapter was not
called, so that the suite cannot pass over LangGraph's own store.
"""

from collections import Counter

import langgraph.store.memory
import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from outside.langgraph_store import MnemicStore

calls = Counter()


def pytest_configure(config):
    """Put the adapter in the place of LangGraph's store, and count what it is called for."""
    del config
    langgraph.store.memory.InMemoryStore = MnemicStore
    MnemicStore.batch = _counted(MnemicStore.batch)


def _counted(batch):
    def count(self, ops):
        given = list(ops)
        calls.update(type(op) for op in given)
        return batch(self, given)

    return count


def pytest_sessionfinish(session):
    """Fail the run where an operation never reached the adapter."""
    missing = {GetOp, PutOp, SearchOp, ListNamespacesOp} - set(calls)
    if missing:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Print how often the adapter was called for each operation; an absent one fails the run."""
    shown = ", ".join(f"{kind.__name__} {count}" for kind, count in calls.most_common())
    terminalreporter.write_line(f"calls of mnemic's adapter: {shown}")
