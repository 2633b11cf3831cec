"""Retrieved memories in a context window."""

from uuid import uuid4

import pytest

from mnemic import MemoryFilter
from mnemic.compat import ContextItem, ContextItemType, ContextWindow
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryQuery
from mnemic.observability.events import ContextAugmentedEvent
from tests.support.retrieval import QUERY, record, serve, served, store_near


def talk(window, tokens, **fields):
    given = {"type": ContextItemType.USER_MESSAGE, "token_count": tokens, **fields}
    return window.add(ContextItem(content="said before", **given))


@pytest.mark.requirement("C019")
@served()
async def test_what_does_not_fit_is_passed_over_and_smaller_memories_are_added(memory, service):
    near = memory.embedder.near
    long, short = near("long " * 200, 0.9), near("short one", 0.8)
    await memory.add_many([record(long), record(short)])
    window = ContextWindow(100)
    assert await service.retrieve_to_context(QUERY, window) == 1
    assert [item.content for item in window.items()] == [short]


@pytest.mark.requirement("C021")
@served()
async def test_a_memory_is_in_the_window_once_and_its_priority_rises_only(memory, service):
    near = memory.embedder.near
    await memory.add_many([record(near("one", 0.8)), record(near("two", 0.7))])
    window = ContextWindow(1000)
    heard = []
    memory.events.subscribe(ContextAugmentedEvent, heard.append)
    assert await service.retrieve_to_context(QUERY, window) == 2
    first = {item.content: item.priority for item in window.items()}
    tokens = window.current_tokens
    assert await service.retrieve_to_context(QUERY, window) == 0
    assert window.current_tokens == tokens
    assert (heard[-1].items_added, heard[-1].tokens_added) == (0, 0)
    higher = MemoryQuery(
        query="query", recency_weight=1, similarity_weight=0.1, importance_weight=0
    )
    assert await service.retrieve_to_context(higher, window) == 0
    raised = {item.content: item.priority for item in window.items()}
    assert all(raised[content] > first[content] for content in first)
    assert await service.retrieve_to_context(QUERY, window) == 0
    assert {item.content: item.priority for item in window.items()} == raised


@pytest.mark.requirement("C021")
@served()
async def test_in_a_full_window_the_priority_of_a_memory_still_rises(memory, service):
    near = memory.embedder.near
    await memory.add_many([record(near("one", 0.9)), record(near("two", 0.8))])
    _, other = await service.retrieve(QUERY)
    window = ContextWindow(20)
    window.add("said", "retrieved_document", source_ref=str(other.entry.id), priority=1)
    talk(window, window.free_tokens - 1)
    assert await service.retrieve_to_context(QUERY, window) == 0
    (item,) = window.items("retrieved_document")
    assert item.content == "said"
    assert item.priority == int(50 + 40 * other.relevance_score)


@pytest.mark.requirement("C028")
@pytest.mark.parametrize(
    "filters",
    [
        None,
        {"category": "x"},
        {"category": "x", "sensitive": {"in": [True, False]}},
        MemoryFilter(filters={"category": "x"}),
        MemoryFilter(),
    ],
    ids=str,
)
@served()
async def test_sensitive_memories_take_no_other_place_in_a_window(memory, service, filters):
    near = memory.embedder.near
    secrets = [record(near(f"secret {at}", 0.9), sensitive=True) for at in range(3)]
    await memory.add_many([*secrets, record(near("open", 0.8), category="x")])
    query, window = MemoryQuery(query="query", filters=filters, limit=3), ContextWindow(1000)
    assert await service.retrieve_to_context(query, window) == 1
    assert [item.content for item in window.items()] == ["open"]
    only = MemoryQuery(query="query", filters={"sensitive": True})
    assert await service.retrieve_to_context(only, window) == 0
    assert await memory.retrieve_to_context(only, window, include_sensitive=True) == 3
    with pytest.raises(InvalidArgumentError, match="MemoryQuery"):
        await service.retrieve_to_context(5, window)


@pytest.mark.requirement("C018")
def test_tokens_are_counted_as_the_window_counts_them():
    class Letters:
        def count(self, text):
            return len(text)

    async def scenario(memory, service):
        heard = []
        memory.events.subscribe(ContextAugmentedEvent, heard.append)
        await store_near(memory, 0.9, 0.8)
        window = ContextWindow(1000, counter=Letters())
        assert await service.retrieve_to_context(QUERY, window) == 2
        assert heard[0].tokens_added == window.current_tokens == 2 * len("near 0.9")

    serve(scenario)


@served()
async def test_only_true_and_false_open_what_is_closed(memory, service):
    await memory.add(memory.embedder.near("secret", 0.9), sensitive=True)
    window = ContextWindow(1000)
    for door in (service, memory):
        with pytest.raises(InvalidArgumentError, match="include_sensitive"):
            await door.retrieve_to_context(QUERY, window, include_sensitive="no")
        with pytest.raises(InvalidArgumentError, match="all_users"):
            await door.retrieve(QUERY, all_users="no")
    with pytest.raises(InvalidArgumentError, match="strict"):
        await service.find_similar(uuid4(), strict="no")
    assert window.item_count == 0
