"""Memories that are searched."""

from contextlib import ExitStack

import pytest

from mnemic import Memory
from mnemic.repository import index_snapshots
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder


@pytest.fixture
def open_memory():
    """Return what opens a memory, with a clock that stands at noon."""
    with ExitStack() as opened:
        yield lambda **options: opened.enter_context(
            Memory(":memory:", **{"embedder": WordEmbedder(), "clock": Clock(), **options})
        )


@pytest.fixture
def memory(open_memory):
    return open_memory()


@pytest.fixture
def shared(memory):
    """Return a memory of several users, projects and sessions."""
    memory.add("tea of nobody")
    memory.scoped(project_id="p").add("tea of alice", user_id="alice", session_id="s")
    memory.add("tea of alice at home", user_id="alice")
    memory.scoped(project_id="p").add("tea of bob", user_id="bob")
    return memory


@pytest.fixture
def small_snapshots(monkeypatch):
    """Save snapshots of small indexes, as soon as they are due."""
    monkeypatch.setattr(index_snapshots, "MIN_ROWS", 1)
    monkeypatch.setattr(index_snapshots, "MIN_CHANGES", 1)
    monkeypatch.setattr(index_snapshots, "CHANGED_SHARE", 10**9)
    monkeypatch.setattr(index_snapshots, "CHECK_SECONDS", 0.0)
