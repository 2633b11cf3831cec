"""A full memory deletes its least important memories for new ones (`when_full="evict"`)."""

import io
import logging
import pickle
from contextlib import ExitStack
from pathlib import Path

import pytest

from mnemic import AddedMemories, Memory, MemoryEntryUpdate, UpdateResult
from mnemic.errors import InvalidArgumentError, StorageQuotaExceededError
from mnemic.events import MemoryForgottenEvent
from mnemic.licensing import Quota
from mnemic.model import WrittenEntry
from tests.support.clock import NOON, Clock
from tests.support.doors import opened, run
from tests.support.entries import contents, entry
from tests.support.metrics import measuring
from tests.support.workers import Worker, together

TEXT = "the garden key is under the pot"


def full(path=":memory:", **options):
    """Open a memory that holds three memories of a user."""
    return opened(path, **{"user_max_entries": 3, "when_full": "evict", **options})


def filled(memory):
    """Return the ids of three memories, the least important first."""
    return [memory.add(f"memory {at}", importance=at / 10).id for at in (1, 2, 3)]


def heard(memory):
    """Return the list of deletions that listeners will hear of."""
    events = []
    memory.events.subscribe(MemoryForgottenEvent, events.append)
    return events


# Never silently


@pytest.mark.requirement("R005", "C201")
def test_the_result_names_what_went():
    with full() as memory:
        first, second, third = filled(memory)
        added = memory.add("memory 4")
        assert isinstance(added, WrittenEntry)
        assert added.evicted == (first,)
        assert added == memory.get(added.id)
        assert "evicted=1" in repr(added)
        many = memory.add_many(["memory 5", "memory 6"])
        assert isinstance(many, AddedMemories)
        assert many.evicted == (second, third)
        assert contents(many) == ["memory 5", "memory 6"]
        assert sorted(contents(memory.list())) == ["memory 4", "memory 5", "memory 6"]
        assert memory.verify().problems == ()


def test_where_nothing_goes_the_result_says_so():
    with full() as memory:
        added = memory.add("memory 1")
        assert (type(added).__name__, added.evicted) == ("MemoryEntry", ())
        assert memory.add_many(["memory 2"]).evicted == memory.add_many([]).evicted == ()
        assert memory.update(added.id, importance=0.1).evicted == ()
        assert memory.update_many(filters={}, importance=0.2).evicted == ()


def test_changes_name_what_went():
    with full(user_max_entries=None, user_quota=30) as memory:
        first, second, third = filled(memory)
        changed = memory.update(third, content="longer memory 3")
        assert changed.evicted == (first,)
        number = memory.update_many([third], content="x" * 25)
        assert isinstance(number, UpdateResult)
        assert (number, number.evicted) == (1, (second,))
        assert number.to_dict() == {"count": 1, "evicted": [str(second)]}


def test_a_checked_addition_names_what_went():
    with full() as memory:
        first, *_ = filled(memory)
        assert memory.add("memory 4", check="contradictions").evicted == (first,)


def test_an_import_names_what_went():
    target = io.StringIO()
    with opened() as memory:
        memory.add_many([{"content": f"new {at}", "importance": 0.4} for at in range(2)])
        memory.export(target)
    with full() as memory:
        ids = filled(memory)
        result = memory.import_(io.BytesIO(target.getvalue().encode()))
        assert (result.stored, result.evicted) == (2, tuple(ids[:2]))


def test_each_that_went_is_an_event_and_all_are_counted_and_logged(caplog, monkeypatch):
    measured = measuring(monkeypatch, "agents.memory.longterm.")
    with full(clock=Clock()) as memory, caplog.at_level(logging.INFO, "mnemic"):
        ids = [memory.add(f"{TEXT} {at}", importance=at / 10).id for at in (1, 2, 3)]
        events = heard(memory)
        memory.add_many([TEXT, "memory 5"])
        assert events == [
            MemoryForgottenEvent(
                agent_id="default", entry_id=one, permanent=True, timestamp=NOON, evicted=True
            )
            for one in ids[:2]
        ]
        assert measured["evictions", "default"] == [2]
        (line,) = [record for record in caplog.records if "evicted" in record.message]
        assert line.levelno == logging.INFO
        assert f"2 memory entries evicted for agent default to make space: {ids[0]}" in line.message
        assert str(ids[1]) in line.message
        assert "garden" not in caplog.text


def test_the_log_names_all_of_many(caplog):
    with full(user_max_entries=100) as memory, caplog.at_level(logging.INFO, "mnemic"):
        old = memory.add_many([f"memory {at}" for at in range(100)])
        memory.add_many([f"new {at}" for at in range(100)])
        lines = [record.message for record in caplog.records if "evicted" in record.message]
        assert len(lines) > 1
        assert all(sum(str(one.id) in line for line in lines) == 1 for one in old)


def test_other_deletions_are_no_evictions():
    with full() as memory:
        first, second, _ = filled(memory)
        events = heard(memory)
        memory.delete(first, permanent=True)
        memory.delete_many([second])
        assert [event.evicted for event in events] == [False, False]


# What has gone


def test_what_went_is_found_in_no_way():
    with full() as memory:
        first, _, third = filled(memory)
        memory.link(third, first, "related")
        assert memory.search("memory 1", limit=5)
        memory.add("memory 4")
        assert first not in [hit.id for hit in memory.search("memory 1", limit=5)]
        assert memory.get_many([first]) == []
        assert first not in [one.id for one in memory.list(include_deleted=True)]
        assert memory.links(third, direction="both") == []
        assert not memory.restore(first)
        assert memory.count() == 3


@pytest.mark.requirement("R035")
def test_its_bytes_are_erased(tmp_path):
    path = tmp_path / "a.db"
    with full(path) as memory:
        memory.add(TEXT, importance=0.1)
        memory.add_many(["memory 2", "memory 3"])
        assert TEXT.encode() in in_files(tmp_path)
        memory.add("memory 4")
        assert TEXT.encode() not in in_files(tmp_path)


def in_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_an_access_that_is_not_written_yet_counts():
    with full() as memory:
        first, second, third = (memory.add(f"memory {at}").id for at in (1, 2, 3))
        memory.touch([first, third])
        assert memory.add("memory 4").evicted == (second,)


def test_a_key_of_what_went_can_be_used_again():
    with full() as memory:
        first = memory.add("memory 1", importance=0.1, idempotency_key="k")
        filled(memory)
        assert memory.add("memory 1", idempotency_key="k").id != first.id


# Refusals


@pytest.mark.requirement("R119", "R127", "C201")
def test_without_the_option_a_full_memory_refuses():
    with opened(user_quota=100) as memory:
        memory.add("x" * 99, importance=0)
        with pytest.raises(StorageQuotaExceededError):
            memory.add("y" * 2, importance=1)
        assert memory.count() == 1
    with full(when_full="refuse") as memory:
        filled(memory)
        with pytest.raises(StorageQuotaExceededError, match="Current: 3 entries, Limit: 3"):
            memory.add("memory 4", importance=1)
        assert memory.count() == 3


def test_without_the_option_nothing_is_embedded_that_has_no_space():
    calls = []

    def embed(texts):
        calls.append(len(texts))
        return [[1.0, 0.0] for _ in texts]

    with opened(embedder=embed, embedding_model="m", max_entries=1) as memory:
        memory.add("memory 1")
        calls.clear()
        with pytest.raises(StorageQuotaExceededError, match=r"quota exceeded\. Current: 1 entries"):
            memory.add("memory 2", user_id="alice")
        assert calls == []


def test_a_refused_memory_is_the_least_important_and_nothing_went():
    with full() as memory:
        ids = filled(memory)
        events = heard(memory)
        with pytest.raises(StorageQuotaExceededError, match="no more important") as raised:
            memory.add("memory 4", importance=0.05)
        assert {one.id for one in memory.list()} == set(ids)
        assert events == []
        copied = pickle.loads(pickle.dumps(raised.value))  # noqa: S301 - our own
        assert (str(copied), copied.unit, copied.when_full) == (
            str(raised.value),
            "entries",
            "evict",
        )


def test_no_users_memories_go_for_another_users():
    with full(user_max_entries=None, max_entries=2) as memory:
        memory.add_many(["memory 1", "memory 2"], user_id="bob")
        with pytest.raises(StorageQuotaExceededError, match=r"quota exceeded\. Current: 2 entries"):
            memory.add("memory 3", user_id="alice", importance=0.9)
        assert memory.count(user_id="bob") == 2


def test_the_quota_of_a_license_is_kept_in_the_same_way():
    class Tiny:
        quota = Quota(20, "Tiny")

        def require(self, *needs):
            pass

    with opened(license=Tiny(), when_full="evict") as memory:
        first = memory.add("1234567890", importance=0.1)
        memory.add("1234567890", importance=0.9)
        assert memory.add("12345").evicted == (first.id,)
        with pytest.raises(StorageQuotaExceededError, match=r"Limit: 20 bytes \(Tiny tier\)"):
            memory.add("12345678901")


@pytest.mark.parametrize("wrong", ["drop", None, True, 1])
def test_the_choice_is_one_of_two(tmp_path, wrong):
    with pytest.raises(InvalidArgumentError, match="when_full must be one of refuse, evict, got"):
        opened(tmp_path / "a.db", when_full=wrong)
    assert not (tmp_path / "a.db").exists()


@pytest.mark.parametrize("option", ["max_entries", "user_max_entries"])
@pytest.mark.parametrize("wrong", [-1, 1.5, "many", True, float("nan"), 2**63])
def test_a_budget_is_a_number_of_entries(option, wrong):
    with pytest.raises(InvalidArgumentError, match=option):
        opened(**{option: wrong})


def test_a_budget_of_nothing_stores_nothing():
    with full(user_max_entries=0) as memory, pytest.raises(StorageQuotaExceededError):
        memory.add("memory 1")


# Doors and processes


def test_long_term_memory_takes_the_options():
    events = []

    async def scenario(memory):
        memory.events.subscribe(MemoryForgottenEvent, events.append)
        first, second, third = (entry(f"memory {at}", importance=at / 10) for at in range(3))
        await memory.store_batch([first, second])
        assert await memory.store(third) == third.id
        assert [event.entry_id for event in events] == [first.id]
        update = MemoryEntryUpdate(content="a longer memory")
        assert await memory.update(third.id, update)
        assert [event.entry_id for event in events] == [first.id, second.id]
        assert (await memory.update_many([third.id], update)).evicted == ()

    run(scenario, user_max_entries=2, user_quota=20, when_full="evict")


@pytest.mark.requirement("C082", "C201")
def test_two_processes_together_keep_the_limits(tmp_path):
    options = {"embedder": None, "user_quota": 20, "user_max_entries": 3, "when_full": "evict"}
    path = tmp_path / "a.db"
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(path, **options)) for _ in range(2)]
        for worker in workers:
            worker.call("count")
        for _ in range(20):
            answers = together(workers, "add", "six by")
            assert all(answer["content"] == "six by" for answer in answers)
    with Memory(path, embedder=None) as memory:
        assert memory.count() == 3
        assert memory.stats().storage_bytes_used == 18
        assert memory.verify().problems == ()
