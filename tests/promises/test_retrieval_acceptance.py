"""The acceptance criteria of the retrieval service."""

from datetime import timedelta

import pytest

from mnemic.compat import ContextItem, ContextItemType, ContextWindow
from mnemic.model import MemoryQuery
from tests.support.clock import clock_of
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import QUERY, AskingFirst, found, record, served


def words(**options):
    return {"embedder": WordEmbedder(dimensions=512), **options}


@pytest.mark.requirement("R214")
@served(expander=AskingFirst("synonym"))
async def test_expansion_finds_what_the_plain_query_does_not(memory, service):
    embedder = memory.embedder
    embedder.near("related", 0.2)
    embedder.vectors["query synonym"] = (0, 0, 1, 0)
    await memory.add_many([record("related"), record(embedder.near("direct", 0.8))])
    plain = await service.retrieve(QUERY)
    expanded = await service.retrieve(MemoryQuery(query="query", expand_query=True))
    assert found(plain) == ["direct"]
    assert set(found(expanded)) == {"direct", "related"}
    assert expanded.expanded_query == "query synonym"


@pytest.mark.requirement("R214")
@served(memory=words())
async def test_the_offline_expansion_finds_an_abbreviation_spelled_out(memory, service):
    await memory.add_many(
        ["the database was moved in march", "tea is served at noon", "a red sofa was bought"]
    )
    plain = await service.retrieve(MemoryQuery(query="db", min_relevance=0))
    expanded = await service.retrieve(MemoryQuery(query="db", min_relevance=0, expand_query=True))
    assert found(plain) == []
    assert "the database was moved in march" in found(expanded)
    assert "database" in expanded.expanded_query


@pytest.mark.requirement("R217")
@served(memory=words())
async def test_more_than_half_of_repeated_queries_hit_the_cache_while_accesses_are_counted(
    memory, service
):
    stored = await memory.add_many([f"memory of topic{number}" for number in range(20)])
    for round_number in range(5):
        for number in range(20):
            query = MemoryQuery.semantic(f"topic{number}")
            (best, *_) = await service.retrieve(query)
            await memory.get(best.entry.id)
            clock_of(memory).now += timedelta(seconds=1)
        if round_number == 2:
            await memory.update(stored[0].id, importance=0.7)
    stats = await service.get_stats()
    assert stats.total_retrievals == 100
    assert stats.cache_hit_rate == pytest.approx(60)  # two of five rounds are not known yet


@pytest.mark.requirement("R220", "R132", "R212", "R221")
@served()
async def test_with_500_tokens_only_fitting_items_are_added(memory, service):
    near = memory.embedder.near
    # 120 words of four letters and a space each are 600 characters
    texts = [near(f"m{number} " + "word " * 120, 0.9 - number / 100) for number in range(10)]
    await memory.add_many([record(text) for text in texts])
    window = ContextWindow(2000)
    talk = "hello " * 10
    while window.free_tokens > 500:
        spare = window.free_tokens - 500
        window.add(ContextItem(content=talk, type=ContextItemType.USER_MESSAGE, token_count=spare))
    before = window.items()
    assert window.free_tokens == 500
    added = await service.retrieve_to_context(QUERY, window)
    assert 0 < added < 10
    retrieved = window.items(ContextItemType.RETRIEVED_DOCUMENT)
    assert len(retrieved) == added
    assert sum(item.token_count for item in retrieved) <= 500
    assert 500 - sum(item.token_count for item in retrieved) < retrieved[0].token_count
    assert all(window.get(item.id) == item for item in before)
