"""`update` with versions, expiries and metadata, and `touch` with an expiry."""

import asyncio
import pickle
from datetime import timedelta
from functools import partial

import pytest

from mnemic import MemoryEntry
from mnemic.errors import EntryNotFoundError, InvalidEntryError, ReadOnlyError, VersionConflictError
from mnemic.memory import Memory
from mnemic.model import MemoryEntryUpdate
from tests.support.clock import HOUR, NOON, Clock
from tests.support.doors import opened, run
from tests.support.embedders import WordEmbedder
from tests.support.entries import contents, entry, uid
from tests.support.threads import run_together


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def memory(clock, tmp_path):
    with Memory(tmp_path / "a.db", embedder=WordEmbedder(), clock=clock) as opened:
        yield opened
        assert opened.verify().ok


# Versions


def test_each_change_raises_the_version_and_nothing_else_does(memory):
    first = memory.add("a red sofa", id=uid(1))
    assert first.version == 1
    assert memory.update(uid(1), importance=0.9).version == 2
    assert memory.update(uid(1), content="a green chair").version == 3
    assert memory.update(uid(1)).version == 3
    assert memory.update(uid(1), status="archived").version == 4
    assert memory.update(uid(1), status="active").version == 5
    merged = memory.add("a green chair", tags=["t"], on_duplicate="merge")
    assert (merged.id, merged.version) == (uid(1), 6)
    assert memory.add("a green chair", tags=["t"], on_duplicate="merge").version == 6
    memory.get(uid(1))
    memory.touch([uid(1)], expires_at=NOON + HOUR)
    memory.delete(uid(1))
    memory.restore(uid(1))
    assert memory.get(uid(1)).version == 6
    assert memory.list(filters={"version": {"gte": 6}}).entries == (memory.get(uid(1)),)
    memory.add("a chair", supersedes=uid(1))
    (superseded,) = memory.list(filters={"status": "superseded"})
    assert superseded.version == 7


def test_an_export_keeps_the_versions(memory, tmp_path):
    memory.add("a red sofa", id=uid(1))
    memory.update(uid(1), importance=0.9)
    memory.add("a chair", supersedes=uid(1), id=uid(2))
    memory.update(uid(2), importance=0.9)
    memory.export(tmp_path / "a.jsonl")
    with opened() as other:
        other.import_(tmp_path / "a.jsonl")
        found = other.list(
            filters={"version": {"gte": 1}, "status": {"in": ["active", "superseded"]}}
        )
        assert {one.id: one.version for one in found} == {uid(1): 3, uid(2): 2}


def test_a_change_is_made_only_of_the_version_that_it_names(memory):
    memory.add("a red sofa", id=uid(1))
    changed = memory.update(uid(1), metadata={"n": 1}, if_version=1)
    assert changed.version == 2
    with pytest.raises(
        VersionConflictError, match=f"memory {uid(1)} has version 2, not 1"
    ) as raised:
        memory.update(uid(1), content="a green chair", if_version=1)
    assert (raised.value.stored, raised.value.given) == (2, 1)
    assert "sofa" not in str(raised.value)
    again = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - of our own making
    assert (str(again), again.stored, again.given) == (str(raised.value), 2, 1)
    assert memory.get(uid(1)) == changed
    assert memory.update(uid(1), if_version=2) == changed
    with pytest.raises(VersionConflictError):
        memory.update(uid(1), if_version=3)
    with pytest.raises(EntryNotFoundError):
        memory.update(uid(2), importance=0.1, if_version=1)
    with pytest.raises(EntryNotFoundError):
        memory.update(uid(1), importance=0.1, if_version=1, user_id="alice")
    for wrong in (0, True, 1.0, "1"):
        with pytest.raises(InvalidEntryError, match="if_version"):
            memory.update(uid(1), importance=0.1, if_version=wrong)


def test_of_writers_that_count_at_once_none_is_lost(memory, tmp_path):
    memory.add("a counter", id=uid(1), metadata={"n": 0})

    def count(times):
        with opened(tmp_path / "a.db") as own:
            while times:
                read = own.get(uid(1))
                try:
                    own.update(
                        uid(1), metadata={"n": read.metadata["n"] + 1}, if_version=read.version
                    )
                except VersionConflictError:
                    continue
                times -= 1

    run_together(*(partial(count, 10) for _ in range(3)))
    found = memory.get(uid(1))
    assert (found.metadata["n"], found.version) == (30, 31)


def test_the_other_door_compares_versions_too():
    async def scenario(memory):
        await memory.store(entry("a red sofa", id=uid(1)))
        assert await memory.update(uid(1), MemoryEntryUpdate(importance=0.9), if_version=1)
        with pytest.raises(VersionConflictError):
            await memory.update(uid(1), MemoryEntryUpdate(importance=0.8), if_version=1)
        changes = (
            memory.update(uid(1), MemoryEntryUpdate(importance=n / 10), if_version=2)
            for n in range(5)
        )
        done = await asyncio.gather(*changes, return_exceptions=True)
        assert sum(isinstance(one, VersionConflictError) for one in done) == 4
        return (await memory.retrieve(uid(1))).version

    assert run(scenario) == 3


def test_the_largest_version_stays():
    with opened() as memory:
        memory.add_many([entry("a red sofa", id=uid(1), agent_id="default", version=2**63 - 1)])
        assert memory.update(uid(1), importance=0.9).version == 2**63 - 1
        replaced = memory.add_many([MemoryEntry("a red sofa", id=uid(1))], on_conflict="replace")[0]
        assert replaced.version == 2**63 - 1
        memory.add("a green chair", supersedes=uid(1))
        assert memory.verify().ok


# Metadata


def test_metadata_is_merged_or_replaced(memory):
    memory.add("a red sofa", id=uid(1), metadata={"a": 1, "b": {"c": [1]}})
    assert memory.update(uid(1), metadata={"d": 2}).metadata == {"a": 1, "b": {"c": [1]}, "d": 2}
    given = {"b": {"x": [1]}}
    assert memory.update(uid(1), replace_metadata=given).metadata == given
    given["b"]["x"].append(2)
    assert memory.get(uid(1)).metadata == {"b": {"x": [1]}}
    assert memory.list(filters={"metadata.a": 1}).entries == ()
    assert memory.update(uid(1), replace_metadata={}).metadata == {}
    assert memory.get(uid(1)).metadata == {}
    with pytest.raises(InvalidEntryError, match="metadata and replace_metadata are both given"):
        memory.update(uid(1), metadata={"a": 1}, replace_metadata={})
    with pytest.raises(InvalidEntryError, match="replace_metadata must be a dict"):
        memory.update(uid(1), replace_metadata=["a"])
    assert "secret" not in repr(MemoryEntryUpdate(replace_metadata={"secret": 1}))


# Expiry


def test_a_touch_renews_the_expiry_and_is_no_change(memory, clock):
    memory.add_many(
        [{"content": f"text {n}", "id": uid(n), "expires_at": NOON + HOUR} for n in range(3)]
    )
    before = memory.get(uid(0))
    clock.now = NOON + HOUR / 2
    assert contents(memory.search("text")) == ["text 2", "text 1", "text 0"]
    memory.touch([uid(0), uid(1), uid(0), uid(9)], expires_at=NOON + 2 * HOUR)
    after = memory.get(uid(0))
    assert after.expires_at == NOON + 2 * HOUR
    assert (after.version, after.updated_at) == (before.version, before.updated_at)
    clock.now = NOON + HOUR
    assert contents(memory.search("text")) == ["text 1", "text 0"]
    memory.touch([uid(0), uid(2)], expires_at="never")
    clock.now = NOON + 9 * HOUR
    assert contents(memory.search("text")) == ["text 0"]
    assert memory.list().entries[0].access_count >= 2
    memory.touch([uid(0)], user_id="alice", expires_at=NOON)
    assert memory.count() == 1
    with pytest.raises(InvalidEntryError, match="expires_at"):
        memory.touch([uid(0)], expires_at="soon")


def test_a_touch_of_a_memory_opened_for_reading_changes_no_expiry(memory, tmp_path):
    memory.add("a red sofa", id=uid(1))
    with opened(tmp_path / "a.db", read_only=True) as reading:
        reading.touch([uid(1)])
        with pytest.raises(ReadOnlyError):
            reading.touch([uid(1)], expires_at=NOON + timedelta(days=1))
