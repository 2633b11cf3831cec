"""What an operator of many users has: quotas per user, the list of users, and their sums."""

import asyncio
import io
from uuid import UUID

import apsw
import pytest

from mnemic import AsyncMemory, Memory
from mnemic.errors import (
    InvalidArgumentError,
    LicenseRestrictionError,
    StorageQuotaExceededError,
    StoreClosedError,
)
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.model import UserUsage
from tests.support.clock import DAY, NOON, Clock
from tests.support.doors import opened, run
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry


def shown(users):
    return [(user.user_id, user.active_entries, user.storage_bytes_used) for user in users]


def test_each_user_has_a_quota_of_their_own():
    with opened(user_quota=10) as memory:
        memory.add("12345", user_id="alice")
        memory.add_many([{"content": "1234567890"}, {"content": "123", "user_id": "bob"}])
        with pytest.raises(
            StorageQuotaExceededError, match=r"of user 'alice' exceeded\. Current: 5"
        ):
            memory.add("123456", user_id="alice")
        with pytest.raises(StorageQuotaExceededError, match="of memories without a user"):
            memory.add("1")
        kept = memory.add("12345", user_id="alice")
        memory.delete(kept.id, user_id="alice")
        with pytest.raises(StorageQuotaExceededError):
            memory.add("1", user_id="alice")
        memory.delete(kept.id, user_id="alice", permanent=True)
        memory.add("67890", user_id="alice")
        with pytest.raises(StorageQuotaExceededError):
            memory.update_many(filters={}, content="longer than ten", user_id="bob")
        assert shown(memory.users()) == [(None, 1, 10), ("alice", 2, 10), ("bob", 1, 3)]
        assert memory.verify().problems == ()


def test_nothing_is_embedded_of_what_cannot_be_stored():
    class Counting(WordEmbedder):
        calls = 0

        def embed(self, texts, /):
            self.calls += 1
            return super().embed(texts)

    embedder = Counting()
    with opened(embedder=embedder, user_quota=3) as memory:
        with pytest.raises(StorageQuotaExceededError):
            memory.add("more than three", user_id="alice")
        assert embedder.calls == 0


def test_a_retry_and_a_duplicate_take_no_room():
    with opened(user_quota=8) as memory:
        stored = memory.add("8 bytes!", idempotency_key="k", user_id="alice")
        assert memory.add("8 bytes!", idempotency_key="k", user_id="alice").id == stored.id
        merged = memory.add("8 bytes!", on_duplicate="merge", tags=["t"], user_id="alice")
        assert (merged.id, merged.tags) == (stored.id, ("t",))
        assert shown(memory.users()) == [("alice", 1, 8)]


def test_an_import_keeps_to_the_quota():
    target = io.StringIO()
    with opened() as memory:
        memory.add_many(["1234567890", "1234567890"], user_id="alice")
        memory.export(target, all_users=True)
    for user_quota in (20, 19):
        with opened(user_quota=user_quota) as memory:
            source = io.BytesIO(target.getvalue().encode())
            if user_quota == 20:
                assert memory.import_(source).stored == 2
            else:
                with pytest.raises(StorageQuotaExceededError):
                    memory.import_(source)
            assert memory.verify().problems == ()


def test_statistics_show_a_user_their_own_limit_and_all_users_the_agents():
    with opened(user_quota=50, quota=80) as memory:
        memory.add("12345", user_id="alice")
        memory.add("1234567890", user_id="bob")
        memory.delete(memory.add("123", user_id="alice").id, user_id="alice")
        figures = {
            user: memory.stats(**scope)
            for user, scope in (
                ("alice", {"user_id": "alice"}),
                ("nobody", {}),
                ("all", {"all_users": True}),
            )
        }
        assert {
            user: (stats.storage_bytes_used, stats.storage_bytes_limit)
            for user, stats in figures.items()
        } == {"alice": (8, 50), "nobody": (0, 50), "all": (18, 80)}
    with opened(user_quota=50) as memory:
        memory.add("12345", user_id="alice")
        assert memory.stats(all_users=True).storage_bytes_limit is None
        assert memory.stats(user_id="alice").storage_percent_used == 10


@pytest.mark.parametrize("wrong", [-1, 1.5, "many", True, 2**63])
def test_a_quota_is_a_number_of_bytes(wrong):
    with pytest.raises(InvalidArgumentError, match="user_quota"):
        opened(user_quota=wrong)


def test_a_quota_of_nothing_stores_nothing():
    with opened(user_quota=0) as memory:
        with pytest.raises(StorageQuotaExceededError, match="Limit: 0 bytes"):
            memory.add("x", user_id="alice")
        assert memory.users() == []


def test_long_term_memory_takes_the_option():
    async def scenario(memory):
        await memory.store(entry("1234567890", user_id="alice"))
        with pytest.raises(StorageQuotaExceededError, match="'alice'"):
            await memory.store(entry("1", user_id="alice"))
        await memory.store(entry("1234567890", user_id="bob"))

    run(scenario, user_quota=10)


# Users


def test_users_are_listed_in_pages_and_by_prefix():
    with opened(clock=Clock(NOON)) as memory:
        for number in range(30):
            memory.add("abc", user_id=f"team-{number % 3}/user-{number:02}")
        memory.add("nobody's")
        everybody = memory.users()
        assert (len(everybody), everybody[0]) == (31, UserUsage(None, 1, 8))
        pages = [memory.users(limit=7, offset=offset) for offset in range(0, 35, 7)]
        assert [user for page in pages for user in page] == everybody
        names = [user.user_id for user in memory.users(prefix="team-1/", limit=3)]
        assert names == ["team-1/user-01", "team-1/user-04", "team-1/user-07"]
        assert memory.users(prefix="tea%") == memory.users(prefix="x") == []


def test_a_user_is_listed_until_nothing_of_theirs_is_left():
    clock = Clock(NOON)
    with opened(clock=clock) as memory:
        memory.add("abc", user_id="alice", expires_at=NOON + DAY)
        assert shown(memory.users()) == [("alice", 1, 3)]
        clock.now = NOON + DAY
        assert shown(memory.users()) == [("alice", 0, 3)]
        assert memory.purge(expired=True, user_id="alice") == 1
        assert memory.users() == []


def test_agents_do_not_see_each_others_users(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, "one") as one, opened(path, "two", user_quota=4) as two:
        one.add("abcd", user_id="alice")
        two.add("ab", user_id="alice")
        two.add("abcd", user_id="carol")
        assert shown(one.users()) == [("alice", 1, 4)]
        assert shown(two.users()) == [("alice", 1, 2), ("carol", 1, 4)]


def test_no_view_has_the_list_of_users():
    with opened() as memory:
        for scope in ({"user_id": "alice"}, {"project_id": "p"}, {}):
            assert not hasattr(memory.scoped(**scope), "users")


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 1001}, {"offset": -1}, {"prefix": 5}, {"prefix": "\0"}]
)
def test_the_arguments_of_users_are_checked(wrong):
    with opened() as memory, pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
        memory.users(**wrong)


def test_the_list_needs_an_open_memory_and_a_license():
    with (
        Memory(":memory:", embedder=None, license=DocumentedLicenses(LicenseTier.CORE)) as memory,
        pytest.raises(LicenseRestrictionError),
    ):
        memory.users()
    with opened() as memory:
        pass
    with pytest.raises(StoreClosedError):
        memory.users()


def test_the_awaited_list_is_the_same():
    async def scenario():
        options = {"embedder": None, "user_quota": 3}
        async with await AsyncMemory.open(":memory:", **options) as memory:
            await memory.add("abc", user_id="alice")
            with pytest.raises(StorageQuotaExceededError):
                await memory.add("d", user_id="alice")
            return await memory.users()

    assert asyncio.run(scenario()) == [UserUsage("alice", 1, 3)]


def test_concurrent_writers_never_pass_a_users_quota():
    async def scenario():
        options = {"embedder": None, "user_quota": 50}
        async with await AsyncMemory.open(":memory:", **options) as memory:
            adding = [
                memory.add("0123456789", user_id=user) for _ in range(9) for user in ("a", "b")
            ]
            results = await asyncio.gather(*adding, return_exceptions=True)
            assert sum(isinstance(one, StorageQuotaExceededError) for one in results) == 8
            return shown(await memory.users())

    assert asyncio.run(scenario()) == [("a", 5, 50), ("b", 5, 50)]


# Checks


def test_wrong_sums_of_users_are_found_and_repaired(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        memory.add("12345", user_id="alice")
        memory.add("123", id=UUID(int=1))
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE agent_memory_walls SET used_bytes = 7 WHERE user_key = 'alice'")
    connection.execute("DELETE FROM agent_memory_walls WHERE user_key = ''")
    connection.execute("INSERT INTO agent_memory_walls VALUES ('default', 'gone', 3, 9)")
    connection.close()
    with opened(path) as memory:
        report = memory.verify(repair=True)
        assert [problem.what for problem in report.problems] == [
            "has 3 bytes of content without a user, and 0 were counted",
            "has 5 bytes of content of user 'alice', and 7 were counted",
            "has 0 bytes of content of user 'gone', and 9 were counted",
        ]
        assert {problem.agent_id for problem in report.problems} == {"default"}
        assert report.repaired_agents == ("default",)
        again = memory.verify(repair=True)
        assert (again.problems, again.repaired_agents) == ((), ())
        assert shown(memory.users()) == [(None, 1, 3), ("alice", 1, 5)]
