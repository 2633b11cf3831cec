"""What the retrieval service keeps, under what, for whom and for how long."""

import tracemalloc
from datetime import timedelta

import pytest

from mnemic.model import MemoryQuery, RelevanceScores, Scope
from mnemic.retrieval.cache import (
    ANSWER_SHARE,
    SCOPE_SHARE,
    CachedAnswer,
    CachedHit,
    Key,
    UserScope,
    answer_cache,
    bytes_of,
    key_of,
)
from tests.support.clock import NOON, clock_of
from tests.support.retrieval import QUERY, served, store_near

LONG = timedelta(days=1)


def pass_time(memory, seconds):
    clock_of(memory).now += timedelta(seconds=seconds)


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
