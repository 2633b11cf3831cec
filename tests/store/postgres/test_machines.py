"""Processes that reach one server over TCP, on one machine and on two."""

import time
from contextlib import contextmanager

import pytest

from tests.support.machines import two_machines
from tests.support.postgres_server import Server, free_port
from tests.support.workers import Worker


@pytest.fixture(autouse=True)
def own_server(monkeypatch):
    monkeypatch.delenv("MNEMIC_TEST_POSTGRES", raising=False)


@pytest.fixture
def here():
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
def there():
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
            eventually(lambda: hits(far_worker, "cheese", **WORD) == ["cheese"])
            eventually(lambda: type(far_worker.call("add", "dill", idempotency_key="k")) is dict)
            eventually(lambda: hits(near_worker, "dill", **WORD) == ["dill"])


IMPATIENT = "tcp_user_timeout=1000&keepalives_idle=1&keepalives_interval=1&connect_timeout=2"
WORD = {"search_type": "keyword"}


def eventually(condition):
    """Wait until a condition holds."""
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)
