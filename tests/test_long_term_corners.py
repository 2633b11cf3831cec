"""One example for each promise that is easily missed: keys, duplicates, expiry, links, lists."""

import asyncio
import io
from uuid import UUID

import pytest

import mnemic.errors
from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingError,
    EntryNotFoundError,
    InvalidArgumentError,
    InvalidEntryError,
    StorageQuotaExceededError,
    StoreFileError,
)
from mnemic.long_term import LongTermMemory
from mnemic.memory import Memory
from mnemic.model import (
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryStatus,
)
from mnemic.observability.events import MemoryStoredEvent
from tests.support import doors, entries
from tests.support.clock import DAY, MICROSECOND, NOON, SECOND, Clock
from tests.support.embedders import WordEmbedder
from tests.support.entries import uid

RETENTION = 90 * DAY


class Picky(WordEmbedder):
    """Fails for texts that hold its bad word."""

    bad_word = "poison"

    def embed(self, texts):
        if any(self.bad_word in text for text in texts):
            raise RuntimeError("cannot embed this")
        return super().embed(texts)


def entry(number, content="tea at noon", **fields):
    return entries.entry(content, id=uid(number), **fields)


def run(scenario, path=":memory:", **options):
    """Run a scenario with a memory and its clock."""

    clock = Clock()
    doors.run(lambda memory: scenario(memory, clock), path, clock=clock, **options)


async def numbers_found(memory, query="tea", **scope):
    return [hit.entry.id.int for hit in await memory.search_semantic(query, 10, 0, **scope)]


def numbers(entries):
    return [one.id.int for one in entries]


# Where it is


def test_urls_name_the_same_files_as_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def is_stored(url, number):
        options = {"agent_id": "aide", "embedder": WordEmbedder()}
        async with await LongTermMemory.open(url, **options) as memory:
            await memory.store(entry(number))
            return await memory.count()

    assert asyncio.run(is_stored("a b.db", 1)) == 1
    assert asyncio.run(is_stored("sqlite:///a%20b.db", 2)) == 2
    assert asyncio.run(is_stored(f"sqlite:///{tmp_path}/a%20b.db", 3)) == 3
    for number in (4, 5):
        assert asyncio.run(is_stored("sqlite:///:memory:", number)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["a b.db"]
    with pytest.raises(StoreFileError, match="sqlite"):
        asyncio.run(is_stored("postgresql://host/memories", 6))


# How much


def test_the_quota_may_be_filled_to_its_last_byte_and_no_further():
    async def scenario(memory, _clock):
        await memory.store_batch([entry(1, "tea at noon"), entry(2, "café")])
        refused = [
            memory.store(entry(3, "ferry")),
            memory.store_batch([entry(3, "te"), entry(4, "te"), entry(5, "a")]),
            memory.update(UUID(int=2), MemoryEntryUpdate(content="café au la")),
        ]
        for write in refused:
            with pytest.raises(StorageQuotaExceededError) as caught:
                await write
            assert (caught.value.current_usage, caught.value.limit) == (16, 20)
        assert await memory.update(UUID(int=2), MemoryEntryUpdate(content="café, t"))
        await memory.forget(UUID(int=1))
        with pytest.raises(StorageQuotaExceededError):
            await memory.store(entry(3, "te"))
        assert await memory.store(entry(3, "t")) == UUID(int=3)
        assert (await memory.get_stats()).storage_percent_used == 100

    run(scenario, quota=20)


# Keys


def test_a_used_key_answers_with_its_entry_whatever_became_of_it():
    async def scenario(memory, clock):
        events = []
        for number, key in enumerate(["forgotten", "expired", "superseded", "changed"], start=1):
            expires_at = NOON + SECOND if key == "expired" else None
            one = entry(number, key, expires_at=expires_at)
            assert await memory.store(one, idempotency_key=key) == one.id
        await memory.forget(UUID(int=1))
        clock.now += SECOND
        await memory.store(entry(5, "newer", supersedes=UUID(int=3)))
        await memory.update(UUID(int=4), MemoryEntryUpdate(content="another text"))
        memory.events.subscribe(MemoryStoredEvent, events.append)
        for number, key in enumerate(["forgotten", "expired", "superseded", "changed"], start=1):
            again = await memory.store(entry(10 + number, key), idempotency_key=key)
            assert again == UUID(int=number)
        assert events == []
        assert (await memory.get_stats()).forgotten_entries == 1
        assert await memory.count() == 2

    run(scenario)


def test_a_used_key_with_another_content_is_refused_and_nothing_of_the_batch_is_stored():
    async def scenario(memory, _clock):
        await memory.store(entry(1), idempotency_key="k")
        with pytest.raises(DuplicateEntryError):
            await memory.store(entry(2, "ferry"), idempotency_key="k")
        batch = [entry(3, "green"), entry(4, "ferry")]
        with pytest.raises(DuplicateEntryError):
            await memory.store_batch(batch, idempotency_keys=[None, "k"])
        assert await memory.count() == 1

    run(scenario)


def test_a_key_belongs_to_one_user_and_goes_with_its_entry():
    async def scenario(memory, _clock):
        await memory.store(entry(1, user_id="alice"), idempotency_key="k")
        assert await memory.store(entry(2, user_id="bob"), idempotency_key="k") == UUID(int=2)
        assert await memory.store(entry(3), idempotency_key="k") == UUID(int=3)
        await memory.forget(UUID(int=3), permanent=True)
        assert await memory.store(entry(4, "ferry"), idempotency_key="k") == UUID(int=4)
        again = await memory.store(entry(5, user_id="alice"), idempotency_key="k")
        assert again == UUID(int=1)

    run(scenario)


def test_purging_and_deleting_all_let_go_of_keys_too():
    async def scenario(memory, clock):
        await memory.store(entry(1), idempotency_key="k")
        await memory.store(entry(2, user_id="alice"), idempotency_key="k")
        await memory.forget(UUID(int=1))
        clock.now += RETENTION + MICROSECOND
        assert await memory.purge_expired() == 1
        assert await memory.delete_all(user_id="alice", permanent=True) == 1
        assert await memory.store(entry(3, "ferry"), idempotency_key="k") == UUID(int=3)
        alices = entry(4, "ferry", user_id="alice")
        assert await memory.store(alices, idempotency_key="k") == UUID(int=4)

    run(scenario)


@pytest.mark.parametrize("key", ["", "a\0b", "a\nb", 7])
def test_a_key_is_a_name(key):
    async def scenario(memory, _clock):
        with pytest.raises(InvalidArgumentError):
            await memory.store(entry(1), idempotency_key=key)
        assert await memory.count() == 0

    run(scenario)


def test_there_are_as_many_keys_as_entries():
    async def scenario(memory, _clock):
        with pytest.raises(InvalidArgumentError):
            await memory.store_batch([entry(1), entry(2)], idempotency_keys=["k"])
        assert await memory.count() == 0

    run(scenario)


# Duplicates


@pytest.mark.parametrize(
    ("fields", "is_duplicate"),
    [
        ({}, True),
        ({"content": "TEA  at noon."}, True),
        ({"content": "tea at one"}, False),
        ({"project_id": "p", "session_id": "s"}, True),
        ({"user_id": "alice"}, False),
        ({"status": MemoryStatus.ARCHIVED}, False),
    ],
)
def test_a_duplicate_says_the_same_to_the_same_user_in_any_project(fields, is_duplicate):
    async def scenario(memory, _clock):
        await memory.store(entry(1, **fields))
        new = entry(2, "Tea at noon")
        expected = UUID(int=1) if is_duplicate else UUID(int=2)
        assert await memory.store(new, on_duplicate="skip") == expected
        stats = await memory.get_stats(all_users=True)
        stored = stats.active_entries + stats.archived_entries
        assert stored == (1 if is_duplicate else 2)

    run(scenario)


def test_forgotten_expired_and_changed_entries_are_no_duplicates():
    async def scenario(memory, clock):
        lasting = entry(3, "green", expires_at=NOON + SECOND)
        await memory.store_batch([entry(1), entry(2, "ferry"), lasting])
        await memory.forget(UUID(int=1))
        await memory.update(UUID(int=2), MemoryEntryUpdate(content="boat"))
        clock.now += SECOND
        batch = [entry(11), entry(12, "ferry"), entry(13, "green"), entry(14, "boat")]
        ids = await memory.store_batch(batch, on_duplicate="skip")
        assert [one.int for one in ids] == [11, 12, 13, 2]

    run(scenario)


def test_the_oldest_duplicate_answers_and_a_batch_sees_its_earlier_entries():
    async def scenario(memory, _clock):
        await memory.store(entry(1))
        await memory.store(entry(2, created_at=NOON - DAY))
        batch = [entry(3, "Tea at noon!"), entry(4, "ferry"), entry(5, "Ferry")]
        ids = await memory.store_batch(batch, on_duplicate="skip")
        assert [one.int for one in ids] == [2, 4, 4]
        assert await memory.count() == 3

    run(scenario)


def test_storing_the_same_entry_again_with_skip_is_harmless():
    async def scenario(memory, _clock):
        for _ in range(2):
            assert await memory.store(entry(1), on_duplicate="skip") == UUID(int=1)
        assert await memory.count() == 1

    run(scenario)


def test_merging_adds_to_the_old_entry_and_stores_no_new_one():
    async def scenario(memory, clock):
        await memory.store(
            entry(1, tags=["b", "a"], metadata={"x": 1, "y": 1}, importance=0.4, role="user")
        )
        clock.now += DAY
        new = entry(2, tags=["c", "a", "c"], metadata={"y": 2, "z": 3}, importance=0.9, role="bot")
        assert await memory.store(new, on_duplicate="merge") == UUID(int=1)
        merged = await memory.retrieve(UUID(int=1))
        assert merged.tags == ("b", "a", "c")
        assert merged.metadata == {"x": 1, "y": 2, "z": 3}
        assert (merged.importance, merged.role) == (0.9, "user")
        assert (merged.created_at, merged.updated_at) == (NOON, NOON + DAY)
        clock.now += DAY
        lesser = entry(3, tags=["a"], metadata={"y": 2}, importance=0.1)
        assert await memory.store(lesser, on_duplicate="merge") == UUID(int=1)
        kept = await memory.retrieve(UUID(int=1))
        assert (kept.updated_at, kept.importance) == (NOON + DAY, 0.9)
        assert await memory.count() == 1

    run(scenario)


def test_an_unknown_way_with_duplicates_is_refused():
    async def scenario(memory, _clock):
        for given in ({"on_duplicate": "replace"}, {"on_embed_error": "ignore"}):
            with pytest.raises(InvalidArgumentError):
                await memory.store(entry(1), **given)
        assert await memory.count() == 0

    run(scenario)


# Embedding later


def test_what_could_not_be_embedded_waits_and_holds_up_no_search(monkeypatch):
    monkeypatch.setattr("mnemic.repository.index_sync.RETRY_SECONDS", 0)
    embedder = Picky()

    async def scenario(memory, _clock):
        await memory.store(entry(1))
        with pytest.raises(EmbeddingError):
            await memory.store(entry(2, "poison tea"))
        await memory.store(entry(3, "poison tea"), on_embed_error="pending")
        assert await memory.count() == 2
        assert await numbers_found(memory) == [1]
        assert (await memory.retrieve(UUID(int=3))).content == "poison tea"
        embedder.bad_word = "nothing is bad"
        assert sorted(await numbers_found(memory)) == [1, 3]

    run(scenario, embedder=embedder)


def test_one_text_that_never_embeds_does_not_keep_others_from_being_found():
    async def scenario(memory, _clock):
        batch = [entry(1, "poison"), entry(2, "tea"), entry(3, "ferry tea")]
        await memory.store_batch(batch, on_embed_error="pending")
        for _ in range(3):
            assert await numbers_found(memory) == [2, 3]

    run(scenario, embedder=Picky())


# Expiry


def test_an_entry_expires_at_its_moment_and_not_before(tmp_path):
    async def scenario(memory, clock):
        await memory.store_batch([entry(1, "tea", expires_at=NOON + SECOND), entry(2, "ferry tea")])
        clock.now = NOON + SECOND - MICROSECOND
        assert await memory.count() == 2
        assert await numbers_found(memory) == [1, 2]
        clock.now = NOON + SECOND
        assert await memory.count() == 1
        assert [hit.entry.id.int for hit in await memory.search_semantic("tea", 1, 0)] == [2]
        assert numbers(await memory.search_by_filter({})) == [2]
        assert numbers(await memory.get_recent()) == [2]
        assert await memory.retrieve(UUID(int=1)) is None
        assert await memory.retrieve_batch([UUID(int=1)]) == {}
        assert not await memory.update(UUID(int=1), MemoryEntryUpdate(importance=1.0))
        assert not await memory.restore(UUID(int=1))
        shown = await memory.retrieve(UUID(int=1), include_forgotten=True)
        assert (shown.expires_at, shown.forgotten_at) == (NOON + SECOND, None)
        every = await memory.search_by_filter(MemoryFilter(include_forgotten=True))
        assert sorted(numbers(every)) == [1, 2]
        stats = await memory.get_stats()
        counts = (stats.active_entries, stats.forgotten_entries, stats.expired_entries)
        assert counts == (1, 0, 1)
        assert stats.storage_bytes_used == len("tea" + "ferry tea")

    run(scenario, tmp_path / "memory.db")


def test_a_clock_that_goes_back_brings_an_expired_entry_back():
    async def scenario(memory, clock):
        await memory.store(entry(1, expires_at=NOON + SECOND))
        clock.now = NOON + DAY
        assert await numbers_found(memory) == []
        clock.now = NOON
        assert await numbers_found(memory) == [1]
        assert await memory.count() == 1

    run(scenario)


def test_another_memory_on_the_file_sees_expiry_without_any_write(tmp_path):
    async def scenario(memory, clock):
        options = {"agent_id": "aide", "embedder": WordEmbedder(), "clock": clock}
        async with await LongTermMemory.open(tmp_path / "memory.db", **options) as second:
            await memory.store(entry(1, expires_at=NOON + SECOND))
            assert await numbers_found(second) == [1]
            clock.now += SECOND
            assert await numbers_found(second) == await numbers_found(memory) == []
            assert await second.count() == 0

    run(scenario, tmp_path / "memory.db")


def test_a_forgotten_entry_that_expired_meanwhile_is_not_restored():
    async def scenario(memory, clock):
        await memory.store(entry(1, expires_at=NOON + DAY))
        await memory.forget(UUID(int=1))
        assert await memory.restore(UUID(int=1))
        await memory.forget(UUID(int=1))
        clock.now += DAY
        assert not await memory.restore(UUID(int=1))
        stats = await memory.get_stats()
        assert (stats.forgotten_entries, stats.expired_entries) == (1, 0)

    run(scenario)


def test_purging_takes_what_expired_more_than_ninety_days_ago():
    async def scenario(memory, clock):
        await memory.store_batch([entry(1, expires_at=NOON), entry(2, expires_at=NOON + DAY)])
        await memory.store(entry(3))
        clock.now = NOON + RETENTION
        assert await memory.purge_expired() == 0
        clock.now += MICROSECOND
        assert await memory.purge_expired() == 1
        kept = await memory.search_by_filter(MemoryFilter(include_forgotten=True))
        assert sorted(numbers(kept)) == [2, 3]

    run(scenario)


# Supersession


def test_a_successor_marks_its_predecessor_and_links_to_it():
    async def scenario(memory, clock):
        await memory.store(entry(1))
        clock.now += DAY
        successor = entry(2, supersedes=UUID(int=1), created_at=clock.now)
        await memory.store(successor)
        old = await memory.retrieve(UUID(int=1), include_forgotten=True)
        assert (old.status, old.updated_at) == (MemoryStatus.SUPERSEDED, NOON + DAY)
        assert await memory.retrieve(UUID(int=1)) is None
        assert await numbers_found(memory) == [2]
        assert (await memory.retrieve(UUID(int=2))).supersedes == UUID(int=1)
        [link] = await memory.links(UUID(int=1))
        ends = (link.from_id.int, link.to_id.int)
        assert (ends, link.type.name, link.strength) == ((2, 1), "SUPERSEDES", 1.0)
        assert await memory.unlink(UUID(int=2), UUID(int=1)) == 0
        assert len(await memory.links(UUID(int=2), direction="out")) == 1
        await memory.forget(UUID(int=2), permanent=True)
        assert await memory.retrieve(UUID(int=1)) is None
        assert await memory.links(UUID(int=1)) == []

    run(scenario)


def test_a_predecessor_keeps_a_later_change_time():
    async def scenario(memory, clock):
        await memory.store(entry(1))
        clock.now += DAY
        await memory.update(UUID(int=1), MemoryEntryUpdate(importance=1.0))
        await memory.store(entry(2, supersedes=UUID(int=1)))
        old = await memory.retrieve(UUID(int=1), include_forgotten=True)
        assert old.updated_at == NOON + DAY

    run(scenario)


def test_a_forgotten_predecessor_is_restored_as_superseded():
    async def scenario(memory, _clock):
        await memory.store(entry(1))
        await memory.forget(UUID(int=1))
        await memory.store(entry(2, "ferry", supersedes=UUID(int=1)))
        assert await memory.restore(UUID(int=1))
        assert await memory.retrieve(UUID(int=1)) is None
        assert await memory.count() == 1

    run(scenario)


def test_a_predecessor_is_of_the_same_user_and_nothing_is_stored_without_it():
    async def scenario(memory, _clock):
        await memory.store(entry(1, user_id="alice"))
        for predecessor in (1, 9):
            new = entry(2, user_id="bob", supersedes=UUID(int=predecessor))
            with pytest.raises(EntryNotFoundError):
                await memory.store_batch([entry(3, user_id="bob"), new])
        assert await memory.count(all_users=True) == 1
        assert await memory.retrieve(UUID(int=1), user_id="alice") is not None

    run(scenario)


def test_nothing_supersedes_itself():
    async def scenario(memory, _clock):
        with pytest.raises(InvalidEntryError):
            await memory.store(entry(1, supersedes=UUID(int=1)))
        assert await memory.count() == 0

    run(scenario)


# Links


def test_linking_again_replaces_the_strength_and_keeps_the_time():
    async def scenario(memory, clock):
        await memory.store_batch([entry(1), entry(2)])
        first = await memory.link(UUID(int=1), UUID(int=2), "refines", 0.2)
        clock.now += DAY
        second = await memory.link(UUID(int=1), UUID(int=2), "refines", 0.7)
        assert (first.created_at, second.created_at) == (NOON, NOON)
        other = await memory.link(UUID(int=1), UUID(int=2))
        assert (other.type.name, other.strength, other.created_at) == ("RELATED", 1.0, NOON + DAY)
        assert await memory.links(UUID(int=2)) == [second, other]
        assert await memory.links(UUID(int=2), direction="in", types=["related"]) == [other]
        assert await memory.links(UUID(int=2), direction="out") == []
        assert await memory.unlink(UUID(int=2), UUID(int=1)) == 0
        assert await memory.unlink(UUID(int=1), UUID(int=2), "refines") == 1
        assert await memory.unlink(UUID(int=1), UUID(int=2)) == 1

    run(scenario)


def test_a_link_hides_with_its_other_end_and_comes_back_with_it():
    async def scenario(memory, clock):
        lasting = entry(3, expires_at=NOON + SECOND)
        await memory.store_batch([entry(1), entry(2), lasting, entry(4)])
        for number in (2, 3, 4):
            await memory.link(UUID(int=1), UUID(int=number))
        await memory.forget(UUID(int=2))
        await memory.store(entry(5, supersedes=UUID(int=4)))
        clock.now += SECOND
        assert [link.to_id.int for link in await memory.links(UUID(int=1))] == [4]
        await memory.restore(UUID(int=2))
        assert [link.to_id.int for link in await memory.links(UUID(int=1))] == [2, 4]
        await memory.forget(UUID(int=2), permanent=True)
        await memory.store(entry(2))
        assert [link.to_id.int for link in await memory.links(UUID(int=1))] == [4]

    run(scenario)


def test_links_stop_at_the_walls_between_users():
    async def scenario(memory, _clock):
        await memory.store_batch([entry(1, user_id="alice"), entry(2, user_id="bob")])
        with pytest.raises(EntryNotFoundError):
            await memory.link(UUID(int=1), UUID(int=2), user_id="alice")
        await memory.link(UUID(int=1), UUID(int=2), all_users=True)
        assert await memory.links(UUID(int=1), user_id="alice") == []
        assert await memory.links(UUID(int=1), user_id="bob") == []
        assert await memory.unlink(UUID(int=1), UUID(int=2), user_id="alice") == 0
        assert len(await memory.links(UUID(int=1), all_users=True)) == 1

    run(scenario)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1, 1), InvalidArgumentError),
        ((1, 2, "supersedes"), InvalidArgumentError),
        ((1, 2, "unheard of"), InvalidArgumentError),
        ((1, 2, "related", 1.5), InvalidArgumentError),
        ((1, 2, "related", float("nan")), InvalidArgumentError),
        ((1, 3), EntryNotFoundError),
        ((9, 1), EntryNotFoundError),
    ],
)
def test_a_link_that_makes_no_sense_is_refused(arguments, error):
    async def scenario(memory, _clock):
        await memory.store_batch([entry(1), entry(2), entry(3, expires_at=NOON)])
        from_number, to_number, *rest = arguments
        with pytest.raises(error):
            await memory.link(UUID(int=from_number), UUID(int=to_number), *rest)
        assert await memory.links(UUID(int=1)) == []
        assert await memory.links(UUID(int=9)) == []

    run(scenario)


# Accesses


def test_reading_by_id_counts_and_looking_around_does_not():
    async def scenario(memory, clock):
        await memory.store_batch([entry(1), entry(2), entry(3, status=MemoryStatus.ARCHIVED)])
        clock.now += DAY
        await memory.retrieve(UUID(int=1))
        await memory.retrieve_batch([UUID(int=1), UUID(int=2), UUID(int=9)])
        await memory.touch([UUID(int=1), UUID(int=9)])
        await memory.retrieve(UUID(int=3), include_forgotten=True)
        await memory.search_semantic("tea", 10, 0)
        await memory.get_recent()
        await memory.get_stats()
        found = await memory.search_by_filter({"status": {"exists": True}})
        counts = {one.id.int: (one.access_count, one.last_accessed_at) for one in found}
        assert counts == {1: (3, clock.now), 2: (1, clock.now), 3: (0, None)}
        assert numbers(await memory.get_recent(2)) == [1, 2]
        assert numbers(await memory.search_by_filter({"access_count": {"gte": 3}})) == [1]
        assert {one.updated_at for one in found} == {NOON}

    run(scenario)


def test_an_access_never_goes_back_in_time_and_is_kept_on_closing(tmp_path):
    async def first(memory, clock):
        await memory.store(entry(1, last_accessed_at=NOON + DAY, access_count=5))
        await memory.touch([UUID(int=1)])
        clock.now += RETENTION

    async def second(memory, _clock):
        [kept] = await memory.search_by_filter({})
        assert (kept.access_count, kept.last_accessed_at) == (6, NOON + DAY)
        await memory.retrieve(UUID(int=1))
        await memory.touch([UUID(int=1)])
        [kept] = await memory.search_by_filter({})
        assert kept.access_count == 7

    run(first, tmp_path / "memory.db")
    run(second, tmp_path / "memory.db", track_access=False)


def test_accesses_stop_at_the_walls():
    async def scenario(memory, _clock):
        await memory.store(entry(1, user_id="alice"))
        await memory.touch([UUID(int=1)])
        await memory.touch([UUID(int=1)], user_id="bob")
        assert await memory.retrieve(UUID(int=1)) is None
        [kept] = await memory.search_by_filter({}, all_users=True)
        assert kept.access_count == 0
        await memory.touch([UUID(int=1)], all_users=True)
        [kept] = await memory.search_by_filter({}, user_id="alice")
        assert kept.access_count == 1

    run(scenario)


def test_accesses_of_a_deleted_entry_do_not_pass_to_a_new_one_of_its_id():
    async def scenario(memory, _clock):
        await memory.store(entry(1))
        await memory.touch([UUID(int=1)])
        await memory.forget(UUID(int=1), permanent=True)
        await memory.store(entry(1, "ferry"))
        [kept] = await memory.search_by_filter({})
        assert kept.access_count == 0

    run(scenario)


# Lists


def test_pages_follow_on_whatever_happens_between_them():
    async def scenario(memory, _clock):
        times = [NOON, NOON, NOON, NOON - DAY, NOON - 2 * DAY]
        await memory.store_batch(
            [entry(number, created_at=time) for number, time in enumerate(times, start=1)]
        )
        first = await memory.list(limit=2)
        assert (numbers(first), len(first), type(first.entries)) == ([1, 2], 2, tuple)
        await memory.store(entry(6, created_at=NOON + DAY))
        await memory.forget(UUID(int=2), permanent=True)
        await memory.forget(UUID(int=4))
        second = await memory.list(limit=2, cursor=first.cursor)
        assert numbers(second) == [3, 5]
        assert second.cursor is None
        whole = await memory.list(include_forgotten=True)
        assert numbers(whole) == [6, 1, 3, 4, 5]

    run(scenario)


def test_a_list_takes_the_tests_of_a_filter_and_not_its_limit_or_order():
    async def scenario(memory, _clock):
        await memory.store_batch([entry(n, importance=n / 10, tags=["t"]) for n in range(1, 6)])
        asked = MemoryFilter(tags=["t"], min_importance=0.2, limit=1, offset=2)
        assert numbers(await memory.list(filter=asked)) == [2, 3, 4, 5]
        page = await memory.list(limit=1, filter={"importance": {"lt": 0.3}})
        assert numbers(page) == [1]
        assert numbers(await memory.list(cursor=page.cursor, filter={"tags": {"any": []}})) == []

    run(scenario)


def test_an_empty_list_has_no_next_page():
    async def scenario(memory, _clock):
        page = await memory.list()
        assert (page.entries, page.cursor) == ((), None)

    run(scenario)


@pytest.mark.parametrize(
    "arguments",
    [{"limit": 0}, {"limit": 1001}, {"cursor": ""}, {"cursor": "x"}, {"cursor": "é\0"}],
)
def test_a_list_refuses_what_makes_no_sense(arguments):
    async def scenario(memory, _clock):
        await memory.store(entry(1))
        with pytest.raises(InvalidArgumentError):
            await memory.list(**arguments)

    run(scenario)


# Deleting for good


def test_erased_is_told_truly(tmp_path):
    path = tmp_path / "memory.db"
    secrets = [b"unmistakable ferry", b"unmistakable tag", b"unmistakable value"]

    async def scenario(memory, _clock):
        secret = entry(
            1, "unmistakable ferry", tags=["unmistakable tag"], metadata={"k": "unmistakable value"}
        )
        await memory.store_batch([secret, entry(2)])
        soft = await memory.forget(UUID(int=1))
        assert (soft, soft.erased) == (1, False)
        hard = await memory.forget(UUID(int=1), permanent=True)
        assert (hard, hard.erased) == (1, True)
        for file in tmp_path.iterdir():
            assert not any(secret in file.read_bytes() for secret in secrets), file.name

    run(scenario, path)


def test_a_memory_opened_for_reading_changes_nothing(tmp_path):
    path = tmp_path / "memory.db"

    async def fill(memory, _clock):
        await memory.store(entry(1))

    async def store_unembedded(memory, _clock):
        await memory.store(entry(2))

    async def read(memory, _clock):
        before = path.read_bytes()
        assert await numbers_found(memory) == [1]
        assert (await memory.retrieve(UUID(int=2))).content == "tea at noon"
        await memory.touch([UUID(int=1)])
        for write in (
            memory.store(entry(3)),
            memory.update(UUID(int=1), MemoryEntryUpdate(importance=1.0)),
            memory.forget(UUID(int=1)),
            memory.restore(UUID(int=1)),
            memory.delete_all(user_id=None),
            memory.purge_expired(),
        ):
            with pytest.raises(mnemic.errors.ReadOnlyError):
                await write
        assert [one.access_count for one in await memory.search_by_filter({})] == [0, 0]
        assert path.read_bytes() == before

    run(fill, path)
    run(store_unembedded, path, embedder=None)
    run(read, path, read_only=True)
    with pytest.raises(StoreFileError):
        run(read, tmp_path / "nothing.db", read_only=True)


# Moving


def test_a_backup_is_a_whole_private_copy_and_overwrites_nothing(tmp_path):
    async def scenario(memory, _clock):
        await memory.store_batch([entry(1), entry(2, user_id="alice")])
        await memory.link(UUID(int=1), UUID(int=2), all_users=True)
        await memory.backup(tmp_path / "copy.db")
        with pytest.raises(StoreFileError):
            await memory.backup(tmp_path / "copy.db")
        await memory.store(entry(3))

    async def check(memory, _clock):
        assert await memory.count(all_users=True) == 2
        assert await numbers_found(memory, all_users=True) == [1, 2]
        assert len(await memory.links(UUID(int=1), all_users=True)) == 1

    run(scenario, tmp_path / "memory.db")
    assert (tmp_path / "copy.db").stat().st_mode & 0o777 == 0o600
    run(check, tmp_path / "copy.db")


def test_what_was_exported_is_imported_once():
    lines = io.StringIO()

    async def give(memory, clock):
        await memory.store_batch([entry(1, tags=["t"]), entry(2, "ferry", user_id="alice")])
        await memory.store(entry(3, "green", metadata={"k": [1, None]}, expires_at=NOON + DAY))
        await memory.link(UUID(int=1), UUID(int=3))
        await memory.forget(UUID(int=1))
        clock.now += DAY
        assert await memory.export(lines, all_users=True) == 3
        assert await memory.export(io.StringIO(), all_users=True, include_forgotten=False) == 1

    async def take(memory, clock):
        clock.now += DAY
        lines.seek(0)
        result = await memory.import_(lines)
        assert (result.stored, result.skipped, result.links) == (3, 0, 1)
        lines.seek(0)
        result = await memory.import_(lines)
        assert (result.stored, result.skipped) == (0, 3)
        assert await memory.count(all_users=True) == 1
        first = await memory.retrieve(UUID(int=1), include_forgotten=True)
        assert (first.tags, first.forgotten_at) == (("t",), NOON)
        third = await memory.retrieve(UUID(int=3), include_forgotten=True)
        assert (third.metadata, third.expires_at) == ({"k": [1, None]}, NOON + DAY)
        assert await numbers_found(memory, all_users=True) == [2]

    run(give)
    run(take)


# The front door


def test_the_front_door_takes_keys_and_expiry_in_dicts_too():
    clock = Clock()
    with Memory(":memory:", embedder=WordEmbedder(), clock=clock) as memory:
        first = memory.add("tea", idempotency_key="k", expires_at="2026-05-02T12:00:00")
        assert memory.add("tea", idempotency_key="k") == first
        again = memory.add_many(["Tea!", {"content": "ferry"}], on_duplicate="skip")
        assert [one.id == first.id for one in again] == [True, False]
        new = memory.add_many([{"content": "boat", "supersedes": again[1].id}])
        assert memory.count() == 2
        assert [link.type.name for link in memory.links(new[0].id)] == ["SUPERSEDES"]
        clock.now += DAY
        assert [hit.content for hit in memory.search("tea boat")] == ["boat"]
