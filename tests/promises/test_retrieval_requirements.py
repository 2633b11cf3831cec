"""The requirements of the retrieval service, each with a test of its own."""

import inspect
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from mnemic import MemoryType
from mnemic.compat import (
    ContextItem,
    ContextItemType,
    ContextWindow,
    DocumentedLicenses,
    LicenseTier,
)
from mnemic.errors import LicenseRestrictionError
from mnemic.licensing import SEMANTIC_RETRIEVAL
from mnemic.model import MemoryQuery
from mnemic.observability.events import MemoryRetrievalCompletedEvent, QueryExpandedEvent
from mnemic.retrieval import AsyncRetrievalService
from mnemic.store.sqlite.store import SqliteStore
from tests.support.retrieval import (
    QUERY,
    AskingFirst,
    found,
    heard_by,
    record,
    serve,
    served,
    three_near,
)

# The service and its protocol.


@pytest.mark.requirement(
    "R130", "R133", "R140", "R141", "R142", "R143", "R144", "R145", "R146", "R147"
)
def test_every_method_of_the_document_is_there_and_awaited():
    for name in (
        "retrieve",
        "retrieve_to_context",
        "find_similar",
        "suggest_queries",
        "expand_query",
        "get_stats",
    ):
        assert inspect.iscoroutinefunction(getattr(AsyncRetrievalService, name)), name
    limit = inspect.signature(AsyncRetrievalService.find_similar).parameters["limit"]
    assert limit.default == 10


@pytest.mark.requirement("R135")
def test_the_feature_key_is_that_of_the_document_and_needs_teams():
    assert SEMANTIC_RETRIEVAL == "Agents.Memory.SemanticRetrieval"

    async def scenario(_, service):
        with pytest.raises(LicenseRestrictionError) as refused:
            await service.retrieve(QUERY)
        assert refused.value.feature_key.removeprefix("FeatureFlags.") == SEMANTIC_RETRIEVAL
        assert refused.value.required_tier == "Teams"

    serve(scenario, memory={"license": DocumentedLicenses(LicenseTier.WRITER_PRO)})


@pytest.mark.requirement("R136", "R137")
@pytest.mark.parametrize("tier", [LicenseTier.CORE, LicenseTier.WRITER_PRO])
def test_retrieval_by_meaning_is_refused_below_teams(tier):
    async def scenario(_, service):
        for call in (
            service.retrieve(QUERY),
            service.retrieve(MemoryQuery(filters={}, context_boost="context")),
            service.retrieve_to_context(QUERY, ContextWindow(1000)),
            service.find_similar(uuid4()),
            service.expand_query("query"),
        ):
            with pytest.raises(LicenseRestrictionError) as refused:
                await call
            assert "Upgrade to Teams for intelligent memory retrieval" in str(refused.value)

    serve(scenario, memory={"license": None if tier is None else DocumentedLicenses(tier)})


@pytest.mark.requirement("R138")
def test_core_is_refused_everything_and_writer_pro_may_filter():
    async def filters(memory, service):
        await memory.add("kept")
        by_filter = await service.retrieve(MemoryQuery.filtered({"importance": 0.5}))
        assert found(by_filter) == ["kept"]
        assert await service.retrieve_to_context(MemoryQuery.filtered({}), ContextWindow(1000)) == 1

    async def refused(_, service):
        for call in (
            service.retrieve(MemoryQuery.filtered({})),
            service.retrieve_to_context(MemoryQuery.filtered({}), ContextWindow(1000)),
            service.suggest_queries("a conversation"),
            service.expand_query("query"),
        ):
            with pytest.raises(LicenseRestrictionError):
                await call

    serve(filters, memory={"license": DocumentedLicenses(LicenseTier.WRITER_PRO)})
    serve(refused, memory={"license": DocumentedLicenses(LicenseTier.CORE)})


@pytest.mark.requirement("R136")
@pytest.mark.parametrize("tier", [LicenseTier.TEAMS, LicenseTier.ENTERPRISE, None])
def test_teams_and_above_may_retrieve_by_meaning(tier):
    async def scenario(memory, service):
        await three_near(memory)
        assert found(await service.retrieve(QUERY)) == ["nearest", "middle", "farthest"]

    serve(scenario, memory={"license": None if tier is None else DocumentedLicenses(tier)})


@pytest.mark.requirement("R139")
def test_retrieval_makes_no_tables(tmp_path):
    def tables(store):
        with store._connections.reading() as connection:
            return sorted(connection.execute("SELECT name, sql FROM sqlite_schema"))

    async def scenario(memory, service):
        store = memory.repository._store
        assert isinstance(store, SqliteStore)
        await three_near(memory)
        before = tables(store)
        await service.retrieve(QUERY)
        await service.retrieve_to_context(QUERY, ContextWindow(1000))
        await service.expand_query("query")
        assert before
        assert tables(store) == before

    serve(scenario, path=tmp_path / "a.db")


# The answer.


@pytest.mark.requirement("R164", "R165", "R166", "R167", "R168", "R169")
@served()
async def test_an_answer_tells_all_that_the_document_names(memory, service):
    near = memory.embedder.near
    one = record(near("one", 0.8, 0.5), days=73, importance=0.4, access_count=99)
    await memory.add_many([one, record(near("two", 0.6)), record(near("three", 0.5))])
    query = MemoryQuery(query="query", limit=2, context_boost="context")
    result = await service.retrieve(query)
    assert (len(result), result.total_matches) == (2, 3)
    assert (result.original_query, result.expanded_query) == ("query", None)
    assert result.from_cache is False
    assert timedelta() < result.retrieval_time < timedelta(seconds=60)
    assert isinstance(result.retrieval_time, timedelta)
    assert result.total_is_lower_bound is False
    first, second = result.results
    assert (first.rank, second.rank) == (1, 2)
    assert first.entry.id == one.id
    assert first.entry.content == "one"
    parts = first.scores
    assert parts.similarity == pytest.approx(0.8, abs=1e-6)
    assert parts.recency == pytest.approx(0.8, abs=1e-9)
    assert parts.importance == pytest.approx(0.4)
    assert parts.access_frequency == pytest.approx(2 / 3)
    assert parts.context_boost == pytest.approx(0.5, abs=1e-6)
    weighted = 0.6 * 0.8 + 0.2 * 0.8 + 0.15 * 0.4 + 0.05 * 2 / 3 + 0.1 * 0.5
    assert first.relevance_score == pytest.approx(weighted / 1.1, abs=1e-6)


@pytest.mark.requirement("R171", "R172", "R173", "R174", "R175", "R176")
@served(expander=AskingFirst("nearest"))
async def test_statistics_count_what_was_done(memory, service):
    await three_near(memory)
    for query in (
        QUERY,
        QUERY,
        MemoryQuery(query="query", limit=1),
        MemoryQuery(query="query", expand_query=True),
        MemoryQuery(query="query", use_cache=False),
    ):
        await service.retrieve(query)
    await service.retrieve_to_context(QUERY, ContextWindow(1000), include_sensitive=True)
    stats = await service.get_stats()
    assert stats.total_retrievals == 6
    assert stats.cache_hit_rate == pytest.approx(100 * 2 / 5)  # use_cache=False looks nowhere
    assert stats.average_results_per_query == pytest.approx((5 * 3 + 1) / 6)
    assert stats.expansion_usage_rate == pytest.approx(100 / 6)
    assert stats.context_augmentations == 1
    assert 0 < stats.average_retrieval_time_ms < 60_000
    assert 0 < stats.p95_retrieval_time_ms < 60_000


# The steps of a retrieval.


@pytest.mark.requirement("R180", "R181", "R191", "R213")
@served(expander=AskingFirst("nearest"))
async def test_an_answer_that_is_known_embeds_nothing_and_expands_nothing(memory, service):
    await three_near(memory)
    heard = heard_by(memory)
    query = MemoryQuery(query="query", expand_query=True)
    first = await service.retrieve(query)
    embedded, kinds = list(memory.embedder.texts), [type(event) for event in heard]
    assert kinds == [QueryExpandedEvent, MemoryRetrievalCompletedEvent]
    second = await service.retrieve(query)
    assert memory.embedder.texts == embedded
    assert [type(event) for event in heard[2:]] == [MemoryRetrievalCompletedEvent]
    assert (first.from_cache, second.from_cache) == (False, True)
    assert second.results == first.results
    assert second.expanded_query == first.expanded_query == "query nearest"


@pytest.mark.requirement("R182")
@served(expander=AskingFirst("nearest"))
async def test_only_a_query_that_asks_for_it_is_expanded(memory, service):
    heard = heard_by(memory)
    await service.retrieve(QUERY)
    await service.retrieve(MemoryQuery(filters={}, expand_query=True))
    assert not [event for event in heard if isinstance(event, QueryExpandedEvent)]


@pytest.mark.requirement("R142", "R192", "R193")
@served()
async def test_a_context_item_has_the_priority_source_and_metadata_of_its_memory(memory, service):
    near = memory.embedder.near
    best = record(near("best", 1.0), importance=1.0, access_count=1000)
    worse = record(near("worse", 0.5), days=400, importance=0, type=MemoryType.PREFERENCE)
    await memory.add_many([best, worse])
    window = ContextWindow(1000)
    query = MemoryQuery(query="query", min_relevance=0)
    assert await service.retrieve_to_context(query, window) == 2
    first, second = window.items()
    assert first.type is second.type is ContextItemType.RETRIEVED_DOCUMENT
    assert (first.priority, second.priority) == (90, 62)  # int(50 + 40·.3)
    assert [UUID(item.source_ref) for item in (first, second)] == [best.id, worse.id]
    assert second.metadata["relevance"] == pytest.approx(0.3, abs=1e-6)
    assert set(second.metadata) == {"relevance", "memory_type"}
    assert [item.metadata["memory_type"] for item in (first, second)] == ["FACT", "PREFERENCE"]
    assert [item.content for item in (first, second)] == ["best", "worse"]
    assert {item.pinned for item in (first, second)} == {False}


@pytest.mark.requirement("R143", "R194")
@served()
async def test_a_full_window_stops_the_augmentation_without_an_error(memory, service):
    heard = heard_by(memory)
    await three_near(memory)
    window = ContextWindow(10)
    window.add(ContextItem(content="x", type=ContextItemType.USER_MESSAGE, token_count=8))
    assert await service.retrieve_to_context(QUERY, window) == 0
    assert (heard[-1].items_added, heard[-1].tokens_added) == (0, 0)
    assert window.item_count == 1
