"""What the retriever offers is there as verbs of a memory."""

from datetime import timedelta

import msgspec
import pytest

from mnemic import Memory
from mnemic.compat import MemoryRetriever
from mnemic.errors import EntryNotFoundError, FilterError, InvalidArgumentError
from mnemic.model import SalienceOptions, SalienceWeights
from tests.support.clock import DAY, NOON, Clock
from tests.support.recall import NamedSimilarities

SCOPE = {"user_id": "alice"}
TEXTS = ("tea ~0.9", "bread ~0.7", "salt ~0.5", "sugar ~0.1")


@pytest.fixture
def memory():
    given = {"embedder": NamedSimilarities(), "clock": Clock(), "track_access": False}
    with Memory(":memory:", "aide", **given) as opened:
        opened.add_many(
            {"content": text, "created_at": NOON - at * DAY, "importance": 0.2 * at, **SCOPE}
            for at, text in enumerate(TEXTS)
        )
        opened.add("tea of Bob ~0.9", user_id="bob")
        yield opened


def contents(result):
    return [hit.content for hit in result]


def entries_of(memory):
    return memory.list(**SCOPE).entries


def as_shown(result):
    return msgspec.structs.replace(result, query_time=timedelta())


@pytest.mark.parametrize("mode", ["relevant", "recent", "important", "frequent", "temporal"])
def test_every_mode_is_limited_to_a_range_of_creation_times(memory, mode):
    found = memory.recall("query", mode=mode, since=NOON - 2 * DAY, until=NOON, **SCOPE)
    assert sorted(contents(found)) == ["bread ~0.7", "salt ~0.5"]
    since = memory.recall("query", mode=mode, since=NOON.isoformat(), **SCOPE)
    assert contents(since) == ["tea ~0.9"]


def test_mode_temporal_is_the_retrievers_temporal_recall(memory):
    retriever = MemoryRetriever(memory)
    first, last = NOON - 5 * DAY, NOON + timedelta(microseconds=1)
    for topic in (None, "query"):
        wanted = retriever.recall_temporal(first, last, topic, half_open=True, limit=2, **SCOPE)
        found = memory.recall(
            topic or "", mode="temporal", since=first, until=last, limit=2, **SCOPE
        )
        assert as_shown(found) == as_shown(wanted)
        assert contents(found) == ["tea ~0.9", "bread ~0.7"]
    assert contents(memory.recall(mode="temporal", until=last, **SCOPE)) == list(TEXTS)


def test_a_range_of_mode_temporal_is_checked(memory):
    with pytest.raises(InvalidArgumentError, match="since= or until="):
        memory.recall(mode="temporal", **SCOPE)
    with pytest.raises(InvalidArgumentError, match="ends before it begins"):
        memory.recall(mode="temporal", since=NOON, until=NOON - DAY, **SCOPE)
    with pytest.raises(FilterError, match="until"):
        memory.recall("query", until="noon", **SCOPE)


def test_linked_memories_are_those_of_the_retriever(memory):
    tea, bread, salt, _ = entries_of(memory)
    memory.link(tea.id, bread.id, "derived_from", strength=0.5, **SCOPE)
    memory.link(bread.id, salt.id, strength=0.5, **SCOPE)
    retriever = MemoryRetriever(memory)
    for options in (
        {},
        {"depth": 2},
        {"depth": 2, "limit": 1},
        {"depth": 2, "direction": "both"},
        {"direction": "in"},
        {"include_archived": True, "depth": 3},
    ):
        found = memory.linked(bread.id, **options, **SCOPE)
        wanted = retriever.recall_linked(bread.id, **options, **SCOPE)
        assert as_shown(found) == as_shown(wanted)
    assert contents(memory.linked(tea.id, depth=2, **SCOPE)) == ["bread ~0.7", "salt ~0.5"]
    assert contents(memory.linked(tea.id, types=["related"], **SCOPE)) == []
    assert contents(memory.linked(tea.id, types=["derived_from"], **SCOPE)) == ["bread ~0.7"]


def test_linked_refuses_what_it_does_not_understand(memory):
    tea = entries_of(memory)[0]
    for options in ({"depth": 4}, {"direction": "up"}, {"types": ["friend"]}, {"limit": 0}):
        with pytest.raises(InvalidArgumentError):
            memory.linked(tea.id, **options, **SCOPE)
    with pytest.raises(EntryNotFoundError):
        memory.linked(tea.id, user_id="bob")


def test_salience_and_reinforcement_are_those_of_the_retriever(memory):
    salt = entries_of(memory)[2]
    retriever = MemoryRetriever(memory)
    for options in (
        {},
        {"query": "query"},
        {"weights": SalienceWeights(0.0, 0.0, 1.0, 0.0)},
        {"options": SalienceOptions(half_life_days=1.0)},
    ):
        wanted = retriever.salience(salt.id, "alice", **options)
        assert memory.salience(salt.id, **options, **SCOPE) == wanted
    raised = memory.reinforce(salt.id, "user_correction", **SCOPE)
    assert raised.importance == pytest.approx(0.65)
    boosts = SalienceOptions(boosts={"repeated_access": 0.2})
    again = memory.reinforce(str(salt.id), "repeated_access", options=boosts, **SCOPE)
    assert again.importance == pytest.approx(0.85)


@pytest.mark.parametrize("verb", ["salience", "reinforce", "linked"])
def test_a_memory_of_another_user_does_not_exist(memory, verb):
    salt = entries_of(memory)[2]
    reason = ("repeated_access",) if verb == "reinforce" else ()
    project = memory.scoped(project_id="p")
    for view, scope in ((memory, {"user_id": "bob"}), (memory, {}), (project, SCOPE)):
        with pytest.raises(EntryNotFoundError, match=str(salt.id)):
            getattr(view, verb)(salt.id, *reason, **scope)
    getattr(memory, verb)(salt.id, *reason, all_users=True)


def test_records_of_the_wrong_kind_and_unknown_reasons_are_refused(memory):
    salt = entries_of(memory)[2]
    with pytest.raises(InvalidArgumentError, match="weights must be SalienceWeights"):
        memory.salience(salt.id, weights={"recency": 1.0}, **SCOPE)
    with pytest.raises(InvalidArgumentError, match="options must be SalienceOptions"):
        memory.reinforce(salt.id, "user_correction", options={}, **SCOPE)
    with pytest.raises(InvalidArgumentError, match="reason must be one of"):
        memory.reinforce(salt.id, "because", **SCOPE)


def test_contradictions_take_a_minimum_confidence():
    with Memory(":memory:", embedder=NamedSimilarities()) as memory:
        memory.add("I live in Oslo", **SCOPE)
        surest = memory.contradictions("I live in Rome", **SCOPE)
        assert contents(surest) == ["I live in Oslo"]
        least = surest[0].score
        assert len(memory.contradictions("I live in Rome", min_confidence=least, **SCOPE)) == 1
        assert len(memory.contradictions("I live in Rome", min_confidence=1.0, **SCOPE)) == 0
        with pytest.raises(InvalidArgumentError, match="min_confidence"):
            memory.contradictions("I live in Rome", min_confidence=2, **SCOPE)
