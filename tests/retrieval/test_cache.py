"""What the retrieval service keeps, under what, for whom and for how long."""

import tracemalloc
from datetime import timedelta

import pytest

from mnemic import MemoryFilter, MemorySortOrder
from mnemic.model import MemoryQuery, RelevanceScores, Scope
from mnemic.retrieval.cache import (
    ANSWER_SHARE,
    SCOPE_SHARE,
    CachedAnswer,
    CachedHit,
    answer_cache,
    bytes_of,
)
from mnemic.retrieval.keys import Key, UserScope, key_of
from tests.support.clock import NOON, clock_of
from tests.support.retrieval import found, record, served

QUERY = MemoryQuery.semantic("query")
LONG = timedelta(days=1)


def pass_time(memory, seconds):
    clock_of(memory).now += timedelta(seconds=seconds)


async def store_near(memory, *similarities, **fields):
    near = memory.embedder.near
    texts = [near(f"near {similarity}", similarity) for similarity in similarities]
    return await memory.add_many([record(text, **fields) for text in texts])


# What is kept: nothing that accesses decide.


@pytest.mark.parametrize(
    "filters",
    [
        {"access_count": 0},
        {"last_accessed_at": {"exists": False}},
        {"NOT": {"OR": [{"access_count": {"gt": 0}}, {"importance": 7}]}},
        MemoryFilter(filters={"access_count": {"lt": 1}}),
    ],
    ids=str,
)
@served(track_access=True)
async def test_a_filter_by_accesses_sees_the_latest_accesses(memory, service, filters):
    await memory.add_many([record("read"), record("unread", days=1)])
    query = MemoryQuery(filters=filters, limit=1)
    assert found(await service.retrieve(query)) == ["read"]  # which counts an access of it
    assert found(await service.retrieve(query)) == ["unread"]
    assert found(await service.retrieve(query)) == []


@pytest.mark.parametrize(
    "order", [MemorySortOrder.ACCESSED_DESCENDING, MemorySortOrder.ACCESS_COUNT_DESCENDING]
)
@pytest.mark.parametrize("is_of_filter", [True, False])
@served()
async def test_an_order_by_accesses_follows_the_latest_accesses(
    memory, service, order, is_of_filter
):
    one, two = await memory.add_many([record("one"), record("two", days=1)])
    query = MemoryQuery(
        filters=MemoryFilter(sort_by=order if is_of_filter else None),
        sort_by=None if is_of_filter else order,
    )
    await memory.touch([one.id])
    assert found(await service.retrieve(query)) == ["one", "two"]
    pass_time(memory, 1)
    for _ in range(2):
        await memory.touch([two.id])
    assert found(await service.retrieve(query)) == ["two", "one"]
    pass_time(memory, 1)
    for _ in range(2):
        await memory.touch([one.id])
    assert found(await service.retrieve(query)) == ["one", "two"]


# For how long: the memory's clock, and what the asker and the maker allow.


@pytest.mark.requirement("R159", "C149")
@pytest.mark.parametrize(("ttl", "seconds"), [(None, 300.0), (timedelta(seconds=2), 2.0), (7, 7.0)])
@served()
async def test_an_answer_is_kept_for_its_time_by_the_clock_of_the_memory(
    memory, service, ttl, seconds
):
    await store_near(memory, 0.9)
    query = MemoryQuery(query="query", **({} if ttl is None else {"cache_ttl": ttl}))
    for _ in range(2):
        assert (await service.retrieve(query)).from_cache is False
        pass_time(memory, seconds - 0.001)
        assert (await service.retrieve(query)).from_cache is True
        pass_time(memory, 0.001)


@served()
async def test_an_answer_may_be_kept_for_ever(memory, service):
    await store_near(memory, 0.9)
    query = MemoryQuery(query="query", cache_ttl=timedelta.max)
    assert [(await service.retrieve(query)).from_cache for _ in range(2)] == [False, True]


@served()
async def test_a_hit_is_no_older_than_its_asker_allows(memory, service):
    await store_near(memory, 0.9)

    async def is_known(seconds):
        query = MemoryQuery(query="query", cache_ttl=seconds)
        return (await service.retrieve(query)).from_cache

    assert not await is_known(300)
    pass_time(memory, 10)
    assert await is_known(11)
    assert await is_known(300)
    assert not await is_known(10)  # and what it made instead
    assert await is_known(300)
    pass_time(memory, 10)
    assert not await is_known(300)  # lives as long as its maker said


@served()
async def test_an_answer_of_a_later_time_is_not_given_where_the_clock_goes_back(memory, service):
    await store_near(memory, 0.9)
    await service.retrieve(QUERY)
    pass_time(memory, -1)
    assert not (await service.retrieve(QUERY)).from_cache


# Under what: all that decides an answer, however it was written.


def key(filters, **fields):
    query = MemoryQuery(query="query", filters=filters, **fields)
    return key_of(Scope("aide"), query, query.expression, 1)


def test_what_becomes_of_the_callers_dict_changes_no_query():
    wanted = {"importance": {"gte": 0.4}, "tags": {"any": ["a"]}}
    query = MemoryQuery(filters=wanted)
    before = query.expression
    wanted["importance"]["gte"] = 0.9
    wanted["tags"]["any"].append("b")
    wanted["type"] = "event"
    assert query.expression == before
    assert query.filters == {"importance": {"gte": 0.4}, "tags": {"any": ["a"]}}


# How much: by number for each user, by bytes for all, fairly between users.


@pytest.mark.requirement("C029")
@served(cache_size=2)
async def test_the_cache_is_bounded_and_the_least_recently_used_goes_first(memory, service):
    await store_near(memory, 0.9)

    async def is_known(limit):
        return (await service.retrieve(MemoryQuery(query="query", limit=limit))).from_cache

    assert [await is_known(limit) for limit in (1, 2, 1, 3)] == [False, False, True, False]
    assert [await is_known(limit) for limit in (1, 3, 2)] == [True, True, False]
    for limit in range(1, 50):
        await is_known(limit)
    assert len(service._engine._cache) == 2
    assert service._engine._cache._flights == {}


def scope(name):
    return UserScope("aide", name, all_users=False)


def answer_of(count, at=0, **fields):
    rows = [10**6 + 1000 * at + number for number in range(count)]
    scores = [
        RelevanceScores(
            **{
                name: (number + at + part) / 10_000
                for part, name in enumerate(RelevanceScores.__struct_fields__)
            }
        )
        for number in range(count)
    ]
    return CachedAnswer(
        hits=tuple(CachedHit(row, row / 7, part) for row, part in zip(rows, scores, strict=True)),
        total=10**6 + at,
        expanded=None,
        **{"computed_at": NOON, "lifetime": LONG, **fields},
    )


def keep(cache, key, answer):
    cache.put(key, answer, key.revision)


def test_an_answer_whose_expansion_failed_is_not_kept():
    cache, here = answer_cache(), Key(scope("a"), 1, "a")
    keep(cache, here, answer_of(1, expansion_failed=True))
    assert cache.get(here) is None


@pytest.mark.parametrize("hits", [0, 1, 10, 1000])
def test_the_estimate_of_bytes_is_what_answers_take(hits):
    cache = answer_cache(10**6, size_bytes=1 << 40)
    answers = max(20, 4000 // max(1, hits))
    query = "where did we put it, and when was that? " * 3

    def question(at):
        # As of queries of their own, which nobody holds any longer.
        asked = MemoryQuery(
            query=f"{query}{at}", filters={"metadata.number": {"in": [at, f"x{at}"]}}
        )
        return key_of(Scope("aide", "a"), asked, asked.expression, 1)

    keep(cache, question(-1), answer_of(hits))
    first = cache.used_bytes
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for at in range(answers):
            key = question(at)
            keep(cache, key, answer_of(hits, at))
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(cache) == answers + 1
    assert 0.85 * taken <= cache.used_bytes - first <= 1.25 * taken


def test_one_scope_keeps_a_part_of_all_bytes_and_too_large_an_answer_is_not_kept():
    budget = 8 * 1024 * 1024
    cache = answer_cache(size_bytes=budget)
    for at in range(100):
        keep(cache, Key(scope("a"), 1, at), answer_of(200, at))
    assert budget // SCOPE_SHARE // 2 < cache.used_bytes <= budget // SCOPE_SHARE
    most = budget // SCOPE_SHARE // ANSWER_SHARE
    before, large = cache.used_bytes, answer_of(1000)
    here = Key(scope("b"), 1, "large")
    assert bytes_of(here, large) > most
    keep(cache, here, large)
    assert cache.get(here) is None
    assert cache.used_bytes == before


@served(cache_bytes=0)
async def test_a_cache_of_no_bytes_keeps_nothing(memory, service):
    await store_near(memory, 0.9)
    for _ in range(2):
        assert not (await service.retrieve(QUERY)).from_cache


# Between users.


@served(cache_size=4)
async def test_what_others_ask_pushes_no_answer_out(memory, service):
    for user in ("alice", "boris", "clara"):
        await memory.add_many([record(f"of {user}", user=user)])
    queries = [MemoryQuery(filters={}, limit=limit) for limit in range(1, 5)]
    for query in queries:
        await service.retrieve(query, user_id="alice")
    for limit in range(1, 200):
        for user in ("boris", "clara"):
            await service.retrieve(MemoryQuery(filters={}, limit=limit), user_id=user)
        await service.retrieve(MemoryQuery(filters={}, limit=limit), all_users=True)
    for query in queries:
        assert (await service.retrieve(query, user_id="alice")).from_cache


@served()
async def test_what_others_write_ends_no_answer_but_those_of_all_users(memory, service):
    everybody = {"alice": {"user_id": "alice"}, "boris": {"user_id": "boris"}, "nobody": {}}
    asked = {**everybody, "all": {"all_users": True}}
    queries = [QUERY, MemoryQuery(filters={}), MemoryQuery(query="x", search_type="hybrid")]

    async def known():
        """Return who is answered from the cache, each asking all queries."""
        answers = {
            name: [(await service.retrieve(query, **whom)).from_cache for query in queries]
            for name, whom in asked.items()
        }
        assert all(len(set(each)) == 1 for each in answers.values())
        return {name for name, each in answers.items() if each[0]}

    one = await memory.add("tea of alice", user_id="alice")
    other = await memory.add("more tea of alice", user_id="alice")
    await memory.add("tea of boris", user_id="boris")
    await memory.add("tea of nobody")
    await known()
    for write in (
        lambda: memory.add("tea again", user_id="alice"),
        lambda: memory.update(one.id, importance=0.9, user_id="alice"),
        lambda: memory.link(one.id, other.id, "related", user_id="alice"),
        lambda: memory.delete(one.id, user_id="alice"),
        lambda: memory.restore(one.id, user_id="alice"),
        lambda: memory.delete(one.id, permanent=True, user_id="alice"),
    ):
        assert await known() == set(asked)
        await write()
        assert await known() == {"boris", "nobody"}
    await memory.touch([other.id], user_id="alice")
    await memory.repository.accesses.write()
    assert await known() == set(asked)


@served()
async def test_what_expires_of_the_forgotten_ends_the_answers_that_count_it(memory, service):
    brief = NOON + timedelta(seconds=60)
    _, one = await memory.add_many(
        [record("best", importance=1.0), record("brief", importance=0.0, expires_at=brief)]
    )
    await memory.delete(one.id)
    query = MemoryQuery(filters=MemoryFilter(include_forgotten=True), limit=1)
    assert (await service.retrieve(query)).total_matches == 2
    assert (await service.retrieve(query)).from_cache
    clock_of(memory).now = brief
    assert (await service.retrieve(query)).total_matches == 1


@served()
async def test_what_expires_of_others_ends_no_answer(memory, service):
    brief = NOON + timedelta(seconds=60)
    await memory.add_many(
        [record("of alice", user="alice"), record("of boris", user="boris", expires_at=brief)]
    )
    query = MemoryQuery(filters={})
    for user in ("alice", "boris"):
        await service.retrieve(query, user_id=user)
    assert len(await service.retrieve(query, all_users=True)) == 2
    clock_of(memory).now = brief
    assert (await service.retrieve(query, user_id="alice")).from_cache
    assert found(await service.retrieve(query, user_id="boris")) == []
    assert len(await service.retrieve(query, all_users=True)) == 1
