"""Verbs over many memories at the door of the specification."""

import asyncio

import pytest

from mnemic import MemoryEntryUpdate
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import FilterError, InvalidArgumentError


def test_the_documented_door_changes_and_deletes_many():
    async def scenario():
        async with AsyncLongTermMemory(":memory:", embedder=None) as memory:
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
