"""Runs LangChain's own tests of its store in memory over mnemic: `InMemoryVectorStore`.

They are the tests of that store and of the indexing API, which writes, replaces and cleans up
through it. The plugin fails the run where the adapter was not called.
"""

from collections import Counter
from functools import wraps
from inspect import iscoroutinefunction

import langchain_core.vectorstores
import langchain_core.vectorstores.in_memory
import pytest
from langchain_mnemic import MnemicVectorStore

calls = Counter()
EXPECTED = {
    *("add_texts", "aadd_texts", "delete", "adelete", "get_by_ids", "aget_by_ids"),
    *("similarity_search", "asimilarity_search"),
}


class InMemoryVectorStore(MnemicVectorStore):
    """The adapter with what these tests read of the class in whose place it is: its dict."""

    def __init__(self, embedding):
        """Name the model of an embedding that has no name."""
        super().__init__(embedding, embedding_model="fake")

    @property
    def store(self):
        """What is stored, by id."""
        return {
            entry.message_id: {
                "id": entry.message_id,
                "text": entry.content,
                "vector": entry.embedding.tolist(),
                "metadata": entry.metadata,
            }
            for entry in self.memory.list(limit=1000, embeddings=True)
        }


def _counted(name):
    method = getattr(MnemicVectorStore, name)

    @wraps(method)
    def count(*args, **named):
        calls[name] += 1
        return method(*args, **named)

    @wraps(method)
    async def awaited(*args, **named):
        return await count(*args, **named)

    return awaited if iscoroutinefunction(method) else count  # mocks look at which it is


def pytest_configure(config):
    """Put the adapter in the place of LangChain's store, and count what it is called for."""
    del config
    langchain_core.vectorstores.InMemoryVectorStore = InMemoryVectorStore
    langchain_core.vectorstores.in_memory.InMemoryVectorStore = InMemoryVectorStore
    for name in EXPECTED:
        setattr(MnemicVectorStore, name, _counted(name))


def pytest_sessionfinish(session):
    """Fail the run where a method of the adapter was never called."""
    if EXPECTED - set(calls):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Print how often each method of the adapter was called; an absent one fails the run."""
    shown = ", ".join(f"{name} {count}" for name, count in calls.most_common())
    terminalreporter.write_line(f"calls of mnemic's adapter: {shown}")
