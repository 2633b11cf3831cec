"""Vectors of a program's own as queries."""

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import MemoryEntry, Ranking
from mnemic.errors import InvalidArgumentError
from mnemic.model import HYBRID, KEYWORD
from tests.support.clock import NOON
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.tiers import examples

NORTH, EAST = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
BETWEEN = [3.0, 4.0, 0.0]


@pytest.fixture
def memory():
    with opened(embedder=None) as made:
        yield made


def contents(found):
    return [hit.content for hit in found]


def scores(found):
    return {hit.content: round(hit.score, 6) for hit in found}


def test_a_vector_alone_searches_by_meaning(memory):
    memory.add_many(["north", "east"], embeddings=[NORTH, EAST])
    for search_type in ("hybrid", "semantic"):
        found = memory.search(vector=BETWEEN, search_type=search_type)
        assert scores(found) == {"east": 0.8, "north": 0.6}


def test_a_text_and_a_vector_search_by_both(memory):
    memory.add_many(["the old lamp stands here", "a new boat lies there"], embeddings=[NORTH, EAST])
    found = memory.search("lamp", vector=EAST, explain=True)
    parts = {hit.content: hit.components for hit in found}
    assert parts["the old lamp stands here"]["keyword"] > 0
    assert parts["a new boat lies there"]["similarity"] == 1
    assert contents(memory.search("lamp", vector=EAST, search_type="semantic"))[0].startswith("a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector": [0.0, 0.0, 0.0]}, "zeros"),
        ({"vector": [NORTH, [0.0] * 3]}, "zeros"),
        ({"vector": [1.0, float("inf"), 0.0]}, "infinity"),
        ({"vector": [1.0]}, "3 dimensions"),
        ({"vector": []}, "shape"),
        ({"vector": "north"}, "list of numbers"),
        ({"vector": NORTH, "query": ""}, "query must be a text"),
        ({"vector": NORTH, "query": "x", "search_type": "keyword"}, "leave vector out"),
        ({"vector": NORTH, "search_type": "keyword"}, "leave vector out"),
        ({"vector": NORTH, "query": "x", "ranking": KEYWORD}, "leave vector out"),
        ({}, "query must be a text"),
    ],
)
def test_a_search_refuses_what_it_cannot_compare(memory, options, message):
    memory.add(MemoryEntry("north", embedding=NORTH))
    with pytest.raises(InvalidArgumentError, match=message):
        memory.search(**options)


def test_a_vector_has_no_language():
    embedder = WordEmbedder()
    embedder.languages = {"en"}
    with opened(embedder=embedder) as memory:
        memory.add("one red cat sleeps there")
        embedder.texts.clear()
        vector = embedder.embed(["one red cat sleeps there"])[0]
        by_text, by_vector = memory.search("кот"), memory.search("кот", vector=vector)
        assert len(by_text) == 0
        assert [round(hit.components["similarity"], 6) for hit in by_vector] == [1]


def test_context_takes_a_vector_and_passes_over_empty_texts(memory):
    memory.add(MemoryEntry("", embedding=NORTH))
    memory.add(MemoryEntry("north", embedding=NORTH))
    assert [entry.content for entry in memory.context(vector=NORTH).memories] == ["north"]


def test_similar_compares_own_vectors(memory):
    one = memory.add(MemoryEntry("lamp and boat", embedding=NORTH))
    memory.add_many(["near", "a boat far away"], embeddings=[[0.9, 0.1, 0.0], EAST])
    plain = memory.add("a lamp without a vector")
    assert contents(memory.similar(one.id))[0] == "near"
    assert contents(memory.similar(plain.id))[0] == "lamp and boat"


words = st.sampled_from(["red", "cat", "dog", "tree", "boat", "lamp", "the", "a", "Oslo", "5"])
texts = st.lists(words, min_size=1, max_size=8).map(" ".join)
search_types = st.sampled_from(["hybrid", "semantic"])
rankings = st.sampled_from([None, HYBRID, Ranking(similarity=0.5), Ranking(full_words=3)])


@examples(60)
@given(st.lists(texts, min_size=1, max_size=8), texts, rankings, search_types)
def test_the_vector_of_a_text_finds_what_the_text_finds(stored, query, ranking, search_type):
    embedder = WordEmbedder(dimensions=16)
    with opened(embedder=embedder, clock=lambda: NOON) as memory:
        memory.add_many(stored)
        options = {"search_type": search_type} if ranking is None else {"ranking": ranking}
        vector = embedder.embed([query])[0]
        by_text = memory.search(query, explain=True, **options)
        by_vector = memory.search(query, vector=vector, explain=True, **options)
        assert exact(by_text) == exact(by_vector)
        if search_type == "semantic" and ranking is None:
            assert exact(by_text) == exact(memory.search(vector=vector, explain=True))


def exact(found):
    return [(hit.id, hit.score.hex(), sorted(hit.components.items())) for hit in found], found.share


def cosine(one, other):
    lengths = math.hypot(*one) * math.hypot(*other)
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


def sum_of(vectors):
    return [math.fsum(parts) for parts in zip(*vectors, strict=True)]


def times(factor, vector):
    return [factor * part for part in vector]


def direction(vector):
    return times(1 / math.hypot(*vector), vector)


def without(common, vector):
    """Return what a vector of length 1 has beside a direction."""
    return sum_of([vector, times(-cosine(vector, common), direction(common))])


def weight_of(hypothesis, question, given, stored):
    """Return what a hypothesis weighs by its agreement and by what the question finds near it."""
    agreement = max(cosine(hypothesis, question), 0)
    beside = without(question, direction(hypothesis))
    first = sorted(stored, key=lambda one: -cosine(one, given))[:20]
    found = max(max(cosine(one, beside), 0) * max(cosine(one, given), 0) for one in first)
    most = max(cosine(one, beside) for one in stored) * cosine(first[0], given)
    evidence = found / most if most > 0 and found > 0 else 0
    return max(agreement * math.sqrt(evidence), evidence**4)


@pytest.mark.parametrize("count", [5, 40])
@examples(20)
@given(st.integers(0, 10_000))
def test_hypotheses_weigh_what_they_agree_with_the_question(count, seed):
    random = Random(seed)  # noqa: S311 - no secret

    def drawn(length=1.0):
        return [length * random.gauss(shift) for shift in (2, 0, 0, 0)]

    stored, question = [drawn(random.choice([0.1, 9])) for _ in range(count)], drawn()
    hypotheses = [drawn(random.choice([1e-3, 1e9])) for _ in range(random.randint(1, 3))]
    common = sum_of(map(direction, stored))
    whole = [direction(vector) for vector in (question, *hypotheses)]
    # The common direction is known of 32 memories.
    own = [without(common, vector) for vector in whole] if count >= 32 else whole
    weights = [weight_of(one, own[0], question, stored) for one in own[1:]]
    parts = [times(weight, all_) for weight, all_ in zip(weights, whole[1:], strict=True)]
    wanted = sum_of([whole[0], times(1 / len(hypotheses), sum_of(parts))])
    with opened(embedder=None) as memory:
        memory.add_many([f"memory {at}" for at in range(count)], embeddings=stored)
        options = {"search_type": "semantic", "limit": count}
        found = memory.search("words", vector=[question, *hypotheses], **options)
    similar = {hit.content: hit.similarity for hit in found}
    assert similar == pytest.approx(
        {f"memory {at}": cosine(one, wanted) for at, one in enumerate(stored)}, abs=1e-5
    )


def test_a_hypothesis_that_has_nothing_to_do_with_the_question_changes_nothing(memory):
    memory.add_many(["north lamp", "east"], embeddings=[NORTH, EAST])
    alone = exact(memory.search("lamp", vector=NORTH))
    for hypothesis in (EAST, BETWEEN, [-1.0, 0.5, 0.0]):
        assert exact(memory.search("lamp", vector=[NORTH, hypothesis])) == alone


def test_a_guess_counts_as_far_as_it_leads_to_what_the_question_finds(memory):
    up = [0.0, 0.0, 1.0]
    memory.add_many(["a lamp in the hall", "a lamp", "boat"], embeddings=[BETWEEN, NORTH, up])

    def nearness(*vectors):
        found = memory.search("lamp", vector=list(vectors), limit=3)
        return {hit.content: round(hit.similarity, 3) for hit in found}["a lamp in the hall"]

    assert nearness(NORTH, EAST) > nearness(NORTH) == nearness(NORTH, up) == 0.6
