"""Keys, duplicates, later embedding and supersession through AsyncLongTermMemory."""

from uuid import UUID

import pytest

from mnemic.errors import InvalidArgumentError, InvalidEntryError
from tests.support.long_term import entry, with_memory_and_clock

# Keys


@pytest.mark.parametrize("key", ["", "a\0b", "a\nb", 7])
@with_memory_and_clock()
async def test_a_key_is_a_name(memory, key):
    with pytest.raises(InvalidArgumentError):
        await memory.store(entry(1), idempotency_key=key)
    assert await memory.count() == 0


# Duplicates


@with_memory_and_clock()
async def test_an_unknown_way_with_duplicates_is_refused(memory):
    for given in ({"on_duplicate": "replace"}, {"on_embed_error": "ignore"}):
        with pytest.raises(InvalidArgumentError):
            await memory.store(entry(1), **given)
    assert await memory.count() == 0


# Supersession


@with_memory_and_clock()
async def test_nothing_supersedes_itself(memory):
    with pytest.raises(InvalidEntryError):
        await memory.store(entry(1, supersedes=UUID(int=1)))
    assert await memory.count() == 0
