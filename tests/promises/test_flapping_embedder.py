"""An embedder that fails and comes back: writes wait for vectors, searches go by keywords."""

import threading

import pytest

from mnemic import Memory, Ranking
from mnemic.errors import EmbeddingError
from mnemic.repository import index_sync, missing_vectors
from tests.support.failing_embedders import FailingEmbedder
from tests.support.waiting import until


class Flapping(FailingEmbedder):
    """It waits where it is held."""

    def __init__(self):
        super().__init__()
        self.let_go = threading.Event()
        self.let_go.set()

    def embed(self, texts):
        vectors = super().embed(texts)
        if len(texts) > 1:
            self.let_go.wait(60)
        return vectors


@pytest.fixture
def embedder():
    flapping = Flapping()
    yield flapping
    flapping.let_go.set()


@pytest.fixture
def memory(embedder):
    with Memory(":memory:", embedder=embedder, query_cache=0) as opened:
        yield opened


def embedded(memory, text):
    return [hit.content for hit in memory.search(text, ranking=Ranking(min_similarity=0.9))]


def test_a_new_content_may_wait_for_its_vector(memory, embedder):
    kept = memory.add("red sofa")
    embedder.is_down = True
    with pytest.raises(EmbeddingError):
        memory.update(kept.id, content="blue chair")
    assert memory.get(kept.id).content == "red sofa"
    memory.update(kept.id, content="blue chair", on_embed_error="pending")
    assert memory.get(kept.id).content == "blue chair"
    found = memory.search("blue chair")
    assert found.degraded
    assert [hit.content for hit in found] == ["blue chair"]
    embedder.is_down = False
    assert embedded(memory, "blue chair") == ["blue chair"]
    assert embedded(memory, "red sofa") == []


def test_a_new_content_of_many_may_wait_too(memory, embedder):
    memory.add_many(["red sofa", "blue chair"])
    embedder.is_down = True
    with pytest.raises(EmbeddingError):
        memory.update_many(filters={}, content="green table")
    assert memory.update_many(filters={}, content="green table", on_embed_error="pending") == 2
    embedder.is_down = False
    assert embedded(memory, "green table") == ["green table"] * 2


def test_a_first_success_of_any_write_embeds_the_rest_without_a_search(memory, embedder):
    embedder.is_down = True
    memory.add_many([f"text {at}" for at in range(40)], on_embed_error="pending")
    embedder.is_down = False
    embedder.calls.clear()
    memory.add("it is back")
    until(lambda: sum(map(len, embedder.calls)) == 41)
    assert len(embedder.calls) == 2
    sync = memory.repository._indexes.active
    until(sync.own.model.missing._running.embedding.done)
    embedder.calls.clear()
    assert "text 7" in embedded(memory, "text 7")
    assert embedder.calls == [["text 7"]]


@pytest.mark.parametrize("is_down_first", [True, False])
def test_a_first_success_embeds_the_rest_where_the_dimension_is_learned(embedder, is_down_first):
    with Memory(":memory:", embedder=embedder.embed, embedding_model="words") as memory:
        if not is_down_first:
            memory.add("a first one")
        embedder.is_down = True
        texts = [f"text {at}" for at in range(40)]
        memory.add_many(texts, on_embed_error="pending")
        embedder.is_down = False
        embedder.calls.clear()
        memory.add("it is back")
        until(lambda: memory.verify().vectors == 41 + (not is_down_first))
        assert embedder.calls[-1] == texts


def test_an_empty_content_may_wait_before_the_dimension_is_known(embedder):
    with Memory(":memory:", embedder=embedder.embed, embedding_model="words") as memory:
        embedder.is_down = True
        with pytest.raises(EmbeddingError):
            memory.add("", metadata={"number": 1})
        with pytest.raises(EmbeddingError):
            memory.add_many([{"content": "red sofa", "embed": ()}], on_embed_error="pending")
        memory.add_many(
            [{"content": "", "metadata": {"number": 2}}, "blue chair"], on_embed_error="pending"
        )
        embedder.is_down = False
        assert embedded(memory, "blue chair") == ["blue chair"]
        assert memory.verify().vectors == memory.count() == 2


def test_a_long_backlog_holds_up_no_search(memory, embedder, monkeypatch):
    monkeypatch.setattr(
        index_sync.IndexSync.catch_up,
        "__kwdefaults__",
        {
            **index_sync.IndexSync.catch_up.__kwdefaults__,
            "max_seconds": 0.01,
        },
    )
    embedder.is_down = True
    texts = [f"text {at}" for at in range(600)]
    memory.add_many(texts, on_embed_error="pending")
    embedder.is_down = False
    embedder.let_go.clear()  # calls with several texts wait
    found = memory.search("text 599")
    assert not found.degraded
    assert found[0].content == "text 599"  # by its words, as long as it has no vector
    assert found[0].similarity is None
    assert memory.search("text 5").degraded is False
    embedder.let_go.set()
    sync = memory.repository._indexes.active
    until(sync.own.model.missing._running.embedding.done)
    assert "text 5" in embedded(memory, "text 5")
    backlog = [len(call) for call in embedder.calls if len(call) > 1]
    assert sum(backlog) == 1200  # the failed call, and batches
    assert max(backlog[1:]) <= missing_vectors.EMBEDDED_AT_ONCE


def test_an_embedder_that_comes_and_goes_loses_nothing(memory, embedder):
    stored = 0
    for turn in range(12):
        embedder.is_down = turn % 3 != 2
        for _ in range(5):
            memory.add_many([f"note number {stored}"], on_embed_error="pending")
            stored += 1
        found = memory.search("number 0", limit=100)
        assert found.degraded is embedder.is_down
        assert len(found) == stored
    embedder.is_down = False
    memory.search("number")
    hits = memory.search("number", search_type="semantic", limit=100)
    assert len(hits) == stored
    assert memory.repository._indexes.active.index.summary().unembedded == []


def test_closing_during_a_backlog_ends_it(embedder, path):
    memory = Memory(path, embedder=embedder)
    embedder.is_down = True
    memory.add_many([f"text {at}" for at in range(600)], on_embed_error="pending")
    embedder.is_down = False
    embedder.let_go.clear()
    embedder.calls.clear()
    memory.add("it is back")
    until(lambda: len(embedder.calls) == 2)
    memory.close()
    embedder.let_go.set()
    sync = memory.repository._indexes.active
    until(sync.own.model.missing._running.embedding.done)
    assert len(embedder.calls) == 2
    with Memory(path, embedder=embedder) as again:
        assert again.search("text 5", search_type="semantic")[0].similarity == pytest.approx(1)
