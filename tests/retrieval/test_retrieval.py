"""The retrieval service: filters, scores, cache, context, expansion, telemetry."""

import asyncio
import logging
import math
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from mnemic import (
    AsyncMemory,
    ContextItem,
    ContextItemType,
    ContextWindow,
    ExpandedQuery,
    LicenseTier,
    LongTermMemory,
    Memory,
    MemoryFilter,
    MemoryQuery,
    MemorySortOrder,
    MemoryType,
    Recency,
    RecencyCurve,
    RetrievalService,
)
from mnemic.errors import (
    EmbedderRequiredError,
    EmbeddingError,
    EntryNotFoundError,
    InvalidArgumentError,
    LicenseRestrictionError,
)
from mnemic.licensing import DocumentedLicenses
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from mnemic.retrieval import CorpusExpander, LanguageModelExpander, LanguageModelSuggester
from mnemic.retrieval.expansion import terms_of
from mnemic.retrieval.statistics import WINDOW_SIZE, Statistics
from mnemic.sync_bridge import run_sync
from tests.support.clock import DAY, NOON, Clock
from tests.support.embedders import WordEmbedder
from tests.support.retrieval import FixedEmbedder, found, record, serve

QUERY = MemoryQuery.semantic("query")
EVERYTHING = MemoryQuery.filtered({})


def words(**options):
    return {"embedder": WordEmbedder(dimensions=512), **options}


async def store_near(memory, *similarities, **fields):
    """Store memories named by their similarity with the query."""
    near = memory.embedder.near
    texts = [near(f"near {similarity}", similarity) for similarity in similarities]
    return await memory.add_many([record(text, **fields) for text in texts])


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
def test_a_query_sees_only_what_its_filter_lets_through(wanted, fields):
    async def scenario(memory, service):
        near = memory.embedder.near
        others = [record(near(f"other {number}", 0.99), days=9) for number in range(60)]
        given = {"days": 9, **fields}
        matching = record(near("matching", 0.7), **given)
        await memory.add_many([*others, matching])
        result = await service.retrieve(MemoryQuery(query="query", filters=wanted, limit=1))
        assert (found(result), result.total_matches) == (["matching"], 1)

    serve(scenario)


@pytest.mark.requirement("C002", "R161")
def test_excluded_ids_are_never_returned_nor_counted():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C009")
def test_without_a_query_the_similarity_has_no_weight():
    async def scenario(memory, service):
        await memory.add_many([record("old", days=365, importance=0.0), record("new", days=73)])
        result = await service.retrieve(EVERYTHING)
        assert [(one.entry.content, one.relevance_score) for one in result] == [
            ("new", pytest.approx((0.2 * 0.8 + 0.15 * 0.5) / 0.4, abs=1e-6)),
            ("old", pytest.approx(0)),  # below .5, and there all the same
        ]
        floored = MemoryQuery(filters={}, min_relevance=0.1)
        assert found(await service.retrieve(floored)) == ["new"]

    serve(scenario)


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
def test_an_order_that_is_asked_for_stands_in_place_of_the_ranking(order):
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C009")
@pytest.mark.parametrize("order", ORDERS)
def test_the_order_of_a_filter_serves_as_well(order):
    async def scenario(memory, service):
        await memory.add_many(four_to_sort())
        result = await service.retrieve(MemoryQuery.filtered(MemoryFilter(sort_by=order)))
        assert found(result) == ORDERS[order]
        assert found(result) == [
            one.content
            for one in await memory.repository.matching(memory.scope, MemoryFilter(sort_by=order))
        ]

    serve(scenario)


def test_what_is_read_between_two_looks_is_in_the_order_of_accesses_once(monkeypatch):
    async def scenario(memory, service):
        old, *_ = await memory.add_many(four_to_sort())
        repository = memory.repository
        rank = repository.rank

        def once(*given):
            answer = rank(*given)
            monkeypatch.undo()
            row = repository.row_of(memory.scope, old.id)
            repository.record_accesses([row])  # as another thread may
            return answer

        monkeypatch.setattr(repository, "rank", once)
        by_access = MemoryQuery(filters={}, sort_by=MemorySortOrder.ACCESSED_DESCENDING)
        result = await service.retrieve(by_access)
        assert found(result) == ["old", "mid", "read", "new"]
        assert result.total_matches == 4

    serve(scenario)


def test_equal_scores_and_equal_values_go_to_the_newer_then_to_the_smaller_id():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C009")
def test_a_query_is_ranked_whatever_the_filter_sorts_by():
    async def scenario(memory, service):
        await store_near(memory, 0.7, 0.9, 0.8)
        wanted = MemoryFilter(sort_by=MemorySortOrder.CREATED_ASCENDING)
        result = await service.retrieve(MemoryQuery(query="query", filters=wanted))
        assert found(result) == ["near 0.9", "near 0.8", "near 0.7"]

    serve(scenario)


@pytest.mark.requirement("C010")
def test_the_limit_is_that_of_the_query_and_the_offset_comes_after_ranking():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C011")
def test_total_matches_are_all_that_pass_filters_and_floors():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C012")
def test_an_important_memory_far_down_by_similarity_still_wins():
    async def scenario(memory, service):
        near = memory.embedder.near
        many = [record(near(f"m{number}", 0.6), importance=0.0) for number in range(300)]
        await memory.add_many([*many, record(near("important", 0.5), importance=1.0)])
        assert found(await service.retrieve(MemoryQuery(query="query", limit=1))) == ["important"]

    serve(scenario)


# Scores


@pytest.mark.requirement("C008")
def test_a_context_has_its_weight_and_is_part_of_the_total():
    async def scenario(memory, service):
        await memory.add_many([record(memory.embedder.near("one", 0.8, 0.6), days=73)])
        plain = 0.6 * 0.8 + 0.2 * 0.8 + 0.15 * 0.5
        for weight in (0.1, 0.5, 1.0, 0.0):
            query = MemoryQuery(query="query", context_boost="context", context_weight=weight)
            (only,) = await service.retrieve(query)
            expected = (plain + weight * 0.6) / (1 + weight)
            assert only.relevance_score == pytest.approx(expected, abs=1e-6)
        (only,) = await service.retrieve(QUERY)
        assert only.relevance_score == pytest.approx(plain, abs=1e-6)
        assert only.scores.context_boost is None
        alone = MemoryQuery(filters={}, context_boost="context")
        (only,) = await service.retrieve(alone)
        expected = (0.2 * 0.8 + 0.15 * 0.5 + 0.1 * 0.6) / 0.5
        assert only.relevance_score == pytest.approx(expected, abs=1e-6)

    serve(scenario)


@pytest.mark.requirement("C008")
def test_a_context_lifts_nothing_over_the_floor_that_has_nothing_to_do_with_it():
    async def scenario(memory, service):
        near = memory.embedder.near
        # alone .45; with the documented constant .1 it would be .55
        await memory.add_many([record(near("weak", 0.4), days=146, importance=0.6)])
        assert found(await service.retrieve(QUERY)) == []
        boosted = MemoryQuery(query="query", context_boost="context")
        assert found(await service.retrieve(boosted)) == []

    serve(scenario)


@pytest.mark.requirement("C008")
def test_a_context_takes_nothing_from_what_is_its_opposite():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many([record(near("opposite", 0.8, -0.6)), record(near("apart", 0.8))])
        query = MemoryQuery(query="query", context_boost="context", context_weight=0.5)
        result = await service.retrieve(query)
        assert [one.scores.context_boost for one in result] == [0, 0]
        expected = (0.6 * 0.8 + 0.2 + 0.15 * 0.5) / 1.5
        scores = [one.relevance_score for one in result]
        assert scores == pytest.approx([expected, expected], abs=1e-6)

    serve(scenario)


@pytest.mark.requirement("C016", "C140")
@pytest.mark.parametrize(
    ("recency", "expected"),
    [
        (Recency(), (1 - 7 / 365, 1 - 14 / 365)),
        (Recency(RecencyCurve.CREATED_LINEAR, 28), (0.75, 0.5)),
        (Recency(RecencyCurve.CREATED_HALF_LIFE, 7), (0.5, 0.25)),
        (Recency(RecencyCurve.ACCESSED_HALF_LIFE, 7), (0.5, 1.0)),
        (Recency(RecencyCurve.NEWEST_RANK), (1.0, 0.0)),
    ],
    ids=str,
)
def test_recency_has_named_curves(recency, expected):
    async def scenario(memory, service):
        await memory.add_many(
            [
                record("newer", days=7),
                record("older", days=14, access_count=1, last_accessed_at=NOON),
            ]
        )
        result = await service.retrieve(MemoryQuery(filters={}, recency=recency))
        scores = {one.entry.content: one.scores.recency for one in result}
        assert (scores["newer"], scores["older"]) == pytest.approx(expected)

    serve(scenario)


@pytest.mark.requirement("C017")
def test_accesses_that_were_counted_raise_a_memory():
    async def scenario(memory, service):
        one, _ = await memory.add_many([record("read", days=1), record("unread", days=0)])
        by_access = MemoryQuery(filters={}, use_cache=False)
        assert found(await service.retrieve(by_access)) == ["unread", "read"]
        for _ in range(9):
            await memory.get(one.id)
        first = (await service.retrieve(by_access))[0]
        assert first.entry.content == "read"
        assert first.scores.access_frequency == pytest.approx(1 / 3)

    serve(scenario)


class Adding:
    """An expander that always adds the same terms."""

    def __init__(self, *terms, confidence=0.9):
        self.terms, self.confidence = terms, confidence

    async def expand(self, query, ask):  # noqa: ARG002 - the contract
        return ExpandedQuery(
            original=query,
            expanded=" ".join([query, *self.terms]),
            added_terms=self.terms,
            confidence=self.confidence,
        )


@pytest.mark.requirement("C024")
def test_the_nearer_of_query_and_expansion_counts():
    async def scenario(memory, service):
        embedder = memory.embedder
        embedder.vectors |= {
            "query more": (0, 0, 1, 0),
            "asked": (0.9, 0, math.sqrt(0.19), 0),
            "added": (0, 0.6, 0.8, 0),
        }
        await memory.add_many([record("asked"), record("added")])
        plain = await service.retrieve(QUERY)
        embedder.texts.clear()
        both = await service.retrieve(MemoryQuery(query="query", expand_query=True))
        assert found(plain) == ["asked"]
        assert found(both) == ["asked", "added"]
        assert [one.scores.similarity for one in both] == pytest.approx([0.9, 0.8], abs=1e-6)
        assert both[0] == plain[0]  # nothing that the plain query finds is worth less
        assert sorted(embedder.texts) == ["query", "query more"]

    serve(scenario, expander=Adding("more"))


@pytest.mark.requirement("C151")
def test_an_embedder_with_a_floor_of_its_own_sets_the_floor_alone():
    async def scenario(memory, service):
        await store_near(memory, 0.21, 0.19, days=365, importance=0.0)
        assert found(await service.retrieve(QUERY)) == ["near 0.21"]  # scores .126
        named = MemoryQuery(query="query", min_relevance=0.13)
        assert found(await service.retrieve(named)) == []
        given = RetrievalService(memory, similarity_floor=0.1)
        assert found(await given.retrieve(QUERY)) == ["near 0.21", "near 0.19"]

    serve(scenario, memory={"embedder": FixedEmbedder(floor=0.2)})


def test_a_fused_query_is_embedded_once():
    async def scenario(memory, service):
        await memory.add("the red sofa")
        texts = memory.embedder.texts
        for query, expected in (
            (MemoryQuery(query="sofa", search_type="hybrid"), ["sofa"]),
            (
                MemoryQuery(query="tea", search_type="hybrid", context_boost="noon"),
                ["tea", "noon"],
            ),
            (MemoryQuery(query="tea", search_type="keyword", context_boost="noon"), ["noon"]),
            (MemoryQuery(query="tea", search_type="keyword"), []),
        ):
            texts.clear()
            await service.retrieve(query)
            assert texts == expected

    serve(scenario, memory=words())


def test_words_are_searched_without_floors_and_without_an_embedder():
    async def scenario(memory, service):
        await memory.add_many(["a red sofa", "ferries leave at noon"])
        query = MemoryQuery(query="sofa", search_type="keyword")
        (only,) = await service.retrieve(query)
        assert only.entry.content == "a red sofa"
        assert only.scores.keyword > 0
        assert only.scores.similarity is None
        for refused in ({"query": "sofa"}, {"filters": {}, "context_boost": "x"}):
            with pytest.raises(EmbedderRequiredError):
                await service.retrieve(MemoryQuery(**refused))
        with pytest.raises(EmbedderRequiredError):
            await service.find_similar(only.entry.id)
        assert len(await service.retrieve(EVERYTHING)) == 2
        assert (await service.expand_query("sofa")).original == "sofa"

    serve(scenario, memory={"embedder": None})


# The cache

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
def test_every_field_that_decides_the_answer_is_part_of_the_key(changed):
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C003")
def test_equal_queries_share_an_answer_whatever_objects_they_are():
    async def scenario(memory, service):
        await store_near(memory, 0.9)

        def query():
            return MemoryQuery(
                query="que" + "ry",
                filters=MemoryFilter(tags=(), types=["fact"], where={"importance": {"in": [0.5]}}),
                exclude_ids=[UUID(int=5)],
                cache_ttl=timedelta(minutes=9),
            )

        assert (await service.retrieve(query())).from_cache is False
        assert (await service.retrieve(query())).from_cache is True

    serve(scenario)


@pytest.mark.requirement("C003")
def test_true_and_one_are_different_filters():
    async def scenario(memory, service):
        await memory.add_many(
            [record("flag", metadata={"x": True}), record("number", metadata={"x": 1})]
        )
        for value, content in ((True, "flag"), (1, "number"), (True, "flag"), (1.0, "number")):
            result = await service.retrieve(MemoryQuery.filtered({"metadata.x": value}))
            assert found(result) == [content]

    serve(scenario)


@pytest.mark.requirement("C004")
def test_agents_and_users_do_not_share_answers(tmp_path):
    async def scenario():
        embedder = FixedEmbedder()
        options = {"embedder": embedder, "clock": Clock()}
        path = tmp_path / "a.db"
        async with (
            await AsyncMemory.open(path, "aide", **options) as aide,
            await AsyncMemory.open(path, "brief", **options) as brief,
        ):
            await aide.add(embedder.near("of nobody", 0.9))
            await aide.add(embedder.near("of alice", 0.9), user_id="alice", project_id="p")
            await aide.add(embedder.near("of boris", 0.9), user_id="boris")
            await brief.add(embedder.near("of the other agent", 0.9))
            service, other = RetrievalService(aide), RetrievalService(brief)
            alice = RetrievalService(aide.scoped(user_id="alice"))
            for query in (QUERY, EVERYTHING):
                for _ in range(2):
                    assert found(await service.retrieve(query)) == ["of nobody"]
                    assert found(await service.retrieve(query, user_id="alice")) == ["of alice"]
                    assert found(await service.retrieve(query, user_id="boris")) == ["of boris"]
                    assert found(await service.retrieve(query, user_id="nobody")) == []
                    assert len(await service.retrieve(query, all_users=True)) == 3
                    assert found(await other.retrieve(query)) == ["of the other agent"]
                    assert found(await alice.retrieve(query)) == ["of alice"]
                    in_project = await aide.retrieve(query, user_id="alice", project_id="q")
                    assert found(in_project) == []
            with pytest.raises(InvalidArgumentError):
                await alice.retrieve(QUERY, user_id="boris")
            with pytest.raises(InvalidArgumentError):
                await alice.retrieve(QUERY, all_users=True)
            with pytest.raises(InvalidArgumentError):
                await service.retrieve(QUERY, user_id="alice", all_users=True)

    asyncio.run(scenario())


@pytest.mark.requirement("C005")
def test_what_is_written_is_seen_at_once_by_whoever_wrote_it(tmp_path):
    path = tmp_path / "a.db"

    async def scenario(memory, service):
        embedder = memory.embedder
        (one,) = await store_near(memory, 0.9)

        async def contents():
            for query in (QUERY, EVERYTHING):
                await service.retrieve(query)
            answers = [await service.retrieve(query) for query in (QUERY, EVERYTHING)]
            assert all(answer.from_cache for answer in answers)
            assert set(found(answers[0])) == set(found(answers[1]))
            return found(answers[0])

        async with await AsyncMemory.open(
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


@pytest.mark.requirement("C005")
def test_what_expires_leaves_the_cache_and_another_takes_its_place():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many(
            [
                record(near("brief", 0.9), expires_at=NOON + timedelta(seconds=60)),
                record(near("lasting", 0.8)),
            ]
        )
        query = MemoryQuery(query="query", limit=1)
        assert found(await service.retrieve(query)) == ["brief"]
        assert (await service.retrieve(query)).from_cache
        memory.repository.now.now += timedelta(seconds=60)
        result = await service.retrieve(query)
        assert found(result) == ["lasting"]
        assert result.total_matches == 1
        assert (await service.retrieve(query)).from_cache

    serve(scenario)


@pytest.mark.requirement("C005", "C011")
def test_what_expires_beyond_the_limit_is_no_longer_counted():
    async def scenario(memory, service):
        near = memory.embedder.near
        brief = NOON + timedelta(seconds=60)
        await memory.add_many(
            [record(near("best", 0.9)), record(near("brief", 0.8), expires_at=brief)]
        )
        query = MemoryQuery(query="query", limit=1)
        assert (await service.retrieve(query)).total_matches == 2
        memory.repository.now.now = brief
        assert (await service.retrieve(query)).total_matches == 1

    serve(scenario)


@pytest.mark.requirement("C005", "C011")
def test_what_expires_is_known_of_though_nothing_was_searched_before(tmp_path):
    path = tmp_path / "agent.db"

    async def scenario(memory, service):
        brief = NOON + timedelta(seconds=60)
        with Memory(path, "aide", embedder=None, clock=Clock()) as other:
            other.add_many([record("best", importance=1.0), record("brief", expires_at=brief)])
        query = MemoryQuery(filters={}, limit=1)
        assert (await service.retrieve(query)).total_matches == 2
        assert (await service.retrieve(query)).from_cache
        memory.repository.now.now = brief
        assert (await service.retrieve(query)).total_matches == 1

    serve(scenario, path=path, memory={"embedder": None})


@pytest.mark.requirement("C007")
def test_the_license_is_looked_at_before_the_cache():
    async def scenario(memory, service):
        (one,) = await store_near(memory, 0.9)
        await service.retrieve(QUERY)
        await service.retrieve(EVERYTHING)
        memory.repository.license = DocumentedLicenses(LicenseTier.WRITER_PRO)
        with pytest.raises(LicenseRestrictionError):
            await service.retrieve(QUERY)
        assert found(await service.retrieve(EVERYTHING)) == ["near 0.9"]
        memory.repository.license = DocumentedLicenses(LicenseTier.CORE)
        for call in (service.retrieve(EVERYTHING), service.find_similar(one.id)):
            with pytest.raises(LicenseRestrictionError):
                await call
        assert (await service.get_stats()).total_retrievals == 3  # what was refused is not counted

    serve(scenario)


@pytest.mark.requirement("C028")
def test_the_cache_holds_no_contents():
    async def scenario(memory, service):
        await memory.add(memory.embedder.near("a secret text", 0.9), sensitive=True)
        await memory.add(memory.embedder.near("an open text", 0.9))
        assert len(await service.retrieve(QUERY)) == 2
        kept = [list(each.answers.values()) for each in service._engine._cache._scopes.values()]
        assert len(kept[0]) == len(kept) == 1
        assert " text" not in repr(kept)

    serve(scenario)


@pytest.mark.requirement("C029")
def test_what_a_caller_does_to_an_answer_does_not_reach_the_next_one():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C158")
def test_accesses_leave_answers_in_the_cache():
    async def scenario(memory, service):
        stored = await store_near(memory, 0.9, 0.8)
        await service.retrieve(QUERY)
        for _ in range(3):
            await memory.touch([one.id for one in stored])
            await memory.repository.write_accesses()
            result = await service.retrieve(QUERY)
            assert result.from_cache
        assert [one.entry.access_count for one in result] == [3, 3]  # contents are read anew

    serve(scenario)


@pytest.mark.requirement("C090")
@pytest.mark.parametrize("use_cache", [True, False])
def test_every_memory_that_is_returned_is_accessed_once_whatever_was_kept(use_cache):
    async def scenario(memory, service):
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
        limited = MemoryQuery(
            query="query", min_relevance=0, limit=1, filters=MemoryFilter(offset=1)
        )
        await service.retrieve(limited)
        await service.find_similar(stored[0].id, limit=1)
        assert await counts(memory, stored) == [3, 5, 0]

    serve(scenario, track_access=True)


async def counts(memory, stored):
    """Return how often each was accessed."""
    page = await memory.list(include_deleted=True)
    count_of = {one.id: one.access_count for one in page}
    return [count_of[one.id] for one in stored]


def test_accesses_are_not_counted_where_nobody_wants_them():
    async def scenario(memory, service):
        stored = await store_near(memory, 0.9)
        await service.retrieve(QUERY)
        await memory.retrieve(QUERY)
        assert await counts(memory, stored) == [0]

    serve(scenario, track_access=True, memory={"track_access": False})


@pytest.mark.requirement("R158")
def test_a_query_may_leave_the_cache_alone():
    async def scenario(memory, service):
        await store_near(memory, 0.9)
        fresh = MemoryQuery(query="query", use_cache=False)
        for _ in range(3):
            assert (await service.retrieve(fresh)).from_cache is False
        assert (await service.retrieve(QUERY)).from_cache is False  # and nothing was kept
        assert (await service.retrieve(fresh)).from_cache is False
        assert (await service.retrieve(QUERY)).from_cache is True

    serve(scenario)


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
def test_a_service_refuses_options_that_cannot_be_used(wrong):
    async def scenario(memory, _):
        (field,) = wrong
        with pytest.raises(InvalidArgumentError, match=field):
            RetrievalService(memory, **wrong)

    serve(scenario)


# Concurrent identical queries


class Gated(FixedEmbedder):
    """An embedder that lets the query wait."""

    def __init__(self):
        super().__init__()
        self.asked, self.gate = threading.Event(), threading.Event()
        self.queries, self.error = 0, None

    def embed(self, texts):
        if "query" in texts:
            self.queries += 1
            self.asked.set()
            assert self.gate.wait(30)
            if self.error is not None:
                raise self.error
        return super().embed(texts)


async def until(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came about")


def test_tasks_that_ask_the_same_at_once_embed_once():
    async def scenario(memory, service):
        await store_near(memory, 0.9)
        embedder = memory.embedder
        tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(20)]
        await until(embedder.asked.is_set)
        await asyncio.sleep(0.05)
        embedder.gate.set()
        results = await asyncio.gather(*tasks)
        assert embedder.queries == 1
        assert {tuple(found(result)) for result in results} == {("near 0.9",)}
        assert sum(not result.from_cache for result in results) == 1
        stats = await service.get_stats()
        assert stats.total_retrievals == 20
        # Whoever was answered from what another one made has found an answer.
        assert stats.cache_hit_rate == pytest.approx(95)

    serve(scenario, memory={"embedder": Gated()})


def test_threads_that_ask_the_same_at_once_embed_once():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        with ThreadPoolExecutor(8) as pool:
            asked = [pool.submit(memory.retrieve, QUERY) for _ in range(8)]
            assert embedder.asked.wait(30)
            time.sleep(0.1)
            embedder.gate.set()
            results = [each.result(30) for each in asked]
    assert embedder.queries == 1
    assert {tuple(found(result)) for result in results} == {("one",)}
    assert sum(not result.from_cache for result in results) == 1


def test_where_the_first_is_cancelled_another_makes_the_answer():
    async def scenario(memory, service):
        await store_near(memory, 0.9)
        embedder = memory.embedder
        tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
        await until(embedder.asked.is_set)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        embedder.gate.set()
        results = await asyncio.gather(*tasks[1:])
        assert {tuple(found(result)) for result in results} == {("near 0.9",)}
        assert embedder.queries == 2
        assert service._engine._cache._computing == {}
        assert (await service.retrieve(QUERY)).from_cache

    serve(scenario, memory={"embedder": Gated()})


def test_where_one_who_waits_is_cancelled_the_others_get_the_answer():
    async def scenario(memory, service):
        await store_near(memory, 0.9)
        embedder = memory.embedder
        tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
        await until(embedder.asked.is_set)
        for task in tasks[1:4]:
            task.cancel()
        await asyncio.sleep(0.05)
        embedder.gate.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(one, asyncio.CancelledError) for one in outcomes] == [
            False,
            True,
            True,
            True,
            False,
        ]
        assert found(outcomes[0]) == found(outcomes[4]) == ["near 0.9"]
        assert embedder.queries == 1

    serve(scenario, memory={"embedder": Gated()})


@pytest.mark.requirement("C150")
def test_where_the_first_fails_all_fail_and_nothing_is_kept():
    async def scenario(memory, service):
        await store_near(memory, 0.9)
        embedder = memory.embedder
        embedder.error = RuntimeError("no model")
        tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
        await until(embedder.asked.is_set)
        await asyncio.sleep(0.05)
        embedder.gate.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(outcome, EmbeddingError) for outcome in outcomes)
        assert service._engine._cache._computing == {}
        assert (await service.get_stats()).total_retrievals == 0
        embedder.error = None
        assert found(await service.retrieve(QUERY)) == ["near 0.9"]

    serve(scenario, memory={"embedder": Gated()})


def test_a_plain_call_in_the_loop_of_a_task_that_asks_the_same_does_not_wait_for_it():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        service = RetrievalService(memory)

        async def main():
            task = asyncio.create_task(service.retrieve(QUERY))
            await until(embedder.asked.is_set)
            threading.Timer(0.1, embedder.gate.set).start()
            plain = memory._services
            plain._retrieval_engine = service._engine  # the same cache at both doors
            assert found(memory.retrieve(QUERY)) == ["one"]
            assert found(await task) == ["one"]
            assert memory.retrieve(QUERY).from_cache

        asyncio.run(asyncio.wait_for(main(), 30))


def test_a_plain_call_waits_for_one_of_another_thread_and_a_task_for_both():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        service = RetrievalService(memory)
        memory._services._retrieval_engine = service._engine
        with ThreadPoolExecutor(2) as pool:

            async def main():
                plain = [pool.submit(memory.retrieve, QUERY) for _ in range(2)]
                await until(embedder.asked.is_set)
                task = asyncio.create_task(service.retrieve(QUERY))
                await asyncio.sleep(0.05)
                embedder.gate.set()
                assert found(await task) == ["one"]
                assert [found(each.result(30)) for each in plain] == [["one"], ["one"]]

            asyncio.run(asyncio.wait_for(main(), 30))
    assert embedder.queries == 1


def test_two_loops_that_ask_the_same_at_once_share_the_answer():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        service = RetrievalService(memory)

        def in_a_loop():
            return asyncio.run(asyncio.wait_for(service.retrieve(QUERY), 30))

        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(in_a_loop) for _ in range(4)]
            assert embedder.asked.wait(30)
            time.sleep(0.1)
            embedder.gate.set()
            assert [found(each.result(30)) for each in asked] == [["one"]] * 4
    assert embedder.queries == 1


def test_a_call_left_behind_in_a_closed_loop_is_not_waited_for():
    embedder = Gated()
    with Memory(":memory:", "aide", embedder=embedder, clock=Clock()) as memory:
        memory.add(embedder.near("one", 0.9))
        service = RetrievalService(memory)
        loop = asyncio.new_event_loop()
        left = loop.create_task(service.retrieve(QUERY))
        loop.run_until_complete(until(embedder.asked.is_set))
        loop.close()
        embedder.gate.set()
        assert not left.done()
        assert found(asyncio.run(asyncio.wait_for(service.retrieve(QUERY), 5))) == ["one"]


@pytest.mark.requirement("C006")
def test_hits_are_told_alike_in_results_statistics_events_and_logs(caplog):
    caplog.set_level(logging.DEBUG, "mnemic.retrieval")

    async def scenario(memory, service):
        heard = []
        memory.events.subscribe(MemoryRetrievalCompletedEvent, heard.append)
        await store_near(memory, 0.9)
        tasks = [asyncio.create_task(service.retrieve(QUERY)) for _ in range(5)]
        await until(memory.embedder.asked.is_set)
        await asyncio.sleep(0.05)
        memory.embedder.gate.set()
        await asyncio.gather(*tasks)
        hits = sum(event.from_cache for event in heard)
        assert hits == 4
        assert caplog.text.count("Cache hit for retrieval query") == hits
        assert (await service.get_stats()).cache_hit_rate == pytest.approx(80)

    serve(scenario, memory={"embedder": Gated()})


# Context augmentation


def talk(window, tokens, **fields):
    given = {"type": ContextItemType.USER_MESSAGE, "token_count": tokens, **fields}
    return window.add(ContextItem(content="said before", **given))


@pytest.mark.requirement("C020")
def test_augmentation_never_evicts_the_conversation():
    async def scenario(memory, service):
        near = memory.embedder.near
        texts = [near(f"m{number} " + "word " * 40, 0.9) for number in range(20)]
        await memory.add_many([record(text, importance=1.0) for text in texts])
        window = ContextWindow(1000)
        said = [talk(window, 100, priority=1) for _ in range(6)]
        added = await service.retrieve_to_context(MemoryQuery(query="query", limit=20), window)
        assert 0 < added < 20
        assert [window.get(item.id) for item in said] == said
        assert window.current_tokens <= 850  # the threshold
        assert window.stats().compactions == 0

    serve(scenario)


@pytest.mark.requirement("C019")
def test_what_does_not_fit_is_passed_over_and_smaller_memories_are_added():
    async def scenario(memory, service):
        near = memory.embedder.near
        long, short = near("long " * 200, 0.9), near("short one", 0.8)
        await memory.add_many([record(long), record(short)])
        window = ContextWindow(100)
        assert await service.retrieve_to_context(QUERY, window) == 1
        assert [item.content for item in window.items()] == [short]

    serve(scenario)


@pytest.mark.requirement("C021")
def test_a_memory_is_in_the_window_once_and_its_priority_rises_only():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C021")
def test_in_a_full_window_the_priority_of_a_memory_still_rises():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("C028")
def test_sensitive_memories_are_added_only_if_asked_for():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many([record(near("secret", 0.9), sensitive=True), record(near("x", 0.8))])
        window = ContextWindow(1000)
        assert len(await service.retrieve(QUERY)) == 2
        assert await service.retrieve_to_context(QUERY, window) == 1
        assert [item.content for item in window.items()] == ["x"]
        assert await memory.retrieve_to_context(QUERY, window, include_sensitive=True) == 1
        assert {item.content for item in window.items()} == {"x", "secret"}

    serve(scenario)


@pytest.mark.requirement("C028")
@pytest.mark.parametrize(
    "filters",
    [
        None,
        {"category": "x"},
        {"category": "x", "sensitive": {"in": [True, False]}},
        MemoryFilter(where={"category": "x"}),
        MemoryFilter(),
    ],
    ids=str,
)
def test_sensitive_memories_take_no_other_place_in_a_window(filters):
    async def scenario(memory, service):
        near = memory.embedder.near
        secrets = [record(near(f"secret {at}", 0.9), sensitive=True) for at in range(3)]
        await memory.add_many([*secrets, record(near("open", 0.8), category="x")])
        query, window = MemoryQuery(query="query", filters=filters, limit=3), ContextWindow(1000)
        assert await service.retrieve_to_context(query, window) == 1
        assert [item.content for item in window.items()] == ["open"]
        only = MemoryQuery(query="query", filters={"sensitive": True})
        assert await service.retrieve_to_context(only, window) == 0
        with pytest.raises(InvalidArgumentError, match="MemoryQuery"):
            await service.retrieve_to_context("query", window)

    serve(scenario)


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


def test_only_true_and_false_open_what_is_closed():
    async def scenario(memory, service):
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

    serve(scenario)


# Similar memories


def test_similar_memories_come_by_similarity_without_the_reference_and_without_embedding():
    async def scenario(memory, service):
        near = memory.embedder.near
        reference = record("query", days=3)
        await memory.add_many(
            [
                reference,
                record(near("half", 0.5), importance=1.0),
                record(near("near", 0.9), days=300, importance=0.0),
                record(near("opposite", -0.9)),
                record("of another", user="alice"),
            ]
        )
        memory.embedder.texts.clear()
        similar = await service.find_similar(reference.id)
        assert memory.embedder.texts == []
        assert [(hit.entry.content, hit.rank) for hit in similar] == [
            ("near", 1),
            ("half", 2),
            ("opposite", 3),
        ]
        assert [hit.similarity for hit in similar] == pytest.approx([0.9, 0.5, 0], abs=1e-6)
        assert await service.find_similar(str(reference.id), 1) == similar[:1]

    serve(scenario)


@pytest.mark.requirement("C027")
def test_nothing_is_similar_to_a_memory_that_is_not_there():
    async def scenario(memory, service):
        (gone, near) = await store_near(memory, 0.9, 0.8)
        (of_alice,) = await memory.add_many([record("of alice", user="alice")])
        (brief,) = await memory.add_many([record("brief", expires_at=NOON + DAY)])
        await memory.delete(gone.id)
        memory.repository.now.now += 2 * DAY
        for missing in (uuid4(), gone.id, of_alice.id, brief.id):
            with pytest.raises(EntryNotFoundError) as unknown:
                await service.find_similar(missing)
            assert isinstance(unknown.value, KeyError)
            assert await service.find_similar(missing, strict=False) == []
        with pytest.raises(EntryNotFoundError):
            await service.find_similar(gone.id, user_id="alice")
        assert await service.find_similar(of_alice.id, user_id="alice") == []
        everybody = await service.find_similar(of_alice.id, all_users=True)
        assert [hit.entry.content for hit in everybody] == ["near 0.8"]
        for wrong in ("no id", None, 3):
            with pytest.raises(InvalidArgumentError):
                await service.find_similar(wrong)
        for limit in (0, 1001, True, None):
            with pytest.raises(InvalidArgumentError, match="limit"):
                await service.find_similar(of_alice.id, limit)
        for excluded in (5, "near", [5]):
            with pytest.raises(InvalidArgumentError):
                await service.find_similar(near.id, exclude_ids=excluded)
        assert await service.find_similar(near.id, exclude_ids=None) == []
        with pytest.raises(InvalidArgumentError, match="strict"):
            await service.find_similar(near.id, strict="no")

    serve(scenario)


# Expansion and suggestions


class Scripted:
    """A language model that answers what was written down, and keeps what it was asked."""

    model = "scripted"

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    async def complete(self, prompt, *, system=None):
        await asyncio.sleep(0)
        self.asked.append((prompt, system))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_the_offline_expander_adds_words_of_what_matches():
    async def scenario(memory, service):
        await memory.add_many(
            [
                "the ferry to Tromsø leaves from quay seven",
                *(f"note {number} on something else entirely" for number in range(20)),
            ]
        )
        expansion = await service.expand_query("ferry")
        assert expansion.original == "ferry"
        assert expansion.expanded == " ".join(["ferry", *expansion.added_terms])
        assert {"quay", "seven"} & set(expansion.added_terms)
        assert "ferry" not in expansion.added_terms
        assert 0.5 <= expansion.confidence <= 1

    serve(scenario, memory=words())


def test_the_offline_expander_is_unsure_where_nothing_matches():
    async def scenario(_, service):
        expansion = await service.expand_query("ferry")
        assert (expansion.expanded, expansion.added_terms) == ("ferry", ())
        assert expansion.confidence < 0.5

    serve(scenario, memory=words())


def test_expansion_sees_only_the_memories_of_the_scope():
    async def scenario(memory, service):
        await memory.add("the ferry leaves from quay seven", user_id="alice")
        await memory.add("the ferry costs much", user_id="boris")
        for user, wanted, other in (("alice", "quay", "costs"), ("boris", "costs", "quay")):
            terms = (await service.expand_query("ferry", user_id=user)).added_terms
            assert wanted in terms
            assert other not in terms
        assert (await service.expand_query("ferry")).added_terms == ()

    serve(scenario, memory=words())


@pytest.mark.requirement("C028")
def test_words_of_sensitive_memories_are_not_added_to_queries():
    async def scenario(memory, service):
        await memory.add("the ferry password is swordfish", sensitive=True)
        await memory.add("the ferry leaves from quay seven")
        expansion = await service.expand_query("ferry")
        assert "quay" in expansion.added_terms
        assert "swordfish" not in expansion.expanded

    serve(scenario, memory=words())


def test_an_abbreviation_is_spelled_out():
    async def scenario(_, service):
        expansion = await service.expand_query("which DB?")
        assert expansion.added_terms[0] == "database"
        assert expansion.confidence >= 0.5

    serve(scenario, memory=words())
    own = CorpusExpander(abbreviations={"zq": "zebra quartet"}, terms=0)

    async def with_own(_, service):
        assert (await service.expand_query("zq")).expanded == "zq zebra quartet"
        assert (await service.expand_query("db")).added_terms == ()

    serve(with_own, memory=words(), expander=own)


def test_an_ordinary_word_is_no_abbreviation():
    async def scenario(_, service):
        expansion = await service.expand_query("how much rest after surgery?")
        assert expansion.added_terms == ()

    serve(scenario, memory=words())


def test_a_language_model_expands():
    llm = Scripted("1. couch\n- settee\n* Sofa\n\ncouch, divan", "", RuntimeError("down"))

    async def scenario(_, service):
        expansion = await service.expand_query("red sofa")
        assert expansion.added_terms == ("couch", "settee", "divan")
        assert expansion.expanded == "red sofa couch settee divan"
        ((prompt, system),) = llm.asked
        assert prompt == "red sofa"
        assert system
        nothing = await service.expand_query("red sofa")
        assert (nothing.added_terms, nothing.expanded) == ((), "red sofa")
        broken = await service.expand_query("red sofa")
        assert (broken.added_terms, broken.expanded, broken.failed) == ((), "red sofa", True)
        assert not nothing.failed

    serve(scenario, memory=words(), expander=LanguageModelExpander(llm))


class Giving:
    """An expander and suggester that gives or raises what it is told to."""

    def __init__(self, given):
        self.given, self.asked = given, 0

    async def expand(self, query, ask):  # noqa: ARG002 - the contract
        return self._give()

    async def suggest(self, context, limit, ask):  # noqa: ARG002 - the contract
        return self._give()

    def _give(self):
        self.asked += 1
        if isinstance(self.given, BaseException):
            raise self.given
        return self.given() if callable(self.given) else self.given


def unsure(confidence):
    return ExpandedQuery(
        original="query", expanded="query x", added_terms=("x",), confidence=confidence
    )


FAILURES = {
    "raises": RuntimeError("the secret query"),
    "times out": TimeoutError(),
    "too sure": lambda: unsure(7),
    "not a number": lambda: unsure(math.nan),
    "no expansion": "query x",
    "nothing": None,
}


@pytest.mark.parametrize("given", FAILURES.values(), ids=FAILURES)
def test_where_an_expander_fails_the_query_is_answered_as_it_was_asked(given, caplog):
    caplog.set_level(logging.DEBUG, "mnemic")
    expander = Giving(given)

    async def scenario(memory, service):
        await store_near(memory, 0.9, 0.8)
        plain = await service.retrieve(QUERY)
        query = MemoryQuery(query="query", expand_query=True)
        result = await service.retrieve(query)
        assert (result.results, result.total_matches) == (plain.results, plain.total_matches)
        assert (result.expansion_failed, result.expanded_query) == (True, None)
        assert not plain.expansion_failed
        expansion = await service.expand_query("query")
        assert expansion == ExpandedQuery(
            original="query", expanded="query", added_terms=(), confidence=0.0, failed=True
        )
        # and the next call tries again
        expander.given = lambda: unsure(0.9)
        again = await service.retrieve(query)
        assert (again.from_cache, again.expanded_query) == (False, "query x")
        assert not again.expansion_failed
        assert (await service.retrieve(query)).from_cache

    serve(scenario, expander=expander, log_queries=False)
    told = [one for one in caplog.records if "expansion failed" in one.message]
    assert [one.levelno for one in told] == [logging.WARNING] * 2
    assert "secret" not in caplog.text


@pytest.mark.parametrize("given", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)])
def test_what_ends_a_call_is_no_failure_of_an_expander_or_suggester(given):
    giving = Giving(given)
    with Memory(":memory:", "aide", embedder=FixedEmbedder(), clock=Clock()) as memory:
        memory.add("one")
        service = RetrievalService(memory, expander=giving, suggester=giving)
        query = MemoryQuery(query="query", expand_query=True)
        for call in (
            lambda: service.retrieve(query),
            lambda: service.expand_query("query"),
            lambda: service.suggest_queries("one"),
        ):
            with pytest.raises(type(given)):
                run_sync(call())


def test_those_who_wait_for_an_answer_whose_expansion_fails_get_it_too():
    expander = Giving(RuntimeError("down"))

    async def scenario(memory, service):
        await store_near(memory, 0.9)
        query = MemoryQuery(query="query", expand_query=True)
        tasks = [asyncio.create_task(service.retrieve(query)) for _ in range(5)]
        await until(memory.embedder.asked.is_set)
        await asyncio.sleep(0.05)
        memory.embedder.gate.set()
        for result in await asyncio.gather(*tasks):
            assert (found(result), result.expansion_failed) == (["near 0.9"], True)
        assert expander.asked == 1

    serve(scenario, expander=expander, memory={"embedder": Gated()})


@pytest.mark.parametrize(
    "given", [RuntimeError("a secret"), "one text", [3], None, ["lone \ud800"]], ids=str
)
def test_where_a_suggester_fails_nothing_is_suggested(given, caplog):
    async def scenario(_, service):
        suggested = await service.suggest_queries("one thing and another")
        assert (suggested, suggested.failed) == ([], True)

    serve(scenario, suggester=Giving(given))
    assert "Suggesting queries failed" in caplog.text
    assert "secret" not in caplog.text


def test_suggestions_say_that_nothing_failed_and_are_no_more_than_asked_for():
    async def scenario(_, service):
        suggested = await service.suggest_queries("one thing", limit=2)
        assert (suggested, suggested.failed) == (["a", "b"], False)
        copied = pickle.loads(pickle.dumps(suggested))  # noqa: S301 - our own
        assert (copied, copied.failed) == (suggested, False)

    serve(scenario, suggester=Giving(["a", "b", "c"]))


@pytest.mark.parametrize(
    ("query", "answer", "added"),
    [
        ("cartography of spain", "art\nmap", ["art", "map"]),
        ("red sofa", "sofa\nred sofa\nsofa red", ["sofa red"]),
        ("red sofa", "Sofa.\nred-sofa", ["red-sofa"]),
        ("concatenate", "cat\nCAT\ncat flap\nflap", ["cat", "cat flap"]),
        ("C# code", "C\nC#\nC++", ["C", "C++"]),
        ("stra\u00dfe", "STRASSE\nstrasse 5", ["strasse 5"]),
        ("tea", "...\n-\n", []),
    ],
)
def test_terms_are_compared_word_by_word_with_those_of_the_query(query, answer, added):
    assert terms_of(answer, query) == added


@pytest.mark.parametrize("confidence", [7, -0.1, math.nan, math.inf, True, "high", None])
def test_a_confidence_is_a_number_from_0_to_1_wherever_it_is_given(confidence):
    for make in (
        lambda: unsure(confidence),
        lambda: LanguageModelExpander(Scripted(), confidence=confidence),
    ):
        with pytest.raises(InvalidArgumentError, match="confidence"):
            make()


def test_expanders_and_suggesters_refuse_what_they_cannot_use():
    for make in (
        lambda: LanguageModelExpander(5),
        lambda: LanguageModelSuggester(5),
        lambda: LanguageModelExpander(Scripted(), terms=-1),
        lambda: CorpusExpander(terms=1.5),
    ):
        with pytest.raises(InvalidArgumentError):
            make()


def test_a_language_model_expands_a_retrieval_at_the_plain_door():
    llm = Scripted("couch")
    with Memory(":memory:", "aide", embedder=WordEmbedder(512)) as memory:
        memory.add("couch")
        service = RetrievalService(memory, expander=LanguageModelExpander(llm))
        memory._services._retrieval_engine = service._engine
        result = memory.retrieve(MemoryQuery(query="sofa", expand_query=True, min_relevance=0))
        assert found(result) == ["couch"]
        assert result.expanded_query == "sofa couch"


@pytest.mark.requirement("C023")
def test_the_confidence_that_is_needed_can_be_set():
    async def scenario(memory, _):
        for least, terms in ((0.6, ("more",)), (0.61, ())):
            service = RetrievalService(
                memory, expander=Adding("more", confidence=0.6), min_confidence=least
            )
            assert (await service.expand_query("query")).added_terms == terms

    serve(scenario)


def test_suggestions_are_phrases_that_memories_know_of():
    async def scenario(memory, service):
        await memory.add_many(
            ["the ferry leaves from quay seven", "the red sofa was bought", "tea at noon"]
        )
        context = "hello! we talked about the red sofa. when does the ferry leave? and zeppelins?"
        suggested = await service.suggest_queries(context)
        assert any("ferry" in phrase for phrase in suggested)
        assert any("sofa" in phrase for phrase in suggested)
        assert not any("zeppelin" in phrase for phrase in suggested)
        assert len(suggested) == len(set(suggested))
        assert await service.suggest_queries(context, limit=1) == suggested[:1]
        assert await service.suggest_queries("") == []
        assert await service.suggest_queries(" \n") == []
        assert await service.suggest_queries("zeppelins zoom") == []
        for wrong in (None, 3, b"x"):
            with pytest.raises(InvalidArgumentError, match="conversation_context"):
                await service.suggest_queries(wrong)
        with pytest.raises(InvalidArgumentError, match=r"conversation_context .* surrogate"):
            await service.suggest_queries("the red sofa \ud800")
        for limit in (0, 1001, True):
            with pytest.raises(InvalidArgumentError, match="limit"):
                await service.suggest_queries(context, limit=limit)

    serve(scenario, memory=words())


def test_a_language_model_suggests_and_phrases_serve_where_it_is_silent():
    llm = Scripted("1. When does the ferry leave?\n- Which quay?\n- Which quay?\nMore?", " \n")

    async def scenario(memory, service):
        await memory.add("the ferry leaves from quay seven")
        suggested = await service.suggest_queries("about the ferry", limit=2)
        assert suggested == ["When does the ferry leave?", "Which quay?"]
        assert llm.asked[0][0] == "about the ferry"
        silent = await service.suggest_queries("about the ferry", limit=2)
        assert silent
        assert all("ferry" in phrase for phrase in silent)

    serve(scenario, memory=words(), suggester=LanguageModelSuggester(llm))


def test_a_suggested_question_keeps_the_number_it_begins_with():
    llm = Scripted("1. 2024 budget?\n3 best quays?\n2) 1.5 km to the ferry?\n1.5 km?")

    async def scenario(_, service):
        suggested = await service.suggest_queries("about the ferry")
        assert suggested == ["2024 budget?", "3 best quays?", "1.5 km to the ferry?", "1.5 km?"]

    serve(scenario, memory=words(), suggester=LanguageModelSuggester(llm))


# Events, logs and statistics


@pytest.mark.requirement("C028", "C199")
@pytest.mark.parametrize(
    ("log_content", "log_queries"), [(False, True), (True, False), (False, False)]
)
def test_queries_are_neither_logged_nor_told_unless_memory_and_service_allow_it(
    caplog, log_content, log_queries
):
    caplog.set_level(logging.DEBUG, "mnemic")

    async def scenario(memory, service):
        heard = []
        for kind in (MemoryRetrievalCompletedEvent, ContextAugmentedEvent, QueryExpandedEvent):
            memory.events.subscribe(kind, heard.append)
        await memory.add(memory.embedder.near("content", 0.9))
        query = MemoryQuery(query="private words", expand_query=True)
        for door in (service,) if log_content else (service, memory):
            heard.clear()
            await door.retrieve(query)
            await door.retrieve(query)
            await door.retrieve_to_context(query, ContextWindow(1000))
            assert len(heard) >= 4
            assert "private" not in repr(heard)
            assert {event.query for event in heard if hasattr(event, "query")} == {None}
        assert "private" not in caplog.text
        assert "content" not in " ".join(one.getMessage() for one in caplog.records)
        assert "<13 characters>" in caplog.text

    serve(scenario, log_queries=log_queries, memory={"log_content": log_content})


@pytest.mark.requirement("C028")
def test_the_front_door_tells_queries_where_contents_may_be_told(caplog):
    caplog.set_level(logging.DEBUG, "mnemic.retrieval")

    async def scenario(memory, _):
        await memory.retrieve(QUERY)
        assert "for query 'query'" in caplog.text

    serve(scenario, memory={"log_content": True})


def test_a_listener_that_fails_changes_nothing():
    async def scenario(memory, service):
        def fail(_):
            raise RuntimeError("deaf")

        memory.events.subscribe(MemoryRetrievalCompletedEvent, fail)
        await store_near(memory, 0.9)
        assert len(await service.retrieve(QUERY)) == 1
        assert (await service.retrieve(QUERY)).from_cache

    serve(scenario)


@pytest.mark.requirement("C025")
def test_p95_is_that_of_the_last_ten_thousand():
    statistics = Statistics()
    for _ in range(10_000):
        statistics.retrieved(1000.0, 1, is_expanded=False)
    for number in range(10_000):
        statistics.retrieved(float(number), 3, is_expanded=True)
    stats = statistics.read()
    assert WINDOW_SIZE == 10_000
    assert stats.p95_retrieval_time_ms == pytest.approx(9500, abs=2)
    assert stats.total_retrievals == 20_000
    assert stats.average_results_per_query == 2
    assert stats.average_retrieval_time_ms == pytest.approx((1000 + 4999.5) / 2)
    assert stats.expansion_usage_rate == 50


def test_p95_of_few_retrievals_is_one_of_theirs():
    statistics = Statistics()
    for milliseconds in range(1, 101):
        statistics.retrieved(float(milliseconds), 0, is_expanded=False)
    assert statistics.read().p95_retrieval_time_ms == pytest.approx(95, abs=0.5)


def test_failed_and_refused_retrievals_are_not_counted():
    async def scenario(_, service):
        with pytest.raises(InvalidArgumentError):
            await service.retrieve("no query")
        assert (await service.get_stats()).total_retrievals == 0

    serve(scenario)


# Forgotten memories


@pytest.mark.parametrize("query", [{"query": "query"}, {}], ids=["query", "filters"])
def test_forgotten_memories_are_found_if_asked_for_until_they_are_purged(query):
    async def scenario(memory, service):
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
        memory.repository.now.now += 91 * DAY
        await memory.purge()
        for _ in range(2):
            assert await ids(asked) == [kept.id]
        assert await ids(plain) == [kept.id]

    serve(scenario)


def test_a_forgotten_memory_that_is_restored_is_found_once():
    async def scenario(memory, service):
        (one,) = await store_near(memory, 0.9)
        asked = MemoryQuery(query="query", filters=MemoryFilter(include_forgotten=True))
        for _ in range(2):
            await memory.delete(one.id)
            assert len(await service.retrieve(asked)) == 1
            assert len(await service.retrieve(QUERY)) == 0
            await memory.restore(one.id)
            assert len(await service.retrieve(asked)) == 1
            assert len(await service.retrieve(QUERY)) == 1

    serve(scenario)


@pytest.mark.parametrize("order", ORDERS)
def test_forgotten_memories_stand_in_the_order_that_is_asked_for(order):
    async def scenario(memory, service):
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

    serve(scenario)


# The doors.


def test_every_door_gives_the_same_answer(tmp_path):
    path = tmp_path / "a.db"
    embedder, clock = WordEmbedder(512), Clock()
    options = {"embedder": embedder, "clock": clock, "track_access": False}
    with Memory(path, "aide", **options) as memory:
        for user in (None, "alice"):
            memory.add_many(
                [
                    {"content": f"tea number{number} {user}", "importance": number / 10}
                    for number in range(10)
                ],
                user_id=user,
            )
        query = MemoryQuery(query="tea", limit=4, min_relevance=0)

        async def main():
            async with (
                await AsyncMemory.open(path, "aide", **options) as awaited,
                await LongTermMemory.open(path, agent_id="aide", **options) as long_term,
            ):
                for user in (None, "alice"):
                    given = {} if user is None else {"user_id": user}
                    expected = await RetrievalService(awaited).retrieve(query, **given)
                    assert len(expected) == 4
                    answers = [
                        memory.retrieve(query, **given),
                        memory.scoped(**given).retrieve(query),
                        await awaited.retrieve(query, **given),
                        await awaited.scoped(**given).retrieve(query),
                        await RetrievalService(long_term).retrieve(query, **given),
                        await RetrievalService(memory).retrieve(query, **given),
                        await RetrievalService(awaited.scoped(**given)).retrieve(query),
                    ]
                    for answer in answers:
                        assert answer.results == expected.results
                        assert answer.total_matches == expected.total_matches == 10
                    windows = [ContextWindow(1000, clock=clock) for _ in range(3)]
                    counts = [
                        memory.scoped(**given).retrieve_to_context(query, windows[0]),
                        await awaited.retrieve_to_context(query, windows[1], **given),
                        await RetrievalService(awaited).retrieve_to_context(
                            query, windows[2], **given
                        ),
                    ]
                    assert counts == [4, 4, 4]
                    shown = [[item.source_ref for item in window.items()] for window in windows]
                    assert shown[0] == shown[1] == shown[2]

        asyncio.run(main())
        session = memory.scoped(session_id="none such")
        assert len(session.retrieve(query)) == 0
        assert memory.retrieve(query, all_users=True).total_matches == 20
        with pytest.raises(InvalidArgumentError):
            memory.scoped(user_id="alice").retrieve(query, user_id="boris")


def test_an_answer_can_be_sent_to_another_process():
    async def scenario(memory, service):
        await store_near(memory, 0.9)
        result = await service.retrieve(QUERY)
        assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own
        assert list(result) == list(result.results)

    serve(scenario)
