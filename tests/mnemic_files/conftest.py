"""Folders of memory files, and a memory beside them."""

import pytest

from mnemic import Memory
from mnemic_files import MemoryDirectory, MemoryFiles
from tests.support.memory_files import NOON


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "repo"


@pytest.fixture
def directory(folder):
    return MemoryDirectory(folder, "repo", clock=lambda: NOON)


@pytest.fixture
def files(tmp_path):
    return MemoryFiles(repo=tmp_path / "repo", user=tmp_path / "user")


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None) as opened:
        yield opened
