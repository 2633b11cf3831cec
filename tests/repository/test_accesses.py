import math
import subprocess
import sys
import time

import apsw
import pytest

from mnemic.memory import Memory
from mnemic.model import Ranking, Recency, RecencyCurve, Weights
from mnemic.model.new_entry import NewEntry
from mnemic.repository.agent_index import MAX_BUFFERED, _merged
from mnemic.store.operations import AccessesSince, Add, RowsSince
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import HOUR, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.operations import replace_operation

BY_ACCESS = {"ranking": {"access": 1}}


@pytest.mark.requirement("C158")
def test_accesses_are_no_changes_and_no_index_follows_them(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as one, Memory(path, embedder=WordEmbedder()) as two:
        kept = one.add("tea")
        two.get(kept.id)
        one.search("tea")
        index = one._repository._indexes.active.index
        seq = index.seq
        for _ in range(3):
            two.get(kept.id)
        assert two.list().entries[0].access_count == 4
        one.search("tea")
        assert index.seq == seq
        assert one.get(kept.id).access_count == 4


def test_a_memory_read_by_its_id_shows_what_is_not_written_yet(tmp_path):
    clock = Clock()
    with Memory(tmp_path / "a.db", embedder=None, clock=clock) as memory:
        kept, other = memory.add_many(["tea", "coffee"])
        for read in (memory.get, lambda entry_id: memory.get_many([entry_id])[0]):
            before = memory.list(filters={"id": kept.id})[0].access_count
            clock.now += HOUR
            memory.touch([kept.id, kept.id, other.id])
            memory.touch([kept.id])
            found = read(kept.id)
            assert (found.access_count, found.last_accessed_at) == (before + 2, clock.now)
        assert memory.list(filters={"id": kept.id})[0].access_count == before + 3
        assert memory.get(kept.id).access_count == before + 3
        assert memory.get(other.id).access_count == 2


def test_reads_by_id_and_lists_show_one_count_whenever_accesses_are_written(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as memory:
        kept, counts = memory.add("tea"), []
        for at in range(40):
            memory.search("tea", limit=at % 2)
            counts.append(memory.get(kept.id).access_count)
            if at % 7 == 0:
                assert memory.list()[0].access_count == at + 1
        assert counts == list(range(40))


def test_accesses_are_on_disk_within_about_a_second_and_at_the_latest_when_closed(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=None) as reader:
        with Memory(path, embedder=None) as memory:
            kept = memory.add("tea")
            memory.get(kept.id)
            deadline = time.monotonic() + 10
            while reader.list().entries[0].access_count == 0 and time.monotonic() < deadline:
                time.sleep(0.02)
            assert reader.list().entries[0].access_count == 1
            memory.get(kept.id)
        assert reader.list().entries[0].access_count == 2


def test_a_program_that_never_closes_writes_its_accesses_down_at_its_end(tmp_path):
    code = (
        "import sys\n"
        "from mnemic import Memory\n"
        "memory = Memory(sys.argv[1], embedder=None)\n"
        "memory.get(memory.add('tea').id)\n"
    )
    path = tmp_path / "a.db"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    with Memory(path, embedder=None) as memory:
        assert memory.list().entries[0].access_count == 1


# Searches that rank by accesses


def counted(results):
    """Return how often each memory was read, as its score by access tells."""
    return {hit.content: round(10 ** (3 * hit.score)) - 1 for hit in results}


@pytest.mark.parametrize("path", [":memory:", "a.db"])
def test_a_search_by_access_knows_what_was_just_read(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with Memory(path, embedder=WordEmbedder()) as memory:
        tea, _ = memory.add("tea"), memory.add("milk")
        for count in range(1, 5):
            memory.get(tea.id)
            results = memory.search("milk", **BY_ACCESS)
            assert counted(results) == {"tea": count, "milk": 0}
            assert results[0].entry.access_count == count


def test_every_way_to_rank_or_filter_by_accesses_sees_them():
    clock = Clock()
    with Memory(":memory:", embedder=WordEmbedder(), clock=clock) as memory:
        tea = memory.add("tea", importance=0)
        memory.search("tea")
        clock.now += 7 * 24 * HOUR
        memory.touch([tea.id])
        recency = Recency(RecencyCurve.ACCESSED_HALF_LIFE, 7)
        fresh = Ranking(weights=Weights(relevance=0, recency=1), recency=recency)
        assert memory.search("tea", ranking=fresh)[0].score == 1
        memory.touch([tea.id])
        (hit,) = memory.search("tea", ranking={"salience": 1})
        frequency = math.log(3) / math.log(101)
        assert hit.score == pytest.approx((0.25 + 0.20 * frequency) / 0.70)
        memory.touch([tea.id])
        read_often = {"OR": [{"access_count": {"gte": 3}}, {"NOT": {"content": "tea"}}]}
        assert [hit.content for hit in memory.search("tea", filters=read_often)] == ["tea"]
        clock.now += HOUR
        memory.touch([tea.id])
        read_now = {"last_accessed_at": {"gte": clock.now}}
        assert [hit.content for hit in memory.search("tea", filters=read_now)] == ["tea"]


def test_a_search_that_does_not_rank_by_accesses_neither_writes_nor_reads_them(monkeypatch):
    calls = []
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        store = memory._repository._store
        for name, kind in (("written", "write_accesses"), ("read", AccessesSince)):

            def told(method, *values, name=name):
                calls.append(name)
                return method(*values)

            replace_operation(monkeypatch, store, kind, told)
        tea = memory.add("tea")
        memory.search("tea", **BY_ACCESS)  # what was read before all was loaded is written down
        assert calls == ["written"]
        calls.clear()
        memory.touch([tea.id])
        halves = Ranking(recency=Recency(RecencyCurve.ACCESSED_HALF_LIFE, 7))
        memory.search("tea")
        memory.search("tea", ranking=halves)
        memory.search("tea", ranking={"relevance": 0.5, "recency": 0.3, "importance": 0.2})
        memory.search("tea", filters={"importance": {"gte": 0.1}})
        assert calls == []
        assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 1}
        assert calls == []
        run_sync(memory.repository.shared.accesses.write())
        for _ in range(2):
            assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 1}
            # Once for the index, once for the entries that are kept.
            assert calls == ["written", "read", "read"]


def test_accesses_of_many_memories_are_known_however_many():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        ids = [new.id for new in memory.add_many([f"tea {at}" for at in range(MAX_BUFFERED + 10)])]
        memory.search("tea")
        memory.touch(ids)
        memory.touch(ids[:3])
        counts = [hit.entry.access_count for hit in memory.search("tea", limit=1000, **BY_ACCESS)]
        assert counts == [2] * 3 + [1] * 997


@pytest.mark.parametrize("ahead", [HOUR, 0 * HOUR, -HOUR])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_search_by_access_sees_what_another_opening_wrote_whatever_its_clock(
    tmp_path, ahead, read_only
):
    path, clock = tmp_path / "a.db", Clock()
    clock.now += ahead
    options = {"embedder": WordEmbedder()}
    with Memory(path, clock=Clock(), **options) as one:
        tea, milk = one.add("tea"), one.add("milk")
        with Memory(path, clock=clock, read_only=read_only, **options) as two:
            for count in range(1, 4):
                one.get(tea.id)
                assert counted(one.search("tea", **BY_ACCESS)) == {"tea": count, "milk": 0}
                run_sync(one.repository.shared.accesses.write())
                assert counted(two.search("tea", **BY_ACCESS)) == {"tea": count, "milk": 0}
            if not read_only:
                two.get(tea.id)
                two.get(milk.id)
                assert counted(two.search("tea", **BY_ACCESS)) == {"tea": 4, "milk": 1}
                run_sync(two.repository.shared.accesses.write())
                assert counted(one.search("tea", **BY_ACCESS)) == {"tea": 4, "milk": 1}
                two.get(tea.id)
                one.get(milk.id)
                assert counted(one.search("tea", **BY_ACCESS)) == {"tea": 4, "milk": 2}
                run_sync(one.repository.shared.accesses.write())
                assert counted(two.search("tea", **BY_ACCESS)) == {"tea": 5, "milk": 2}


@pytest.mark.parametrize("reading", [AccessesSince, RowsSince])
def test_what_is_read_and_written_down_while_an_index_catches_up_counts_once(reading, monkeypatch):
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        tea = memory.add("tea")
        assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 0}
        store = memory.repository._store
        memory.get(tea.id)
        store.write_accesses().result()

        def meanwhile(read, *given, **named):  # as another thread may
            monkeypatch.undo()
            memory.get(tea.id)
            store.write_accesses().result()
            return read(*given, **named)

        replace_operation(monkeypatch, store, reading, meanwhile)
        if reading is RowsSince:
            memory.update(tea.id, importance=0.9)
        for _ in range(2):
            assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 2}


def test_what_was_accessed_before_the_index_had_it_is_seen_after():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        repository = memory._repository
        store, sync = repository._store, repository._indexes.active
        memory.search("tea")
        new = entry("tea", agent_id=memory.agent_id)
        embedding = repository._models.embedder.embed([new.content])[0]
        new = NewEntry(new.with_embedding(embedding, repository._models.embedder.model))
        stored = store.write(Add(memory.agent_id, [new], now=NOON)).result()
        store.touch(memory.agent_id, stored.rows, NOON)
        store.write_accesses().result()
        sync.accesses.pull()
        assert sync.index.apply(stored.batch)
        assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 1}


def test_a_search_by_access_does_not_fail_because_accesses_cannot_be_written(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as memory:
        tea = memory.add("tea")
        memory.get(tea.id)
        assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 1}
        memory._repository._store._connections.writer.set_busy_timeout(1)
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        memory.get(tea.id)
        assert counted(memory.search("tea", **BY_ACCESS)) == {"tea": 2}
        other.execute("ROLLBACK")
        other.close()


@pytest.mark.parametrize("embedder", [WordEmbedder(), None])
def test_what_comes_into_an_index_anew_brings_what_was_just_read(embedder):
    with Memory(":memory:", embedder=embedder) as memory:

        def frequent(**named):
            (found,) = memory.recall(mode="frequent", user_id=None, **named)
            assert round(101**found.score) - 1 == found.memory.access_count
            return found.memory.access_count

        tea = memory.add("tea")
        memory.get(tea.id)
        assert frequent() == 1  # nothing was loaded before
        memory.delete(tea.id)
        memory.restore(tea.id)
        assert frequent() == 2
        memory.update(tea.id, status="archived")
        assert frequent(include_archived=True) == 3
        assert frequent(include_archived=True) == 4
        memory.update(tea.id, status="active")
        assert frequent() == 5
        memory.update(tea.id, status="archived")
        assert frequent(include_archived=True) == 6


def test_of_accesses_that_are_written_together_the_latest_counts_in_whatever_order_they_came():
    assert _merged([([1, 2], 30), ([1], 10), ([2], 40)]) == {1: (2, 30), 2: (2, 40)}
