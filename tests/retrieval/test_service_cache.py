"""Cached answers of the retrieval service."""

import asyncio
import math
from uuid import UUID

import pytest

from mnemic import AsyncMemory, MemoryFilter, MemorySortOrder
from mnemic.compat import AsyncRetrievalService, LicenseTier
from mnemic.errors import InvalidArgumentError, LicenseRestrictionError
from mnemic.licensing import DocumentedLicenses
from mnemic.model import MemoryQuery, Recency
from tests.support.clock import Clock
from tests.support.retrieval import (
    EVERYTHING,
    QUERY,
    FixedEmbedder,
    counts,
    found,
    record,
    serve,
    served,
    store_near,
)

ONE = UUID(int=1)
BASE = {"query": "query", "filters": {"importance": {"gte": 0.1}}}


@pytest.mark.requirement("C003")
@pytest.mark.parametrize(
    "changed",
    [
        {"query": "context"},
        {"query": None},
        {"filters": None},
        {"filters": {"importance": {"gte": 0.2}}},
        {"filters": {"importance": {"gt": 0.1}}},
        {"filters": MemoryFilter(min_importance=0.1, offset=1)},
        {"filters": MemoryFilter(min_importance=0.1, include_forgotten=True)},
        {"limit": 9},
        {"min_relevance": 0.4},
        {"similarity_weight": 0.5},
        {"recency_weight": 0.1},
        {"importance_weight": 0.1},
        {"access_weight": 0.1},
        {"expand_query": True},
        {"context_boost": "context"},
        {"context_weight": 0.2, "context_boost": "context"},
        {"exclude_ids": [ONE]},
        {"search_type": "hybrid"},
        {"recency": Recency(days=30)},
        {"query": None, "sort_by": MemorySortOrder.CREATED_ASCENDING},
    ],
    ids=str,
)
@served()
async def test_every_field_that_decides_the_answer_is_part_of_the_key(memory, service, changed):
    await store_near(memory, 0.9, 0.8)
    before = [{}, {"context_boost": "context"}, {"query": None}]
    for fields in before:
        if fields != changed:
            await service.retrieve(MemoryQuery(**{**BASE, **fields}))
    result = await service.retrieve(MemoryQuery(**{**BASE, **changed}))
    assert result.from_cache is False
    again = await service.retrieve(MemoryQuery(**{**BASE, **changed}))
    assert again.from_cache is True
    assert again.results == result.results


@pytest.mark.requirement("C004")
def test_agents_and_users_do_not_share_answers(tmp_path):
    async def scenario():
        embedder = FixedEmbedder()
        options = {"embedder": embedder, "clock": Clock()}
        path = tmp_path / "a.db"
        async with (
            AsyncMemory(path, "aide", **options) as aide,
            AsyncMemory(path, "brief", **options) as brief,
        ):
            await aide.add(embedder.near("of nobody", 0.9))
            await aide.scoped(project_id="p").add(embedder.near("of alice", 0.9), user_id="alice")
            await aide.add(embedder.near("of boris", 0.9), user_id="boris")
            await brief.add(embedder.near("of the other agent", 0.9))
            service, other = AsyncRetrievalService(aide), AsyncRetrievalService(brief)
            alice = AsyncRetrievalService(aide.scoped(user_id="alice"))
            for query in (QUERY, EVERYTHING):
                for _ in range(2):
                    assert found(await service.retrieve(query)) == ["of nobody"]
                    assert found(await service.retrieve(query, user_id="alice")) == ["of alice"]
                    assert found(await service.retrieve(query, user_id="boris")) == ["of boris"]
                    assert found(await service.retrieve(query, user_id="nobody")) == []
                    assert len(await service.retrieve(query, all_users=True)) == 3
                    assert found(await other.retrieve(query)) == ["of the other agent"]
                    assert found(await alice.retrieve(query)) == ["of alice"]
                    in_project = await aide.scoped(project_id="q").retrieve(query, user_id="alice")
                    assert found(in_project) == []
            with pytest.raises(InvalidArgumentError):
                await alice.retrieve(QUERY, all_users=True)
            with pytest.raises(InvalidArgumentError):
                await service.retrieve(QUERY, user_id="alice", all_users=True)

    asyncio.run(scenario())


@pytest.mark.requirement("C005")
def test_what_is_written_is_seen_at_once_by_whoever_wrote_it(path):
    async def scenario(memory, service):
        embedder = memory.embedder
        (one,) = await store_near(memory, 0.9)

        async def contents():
            for query in (QUERY, EVERYTHING):
                await service.retrieve(query)
            answers = [await service.retrieve(query) for query in (QUERY, EVERYTHING)]
            assert all(answer.from_cache for answer in answers)
            everybody = await service.retrieve(EVERYTHING, all_users=True)
            assert set(found(answers[0])) == set(found(answers[1])) == set(found(everybody))
            return found(answers[0])

        async with AsyncMemory(
            path, "aide", embedder=embedder, clock=memory.repository.now
        ) as second:
            for writer in (memory, second):
                assert await contents() == ["near 0.9"]
                two = await writer.add(embedder.near("added", 0.8))
                assert await contents() == ["near 0.9", "added"]
                await writer.update(two.id, content=embedder.near("changed", 0.85))
                assert await contents() == ["near 0.9", "changed"]
                await writer.delete(one.id)
                assert await contents() == ["changed"]
                await writer.restore(one.id)
                assert await contents() == ["near 0.9", "changed"]
                three = await writer.add(embedder.near("instead", 0.8), supersedes=two.id)
                assert await contents() == ["near 0.9", "instead"]
                await writer.delete(three.id, permanent=True)
                assert await contents() == ["near 0.9"]

    serve(scenario, path=path)


@pytest.mark.requirement("C007")
@served()
async def test_the_license_is_looked_at_before_the_cache(memory, service):
    (one,) = await store_near(memory, 0.9)
    await service.retrieve(QUERY)
    await service.retrieve(EVERYTHING)
    memory.repository.shared.limits.license = DocumentedLicenses(LicenseTier.WRITER_PRO)
    with pytest.raises(LicenseRestrictionError):
        await service.retrieve(QUERY)
    assert found(await service.retrieve(EVERYTHING)) == ["near 0.9"]
    memory.repository.shared.limits.license = DocumentedLicenses(LicenseTier.CORE)
    for call in (service.retrieve(EVERYTHING), service.find_similar(one.id)):
        with pytest.raises(LicenseRestrictionError):
            await call
    assert (await service.get_stats()).total_retrievals == 3  # what was refused is not counted


@pytest.mark.requirement("C028")
@served()
async def test_the_cache_holds_no_contents(memory, service):
    await memory.add(memory.embedder.near("a secret text", 0.9), sensitive=True)
    await memory.add(memory.embedder.near("an open text", 0.9))
    assert len(await service.retrieve(QUERY)) == 2
    kept = service._engine._cache.items()
    assert len(kept) == 1
    assert " text" not in repr(kept)


@pytest.mark.requirement("C029")
@served()
async def test_what_a_caller_does_to_an_answer_does_not_reach_the_next_one(memory, service):
    await memory.add_many([record("one", metadata={"a": [1]}, tags=("t",))])
    first = await service.retrieve(EVERYTHING)
    assert isinstance(first.results, tuple)
    first[0].entry.metadata["a"].append(2)
    first[0].entry.metadata["b"] = 3
    with pytest.raises(AttributeError):
        first[0].rank = 7
    second = await service.retrieve(EVERYTHING)
    assert second.from_cache
    assert second[0].entry.metadata == {"a": [1]}
    assert second[0].entry is not first[0].entry


@pytest.mark.requirement("C158")
@served()
async def test_accesses_leave_answers_in_the_cache(memory, service):
    stored = await store_near(memory, 0.9, 0.8)
    await service.retrieve(QUERY)
    for _ in range(3):
        await memory.touch([one.id for one in stored])
        await memory.repository.shared.accesses.write()
        result = await service.retrieve(QUERY)
        assert result.from_cache
    assert [one.entry.access_count for one in result] == [3, 3]  # contents are reread


@pytest.mark.requirement("C090")
@pytest.mark.parametrize("use_cache", [True, False])
@served(track_access=True)
async def test_every_memory_that_is_returned_is_accessed_once_whatever_was_kept(
    memory, service, use_cache
):
    stored = await store_near(memory, 0.9, 0.8, 0.7)
    await memory.delete(stored[2].id)
    query = MemoryQuery(
        query="query",
        min_relevance=0,
        filters=MemoryFilter(include_forgotten=not use_cache),
        use_cache=use_cache,
    )
    for number in range(3):
        result = await service.retrieve(query)
        assert result.from_cache is (use_cache and number > 0)
        if not use_cache:
            assert [one.entry.access_count for one in result] == [number, number, 0]
    limited = MemoryQuery(query="query", min_relevance=0, limit=1, filters=MemoryFilter(offset=1))
    await service.retrieve(limited)
    await service.find_similar(stored[0].id, limit=1)
    assert await counts(memory, stored) == [3, 5, 0]


@served(track_access=True, memory={"track_access": False})
async def test_accesses_are_not_counted_where_nobody_wants_them(memory, service):
    stored = await store_near(memory, 0.9)
    await service.retrieve(QUERY)
    await memory.retrieve(QUERY)
    assert await counts(memory, stored) == [0]


@pytest.mark.requirement("R158")
@served()
async def test_a_query_may_leave_the_cache_alone(memory, service):
    await store_near(memory, 0.9)
    fresh = MemoryQuery(query="query", use_cache=False)
    for _ in range(3):
        assert (await service.retrieve(fresh)).from_cache is False
    assert (await service.retrieve(QUERY)).from_cache is False  # and nothing was kept
    assert (await service.retrieve(fresh)).from_cache is False
    assert (await service.retrieve(QUERY)).from_cache is True


@pytest.mark.parametrize(
    "wrong",
    [
        {"cache_size": 0},
        {"cache_size": -1},
        {"cache_size": 1.5},
        {"cache_size": True},
        {"cache_bytes": -1},
        {"cache_bytes": 1.5},
        {"similarity_floor": 1.1},
        {"similarity_floor": math.nan},
        {"min_confidence": -0.1},
        {"min_confidence": "high"},
        {"log_queries": None},
        {"expander": 5},
        {"suggester": "phrases"},
    ],
    ids=str,
)
@served()
async def test_a_service_refuses_options_that_cannot_be_used(memory, wrong):
    (field,) = wrong
    with pytest.raises(InvalidArgumentError, match=field):
        AsyncRetrievalService(memory, **wrong)
