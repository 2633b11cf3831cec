"""A signal handler, a finalizer: what runs in the midst of a call gets an answer or an error."""

import asyncio
import gc
import random
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from functools import partial
from itertools import count, product
from pathlib import Path

import pytest

from mnemic import CachedEmbedder, Memory
from mnemic.errors import BusyThreadError
from mnemic.events import MemoryStoredEvent
from mnemic.index.shared_lock import SharedLock
from mnemic.policy import RetrievalPolicy, RetrievalRequest
from mnemic.store.group_commit import Writer
from mnemic.store.sqlite import store as sqlite_store
from mnemic.threads.locks import InnerLock, Lock, check_no_lock_is_held
from tests.support.embedders import WordEmbedder
from tests.support.interrupts import PACKAGE, handled_at
from tests.support.places import STORES, Places
from tests.support.tiers import TIER

MOMENTS = 4
"""Random moments of each call at which each of the others is made."""


def test_a_lock_refuses_the_thread_that_holds_it_and_no_other():
    lock = Lock()
    with lock:
        assert lock.is_held_here()
        with pytest.raises(BusyThreadError, match="in the midst of another call"), lock:
            pass
        with pytest.raises(BusyThreadError):
            lock.acquire()
        assert not lock.acquire(blocking=False)
        waiting = threading.Thread(target=lambda: lock.acquire() and lock.release())
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join(30)
    assert not waiting.is_alive()
    assert not lock.is_held_here()
    assert lock.acquire(blocking=False)
    lock.release()


def interrupting(call, refused):
    """Return a function that another memory's search interrupts, as that of a signal handler."""

    def interrupted(*values):
        if threading.current_thread() is threading.main_thread():
            with pytest.raises(BusyThreadError):
                refused.search("red")
            interrupted.times += 1
        return call(*values)

    interrupted.times = 0
    return interrupted


@pytest.mark.parametrize("kind", STORES)
def test_a_call_in_the_midst_of_a_write_is_refused(kind, tmp_path, monkeypatch):
    """Another thread may have a lock that the call waits for, and wait for this write's turn."""
    with Places(kind, tmp_path) as places, Memory(":memory:", embedder=None) as other:
        other.search("red")
        with places.opened(embedder=None) as memory:
            interrupted = interrupting(Writer._held, other)
            monkeypatch.setattr(Writer, "_held", interrupted)
            memory.add("red sofa")
            monkeypatch.undo()
    assert interrupted.times == 1


def test_a_call_in_the_midst_of_a_read_of_the_only_connection_is_refused(monkeypatch):
    with Memory(":memory:", embedder=None) as memory, Memory(":memory:", embedder=None) as other:
        memory.add("red sofa")
        interrupted = interrupting(sqlite_store.position, other)
        monkeypatch.setattr(sqlite_store, "position", interrupted)
        assert len(memory.search("red")) == 1
        monkeypatch.undo()
    assert interrupted.times


@pytest.mark.parametrize("inner", ["reading", "writing"])
@pytest.mark.parametrize("outer", ["reading", "writing"])
def test_a_shared_lock_refuses_the_thread_that_holds_it(outer, inner):
    lock = SharedLock()
    with getattr(lock, outer)(), pytest.raises(BusyThreadError), getattr(lock, inner)():
        pass
    with getattr(lock, inner)():
        pass


@pytest.fixture
def _ends():
    """Fail a test that hangs."""

    def fail(*_):
        raise AssertionError("a call in the midst of another one never returned")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def embedders():
    return {"none": None, "words": WordEmbedder(), "cached": CachedEmbedder(WordEmbedder())}


class Calls:
    """Calls of a memory, and what they were told is stored."""

    def __init__(self, memory):
        self.memory, self.chance = memory, random.Random(40)  # noqa: S311 - moments
        self.first = memory.add_many([f"red sofa {at}" for at in range(20)])[0].id
        self.added, self.refused, self.text = [], 0, "red sofa 0"
        policy = RetrievalPolicy(memory)
        self.all = {
            "add": self.add,
            "update": self.update,
            "search": lambda: memory.search("red lamp", limit=3),
            "timed search": lambda: memory.search("red lamp", limit=3, timeout=30),
            "get": lambda: memory.get(self.first),
            "context": lambda: memory.context("red lamp"),
            "policy": lambda: policy.run(RetrievalRequest("red lamp", "ana", "monday")),
        }

    def add(self):
        self.added.append(self.memory.add(f"red lamp {self.chance.random()}").id)

    def update(self):
        text = f"red chair {self.chance.random()}"
        self.memory.update(self.first, content=text)
        self.text = text

    def count(self):
        try:
            return self.memory.count()
        except BusyThreadError:
            return None

    def handle(self, name):
        """Do what a signal handler may do: a call, which is answered, or refused as a whole."""
        before = self.count()
        try:
            self.all[name]()
        except BusyThreadError:
            self.refused += 1
            assert self.count() == before


@pytest.mark.usefixtures("_ends")
@pytest.mark.parametrize("kind", ["none", "words", "cached"])
@pytest.mark.parametrize("place", [":memory:", "a.db"])
def test_a_call_in_the_midst_of_another_one_is_answered_or_refused_and_neither_is_wrong(
    tmp_path, place, kind
):
    path = place if place == ":memory:" else tmp_path / place
    with Memory(path, embedder=embedders()[kind]) as memory:
        calls = Calls(memory)
        for call in calls.all.values():
            call()  # modules that a first call loads
        for outer, inner in list(product(calls.all, repeat=2)) * MOMENTS:
            moment = calls.chance.randrange(250)
            handled_at(moment, calls.all[outer], partial(calls.handle, inner), PACKAGE)
            if outer != "update":
                assert memory.get(calls.first).content == calls.text
        assert calls.refused
        assert set(calls.added) <= {entry.id for entry in memory.list(limit=900)}
        assert not memory.verify().problems
        found = {hit.id for hit in memory.search("red lamp", limit=900)}
        assert set(calls.added) <= found
        if place != ":memory:":
            with Memory(path, embedder=embedders()[kind]) as again:  # with an index of its own
                assert {hit.id for hit in again.search("red lamp", limit=900)} == found


PROGRAM = """
import asyncio, faulthandler, signal, sys, time
from mnemic import AsyncMemory
from mnemic.errors import BusyThreadError
from tests.support.embedders import WordEmbedder

faulthandler.dump_traceback_later(60, exit=True)
outcomes = {"answered": 0, "refused": 0}

async def main():
    async with AsyncMemory(sys.argv[1], embedder=WordEmbedder()) as memory:
        await memory.add_many([f"red sofa {at}" for at in range(50)])
        memory.sync.add("first"), memory.sync.search("red")

        def handler(*_):
            try:
                memory.sync.add("a last note")
                memory.sync.search("red")
                outcomes["answered"] += 1
            except BusyThreadError:
                outcomes["refused"] += 1
            signal.setitimer(signal.ITIMER_REAL, 0.0007)

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0007)
        end = time.monotonic() + 3
        while time.monotonic() < end:
            adds = [memory.add(f"red {at}") for at in range(5)]
            await asyncio.gather(*adds, memory.search("red"))
        signal.setitimer(signal.ITIMER_REAL, 0)

asyncio.run(main())
print(outcomes["answered"] > 0)
"""


def test_a_signal_handler_uses_the_memory_of_an_event_loop(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "a.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr[-2000:]


BESIDE_WRITERS = """
import faulthandler, signal, sys, threading, time
from mnemic import Memory
from mnemic.errors import BusyThreadError
from tests.support.embedders import WordEmbedder

faulthandler.dump_traceback_later(60, exit=True)
memory, noted, stop = Memory(sys.argv[1], embedder=WordEmbedder()), [], threading.Event()
first = memory.add("red sofa").id
memory.search("red"), memory.list(limit=1)

def handler(*_):
    try:
        noted.append(memory.add("a last note").id)
        memory.list(limit=3)
    except BusyThreadError:
        pass
    signal.setitimer(signal.ITIMER_REAL, 0.0005)

def write():
    while not stop.is_set():
        memory.add("beside")

writing = [threading.Thread(target=write) for _ in range(3)]
for thread in writing:
    thread.start()
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0005)
end = time.monotonic() + 5
while time.monotonic() < end:
    memory.update(first, content=f"red {time.monotonic()}")
    memory.get(first)
    memory.list(limit=3)
signal.setitimer(signal.ITIMER_REAL, 0)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
stop.set()
for thread in writing:
    thread.join()
print(len(noted) > 0, all(memory.get(one) for one in noted))
"""


def test_a_signal_handler_writes_while_other_threads_do(tmp_path):
    command = [sys.executable, "-c", BESIDE_WRITERS, str(tmp_path / "a.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (done.returncode, done.stdout) == (0, "True True\n"), done.stderr[-2000:]


LIBRARY = str(Path(threading.__file__).parent)
"""The files of the standard library, whose locks do not know their holder."""


numbers = count()


def new_text():
    return f"red lamp {next(numbers)}"


def loop_calls(memory):
    """Return plain calls, and the same beside work of an event loop."""

    def awaited(call):
        async def main():
            await asyncio.gather(call(), call())

        return lambda: asyncio.run(main())

    return {
        "timed search": lambda: memory.search(new_text(), timeout=30),
        "add": lambda: memory.add(new_text()),
        "opening": lambda: Memory(
            memory.repository.shared.store.path, embedder=WordEmbedder()
        ).close(),
        "awaited search": awaited(lambda: memory.aio.search(new_text())),
        "awaited add": awaited(lambda: memory.aio.add(new_text())),
    }


INNER = {
    "search": lambda memory: memory.search(new_text(), timeout=30),
    "add": lambda memory: memory.add(new_text()),
    "erasure": lambda memory: memory.erase_pending(),
}


@pytest.mark.usefixtures("_ends")
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize(
    "outer", ["timed search", "add", "opening", "awaited search", "awaited add"]
)
def test_no_call_waits_for_a_lock_of_the_library_that_its_thread_holds(tmp_path, outer, inner):
    with Memory(tmp_path / "a.db", embedder=WordEmbedder()) as memory:
        call = loop_calls(memory)[outer]
        call()

        def handle():
            with suppress(BusyThreadError):
                INNER[inner](memory)

        step = 1 if outer in {"timed search", "add"} else 40 if TIER == "quick" else 2
        for moment in count(step=step):
            if handled_at(moment, call, handle, LIBRARY, ("line",)):
                break


def test_a_call_is_refused_before_it_begins_where_its_thread_holds_a_lock():
    lock, counted = InnerLock(), []

    def listen(_):
        counted.append(memory.count())  # in the midst of a call, which holds no lock
        with lock:
            try:
                memory.add("never")
            except BusyThreadError:
                counted.append("refused")

    with Memory(":memory:", embedder=None) as memory:
        memory.events.subscribe(MemoryStoredEvent, listen)
        memory.add("red sofa")
        assert counted == [1, "refused"]
        assert memory.count() == 1


def test_locks_may_be_collected_while_a_call_looks_at_them():
    """The collector runs in the midst of whatever takes memory, at every place once."""
    alive, thresholds = [InnerLock() for _ in range(100)], gc.get_threshold()
    gc.collect()
    gc.freeze()  # what is there already would take long at each collection
    try:
        for threshold in range(1, 40):
            gc.disable()
            garbage = [InnerLock()]
            garbage.append(garbage)
            del garbage
            gc.set_threshold(threshold)
            gc.enable()
            check_no_lock_is_held()
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()
        gc.unfreeze()
    assert not any(lock.is_held_here() for lock in alive)
