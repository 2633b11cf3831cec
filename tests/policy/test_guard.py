"""Failures through the public doors: the chat always gets a payload, and never one too old."""

import asyncio
import gc
import logging
import threading
import time
import weakref

import pytest

from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.compat import LicenseTier
from mnemic.errors import FilterError, InvalidArgumentError, LicenseRestrictionError
from mnemic.licensing import DocumentedLicenses
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.limits import CircuitBreaker, FixedWindow
from mnemic.policy.payload import (
    COLLECTION_NOT_FOUND,
    INVALID_QUERY,
    RATE_LIMITED,
    UNAVAILABLE,
    timed_out,
)
from mnemic.policy.policy import RetrievalPolicy
from mnemic.policy.request import RetrievalRequest
from mnemic.policy.run import Retriever
from mnemic.store.changes import ChangeListeners
from tests.policy.test_breaker import Timer
from tests.support.clock import HOUR, NOON, SECOND, Clock
from tests.support.embedders import WordEmbedder
from tests.support.policy import DOORS
from tests.support.threads import run_together

TEXT = "Alice cycles to work on a red bike"


class Embedder(WordEmbedder):
    """Embeds by words; queries take time, fail, or do something, if they are to."""

    def __init__(self):
        super().__init__()
        self.delay, self.error, self.act, self.queries = 0.0, None, None, 0

    def embed(self, texts):
        if any("?" in text for text in texts):
            self.queries += 1
            time.sleep(self.delay)
            if self.act is not None:
                self.act()
            if self.error is not None:
                raise self.error
        return super().embed(texts)


def asked(message="Which bike?", user_id="alice", session_id="monday", **fields):
    return RetrievalRequest(message, user_id=user_id, session_id=session_id, **fields)


@pytest.fixture(params=DOORS)
def run(request):
    """Run a request at each door."""
    return lambda policy, asked: DOORS[request.param](policy, "run", asked)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def embedder():
    return Embedder()


@pytest.fixture
def memory(path, clock, embedder):
    # Vectors of queries are not kept, so that each search calls the embedder.
    with Memory(path, embedder=embedder, clock=clock, query_cache=0) as memory:
        memory.add(TEXT, user_id="alice")
        memory.add("Bob drives a blue car", user_id="bob")
        yield memory


def made(memory, *, limiter=None, breaker=None, **options):
    config = RetrievalConfig(**{"timeout": None, "min_score": 0.0, **options})
    return RetrievalPolicy(memory, config, limiter=limiter, breaker=breaker)


def contents(payload):
    return [each.content for each in payload.memories]


def is_block_less(payload):
    return (payload.memories, payload.prompt, payload.metadata.included_results) == ((), "", 0)


# Each row of the table by a real cause


def test_an_embedder_that_raises_leaves_a_hybrid_search_to_keywords(memory, embedder, run):
    embedder.error = OSError("no network")
    policy = made(memory)
    for _ in range(8):  # more than the threshold of the circuit breaker
        payload = run(policy, asked())
        assert payload.metadata.error is None
        assert payload.metadata.degraded
        assert not payload.metadata.from_cache
        assert contents(payload) == [TEXT]
    embedder.error = None
    payload = run(policy, asked())
    assert not payload.metadata.degraded
    assert not payload.metadata.from_cache


@pytest.mark.requirement("R308")
def test_of_memories_that_are_gone_no_earlier_payload_is_served(memory, embedder, monkeypatch, run):
    def act():
        embedder.act = None
        assert contents(policy.run(asked())) == [TEXT]  # an earlier one, that is kept
        monkeypatch.setattr(ChangeListeners, "notify", lambda *_: None)  # as by another process
        memory.delete_all(user_id="alice", permanent=True)

    embedder.act = act
    policy = made(memory)
    payload = run(policy, asked())
    assert payload.metadata.error == COLLECTION_NOT_FOUND
    assert is_block_less(payload)


@pytest.mark.requirement("R310", "C051")
@pytest.mark.parametrize("message", ["", " \n\t\u3000", "bike? " * 1000, "half \ud800", "nul \0"])
def test_an_invalid_message_takes_nothing_and_is_not_searched(memory, embedder, run, message):
    policy = made(memory, limiter=FixedWindow(1, 60), breaker=CircuitBreaker(1))
    for _ in range(3):
        payload = run(policy, asked(message))
        assert payload.metadata.error == INVALID_QUERY
        assert is_block_less(payload)
    assert embedder.queries == 0
    assert run(policy, asked()).metadata.error is None


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (lambda: "Which bike?", InvalidArgumentError),
        (lambda: asked(filters={"no such field": 1}), FilterError),
    ],
)
def test_errors_of_the_program_are_raised(memory, run, request_, error):
    policy = made(memory, breaker=CircuitBreaker(1))
    with pytest.raises(error):
        run(policy, request_())
    assert policy.stats().circuit == "closed"


def test_a_missing_licence_is_raised_and_a_kept_payload_is_no_way_around_it(path, run):
    class Licence:
        quota, is_valid = None, True

        def require(self, *needs):
            if not self.is_valid:
                DocumentedLicenses(LicenseTier.CORE).require(*needs)

    licence = Licence()
    with Memory(path, embedder=Embedder(), license=licence) as memory:
        memory.add(TEXT, user_id="alice")
        policy = made(memory)
        assert contents(run(policy, asked())) == [TEXT]
        licence.is_valid = False
        with pytest.raises(LicenseRestrictionError):
            run(policy, asked())
        assert policy.stats().circuit == "closed"


@pytest.mark.requirement("C150")
def test_an_unforeseen_error_is_unavailable_and_logged_by_its_kind_alone(
    memory, run, monkeypatch, caplog
):
    def broken(*_):
        raise ZeroDivisionError("secret text of a memory")

    monkeypatch.setattr(Retriever, "retrieve", broken)
    with caplog.at_level(logging.DEBUG, "mnemic"):
        payload = run(made(memory), asked())
    assert payload.metadata.error == UNAVAILABLE
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.levelno == logging.ERROR
    assert "ZeroDivisionError at test_guard.py" in record.getMessage()
    assert "secret" not in caplog.text


def test_a_failing_limiter_is_unavailable_and_no_failure_of_the_back_end(memory, run):
    class Broken:
        def acquire(self, _user):
            raise OSError("no connection")

    policy = made(memory, limiter=Broken(), breaker=CircuitBreaker(1))
    payload = run(policy, asked())
    assert payload.metadata.error == UNAVAILABLE
    assert policy.stats().circuit == "closed"


# The circuit breaker


@pytest.mark.requirement("T087")
def test_the_breaker_opens_after_the_threshold_and_then_the_back_end_is_not_called(
    memory, embedder, run
):
    timer = Timer()
    breaker = CircuitBreaker(3, 30, clock=timer)
    policy = made(memory, breaker=breaker, search_type="semantic", cache_ttl=0)
    embedder.error = OSError("no network")
    for calls in (1, 2, 3, 3, 3):
        payload = run(policy, asked())
        assert payload.metadata.error == UNAVAILABLE
        assert is_block_less(payload)
        assert embedder.queries == calls
    timer.now += 30
    assert run(policy, asked()).metadata.error == UNAVAILABLE
    assert (embedder.queries, breaker.state) == (4, "open")
    embedder.error = None
    timer.now += 30
    assert contents(run(policy, asked())) == [TEXT]
    assert breaker.state == "closed"


@pytest.mark.requirement("T087", "R324")
def test_timeouts_open_the_breaker(memory, embedder, run):
    embedder.delay = 0.1
    policy = made(memory, breaker=CircuitBreaker(2, 30), timeout=0.02)
    codes = [run(policy, asked()).metadata.error.code for _ in range(4)]
    assert codes == ["TIMEOUT", "TIMEOUT", "ZEP_UNAVAILABLE", "ZEP_UNAVAILABLE"]
    assert embedder.queries <= 2


def test_runs_without_a_search_neither_close_the_breaker_nor_reset_its_count(memory, embedder, run):
    timer = Timer()
    breaker = CircuitBreaker(2, 30, clock=timer)
    policy = made(memory, breaker=breaker, search_type="semantic")
    run(policy, asked())
    embedder.error = OSError("no network")
    for number in range(2):
        assert run(policy, asked(f"Question {number}?")).metadata.error == UNAVAILABLE
        if number == 0:
            assert run(policy, asked()).metadata.from_cache
            assert run(policy, asked(user_id="carol")).metadata.trigger.reason == "no_memories"
    assert breaker.state == "open"
    timer.now += 30
    assert run(policy, asked()).metadata.from_cache
    assert run(policy, asked(user_id="carol")).metadata.trigger.reason == "no_memories"
    assert breaker.state == "half_open"
    assert run(policy, asked("Another?")).metadata.error == UNAVAILABLE
    assert breaker.state == "open"


@pytest.mark.requirement("T087")
def test_the_answer_of_a_chat_succeeds_while_the_memory_is_down(memory, run):
    policy = made(memory)
    memory.close()

    def answer(message):
        block = run(policy, asked(message)).prompt
        return f"{block}You asked: {message}"

    for number in range(12):
        assert answer(f"Question {number}?") == f"You asked: Question {number}?"


def test_one_breaker_serves_several_policies(memory, embedder, run):
    breaker = CircuitBreaker(1)
    first, second = (made(memory, breaker=breaker, search_type="semantic") for _ in range(2))
    embedder.error = OSError("no network")
    run(first, asked())
    run(second, asked())
    assert embedder.queries == 1


# Payloads from the cache


@pytest.mark.requirement("R315")
@pytest.mark.parametrize(
    "other",
    [
        {"user_id": "bob"},
        {"user_id": None},
        {"message": "Which  bike?"},
        {"message": "which bike?"},
        {"project_id": "p"},
        {"filters": {"type": "fact"}},
    ],
)
def test_other_users_and_other_requests_are_searched(memory, run, other):
    for user in (None, "alice", "bob"):
        memory.scoped(project_id="p").add(f"A bike of {user}", user_id=user)
    policy = made(memory)
    first, second = run(policy, asked()), run(policy, asked(**other))
    assert not second.metadata.from_cache
    assert second.metadata.error is None
    user = other.get("user_id", "alice")
    assert f"A bike of {user}" in contents(second)
    if "user_id" in other:
        assert not {each.id for each in first.memories} & {each.id for each in second.memories}


@pytest.mark.parametrize("option", [{"same_session_only": True}, {"session_boost": 1.5}])
def test_where_sessions_matter_each_has_its_own_payload(memory, run, option):
    memory.add("A bike of Monday", user_id="alice", session_id="monday")
    policy = made(memory, **option)
    run(policy, asked())
    assert not run(policy, asked(session_id="tuesday")).metadata.from_cache
    assert run(policy, asked()).metadata.from_cache


def test_filters_in_another_order_are_the_same_request(memory, run):
    policy = made(memory)
    run(policy, asked(filters={"type": "fact", "importance": {"gte": 0.1}}))
    again = run(policy, asked(filters={"importance": {"gte": 0.1}, "type": "fact"}))
    assert again.metadata.from_cache


@pytest.mark.parametrize(
    ("options", "filters"),
    [
        ({"include_sensitive": True}, None),
        ({"cache_ttl": 0}, None),
        ({}, {"access_count": {"lte": 5}}),
    ],
)
def test_what_must_not_be_kept_is_not(memory, run, options, filters):
    policy = made(memory, **options)
    for _ in range(2):
        payload = run(policy, asked(filters=filters))
        assert (payload.metadata.from_cache, contents(payload)) == (False, [TEXT])


def the_memory(memory):
    (hit,) = memory.search("bike", user_id="alice", limit=1)
    return hit.entry.id


CHANGES = {
    "delete_all of all": lambda memory: memory.delete_all(all_users=True, permanent=True),
    "delete_many": lambda memory: memory.delete_many([the_memory(memory)], user_id="alice"),
    "update_many": lambda memory: memory.update_many(
        [the_memory(memory)], content="New", user_id="alice"
    ),
    "archive": lambda memory: memory.update(the_memory(memory), status="archived", user_id="alice"),
    "touch": lambda memory: memory.touch(
        [the_memory(memory)], expires_at=NOON + HOUR, user_id="alice"
    ),
    "supersede": lambda memory: memory.add(
        "A green bike", user_id="alice", supersedes=the_memory(memory)
    ),
    "awaited delete": lambda memory: asyncio.run(
        memory.aio.delete(the_memory(memory), user_id="alice")
    ),
}


@pytest.mark.requirement("R315", "T087")
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_was_changed_through_this_process_is_not_served_again(memory, run, change):
    limited = made(memory, limiter=FixedWindow(1, 60))
    free = made(memory)
    for policy in (limited, free):
        assert contents(run(policy, asked())) == [TEXT]
    change(memory)
    payload = run(limited, asked())
    assert payload.metadata.error == RATE_LIMITED
    assert is_block_less(payload)
    assert not run(free, asked()).metadata.from_cache


def test_purging_expired_memories_drops_what_shows_them(memory, clock, run):
    memory.add(MemoryEntry("A bike for rent", expires_at=NOON + SECOND), user_id="alice")
    policy = made(memory, limiter=FixedWindow(1, 60))
    assert "A bike for rent" in contents(run(policy, asked()))
    clock.now = NOON + 2 * SECOND
    assert memory.purge(user_id="alice", expired=True)
    clock.now = NOON
    assert is_block_less(run(policy, asked()))


def test_another_memory_of_this_process_on_the_same_file_is_heard(memory, path, run):
    policy = made(memory, limiter=FixedWindow(1, 60))
    run(policy, asked())
    with Memory(path, embedder=WordEmbedder()) as other:
        other.delete_all(user_id="alice", permanent=True)
    payload = run(policy, asked())
    assert payload.metadata.error == RATE_LIMITED
    assert is_block_less(payload)


def test_a_change_of_another_process_is_seen_by_a_run_that_reaches_the_store(
    memory, monkeypatch, run
):
    policy = made(memory)
    run(policy, asked())
    monkeypatch.setattr(ChangeListeners, "notify", lambda *_: None)
    memory.update(the_memory(memory), content="Alice sold the bike", user_id="alice")
    payload = run(policy, asked())
    assert (payload.metadata.from_cache, contents(payload)) == (False, ["Alice sold the bike"])


def test_a_change_during_the_search_keeps_its_payload_out(memory, embedder, run):
    policy = made(memory, limiter=FixedWindow(1, 60))

    def change():
        embedder.act = None
        memory.add("Another bike", user_id="alice")

    embedder.act = change
    assert TEXT in contents(run(policy, asked()))
    assert is_block_less(run(policy, asked()))


def test_a_dropped_policy_is_not_kept_by_its_memory(memory):
    policy = made(memory)
    policy.run(asked())
    cache = weakref.ref(policy._guard._cache)
    del policy
    gc.collect()
    assert cache() is None


def test_both_doors_share_cache_limiter_breaker_and_statistics(memory):
    policy = made(memory, limiter=FixedWindow(2, 60))
    policy.run(asked())
    assert asyncio.run(policy.aio.run(asked())).metadata.from_cache
    assert policy.run(asked()).metadata.error == RATE_LIMITED
    assert asyncio.run(policy.aio.stats()) == policy.stats()
    assert policy.stats().runs == 3


# The trigger


@pytest.mark.requirement("R282", "C049")
def test_the_trigger_tells_of_the_rate_limit_and_takes_nothing_from_it(memory):
    policy = made(memory, limiter=FixedWindow(1, 60))
    for _ in range(3):
        assert policy.trigger(asked()).reason == "met"
    policy.run(asked())
    memory.close()  # the store is not looked at
    assert policy.trigger(asked()).reason == "rate_limited"


def test_requests_that_are_not_triggered_take_nothing_and_do_not_count(memory, run):
    policy = made(memory, limiter=FixedWindow(1, 60))
    for request in (asked(use_memory=False), asked(session_id=None)):
        assert not run(policy, request).metadata.trigger
    assert policy.stats().runs == 0
    assert run(policy, asked()).metadata.error is None


# Cancellation


class Hanging:
    """Answers queries when it is told to."""

    model, dimensions, max_tokens, similarity_floor = "hanging", 64, None, None

    def __init__(self):
        self.hangs = False
        self.words = WordEmbedder()
        self.started = threading.Event()  # it is awaited in a loop of its own

    async def embed(self, texts):
        if self.hangs:
            self.started.set()
            await asyncio.Event().wait()
        return self.words.embed(texts)


def test_a_cancelled_run_changes_neither_breaker_nor_cache_nor_counts(path):
    async def scenario():
        embedder, timer = Hanging(), Timer()
        async with _opened(path, embedder) as memory:
            await memory.add(TEXT, user_id="alice")
            breaker = CircuitBreaker(1, 30, clock=timer)
            policy = made(memory, breaker=breaker).aio
            breaker.admit().failed()
            timer.now += 30
            embedder.hangs = True
            running = asyncio.create_task(policy.run(asked()))
            await asyncio.to_thread(embedder.started.wait, 30)
            assert (breaker.state, breaker.admit()) == ("half_open", None)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            assert breaker.state == "half_open"
            assert (await policy.stats()).runs == 0
            guard = policy._guard
            assert (len(guard._cache), guard._cache._computing) == (0, {})
            embedder.hangs = False
            assert contents(await policy.run(asked())) == [TEXT]  # the probe was given back
            assert breaker.state == "closed"

    asyncio.run(scenario())


def _opened(path, embedder):
    return AsyncMemory(path, embedder=embedder, query_cache=0)


def test_the_deadline_reaches_an_awaited_embedder(path):
    async def scenario():
        embedder = Hanging()
        async with _opened(path, embedder) as memory:
            await memory.add(TEXT, user_id="alice")
            embedder.hangs = True
            payload = await made(memory, timeout=0.1).aio.run(asked())
            assert payload.metadata.error == timed_out(0.1)

    asyncio.run(scenario())


# Threads


def test_no_thread_gets_what_was_deleted_before_it_asked(memory):
    policy = made(memory, limiter=FixedWindow(10_000, 60))
    deleted = set()
    wrong = []

    def change():
        for number in range(25):
            known = memory.add(f"Bike number {number}", user_id="alice")
            policy.run(asked())
            memory.delete(known.id, user_id="alice")
            deleted.add(known.content)

    def ask():
        for _ in range(60):
            gone = set(deleted)
            wrong.extend(gone & set(contents(policy.run(asked()))))

    run_together(change, ask, ask)
    assert wrong == []
