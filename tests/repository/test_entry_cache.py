"""Reading an entry again asks the store for two numbers, and never gives yesterday's entry."""

from datetime import timedelta
from functools import partial
from itertools import count

import apsw
import pytest

from mnemic import MemoryEntry
from mnemic.errors import StoreCorruptError
from mnemic.memory import Memory
from mnemic.repository import entry_cache
from mnemic.store.operations import EntriesById, EntriesByRow
from mnemic.threads.sync_bridge import run_sync
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.interrupts import interrupted_at
from tests.support.operations import replace_operation
from tests.support.threads import run_together


def opened(path, **options):
    return Memory(path, embedder=WordEmbedder(), track_access=False, **options)


def reads_of(memory, call):
    """Return how many entries a call read from the store."""
    store, read = memory._repository._store, []

    def noted(own, wanted, **named):
        read.extend(wanted.ids if isinstance(wanted, EntriesById) else wanted.rows)
        return own(wanted, **named)

    with pytest.MonkeyPatch.context() as patch:
        replace_operation(patch, store, (EntriesById, EntriesByRow), noted)
        call()
    return len(read)


def test_what_was_read_is_not_read_again(path):
    with opened(path) as memory:
        entries = memory.add_many(f"sofa {number}" for number in range(10))
        assert reads_of(memory, lambda: memory.search("sofa")) == 10
        assert reads_of(memory, lambda: memory.search("sofa")) == 0
        assert reads_of(memory, lambda: memory.get(entries[3].id)) == 0
        memory.update(entries[3].id, importance=1)
        assert reads_of(memory, lambda: memory.search("sofa")) == 1
        assert memory.get(entries[3].id).importance == 1


def test_an_entry_whose_accesses_are_written_stays_cached_and_shows_them(path):
    with Memory(path, embedder=None) as memory:
        entries = memory.add_many(["sofa", "chair"])
        counts = []
        for reads in (1, 0, 0):
            get = partial(memory.get, entries[0].id)
            assert reads_of(memory, lambda get=get: counts.append(get().access_count)) == reads
            run_sync(memory.repository.shared.accesses.write())
        assert counts == [0, 1, 2]
        assert memory.get(entries[0].id).last_accessed_at is not None
        assert memory.get(entries[1].id).access_count == 0


def test_a_cached_entry_with_damaged_accesses_is_reported(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        kept = memory.add("sofa")
        memory.get(kept.id)
        with apsw.Connection(str(path)) as connection:
            connection.execute(
                "UPDATE agent_memory_entries SET access_count = -1, access_seq = 9;"
                "UPDATE agent_memory_agents SET accesses = 9"
            )
        with pytest.raises(StoreCorruptError):
            memory.get(kept.id)


@pytest.mark.parametrize("other_is", ["another memory", "the same"])
def test_every_change_is_seen_at_once_whoever_made_it(path, other_is):
    with opened(path) as reader, opened(path) as another:
        writer = reader if other_is == "the same" else another
        kept = writer.add("red sofa")
        assert reader.get(kept.id) == kept
        changed = writer.update(kept.id, content="blue sofa")
        assert reader.get(kept.id) == changed
        writer.delete(kept.id)
        with pytest.raises(KeyError):
            reader.get(kept.id)
        assert len(reader.search("sofa")) == 0
        writer.restore(kept.id)
        assert reader.get(kept.id) == changed
        writer.delete(kept.id, permanent=True)
        with pytest.raises(KeyError):
            reader.get(kept.id)


def test_a_cached_entry_is_inside_its_scopes_and_its_time(path):
    now = [NOON]
    with opened(path, clock=lambda: now[0]) as memory:
        kept = memory.add(MemoryEntry("tea", expires_at=NOON + timedelta(hours=1)), user_id="alice")
        assert memory.get(kept.id, user_id="alice") == kept
        for user in ("bob", None):
            with pytest.raises(KeyError):
                memory.get(kept.id, user_id=user)
        now[0] += timedelta(hours=1)
        with pytest.raises(KeyError):
            memory.get(kept.id, user_id="alice")


def test_the_caller_may_change_the_metadata_it_was_given(path):
    with opened(path) as memory:
        kept = memory.add("tea", metadata={"a": {"b": [1]}})
        for _ in range(3):
            got = memory.get(kept.id)
            assert got.metadata == {"a": {"b": [1]}}
            got.metadata["a"]["b"].append(2)
            found = memory.search("tea")[0].entry
            assert found.metadata == {"a": {"b": [1]}}
            found.metadata.clear()


@pytest.mark.requirement("C101")
def test_sensitive_entries_are_never_kept(path):
    with opened(path) as memory:
        kept = memory.add("a secret", sensitive=True)
        assert [reads_of(memory, lambda: memory.get(kept.id)) for _ in range(3)] == [1, 1, 1]
        assert not memory._repository._cache._entries


@pytest.mark.requirement("R082")
def test_the_least_recently_used_go_first(path):
    assert entry_cache.CACHED_ENTRIES == 1000
    with opened(path) as memory:
        memory._repository._cache._size = 3
        one, two, three, four = memory.add_many(list("abcd"))
        for entry in (one, two, three, one, four):
            memory.get(entry.id)
        assert reads_of(memory, lambda: memory.get(one.id)) == 0
        assert reads_of(memory, lambda: memory.get(two.id)) == 1


def test_a_large_read_leaves_the_entries_that_are_read_often(path):
    with opened(path) as memory:
        memory._repository._cache._size = 8
        often = memory.add("often")
        memory.get(often.id)
        memory.add_many(f"sofa {number}" for number in range(3))
        assert [reads_of(memory, lambda: memory.search("sofa")) for _ in range(2)] == [3, 3]
        assert reads_of(memory, lambda: memory.get(often.id)) == 0
        assert memory.search("sofa", limit=2) == memory.search("sofa")[:2]


def test_an_entry_read_before_a_change_is_not_kept_after_it(path):
    with opened(path) as memory:
        kept = memory.add("old")
        store, overtaken = memory._repository._store, []

        def late(read, wanted):
            found = read(wanted)
            if not overtaken:
                overtaken.append(memory.update(kept.id, content="new"))
                memory.search("anything")  # another reader moves the cache on
            return found

        with pytest.MonkeyPatch.context() as patch:
            replace_operation(patch, store, EntriesById, late)
            assert memory.get(kept.id).content == "old"
        assert memory.get(kept.id).content == "new"


def test_threads_that_read_and_write_at_once_see_their_own_writes(path):
    failures = []
    with opened(path) as memory:
        entries = memory.add_many(f"sofa {number}" for number in range(4))

        def work(entry):
            for number in range(100):
                memory.update(entry.id, content=f"sofa {entry.id} {number}")
                if memory.get(entry.id).content != f"sofa {entry.id} {number}":
                    failures.append(number)
                memory.search("sofa")

        run_together(*(partial(work, entry) for entry in entries))
    assert failures == []


def test_an_interrupted_eviction_hides_no_memory_and_breaks_no_later_one(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as memory:
        added = memory.add("first")
        cache = memory.repository._cache
        for moment in count():
            assert memory.get(added.id).content == "first"
            rows = list(cache._entries)
            assert len(rows) == 1
            has_ended = interrupted_at(moment, lambda rows=rows: cache._drop(rows))
            assert memory.get(added.id).content == "first"
            cache._drop(rows)
            if has_ended:
                break
        assert moment >= 2
