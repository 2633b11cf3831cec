import asyncio
import contextvars
import logging
from datetime import timedelta

import pytest

from mnemic.errors import DuplicateEntryError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.memory import Memory
from mnemic.model import MemoryEntryUpdate, MemoryType, Ranking
from mnemic.observability.events import (
    MemoryForgottenEvent,
    MemoryQuotaWarningEvent,
    MemoryRetrievedEvent,
    MemorySearchCompletedEvent,
    MemoryStoredEvent,
    MemoryUpdatedEvent,
)
from mnemic.observability.telemetry import shortened
from tests.support import doors, entries
from tests.support.clock import NOON, Clock
from tests.support.doors import with_memory
from tests.support.embedders import WordEmbedder

KINDS = (
    MemoryStoredEvent,
    MemoryRetrievedEvent,
    MemoryUpdatedEvent,
    MemoryForgottenEvent,
    MemorySearchCompletedEvent,
    MemoryQuotaWarningEvent,
)


def entry(content="dark mode ø", **fields):
    return entries.entry(content, **fields)


def run(scenario, **options):
    return doors.run(scenario, **{"clock": Clock(), **options})


def listened_to(memory):
    heard = []
    for kind in KINDS:
        memory.events.subscribe(kind, heard.append)
    return heard


@pytest.mark.requirement("R071", "R072", "R073", "R074", "C098", "C099")
@with_memory(clock=Clock())
async def test_every_operation_tells_what_it_did(memory):
    heard = listened_to(memory)
    one = entry(type=MemoryType.PREFERENCE, importance=0.9)
    await memory.store(one)
    await memory.retrieve(one.id)
    await memory.update(one.id, MemoryEntryUpdate(importance=0.1))
    await memory.search_semantic("dark", min_similarity=0)
    await memory.forget(one.id)
    await memory.forget(one.id, permanent=True)
    stored, retrieved, updated, searched, forgotten, deleted = heard
    assert (stored.agent_id, stored.entry_id, stored.type, stored.importance) == (
        "aide",
        one.id,
        MemoryType.PREFERENCE,
        0.9,
    )
    assert (stored.content_length, stored.was_encrypted, stored.timestamp) == (11, False, NOON)
    assert stored.embedding_time > timedelta()
    assert isinstance(retrieved, MemoryRetrievedEvent)
    assert (updated.entry_id, updated.content_changed) == (one.id, False)
    assert (searched.query, searched.result_count) == (None, 1)
    assert searched.search_time > timedelta()
    assert [event.permanent for event in (forgotten, deleted)] == [False, True]


@with_memory(clock=Clock())
async def test_what_did_not_happen_is_not_told(memory):
    heard = listened_to(memory)
    one = entry()
    await memory.store_batch([])
    await memory.retrieve(one.id)
    await memory.forget(one.id)
    await memory.update(one.id, MemoryEntryUpdate(importance=1.0))
    assert heard == []
    await memory.store(one)
    with pytest.raises(DuplicateEntryError):
        await memory.store(one)
    assert [type(event) for event in heard] == [MemoryStoredEvent]


@pytest.mark.requirement("C095")
@with_memory(clock=Clock())
async def test_a_batch_tells_of_each_entry_and_a_given_vector_takes_no_time(memory):
    heard = listened_to(memory)
    vector = memory.embedder.embed(["given"])[0]
    entries = [entry(), entry("given").with_embedding(vector, "words")]
    await memory.store_batch(entries)
    assert [event.entry_id for event in heard] == [one.id for one in entries]
    assert [event.embedding_time > timedelta() for event in heard] == [True, False]


@pytest.mark.requirement("C028")
def test_queries_are_told_only_where_that_is_allowed():
    async def scenario(memory):
        heard = listened_to(memory)
        await memory.search_semantic("a secret wish", min_similarity=0)
        return heard[0].query

    assert run(scenario) is None
    assert run(scenario, log_content=True) == "a secret wish"


def test_a_failing_listener_is_logged_and_stops_nobody(caplog):
    async def scenario(memory):
        heard = []

        def failing(_event):
            raise RuntimeError("no")

        async def failing_later(_event):
            await asyncio.sleep(0)
            raise RuntimeError("neither")

        for listener in (failing, failing_later, heard.append):
            memory.events.subscribe(MemoryStoredEvent, listener)
        await memory.store(entry())
        assert len(heard) == 1

    run(scenario)
    failures = [record for record in caplog.records if record.name == "mnemic.observability.events"]
    assert len(failures) == 2
    assert "MemoryStoredEvent failed: RuntimeError at test_events.py:" in failures[0].message
    assert all(failure.exc_info is None for failure in failures), "it may quote a memory"


@with_memory(clock=Clock())
async def test_who_unsubscribes_hears_nothing_more(memory):
    heard = []
    unsubscribe = memory.events.subscribe(MemoryStoredEvent, heard.append)
    await memory.store(entry())
    unsubscribe()
    unsubscribe()
    await memory.store(entry())
    assert len(heard) == 1


@pytest.mark.parametrize("inside_a_loop", [False, True])
def test_coroutine_listeners_work_at_the_front_door_too(inside_a_loop):
    heard, word = [], contextvars.ContextVar("word", default=None)

    async def listener(event):
        await asyncio.sleep(0)
        heard.append((event.content_length, word.get()))

    def scenario():
        word.set("kept")
        with Memory(":memory:", embedder=WordEmbedder()) as memory:
            memory.events.subscribe(MemoryStoredEvent, listener)
            memory.add("four")

    async def in_a_loop():
        scenario()

    asyncio.run(in_a_loop()) if inside_a_loop else contextvars.copy_context().run(scenario)
    assert heard == [(4, "kept")]


@pytest.mark.requirement("R075", "C086")
def test_a_quota_warning_comes_once_for_each_step_until_usage_falls(monkeypatch):
    monkeypatch.setattr(DocumentedLicenses, "storage_limit", property(lambda _: 100))

    async def scenario(memory):
        heard = []
        memory.events.subscribe(MemoryQuotaWarningEvent, heard.append)

        def percents():
            told = [event.percent_used for event in heard]
            heard.clear()
            return told

        filling = entry("x" * 79)
        await memory.store(filling)
        assert percents() == []
        await memory.store(entry("x"))
        assert percents() == [80]
        await memory.store(entry("y"))
        assert percents() == [], "told already"
        last = entry("z" * 14)
        await memory.store(last)
        assert percents() == [95], "the highest step alone"
        await memory.forget(last.id, permanent=True)
        await memory.update(filling.id, MemoryEntryUpdate(content="x" * 80))
        assert percents() == [], "82 % was told before"
        await memory.update(filling.id, MemoryEntryUpdate(content="x"))
        await memory.update(filling.id, MemoryEntryUpdate(content="x" * 85))
        assert percents() == [87]

    run(scenario, license=DocumentedLicenses(LicenseTier.TEAMS))


@pytest.mark.requirement("C086")
@pytest.mark.parametrize("how", ["forget", "delete_all", "purge_expired"])
def test_a_quota_warning_comes_again_after_deletions_made_space(how, monkeypatch):
    monkeypatch.setattr(DocumentedLicenses, "storage_limit", property(lambda _: 100))
    clock = Clock()

    async def delete(memory, one):
        if how == "forget":
            await memory.forget(one.id, permanent=True)
        elif how == "delete_all":
            await memory.delete_all(user_id=None, permanent=True)
        else:
            await memory.forget(one.id)
            clock.now += timedelta(days=91)
            await memory.purge_expired()

    async def scenario(memory):
        heard = []
        memory.events.subscribe(MemoryQuotaWarningEvent, heard.append)
        one = entry("x" * 91)
        await memory.store(one)
        await delete(memory, one)
        assert [event.percent_used for event in heard] == [91], "making space is no news"
        await memory.store(entry("y" * 82))
        assert [event.percent_used for event in heard] == [91, 82]

    run(scenario, license=DocumentedLicenses(LicenseTier.TEAMS), clock=clock)


def test_each_search_is_told_as_what_it_is(caplog):
    caplog.set_level(logging.DEBUG, "mnemic.observability.telemetry")
    heard = []
    with Memory(":memory:", embedder=WordEmbedder(), log_content=True) as memory:
        memory.events.subscribe(MemorySearchCompletedEvent, heard.append)
        one = memory.add("a secret wish")
        memory.search("wish")
        memory.search("wish", search_type="semantic")
        memory.search("wish", search_type="keyword")
        memory.search("wish", ranking=Ranking(similarity=0.5))
        memory.recent()
        memory.important()
        memory.similar(one.id)
    kinds = ["hybrid", "semantic", "keyword", "hybrid", "recent", "important", "similar"]
    assert [event.search_type for event in heard] == kinds
    lines = [record.message for record in caplog.records if " search for agent " in record.message]
    assert [line.split()[0].lower() for line in lines] == kinds


def test_a_hybrid_search_that_falls_back_to_keywords_is_told_as_one_by_keywords():
    class Failing(WordEmbedder):
        fails = False

        def embed(self, texts):
            if self.fails:
                raise OSError("no connection")
            return super().embed(texts)

    heard = []
    with Memory(":memory:", embedder=Failing()) as memory:
        memory.events.subscribe(MemorySearchCompletedEvent, heard.append)
        memory.add("a wish")
        Failing.fails = True
        memory.search("wish")
    assert [event.search_type for event in heard] == ["keyword"]


@pytest.mark.requirement("C199")
def test_a_sensitive_memory_is_not_told_as_a_query_even_where_queries_are_shown(caplog):
    caplog.set_level(logging.DEBUG)
    heard = []
    with Memory(":memory:", embedder=WordEmbedder(), log_content=True) as memory:
        memory.events.subscribe(MemorySearchCompletedEvent, heard.append)
        memory.similar(memory.add("a plain wish").id)
        memory.similar(memory.add("a secret wish", sensitive=True).id)
        memory.add("a secret wish is none", sensitive=True, check="contradictions")
    assert [event.query for event in heard] == ["a plain wish", None]
    assert "secret" not in caplog.text
    assert "<13 characters>" in caplog.text


@pytest.mark.requirement("C199")
@with_memory(clock=Clock(), log_content=True)
async def test_events_show_the_first_fifty_characters_of_a_query(memory):
    heard = listened_to(memory)
    await memory.search_semantic("q" * 51, min_similarity=0)
    assert heard[0].query == "q" * 50 + "..."


@pytest.mark.requirement("R083", "R089", "R090", "R091", "R092", "R093", "R094", "R095", "R096")
def test_log_lines_are_those_of_the_documents(caplog):
    caplog.set_level(logging.DEBUG, "mnemic")
    one = entry()

    async def scenario(memory):
        await memory.store(one)
        await memory.retrieve(one.id)
        await memory.search_semantic("q" * 60, min_similarity=0)
        await memory.forget(one.id)
        with pytest.raises(DuplicateEntryError):
            await memory.store(one)

    run(scenario, log_content=True)
    lines = [f"{record.levelname} {record.message}" for record in caplog.records]
    assert lines[0] == "INFO Long-term memory initialized for agent aide"
    assert lines[1] == (
        f"DEBUG Stored memory entry {one.id} for agent aide, type=FACT, size=12bytes, "
        "encrypted=False"
    )
    assert lines[2] == f"DEBUG Retrieved memory entry {one.id} for agent aide"
    shown = "q" * 50 + "..."
    assert lines[3].startswith(
        f"DEBUG Semantic search for agent aide: query='{shown}', results=1, time="
    )
    assert lines[4] == f"INFO Memory entry {one.id} forgotten for agent aide, permanent=False"
    assert lines[5].startswith("ERROR Failed to store memory entry: a memory with id")
    assert len(lines) == 6
    assert shortened("q" * 50) == "q" * 50


def test_nothing_of_a_memory_or_a_query_is_in_the_log_unless_allowed(caplog):
    caplog.set_level(logging.DEBUG)

    async def scenario(memory):
        await memory.store(entry("a secret memory"))
        await memory.search_semantic("a secret wish", min_similarity=0)

    run(scenario)
    assert "secret" not in caplog.text
    assert "<13 characters>" in caplog.text
