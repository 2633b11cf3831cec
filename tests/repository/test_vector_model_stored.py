"""The model of a file's vectors, told without opening a memory."""

import asyncio
import shutil

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.errors import InvalidArgumentError, SchemaVersionError, StoreFileError
from mnemic.model import EmbeddingModel
from tests.support.embedders import WordEmbedder

SMALL, LARGE = EmbeddingModel("small", 16), EmbeddingModel("large", 64)


def test_the_model_of_an_old_file_names_the_call_that_brings_it_up_to_date(tmp_path):
    path = tmp_path / "agent.db"
    shutil.copy("tests/fixtures/store_v5.db", path)
    with pytest.raises(SchemaVersionError, match=r"Memory\(path, embedder=None\)\.close\(\)"):
        Memory.model_of(path)
    Memory(path, embedder=None).close()
    Memory.model_of(path)


def small():
    return WordEmbedder(16, "small")


def large():
    return WordEmbedder(64, "large")


def test_the_model_of_a_file_is_told_without_opening_a_memory(path):
    with Memory(path, embedder=small()) as memory:
        memory.add("tea")
        assert Memory.model_of(path) == SMALL
    assert Memory.model_of(path) == Memory.model_of(str(path), "default") == SMALL
    assert asyncio.run(AsyncMemory.model_of(path)) == SMALL
    assert Memory.model_of(path, "another agent") is None


def test_there_is_none_before_any_vector_and_nothing_is_written(path):
    with Memory(path, embedder=None) as memory:
        memory.add("tea")
    before = path.read_bytes()
    assert Memory.model_of(path) is None
    assert path.read_bytes() == before


def test_what_is_no_file_of_a_memory_is_an_error(path):
    with pytest.raises(StoreFileError):
        Memory.model_of(path)
    assert not path.exists()
    with pytest.raises(InvalidArgumentError):
        Memory.model_of(path, "")
