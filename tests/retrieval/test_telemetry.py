"""The requirements of the retrieval service's events, logs and metrics."""

import logging
import re
from datetime import timedelta

import pytest

from mnemic.compat import ContextWindow
from mnemic.model import MemoryQuery
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from tests.support.clock import NOON, clock_of
from tests.support.metrics import measuring
from tests.support.retrieval import QUERY, AskingFirst, found, heard_by, serve, served, three_near

LOGGER = "mnemic.retrieval"


def told(caplog, level):
    """Return what retrieval logged at a level."""
    return [
        one.getMessage() for one in caplog.records if one.name == LOGGER and one.levelno == level
    ]


@pytest.mark.requirement("R177", "C006")
@served(memory={"log_content": True})
async def test_a_retrieval_tells_its_event(memory, service):
    heard = heard_by(memory)
    await three_near(memory)
    limited = MemoryQuery(query="query", limit=2)
    first = await service.retrieve(limited)
    clock_of(memory).now += timedelta(seconds=1)
    second = await service.retrieve(limited)
    assert heard == [
        MemoryRetrievalCompletedEvent(
            agent_id="aide",
            query="query",
            result_count=2,
            total_matches=3,
            from_cache=is_known,
            retrieval_time=result.retrieval_time,
            timestamp=NOON + timedelta(seconds=number),
        )
        for number, (is_known, result) in enumerate([(False, first), (True, second)])
    ]
    assert heard[0].retrieval_time != heard[1].retrieval_time


@pytest.mark.requirement("R177")
@served(memory={"log_content": True})
async def test_a_retrieval_by_filters_tells_of_an_empty_query(memory, service):
    heard = heard_by(memory)
    result = await service.retrieve(MemoryQuery.filtered({}))
    assert [event.query for event in heard] == [""]
    assert result.original_query == ""


@pytest.mark.requirement("R178", "C018")
@served(memory={"log_content": True})
async def test_an_augmentation_tells_its_event(memory, service):
    heard = heard_by(memory)
    await three_near(memory)
    window = ContextWindow(1000)
    assert await service.retrieve_to_context(QUERY, window) == 3
    assert heard[1:] == [
        ContextAugmentedEvent(
            agent_id="aide",
            query="query",
            items_added=3,
            tokens_added=window.current_tokens,
            timestamp=NOON,
        )
    ]
    assert window.current_tokens == sum(item.token_count for item in window.items()) > 0
    await service.retrieve_to_context(MemoryQuery.filtered({}), ContextWindow(1000))
    assert heard[-1].query == "[filter-only]"


@pytest.mark.requirement("R179")
@served(memory={"log_content": True}, expander=AskingFirst("more", "words", confidence=0.75))
async def test_an_expansion_tells_its_event(memory, service):
    heard = heard_by(memory)
    await service.expand_query("query")
    assert heard == [
        QueryExpandedEvent(
            agent_id="aide",
            original_query="query",
            expanded_query="query more words",
            terms_added=2,
            confidence=0.75,
            timestamp=NOON,
        )
    ]


@pytest.mark.requirement("R195", "R196", "R197", "R198", "R199")
def test_log_lines_are_those_of_the_document(caplog):
    caplog.set_level(logging.DEBUG, LOGGER)

    async def scenario(memory, service):
        assert told(caplog, logging.INFO) == ["Memory retrieval service initialized for agent aide"]
        await three_near(memory)
        caplog.clear()
        limited = MemoryQuery(query="query", limit=2)
        await service.retrieve(limited)
        await service.retrieve(limited)
        first, hit, second = told(caplog, logging.DEBUG)
        pattern = r"Retrieved 2/3 memories for query 'query' in \d+(\.\d+)?ms"
        assert re.fullmatch(pattern, first)
        assert hit == "Cache hit for retrieval query, returning cached results"
        assert re.fullmatch(pattern, second)
        caplog.clear()
        window = ContextWindow(1000)
        await service.retrieve_to_context(limited, window)
        tokens = window.current_tokens
        assert told(caplog, logging.DEBUG)[-1] == (
            f"Augmented context with 2 retrieved memories ({tokens} tokens)"
        )
        caplog.clear()
        await service.expand_query("query")
        assert told(caplog, logging.DEBUG) == ["Expanded query 'query' to 'query a b' (+2 terms)"]
        assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []

    serve(scenario, memory={"log_content": True}, expander=AskingFirst("a", "b"))


@pytest.mark.requirement("R195")
def test_a_long_query_is_cut_to_50_characters_in_log_lines(caplog):
    caplog.set_level(logging.DEBUG, LOGGER)

    async def scenario(_, service):
        await service.retrieve(MemoryQuery(query="x" * 50))
        await service.retrieve(MemoryQuery(query="y" * 51))
        lines = caplog.text
        assert f"'{'x' * 50}'" in lines
        assert f"'{'y' * 50}...'" in lines
        assert "y" * 51 not in lines

    serve(scenario, memory={"log_content": True})


@pytest.mark.requirement("R200")
@served(memory={"log_content": True})
async def test_an_answer_without_results_is_warned_of(service, caplog):
    await service.retrieve(QUERY)
    assert told(caplog, logging.WARNING) == ["Retrieval returned no results for query 'query'"]


@pytest.mark.requirement("R201", "C023")
@served(expander=AskingFirst("words", confidence=0.49))
async def test_an_unsure_expansion_is_warned_of_and_not_used(memory, service, caplog):
    await three_near(memory)
    heard = heard_by(memory)
    expansion = await service.expand_query("query")
    assert (expansion.original, expansion.expanded) == ("query", "query")
    assert expansion.added_terms == ()
    assert expansion.confidence == 0.49
    result = await service.retrieve(MemoryQuery(query="query", expand_query=True))
    assert result.expanded_query is None
    assert found(result) == ["nearest", "middle", "farthest"]
    assert "query words" not in memory.embedder.texts
    assert told(caplog, logging.WARNING) == 2 * [
        "Query expansion confidence low (0.49), using original query"
    ]
    events = [event for event in heard if isinstance(event, QueryExpandedEvent)]
    assert [event.confidence for event in events] == [0.49, 0.49]
    assert (await service.get_stats()).expansion_usage_rate == 0


@pytest.mark.requirement("R202", "R203", "R204", "R205", "R206")
def test_metrics_have_their_names_and_count(monkeypatch):
    measured = measuring(monkeypatch, "agents.memory.retrieval.")

    async def scenario(memory, service):
        await three_near(memory)
        for _ in range(3):
            await service.retrieve(QUERY)
        await service.retrieve_to_context(QUERY, ContextWindow(1000), include_sensitive=True)

    serve(scenario)
    latencies = measured.pop(("latency_ms", "aide"))
    assert len(latencies) == 4
    assert all(0 < each < 60_000 for each in latencies)
    assert measured == {
        ("total", "aide"): [1, 1, 1, 1],
        ("cache_hits", "aide"): [1, 1, 1],
        ("results", "aide"): [3, 3, 3, 3],
        ("augmentations", "aide"): [1],
    }
