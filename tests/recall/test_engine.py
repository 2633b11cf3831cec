"""The orders of recall: relevance, time, importance and frequency."""

import pytest

from mnemic import Memory
from mnemic.compat import MemoryRetriever
from mnemic.errors import EmbedderRequiredError
from mnemic.model import MemoryRetrieverOptions
from tests.support.clock import DAY, NOON
from tests.support.embedders import WordEmbedder
from tests.support.recall import (
    MODES,
    OWN_ORDERS,
    NamedSimilarities,
    mine,
    recalling,
    run,
    salience,
    scores,
    texts,
)

# Own orders


def test_a_memory_without_a_vector_is_recalled_by_its_salience():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        memory.add_many([{"content": "red sofa", "embed": ()}])
        retriever = MemoryRetriever(memory, MemoryRetrieverOptions(min_similarity=0.0))
        reasons = [hit.match_reason for hit in retriever.recall("red sofa", user_id=None)]
    assert all(reason.startswith("Salience: ") for reason in reasons)
    assert len(reasons) == 1


# Relevant recall


@pytest.mark.requirement("C060", "C012", "C076")
@recalling()
async def test_the_best_memory_wins_however_many_are_nearer(memory, retriever):
    near = [mine(f"{at} ~0.8", importance=0.0, created_at=NOON - 70 * DAY) for at in range(60)]
    best = mine("best ~0.7", importance=1.0, access_count=100)
    await memory.store_batch([*near, best])
    assert texts(await retriever.recall("q", user_id="u", max_results=1)) == ["best ~0.7"]


@pytest.mark.requirement("C076")
@recalling()
async def test_one_users_few_memories_are_all_found_among_many_others(memory, retriever):
    others = [mine(f"{at} ~0.99", user_id=f"other {at % 7}") for at in range(300)]
    own = [mine(f"own {at} ~0.5") for at in range(5)]
    await memory.store_batch(others + own)
    for mode in MODES:
        found = await retriever.recall("q", user_id="u", mode=mode, max_results=5)
        assert sorted(texts(found)) == [f"own {at} ~0.5" for at in range(5)]
        assert found.total_matches == 5


@pytest.mark.requirement("C073")
@recalling(options=MemoryRetrieverOptions(min_similarity=0.0, track_access=False))
async def test_negative_cosines_count_as_nothing(memory, retriever):
    good = mine("against ~-0.9", importance=1.0)
    weak = mine("across ~0.0", importance=0.5)
    await memory.store_batch([good, weak])
    found = await retriever.recall("q", user_id="u")
    assert texts(found) == ["against ~-0.9", "across ~0.0"]
    expected = [0.4 * salience(good), 0.4 * salience(weak)]
    assert scores(found) == pytest.approx(expected, abs=1e-6)
    assert found[0].match_reason == f"Similarity: 0.00, Salience: {salience(good):.2f}"


@pytest.mark.requirement("C151")
def test_the_floor_is_the_option_or_the_embedders_own_or_the_documented_one():
    async def scenario(memory, retriever):
        await memory.store_batch([mine(f"m ~{cosine}") for cosine in (0.2, 0.5, 0.7)])
        relevant = await retriever.recall("q", user_id="u")
        topical = await retriever.recall_temporal(NOON, NOON, "q", user_id="u")
        assert set(texts(relevant)) == set(texts(topical))
        return len(relevant)

    strict = MemoryRetrieverOptions(min_similarity=0.6)
    assert run(scenario) == 2
    assert run(scenario, embedder=NamedSimilarities(floor=0.1)) == 3
    assert run(scenario, embedder=NamedSimilarities(floor=0.1), options=strict) == 1


@recalling(options=MemoryRetrieverOptions(similarity_weight=0.0, salience_weight=1.0))
async def test_similarity_may_weigh_nothing(memory, retriever):
    plain, worthy = mine("plain ~0.9", importance=0.1), mine("worthy ~0.5", importance=0.9)
    await memory.store_batch([plain, worthy, mine("far ~0.1", importance=1.0)])
    found = await retriever.recall("q", user_id="u")
    assert texts(found) == ["worthy ~0.5", "plain ~0.9"]
    assert scores(found) == pytest.approx([salience(worthy), salience(plain)], abs=1e-6)
    assert found[0].match_reason.startswith("Similarity: 0.50, Salience: ")


@pytest.mark.requirement("C061")
@pytest.mark.parametrize("query", ["", "  \n"])
@recalling()
async def test_relevant_recall_needs_a_query_and_the_others_embed_none(memory, retriever, query):
    await memory.store(mine("a"))
    embedded = len(memory.embedder.texts)
    for mode in OWN_ORDERS:
        assert texts(await retriever.recall(query, user_id="u", mode=mode)) == ["a"]
        assert texts(await retriever.recall("a", user_id="u", mode=mode)) == ["a"]
    await retriever.recall_by_type("fact", "u")
    await retriever.recall_temporal(NOON, NOON, query, user_id="u")
    assert len(memory.embedder.texts) == embedded
    with pytest.raises(ValueError, match="query must be a text that is not empty"):
        await retriever.recall(query, user_id="u")
    assert len(memory.embedder.texts) == embedded


@recalling(embedder=None)
async def test_without_an_embedder_only_what_needs_none_is_answered(memory, retriever):
    await memory.store(mine("a"))
    for mode in OWN_ORDERS:
        assert texts(await retriever.recall("a", user_id="u", mode=mode)) == ["a"]
    assert texts(await retriever.recall_temporal(NOON, NOON, user_id="u")) == ["a"]
    with pytest.raises(EmbedderRequiredError):
        await retriever.recall("a", user_id="u")
    with pytest.raises(EmbedderRequiredError):
        await retriever.recall_temporal(NOON, NOON, "a", user_id="u")
