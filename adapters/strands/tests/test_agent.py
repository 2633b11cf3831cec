"""Agents with a memory manager, and a model that answers from a list."""

import json

import pytest
from listed import ListedModel, call, run, texts
from strands import Agent
from strands.memory import MemoryManager
from strands.memory.extraction.triggers import IntervalTrigger, InvocationTrigger
from strands.memory.extraction.types import ExtractionResult
from strands.memory.types import MemoryEntry
from strands_mnemic import MnemicMemoryStore

from mnemic import Memory
from mnemic.errors import StoreBusyError


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "memory.db") as opened:
        yield opened


def agent(model, *stores, **options):
    manager = MemoryManager(stores=list(stores), **options)
    return Agent(model=model, memory_manager=manager, callback_handler=None)


def test_memories_are_injected_as_a_block_and_those_of_another_user_are_not(memory):
    store = MnemicMemoryStore(memory, name="notes", user_id="alice")
    other = MnemicMemoryStore(memory, name="notes", user_id="bob")
    run(store.add("Allergic to <peanuts>"))
    run(other.add("Loves peanuts"))
    model = ListedModel()
    agent(model, store)("Which foods must I avoid?")
    block = '<memory>\\n<entry source=\\"notes\\">Allergic to &lt;peanuts&gt;</entry>\\n</memory>'
    assert block in model.shown[0]
    assert "Loves" not in model.shown[0]


def test_a_model_adds_memories_and_finds_them_by_tools(memory):
    stores = [
        MnemicMemoryStore(memory, name="notes", description="What the user likes"),
        MnemicMemoryStore(memory, name="facts", writable=False),
    ]
    model = ListedModel(
        call("add_memory", entries=["Likes jasmine tea", "Has a cat"]),
        call("search_memory", query="hot drinks", max_search_results=1),
    )
    agent(model, *stores, add_tool_config=True, injection=False)("I like jasmine tea")
    assert {"search_memory", "add_memory"} <= set(model.tools)
    assert "stored" in model.shown[1]
    result = json.loads(model.shown[2])[0][-1]["content"][0]["toolResult"]
    assert result["status"] == "success"
    assert "Likes jasmine tea" in str(result)
    assert "cat" not in str(result)
    assert run(stores[0].scoped.count()) == 2
    assert run(stores[1].scoped.count()) == 0


def test_each_turn_is_stored_once_when_a_trigger_fires_after_each(memory):
    store = MnemicMemoryStore(memory, name="chat", extraction={"trigger": InvocationTrigger()})
    talking = agent(ListedModel(), store, injection=False)
    for said in ("I live in Oslo", "Yes", "Yes"):
        talking(said)
    assert sorted(run(texts(store, "Oslo: yes, good"))) == sorted(
        ["I live in Oslo", "Yes", "Yes", "Good", "Good", "Good"]
    )


def test_a_trigger_of_some_turns_stores_all_turns_before_it(memory):
    store = MnemicMemoryStore(memory, name="chat", extraction={"trigger": IntervalTrigger(2)})
    talking = agent(ListedModel(), store, injection=False)

    async def talk():
        counts = []
        for said in ("I live in Oslo", "I have a cat", "I like tea"):
            await talking.invoke_async(said)
            for saving in talking.memory_manager._coordinator._chains.values():
                await saving
            counts.append(await store.scoped.count())
        await talking.memory_manager.flush()
        return [*counts, await store.scoped.count()]

    assert run(talk()) == [0, 4, 4, 6]


def test_a_write_that_failed_is_repeated_and_stores_nothing_twice(memory, monkeypatch):
    store = MnemicMemoryStore(memory, name="chat", extraction={"trigger": InvocationTrigger()})
    write = store.memory.add_many
    failures = []

    async def once_lost(new, **options):
        stored = await write(new, **options)
        if not failures:
            failures.append(len(new))
            raise StoreBusyError("the answer was lost on the way")
        return stored

    monkeypatch.setattr(store.memory, "add_many", once_lost)
    talking = agent(ListedModel(), store, injection=False)
    talking("I live in Oslo")
    talking("I have a cat")
    assert failures == [2]
    assert run(store.scoped.count()) == 4


def test_what_an_extractor_finds_is_added(memory):
    class Extractor:
        async def extract(self, messages, context=None):
            del context
            said = [each for each in messages if each["role"] == "user"]
            texts = [f"The user said: {each['content'][0]['text']}" for each in said]
            return [ExtractionResult(text, {"from": "extractor"}) for text in texts]

    extraction = {"trigger": InvocationTrigger(), "extractor": Extractor()}
    store = MnemicMemoryStore(memory, name="facts", extraction=extraction)
    agent(ListedModel(), store, injection=False)("I live in Oslo")
    (entry,) = run(store.search("home"))
    assert entry.content == "The user said: I live in Oslo"
    assert entry.metadata["from"] == "extractor"


def test_the_next_agent_of_another_process_knows_what_was_said(tmp_path):
    for said in ("I am allergic to peanuts", "Which foods must I avoid?"):
        store = MnemicMemoryStore(tmp_path / "memory.db", name="chat", extraction=True)
        model = ListedModel()
        agent(model, store)(said)
        run(store.memory.close())
    assert "<memory>" in model.shown[0]
    assert "I am allergic to peanuts" in model.shown[0]


def test_a_manager_finds_in_several_stores_and_names_them(memory):
    stores = [MnemicMemoryStore(memory, name=name) for name in ("notes", "facts")]
    manager = MemoryManager(stores=stores)
    run(manager.add("Likes tea", {"stores": ["facts"], "metadata": {"page": 3}}))
    (entry,) = run(manager.search("tea"))
    assert isinstance(entry, MemoryEntry)
    assert (entry.content, entry.store_name, entry.metadata["page"]) == ("Likes tea", "facts", 3)
