"""The vectors of queries are kept, within bounds."""

import numpy as np
import pytest

from mnemic import Memory
from mnemic.errors import EmbeddingError, InvalidArgumentError
from tests.support.embedders import WordEmbedder


@pytest.fixture
def embedder():
    return WordEmbedder()


def test_a_query_asked_again_is_not_embedded_again(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa", user_id="u")
        first = memory.search("red", user_id="u")
        embedder.texts.clear()
        assert memory.search("red", user_id="u") == first
        assert memory.search("red", user_id="u", search_type="semantic")
        assert embedder.texts == []
        memory.search("blue", user_id="u")
        assert embedder.texts == ["blue"]


def test_a_kept_query_is_answered_by_meaning_while_the_embedder_is_down(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa")
        memory.search("red")
        embedder.embed = lambda _: 1 / 0
        assert not memory.search("red").degraded
        assert memory.search("sofa").degraded
        with pytest.raises(EmbeddingError):
            memory.search("sofa", search_type="semantic")


def test_no_user_finds_a_query_of_another_in_it(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa", user_id="u")
        memory.add("red sofa", user_id="other")
        memory.search("red", user_id="u")
        embedder.embed = lambda _: 1 / 0
        assert not memory.search("red", user_id="u").degraded
        assert memory.search("red", user_id="other").degraded
        assert memory.search("red", all_users=True).degraded
        assert memory.search("red").degraded


def test_without_a_cache_each_query_is_embedded(embedder):
    with Memory(":memory:", embedder=embedder, query_cache=0) as memory:
        memory.search("red")
        memory.search("red")
        assert embedder.texts == ["red", "red"]


@pytest.mark.parametrize("wrong", [-1, 1.5, None, "many"])
def test_a_size_must_be_a_number(wrong):
    with pytest.raises(InvalidArgumentError, match="query_cache"):
        Memory(":memory:", embedder=None, query_cache=wrong)


def test_contents_of_memories_which_may_be_sensitive_are_not_kept(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("Lives in Oslo")
        memory.add("Lives in Bergen", sensitive=True, check="contradictions")
        memory.contradictions("Lives in Rome")
        memory.similar(memory.add("Lives in Paris", sensitive=True).id)
        assert len(memory.repository.finder.vectors._kept) == 0
        memory.search("Rome")
        assert len(memory.repository.finder.vectors._kept) == 1


def test_bytes_are_bounded_and_counted(embedder, monkeypatch):
    monkeypatch.setattr("mnemic.repository.query_vectors.MAX_BYTES", 10_000)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa")
        kept = memory.repository.finder.vectors._kept
        for at in range(50):
            memory.search(f"query {at} " * 10)
            assert kept.used_bytes <= 10_000
        assert 0 < len(kept) < 15
        memory.search("x" * 9_000)
        assert not any(query[2].startswith("x") for query, _ in kept.items())
        kept.drop([query for query, _ in kept.items()])
        assert (len(kept), kept.used_bytes) == (0, 0)


def test_kept_vectors_are_copies_that_nobody_changes(embedder):
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add("red sofa")
        finder = memory.repository.finder
        fresh, given = finder.vectors._fresh, []

        def noted(*arguments):
            given[:] = fresh(*arguments)
            return given

        finder.vectors._fresh = noted
        memory.search("red")
        ((_, kept),) = finder.vectors._kept.items()
        before = kept.copy()
        given[0][:] = 9
        assert np.array_equal(kept, before)
        with pytest.raises(ValueError, match="read-only"):
            kept[0, 0] = 2
