"""A cancelled call happened wholly or not at all, can be repeated, and harms nothing."""

import asyncio
import gc
import os
import random
from datetime import UTC, datetime
from uuid import UUID, uuid4

import pytest

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import DuplicateEntryError
from mnemic.model import MemoryEntry, MemoryEntryUpdate
from tests.support.embedders import WordEmbedder

pytestmark = pytest.mark.requirement("C177")

ROUNDS = int(os.environ.get("MNEMIC_TORTURE_ROUNDS", "0"))


def entry(text, entry_id=None):
    return MemoryEntry(
        id=entry_id or uuid4(), agent_id="default", content=text, created_at=datetime.now(UTC)
    )


@pytest.fixture
def running(tmp_path, recwarn):
    """Run a coroutine function on an open memory; nothing may be left behind unawaited."""

    def run(act):
        async def whole():
            loop, complaints = asyncio.get_running_loop(), []
            loop.set_exception_handler(lambda _loop, context: complaints.append(context))
            memory = AsyncLongTermMemory(tmp_path / "a.db", embedder=WordEmbedder())
            try:
                await act(memory)
            finally:
                await asyncio.wait_for(memory.close(), 20)
            gc.collect()
            await asyncio.sleep(0)
            assert complaints == []

        asyncio.run(whole())
        gc.collect()
        assert not recwarn.list

    return run


CALLS = ["store", "store_batch", "update", "forget", "erase", "restore", "delete_all"]
READS = ["search", "retrieve", "retrieve_many", "filter", "stats", "count"]


async def prepared(memory, name):
    """Return a call, what shows whether it happened, and how it is repeated."""
    key = uuid4()
    if name == "store":
        one = entry("one memory", key)
        return lambda: memory.store(one), lambda: present(memory, [key])
    if name == "store_batch":
        many = [entry(f"memory {number}") for number in range(30)]
        ids = [each.id for each in many]
        return lambda: memory.store_batch(many), lambda: present(memory, ids)
    await memory.store(entry("before", key))
    if name == "update":
        update = MemoryEntryUpdate(content="after")
        return lambda: memory.update(key, update), lambda: has_text(memory, key, "after")
    if name == "restore":
        await memory.forget(key)
        return lambda: memory.restore(key), lambda: present(memory, [key])
    if name == "delete_all":
        return lambda: memory.delete_all(user_id=None), lambda: absent(memory, key)
    permanent = name == "erase"
    return lambda: memory.forget(key, permanent), lambda: absent(memory, key)


async def present(memory, ids):
    """Say whether memories are there; they are all or none, in the store as in a search."""
    found = await memory.retrieve_batch(ids)
    assert len(found) in (0, len(ids))
    results = await memory.search_semantic("memory before after", 1000, 0.0)
    assert len({result.entry.id for result in results} & set(ids)) == len(found)
    return len(found) == len(ids)


async def absent(memory, entry_id):
    return not await present(memory, [entry_id])


async def has_text(memory, entry_id, text):
    found = await memory.retrieve(entry_id)
    results = await memory.search_semantic(found.content, 1000, 0.999)
    assert entry_id in {result.entry.id for result in results}
    return found.content == text


async def cancelled(call, when):
    """Begin a call, wait, cancel it; return whether it was cancelled rather than done."""
    task = asyncio.ensure_future(call())
    await when()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


def steps(number):
    async def wait():
        for _ in range(number):
            await asyncio.sleep(0)

    return wait


def seconds(time):
    return lambda: asyncio.sleep(time)


async def check_write(memory, name, when):
    call, happened = await prepared(memory, name)
    was_cancelled = await cancelled(call, when)
    # What is repeated queues behind what was cancelled, so that its outcome is known by then.
    try:
        await call()
    except DuplicateEntryError:
        assert name in ("store", "store_batch")
    assert await happened()
    return was_cancelled


@pytest.mark.requirement("R009")
@pytest.mark.parametrize("name", CALLS)
def test_a_write_cancelled_at_any_await_is_whole_or_undone_and_can_be_repeated(running, name):
    async def act(memory):
        outcomes = {await check_write(memory, name, steps(number)) for number in range(14)}
        assert True in outcomes

    running(act)


@pytest.mark.parametrize("name", CALLS)
def test_the_outcome_of_a_cancelled_write_does_not_change_once_it_is_known(running, name):
    choose = random.Random(name)  # noqa: S311 - not a secret

    async def act(memory):
        for _ in range(4 + ROUNDS):
            call, happened = await prepared(memory, name)
            if not await cancelled(call, seconds(choose.uniform(0, 0.004))):
                assert await happened()
            await memory.store(entry("something later"))  # queues behind what was cancelled
            outcome = await happened()
            await asyncio.sleep(0.002)
            assert await happened() == outcome

    running(act)


@pytest.mark.requirement("R009")
@pytest.mark.parametrize("name", READS)
def test_a_cancelled_read_harms_nothing(running, name):
    async def act(memory):
        entries = [entry(f"memory {number}") for number in range(50)]
        ids = await memory.store_batch(entries)
        call = {
            "search": lambda: memory.search_semantic("memory 7", 1000, 0.0),
            "retrieve": lambda: memory.retrieve(ids[0]),
            "retrieve_many": lambda: memory.retrieve_batch(ids),
            "filter": lambda: memory.get_recent(100),
            "stats": memory.get_stats,
            "count": memory.count,
        }[name]
        expected = await call()
        for number in range(8):
            await cancelled(call, steps(number))
            await cancelled(call, seconds(number / 4000))
        answer = await call()
        assert type(answer) is type(expected)
        assert name == "stats" or answer == expected
        assert await memory.count() == 50

    running(act)


def test_many_calls_cancelled_at_once_leave_whole_ones_and_a_working_memory(running):
    choose = random.Random(7)  # noqa: S311 - not a secret

    async def act(memory):
        batches = [[entry(f"memory {at} {n}") for n in range(3)] for at in range(40)]
        tasks = [asyncio.ensure_future(memory.store_batch(batch)) for batch in batches]
        await asyncio.sleep(0.002)
        for task in choose.sample(tasks, 30):
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        await memory.store(entry("something later"))
        stored = 0
        for batch, outcome in zip(batches, outcomes, strict=True):
            is_there = await present(memory, [each.id for each in batch])
            assert is_there or isinstance(outcome, asyncio.CancelledError)
            stored += 3 * is_there
        assert await memory.count() == stored + 1

    running(act)


def test_closing_while_calls_are_being_cancelled_finishes_and_loses_nothing_acknowledged(tmp_path):
    async def act(at):
        path = tmp_path / f"{at}.db"
        memory = AsyncLongTermMemory(path, embedder=WordEmbedder())
        entries = [entry(f"memory {number}") for number in range(40)]
        tasks = [asyncio.ensure_future(memory.store(each)) for each in entries]
        await asyncio.sleep(at / 2000)
        for task in tasks[::2]:
            task.cancel()
        await asyncio.wait_for(memory.close(), 20)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        again = AsyncLongTermMemory(path, embedder=WordEmbedder())
        acknowledged = {outcome for outcome in outcomes if isinstance(outcome, UUID)}
        found = await again.retrieve_batch([each.id for each in entries])
        assert acknowledged <= found.keys()
        results = await again.search_semantic("memory", 1000, 0.0)
        assert {result.entry.id for result in results} == set(found)
        await again.close()

    for at in range(5 + ROUNDS % 50):
        asyncio.run(act(at))


def test_a_cancelled_opening_lets_go_of_the_file(tmp_path):
    async def act():
        for number in range(12):
            path = tmp_path / "a.db"
            memory = AsyncLongTermMemory(path, embedder=WordEmbedder())
            call = asyncio.ensure_future(memory.__aenter__())
            await asyncio.sleep(number / 1000)
            call.cancel()
            try:
                await call
            except asyncio.CancelledError:
                continue
            await memory.close()

    asyncio.run(act())
    memory = AsyncLongTermMemory(tmp_path / "a.db", embedder=WordEmbedder())
    asyncio.run(memory.close())
    assert [path.name for path in tmp_path.iterdir()] == ["a.db"]
