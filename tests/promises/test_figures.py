"""What memories amount to, and what is purged: of one call's scope, whatever others store."""

import asyncio
from datetime import timedelta

import msgspec
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.model import MemoryStatus
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder

LONG_AGO = NOON - timedelta(days=91)


class FrontDoor:
    """The verbs of `Memory` that tell figures."""

    def __init__(self, path, **options):
        self.memory = Memory(path, embedder=WordEmbedder(), clock=lambda: NOON, **options)

    def stats(self, **scope):
        return self.memory.stats(**scope)

    def count(self, **scope):
        return self.memory.count(**scope)

    def purge(self, **scope):
        return self.memory.purge(**scope)

    def close(self):
        self.memory.close()


class LongTermDoor(FrontDoor):
    """Those of `AsyncLongTermMemory`."""

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.long_term = AsyncLongTermMemory(
            path, embedder=WordEmbedder(), clock=lambda: NOON, **options
        )

    def stats(self, **scope):
        return asyncio.run(self.long_term.get_stats(**scope))

    def count(self, **scope):
        return asyncio.run(self.long_term.count(**scope))

    def purge(self, **scope):
        return asyncio.run(self.long_term.purge_expired(**scope))

    def close(self):
        asyncio.run(self.long_term.close())
        super().close()


@pytest.fixture(params=[FrontDoor, LongTermDoor])
def door(request, tmp_path):
    opened = request.param(tmp_path / "a.db")
    yield opened
    opened.close()


@pytest.mark.requirement("R068", "R069")
def test_what_the_embedder_did_is_told_with_all_users_alone(door):
    door.memory.add_many(["one", "two"], user_id="alice")
    embedder = getattr(door, "long_term", door.memory)
    door.stats()
    for scope in ({}, {"user_id": "alice"}):
        stats = door.stats(**scope)
        assert (stats.total_embeddings_generated, stats.average_embedding_time_ms) == (0, 0.0)
    everything = door.stats(all_users=True)
    assert everything.total_embeddings_generated == (2 if embedder is door.memory else 0)
    assert (everything.average_embedding_time_ms > 0) == (embedder is door.memory)


def test_bytes_are_those_of_the_scope_and_with_a_quota_those_of_the_agent(tmp_path):
    quota = DocumentedLicenses(LicenseTier.TEAMS)
    for license, expected in ((None, len("hers")), (quota, len("hers and his"))):  # noqa: A001
        path = tmp_path / f"{expected}.db"
        with Memory(path, embedder=None, license=license) as memory:
            memory.add("hers", user_id="alice")
            memory.add(" and his", user_id="bob")
            assert memory.stats(user_id="alice").storage_bytes_used == expected
            assert memory.stats(all_users=True).storage_bytes_used == len("hers and his")


def test_a_view_tells_and_purges_its_own_scope_and_is_not_widened():
    with Memory(":memory:", embedder=None, clock=lambda: NOON) as memory:
        for session in ("one", "two"):
            memory.add("x", user_id="alice", session_id=session)
            memory.add(MemoryEntry("old", expires_at=LONG_AGO), user_id="alice", session_id=session)
        view = memory.scoped(user_id="alice", session_id="one")
        assert (view.stats().active_entries, view.stats().expired_entries) == (1, 1)
        assert (view.purge(), memory.stats(user_id="alice").expired_entries) == (1, 1)
        for widen in (view.stats, view.count, view.purge):
            with pytest.raises(InvalidArgumentError, match="not widened"):
                widen(all_users=True)


@pytest.mark.requirement("R020")
def test_a_count_and_the_active_entries_are_what_a_search_finds(door):
    kept = door.memory.add("kept")
    door.memory.add(MemoryEntry("gone", created_at=NOON, expires_at=NOON))
    archived = door.memory.add("archived")
    door.memory.update(archived.id, status="archived")
    old = door.memory.add("old")
    door.memory.add("new", supersedes=old.id)
    forgotten = door.memory.add("forgotten")
    door.memory.delete(forgotten.id)
    found = door.memory.search("anything", limit=100, search_type="semantic")
    stats = door.stats()
    assert kept.status is MemoryStatus.ACTIVE
    assert len(found) == door.count() == stats.active_entries == 2
    assert msgspec.structs.asdict(stats) | {
        "archived_entries": 1,
        "superseded_entries": 1,
        "forgotten_entries": 1,
        "expired_entries": 1,
    } == msgspec.structs.asdict(stats)
