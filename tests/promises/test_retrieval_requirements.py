"""The requirements of the retrieval service, each with a test of its own."""

import inspect
import logging
import math
import re
from datetime import timedelta
from types import MappingProxyType
from uuid import UUID, uuid4

import pytest

from mnemic import (
    ContextItem,
    ContextItemType,
    ContextWindow,
    DocumentedLicenses,
    ExpandedQuery,
    LicenseTier,
    MemoryFilter,
    MemoryQuery,
    MemoryType,
    RelevanceScores,
    RetrievalStats,
)
from mnemic.errors import FilterError, InvalidArgumentError, LicenseRestrictionError
from mnemic.licensing import SEMANTIC_RETRIEVAL
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from mnemic.retrieval import RetrievalService
from mnemic.store import SqliteStore
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.metrics import MNEMIC, OTEL
from tests.support.metrics import run as run_program
from tests.support.retrieval import found, record, serve

QUERY = MemoryQuery.semantic("query")
LOGGER = "mnemic.retrieval"
EVERYTHING = MappingProxyType({})
EVENTS = (MemoryRetrievalCompletedEvent, ContextAugmentedEvent, QueryExpandedEvent)
FIVE_MINUTES = timedelta(minutes=5)


class Adding:
    """An expander that always adds the same terms."""

    def __init__(self, *terms, confidence=0.9):
        self.terms, self.confidence = terms, confidence

    async def expand(self, query, ask):
        await ask(query)
        return ExpandedQuery(
            original=query,
            expanded=" ".join([query, *self.terms]),
            added_terms=self.terms,
            confidence=self.confidence,
        )


def heard_by(memory):
    heard = []
    for kind in EVENTS:
        memory.events.subscribe(kind, heard.append)
    return heard


def told(caplog, level):
    """Return what retrieval logged at a level."""
    return [
        one.getMessage() for one in caplog.records if one.name == LOGGER and one.levelno == level
    ]


async def three_near(memory, **fields):
    """Store memories of similarity .9, .7 and .5 that are alike but for that."""
    near = memory.embedder.near
    texts = [near("middle", 0.7), near("nearest", 0.9), near("farthest", 0.5)]
    return await memory.add_many([record(text, **fields) for text in texts])


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
        assert inspect.iscoroutinefunction(getattr(RetrievalService, name)), name
    limit = inspect.signature(RetrievalService.find_similar).parameters["limit"]
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


# The query.


@pytest.mark.requirement("R148", "C015")
@pytest.mark.parametrize("query", [None, "", "   ", "\n\t"])
def test_a_query_needs_a_text_or_a_filter(query):
    with pytest.raises(ValueError, match=r"^Query must have either Query or Filters$") as refused:
        MemoryQuery(query=query)
    assert isinstance(refused.value, InvalidArgumentError)


@pytest.mark.requirement(
    "R150", "R151", "R153", "R154", "R155", "R156", "R157", "R158", "R159", "R160", "C008", "R161"
)
@pytest.mark.parametrize(
    ("field", "default"),
    [
        ("filters", None),
        ("limit", 10),
        ("similarity_weight", 0.6),
        ("recency_weight", 0.2),
        ("importance_weight", 0.15),
        ("access_weight", 0.05),
        ("expand_query", False),
        ("use_cache", True),
        ("cache_ttl", FIVE_MINUTES),
        ("context_boost", None),
        ("context_weight", 0.1),
        ("exclude_ids", ()),
        ("search_type", "semantic"),
        ("sort_by", None),
    ],
)
def test_fields_of_a_query_have_the_documented_defaults(field, default):
    value = getattr(MemoryQuery(query="x"), field)
    assert value == default
    assert type(value) is type(default)


@pytest.mark.requirement("R149")
def test_a_query_has_no_text_unless_it_is_given():
    assert MemoryQuery(filters={}).query is None
    assert MemoryQuery(filters={}, query=" \n").query is None
    assert MemoryQuery(query=" kept as it is ").query == " kept as it is "


@pytest.mark.requirement("R152")
def test_a_score_below_a_half_is_no_answer_unless_another_floor_is_given():
    async def scenario(memory, service):
        near = memory.embedder.near
        # .6·s + .2·1 + .15·.5 + .05·0: a half where s is .375
        await memory.add_many([record(near("above", 0.376)), record(near("below", 0.374))])
        assert found(await service.retrieve(QUERY)) == ["above"]
        lower = MemoryQuery(query="query", min_relevance=0.49)
        assert found(await service.retrieve(lower)) == ["above", "below"]
        assert found(await service.retrieve(MemoryQuery(query="query", min_relevance=0.51))) == []

    serve(scenario)


@pytest.mark.requirement("R162")
def test_a_semantic_query_is_made_of_a_text_and_a_limit():
    assert MemoryQuery.semantic("x") == MemoryQuery(query="x", limit=10)
    assert MemoryQuery.semantic("x", 3) == MemoryQuery(query="x", limit=3)


@pytest.mark.requirement("R163")
def test_a_filtered_query_is_made_of_a_filter_and_a_limit_of_a_hundred():
    wanted = MemoryFilter(tags=("a",))
    assert MemoryQuery.filtered(wanted) == MemoryQuery(filters=wanted, limit=100)
    assert MemoryQuery.filtered(wanted, 3) == MemoryQuery(filters=wanted, limit=3)


@pytest.mark.requirement("R207")
def test_a_query_may_have_ten_thousand_characters_and_no_more():
    for field in ("query", "context_boost"):
        assert MemoryQuery(**{"filters": {}, field: "ø" * 10_000})
        with pytest.raises(InvalidArgumentError, match="10000 characters"):
            MemoryQuery(**{"filters": {}, field: "ø" * 10_001})


@pytest.mark.requirement("R207")
def test_expansion_takes_ten_thousand_characters_and_no_more():
    async def scenario(_, service):
        assert (await service.expand_query("x" * 10_000)).original == "x" * 10_000
        for wrong in ("x" * 10_001, "", "  ", None, 3, "a lone \ud800", "a\0b"):
            with pytest.raises(InvalidArgumentError):
                await service.expand_query(wrong)

    serve(scenario)


@pytest.mark.requirement("R208")
@pytest.mark.parametrize("limit", [0, -1, 1001, 2**70, True, 1.0, "10", None, math.nan])
def test_a_limit_is_an_int_from_1_to_1000(limit):
    with pytest.raises(InvalidArgumentError, match="limit"):
        MemoryQuery(query="x", limit=limit)


@pytest.mark.requirement("R208")
def test_limits_of_1_and_1000_are_allowed():
    assert [MemoryQuery(query="x", limit=limit).limit for limit in (1, 1000)] == [1, 1000]


@pytest.mark.requirement("R209", "C014", "C015")
@pytest.mark.parametrize(
    "field",
    [
        "similarity_weight",
        "recency_weight",
        "importance_weight",
        "access_weight",
        "context_weight",
        "min_relevance",
    ],
)
@pytest.mark.parametrize("value", [-0.01, 1.01, math.nan, math.inf, -math.inf, "0.5", True, [0.5]])
def test_weights_and_the_floor_are_numbers_from_0_to_1(field, value):
    with pytest.raises(InvalidArgumentError, match=field):
        MemoryQuery(query="x", **{field: value})
    for allowed in (0, 1, 0.0, 1.0, 0.25):
        assert getattr(MemoryQuery(query="x", **{field: allowed}), field) == allowed


@pytest.mark.requirement("C014")
def test_weights_in_play_may_not_all_be_nothing():
    nothing = {"recency_weight": 0, "importance_weight": 0, "access_weight": 0}
    with pytest.raises(InvalidArgumentError, match="weights"):
        MemoryQuery(query="x", similarity_weight=0, **nothing)
    with pytest.raises(InvalidArgumentError, match="weights"):
        MemoryQuery(filters={}, **nothing)  # without a query similarity is not in play
    with pytest.raises(InvalidArgumentError, match="weights"):
        MemoryQuery(query="x", similarity_weight=0, context_weight=1, **nothing)
    assert MemoryQuery(query="x", **nothing)
    assert MemoryQuery(filters={}, context_boost="y", **nothing)


@pytest.mark.requirement("C015")
@pytest.mark.parametrize(
    "wrong",
    [
        {"cache_ttl": timedelta()},
        {"cache_ttl": timedelta(seconds=-1)},
        {"cache_ttl": 0},
        {"cache_ttl": math.nan},
        {"cache_ttl": math.inf},
        {"cache_ttl": True},
        {"cache_ttl": "5m"},
        {"cache_ttl": None},
        {"expand_query": 1},
        {"use_cache": None},
        {"query": 3},
        {"query": b"x"},
        {"query": "a lone \ud800"},
        {"context_boost": 3},
        {"exclude_ids": "not a list"},
        {"exclude_ids": [3]},
        {"exclude_ids": ["no uuid"]},
        {"exclude_ids": 3},
        {"search_type": "fuzzy"},
        {"search_type": None},
        {"sort_by": "created_descending"},
        {"recency": 365},
        {"filters": 3},
        {"filters": {"unknown": 3}},
        {"filters": {"importance": {"like": 3}}},
    ],
    ids=str,
)
def test_what_cannot_be_used_is_refused_when_the_query_is_made(wrong):
    (field,) = wrong
    named = "found" if field == "filters" else field
    with pytest.raises(InvalidArgumentError, match=named) as refused:
        MemoryQuery(**{"query": "x", **wrong})
    assert isinstance(refused.value, FilterError) == (field == "filters")


def test_seconds_and_texts_of_ids_are_put_into_their_final_form():
    one = uuid4()
    query = MemoryQuery(query="x", cache_ttl=1.5, exclude_ids=[str(one), one])
    assert query.cache_ttl == timedelta(seconds=1.5)
    assert query.exclude_ids == (one, one)
    assert MemoryQuery(query="x", exclude_ids=None).exclude_ids == ()


def test_a_query_cannot_be_changed():
    with pytest.raises(AttributeError):
        MemoryQuery(query="x").limit = 3


@pytest.mark.parametrize("query", [None, "text", {"query": "x"}, object()])
def test_only_a_memory_query_is_answered(query):
    async def scenario(_, service):
        with pytest.raises(InvalidArgumentError, match="MemoryQuery"):
            await service.retrieve(query)
        with pytest.raises(InvalidArgumentError, match="MemoryQuery"):
            await service.retrieve_to_context(query, ContextWindow(100))
        with pytest.raises(InvalidArgumentError, match="ContextWindow"):
            await service.retrieve_to_context(QUERY, query)

    serve(scenario)


# The answer.


@pytest.mark.requirement("R164", "R165", "R166", "R167", "R168", "R169")
def test_an_answer_tells_all_that_the_document_names():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("R169")
def test_scores_are_nothing_unless_given():
    assert RelevanceScores() == RelevanceScores(
        similarity=None, recency=None, importance=None, access_frequency=None, context_boost=None
    )


@pytest.mark.requirement("R171", "R172", "R173", "R174", "R175", "R176")
def test_statistics_begin_with_nothing():
    async def scenario(_, service):
        stats = await service.get_stats()
        assert stats == RetrievalStats()
        assert stats == RetrievalStats(
            total_retrievals=0,
            cache_hit_rate=0.0,
            average_retrieval_time_ms=0.0,
            p95_retrieval_time_ms=0.0,
            average_results_per_query=0.0,
            expansion_usage_rate=0.0,
            context_augmentations=0,
        )

    serve(scenario)


@pytest.mark.requirement("R171", "R172", "R173", "R174", "R175", "R176")
def test_statistics_count_what_was_done():
    async def scenario(memory, service):
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

    serve(scenario, expander=Adding("nearest"))


# Events, logs and metrics.


@pytest.mark.requirement("R177", "C006")
def test_a_retrieval_tells_its_event():
    async def scenario(memory, service):
        heard = heard_by(memory)
        await three_near(memory)
        limited = MemoryQuery(query="query", limit=2)
        first = await service.retrieve(limited)
        memory.repository.now.now += timedelta(seconds=1)
        second = await service.retrieve(limited)
        assert heard == [
            MemoryRetrievalCompletedEvent(
                agent_id="aide",
                query="query",
                result_count=2,
                total_matches=3,
                from_cache=is_known,
                retrieval_time=result.retrieval_time,
                timestamp=NOON + timedelta(seconds=number),
            )
            for number, (is_known, result) in enumerate([(False, first), (True, second)])
        ]
        assert heard[0].retrieval_time != heard[1].retrieval_time

    serve(scenario, memory={"log_content": True})


@pytest.mark.requirement("R177")
def test_a_retrieval_by_filters_tells_of_an_empty_query():
    async def scenario(memory, service):
        heard = heard_by(memory)
        result = await service.retrieve(MemoryQuery.filtered({}))
        assert [event.query for event in heard] == [""]
        assert result.original_query == ""

    serve(scenario, memory={"log_content": True})


@pytest.mark.requirement("R178", "C018")
def test_an_augmentation_tells_its_event():
    async def scenario(memory, service):
        heard = heard_by(memory)
        await three_near(memory)
        window = ContextWindow(1000)
        assert await service.retrieve_to_context(QUERY, window) == 3
        assert heard[1:] == [
            ContextAugmentedEvent(
                agent_id="aide",
                query="query",
                items_added=3,
                tokens_added=window.current_tokens,
                timestamp=NOON,
            )
        ]
        assert window.current_tokens == sum(item.token_count for item in window.items()) > 0
        await service.retrieve_to_context(MemoryQuery.filtered({}), ContextWindow(1000))
        assert heard[-1].query == "[filter-only]"

    serve(scenario, memory={"log_content": True})


@pytest.mark.requirement("R179")
def test_an_expansion_tells_its_event():
    async def scenario(memory, service):
        heard = heard_by(memory)
        await service.expand_query("query")
        assert heard == [
            QueryExpandedEvent(
                agent_id="aide",
                original_query="query",
                expanded_query="query more words",
                terms_added=2,
                confidence=0.75,
                timestamp=NOON,
            )
        ]

    serve(scenario, memory={"log_content": True}, expander=Adding("more", "words", confidence=0.75))


@pytest.mark.requirement("R195", "R196", "R197", "R198", "R199")
def test_log_lines_are_those_of_the_document(caplog):
    caplog.set_level(logging.DEBUG, LOGGER)

    async def scenario(memory, service):
        assert told(caplog, logging.INFO) == ["Memory retrieval service initialized for agent aide"]
        await three_near(memory)
        caplog.clear()
        limited = MemoryQuery(query="query", limit=2)
        await service.retrieve(limited)
        await service.retrieve(limited)
        first, hit, second = told(caplog, logging.DEBUG)
        pattern = r"Retrieved 2/3 memories for query 'query' in \d+(\.\d+)?ms"
        assert re.fullmatch(pattern, first)
        assert hit == "Cache hit for retrieval query, returning cached results"
        assert re.fullmatch(pattern, second)
        caplog.clear()
        window = ContextWindow(1000)
        await service.retrieve_to_context(limited, window)
        tokens = window.current_tokens
        assert told(caplog, logging.DEBUG)[-1] == (
            f"Augmented context with 2 retrieved memories ({tokens} tokens)"
        )
        caplog.clear()
        await service.expand_query("query")
        assert told(caplog, logging.DEBUG) == ["Expanded query 'query' to 'query a b' (+2 terms)"]
        assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []

    serve(scenario, memory={"log_content": True}, expander=Adding("a", "b"))


@pytest.mark.requirement("R195")
def test_a_long_query_is_cut_to_50_characters_in_log_lines(caplog):
    caplog.set_level(logging.DEBUG, LOGGER)

    async def scenario(_, service):
        await service.retrieve(MemoryQuery(query="x" * 50))
        await service.retrieve(MemoryQuery(query="y" * 51))
        lines = caplog.text
        assert f"'{'x' * 50}'" in lines
        assert f"'{'y' * 50}...'" in lines
        assert "y" * 51 not in lines

    serve(scenario, memory={"log_content": True})


@pytest.mark.requirement("R200")
def test_an_answer_without_results_is_warned_of(caplog):
    async def scenario(_, service):
        await service.retrieve(QUERY)
        assert told(caplog, logging.WARNING) == ["Retrieval returned no results for query 'query'"]

    serve(scenario, memory={"log_content": True})


@pytest.mark.requirement("R201", "C023")
def test_an_unsure_expansion_is_warned_of_and_not_used(caplog):
    async def scenario(memory, service):
        await three_near(memory)
        heard = heard_by(memory)
        expansion = await service.expand_query("query")
        assert (expansion.original, expansion.expanded) == ("query", "query")
        assert expansion.added_terms == ()
        assert expansion.confidence == 0.49
        result = await service.retrieve(MemoryQuery(query="query", expand_query=True))
        assert result.expanded_query is None
        assert found(result) == ["nearest", "middle", "farthest"]
        assert "query words" not in memory.embedder.texts
        assert told(caplog, logging.WARNING) == 2 * [
            "Query expansion confidence low (0.49), using original query"
        ]
        events = [event for event in heard if isinstance(event, QueryExpandedEvent)]
        assert [event.confidence for event in events] == [0.49, 0.49]
        assert (await service.get_stats()).expansion_usage_rate == 0

    serve(scenario, expander=Adding("words", confidence=0.49))


MEASURED = """
from mnemic import AsyncMemory, ContextWindow, MemoryQuery, RetrievalService
async def use():
    async with await AsyncMemory.open(":memory:", "aide", embedder=WordEmbedder()) as memory:
        await memory.add_many(["dark mode", "light mode", "hot tea"])
        service = RetrievalService(memory)
        query = MemoryQuery(query="mode", min_relevance=0)
        for _ in range(3):
            await service.retrieve(query)
        window = ContextWindow(1000)
        await service.retrieve_to_context(query, window, include_sensitive=True)
        return points()
use_provider()
show(asyncio.run(use()))
"""


@pytest.mark.requirement("R202", "R203", "R204", "R205", "R206")
def test_metrics_have_their_names_and_count():
    (measured,), logged = run_program(OTEL, MNEMIC, MEASURED)
    assert logged == ""

    def point(name):
        (only,) = measured[f"agents.memory.retrieval.{name}"]["points"]
        assert only["attributes"] == {"agent_id": "aide"}
        return only

    assert point("total")["value"] == 4
    assert point("cache_hits")["value"] == 3
    assert point("augmentations")["value"] == 1
    latency, results = point("latency_ms"), point("results")
    assert (latency["count"], results["count"], results["sum"]) == (4, 4, 8)
    assert measured["agents.memory.retrieval.latency_ms"]["unit"] == "ms"
    assert 0 < latency["sum"] < 60_000


# The steps of a retrieval.


@pytest.mark.requirement("R180", "R181")
def test_an_answer_that_is_known_embeds_nothing_and_expands_nothing():
    async def scenario(memory, service):
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

    serve(scenario, expander=Adding("nearest"))


@pytest.mark.requirement("R182")
def test_only_a_query_that_asks_for_it_is_expanded():
    async def scenario(memory, service):
        heard = heard_by(memory)
        await service.retrieve(QUERY)
        await service.retrieve(MemoryQuery(filters={}, expand_query=True))
        assert not [event for event in heard if isinstance(event, QueryExpandedEvent)]

    serve(scenario, expander=Adding("nearest"))


@pytest.mark.requirement("R183", "C013")
def test_candidates_have_a_similarity_of_three_tenths():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many(
            [record(near("above", 0.301)), record(near("below", 0.299), importance=1.0)]
        )
        query = MemoryQuery(query="query", min_relevance=0)
        result = await service.retrieve(query)
        assert (found(result), result.total_matches) == (["above"], 1)
        lower = RetrievalService(memory, similarity_floor=0.2)
        assert found(await lower.retrieve(query)) == ["below", "above"]

    serve(scenario)


@pytest.mark.requirement("R184", "C009")
def test_filters_alone_give_no_similarity():
    async def scenario(memory, service):
        await memory.add_many([record("kept", importance=1.0), record("not", importance=0.2)])
        result = await service.retrieve(MemoryQuery.filtered({"importance": {"gt": 0.5}}))
        assert found(result) == ["kept"]
        assert result[0].scores.similarity is None
        assert memory.embedder.texts == ["kept", "not"]

    serve(scenario)


@pytest.mark.requirement("R185", "C016")
@pytest.mark.parametrize(
    ("days", "recency"),
    [(0, 1.0), (36.5, 0.9), (182.5, 0.5), (364, 1 / 365), (365, 0.0), (4000, 0.0), (-30, 1.0)],
)
def test_recency_falls_in_a_line_over_a_year_from_creation(days, recency):
    async def scenario(memory, service):
        await memory.add_many([record("one", days=days, last_accessed_at=NOON, access_count=1)])
        (only,) = await service.retrieve(MemoryQuery.filtered({}))
        assert only.scores.recency == pytest.approx(recency, abs=1e-9)

    serve(scenario)


@pytest.mark.requirement("R154", "C016")
def test_recency_counts_from_creation_whatever_was_updated():
    async def scenario(memory, service):
        (one,) = await memory.add_many([record("one", days=73)])
        await memory.update(one.id, importance=0.9)
        (only,) = await service.retrieve(MemoryQuery.filtered({}))
        assert only.scores.recency == pytest.approx(0.8)
        assert only.scores.importance == pytest.approx(0.9)

    serve(scenario)


@pytest.mark.requirement("R187", "C017")
@pytest.mark.parametrize(
    ("count", "score"),
    [(0, 0.0), (1, math.log10(2) / 3), (9, 1 / 3), (99, 2 / 3), (999, 1.0), (10**6, 1.0)],
)
def test_access_frequency_is_a_third_of_the_logarithm(count, score):
    async def scenario(memory, service):
        await memory.add_many([record("one", access_count=count)])
        (only,) = await service.retrieve(MemoryQuery.filtered({}))
        assert only.scores.access_frequency == pytest.approx(score, abs=1e-6)

    serve(scenario)


@pytest.mark.requirement("R188", "C008")
def test_a_context_raises_what_is_near_to_it():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many([record(near("beside", 0.70)), record(near("inside", 0.66, 0.6))])
        assert found(await service.retrieve(QUERY)) == ["beside", "inside"]
        boosted = await service.retrieve(MemoryQuery(query="query", context_boost="context"))
        assert found(boosted) == ["inside", "beside"]
        assert boosted[0].scores.context_boost == pytest.approx(0.6, abs=1e-6)
        assert boosted[1].scores.context_boost == pytest.approx(0, abs=1e-6)

    serve(scenario)


@pytest.mark.requirement("R189")
def test_relevance_is_divided_by_the_weights():
    async def scenario(memory, service):
        await memory.add_many([record(memory.embedder.near("one", 0.8), days=73, importance=0.5)])
        query = MemoryQuery(
            query="query",
            similarity_weight=0.5,
            recency_weight=0.1,
            importance_weight=0.2,
            access_weight=0,
        )
        (only,) = await service.retrieve(query)
        expected = (0.5 * 0.8 + 0.1 * 0.8 + 0.2 * 0.5) / 0.8
        assert only.relevance_score == pytest.approx(expected, abs=1e-6)

    serve(scenario)


@pytest.mark.requirement("R190")
def test_results_are_sorted_cut_and_numbered():
    async def scenario(memory, service):
        near = memory.embedder.near
        texts = [near(f"text {tenths}", tenths / 10) for tenths in (4, 9, 6, 3.1, 8, 7, 5)]
        await memory.add_many([record(text) for text in texts])
        result = await service.retrieve(MemoryQuery(query="query", limit=4, min_relevance=0.6))
        assert found(result) == ["text 9", "text 8", "text 7", "text 6"]
        assert [one.rank for one in result] == [1, 2, 3, 4]
        scores = [one.relevance_score for one in result]
        assert scores == sorted(scores, reverse=True)
        assert all(score >= 0.6 for score in scores)

    serve(scenario)


@pytest.mark.requirement("R142", "R192", "R193")
def test_a_context_item_has_the_priority_source_and_metadata_of_its_memory():
    async def scenario(memory, service):
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

    serve(scenario)


@pytest.mark.requirement("R143", "R194")
def test_a_full_window_stops_the_augmentation_without_an_error():
    async def scenario(memory, service):
        heard = heard_by(memory)
        await three_near(memory)
        window = ContextWindow(10)
        window.add(ContextItem(content="x", type=ContextItemType.USER_MESSAGE, token_count=8))
        assert await service.retrieve_to_context(QUERY, window) == 0
        assert (heard[-1].items_added, heard[-1].tokens_added) == (0, 0)
        assert window.item_count == 1

    serve(scenario)


# The acceptance criteria.

PREFERENCES = (
    "The user's preferences: dark mode and metric units",
    "User preferences for coffee are strong and black",
    "The office printer is on the second floor",
    "Ferries to the island leave at noon",
    "A red sofa was bought in spring",
)


def words(**options):
    return {"embedder": WordEmbedder(dimensions=512), **options}


@pytest.mark.requirement("R210")
def test_what_means_the_same_is_retrieved():
    async def scenario(memory, service):
        await memory.add_many(PREFERENCES)
        result = await service.retrieve(MemoryQuery.semantic("user preferences"))
        assert set(found(result)) == set(PREFERENCES[:2])

    serve(scenario, memory=words())


@pytest.mark.requirement("R211", "C026")
def test_results_are_ranked_by_weighted_relevance():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many(
            [
                record(near("nearest", 0.9), days=365, importance=0.0),
                record(near("important", 0.7), importance=1.0),
            ]
        )
        result = await service.retrieve(QUERY)
        assert found(result) == ["important", "nearest"]
        assert [one.relevance_score for one in result] == pytest.approx(
            [0.6 * 0.7 + 0.2 + 0.15, 0.6 * 0.9], abs=1e-6
        )
        similarity_only = MemoryQuery(
            query="query", recency_weight=0, importance_weight=0, access_weight=0
        )
        assert found(await service.retrieve(similarity_only)) == ["nearest", "important"]

    serve(scenario)


@pytest.mark.requirement("R212")
def test_memories_are_added_to_the_context_window():
    async def scenario(memory, service):
        await memory.add_many(PREFERENCES)
        window = ContextWindow(1000)
        added = await service.retrieve_to_context(MemoryQuery.semantic("user preferences"), window)
        assert added == window.item_count == 2
        assert all(text in str(window.build()) for text in PREFERENCES[:2])

    serve(scenario, memory=words())


@pytest.mark.requirement("R213", "R191")
def test_a_query_that_is_repeated_is_answered_from_the_cache():
    async def scenario(memory, service):
        await memory.add_many(PREFERENCES)
        query = MemoryQuery.semantic("user preferences")
        first, second = await service.retrieve(query), await service.retrieve(query)
        assert (first.from_cache, second.from_cache) == (False, True)
        assert first.results == second.results
        assert len(first) == 2

    serve(scenario, memory=words())


@pytest.mark.requirement("R214")
def test_expansion_finds_what_the_plain_query_does_not():
    async def scenario(memory, service):
        embedder = memory.embedder
        embedder.near("related", 0.2)
        embedder.vectors["query synonym"] = (0, 0, 1, 0)
        await memory.add_many([record("related"), record(embedder.near("direct", 0.8))])
        plain = await service.retrieve(QUERY)
        expanded = await service.retrieve(MemoryQuery(query="query", expand_query=True))
        assert found(plain) == ["direct"]
        assert set(found(expanded)) == {"direct", "related"}
        assert expanded.expanded_query == "query synonym"

    serve(scenario, expander=Adding("synonym"))


@pytest.mark.requirement("R214")
def test_the_offline_expansion_finds_an_abbreviation_spelled_out():
    async def scenario(memory, service):
        await memory.add_many(
            ["the database was moved in march", "tea is served at noon", "a red sofa was bought"]
        )
        plain = await service.retrieve(MemoryQuery(query="db", min_relevance=0))
        expanded = await service.retrieve(
            MemoryQuery(query="db", min_relevance=0, expand_query=True)
        )
        assert found(plain) == []
        assert "the database was moved in march" in found(expanded)
        assert "database" in expanded.expanded_query

    serve(scenario, memory=words())


@pytest.mark.requirement("R217")
def test_more_than_half_of_repeated_queries_hit_the_cache_while_accesses_are_counted():
    async def scenario(memory, service):
        stored = await memory.add_many([f"memory of topic{number}" for number in range(20)])
        for round_number in range(5):
            for number in range(20):
                query = MemoryQuery.semantic(f"topic{number}")
                (best, *_) = await service.retrieve(query)
                await memory.get(best.entry.id)
                memory.repository.now.now += timedelta(seconds=1)
            if round_number == 2:
                await memory.update(stored[0].id, importance=0.7)
        stats = await service.get_stats()
        assert stats.total_retrievals == 100
        assert stats.cache_hit_rate == pytest.approx(60)  # two of five rounds are not known yet

    serve(scenario, memory=words())


@pytest.mark.requirement("R218")
def test_the_user_preferences_are_ordered_by_relevance():
    async def scenario(memory, service):
        await memory.add_many(
            [
                *PREFERENCES,
                "Preferences of a user, mostly",
            ]
        )
        result = await service.retrieve(MemoryQuery(query="user preferences", min_relevance=0))
        scores = [one.relevance_score for one in result]
        assert len(result) == 3
        assert scores == sorted(scores, reverse=True)
        assert result[0].scores.similarity == max(one.scores.similarity for one in result)

    serve(scenario, memory=words())


@pytest.mark.requirement("R219")
def test_scores_reflect_the_distribution_of_the_weights():
    async def scenario(memory, service):
        near = memory.embedder.near
        await memory.add_many(
            [record(near("similar", 0.9), days=292), record(near("recent", 0.6), days=0)]
        )
        weights = {"importance_weight": 0, "access_weight": 0, "min_relevance": 0}
        query = MemoryQuery(query="query", similarity_weight=0.8, recency_weight=0.2, **weights)
        by_similarity = await service.retrieve(query)
        assert [(one.entry.content, one.relevance_score) for one in by_similarity] == [
            ("similar", pytest.approx(0.8 * 0.9 + 0.2 * 0.2, abs=1e-6)),
            ("recent", pytest.approx(0.8 * 0.6 + 0.2 * 1.0, abs=1e-6)),
        ]
        query = MemoryQuery(query="query", similarity_weight=0.2, recency_weight=0.8, **weights)
        by_recency = await service.retrieve(query)
        assert [(one.entry.content, one.relevance_score) for one in by_recency] == [
            ("recent", pytest.approx(0.2 * 0.6 + 0.8 * 1.0, abs=1e-6)),
            ("similar", pytest.approx(0.2 * 0.9 + 0.8 * 0.2, abs=1e-6)),
        ]

    serve(scenario)


@pytest.mark.requirement("R220")
def test_with_500_tokens_only_fitting_items_are_added():
    async def scenario(memory, service):
        near = memory.embedder.near
        # 120 words of four letters and a space each are 600 characters
        texts = [near(f"m{number} " + "word " * 120, 0.9 - number / 100) for number in range(10)]
        await memory.add_many([record(text) for text in texts])
        window = ContextWindow(2000)
        talk = "hello " * 10
        while window.free_tokens > 500:
            room = window.free_tokens - 500
            window.add(
                ContextItem(content=talk, type=ContextItemType.USER_MESSAGE, token_count=room)
            )
        before = window.items()
        assert window.free_tokens == 500
        added = await service.retrieve_to_context(QUERY, window)
        assert 0 < added < 10
        retrieved = window.items(ContextItemType.RETRIEVED_DOCUMENT)
        assert len(retrieved) == added
        assert sum(item.token_count for item in retrieved) <= 500
        assert 500 - sum(item.token_count for item in retrieved) < retrieved[0].token_count
        assert all(window.get(item.id) == item for item in before)

    serve(scenario)


@pytest.mark.requirement("R221")
def test_a_hundred_memories_are_retrieved_and_augment_the_context():
    async def scenario(memory, service):
        topics = ("tea", "sofa", "ferry", "printer", "garden")
        await memory.add_many(
            [
                {"content": f"{topics[number % 5]} note{number}", "importance": number / 100}
                for number in range(100)
            ]
        )
        query = MemoryQuery(query="tea", limit=15, min_relevance=0.4)
        result = await service.retrieve(query)
        assert len(result) == 15
        assert result.total_matches == 20
        assert all(text.startswith("tea ") for text in found(result))
        window = ContextWindow(4000)
        assert await service.retrieve_to_context(query, window) == 15
        built = str(window.build())
        assert all(text in built for text in found(result))
        assert "sofa" not in built

    serve(scenario, memory=words())
