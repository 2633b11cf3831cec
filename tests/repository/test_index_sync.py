"""An index most of whose places are vacant is rebuilt, beside its use."""

import threading
from functools import partial

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import StoreError
from mnemic.index import native
from mnemic.model import Ranking, Weights
from mnemic.store.operations import RowsSince
from tests.support.embedders import WordEmbedder
from tests.support.operations import replace_operation
from tests.support.threads import run_together
from tests.support.waiting import until

FEW = 8
PATIENCE = 20.0  # seconds, for what takes milliseconds


@pytest.fixture(autouse=True)
def _small_indexes_are_made_anew_too(monkeypatch):
    monkeypatch.setattr(native, "MIN_VACANT", FEW)
    monkeypatch.setattr("mnemic.repository.index_loading.REBUILD_SECONDS", 0.0)


@pytest.fixture(params=[True, False], ids=["with vectors", "keywords alone"])
def memory(request, tmp_path):
    embedder = WordEmbedder() if request.param else None
    with Memory(tmp_path / "memories.db", embedder=embedder) as opened:
        opened.search("anything")  # without vectors, the index is read when it is asked for
        yield opened


@pytest.fixture
def held(memory, monkeypatch):
    """Return an event that everything reread waits for, and one that tells that it waits."""
    may_go, waits = threading.Event(), threading.Event()
    store = sync_of(memory).own.store

    def reading(read, wanted, **named):
        batch = read(wanted, **named)
        if wanted.seq is None and threading.current_thread().name == "mnemic-load":
            waits.set()
            assert may_go.wait(PATIENCE)
        return batch

    replace_operation(monkeypatch, store, RowsSince, reading)
    yield may_go, waits
    may_go.set()


def sync_of(memory):
    return memory._repository._indexes.active


def core_of(memory):
    return sync_of(memory).index._core


def rewrite(memory, entry, times=3 * FEW):
    for number in range(times):
        memory.update(entry.id, content=f"tea number {number}")
        sync_of(memory).index.summary()  # takes in what was written


def contents(hits):
    return {hit.content for hit in hits}


def test_places_that_memories_left_are_given_up(memory):
    kept = memory.add("coffee")
    changed = memory.add("tea")
    rewrite(memory, changed)
    assert core_of(memory).docids > 3 * FEW
    memory.search("tea")
    until(lambda: core_of(memory).docids == len(core_of(memory)) == 2)
    assert contents(memory.search("tea", limit=1)) == {f"tea number {3 * FEW - 1}"}
    assert contents(memory.search("coffee", limit=1)) == {kept.content}


def test_few_vacant_places_are_kept(memory):
    changed = memory.add("tea")
    rewrite(memory, changed, FEW - 1)
    before = core_of(memory).docids
    memory.search("tea")
    assert not sync_of(memory).loading._thread.is_running
    assert core_of(memory).docids == before > len(core_of(memory))


def test_what_is_written_while_all_is_read_again_is_there_before_and_after(memory, held):
    may_go, waits = held
    changed = memory.add("tea")
    rewrite(memory, changed)
    memory.search("tea")
    assert waits.wait(PATIENCE)
    added = memory.add("coffee")
    memory.update(changed.id, content="milk")
    assert contents(memory.search("coffee milk tea")) == {"coffee", "milk"}
    may_go.set()
    until(lambda: core_of(memory).docids < FEW)
    assert contents(memory.search("coffee milk tea")) == {"coffee", "milk"}
    memory.delete(added.id)
    assert contents(memory.search("coffee milk tea")) == {"milk"}


def test_what_was_accessed_while_all_is_read_again_is_known_after(memory, held):
    may_go, waits = held
    read, changed = memory.add("coffee"), memory.add("tea")
    rewrite(memory, changed)
    by_access = Ranking(similarity=0.0, weights=Weights(relevance=0.0, access=1.0))
    memory.search("tea or coffee", ranking=by_access)
    assert waits.wait(PATIENCE)
    memory.get(read.id)
    assert memory.search("tea or coffee", ranking=by_access)[0].id == read.id
    may_go.set()
    until(lambda: core_of(memory).docids < FEW)
    assert memory.search("tea or coffee", ranking=by_access)[0].id == read.id


def test_every_search_sees_what_its_thread_wrote_while_indexes_come_and_go(memory):
    cores, wrong = set(), []

    def write_and_look(name):
        mine = memory.add(f"{name} begins", user_id=name)
        for number in range(150):
            text = f"{name} number {number}"
            memory.update(mine.id, content=text, user_id=name)
            found = contents(memory.search("number", user_id=name))
            cores.add(id(core_of(memory)))
            if found != {text}:
                wrong.append((text, found))

    run_together(*(partial(write_and_look, name) for name in ("ann", "bob")))
    assert wrong == []
    assert len(cores) > 1


def test_closing_does_not_wait_for_all_to_be_read(memory, monkeypatch):
    begun = threading.Event()
    sync = sync_of(memory)

    def check():
        begun.set()
        until(lambda: sync.own.is_stopped)
        check_before()

    check_before = sync.loading._check_not_stopped
    monkeypatch.setattr(sync.loading, "_check_not_stopped", check)
    rewrite(memory, memory.add("tea"))
    memory.search("tea")
    assert begun.wait(PATIENCE)
    memory.close()
    assert not sync.loading._thread.is_running


def test_an_index_that_cannot_be_made_anew_serves_on(memory, monkeypatch, caplog):
    rewrite(memory, memory.add("tea"))
    store = sync_of(memory).own.store

    def reading(read, wanted, **named):
        if wanted.seq is None:
            raise StoreError("the disk is gone")
        return read(wanted, **named)

    replace_operation(monkeypatch, store, RowsSince, reading)
    found = contents(memory.search("tea"))
    until(lambda: "the disk is gone" in caplog.text)
    until(lambda: not sync_of(memory).loading._thread.is_running)
    assert contents(memory.search("tea")) == found == {f"tea number {3 * FEW - 1}"}


@pytest.mark.parametrize("way", ["add_many", "update"])
def test_another_memory_finds_a_content_that_is_back_by_its_new_vector(tmp_path, way):
    own = {"embedder": None, "embedding_model": "own"}
    with Memory(tmp_path / "a.db", **own) as writer, Memory(tmp_path / "a.db", **own) as reader:
        first = writer.add(MemoryEntry("Tea", embedding=[1.0, 0.0]))
        assert reader.search(vector=[1.0, 0.0])[0].similarity == 1
        for content, vector in (("Rain", [1.0, 1.0]), ("Tea", [0.0, 1.0])):
            if way == "update":
                writer.update(first.id, content=content, embedding=vector)
            else:
                new = MemoryEntry(content, id=first.id, embedding=vector)
                writer.add_many([new], on_conflict="replace")
        assert reader.search(vector=[0.0, 1.0])[0].similarity == 1


def test_the_last_of_an_id_that_comes_twice_is_found_by_its_vector():
    with Memory(":memory:", embedder=None, embedding_model="own") as memory:
        first = memory.add(MemoryEntry("Tea", embedding=[1.0, 0.0]))
        memory.search(vector=[1.0, 0.0])
        twice = [
            MemoryEntry("Rain", id=first.id, embedding=[1.0, 1.0]),
            MemoryEntry("Tea", id=first.id, embedding=[0.0, 1.0]),
        ]
        memory.add_many(twice, on_conflict="replace")
        assert memory.search(vector=[0.0, 1.0])[0].similarity == 1
