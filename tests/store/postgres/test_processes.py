"""Processes that reach one server, on one machine and on two, and write the same at once."""

import time
from contextlib import contextmanager
from uuid import UUID

import pytest

from mnemic import Memory
from tests.support.machines import two_machines
from tests.support.postgres_server import Server, free_port
from tests.support.waiting import until
from tests.support.workers import Worker, together


@pytest.fixture
def own_server(monkeypatch):
    monkeypatch.delenv("MNEMIC_TEST_POSTGRES", raising=False)


@pytest.fixture
def here(own_server):  # noqa: ARG001 - a server of its own
    """Return the URL of a database, and the same, of a server on a port of this machine."""
    server = Server(listen_addresses="'127.0.0.1'", port=free_port())
    url = server.tcp_url(server.new_database())
    yield (url, ()), (url, ())
    server.close()


@contextmanager
def running_on(machine):
    server = Server(before=machine.before_as_nobody, listen_addresses="'*'")
    try:
        yield server
    finally:
        server.close()


@pytest.fixture
def there(own_server):  # noqa: ARG001 - as above
    """Return a database's URL on its server's machine and on another, and how to get there."""
    with two_machines() as (first, second), running_on(first) as server:
        url = server.new_database()
        yield (
            (server.tcp_url(url), first.before),
            (server.tcp_url(url, first.address), second.before),
        )


@pytest.fixture(params=["here", "there"])
def places(request):
    return request.getfixturevalue(request.param)


def hits(worker, word, **options):
    found = worker.call("search", word, **options)
    assert isinstance(found, list), found
    return [hit["content"] for hit in found]


def soon(worker, expected, word, **options):
    """Search until the answer is the expected one, for a second at most."""
    ends = time.monotonic() + 1.0
    while (found := hits(worker, word, **options)) != expected and time.monotonic() < ends:
        time.sleep(0.005)
    return found


def test_what_one_writes_changes_and_deletes_the_other_finds_and_no_scope_falls(places):
    (first_url, at_first), (second_url, at_second) = places
    with Worker(first_url, at_first) as first, Worker(second_url, at_second) as second:
        ann = {"user_id": "ann", "search_type": "keyword"}
        bob = {"user_id": "bob", "search_type": "keyword"}
        assert hits(second, "apple", **ann) == []
        one = first.call("add", "an apple", user_id="ann")
        assert soon(second, ["an apple"], "apple", **ann) == ["an apple"]
        assert hits(second, "apple", **bob) == []
        assert hits(second, "apple", search_type="keyword") == []
        assert second.call("get", one["id"], user_id="bob") == "EntryNotFoundError"
        assert second.call("update", one["id"], content="x", user_id="bob") == "EntryNotFoundError"
        second.call("update", one["id"], content="bread", user_id="ann")
        assert soon(first, ["bread"], "bread", **ann) == ["bread"]
        assert hits(first, "apple", **ann) == []
        first.call("delete", one["id"], user_id="ann")
        assert soon(second, [], "bread", **ann) == []


def test_agents_of_two_machines_see_nothing_of_each_other(places):
    (first_url, at_first), (second_url, at_second) = places
    with (
        Worker(first_url, at_first, agent_id="one") as first,
        Worker(second_url, at_second, agent_id="two") as second,
    ):
        one = first.call("add", "an apple", user_id="ann")
        assert second.call("count", all_users=True) == 0
        assert second.call("get", one["id"], all_users=True) == "EntryNotFoundError"
        assert hits(second, "apple", user_id="ann") == []
        same = second.call("add", "bread", user_id="ann", id=one["id"])
        assert same["id"] == one["id"]
        assert hits(first, "bread apple", user_id="ann") == ["an apple"]
        assert hits(second, "bread apple", user_id="ann") == ["bread"]


@pytest.mark.usefixtures("own_server")
def test_searches_go_on_without_the_cable_and_after_it_writes_and_news_as_well():
    with two_machines() as (first, second), running_on(first) as server:
        url = server.new_database()
        far = f"{server.tcp_url(url, first.address)}?{IMPATIENT}"
        with (
            Worker(server.tcp_url(url), first.before) as near_worker,
            Worker(far, second.before, patience=1.0) as far_worker,
        ):
            far_worker.call("add", "an apple")
            assert hits(far_worker, "apple") == ["an apple"]
            second.run("ip", "link", "set", "cable", "down")
            assert far_worker.call("add", "bread") == "StoreUnavailableError"
            assert hits(far_worker, "apple") == ["an apple"]
            assert near_worker.call("count") == 1
            near_worker.call("add", "cheese")
            second.run("ip", "link", "set", "cable", "up")
            until(lambda: hits(far_worker, "cheese", **WORD) == ["cheese"])
            until(lambda: type(far_worker.call("add", "dill", idempotency_key="k")) is dict)
            until(lambda: hits(near_worker, "dill", **WORD) == ["dill"])


IMPATIENT = "tcp_user_timeout=1000&keepalives_idle=1&keepalives_interval=1&connect_timeout=2"
WORD = {"search_type": "keyword"}


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
