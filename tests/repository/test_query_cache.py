"""The vectors of queries are kept, within bounds."""

import numpy as np
import pytest

from mnemic import Memory
from mnemic.errors import EmbeddingError, InvalidArgumentError
from mnemic.model import Scope
from mnemic.repository.query_cache import QueryCache, key_of
from tests.support.embedders import WordEmbedder


@pytest.fixture
def embedder():
    return WordEmbedder()


def vector(number):
    return np.full((1, 4), number, np.float32)


def key(text):
    return key_of(Scope("a", "u"), text)


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
        assert len(memory.repository.finder.vectors._query_cache) == 0
        memory.search("Rome")
        assert len(memory.repository.finder.vectors._query_cache) == 1


def test_bytes_are_bounded_and_counted():
    cache = QueryCache(100, max_bytes=10_000)
    for at in range(50):
        cache.put(key(f"query {at}" * 10), np.zeros((3, 100), np.float32))
        assert cache.used_bytes <= 10_000
    assert 0 < len(cache) < 10
    cache.put(key("x" * 10_000), vector(1))
    assert cache.get(key("x" * 10_000)) is None
    cache.drop([key(f"query {at}" * 10) for at in range(50)])
    assert (len(cache), cache.used_bytes) == (0, 0)


def test_kept_vectors_are_copies_that_nobody_changes():
    cache, given = QueryCache(), vector(1)
    cache.put(key("a"), given)
    given[0, 0] = 9
    kept = cache.get(key("a"))
    assert kept[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0, 0] = 2
