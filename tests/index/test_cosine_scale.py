"""The scale of cosines: the mean of two memories of a user, whatever else is stored."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import Memory
from mnemic.index import NativeIndex
from mnemic.model import Scope
from tests.support.rows import DIM, NOW, batch, record
from tests.support.tiers import examples

ANGLES = st.lists(st.floats(0, 3.1), min_size=30, max_size=40)
SCOPE = Scope("a", user_id="ann")


def scale_of(vectors, **owners):
    """Return the scale of Ann's rows; those named in `owners` belong to others."""
    index = NativeIndex(DIM)
    rows = [record(number, owners.get(f"row{number}", "ann")) for number in vectors]
    index.apply(batch(rows, vectors=vectors))
    return index.cosine_scale(SCOPE, NOW)


def turned(angles):
    return {number: (math.cos(angle), math.sin(angle)) for number, angle in enumerate(angles, 1)}


@pytest.mark.requirement("C212")
@examples(100)
@given(ANGLES)
def test_the_mean_is_that_of_all_pairs_and_the_floor_lower_among_few(angles):
    found = scale_of(turned(angles))
    if len(angles) < 32:
        assert found is None
        return
    pairs = [math.cos(a - b) for at, a in enumerate(angles) for b in angles[:at]]
    mean, floor = found
    assert mean == pytest.approx(min(np.mean(pairs), 1 - 1e-5), abs=1e-5)
    fewer = 0.1 * math.log(100 / len(angles))
    assert floor == pytest.approx(mean - (1 - mean) * fewer, abs=1e-9)


@pytest.mark.requirement("C212")
@examples(50)
@given(ANGLES, st.randoms(use_true_random=False))
def test_the_scale_depends_on_no_order_and_on_no_other_user(angles, chance):
    vectors = turned(angles)
    order = list(vectors.items())
    chance.shuffle(order)
    assert scale_of(dict(order)) == scale_of(vectors)
    beside = {**dict(order), 90: (1, 0), 91: (0, 1)}
    assert scale_of(beside, row90="bob", row91=None) == scale_of(vectors)


class Squeezed:
    """Bags of letters, or vectors whose cosines are .7 and a fifth of theirs."""

    def __init__(self, *, is_squeezed):
        self.model, self.is_squeezed = "letters", is_squeezed
        self.dimensions = 53 if is_squeezed else 26

    def embed(self, texts):
        bags = np.array([[text.count(chr(97 + at)) for at in range(26)] for text in texts], float)
        bags -= bags.mean(axis=1, keepdims=True)
        bags /= np.maximum(np.linalg.norm(bags, axis=1, keepdims=True), 1e-9)
        if not self.is_squeezed:
            return bags
        own = np.array([np.random.default_rng(len(text)).normal(size=26) for text in texts])
        own /= np.linalg.norm(own, axis=1, keepdims=True)
        same = np.full((len(texts), 1), math.sqrt(0.7))
        return np.hstack([math.sqrt(0.2) * bags, same, math.sqrt(0.1) * own])


STORED = ["zzyzx zoo", "my fig tree", "quick quip", "jam jar", "blue oboe", "mad hammock"] * 6


@pytest.mark.requirement("C212", "R030", "R125", "R287")
@pytest.mark.parametrize("is_squeezed", [False, True])
def test_every_door_finds_by_the_scale_of_its_memories(is_squeezed):
    with Memory(":memory:", embedder=Squeezed(is_squeezed=is_squeezed)) as memory:
        memory.add_many([f"{text}{'!' * at}" for at, text in enumerate(STORED)])
        found = memory.retrieve("zoo zzyzx", search_type="semantic", limit=36)
        assert 1 <= len(found) < 36, "some are below the floor"
        assert "zzyzx zoo" in found[0].content
        assert memory.search("zoo zzyzx", min_score="auto")
        assert memory.search("zoo zzyzx", search_type="semantic", min_score="auto")
