"""Writes that are repeated: keys and duplicates."""

import asyncio

import pytest

from mnemic.errors import InvalidArgumentError
from tests.support.doors import run
from tests.support.entries import entry


def test_a_batch_has_a_key_for_each_and_knows_its_own():
    async def scenario(memory):
        texts = ("tea", "coffee", "tea")
        keys = ["a", None, "a"]
        ids = await memory.store_batch([entry(text) for text in texts], idempotency_keys=keys)
        assert ids[0] == ids[2] != ids[1]
        again = await memory.store_batch([entry(text) for text in texts], idempotency_keys=keys)
        assert (again[0], again[2]) == (ids[0], ids[0])
        assert again[1] not in ids
        with pytest.raises(InvalidArgumentError, match="2 entries come with 1"):
            await memory.store_batch([entry(), entry()], idempotency_keys=["a"])

    run(scenario)


def test_retries_at_once_store_one_memory(tmp_path):
    async def scenario(memory):
        stores = [memory.store(entry("tea"), idempotency_key="k") for _ in range(50)]
        assert len(set(await asyncio.gather(*stores))) == 1
        assert await memory.count() == 1

    run(scenario, tmp_path / "a.db")
