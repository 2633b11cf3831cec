"""A memory is opened by its constructor, or in a running event loop by its first use."""

import asyncio
import gc
import re
import threading
import time
import weakref

import pytest

from mnemic import AsyncMemory, Memory
from mnemic.compat import AsyncLongTermMemory, LongTermMemory
from mnemic.errors import (
    ArgumentMismatchError,
    InvalidArgumentError,
    StoreClosedError,
    StoreError,
    StoreFileError,
    WrongFormError,
)
from mnemic.verbs import opening
from tests.support.embedders import WordEmbedder

AWAITED = [AsyncMemory, AsyncLongTermMemory]


@pytest.fixture(params=AWAITED)
def kind(request):
    return request.param


class Gate:
    """Holds openings up, and notes the threads that they run in."""

    def __init__(self, monkeypatch):
        self.begun, self.leave = threading.Event(), threading.Event()
        self.threads = []
        self.opened = []
        held, made = opening.Opening, self

        class Held(held):
            def __init__(self, path, open_memory):
                def opens():
                    made.threads.append(threading.current_thread())
                    made.begun.set()
                    assert made.leave.wait(30)
                    services = open_memory()
                    made.opened.append(services.repository)
                    return services

                super().__init__(path, opens)

        monkeypatch.setattr(opening, "Opening", Held)

    async def wait(self):
        assert await asyncio.to_thread(self.begun.wait, 30)


@pytest.fixture
def gate(monkeypatch):
    made = Gate(monkeypatch)
    yield made
    made.leave.set()


def test_without_a_running_loop_the_constructor_opens(kind, path):
    memory = kind(path, embedder=None)
    assert path.exists()
    asyncio.run(memory.close())


def test_in_a_running_loop_entering_opens_in_another_thread(kind, path, gate):
    async def scenario():
        memory = kind(path, embedder=WordEmbedder())
        assert not path.exists()
        assert repr(memory) == f"{kind.__name__}({str(path)!r}, not open)"
        entering = asyncio.create_task(memory.__aenter__())
        await gate.wait()  # the loop goes on meanwhile
        gate.leave.set()
        assert await entering is memory
        assert await memory.count() == 0
        assert "not open" not in repr(memory)
        await memory.close()

    asyncio.run(scenario())
    assert threading.main_thread() not in gate.threads


def test_a_call_that_is_awaited_opens_in_another_thread(kind, path, gate):
    async def scenario():
        memory = kind(path, embedder=WordEmbedder())
        counting = asyncio.create_task(memory.count())
        await gate.wait()
        gate.leave.set()
        assert await counting == 0
        async with memory as entered:  # entering what is open already
            assert entered is memory
            assert await memory.count() == 0
        with pytest.raises(StoreClosedError):
            await memory.count()

    asyncio.run(scenario())
    assert len(gate.threads) == 1
    assert threading.main_thread() not in gate.threads


@pytest.mark.parametrize(
    "read",
    [
        lambda memory: memory.repository,
        lambda memory: memory.scope,
        lambda memory: memory.sync,
        lambda memory: memory.index.info() if hasattr(memory, "index") else memory.memory,
        lambda memory: memory.scoped(user_id="a") if hasattr(memory, "scoped") else memory.license,
    ],
)
def test_what_is_not_awaited_opens_at_once(kind, path, read):
    async def scenario():
        memory = kind(path, embedder=None)
        found = read(memory)
        assert path.exists()
        if asyncio.iscoroutine(found):
            await found
        assert await memory.count() == 0
        await memory.close()

    asyncio.run(scenario())


def test_the_plain_form_of_one_not_entered_is_the_same_open_memory(kind, path):
    async def scenario():
        memory = kind(path, embedder=None)
        plain = memory.sync
        assert type(plain) is (Memory if kind is AsyncMemory else LongTermMemory)
        assert (memory.sync is plain, plain.aio is memory) == (True, True)
        assert plain.repository is memory.repository
        async with memory:
            assert plain.count() == 0
        with pytest.raises(StoreClosedError):
            plain.count()

    asyncio.run(scenario())


def test_a_plain_memory_opens_at_once_in_a_running_loop_too(path):
    async def scenario():
        with Memory(path, embedder=None) as memory:
            assert path.exists()
            assert memory.count() == 0

    asyncio.run(scenario())


def test_tasks_that_enter_together_get_one_memory(kind, path, gate):
    async def scenario():
        memory = kind(path, embedder=None)
        entering = [asyncio.create_task(memory.__aenter__()) for _ in range(3)]
        counting = asyncio.create_task(memory.count())
        await gate.wait()
        gate.leave.set()
        assert await asyncio.gather(*entering) == [memory] * 3
        assert await counting == 0
        await memory.close()

    asyncio.run(scenario())
    assert len(gate.opened) == 1


def test_errors_of_opening_come_from_entering_and_entering_again_tries_again(kind, path):
    path.write_text("of somebody else")

    async def scenario():
        memory = kind(path, embedder=WordEmbedder())
        with pytest.raises(StoreFileError):
            async with memory:
                pytest.fail("it was entered")
        with pytest.raises(StoreFileError):
            await memory.count()
        with pytest.raises(StoreFileError):
            _ = memory.repository
        path.unlink()
        async with memory:
            assert await memory.count() == 0

    asyncio.run(scenario())


def test_errors_of_arguments_come_from_the_constructor(kind, path):
    async def scenario():
        with pytest.raises(ArgumentMismatchError, match="has no argument 'embeder'; did you mean"):
            kind(path, embeder=None)
        with pytest.raises(InvalidArgumentError, match="user_quota"):
            kind(path, embedder=None, user_quota=-1)
        with pytest.raises(InvalidArgumentError, match="agent_id"):
            kind(path, embedder=None, agent_id="")
        with pytest.raises(InvalidArgumentError, match="license must be"):
            kind(path, embedder=None, license="free")
        with pytest.raises(InvalidArgumentError, match="index_pool must be"):
            kind(path, embedder=None, index_pool=1)

    asyncio.run(scenario())
    assert not path.exists()


def is_closed(repository):
    memory = AsyncMemory.__new__(AsyncMemory)
    memory._take(opening.Services(repository))
    try:
        asyncio.run(memory.count())
    except StoreClosedError:
        return True
    return False


def closed_within(repository, seconds=20):
    end = time.monotonic() + seconds
    while not is_closed(repository) and time.monotonic() < end:
        time.sleep(0.01)
    return is_closed(repository)


def test_what_is_opened_for_a_cancelled_task_is_closed(kind, path, gate):
    kept = []

    async def scenario():
        memory = kind(path, embedder=None)
        kept.append(memory)
        entering = asyncio.create_task(memory.__aenter__())
        await gate.wait()
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering
        gate.leave.set()

    asyncio.run(scenario())
    (repository,) = gate.opened
    assert closed_within(repository)

    async def again():
        async with kept[0] as memory:
            assert await memory.count() == 0

    asyncio.run(again())
    assert len(gate.opened) == 2


def test_a_task_cancelled_beside_another_takes_nothing_from_it(kind, path, gate):
    async def scenario():
        memory = kind(path, embedder=None)
        first, second = (asyncio.create_task(memory.__aenter__()) for _ in range(2))
        await gate.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        gate.leave.set()
        await second
        await asyncio.sleep(0.05)
        assert await memory.count() == 0
        await memory.close()

    asyncio.run(scenario())
    assert len(gate.opened) == 1


def test_closing_what_was_never_entered_opens_nothing(kind, path):
    async def scenario():
        memory = kind(path, embedder=None)
        await memory.close()
        await memory.aclose()
        with pytest.raises(StoreClosedError, match=re.escape(f"{path}: the memory was closed")):
            await memory.count()
        with pytest.raises(StoreClosedError):
            async with memory:
                pytest.fail("it was entered")
        with pytest.raises(StoreClosedError):
            _ = memory.sync

    asyncio.run(scenario())
    assert not path.exists()


def test_closing_while_it_is_opened_waits_and_closes_it(kind, path, gate):
    async def scenario():
        memory = kind(path, embedder=None)
        entering = asyncio.create_task(memory.__aenter__())
        await gate.wait()
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0.02)
        assert not closing.done()
        gate.leave.set()
        await asyncio.gather(entering, closing)
        with pytest.raises(StoreClosedError):
            await memory.count()

    asyncio.run(scenario())


def test_threads_and_tasks_that_need_it_at_once_open_it_once(path, gate):
    async def scenario():
        memory = AsyncMemory(path, embedder=None)

        def counted():
            return memory.sync.count()

        counting = asyncio.create_task(memory.count())
        await gate.wait()
        reading = asyncio.create_task(asyncio.to_thread(counted))
        await asyncio.sleep(0.02)
        gate.leave.set()
        assert await asyncio.gather(counting, reading) == [0, 0]
        await memory.close()

    asyncio.run(scenario())
    assert len(gate.opened) == 1


def test_a_memory_that_is_dropped_unentered_or_entered_is_collected_at_once(path):
    gc.disable()
    try:

        async def scenario():
            memory = AsyncMemory(path, embedder=None)
            unused = weakref.ref(memory)
            del memory
            assert unused() is None
            memory = AsyncMemory(path, embedder=None)
            await memory.count()
            repository = weakref.ref(memory.repository)
            del memory
            return repository

        assert asyncio.run(scenario())() is None
    finally:
        gc.enable()


def test_a_password_in_the_path_is_not_shown():
    async def scenario():
        memory = AsyncMemory("postgresql://ann:secret@example.invalid/db", embedder=None)
        shown = repr(memory)
        await memory.close()
        with pytest.raises(StoreClosedError) as caught:
            await memory.count()
        return shown, str(caught.value)

    for text in asyncio.run(scenario()):
        assert "example.invalid" in text
        assert "secret" not in text


@pytest.mark.parametrize("use", [lambda memory: memory.scope, lambda memory: memory.sync])
def test_a_function_that_opening_calls_cannot_use_the_memory(kind, path, use):
    with Memory(path, embedder=WordEmbedder()) as memory:
        memory.add("the red sofa")
    refused = []

    async def scenario():
        def progress(_done, _total):
            with pytest.raises(StoreError, match="is not open yet; a function that opening calls"):
                use(memory)
            refused.append(repr(memory))

        memory = kind(path, embedder=WordEmbedder(), progress=progress, snapshots=False)
        async with memory:
            assert await memory.count() == 1

    asyncio.run(asyncio.wait_for(scenario(), 30))
    assert refused


def test_opening_by_a_method_says_what_to_write(kind):
    with pytest.raises(WrongFormError, match=r"write: async with Async\w+\(path\) as memory"):
        kind.open("a.db")
    assert not hasattr(kind, "open")
