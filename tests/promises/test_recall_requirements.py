"""The requirements of recall, each with a test of its own."""

import inspect
from datetime import timedelta

import msgspec
import numpy as np
import pytest

from mnemic import licensing
from mnemic.model import (
    LinkType,
    MemoryRecallResult,
    MemoryRetrieverOptions,
    MemoryType,
    RecallMode,
    RecallOptions,
)
from mnemic.recall import AsyncMemoryRetriever
from tests.support.clock import DAY, NOON
from tests.support.recall import NamedSimilarities, mine, recalling, run, salience, scores, texts


def defaults(struct):
    return {field.name: field.default for field in msgspec.structs.fields(struct)}


@pytest.mark.requirement("R222")
@recalling()
async def test_what_do_i_know_about_it_and_what_happened_last_week_are_both_answered(
    memory, retriever
):
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


@pytest.mark.requirement("R226", "R227")
def test_the_feature_has_its_key_and_its_tier():
    assert licensing.RETRIEVER == "Agents.Memory.Retriever"
    assert licensing.required_tier("Agents.Memory.Retriever") is licensing.LicenseTier.WRITER_PRO


@pytest.mark.requirement("R224", "R225", "R228", "R229", "R230", "R231", "R232")
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
@recalling()
async def test_without_calibration_three_tenths_are_the_least_similarity(memory, retriever):
    await memory.store_batch([mine(f"m ~{cosine}") for cosine in (0.31, 0.29)])
    assert texts(await retriever.recall("m", user_id="u")) == ["m ~0.31"]


@pytest.mark.requirement("R230", "R234")
@recalling()
async def test_by_type_ten_are_returned_unless_another_limit_is_given(memory, retriever):
    await memory.store_batch([mine(f"{number} ~0.5") for number in range(12)])
    assert len(await retriever.recall_by_type("fact", "u")) == 10
    assert len(await retriever.recall_by_type("fact", "u", 11)) == 11
    assert len(await retriever.recall("m", user_id="u")) == 10
    assert len(await retriever.recall("m", user_id="u", max_results=11)) == 11


@pytest.mark.requirement("R229", "R258", "R272")
@recalling()
async def test_temporal_recall_returns_a_time_range_newest_first(memory, retriever):
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


@pytest.mark.requirement("R231", "R259", "R273")
@recalling()
async def test_linked_recall_tells_strength_and_type(memory, retriever):
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


@pytest.mark.requirement("R232", "R260")
@recalling()
async def test_what_is_linked_as_a_contradiction_is_one(memory, retriever):
    tea, coffee, other = mine("likes tea ~0.9"), mine("hates tea ~0.8"), mine("other ~0.9")
    await memory.store_batch([tea, coffee, other])
    await memory.link(tea.id, coffee.id, "contradicts", 1.0, user_id="u")
    result = await retriever.find_contradictions("tea", "u")
    assert set(texts(result)) == {"likes tea ~0.9", "hates tea ~0.8"}
    assert "Potential contradiction" in {each.match_reason for each in result}
    assert result.query_time > timedelta()


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
@recalling()
async def test_a_result_tells_memories_total_and_time(memory, retriever):
    await memory.store_batch([mine(f"{number} ~0.5") for number in range(5)])
    result = await retriever.recall("q", RecallOptions(user_id="u", max_results=2))
    assert isinstance(result, MemoryRecallResult)
    assert (len(result.memories), result.total_matches) == (2, 5)
    assert timedelta() < result.query_time < timedelta(minutes=1)
    assert result[0] == result.memories[0]
    with pytest.raises(AttributeError):
        result.total_matches = 3
