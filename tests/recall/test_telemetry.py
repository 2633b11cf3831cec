"""Log lines and metrics of recall."""

import logging

import pytest

from tests.support.clock import DAY, NOON
from tests.support.metrics import measuring
from tests.support.recall import MODES, mine, opened, run

INFO = "mnemic.recall"


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
def test_recalls_are_measured_by_mode(monkeypatch):
    measured = measuring(monkeypatch, "Agents.Memory.Retriever.")

    async def scenario(memory, retriever):
        one = mine("dark mode")
        await memory.store_batch([one, mine("light mode")])
        for mode in ("relevant", "recent", "recent", "important", "frequent"):
            await retriever.recall("mode", user_id="u", mode=mode)
        await retriever.recall_temporal(one.created_at, one.created_at, user_id="u")
        await retriever.recall_linked(one.id, user_id="u")
        await retriever.find_contradictions("dark", "u")

    run(scenario)
    latencies = measured.pop(("Latency", "aide"))
    assert len(latencies) == 8
    assert all(0 < each < 60_000 for each in latencies)
    assert measured.pop(("ResultCount", "aide")) == [2, 2, 2, 2, 2, 2, 0, 0]
    modes = ("Relevant", "Recent", "Important", "Frequent", "Temporal", "Linked", "Contradictions")
    assert measured == {
        ("Queries", "aide", mode): [1] * (2 if mode == "Recent" else 1) for mode in modes
    }


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
