"""Memories that are searched with plain and with awaited calls."""

import pytest

from mnemic import AsyncMemory, Memory
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.searches import Awaited


@pytest.fixture(params=["plain", "awaited"])
def open_memory(request):
    """Return what opens a memory of each kind, with a clock that stands at noon."""
    opened = []

    def opens(**options):
        given = {"embedder": WordEmbedder(), "clock": Clock(), **options}
        kind = Memory if request.param == "plain" else AsyncMemory
        made = kind(":memory:", **given)
        opened.append(made if request.param == "plain" else Awaited(made))
        return opened[-1]

    yield opens
    for one in opened:
        one.close()


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
