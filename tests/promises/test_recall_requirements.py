"""The requirements of recall, each with a test of its own."""

import asyncio
import inspect
import math
from datetime import timedelta

import msgspec
import numpy as np
import pytest

import mnemic
from mnemic import licensing
from mnemic.memory import Memory
from mnemic.model import (
    LinkType,
    MemoryRecallResult,
    MemoryRetrieverOptions,
    MemoryStatus,
    MemoryType,
    RecallMode,
    RecallOptions,
)
from mnemic.recall import AsyncMemoryRetriever
from tests.support.clock import DAY, HOUR, NOON, Clock
from tests.support.recall import NamedSimilarities, counts, mine, run, salience, scores, texts


def defaults(struct):
    return {field.name: field.default for field in msgspec.structs.fields(struct)}


@pytest.mark.requirement("R222")
def test_what_do_i_know_about_it_and_what_happened_last_week_are_both_answered():
    async def scenario(memory, retriever):
        tea = mine("tea ~0.9", created_at=NOON - 60 * DAY)
        trip = mine("trip ~0.1", created_at=NOON - 3 * DAY, type=MemoryType.EVENT)
        plan = mine("plan ~0.1", created_at=NOON - 60 * DAY, importance=1.0)
        await memory.store_batch([tea, trip, plan])
        assert texts(await retriever.recall("about tea", user_id="u")) == ["tea ~0.9"]
        week = await retriever.recall_temporal(NOON - 7 * DAY, NOON, user_id="u")
        assert texts(week) == ["trip ~0.1"]
        assert texts(await retriever.recall_by_type("event", "u")) == ["trip ~0.1"]
        important = await retriever.recall("", user_id="u", mode="important")
        assert texts(important) == ["trip ~0.1", "tea ~0.9", "plan ~0.1"]

    run(scenario)


@pytest.mark.requirement("R223", "R240", "R241", "R242", "R243", "R244")
def test_there_are_five_modes():
    assert [mode.value for mode in RecallMode] == [
        *("relevant", "recent", "important", "temporal", "frequent"),
    ]


@pytest.mark.requirement("R224", "R225")
def test_retriever_and_what_it_is_asked_are_public():
    for name in ("RecallOptions", "RecallMode", "MemoryRetrieverOptions"):
        assert name in mnemic.model.__all__
    assert mnemic.compat.AsyncMemoryRetriever is AsyncMemoryRetriever
    methods = ("recall", "recall_temporal", "recall_by_type", "recall_linked")
    for name in (*methods, "find_contradictions"):
        assert inspect.iscoroutinefunction(getattr(AsyncMemoryRetriever, name))


@pytest.mark.requirement("R226", "R227")
def test_the_feature_has_its_key_and_its_tier():
    assert licensing.RETRIEVER == "Agents.Memory.Retriever"
    assert licensing.required_tier("Agents.Memory.Retriever") is licensing.LicenseTier.WRITER_PRO


@pytest.mark.requirement("R228", "R229", "R230", "R231", "R232")
def test_methods_take_the_documented_arguments_in_their_order():
    expected = {
        "recall": ["query", "options"],
        "recall_temporal": ["from_", "to", "topic_filter"],
        "recall_by_type": ["type", "user_id", "limit"],
        "recall_linked": ["memory_id", "link_types"],
        "find_contradictions": ["content", "user_id"],
    }
    for name, arguments in expected.items():
        given = list(inspect.signature(getattr(AsyncMemoryRetriever, name)).parameters)
        assert given[1 : 1 + len(arguments)] == arguments
        assert "user_id" in given or name == "recall"


@pytest.mark.requirement("R233", "R234", "R235", "R236", "R237", "R238", "R239")
def test_options_of_a_recall_have_the_documented_defaults():
    found = defaults(RecallOptions)
    assert found["user_id"] is msgspec.NODEFAULT
    assert {name: found[name] for name in found if name != "user_id"}.items() >= {
        "max_results": 10,
        "type_filter": None,
        "min_salience": 0.0,
        "mode": RecallMode.RELEVANT,
        "project_id": None,
        "include_archived": False,
    }.items()
    with pytest.raises(TypeError, match="user_id"):
        RecallOptions()


@pytest.mark.requirement("R245", "R246", "R248", "R249")
def test_options_of_the_retriever_have_the_documented_defaults():
    found = defaults(MemoryRetrieverOptions)
    assert found["similarity_weight"] == 0.6
    assert found["salience_weight"] == 0.4
    assert found["candidate_multiplier"] == 3
    assert found["track_access"] is True


@pytest.mark.requirement("R247", "C151")
def test_without_calibration_three_tenths_are_the_least_similarity():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(f"m ~{cosine}") for cosine in (0.31, 0.29)])
        assert texts(await retriever.recall("m", user_id="u")) == ["m ~0.31"]

    run(scenario)


@pytest.mark.requirement("R230", "R234")
def test_by_type_ten_are_returned_unless_another_limit_is_given():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(f"{number} ~0.5") for number in range(12)])
        assert len(await retriever.recall_by_type("fact", "u")) == 10
        assert len(await retriever.recall_by_type("fact", "u", 11)) == 11
        assert len(await retriever.recall("m", user_id="u")) == 10
        assert len(await retriever.recall("m", user_id="u", max_results=11)) == 11

    run(scenario)


@pytest.mark.requirement("R250", "R251", "R256", "R257", "R268")
def test_relevant_recall_scores_by_similarity_and_salience():
    async def scenario(memory, retriever):
        near = mine("near ~0.9", created_at=NOON - 7 * DAY, importance=0.0)
        worthy = mine("worthy ~0.7", importance=1.0, access_count=9)
        far = mine("far ~0.2", importance=1.0, access_count=100)
        await memory.store_batch([near, worthy, far])
        result = await retriever.recall("q", user_id="u")
        assert texts(result) == ["worthy ~0.7", "near ~0.9"]
        expected = [0.6 * 0.7 + 0.4 * salience(worthy), 0.6 * 0.9 + 0.4 * salience(near)]
        assert scores(result) == pytest.approx(expected, abs=1e-6)
        assert [scored.match_reason for scored in result] == [
            f"Similarity: 0.70, Salience: {salience(worthy):.2f}",
            f"Similarity: 0.90, Salience: {salience(near):.2f}",
        ]

    run(scenario)


@pytest.mark.requirement("R245", "R246")
def test_other_weights_give_another_order():
    async def scenario(memory, retriever):
        near, worthy = mine("near ~0.9", importance=0.0), mine("worthy ~0.7", importance=1.0)
        await memory.store_batch([near, worthy])
        result = await retriever.recall("q", user_id="u")
        assert texts(result) == ["near ~0.9", "worthy ~0.7"]
        assert scores(result) == pytest.approx([0.9, 0.7], abs=1e-6)

    by_similarity = MemoryRetrieverOptions(similarity_weight=1.0, salience_weight=0.0)
    run(scenario, options=by_similarity)


@pytest.mark.requirement("R241", "R252", "R269")
def test_recent_recall_goes_by_the_last_access():
    async def scenario(memory, retriever):
        read = mine("read", created_at=NOON - 9 * DAY, last_accessed_at=NOON - HOUR, importance=0.0)
        old = mine("old", created_at=NOON - 9 * DAY, importance=1.0, access_count=90)
        new = mine("new", created_at=NOON - DAY, importance=0.2)
        await memory.store_batch([read, old, new])
        result = await retriever.recall("", user_id="u", mode="recent")
        assert texts(result) == ["read", "new", "old"]
        curve = [0.5 ** (days / 7) for days in (1 / 24, 1, 9)]
        assert scores(result) == pytest.approx(curve, abs=1e-9)

    run(scenario)


@pytest.mark.requirement("R242", "R253", "R270")
def test_important_recall_goes_by_salience():
    async def scenario(memory, retriever):
        stale = mine("stale", created_at=NOON - 70 * DAY, importance=1.0)
        used = mine("used", created_at=NOON - 70 * DAY, importance=0.5, access_count=100)
        fresh = mine("fresh", importance=0.6)
        await memory.store_batch([stale, used, fresh])
        result = await retriever.recall("", user_id="u", mode="important")
        assert texts(result) == ["fresh", "used", "stale"]
        worth = [salience(each) for each in (fresh, used, stale)]
        assert scores(result) == pytest.approx(worth, abs=1e-9)

    run(scenario)


@pytest.mark.requirement("R244", "R254", "R271")
def test_frequent_recall_goes_by_the_number_of_accesses():
    async def scenario(memory, retriever):
        entries = [
            mine(f"{count} times", access_count=count, importance=1 / (count + 1))
            for count in (3, 1000, 0, 101, 100)
        ]
        await memory.store_batch(entries)
        result = await retriever.recall("", user_id="u", mode="frequent")
        assert texts(result) == ["1000 times", "101 times", "100 times", "3 times", "0 times"]
        expected = [1, 1, 1, math.log(4) / math.log(101), 0]
        assert scores(result) == pytest.approx(expected, abs=1e-9)

    run(scenario)


@pytest.mark.requirement("R239", "R255")
def test_archived_memories_are_left_out_unless_asked_for():
    async def scenario(memory, retriever):
        await memory.store_batch([mine("a"), mine("b", status=MemoryStatus.ARCHIVED)])
        for mode in ("relevant", "recent", "important", "frequent"):
            found = await retriever.recall("q", user_id="u", mode=mode)
            assert texts(found) == ["a"]
            found = await retriever.recall("q", user_id="u", mode=mode, include_archived=True)
            assert sorted(texts(found)) == ["a", "b"]

    run(scenario)


@pytest.mark.requirement("R229", "R258", "R272")
def test_temporal_recall_returns_a_time_range_newest_first():
    async def scenario(memory, retriever):
        entries = [
            mine(f"{days} days ago", created_at=NOON - days * DAY, importance=days / 10)
            for days in (5, 1, 3, 8, 0)
        ]
        await memory.store_batch(entries)
        result = await retriever.recall_temporal(NOON - 5 * DAY, NOON - DAY, user_id="u")
        assert texts(result) == ["1 days ago", "3 days ago", "5 days ago"]
        assert {scored.match_reason for scored in result} == {"Temporal match"}
        worth = [salience(scored.memory) for scored in result]
        assert scores(result) == pytest.approx(worth, abs=1e-9)

    run(scenario)


@pytest.mark.requirement("R258")
def test_a_topic_leaves_only_what_is_near_to_it():
    async def scenario(memory, retriever):
        await memory.store_batch(
            [mine(f"m ~{cosine}", created_at=NOON - cosine * DAY) for cosine in (0.2, 0.4, 0.9)]
        )
        result = await retriever.recall_temporal(NOON - DAY, NOON, "tea", user_id="u")
        assert texts(result) == ["m ~0.4", "m ~0.9"]

    run(scenario)


@pytest.mark.requirement("R231", "R259", "R273")
def test_linked_recall_tells_strength_and_type():
    async def scenario(memory, retriever):
        one, two, three, four = (mine(name) for name in ("one", "two", "three", "four"))
        await memory.store_batch([one, two, three, four])
        await memory.link(one.id, two.id, "derived_from", 0.4, user_id="u")
        await memory.link(one.id, three.id, "reinforces", 0.7, user_id="u")
        await memory.link(four.id, one.id, "related", 1.0, user_id="u")
        result = await retriever.recall_linked(one.id, user_id="u")
        assert [(each.memory.content, each.score, each.match_reason) for each in result] == [
            ("three", 0.7, "Linked via Reinforces"),
            ("two", 0.4, "Linked via DerivedFrom"),
        ]
        only = await retriever.recall_linked(one.id, [LinkType.DERIVED_FROM], user_id="u")
        assert texts(only) == ["two"]
        await memory.forget(three.id, permanent=True, user_id="u")
        assert texts(await retriever.recall_linked(one.id, user_id="u")) == ["two"]

    run(scenario)


@pytest.mark.requirement("R232", "R260")
def test_what_is_linked_as_a_contradiction_is_one():
    async def scenario(memory, retriever):
        tea, coffee, other = mine("likes tea ~0.9"), mine("hates tea ~0.8"), mine("other ~0.9")
        await memory.store_batch([tea, coffee, other])
        await memory.link(tea.id, coffee.id, "contradicts", 1.0, user_id="u")
        result = await retriever.find_contradictions("tea", "u")
        assert set(texts(result)) == {"likes tea ~0.9", "hates tea ~0.8"}
        assert "Potential contradiction" in {each.match_reason for each in result}
        assert result.query_time > timedelta()

    run(scenario)


class Lengthless(NamedSimilarities):
    def __init__(self, length):
        super().__init__()
        self.length = length

    def vector(self, text):
        return (self.length, 0.0) if "nothing" in text else super().vector(text)


@pytest.mark.requirement("R261")
@pytest.mark.parametrize("length", [0.0, 1e-12])
def test_a_vector_without_length_is_like_nothing(length):
    async def scenario(memory, retriever):
        await memory.store_batch([mine("nothing"), mine("tea ~0.5")])
        assert texts(await retriever.recall("q", user_id="u")) == ["tea ~0.5"]
        breakdown = await retriever.salience(
            (await memory.search_by_filter({"content": "nothing"}, user_id="u"))[0].id,
            "u",
            query="q",
        )
        assert breakdown.relevance == 0.0
        assert not np.isnan(breakdown.final_score)

    run(scenario, embedder=Lengthless(length))


@pytest.mark.requirement("R228", "R262")
def test_a_result_tells_memories_total_and_time():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(f"{number} ~0.5") for number in range(5)])
        result = await retriever.recall("q", RecallOptions(user_id="u", max_results=2))
        assert isinstance(result, MemoryRecallResult)
        assert (len(result.memories), result.total_matches) == (2, 5)
        assert timedelta() < result.query_time < timedelta(minutes=1)
        assert result[0] == result.memories[0]
        with pytest.raises(AttributeError):
            result.total_matches = 3

    run(scenario)


@pytest.mark.requirement("R249", "R250", "R274")
def test_a_retrieval_is_an_access_when_that_is_tracked():
    async def scenario(memory, retriever):
        await memory.store(mine("a", last_accessed_at=NOON - DAY))
        await retriever.recall("q", user_id="u")
        (read,) = await memory.search_by_filter({}, user_id="u")
        return read.access_count, read.last_accessed_at

    assert run(scenario) == (1, NOON)
    untracked = MemoryRetrieverOptions(track_access=False)
    assert run(scenario, options=untracked) == (0, NOON - DAY)


@pytest.mark.requirement("R235", "R238", "R275")
@pytest.mark.parametrize("mode", ["relevant", "recent", "important", "frequent"])
def test_types_and_projects_are_filtered_by_in_every_mode(mode):
    async def scenario(memory, retriever):
        await memory.store_batch(
            [
                mine(f"{kind.name} {project}", type=kind, project_id=project)
                for kind in (MemoryType.FACT, MemoryType.EVENT)
                for project in ("p", "q", None)
            ]
        )

        async def found(**filters):
            return set(texts(await retriever.recall("x", user_id="u", mode=mode, **filters)))

        assert await found(type_filter="event") == {"EVENT p", "EVENT q", "EVENT None"}
        assert await found(project_id="p") == {"FACT p", "EVENT p"}
        assert await found(type_filter=MemoryType.FACT, project_id="q") == {"FACT q"}
        assert len(await found()) == 6

    run(scenario)


class Words(NamedSimilarities):
    """Databases lie one way, everything else another; which words there are moves them a little."""

    dimensions = 8

    def vector(self, text):
        vector = np.full(8, 0.05)
        known = ("database", "index", "performance", "query", "sql")
        vector[0] = sum(word in text.lower() for word in known)
        vector[1 + len(text) % 7] = 1.0
        return vector


@pytest.mark.requirement("R276")
def test_of_ten_memories_those_about_databases_rank_highest():
    about = ["The database index is slow", "SQL query performance", "Tune the database performance"]
    others = [f"{what} is pleasant" for what in ("Tea", "Oslo", "Rain", "A walk", "Jazz", "Bread")]

    async def scenario(memory, retriever):
        await memory.store_batch([mine(text) for text in (*others, *about, "The cat sleeps")])
        result = await retriever.recall("database performance", user_id="u")
        assert set(texts(result)[:3]) == set(about)
        assert scores(result) == sorted(scores(result), reverse=True)
        assert scores(result)[2] > max([*scores(result)[3:], 0])

    run(scenario, embedder=Words())


@pytest.mark.requirement("R277")
def test_of_a_month_only_last_week_is_returned_by_creation():
    async def scenario(memory, retriever):
        await memory.store_batch(
            [mine(f"day {day}", created_at=NOON - day * DAY) for day in range(30)]
        )
        week = await retriever.recall_temporal(NOON - 13 * DAY, NOON - 7 * DAY, user_id="u")
        assert texts(week) == [f"day {day}" for day in range(7, 14)]

    run(scenario)


@pytest.mark.requirement("R278", "C138")
def test_of_semantic_and_episodic_memories_only_the_semantic_are_returned():
    async def scenario(memory, retriever):
        facts = [mine(f"fact {n}", type=kind) for n, kind in enumerate(
            ("fact", "insight", "preference", "correction", "fact"))]  # fmt: skip
        events = [mine(f"event {n}", type=kind) for n, kind in enumerate(
            ("event", "conversation", "event", "conversation", "event"))]  # fmt: skip
        await memory.store_batch(facts + events)
        semantic = await retriever.recall_by_type("SEMANTIC", "u")
        assert set(texts(semantic)) == {f"fact {n}" for n in range(5)}
        assert semantic.total_matches == 5

    run(scenario)


@pytest.mark.requirement("R279")
def test_five_accesses_are_six_after_a_recall():
    async def scenario(memory, retriever):
        await memory.store(mine("tea", access_count=5))
        result = await retriever.recall("tea", user_id="u")
        assert result[0].memory.access_count == 5
        assert await counts(memory) == {"tea": 6}

    run(scenario)


@pytest.mark.requirement("R280")
def test_both_that_a_memory_is_linked_to_are_returned(tmp_path):
    with Memory(tmp_path / "a.db", embedder=NamedSimilarities(), clock=Clock()) as memory:
        one, two, three = (memory.add(text, user_id="u") for text in "abc")
        memory.add("d", user_id="u")
        memory.link(one.id, two.id, user_id="u")
        memory.link(one.id, three.id, "refines", user_id="u")
        retriever = AsyncMemoryRetriever(memory)

        async def scenario():
            return await retriever.recall_linked(one.id, user_id="u")

        assert set(texts(asyncio.run(scenario()))) == {"b", "c"}
