"""One example for each promise that is easily missed: quotas, expiry, links, lists, moving."""

import asyncio
import io
from uuid import UUID

import pytest

import mnemic.errors
from mnemic import MemoryEntry
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import (
    EntryNotFoundError,
    InvalidArgumentError,
    LinkAcrossUsersError,
    StorageQuotaExceededError,
    StoreFileError,
)
from mnemic.memory import Memory
from mnemic.model import (
    MemoryEntryUpdate,
    MemoryFilter,
    MemoryStatus,
)
from tests.support.clock import DAY, MICROSECOND, NOON, SECOND, Clock
from tests.support.earlier_links import links_between_users
from tests.support.embedders import WordEmbedder
from tests.support.long_term import RETENTION, entry, numbers_found, run


def numbers(entries):
    return [one.id.int for one in entries]


# Where it is


def test_urls_name_the_same_files_as_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def is_stored(url, number):
        options = {"agent_id": "aide", "embedder": WordEmbedder()}
        async with AsyncLongTermMemory(url, **options) as memory:
            await memory.store(entry(number))
            return await memory.count()

    assert asyncio.run(is_stored("a b.db", 1)) == 1
    assert asyncio.run(is_stored("sqlite:///a%20b.db", 2)) == 2
    assert asyncio.run(is_stored(f"sqlite:///{tmp_path}/a%20b.db", 3)) == 3
    for number in (4, 5):
        assert asyncio.run(is_stored("sqlite:///:memory:", number)) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["a b.db"]
    with pytest.raises(StoreFileError, match="sqlite"):
        asyncio.run(is_stored("mysql://host/memories", 6))


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
        async with AsyncLongTermMemory(tmp_path / "memory.db", **options) as second:
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


def test_links_stop_at_the_scopes_between_users():
    async def scenario(memory, _clock):
        await memory.store_batch([entry(1, user_id="alice"), entry(2, user_id="bob")])
        with pytest.raises(EntryNotFoundError):
            await memory.link(UUID(int=1), UUID(int=2), user_id="alice")
        with pytest.raises(LinkAcrossUsersError):
            await memory.link(UUID(int=1), UUID(int=2), all_users=True)
        with links_between_users():
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


def test_accesses_stop_at_the_scopes():
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
        assert numbers(await memory.list(filters=asked)) == [2, 3, 4, 5]
        page = await memory.list(limit=1, filters={"importance": {"lt": 0.3}})
        assert numbers(page) == [1]
        assert numbers(await memory.list(cursor=page.cursor, filters={"tags": {"any": []}})) == []

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


# Permanent deletion


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
        await memory.store_batch([entry(1), entry(2, user_id="alice"), entry(3, user_id="alice")])
        await memory.link(UUID(int=2), UUID(int=3), all_users=True)
        await memory.backup(tmp_path / "copy.db")
        with pytest.raises(StoreFileError):
            await memory.backup(tmp_path / "copy.db")
        await memory.store(entry(4))

    async def check(memory, _clock):
        assert await memory.count(all_users=True) == 3
        assert await numbers_found(memory, all_users=True) == [1, 2, 3]
        assert len(await memory.links(UUID(int=2), all_users=True)) == 1

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
        first = memory.add(
            MemoryEntry("tea", expires_at="2026-05-02T12:00:00"), idempotency_key="k"
        )
        assert memory.add("tea", idempotency_key="k") == first
        again = memory.add_many(["Tea!", {"content": "ferry"}], on_duplicate="skip")
        assert [one.id == first.id for one in again] == [True, False]
        new = memory.add_many([{"content": "boat", "supersedes": again[1].id}])
        assert memory.count() == 2
        assert [link.type.name for link in memory.links(new[0].id)] == ["SUPERSEDES"]
        clock.now += DAY
        assert [hit.content for hit in memory.search("tea boat")] == ["boat"]
