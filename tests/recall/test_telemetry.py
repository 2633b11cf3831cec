"""Log lines and metrics of recall."""

import logging

import pytest

from mnemic.observability import table
from tests.support.clock import DAY, NOON
from tests.support.metrics import MNEMIC, OTEL
from tests.support.metrics import run as run_program
from tests.support.recall import MODES, mine, opened, run

INFO = "mnemic.recall"

METRIC_NAMES = ("Queries", "Latency", "ResultCount")
METRICS = """
import asyncio
from mnemic.recall import AsyncMemoryRetriever

async def use():
    async with AsyncLongTermMemory(
        ":memory:", agent_id="aide", embedder=WordEmbedder()
    ) as memory:
        one = entry("dark mode")
        await memory.store_batch([one, entry("light mode")])
        retriever = AsyncMemoryRetriever(memory)
        for mode in ("relevant", "recent", "recent", "important", "frequent"):
            await retriever.recall("mode", user_id=None, mode=mode)
        await retriever.recall_temporal(one.created_at, one.created_at, user_id=None)
        await retriever.recall_linked(one.id, user_id=None)
        await retriever.find_contradictions("dark", None)
        return points()

show(asyncio.run(use()))
"""


@pytest.mark.requirement("C079", "C028", "C199")
@pytest.mark.parametrize("log_content", [True, False])
@pytest.mark.parametrize("log_queries", [True, False])
def test_queries_are_logged_only_where_memory_and_retriever_allow_it(
    caplog, log_content, log_queries
):
    caplog.set_level(logging.DEBUG)

    async def scenario(memory, retriever):
        await memory.store(mine("one"))
        for mode in MODES:
            await retriever.recall("a secret question", user_id="u", mode=mode)
        await retriever.recall_temporal(NOON, NOON, "a secret topic", user_id="u")
        await retriever.find_contradictions("a secret statement", "u")

    run(scenario, log_queries=log_queries, log_content=log_content)
    shows = log_queries and log_content
    assert ("secret question" in caplog.text) == shows
    if not shows:
        assert "secret" not in caplog.text
        assert "for query '<17 characters>' in " in caplog.text


@pytest.mark.requirement("C079")
def test_the_front_door_logs_no_query_unless_the_memory_shows_contents(caplog):
    caplog.set_level(logging.DEBUG)
    for shows in (False, True):
        with opened(log_content=shows) as memory:
            memory.recall("a secret question", mode="recent")
        assert ("secret" in caplog.text) == shows


def told(caplog):
    return [each.message for each in caplog.records if each.name == INFO]


@pytest.mark.requirement("R263", "R264", "R265")
def test_recalls_are_measured_by_mode():
    (measured,), logged = run_program(OTEL, "use_provider()", MNEMIC, METRICS)
    assert logged == ""
    assert table.METRICS.keys() >= {f"Agents.Memory.Retriever.{name}" for name in METRIC_NAMES}
    prefix = "agents.memory.retriever."  # OpenTelemetry's own SDK writes all names in lower case
    queries = {
        point["attributes"]["mode"]: point["value"]
        for point in measured[prefix + "queries"]["points"]
    }
    assert queries.items() >= {
        "Relevant": 1, "Recent": 2, "Important": 1, "Frequent": 1, "Temporal": 1, "Linked": 1,
    }.items()  # fmt: skip
    total = sum(queries.values())
    assert total == 8
    (latency,) = measured[prefix + "latency"]["points"]
    assert (latency["count"], measured[prefix + "latency"]["unit"]) == (total, "ms")
    assert latency["min"] > 0
    (found,) = measured[prefix + "resultcount"]["points"]
    assert (found["count"], found["min"], found["max"]) == (total, 0, 2)


@pytest.mark.requirement("R266")
@pytest.mark.parametrize("mode", ["Relevant", "Recent", "Important", "Frequent"])
def test_a_recall_is_logged_with_the_first_fifty_characters(caplog, mode):
    caplog.set_level(logging.INFO)
    query = "0123456789" * 6

    async def scenario(memory, retriever):
        await memory.store_batch([mine("a"), mine("b")])
        caplog.clear()
        await retriever.recall(query, user_id="u", mode=mode.lower())

    run(scenario, log_content=True)
    (line,) = told(caplog)
    start = f"[MEM:RETRIEVE] Recalled 2 memories in {mode} mode for query '{query[:50]}' in "
    assert line.startswith(start)
    assert line.endswith("ms")
    assert 0 <= float(line.removeprefix(start).removesuffix("ms")) < 60_000
    assert [each.levelno for each in caplog.records if each.name == INFO] == [logging.INFO]


@pytest.mark.requirement("R267")
def test_a_temporal_recall_is_logged_with_its_range(caplog):
    caplog.set_level(logging.INFO)

    async def scenario(memory, retriever):
        await memory.store(mine("a"))
        caplog.clear()
        await retriever.recall_temporal(NOON - DAY, NOON, user_id="u")

    run(scenario)
    (line,) = told(caplog)
    times = "from 2026-04-30T12:00:00+00:00 to 2026-05-01T12:00:00+00:00"
    assert line == f"[MEM:RETRIEVE] Temporal recall found 1 memories {times}"
    assert [each.levelno for each in caplog.records if each.name == INFO] == [logging.INFO]
