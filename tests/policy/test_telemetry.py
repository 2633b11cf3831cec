"""What is measured, published, logged and counted of a policy's runs."""

import asyncio
import json
import logging

import pytest

from mnemic import Memory
from mnemic.events import (
    CircuitChangedEvent,
    RetrievalPolicyCompletedEvent,
    RetrievalPolicyFailedEvent,
)
from mnemic.policy import (
    CircuitBreaker,
    FixedWindow,
    RetrievalConfig,
    RetrievalPolicy,
    RetrievalRequest,
)
from tests.policy.test_breaker import Timer
from tests.support.clock import NOON, SECOND, Clock
from tests.support.metrics import measuring

KINDS = (RetrievalPolicyCompletedEvent, RetrievalPolicyFailedEvent, CircuitChangedEvent)
BY_KEYWORDS = RetrievalConfig(search_type="keyword", min_score=0.0, timeout=None)


def asked(message="Which bike?", user_id="alice"):
    return RetrievalRequest(message, user_id=user_id, session_id="s")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=[False, True])
def memory(request, clock):
    with Memory(
        ":memory:", "aide", embedder=None, clock=clock, log_content=request.param
    ) as memory:
        memory.shows = request.param
        for text in ("A red bike", "A RED BIKE", "a red bike.", "The blue bike is hers"):
            memory.add(text, user_id="alice")
        yield memory


def listened(memory):
    heard = []
    for kind in KINDS:
        memory.events.subscribe(kind, heard.append)
    return heard


def test_a_completed_run_is_published(memory, clock):
    heard = listened(memory)
    policy = RetrievalPolicy(memory, BY_KEYWORDS, clock=Timer())
    payload = policy.run(asked())
    clock.now += SECOND
    asyncio.run(policy.aio.run(asked()))
    same = {
        "agent_id": "aide",
        "query": "Which bike?" if memory.shows else None,
        "result_count": 2,
        "tokens_used": payload.metadata.total_tokens,
        "degraded": False,
        "latency_ms": 0.0,
    }
    assert heard == [
        RetrievalPolicyCompletedEvent(**same, dedup_ratio=50, from_cache=False, timestamp=NOON),
        RetrievalPolicyCompletedEvent(
            **same, dedup_ratio=None, from_cache=True, timestamp=NOON + SECOND
        ),
    ]
    assert payload.metadata.total_tokens > 0


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("Which bike?", {"code": "RATE_LIMITED", "fallback": "cache", "age": 1.0}),
        ("Which car?", {"code": "RATE_LIMITED", "fallback": "skip", "age": None}),
        (" ", {"code": "INVALID_QUERY", "fallback": "skip", "age": None}),
        ("half \ud800 a pair", {"code": "INVALID_QUERY", "fallback": "skip", "age": None}),
    ],
)
def test_a_failed_run_is_published_with_code_and_the_fallback_that_was_taken(
    memory, clock, message, told
):
    policy = RetrievalPolicy(memory, BY_KEYWORDS, limiter=FixedWindow(1, 60), clock=Timer())
    policy.run(asked())
    heard = listened(memory)
    clock.now += SECOND
    policy.run(asked(message))
    (event,) = heard
    shown = message.replace("\ud800", "?") if memory.shows else None
    assert event == RetrievalPolicyFailedEvent(
        agent_id="aide",
        query=shown,
        **told,
        latency_ms=0.0,
        timestamp=NOON + SECOND,
    )


def test_changes_of_the_circuit_are_published_after_the_run_that_made_them(memory, monkeypatch):
    def gone(*_):
        raise OSError("gone")

    heard = listened(memory)
    timer = Timer()
    policy = RetrievalPolicy(memory, BY_KEYWORDS, breaker=CircuitBreaker(1, 30, clock=timer))
    with monkeypatch.context() as patched:
        patched.setattr(memory.repository.freshness, "position_and_revision", gone)
        policy.run(asked())
    timer.now += 30
    policy.run(asked())
    changes = [(event.before, event.after) for event in heard if type(event) is CircuitChangedEvent]
    assert changes == [("closed", "open"), ("open", "half_open"), ("half_open", "closed")]
    assert [type(event) for event in heard[:2]] == [RetrievalPolicyFailedEvent, CircuitChangedEvent]


def test_runs_that_are_not_triggered_are_neither_published_nor_counted(memory):
    heard = listened(memory)
    policy = RetrievalPolicy(memory, BY_KEYWORDS)
    policy.run(asked(user_id="carol"))
    policy.run(RetrievalRequest("Which bike?", "alice", None))
    assert heard == []
    assert policy.stats().runs == 0


def test_log_lines_show_messages_only_if_permitted(memory, caplog):
    with caplog.at_level(logging.DEBUG, "mnemic.policy"):
        RetrievalPolicy(memory, BY_KEYWORDS, limiter=FixedWindow(1, 60)).run(asked())
    (line,) = [record.getMessage() for record in caplog.records]
    shown = "Which bike?" if memory.shows else "<11 characters>"
    assert line.startswith("Retrieved 2 memories of ")
    assert f" tokens for '{shown}' in " in line


@pytest.mark.requirement("R316", "R317", "R318", "R319", "R320", "C058")
def test_statistics_are_means_and_percentages_over_the_triggered_runs(memory):
    timer = Timer()
    policy = RetrievalPolicy(memory, BY_KEYWORDS, limiter=FixedWindow(3, 60), clock=timer)
    empty = policy.stats()
    assert (empty.runs, empty.cache_hit_rate, empty.dedup_ratio, empty.errors) == (0, 0, 0, {})
    tokens = policy.run(asked()).metadata.total_tokens  # 4 candidates, 2 duplicates
    policy.run(asked())
    policy.run(asked("Hers?"))  # 1 candidate
    policy.run(asked("Which car?"))  # limited, without an earlier payload
    stats = policy.stats()
    assert (stats.runs, stats.from_cache, stats.cache_hit_rate) == (4, 1, 25)
    assert stats.errors == {"RATE_LIMITED": 1}
    assert stats.dedup_ratio == pytest.approx(100 * 2 / 5)
    assert stats.average_results == pytest.approx((2 + 2 + 1 + 0) / 4)
    assert stats.average_tokens > 2 * tokens / 4
    assert (stats.average_latency_ms, stats.circuit) == (0, "closed")
    assert json.loads(stats.to_json())["errors"] == {"RATE_LIMITED": 1}


@pytest.mark.requirement("R316", "R317", "R318", "R319", "R320", "C058")
def test_each_documented_metric_is_measured_by_the_agent_alone(memory, monkeypatch):
    measured = measuring(monkeypatch, "retrieval.")
    policy = RetrievalPolicy(memory, BY_KEYWORDS, limiter=FixedWindow(3, 60))
    messages = "bike?", "bike?", "hers?", "car?"  # the last one is limited
    tokens = [policy.run(asked(message)).metadata.total_tokens for message in messages]
    policy.run(asked("bike?", user_id="nobody"))
    latencies = measured.pop(("latency_ms", "aide"))
    assert len(latencies) == 4
    assert all(0 < each < 60_000 for each in latencies)
    assert measured == {
        ("results_count", "aide"): [2, 2, 1, 0],
        ("tokens_used", "aide"): tokens,
        ("dedup_ratio", "aide"): [50, 0],
        ("cache_hit_rate", "aide"): [0, 100, 0, 0],
    }
