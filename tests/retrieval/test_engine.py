"""The memories that a retrieval finds: filters, exclusions, limits, forgotten ones."""

import pytest

from mnemic import MemoryFilter, MemorySortOrder
from mnemic.model import MemoryQuery
from tests.support.clock import DAY, NOON
from tests.support.retrieval import FixedEmbedder, found, record, served, store_near


@served()
async def test_what_is_read_between_two_looks_is_in_the_order_of_accesses_once(
    memory, service, monkeypatch
):
    old, *_ = await memory.add_many(
        [
            record("old", days=300),
            record("read", access_count=9, last_accessed_at=NOON - 2 * DAY),
            record("new"),
        ]
    )
    repository = memory.repository
    find = repository.finder.find

    def once(*given):
        answer = find(*given)
        monkeypatch.undo()
        row = repository.reader.locate(memory.scope, old.id).row
        repository.shared.accesses.record([row])  # as another thread may
        return answer

    monkeypatch.setattr(repository.finder, "find", once)
    by_access = MemoryQuery(filters={}, sort_by=MemorySortOrder.ACCESSED_DESCENDING)
    result = await service.retrieve(by_access)
    assert found(result) == ["old", "read", "new"]
    assert result.total_matches == 3


@pytest.mark.requirement("C011")
@served(memory={"embedder": FixedEmbedder(floor=0.3)})
async def test_total_matches_are_all_that_pass_filters_and_floors(memory, service):
    near = memory.embedder.near
    good = [record(near(f"good {number}", 0.8), tags=("a",)) for number in range(40)]
    weak = [record(near(f"weak {number}", 0.31), tags=("a",)) for number in range(30)]
    none = [record(near(f"none {number}", 0.1), tags=("a",)) for number in range(20)]
    other = [record(near(f"other {number}", 0.9)) for number in range(10)]
    await memory.add_many(good + weak + none + other)
    tagged = {"tags": {"any": ["a"]}}
    expected = [
        (MemoryQuery(query="query", limit=3), 80),
        (MemoryQuery(query="query", filters=tagged, limit=3), 70),
        (MemoryQuery(query="query", filters=tagged, limit=3, min_relevance=0.1), 70),
        (MemoryQuery(filters=tagged, limit=3), 90),
        (MemoryQuery(filters=tagged, limit=3, min_relevance=0.99), 0),
        (
            MemoryQuery(filters=tagged, limit=3, sort_by=MemorySortOrder.IMPORTANCE_DESCENDING),
            90,
        ),
    ]
    for query, total in expected:
        result = await service.retrieve(query)
        assert (result.total_matches, len(result)) == (total, min(3, total))
        assert (await service.retrieve(query)).total_matches == total


@pytest.mark.requirement("C012")
@served()
async def test_an_important_memory_far_down_by_similarity_still_wins(memory, service):
    near = memory.embedder.near
    many = [record(near(f"m{number}", 0.6), importance=0.0) for number in range(300)]
    await memory.add_many([*many, record(near("important", 0.5), importance=1.0)])
    assert found(await service.retrieve(MemoryQuery(query="query", limit=1))) == ["important"]


@pytest.mark.requirement("C010")
@served()
async def test_the_limit_is_that_of_the_query_and_the_offset_comes_after_ranking(memory, service):
    await store_near(memory, 0.5, 0.9, 0.7, 0.8, 0.6)
    for offset, expected in ((1, ["near 0.8", "near 0.7"]), (2**63 - 1, [])):
        wanted = MemoryFilter(limit=1, offset=offset)
        part = await service.retrieve(MemoryQuery(query="query", filters=wanted, limit=2))
        assert (found(part), part.total_matches) == (expected, 5)
