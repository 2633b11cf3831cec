"""The doors mean one thing by one argument."""

import asyncio
import shutil
from fractions import Fraction

import numpy as np
import pytest

from mnemic import Memory, MemoryEntryUpdate
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import (
    FilterError,
    InvalidArgumentError,
    InvalidEntryError,
    SchemaVersionError,
)
from tests.support.embedders import WordEmbedder


@pytest.fixture(params=[None, WordEmbedder()], ids=["without", "embedder"])
def memory(request):
    with Memory(":memory:", embedder=request.param) as opened:
        yield opened


@pytest.mark.parametrize("given", [np.float32(0.25), np.float64(0.25), Fraction(1, 4)])
def test_numbers_of_every_kind_are_floors_and_fractions(memory, given):
    stored = memory.add("tea", importance=given)
    assert (stored.importance, type(stored.importance)) == (0.25, float)
    assert memory.search("tea", min_score=given) == memory.search("tea", min_score=0.25)
    assert memory.search("tea", timeout=given * 100)
    assert memory.retrieve("tea", min_score=given).results
    assert memory.contradictions("tea", min_confidence=given) is not None
    with pytest.raises(InvalidArgumentError, match="min_score"):
        memory.search("tea", min_score=given * 5)


@pytest.mark.parametrize("given", [True, "1", np.bool_(1), 1j, np.float32("nan")])
def test_what_is_no_real_number_is_no_floor(memory, given):
    with pytest.raises(InvalidArgumentError, match="min_score must be a number"):
        memory.search("tea", min_score=given)
    with pytest.raises(InvalidEntryError, match="importance must be"):
        memory.add("tea", importance=given)


def test_the_documented_door_takes_numbers_too():
    async def scenario():
        async with await AsyncLongTermMemory.open(":memory:", embedder=WordEmbedder()) as memory:
            return await memory.search_semantic("tea", min_similarity=np.float32(0.5))

    assert asyncio.run(scenario()) == []


def test_the_total_is_asked_for_by_one_name(memory):
    memory.add_many(["tea", "tea and milk", "tea with lemon"])
    for name in ("total", "with_total"):
        found = memory.retrieve("tea", limit=1, **{name: True})
        assert (found.total_matches, found.total_is_lower_bound) == (3, False)
    assert memory.search("tea", limit=1, total=True).total == 3
    with pytest.raises(InvalidArgumentError, match="total and with_total are the same option"):
        memory.retrieve("tea", total=True, with_total=True)


def test_an_update_may_leave_a_content_empty_where_add_may(memory):
    bare, with_metadata = memory.add_many(
        [{"content": "tea"}, {"content": "tea", "metadata": {"a": 1}}]
    )
    with pytest.raises(InvalidEntryError, match="unless the memory has metadata or an embedding"):
        memory.update(bare.id, content="")
    assert memory.get(bare.id).content == "tea"
    changed = memory.update(with_metadata.id, content="")
    assert (changed.content, changed.version) == ("", 2)
    assert {hit.id for hit in memory.search("tea", search_type="keyword")} == {bare.id}
    assert memory.get(with_metadata.id, embeddings=True).embedding is None
    with pytest.raises(InvalidEntryError, match="unless"):
        memory.update(with_metadata.id, content="", replace_metadata={})
    assert memory.update(bare.id, content="", metadata={"b": 2}).content == ""
    with pytest.raises(InvalidEntryError, match="content cannot be"):
        memory.update(bare.id, content="   ")


def test_an_update_with_a_vector_may_have_no_content(memory):
    (stored,) = memory.add_many(["tea"])
    vector = WordEmbedder().embed(["milk"])[0]
    assert memory.update(stored.id, content="", embedding=vector).content == ""
    found = memory.search(vector=vector, limit=1)
    assert (found[0].id, round(found[0].score, 5)) == (stored.id, 1.0)


def test_many_updates_may_leave_contents_empty(memory):
    memory.add_many([{"content": "tea", "metadata": {"a": number}} for number in range(3)])
    assert memory.update_many(filters={}, content="") == 3
    assert memory.search("tea", search_type="keyword", total=True).total == 0
    memory.add("tea")
    with pytest.raises(InvalidEntryError, match="unless"):
        memory.update_many(filters={"content": "tea"}, content="")
    assert memory.count(filters={"content": "tea"}) == 1


def test_the_documented_door_changes_and_deletes_many():
    async def scenario():
        async with await AsyncLongTermMemory.open(":memory:", embedder=None) as memory:
            plain = memory.memory
            mine = await plain.add_many([f"mine {at}" for at in range(4)], user_id="alice")
            others = await plain.add_many(["another's", "mine 1"], user_id="bob")
            update = MemoryEntryUpdate(importance=0.9)
            ids = [mine[0].id, mine[1].id, others[0].id]
            assert await memory.update_many(ids, update, user_id="alice") == 2
            wanted = {"importance": {"gte": 0.8}}
            assert await memory.delete_many(filters=wanted, user_id="alice") == 2
            assert await memory.delete_many(ids, filters=wanted, user_id="bob") == 0
            assert await memory.count(user_id="alice") == 2
            assert await memory.count(user_id="bob") == 2
            assert await memory.update_many(filters={}, update=update, all_users=True) == 4
            with pytest.raises(InvalidArgumentError, match="delete_all"):
                await memory.delete_many(user_id="alice")
            with pytest.raises(InvalidArgumentError, match="delete_all"):
                await memory.delete_many(filters={}, user_id="alice")
            with pytest.raises(InvalidArgumentError, match="update must be a MemoryEntryUpdate"):
                await memory.update_many(ids)
            with pytest.raises(FilterError):
                await memory.delete_many(filters={"tag": 1})

    asyncio.run(scenario())


def test_the_model_of_an_old_file_names_the_call_that_brings_it_up_to_date(tmp_path):
    path = tmp_path / "agent.db"
    shutil.copy("tests/fixtures/store_v5.db", path)
    with pytest.raises(SchemaVersionError, match=r"Memory\(path, embedder=None\)\.close\(\)"):
        Memory.model_of(path)
    Memory(path, embedder=None).close()
    Memory.model_of(path)
