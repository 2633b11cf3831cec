"""The cache in front of an embedder."""

import asyncio
import gc
import logging
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from mnemic import CachedEmbedder, Memory, as_embedder
from mnemic.embed.cache import LARGEST_SHARE
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbeddingError, InvalidArgumentError
from tests.support.embedders import WordEmbedder

pytestmark = pytest.mark.requirement("C115")

PHRASE = "zebra-seven-nine"


class TwoSided(WordEmbedder):
    """Embeds queries otherwise than memories."""

    max_tokens = 100
    similarity_floor = 0.25
    languages = frozenset({"en"})
    batch_size = 7

    def __init__(self):
        super().__init__()
        self.similarity_floor = 0.25
        self.max_tokens = 100
        self.queries = []

    def embed_query(self, text):
        self.queries.append(text)
        return -super().embed([text])[0]


class Gated(WordEmbedder):
    """Embeds once it is let."""

    def __init__(self):
        super().__init__()
        self.begun, self.may_end = threading.Semaphore(0), threading.Event()
        self.error = None

    def embed(self, texts):
        vectors = super().embed(texts)
        self.begun.release()
        assert self.may_end.wait(20)
        if self.error is not None:
            raise self.error
        return vectors


def in_threads(*calls):
    with ThreadPoolExecutor(len(calls)) as threads:
        return [thread.result(20) for thread in [threads.submit(call) for call in calls]]


def waiting_calls(cached, number):
    """Wait until so many texts have been counted, which calls do before they wait."""
    done = threading.Event()
    for _ in range(2000):
        if cached.hits + cached.misses >= number:
            return
        done.wait(0.005)
    raise AssertionError


def test_a_text_is_embedded_once_and_has_the_vector_of_the_embedder():
    plain, embedder = WordEmbedder(), WordEmbedder()
    cached = CachedEmbedder(embedder)
    texts = ["red sofa", "blue chair", "red sofa"]
    for _ in range(2):
        np.testing.assert_array_equal(cached.embed(texts), plain.embed(texts))
    assert embedder.texts == ["red sofa", "blue chair"]
    assert (cached.hits, cached.misses, len(cached)) == (4, 2, 2)


def test_no_texts_have_no_vectors():
    assert CachedEmbedder(WordEmbedder()).embed([]).shape == (0, 64)


def test_a_returned_array_is_the_callers_own():
    cached = CachedEmbedder(WordEmbedder())
    first = cached.embed(["red sofa"])
    kept = first.copy()
    first[:] = 7
    again = cached.embed(["red sofa"])
    again[:] = 9
    np.testing.assert_array_equal(cached.embed(["red sofa"]), kept)


def test_queries_and_memories_are_kept_apart():
    embedder = TwoSided()
    cached = CachedEmbedder(embedder)
    document, query = cached.embed(["red"]), cached.embed_queries(["red"])
    np.testing.assert_array_equal(document, -query)
    np.testing.assert_array_equal(cached.embed_queries(["red"]), query)
    np.testing.assert_array_equal(cached.embed(["red"]), document)
    assert (embedder.texts, embedder.queries) == (["red", "red"], ["red"])


def test_where_queries_are_embedded_as_memories_they_share_vectors():
    embedder = WordEmbedder()
    cached = CachedEmbedder(embedder)
    cached.embed(["red"])
    cached.embed_queries(["red"])
    assert embedder.texts == ["red"]


def test_it_has_the_attributes_of_the_embedder():
    embedder = TwoSided()
    embedder.score_floors = {"hybrid": 0.2, "semantic": 0.3}
    cached, adapted = CachedEmbedder(embedder), as_embedder(embedder)
    names = ("model", "dimensions", "max_tokens", "similarity_floor", "languages", "batch_size")
    for name in (*names, "join_calls", "score_floors", "has_queries", "takes_many"):
        assert getattr(cached, name) == getattr(adapted, name), name
    outer, inner = ValidatedEmbedder(cached), ValidatedEmbedder(embedder)
    assert (outer.score_floors, outer.model) == (inner.score_floors, inner.model)
    assert outer.coverage.max_share("вода") == inner.coverage.max_share("вода")


@pytest.mark.parametrize("texts", ["red", [b"red"], [None], ["\ud800"]])
def test_only_texts_are_embedded(texts):
    with pytest.raises(InvalidArgumentError):
        CachedEmbedder(WordEmbedder()).embed(texts)


@pytest.mark.parametrize("max_bytes", [-1, 1.5, True, "1", None])
def test_the_space_is_a_number_of_bytes(max_bytes):
    with pytest.raises(ValueError, match="max_bytes"):
        CachedEmbedder(WordEmbedder(), max_bytes=max_bytes)


def test_two_models_never_share_vectors():
    cached = CachedEmbedder(WordEmbedder())
    cached.embed(["red"])
    renamed = as_embedder(cached, model="another")
    renamed.embed(["red"])
    assert (renamed.model, cached.misses, len(cached)) == ("another", 2, 2)


def test_the_counted_bytes_are_those_that_python_takes():
    embedder = WordEmbedder(dimensions=384)
    cached = CachedEmbedder(embedder, max_bytes=2**30)
    texts = [f"text {number}" for number in range(5000)]
    cached.embed(texts[:1])
    embedder.texts.clear()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        cached.embed(texts)
        embedder.texts.clear()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken == pytest.approx(cached.used_bytes, rel=0.1)


def test_a_vector_that_takes_more_than_its_share_is_not_kept():
    one = CachedEmbedder(WordEmbedder())
    one.embed(["a"])
    cached = CachedEmbedder(WordEmbedder(), max_bytes=one.used_bytes * LARGEST_SHARE - 1)
    assert cached.embed(["a"]).shape == (1, 64)
    assert (len(cached), cached.used_bytes) == (0, 0)


def test_concurrent_calls_with_one_text_embed_it_once():
    embedder = Gated()
    cached = CachedEmbedder(embedder)

    def call():
        return cached.embed(["red"])

    def let():
        waiting_calls(cached, 4)
        embedder.may_end.set()

    *vectors, _ = in_threads(call, call, call, call, let)
    assert embedder.texts == ["red"]
    for one in vectors:
        np.testing.assert_array_equal(one, WordEmbedder().embed(["red"]))
    assert (cached.hits, cached.misses) == (3, 1)


def test_a_coroutine_that_nobody_awaits_holds_up_no_other_call():
    async def embed(texts):
        return WordEmbedder().embed(texts)

    cached = CachedEmbedder(embed, model="words")
    unwanted = cached.embed(["red"])
    unwanted.close()
    del unwanted

    async def again():
        return await asyncio.wait_for(cached.embed(["red"]), 20)

    assert asyncio.run(again()).shape == (1, 64)


def test_kept_vectors_wait_for_no_call_that_runs():
    embedder = Gated()
    embedder.may_end.set()
    cached = CachedEmbedder(embedder)
    checked = ValidatedEmbedder(cached)
    checked.embed(["red"])
    embedder.begun.acquire()
    embedder.may_end.clear()
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(lambda: checked.embed(["blue"]))
        try:
            assert embedder.begun.acquire(timeout=20)
            assert checked.embed(["red"]).shape == (1, 64)
            (vectors,) = checked.embed_chunked(["red"], queries=True)
            assert vectors.shape == (1, 64)
            assert not running.done()
        finally:
            embedder.may_end.set()
        assert running.result(20).shape == (1, 64)
    assert embedder.texts == ["red", "blue"]


def test_whether_vectors_are_kept_is_no_use_of_them():
    embedder = TwoSided()
    cached = CachedEmbedder(embedder)
    cached.embed(["red"])
    cached.embed_queries(["blue"])
    assert cached.keeps(["red"], queries=False)
    assert cached.keeps(["blue", "blue"], queries=True)
    assert cached.keeps([], queries=True)
    assert not cached.keeps(["red"], queries=True)
    assert not cached.keeps(["red", "blue"], queries=False)
    assert (cached.hits, cached.misses) == (0, 2)
    assert not as_embedder(embedder).keeps(["red"], queries=False)


def test_dropped_texts_are_embedded_anew():
    embedder = TwoSided()
    cached = CachedEmbedder(embedder)
    cached.embed(["red", "blue"])
    cached.embed_queries(["red"])
    assert cached.forget(["red", "unknown"]) == 2
    cached.embed(["red", "blue"])
    assert embedder.texts == ["red", "blue", "red", "red"]  # the query's call among them
    cached.clear()
    assert (len(cached), cached.used_bytes) == (0, 0)
    cached.embed(["blue"])
    assert embedder.texts[-1] == "blue"


def test_a_text_does_not_fail_by_another_one_of_a_call_that_it_waits_for():
    class Choosy(Gated):
        def embed(self, texts):
            vectors = super().embed(texts)
            if "bad" in texts:
                raise RuntimeError("broken")
            return vectors

    embedder = Choosy()
    cached = CachedEmbedder(embedder)

    def first():
        with pytest.raises(RuntimeError):
            cached.embed(["bad", "red"])

    def second():
        assert embedder.begun.acquire(timeout=20)
        return cached.embed(["red"])

    def let():
        waiting_calls(cached, 3)
        embedder.may_end.set()

    _, vectors, _ = in_threads(first, second, let)
    np.testing.assert_array_equal(vectors, WordEmbedder().embed(["red"]))


@pytest.mark.parametrize(
    "returned",
    [
        np.zeros((2, 3)),  # one too many
        np.zeros(3),
        np.zeros((1, 0)),
        np.zeros((1, 2, 3)),
    ],
)
def test_results_of_another_shape_are_refused_and_not_kept(returned):
    class Odd(WordEmbedder):
        def embed(self, texts):
            del texts
            return returned

    cached = CachedEmbedder(Odd(dimensions=3))
    with pytest.raises(EmbeddingError):
        cached.embed(["red"])
    assert len(cached) == 0


@pytest.mark.parametrize("number", [np.nan, np.inf, 1e300])
def test_a_vector_that_is_not_finite_is_not_kept_and_fails_in_a_memory(number):
    class Odd(WordEmbedder):
        def embed(self, texts):
            vectors = super().embed(texts).astype(float)
            vectors[[text == "bad" for text in texts]] = number
            return vectors

    cached = CachedEmbedder(Odd())
    assert not np.isfinite(cached.embed(["bad", "red"])[0]).any()
    assert len(cached) == 1
    with pytest.raises(EmbeddingError):
        ValidatedEmbedder(cached).embed(["bad"])


# Coroutine functions


def test_a_coroutine_embedder_is_awaited_and_its_vectors_are_kept():
    calls = []

    async def embed(texts):
        calls.append(list(texts))
        await asyncio.sleep(0.01)
        return WordEmbedder().embed(texts)

    cached = CachedEmbedder(embed, model="words")

    async def several():
        first, *others = [cached.embed(["red", "blue"])] + [cached.embed(["red"]) for _ in range(5)]
        return await asyncio.gather(first, *others)

    first, *others = asyncio.run(several())
    assert calls == [["red", "blue"]]
    for vectors in others:
        np.testing.assert_array_equal(vectors, first[:1])
    assert isinstance(cached.embed(["red"]), np.ndarray)  # nothing is left to await


# In a memory


def test_a_memory_embeds_a_repeated_text_once(tmp_path):
    embedder = WordEmbedder()
    with Memory(tmp_path / "a.db", embedder=CachedEmbedder(embedder), query_cache=0) as memory:
        memory.add("red sofa")
        memory.add("red sofa")
        memory.search("red sofa", search_type="semantic")
        assert memory.search("red sofa")[0].entry.content == "red sofa"
    assert embedder.texts == ["red sofa"]


# Silence


def test_neither_its_representation_nor_its_state_holds_a_text(caplog):
    cached = CachedEmbedder(WordEmbedder(dimensions=8))
    cached.given.texts = ForgetfulList()
    with caplog.at_level(logging.DEBUG):
        cached.embed([PHRASE])
        cached.forget([PHRASE])
        cached.embed([PHRASE])
    assert PHRASE not in repr(cached) + str(cached) + caplog.text + repr(vars(cached._cache))
    assert repr(cached) == "CachedEmbedder(model='words', dimensions=8, vectors=1)"


def test_two_caches_have_other_keys_for_one_text():
    keys = set()
    for _ in range(2):
        cached = CachedEmbedder(WordEmbedder())
        cached.embed([PHRASE])
        keys |= {key for key, _ in cached._cache.items()}
    assert len(keys) == 2


class ForgetfulList(list):
    def extend(self, texts):
        """Keep nothing."""
