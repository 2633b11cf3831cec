"""A pool of indexes: its budget holds, and what it drops changes no answer."""

import os
import random
import signal
import threading
from functools import partial

import pytest

from mnemic import Memory
from mnemic.errors import BusyThreadError, InvalidArgumentError, InvalidEntryError
from mnemic.repository import index_pool
from mnemic.repository.index_pool import indexes_of
from mnemic.vectors import IndexPool
from tests.support.embedders import WordEmbedder
from tests.support.threads import run_together

WORDS = ("apple", "bread", "cheese", "dill", "egg", "fig", "grape", "honey")


def opened(folder, agent, **options):
    return Memory(folder / "a.db", agent, embedder=WordEmbedder(), **options)


def fill(memory, number=50):
    draw = random.Random(memory.agent_id)  # noqa: S311 - no secret
    memory.add_many([" ".join(draw.choices(WORDS, k=5)) for _ in range(number)])


def answer(memory, query="honey fig"):
    return [(hit.entry.content, hit.score) for hit in memory.search(query)]


def size_of_one(folder):
    pool = IndexPool()
    with opened(folder, "agent 0", index_pool=pool) as memory:
        fill(memory)
        answer(memory)
        return pool.nbytes


@pytest.fixture
def memories(tmp_path):
    """Return ten memories of agents and their pool, which has capacity for about three indexes."""
    size = size_of_one(tmp_path)
    pool = IndexPool(max_bytes=int(3.5 * size))
    found = [opened(tmp_path, f"agent {at}", index_pool=pool) for at in range(10)]
    for memory in found[1:]:
        fill(memory)
    yield found, pool, size
    for memory in found:
        memory.close()


def test_the_indexes_used_least_are_dropped(memories):
    found, pool, size = memories
    for at in (0, 0, 0, 1, 2, 2, 0, 3):
        answer(found[at])
    loaded = [memory.repository._indexes.active.is_loaded for memory in found]
    assert loaded[0]
    assert loaded[3]
    assert not loaded[1]
    assert len(pool) == sum(loaded)
    assert 0 < pool.nbytes <= pool.max_bytes + size


def test_dropped_indexes_are_loaded_again_with_the_same_answers(memories, tmp_path):
    found, _, _ = memories
    expected = []
    for at in range(10):
        with opened(tmp_path, f"agent {at}") as alone:
            expected.append(answer(alone))
    for _ in range(2):
        assert [answer(memory) for memory in found] == expected


def test_what_is_written_to_a_memory_without_its_index_is_found(memories):
    found, _, _ = memories
    for memory in found:
        answer(memory)
    dropped = [one for one in found if not one.repository._indexes.active.is_loaded]
    assert len(dropped) >= 6
    for memory in dropped:
        memory.add("a zebra")
        assert answer(memory, "zebra")[0][0] == "a zebra"


def test_an_index_used_often_stays_while_others_come_and_go(memories):
    found, _, _ = memories
    often = found[4]
    for _ in range(20):
        answer(often)
    for memory in (*found, *found):
        answer(memory)
        assert often.repository._indexes.active.is_loaded


def test_an_index_used_often_in_the_past_makes_space_in_the_end(memories, monkeypatch):
    monkeypatch.setattr(index_pool, "HALF_LIFE", 10)
    found, _, _ = memories
    for _ in range(20):
        answer(found[4])
    others = [memory for memory in found if memory is not found[4]]
    for _ in range(10):
        for memory in others:
            answer(memory)
    assert not found[4].repository._indexes.active.is_loaded


def test_many_threads_get_the_right_answers_within_the_budget(memories):
    found, pool, size = memories
    expected = [answer(memory) for memory in found]
    sizes, wrong = [], []

    def search(seed):
        draw = random.Random(seed)  # noqa: S311 - no secret
        for _ in range(100):
            at = draw.randrange(10)
            if answer(found[at]) != expected[at]:
                wrong.append(at)
            sizes.append(pool.nbytes)

    run_together(*(partial(search, seed) for seed in range(4)))
    assert not wrong
    assert max(sizes) <= pool.max_bytes + 1.5 * size


def test_an_index_that_grows_by_writes_alone_is_measured(tmp_path):
    pool = IndexPool()
    with opened(tmp_path, "a", index_pool=pool) as memory:
        for _ in range(8):
            fill(memory)
        assert pool.nbytes > 100_000


def test_a_closed_memory_leaves_the_pool(tmp_path):
    pool = IndexPool()
    with opened(tmp_path, "a", index_pool=pool) as memory:
        fill(memory)
        answer(memory)
        assert len(pool) == 1
        assert pool.nbytes > 0
    assert len(pool) == 0
    assert pool.nbytes == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_process_forked_while_a_pool_is_in_use_can_use_it():
    pool = IndexPool()
    with indexes_of(pool)._lock:
        child = os.fork()
        if not child:
            signal.alarm(10)  # ends a child that waits for the lock
            os._exit(0 if len(pool) == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "1 GB"])
def test_a_budget_is_a_whole_number_above_zero(wrong):
    with pytest.raises(InvalidEntryError, match="max_bytes"):
        IndexPool(max_bytes=wrong)


def test_a_pool_must_be_one(tmp_path):
    with pytest.raises(InvalidArgumentError, match="index_pool must be an IndexPool"):
        opened(tmp_path, "a", index_pool=1 << 30)


def test_a_call_in_the_midst_of_a_load_is_refused_while_another_thread_waits_to_load_too(tmp_path):
    """As that of a signal handler: neither thread would ever go on."""
    outcomes, pool = [], IndexPool()

    def search_the_other(*_):
        if searching.ident is None:
            searching.start()
            searching.join(0.2)  # it waits for this load
            with pytest.raises(BusyThreadError):
                other.search("fig")
            outcomes.append("refused")

    def load():
        outcomes.append(len(memory.search("fig")))

    for name in ("one", "other"):
        with Memory(tmp_path / "a.db", name, embedder=None) as filled:
            fill(filled)
    options = {"embedder": None, "index_pool": pool}
    memory = Memory(tmp_path / "a.db", "one", progress=search_the_other, **options)
    other = Memory(tmp_path / "a.db", "other", **options)
    searching = threading.Thread(target=lambda: other.search("fig"), daemon=True)
    loading = threading.Thread(target=load, daemon=True)
    loading.start()
    loading.join(20)
    assert outcomes == ["refused", 10]
    searching.join()
    memory.close()
    other.close()


def test_a_call_in_the_midst_of_a_change_is_refused_where_it_would_have_to_load(tmp_path):
    """As that of a signal handler: whoever loads may wait for the index that is being changed."""
    pool = IndexPool()
    for name in ("one", "other"):
        with Memory(tmp_path / "a.db", name, embedder=None) as filled:
            fill(filled)
    options = {"embedder": None, "index_pool": pool}
    with (
        Memory(tmp_path / "a.db", "one", **options) as memory,
        Memory(tmp_path / "a.db", "other", **options) as other,
    ):
        assert len(memory.search("fig")) == 10
        index = memory.repository._indexes.active.own
        with index.lock, pytest.raises(BusyThreadError):
            other.search("fig")
        assert len(other.search("fig")) == 10
        with index.lock:
            assert len(other.search("fig")) == 10
