"""One example for each promise that is easily missed: quotas, expiry, links, lists, moving."""

import asyncio
from uuid import UUID

import pytest

import mnemic.errors
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import EntryNotFoundError, InvalidArgumentError, StoreFileError
from mnemic.model import MemoryEntryUpdate
from tests.support.clock import DAY, NOON, SECOND
from tests.support.embedders import WordEmbedder
from tests.support.long_term import RETENTION, entry, numbers_found, run, with_memory_and_clock

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


# Expiry


@with_memory_and_clock()
async def test_a_clock_that_goes_back_brings_an_expired_entry_back(memory, clock):
    await memory.store(entry(1, expires_at=NOON + SECOND))
    clock.now = NOON + DAY
    assert await numbers_found(memory) == []
    clock.now = NOON
    assert await numbers_found(memory) == [1]
    assert await memory.count() == 1


# Links


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
@with_memory_and_clock()
async def test_a_link_that_makes_no_sense_is_refused(memory, arguments, error):
    await memory.store_batch([entry(1), entry(2), entry(3, expires_at=NOON)])
    from_number, to_number, *rest = arguments
    with pytest.raises(error):
        await memory.link(UUID(int=from_number), UUID(int=to_number), *rest)
    assert await memory.links(UUID(int=1)) == []
    assert await memory.links(UUID(int=9)) == []


# Accesses


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


@with_memory_and_clock()
async def test_accesses_of_a_deleted_entry_do_not_pass_to_a_new_one_of_its_id(memory):
    await memory.store(entry(1))
    await memory.touch([UUID(int=1)])
    await memory.forget(UUID(int=1), permanent=True)
    await memory.store(entry(1, "ferry"))
    [kept] = await memory.search_by_filter({})
    assert kept.access_count == 0


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
