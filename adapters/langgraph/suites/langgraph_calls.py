"""Counts the operations that reach an adapter in a test run, and fails it where one is missing.

So a suite cannot pass over the framework's own class.
"""

from collections import Counter

import pytest
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

calls = Counter()


class Counted:
    """A base class before an adapter that counts the operations of its batches."""

    def batch(self, ops):
        return super().batch(_noted(self, ops))

    async def abatch(self, ops):
        return await super().abatch(_noted(self, ops))


def _noted(store, ops):
    given = list(ops)
    calls.update((type(store).__name__, type(op).__name__) for op in given)
    return given


class Report:
    """A plugin that fails a run in which an operation never reached one of the adapters.

    Args:
        adapters: The classes.
    """

    def __init__(self, *adapters):
        kinds = (GetOp, PutOp, SearchOp, ListNamespacesOp)
        self._wanted = {(each.__name__, kind.__name__) for each in adapters for kind in kinds}

    def pytest_sessionfinish(self, session):
        if session.exitstatus == pytest.ExitCode.OK and self._wanted - set(calls):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        shown = ", ".join(f"{store} {op} {count}" for (store, op), count in calls.most_common())
        terminalreporter.write_line(f"operations of mnemic's stores: {shown or 'none'}")
