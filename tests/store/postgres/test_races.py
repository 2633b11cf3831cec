"""Two processes that write the same at the same time."""

from uuid import UUID

import pytest

from mnemic import Memory
from tests.support.workers import Worker, together

ROUNDS = 30


@pytest.fixture
def racing(database):
    """Return what opens the database in two processes."""
    workers = []

    def start(**options):
        workers.extend(Worker(database, embedder=None, **options) for _ in range(2))
        for worker in workers:  # both are open before they race
            worker.call("count")
        return workers

    yield start
    for worker in workers:
        worker.close()


@pytest.fixture
def memory(database):
    with Memory(database, embedder=None) as opened:
        yield opened


def test_one_of_two_processes_adds_an_id_and_the_other_hears_of_the_duplicate(racing, memory):
    workers = racing()
    ids = [str(UUID(int=number)) for number in range(1, ROUNDS + 1)]
    for one in ids:
        answers = together(workers, "add", "an apple", id=one)
        assert answers.count("DuplicateEntryError") == 1
        assert {"id": one, "content": "an apple"} in answers
    assert sorted(str(entry.id) for entry in memory.list()) == ids


def test_an_idempotency_key_is_stored_once_and_both_processes_get_its_memory(racing, memory):
    workers = racing()
    ids = []
    for number in range(ROUNDS):
        options = {"idempotency_key": f"key {number}"}
        first, second = together(workers, "add", f"memory {number}", **options)
        assert first == second
        ids.append(first["id"])
    assert sorted(str(entry.id) for entry in memory.list()) == sorted(ids)
    assert len(set(ids)) == ROUNDS


def test_two_processes_together_store_no_more_than_a_users_quota(racing, memory):
    workers = racing(user_quota=10)
    for number in range(ROUNDS):
        user = f"user {number}"
        answers = together(workers, "add", "six by", user_id=user)
        assert answers.count("StorageQuotaExceededError") == 1
        (kept,) = memory.list(user_id=user)
        assert {"id": str(kept.id), "content": "six by"} in answers


def test_two_processes_together_store_no_more_than_the_agents_quota(racing, memory):
    workers = racing(quota=10)
    for _ in range(ROUNDS):
        answers = together(workers, "add", "six by")
        assert answers.count("StorageQuotaExceededError") == 1
        (kept,) = memory.list()
        assert {"id": str(kept.id), "content": "six by"} in answers
        memory.delete(kept.id, permanent=True)


def test_two_processes_that_make_space_together_keep_a_users_limits(racing, memory):
    workers = racing(user_quota=20, user_max_entries=3, when_full="evict")
    for _ in range(ROUNDS):
        answers = together(workers, "add", "six by", user_id="alice")
        assert all(answer["content"] == "six by" for answer in answers)
    assert memory.count(user_id="alice") == 3
    assert memory.stats(user_id="alice").storage_bytes_used == 18
    assert memory.verify().problems == ()


def test_no_update_of_two_processes_is_lost(racing, memory):
    first, second = racing()
    one = memory.add("an apple")
    for number in range(ROUNDS):
        first.begin("update", str(one.id), add_tags=[f"first {number}"])
        second.begin("update", str(one.id), metadata={f"second {number}": number})
        assert first.answer() == second.answer() == {"id": str(one.id), "content": "an apple"}
    found = memory.get(one.id)
    assert set(found.tags) == {f"first {number}" for number in range(ROUNDS)}
    assert found.metadata == {f"second {number}": number for number in range(ROUNDS)}
    assert found.version == one.version + 2 * ROUNDS


def test_one_of_two_updates_made_for_the_same_version_is_refused(racing, memory):
    workers = racing()
    version = (one := memory.add("an apple")).version
    for _ in range(ROUNDS):
        answers = together(workers, "update", str(one.id), importance=0.7, if_version=version)
        assert answers.count("VersionConflictError") == 1
        version += 1
        assert memory.get(one.id).version == version
