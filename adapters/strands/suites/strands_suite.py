"""Runs the tests of the store in one JSON file over mnemic: `TestMemoryStore` is the adapter.

The plugin is loaded before the tests are collected, and fails the run where the adapter was not
called, so that the suite cannot pass over the store in the wheel.
"""

from collections import Counter

import pytest
import strands.vended_memory_stores as vended
import strands.vended_memory_stores.test_memory_store as package
from strands_mnemic import MnemicMemoryStore

calls = Counter()


class TestMemoryStore(MnemicMemoryStore):
    """The adapter with the arguments of the store that it stands for."""

    __test__ = False

    def __init__(self, *, path=None, persist=True, **config):
        super().__init__(path if path and persist else ":memory:", **config)

    async def add(self, content, metadata=None):
        calls["add"] += 1
        return await super().add(content, metadata)

    async def search(self, query, options=None):
        calls["search"] += 1
        return await super().search(query, options)


def pytest_configure(config):
    """Put the adapter in the place of the store."""
    del config
    package.TestMemoryStore = vended.TestMemoryStore = TestMemoryStore


def pytest_sessionfinish(session):
    """Fail the run where the adapter was never called."""
    if not (calls["add"] and calls["search"]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Print how often the adapter was called."""
    terminalreporter.write_line(f"calls of mnemic's adapter: {dict(calls)}")
