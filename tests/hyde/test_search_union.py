"""Search by several hypotheses, neighbours of what it finds, and versions."""

import numpy as np
import pytest

from mnemic import LinkType, Memory
from mnemic.hyde import HydeConfig
from mnemic.hyde.search import expanded, found_by_hypotheses, ranked, with_versions
from mnemic.model import Scope

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
        return self.memory.add(content, embedding=given, **fields)

    def found(self, *hypotheses, scope=None, **config):
        config = HydeConfig(min_similarity=config.pop("min_similarity", 0.05), **config)
        vectors = np.stack([vector(*one) for one in hypotheses])
        return found_by_hypotheses(self.repository, scope or self.scope, vectors, config)

    def turn(self, *hypotheses, scope=None, **config):
        """Return what all stages give."""
        candidates = self.found(*hypotheses, scope=scope, **config)
        config.pop("min_similarity", None)
        config = HydeConfig(**config)
        scope = scope or self.scope
        memories = expanded(self.repository, scope, candidates, config)
        return with_versions(self.repository, scope, memories, config)


@pytest.fixture
def turn():
    given = Turn()
    yield given
    given.memory.close()


def contents(memories):
    return [each.content for each in memories]


@pytest.mark.requirement("C106", "C107", "R362")
def test_the_union_of_all_hypotheses_is_found(turn):
    turn.add("a")
    turn.add("b")
    turn.add("c")
    found = ranked(turn.found(AXES["a"], AXES["b"], retrieval_top_k=2))
    assert sorted(contents(found)) == ["a", "b"]
    assert [each.score for each in found] == pytest.approx([1, 1])


@pytest.mark.requirement("R363")
def test_a_memory_without_links_has_no_neighbours(turn):
    turn.add("a")
    assert contents(turn.turn(AXES["a"])) == ["a"]


@pytest.mark.requirement("R363", "C117")
def test_a_linked_memory_is_found_with_its_score_relation_and_origin(turn):
    a, b = turn.add("a"), turn.add("b")
    turn.memory.link(a.id, b.id, "refines", 0.5)
    first, second = turn.turn(AXES["a"])
    assert (first.content, first.relation, first.via) == ("a", None, None)
    assert (second.content, second.relation, second.via) == ("b", LinkType.REFINES, a.id)
    assert second.score == pytest.approx(0.9 * 0.5)


@pytest.mark.requirement("R363")
def test_a_cycle_ends(turn):
    a, b = turn.add("a"), turn.add("b")
    turn.memory.link(a.id, b.id)
    turn.memory.link(b.id, a.id)
    assert contents(turn.turn(AXES["a"], retrieval_hop_depth=2)) == ["a", "b"]


@pytest.mark.requirement("C109")
def test_a_link_to_a_superseded_memory_leads_to_the_head_of_its_versions(turn):
    a, first = turn.add("a"), turn.add("b")
    turn.memory.link(a.id, first.id, "related")
    second = turn.add("c", supersedes=first.id)
    assert contents(turn.turn(AXES["a"])) == ["a", "c"]
    third = turn.add("d", supersedes=second.id)
    (_, head) = turn.turn(AXES["a"])
    assert (head.id, head.relation, head.via) == (third.id, LinkType.RELATED, a.id)
    assert [entry.id for entry in head.versions] == [first.id, second.id]
