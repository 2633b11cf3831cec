"""Search by several hypotheses, neighbours of what it finds, and versions."""

import time
from datetime import timedelta

import numpy as np
import pytest

from mnemic import Memory
from mnemic.errors import DeadlineExceededError
from mnemic.hyde import HydeConfig
from mnemic.hyde.search import TurnSearch, ranked, together
from mnemic.model import Scope
from tests.support.clock import NOON, Clock

AXES = {"a": (1, 0, 0, 0), "b": (0, 1, 0, 0), "c": (0, 0, 1, 0), "d": (0, 0, 0, 1)}


def vector(*parts):
    given = np.array(parts, dtype=np.float32)
    return given / np.linalg.norm(given)


class Turn:
    """A memory with given vectors, and what the stages of a turn find in it."""

    def __init__(self, **named):
        self.memory = Memory(":memory:", embedder=None, **named)
        self.repository = self.memory._repository
        self.scope = Scope("default")

    def add(self, content, *parts, **fields):
        given = vector(*parts) if parts else vector(*AXES[content])
        return self.memory.add({"content": content, "embedding": given, **fields})

    def found(self, *hypotheses, scope=None, **config):
        return self.searched(*hypotheses, scope=scope, **config).candidates

    def searched(self, *hypotheses, scope=None, **config):
        config = HydeConfig(min_similarity=config.pop("min_similarity", 0.05), **config)
        vectors = np.stack([vector(*one) for one in hypotheses])
        return TurnSearch(self.repository, scope or self.scope, config).found(vectors)

    def turn(self, *hypotheses, scope=None, **config):
        """Return what all stages give."""
        searched = self.searched(*hypotheses, scope=scope, **config)
        config.pop("min_similarity", None)
        search = TurnSearch(self.repository, scope or self.scope, HydeConfig(**config))
        memories = search.expanded(searched.candidates)
        if searched.neighbours is not None:  # found in the same step
            assert together(searched.candidates, searched.neighbours) == memories
        return search.with_versions(memories)


@pytest.fixture
def turn():
    given = Turn()
    yield given
    given.memory.close()


def contents(memories):
    return [each.content for each in memories]


@pytest.mark.requirement("C106")
def test_equal_scores_are_ordered_by_the_last_change_then_by_id(turn):
    kept = [turn.add(f"equal {at}", 1, 0, 0, 0) for at in range(4)]
    found = ranked(turn.found(AXES["a"]))
    newest_first = sorted(kept, key=lambda entry: (-entry.updated_at.timestamp(), entry.id.bytes))
    assert [each.id for each in found] == [entry.id for entry in newest_first]
    turn.memory.update(kept[0].id, importance=1)
    assert ranked(turn.found(AXES["a"]))[0].id == kept[0].id


@pytest.mark.requirement("C107")
def test_few_candidates_of_each_hypothesis_are_united(turn):
    for at in range(5):
        turn.add(f"a {at}", 1, 0.01 * at, 0, 0)
    turn.add("c", 0, 0.6, 0.8, 0)
    hypotheses = AXES["a"], AXES["c"]
    assert len(turn.found(*hypotheses, retrieval_top_k=5)) == 5
    few = {"retrieval_top_k": 5, "candidates_per_hypothesis": 2}
    found = ranked(turn.found(*hypotheses, **few))
    assert contents(found) == ["a 0", "a 1", "c"]
    assert [each.score for each in found][::2] == pytest.approx([1, 0.8])
    few["retrieval_top_k"] = 2
    assert contents(ranked(turn.found(*hypotheses, **few))) == ["a 0", "a 1"]


@pytest.mark.requirement("C107")
def test_many_candidates_of_each_hypothesis_change_nothing(turn):
    for at in range(6):
        turn.add(f"memory {at}", 1, 0.3 * at, 0.1 * at * at, 0)
    hypotheses = [AXES["a"], AXES["b"], (1, 1, 1, 0)]
    whole = turn.found(*hypotheses, retrieval_top_k=3)
    for alone in (3, 4, 100):
        found = turn.found(*hypotheses, retrieval_top_k=3, candidates_per_hypothesis=alone)
        assert found == whole


@pytest.mark.requirement("C135")
def test_rivals_are_shown_at_each_of_them(turn):
    first = turn.add("first", 1, 0, 0, 0)
    one = turn.add("one", 1, 0, 0, 0, supersedes=first.id)
    two = turn.add("two", 0.8, 0.6, 0, 0, supersedes=first.id)
    found = {each.id: each for each in turn.turn(AXES["a"])}
    assert [entry.id for entry in found[one.id].contradicting] == [two.id]
    assert [entry.id for entry in found[two.id].contradicting] == [one.id]


@pytest.mark.requirement("C110")
def test_a_deadline_before_any_memory_is_found_is_raised(turn):
    turn.add("a")
    past = time.monotonic() - 1
    vectors = np.stack([vector(*AXES["a"])])
    search = TurnSearch(turn.repository, turn.scope, HydeConfig())
    found = search.found(vectors).candidates
    with pytest.raises(DeadlineExceededError):
        search.found(vectors, past)
    with pytest.raises(DeadlineExceededError):
        search.expanded(found, past)


def test_filters_hold_for_found_memories_and_neighbours(turn):
    first, second = turn.add("a"), turn.add("b", sensitive=True)
    turn.add("c", 1, 0.1, 0, 0, sensitive=True)
    turn.memory.link(first.id, second.id)
    vectors, config = np.stack([vector(*AXES["a"])]), HydeConfig(min_similarity=0.05)
    search = TurnSearch(turn.repository, turn.scope, config, include_sensitive=False)
    memories = search.expanded(search.found(vectors).candidates)
    assert contents(memories) == ["a"]


@pytest.mark.requirement("C219")
def test_heads_of_many_versions_are_found_as_far_down_as_a_turn_wants(turn):
    old = turn.add("version", 1, 0, 0, 0)
    for _ in range(30):
        old = turn.add("version", 1, 0, 0, 0, supersedes=old.id)
    turn.add("many", 0, 0, 0, 1, supersedes=old.id)
    once = turn.add("version", 0.8, 0.6, 0, 0)
    turn.add("one", 0, 0, 0, 1, supersedes=once.id)
    found = turn.found(AXES["a"], retrieval_top_k=2)
    assert contents(ranked(found)) == ["many", "one"]
    assert [each.score for each in found] == pytest.approx([1, 0.8])


@pytest.mark.requirement("C219")
def test_a_version_that_is_not_shown_leads_nowhere():
    clock = Clock(NOON)
    turn = Turn(clock=clock)

    def replaced(name, *, version=None, head=None):
        old = turn.add(f"old {name}", 1, 0, 0, 0, **(version or {}))
        turn.add(name, 0, 1, 0, 0, supersedes=old.id, **(head or {}))
        return old.id

    with turn.memory:
        replaced("shown")
        replaced("of a secret", version={"sensitive": True})
        replaced("secret", head={"sensitive": True})
        replaced("of the past", version={"expires_at": NOON + timedelta(hours=1)})
        turn.memory.delete(replaced("of a deleted one"))
        turn.memory.delete(replaced("of an erased one"), permanent=True)
        clock.now += timedelta(hours=2)
        vectors, config = np.stack([vector(*AXES["a"])]), HydeConfig(min_similarity=0.05)
        search = TurnSearch(turn.repository, turn.scope, config, include_sensitive=False)
        assert contents(ranked(search.found(vectors).candidates)) == ["shown"]
