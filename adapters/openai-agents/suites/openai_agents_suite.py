"""Runs the SDK's own tests of sessions over mnemic: `SQLiteSession` is the adapter.

The plugin is loaded before the tests are collected, and fails the run where a method of the adapter
was never called, so that the suite cannot pass over the SDK's own session.
"""

from collections import Counter
from pathlib import Path

import agents
import agents.memory
import agents.memory.sqlite_session
import pytest
from openai_agents_mnemic import MnemicSession

from mnemic import Memory

METHODS = ("get_items", "add_items", "pop_item", "clear_session")
calls = Counter()


class SQLiteSession(MnemicSession):
    """The adapter with the arguments of the SDK's session: each opens the file, and closes it."""

    def __init__(self, session_id, db_path=":memory:", *, session_settings=None):
        self.db_path = Path(db_path)
        memory = Memory(db_path, embedder=None)
        super().__init__(session_id, memory, session_settings=session_settings)

    def close(self):
        self.memory.sync.close()


def counted(name):
    """Return a method that counts its calls."""
    method = getattr(MnemicSession, name)

    async def call(self, *arguments, **options):
        calls[name] += 1
        return await method(self, *arguments, **options)

    return call


def pytest_configure(config):
    """Put the adapter in the place of the SDK's session."""
    del config
    for name in METHODS:
        setattr(SQLiteSession, name, counted(name))
    for module in (agents, agents.memory, agents.memory.sqlite_session):
        module.SQLiteSession = SQLiteSession


def pytest_sessionfinish(session):
    """Fail the run where a method of the adapter was not called."""
    if set(METHODS) - set(calls):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Print how often each method of the adapter was called."""
    shown = ", ".join(f"{name} {count}" for name, count in calls.most_common())
    terminalreporter.write_line(f"calls of mnemic's adapter: {shown}")
