"""Quotas of bytes for each user of a memory."""

import asyncio
import io
from contextlib import suppress

import pytest

from mnemic import AsyncMemory
from mnemic.errors import InvalidArgumentError, MnemicError, StorageQuotaExceededError
from tests.support.doors import opened
from tests.support.failing_embedders import FailingEmbedder


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


@pytest.mark.requirement("R076")
def test_nothing_is_embedded_of_what_cannot_be_stored():

    embedder = FailingEmbedder()
    with opened(embedder=embedder, user_quota=3) as memory:
        with pytest.raises(StorageQuotaExceededError):
            memory.add("more than three", user_id="alice")
        assert embedder.calls == []


def test_a_retry_and_a_duplicate_take_no_space():
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


CLASSES = {"alice": 20, "staff": None, None: 0}


def limit_of(user):
    return CLASSES.get(user, 10)


@pytest.mark.parametrize("when_full", ["refuse", "evict"])
def test_users_of_a_class_have_the_quota_of_their_class(when_full):
    with opened(user_quota=limit_of, when_full=when_full) as memory:
        for user, size in (("alice", 20), ("bob", 10), ("staff", 1000)):
            memory.add("x" * size, user_id=user, importance=1)
        for user in ("alice", "bob", None):
            limit = limit_of(user)
            with pytest.raises(StorageQuotaExceededError, match=f"Limit: {limit} ") as caught:
                memory.add("y" * 7, user_id=user)
            assert caught.value.limit == limit
            assert caught.value.added == 7
        memory.add("y", user_id="staff")
        limits = [memory.stats(user_id=user).storage_bytes_limit for user in (None, *CLASSES)]
        assert limits == [0, 20, None, 0]
        assert memory.stats(all_users=True).storage_bytes_limit is None
        with pytest.raises(StorageQuotaExceededError):
            memory.update_many(filters={}, content="y" * 21, all_users=True)
        assert memory.verify().problems == ()


def test_users_of_a_class_have_the_number_of_their_class():
    with opened(user_max_entries={"alice": 2, "staff": None}.get, when_full="evict") as memory:
        for number in range(3):
            memory.add(f"{number}", user_id="alice")
            memory.add(f"{number}", user_id="staff")
        assert [entry.content for entry in memory.list(user_id="alice")] == ["2", "1"]
        assert memory.count(user_id="staff") == 3
    with opened(user_max_entries=lambda user: 1 if user else None) as memory:
        memory.add_many(["a", "b"])
        with pytest.raises(StorageQuotaExceededError, match="To be added: 2 entries"):
            memory.add_many(["a", "b"], user_id="alice")


def failing(user):
    raise ValueError(f"secret of {user}")


def ending(user):
    raise SystemExit(user)


@pytest.mark.parametrize("option", ["user_quota", "user_max_entries"])
@pytest.mark.parametrize("limit", [failing, ending, str, lambda _: -1, lambda _: True])
def test_a_function_that_gives_no_limit_fails_the_write_and_no_other_one(option, limit):
    def first(user):
        return limit(user) if user == "alice" else None

    async def scenario():
        async with AsyncMemory(":memory:", embedder=None, **{option: first}) as memory:
            adding = [memory.add("tea", user_id=user) for user in ("bob", "alice", "carol")]
            bob, alice, carol = await asyncio.gather(*adding, return_exceptions=True)
            assert (bob.content, carol.content) == ("tea", "tea")
            assert isinstance(alice, InvalidArgumentError)
            assert option in str(alice)
            assert "secret" not in str(alice)
            assert await memory.count(all_users=True) == 2

    asyncio.run(scenario())


USES = {
    "reads": lambda memory: memory.count(),
    "shows its limit": lambda memory: memory.stats(user_id="alice"),
    "writes": lambda memory: memory.add("within"),
    "deletes": lambda memory: memory.delete_all(user_id="carol"),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_function_that_uses_the_memory_hangs_nothing(tmp_path, use):
    opened_ones = []

    def limit(user):
        if user == "alice":
            use(*opened_ones)

    with opened(tmp_path / "a.db", user_quota=limit) as memory:
        opened_ones.append(memory)
        with suppress(MnemicError):
            memory.add("tea", user_id="alice")
        assert memory.add("tea", user_id="bob")
        assert memory.verify().problems == ()


@pytest.mark.parametrize("wrong", [-1, 1.5, "many", True, 2**63])
def test_a_quota_is_a_number_of_bytes(wrong):
    with pytest.raises(InvalidArgumentError, match="user_quota"):
        opened(user_quota=wrong)


def test_a_quota_of_nothing_stores_nothing():
    with opened(user_quota=0) as memory:
        with pytest.raises(StorageQuotaExceededError, match="Limit: 0 bytes"):
            memory.add("x", user_id="alice")
        assert memory.users() == []


# Users


def test_concurrent_writers_never_pass_a_users_quota():
    async def scenario():
        options = {"embedder": None, "user_quota": 50}
        async with AsyncMemory(":memory:", **options) as memory:
            adding = [
                memory.add("0123456789", user_id=user) for _ in range(9) for user in ("a", "b")
            ]
            results = await asyncio.gather(*adding, return_exceptions=True)
            assert sum(isinstance(one, StorageQuotaExceededError) for one in results) == 8
            return shown(await memory.users())

    assert asyncio.run(scenario()) == [("a", 5, 50), ("b", 5, 50)]
