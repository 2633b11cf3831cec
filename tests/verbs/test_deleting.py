"""Verbs over many memories: update_many, delete_many, delete_all by filter, purge."""

import logging
import random
import subprocess
import sys
from datetime import timedelta

import pytest

from mnemic import Memory, MemoryEntry, MemoryFilter, errors
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.model import MemoryQuery
from mnemic.observability.events import MemoryForgottenEvent, MemoryUpdatedEvent
from tests.support.clock import DAY, HOUR, NOON, Clock
from tests.support.doors import opened
from tests.support.entries import uid
from tests.support.failing_embedders import FailingEmbedder
from tests.support.processes import ENVIRONMENT

TEA = {"metadata.topic": "tea"}
USERS = ("alice", "bob", None)


def fill(memory, users=USERS):
    """Store three memories of each user: 1 and 2 about tea, 3 about coffee."""
    for user_id in users:
        for number, topic in ((1, "tea"), (2, "tea"), (3, "coffee")):
            memory.add(
                f"{topic} of {user_id}", id=uid(number), metadata={"topic": topic}, user_id=user_id
            )


def numbers(memory, user_id="alice", **options):
    return sorted(entry.id.int for entry in memory.list(user_id=user_id, **options))


def left(memory):
    return {user_id: numbers(memory, user_id) for user_id in USERS}


@pytest.fixture
def memory():
    with opened() as memory:
        fill(memory)
        yield memory
        assert memory.verify().problems == ()


# Changing


def test_memories_are_changed_by_filter_and_by_id(memory):
    assert memory.update_many(filters=TEA, add_tags=["hot"], user_id="alice") == 2
    assert memory.update_many([uid(3), uid(7)], importance=0.9, user_id="alice") == 1
    assert memory.update_many(filters={}, metadata={"seen": True}, all_users=True) == 9
    assert numbers(memory, filters={"tags": {"contains": "hot"}, "metadata.seen": True}) == [1, 2]
    assert numbers(memory, filters={"importance": 0.9}) == [3]
    assert numbers(memory, "bob", filters={"tags": {"contains": "hot"}}) == []
    assert memory.update_many(filters=TEA, all_users=True) == 0  # changes nothing


def test_metadata_and_expiry_of_many(memory):
    soon = memory.repository.now() + HOUR
    alice = {"user_id": "alice"}
    assert memory.update_many(filters=TEA, replace_metadata={"k": 1}, expires_at=soon, **alice) == 2
    assert memory.get(uid(1), **alice).metadata == {"k": 1}
    assert memory.get(uid(2), **alice).expires_at == soon
    assert memory.update_many(filters={"metadata.k": 1}, expires_at="never", **alice) == 2
    assert memory.get(uid(2), **alice).expires_at is None
    assert memory.update_many([uid(1)], expires_at=soon - DAY, **alice) == 1
    assert numbers(memory) == [2, 3]


def test_archived_memories_are_changed_where_the_call_or_the_filter_names_the_status(memory):
    assert memory.update_many(filters=TEA, status="archived", user_id="alice") == 2
    assert memory.count(user_id="alice") == 1
    assert memory.update_many(filters=TEA, importance=0.1, user_id="alice") == 0
    archived = {"status": "archived"}
    assert memory.update_many(filters=archived, importance=0.1, user_id="alice") == 2
    assert memory.update_many(filters=TEA, status="active", user_id="alice") == 2
    assert memory.count(user_id="alice") == 3


def test_one_content_for_many_is_embedded_once():
    embedder = FailingEmbedder()
    with opened(embedder=embedder) as memory:
        fill(memory, ["alice"])
        embedder.calls.clear()
        assert memory.update_many(filters=TEA, content="removed on request", user_id="alice") == 2
        assert embedder.calls == [["removed on request"]]
        found = memory.search("removed on request", user_id="alice", search_type="semantic")
        assert [hit.content for hit in found[:2]] == ["removed on request"] * 2
        assert memory.verify().problems == ()


def test_nothing_is_changed_where_the_embedder_fails():
    with opened(embedder=FailingEmbedder(fails_on="bad")) as memory:
        fill(memory, ["alice"])
        with pytest.raises(errors.EmbeddingError):
            memory.update_many(filters=TEA, content="bad", add_tags=["x"], user_id="alice")
        assert numbers(memory, filters={"tags": {"contains": "x"}}) == []


# Deleting


@pytest.mark.parametrize("permanent", [False, True])
def test_memories_are_deleted_by_filter_by_id_and_by_both(memory, permanent):
    deleted = memory.delete_many(filters=TEA, user_id="alice", permanent=permanent)
    assert (deleted, deleted.erased) == (2, permanent)
    assert left(memory) == {"alice": [3], "bob": [1, 2, 3], None: [1, 2, 3]}
    assert memory.search("tea", user_id="alice", search_type="keyword")[:1] == memory.search(
        "nothing", user_id="alice", search_type="keyword"
    )
    assert (
        memory.delete_many([uid(1), str(uid(3)), uid(9)], user_id="bob", permanent=permanent) == 2
    )
    assert memory.delete_many([uid(1), uid(3)], filters=TEA, permanent=permanent) == 1
    assert left(memory) == {"alice": [3], "bob": [2], None: [2, 3]}
    assert memory.restore(uid(1), user_id="alice") is not permanent


def test_delete_all_takes_a_filter(memory):
    assert memory.delete_all(filters=TEA, user_id="bob") == 2
    assert left(memory) == {"alice": [1, 2, 3], "bob": [3], None: [1, 2, 3]}
    assert memory.delete_all(filters={}, user_id="bob") == 1
    assert memory.delete_all(filters=MemoryFilter(filters=TEA), all_users=True) == 4
    assert left(memory) == {"alice": [3], "bob": [], None: [3]}


def test_all_users_must_be_named(memory):
    assert memory.delete_many(filters=TEA) == 2
    assert memory.delete_many(filters=TEA, all_users=True) == 4
    assert memory.delete_all() == 1
    assert left(memory) == {"alice": [3], "bob": [3], None: []}
    assert memory.delete_all(all_users=True) == 2
    assert memory.delete_all(all_users=True, permanent=True) == 9
    for view in (memory.scoped(user_id="alice"), memory.scoped(user_id="alice", project_id="p")):
        for call in (
            lambda view: view.delete_many(filters=TEA, all_users=True),
            lambda view: view.delete_all(all_users=True),
            lambda view: view.update_many(filters=TEA, importance=1, all_users=True),
            lambda view: view.purge(all_users=True),
        ):
            with pytest.raises(errors.InvalidArgumentError, match="is not widened to all users"):
                call(view)


def test_what_a_call_names_is_checked(memory):
    seq = memory.repository._store.position("default")
    for call in (memory.delete_many, memory.update_many):
        with pytest.raises(errors.InvalidArgumentError, match="ids and filters are both None"):
            call()
        with pytest.raises(errors.FilterError, match=r"metadata\.topic\.what"):
            call(filters={"metadata.topic": {"what": 1}})
        with pytest.raises(errors.FilterError, match="limit=5 and offset=0 names a part"):
            call(filters=MemoryFilter(filters=TEA, limit=5))
        with pytest.raises(errors.InvalidArgumentError, match="must be a UUID"):
            call([1])
        with pytest.raises(errors.InvalidArgumentError):
            call("not ids")
        with pytest.raises(errors.AmbiguousIdError, match="several users"):
            call(
                [uid(1)],
                all_users=True,
                **({"importance": 1} if call == memory.update_many else {}),
            )
    with pytest.raises(errors.FilterError):
        memory.delete_all(filters=MemoryFilter(offset=1))
    with pytest.raises(errors.InvalidArgumentError, match="delete_all"):
        memory.delete_many()
    for empty in ({}, MemoryFilter(), {"AND": [{}]}):
        with pytest.raises(errors.InvalidArgumentError, match=r"no test; .* delete_all"):
            memory.delete_many(filters=empty)
    with pytest.raises(errors.InvalidArgumentError, match="permanent"):
        memory.delete_many(filters=TEA, permanent="yes")
    assert memory.delete_many([]) == memory.update_many([], importance=1) == 0
    assert memory.repository._store.position("default") == seq


def test_one_event_for_each_and_one_log_line(memory, caplog):
    deleted, updated = [], []
    memory.events.subscribe(MemoryForgottenEvent, deleted.append)
    memory.events.subscribe(MemoryUpdatedEvent, updated.append)
    with caplog.at_level(logging.INFO, "mnemic"):
        memory.update_many(filters=TEA, content="green tea", user_id="alice")
        memory.delete_many(filters=TEA, user_id="alice", permanent=True)
    assert [(event.entry_id.int, event.content_changed) for event in updated] == [
        (1, True),
        (2, True),
    ]
    assert sorted((event.entry_id.int, event.permanent) for event in deleted) == [
        (1, True),
        (2, True),
    ]
    assert len(caplog.messages) == 1
    assert "2 memory entries forgotten" in caplog.text
    assert "tea" not in caplog.text


def test_filters_see_the_accesses_counted_so_far(memory):
    memory.get(uid(2), user_id="alice")
    assert (
        memory.update_many(filters={"access_count": {"gte": 1}}, importance=1, user_id="alice") == 1
    )
    memory.get(uid(1), user_id="alice")
    assert memory.delete_many(filters={"access_count": {"lt": 1}}, user_id="alice") == 1
    assert numbers(memory) == [1, 2]


def test_a_kept_answer_ends_with_a_write_over_many(memory):
    def retrieved():
        return sorted(
            hit.id.int for hit in memory.retrieve(MemoryQuery(query="tea", min_relevance=0.5))
        )

    assert retrieved() == retrieved() == [1, 2]
    memory.delete_many([uid(1)], filters=TEA)
    assert retrieved() == [2]
    memory.update_many(filters={}, content="something else")
    assert retrieved() == []


def test_an_opening_that_saw_an_earlier_state_deletes_by_the_present_one(tmp_path):
    with opened(tmp_path / "a.db") as mine, opened(tmp_path / "a.db") as other:
        fill(mine, ["alice"])
        assert len(mine.search("tea", user_id="alice", filters=TEA)) == 2
        other.update(uid(1), metadata={"topic": "coffee"}, user_id="alice")
        other.update(uid(3), metadata={"topic": "tea"}, user_id="alice")
        assert mine.delete_many(filters=TEA, user_id="alice", permanent=True) == 2
        assert numbers(mine) == numbers(other) == [1]


CHANGES = """
import sys
from uuid import UUID
from mnemic import Memory

with Memory(sys.argv[1], embedder=None) as memory:
    memory.update(UUID(int=1), metadata={"topic": "coffee"}, user_id="alice")
    memory.delete(UUID(int=2), user_id="alice")
    memory.add("more tea", id=UUID(int=4), metadata={"topic": "tea"}, user_id="alice")
"""


@pytest.mark.parametrize("permanent", [False, True])
def test_what_another_process_changed_is_decided_as_it_is_now(tmp_path, permanent):
    path = tmp_path / "a.db"
    with opened(path, embedder=None) as memory:
        fill(memory)
        assert len(memory.search("tea", user_id="alice", filters=TEA)) == 2
        subprocess.run([sys.executable, "-c", CHANGES, path], env=ENVIRONMENT, check=True)
        assert (
            memory.delete_many(filters=TEA, user_id="alice", permanent=permanent) == 1 + permanent
        )
        assert left(memory) == {"alice": [1, 3], "bob": [1, 2, 3], None: [1, 2, 3]}
        assert (
            memory.update_many(filters={"metadata.topic": "coffee"}, importance=1, user_id="alice")
            == 2
        )
        assert memory.verify().problems == ()


# Purging


def aged():
    """Return a memory of three users, each with deleted and expired memories, at the time NOON."""
    clock = Clock(NOON - 100 * DAY)
    memory = opened(clock=clock)
    for user_id in ("alice", "bob", None):
        for number, age in ((1, 95), (2, 10), (3, 0)):
            clock.now = NOON - age * DAY
            memory.add(f"deleted {age}", id=uid(number), user_id=user_id)
            memory.delete(uid(number), user_id=user_id)
            expires_at = clock.now + HOUR if age else NOON
            memory.add(
                MemoryEntry(f"expired {age}", id=uid(10 + number), expires_at=expires_at),
                user_id=user_id,
            )
        memory.add("stays", id=uid(20), user_id=user_id)
    clock.now = NOON
    return memory


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        ({}, [1, 11]),
        ({"expired": True}, [1, 11, 12, 13]),
        ({"older_than": timedelta(days=5)}, [1, 2, 11, 12]),
        ({"older_than": timedelta(days=5), "expired": True}, [1, 2, 11, 12, 13]),
        ({"older_than": timedelta(days=200)}, []),
        ({"older_than": timedelta.max}, []),
    ],
)
def test_purging_by_age_and_expiry(options, gone):
    everything = [1, 2, 3, 11, 12, 13, 20]
    with aged() as memory:
        assert memory.purge(user_id="alice", **options) == len(gone)
        kept = sorted(set(everything) - set(gone))
        assert numbers(memory, include_deleted=True) == kept
        assert numbers(memory, "bob", include_deleted=True) == everything
        assert memory.purge(all_users=True, **options) == 2 * len(gone)
        for user_id in USERS:
            assert numbers(memory, user_id, include_deleted=True) == kept
        assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "options", [{"older_than": 5}, {"older_than": timedelta(-1)}, {"expired": "yes"}]
)
def test_purge_checks_its_arguments(memory, options):
    with pytest.raises(errors.InvalidArgumentError, match=next(iter(options))):
        memory.purge(**options)


# The index, and memories read before


TOPICS = ("tea", "coffee", "water")


def answers(memory):
    """Return what searches and lists of each user find, with every digit of the scores."""
    found = []
    for user_id in USERS:
        for topic in TOPICS:
            hits = memory.search(topic, user_id=user_id, limit=50, explain=True)
            found += [(hit.entry, hit.score, sorted(hit.components.items())) for hit in hits]
            where = {"AND": [{"metadata.topic": topic}, {"importance": {"gte": 0.5}}]}
            found.append([entry.id for entry in memory.list(user_id=user_id, filters=where)])
        found.append(memory.count(user_id=user_id))
    return found


def write(memory, chosen, clock):
    """Make one random write over many memories."""
    user_id, topic = chosen.choice(USERS), chosen.choice(TOPICS)
    ids = [uid(chosen.randrange(40)) for _ in range(8)]
    match chosen.randrange(6):
        case 0:
            memory.delete_many(filters={"metadata.topic": topic}, user_id=user_id)
        case 1:
            memory.delete_many(ids, permanent=chosen.random() < 0.5, user_id=user_id)
        case 2:
            change = {"content": f"{topic} again", "metadata": {"topic": topic}}
            memory.update_many(ids, user_id=user_id, **change)
        case 3:
            where = {"content": {"contains": topic}}
            status = chosen.choice(["archived", "active"])
            memory.update_many(
                filters=where, importance=chosen.random(), status=status, all_users=True
            )
        case 4:
            for each in ids:
                memory.restore(each, user_id=user_id)
        case 5:
            clock.now += DAY
            memory.purge(older_than=DAY, expired=True, all_users=True)


@pytest.mark.parametrize("seed", range(8))
def test_an_index_that_follows_is_one_that_is_built_anew(tmp_path, seed):
    chosen, path, clock = random.Random(seed), tmp_path / "a.db", Clock(NOON)  # noqa: S311 - repeatable
    with opened(path, clock=clock) as memory:
        for user_id in USERS:
            for number in range(40):
                topic = chosen.choice(TOPICS)
                expires_at = NOON + chosen.randrange(1, 9) * DAY if chosen.random() < 0.2 else None
                memory.add(
                    MemoryEntry(
                        f"{topic} number {number}",
                        id=uid(number),
                        metadata={"topic": topic},
                        expires_at=expires_at,
                    ),
                    user_id=user_id,
                )
        answers(memory)
        for _ in range(12):
            write(memory, chosen, clock)
            with opened(path, clock=clock, read_only=True) as again:
                assert answers(memory) == answers(again)
        assert memory.verify().problems == ()


# The other door, and what all writes promise


def test_licenses_and_read_only_files_refuse(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        fill(memory, ["alice"])
    calls = (
        lambda memory: memory.delete_many(filters=TEA, user_id="alice"),
        lambda memory: memory.update_many(filters=TEA, importance=1, user_id="alice"),
        lambda memory: memory.delete_all(filters=TEA, user_id="alice"),
    )
    licensed = Memory(path, embedder=None, license=DocumentedLicenses(LicenseTier.CORE))
    with licensed, Memory(path, embedder=None, read_only=True) as read_only:
        for call in calls:
            with pytest.raises(errors.LicenseRestrictionError):
                call(licensed)
            with pytest.raises(errors.ReadOnlyError):
                call(read_only)
