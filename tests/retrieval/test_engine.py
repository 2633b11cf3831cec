"""The memories that a retrieval finds: filters, exclusions, limits, forgotten ones."""

from uuid import uuid4

import pytest

from mnemic import MemoryFilter, MemorySortOrder, MemoryType
from mnemic.model import MemoryQuery
from tests.support.clock import DAY, NOON, clock_of
from tests.support.retrieval import EVERYTHING, QUERY, found, record, served, store_near

# Filters, exclusions, limits


@pytest.mark.requirement("C001")
@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        (MemoryFilter(types=(MemoryType.PREFERENCE,)), {"type": MemoryType.PREFERENCE}),
        (MemoryFilter(tags=("a",)), {"tags": ("a", "b")}),
        (MemoryFilter(any_tags=("a", "z")), {"tags": ("z",)}),
        (MemoryFilter(min_importance=0.7), {"importance": 0.7}),
        (MemoryFilter(created_after=NOON - 3 * DAY), {"created_at": NOON - 3 * DAY}),
        ({"metadata.colour": "red"}, {"metadata": {"colour": "red"}}),
        ({"category": {"in": ["x"]}}, {"category": "x"}),
    ],
    ids=str,
)
@served()
async def test_a_query_sees_only_what_its_filter_lets_through(memory, service, wanted, fields):
    near = memory.embedder.near
    others = [record(near(f"other {number}", 0.99), days=9) for number in range(60)]
    given = {"days": 9, **fields}
    matching = record(near("matching", 0.7), **given)
    await memory.add_many([*others, matching])
    result = await service.retrieve(MemoryQuery(query="query", filters=wanted, limit=1))
    assert (found(result), result.total_matches) == (["matching"], 1)


@pytest.mark.requirement("C002", "R161")
@served()
async def test_excluded_ids_are_never_returned_nor_counted(memory, service):
    one, two, three = await store_near(memory, 0.9, 0.8, 0.7)
    for query in ({"query": "query"}, {"filters": {}}):
        everything = await service.retrieve(MemoryQuery(**query))
        assert everything.total_matches == 3
        rest = await service.retrieve(MemoryQuery(**query, exclude_ids=[one.id, str(two.id)]))
        assert [ranked.entry.id for ranked in rest] == [three.id]
        assert rest.total_matches == 1
        assert rest[0].rank == 1
        again = await service.retrieve(MemoryQuery(**query))
        assert len(again) == 3
    similar = await service.find_similar(one.id, exclude_ids=[two.id])
    assert [hit.entry.id for hit in similar] == [three.id]


@pytest.mark.requirement("C009")
@served()
async def test_without_a_query_the_similarity_has_no_weight(memory, service):
    await memory.add_many([record("old", days=365, importance=0.0), record("new", days=73)])
    result = await service.retrieve(EVERYTHING)
    assert [(one.entry.content, one.relevance_score) for one in result] == [
        ("new", pytest.approx((0.2 * 0.8 + 0.15 * 0.5) / 0.4, abs=1e-6)),
        ("old", pytest.approx(0)),  # below .5, and there all the same
    ]
    floored = MemoryQuery(filters={}, min_relevance=0.1)
    assert found(await service.retrieve(floored)) == ["new"]


ORDERS = {
    MemorySortOrder.CREATED_DESCENDING: ["new", "read", "mid", "old"],
    MemorySortOrder.CREATED_ASCENDING: ["old", "mid", "read", "new"],
    MemorySortOrder.IMPORTANCE_DESCENDING: ["old", "new", "mid", "read"],
    MemorySortOrder.ACCESSED_DESCENDING: ["mid", "read", "new", "old"],
    MemorySortOrder.ACCESS_COUNT_DESCENDING: ["read", "mid", "new", "old"],
}


def four_to_sort():
    return [
        record("old", days=300, importance=1.0),
        record("mid", days=200, importance=0.4, access_count=1, last_accessed_at=NOON - 1 * DAY),
        record("read", days=100, importance=0.1, access_count=9, last_accessed_at=NOON - 2 * DAY),
        record("new", days=0, importance=0.4),
    ]


@pytest.mark.requirement("C009")
@pytest.mark.parametrize("order", ORDERS)
@served()
async def test_an_order_that_is_asked_for_stands_in_place_of_the_ranking(memory, service, order):
    await memory.add_many(four_to_sort())
    result = await service.retrieve(MemoryQuery(filters={}, sort_by=order))
    assert found(result) == ORDERS[order]
    assert [one.rank for one in result] == [1, 2, 3, 4]
    scores = {one.entry.content: one for one in result}
    ranked = {one.entry.content: one for one in await service.retrieve(EVERYTHING)}
    for content, one in scores.items():
        assert one.scores == ranked[content].scores
        assert one.relevance_score == pytest.approx(ranked[content].relevance_score)
    part = MemoryQuery(
        filters=MemoryFilter(offset=1, sort_by=order), sort_by=order, limit=2, use_cache=False
    )
    assert found(await service.retrieve(part)) == ORDERS[order][1:3]


@pytest.mark.requirement("C009")
@pytest.mark.parametrize("order", ORDERS)
@served()
async def test_the_order_of_a_filter_serves_as_well(memory, service, order):
    await memory.add_many(four_to_sort())
    result = await service.retrieve(MemoryQuery.filtered(MemoryFilter(sort_by=order)))
    assert found(result) == ORDERS[order]
    assert found(result) == [
        one.content
        for one in await memory.repository.lister.matching(
            memory.scope, MemoryFilter(sort_by=order)
        )
    ]


@served()
async def test_what_is_read_between_two_looks_is_in_the_order_of_accesses_once(
    memory, service, monkeypatch
):
    old, *_ = await memory.add_many(four_to_sort())
    repository = memory.repository
    find = repository.find

    def once(*given):
        answer = find(*given)
        monkeypatch.undo()
        row = repository.finder.row_of(memory.scope, old.id)
        repository.accesses.record([row])  # as another thread may
        return answer

    monkeypatch.setattr(repository, "find", once)
    by_access = MemoryQuery(filters={}, sort_by=MemorySortOrder.ACCESSED_DESCENDING)
    result = await service.retrieve(by_access)
    assert found(result) == ["old", "mid", "read", "new"]
    assert result.total_matches == 4


@served()
async def test_equal_scores_and_equal_values_go_to_the_newer_then_to_the_smaller_id(
    memory, service
):
    ids = sorted(uuid4() for _ in range(4))
    await memory.add_many(
        [
            record("d", days=500, id=ids[3]),
            record("b", days=400, id=ids[2]),
            record("a", days=400, id=ids[0]),
            record("c", days=500, id=ids[1], access_count=0),
        ]
    )
    flat = MemoryQuery(filters={}, recency_weight=0)
    by_importance = MemoryQuery(filters={}, sort_by=MemorySortOrder.IMPORTANCE_DESCENDING)
    for query in (flat, by_importance):
        assert found(await service.retrieve(query)) == ["a", "b", "c", "d"]


@pytest.mark.requirement("C009")
@served()
async def test_a_query_is_ranked_whatever_the_filter_sorts_by(memory, service):
    await store_near(memory, 0.7, 0.9, 0.8)
    wanted = MemoryFilter(sort_by=MemorySortOrder.CREATED_ASCENDING)
    result = await service.retrieve(MemoryQuery(query="query", filters=wanted))
    assert found(result) == ["near 0.9", "near 0.8", "near 0.7"]


@pytest.mark.requirement("C010")
@served()
async def test_the_limit_is_that_of_the_query_and_the_offset_comes_after_ranking(memory, service):
    await store_near(memory, 0.5, 0.9, 0.7, 0.8, 0.6)
    for query in ({"query": "query"}, {"query": "query", "use_cache": False}):
        whole = await service.retrieve(
            MemoryQuery(**query, filters=MemoryFilter(limit=1), limit=10)
        )
        assert found(whole) == [f"near {part}" for part in (0.9, 0.8, 0.7, 0.6, 0.5)]
        part = await service.retrieve(
            MemoryQuery(**query, filters=MemoryFilter(limit=1, offset=1), limit=2)
        )
        assert found(part) == ["near 0.8", "near 0.7"]
        assert [one.rank for one in part] == [2, 3]
        assert part.total_matches == 5
        assert part.results == whole.results[1:3]
    beyond = MemoryQuery(query="query", filters=MemoryFilter(offset=2**63 - 1))
    result = await service.retrieve(beyond)
    assert (len(result), result.total_matches) == (0, 5)


@pytest.mark.requirement("C011")
@served()
async def test_total_matches_are_all_that_pass_filters_and_floors(memory, service):
    near = memory.embedder.near
    good = [record(near(f"good {number}", 0.8), tags=("a",)) for number in range(40)]
    weak = [record(near(f"weak {number}", 0.31), tags=("a",)) for number in range(30)]
    none = [record(near(f"none {number}", 0.1), tags=("a",)) for number in range(20)]
    other = [record(near(f"other {number}", 0.9)) for number in range(10)]
    await memory.add_many(good + weak + none + other)
    tagged = {"tags": {"any": ["a"]}}
    expected = [
        (MemoryQuery(query="query", limit=3), 50),
        (MemoryQuery(query="query", filters=tagged, limit=3), 40),
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


# Forgotten memories


@pytest.mark.parametrize("query", [{"query": "query"}, {}], ids=["query", "filters"])
@served()
async def test_forgotten_memories_are_found_if_asked_for_until_they_are_purged(
    memory, service, query
):
    kept, gone, wiped = await store_near(memory, 0.8, 0.9, 0.7)
    (foreign,) = await memory.add_many([record("query", user="alice")])
    await memory.delete(gone.id)
    await memory.delete(foreign.id, user_id="alice")
    await memory.delete(wiped.id, permanent=True)
    plain = MemoryQuery(**query, filters=MemoryFilter())
    asked = MemoryQuery(**query, filters=MemoryFilter(include_forgotten=True))

    async def ids(wanted):
        result = await service.retrieve(wanted)
        assert result.total_matches == len(result)
        return [one.entry.id for one in result]

    for _ in range(2):
        assert await ids(plain) == [kept.id]
        assert set(await ids(asked)) == {gone.id, kept.id}
    if query:
        assert await ids(asked) == [gone.id, kept.id]
    limited = MemoryQuery(**query, filters=MemoryFilter(include_forgotten=True), limit=1)
    result = await service.retrieve(limited)
    assert (len(result), result.total_matches) == (1, 2)
    excluded = MemoryQuery(
        **query, filters=MemoryFilter(include_forgotten=True), exclude_ids=[gone.id]
    )
    assert await ids(excluded) == [kept.id]
    clock_of(memory).now += 91 * DAY
    await memory.purge()
    for _ in range(2):
        assert await ids(asked) == [kept.id]
    assert await ids(plain) == [kept.id]


@served()
async def test_a_forgotten_memory_that_is_restored_is_found_once(memory, service):
    (one,) = await store_near(memory, 0.9)
    asked = MemoryQuery(query="query", filters=MemoryFilter(include_forgotten=True))
    for _ in range(2):
        await memory.delete(one.id)
        assert len(await service.retrieve(asked)) == 1
        assert len(await service.retrieve(QUERY)) == 0
        await memory.restore(one.id)
        assert len(await service.retrieve(asked)) == 1
        assert len(await service.retrieve(QUERY)) == 1


@pytest.mark.parametrize("order", ORDERS)
@served()
async def test_forgotten_memories_stand_in_the_order_that_is_asked_for(memory, service, order):
    stored = await memory.add_many(four_to_sort())
    for one in stored[1::2]:
        await memory.delete(one.id)
    wanted = MemoryFilter(include_forgotten=True)
    result = await service.retrieve(MemoryQuery(filters=wanted, sort_by=order))
    assert found(result) == ORDERS[order]
    assert result.total_matches == 4
    part = MemoryQuery(
        filters=MemoryFilter(include_forgotten=True, offset=1), sort_by=order, limit=2
    )
    assert found(await service.retrieve(part)) == ORDERS[order][1:3]
