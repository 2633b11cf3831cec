"""While the embedder fails, hybrid searches answer by keywords; once it recovers nothing waits."""

import logging
import pickle
import time

import numpy as np
import pytest

from mnemic import Memory, Ranking, Weights
from mnemic.compat import RetrievalService
from mnemic.errors import EmbeddingError, InvalidArgumentError
from mnemic.model import MemoryQuery
from mnemic.observability import telemetry
from tests.support.failing_embedders import FailingEmbedder

TEXTS = ["red sofa in the hall", "blue chair", "green table beside the red lamp", "a lamp"]


@pytest.fixture
def embedder():
    return FailingEmbedder()


@pytest.fixture
def memory(embedder):
    with Memory(":memory:", embedder=embedder, query_cache=0) as opened:
        opened.add_many(TEXTS, user_id="u")
        yield opened


@pytest.fixture
def by_words():
    with Memory(":memory:", embedder=None) as opened:
        opened.add_many(TEXTS, user_id="u")
        yield opened


def told(hits):
    return [(hit.content, hit.score) for hit in hits]


def test_a_hybrid_search_answers_as_a_memory_without_an_embedder_and_says_so(
    memory, by_words, embedder, caplog
):
    assert not memory.search("red lamp", user_id="u").degraded
    embedder.is_down = True
    found = memory.search("red lamp", user_id="u")
    assert found.degraded
    assert told(found) == told(by_words.search("red lamp", user_id="u"))
    assert len(found) == 3
    assert found[:1].degraded
    assert found != type(found)(list(found))
    assert "degraded=True" in repr(found)
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "answered by keywords" in warned[0].getMessage()
    assert "lamp" not in caplog.text
    assert "secret" not in caplog.text
    embedder.is_down = False
    assert not memory.search("red lamp", user_id="u").degraded


def test_the_result_says_why(memory, embedder):
    embedder.is_down = True
    found = memory.search("red lamp", user_id="u")
    context = memory.context("red lamp", user_id="u")
    query = MemoryQuery(query="red lamp", search_type="hybrid")
    retrieved = memory.retrieve(query, user_id="u")
    for told in (found.degraded_reason, context.degraded_reason, retrieved.degraded_reason):
        assert "failed: ConnectionError at failing_embedders.py" in told
        assert "secret" not in told
    assert found.degraded_reason in repr(found)
    assert found[:1].degraded_reason == found.degraded_reason
    assert pickle.loads(pickle.dumps(context)).degraded_reason  # noqa: S301 - its own bytes
    embedder.is_down = False
    assert memory.search("red lamp", user_id="u").degraded_reason is None


def test_a_refused_key_is_told_in_the_result():
    class AuthenticationError(Exception):
        status_code = 401

    def embed(texts):
        if texts == ["red"]:
            raise AuthenticationError("bad key sk-123")
        return [[1.0, 0.0] for _ in texts]

    with Memory(":memory:", embedder=embed, embedding_model="m", query_cache=0) as memory:
        memory.add("red sofa")
        reason = memory.search("red").degraded_reason
    assert reason.endswith("the service answered 401; give it the key of the service")
    assert "sk-123" not in reason


def test_each_kind_of_failure_is_a_warning_once_and_again_later(
    memory, embedder, caplog, monkeypatch
):
    def warnings():
        told = [record for record in caplog.records if "by keywords" in record.getMessage()]
        return [record.levelno for record in told].count(logging.WARNING)

    def fail(_):
        raise TimeoutError

    caplog.set_level(logging.DEBUG)
    embedder.is_down = True
    for _ in range(3):
        memory.search("red lamp", user_id="u")
    assert warnings() == 1
    monkeypatch.setattr(embedder, "embed", fail)
    for _ in range(3):
        memory.search("red lamp", user_id="u")
    assert warnings() == 2
    later = time.monotonic() + 601
    monkeypatch.setattr(telemetry.time, "monotonic", lambda: later)
    memory.search("red lamp", user_id="u")
    assert warnings() == 3


def test_weights_and_a_ranking_of_ones_own_fall_back_too(memory, by_words, embedder):
    embedder.is_down = True
    weights = {"relevance": 0.5, "importance": 0.5}
    found = memory.search("red", user_id="u", ranking=weights)
    assert told(found) == told(by_words.search("red", user_id="u", ranking=weights))
    own = Ranking(similarity=0.5, weights=Weights(relevance=0.9, recency=0.1))
    found = memory.search("red", user_id="u", ranking=own)
    by_own_words = Ranking(similarity=0.0, weights=own.weights)
    assert found.degraded
    assert [hit.content for hit in found] == [
        hit.content for hit in memory.search("red", user_id="u", ranking=by_own_words)
    ]


@pytest.mark.parametrize(
    "named",
    [
        {"search_type": "semantic"},
        {"ranking": Ranking()},
    ],
)
def test_what_is_not_hybrid_raises(memory, embedder, named):
    embedder.is_down = True
    with pytest.raises(EmbeddingError):
        memory.search("red", user_id="u", **named)


def test_keyword_searches_never_ask_the_embedder(memory, embedder):
    embedder.is_down = True
    embedder.calls.clear()
    assert not memory.search("red", user_id="u", search_type="keyword").degraded
    assert embedder.calls == []


@pytest.mark.parametrize("wrong", [None, "pending", 5, True])
def test_another_word_for_what_to_do_is_refused(memory, wrong):
    with pytest.raises(InvalidArgumentError, match="on_embed_error must be one of keywords"):
        memory.retrieve("red", user_id="u", on_embed_error=wrong)
    with pytest.raises(InvalidArgumentError, match="on_embed_error must be one of keywords"):
        MemoryQuery(query="red", on_embed_error=wrong)


def test_a_hybrid_retrieval_falls_back_and_is_not_kept(memory, embedder):
    query = MemoryQuery(query="red lamp", search_type="hybrid", expand_query=True)
    service = RetrievalService(memory)

    def asked(given=query):
        return service.retrieve(given, user_id="u")

    embedder.is_down = True
    found = asked()
    assert found.degraded
    assert found[0].entry.content == TEXTS[2]
    with pytest.raises(EmbeddingError):
        asked(MemoryQuery(query="red lamp", search_type="hybrid", on_embed_error="raise"))
    with pytest.raises(EmbeddingError):
        asked(MemoryQuery(query="red lamp"))
    embedder.is_down = False
    again = asked()
    assert (again.degraded, again.from_cache) == (False, False)
    assert asked().from_cache


def test_any_success_of_the_embedder_ends_the_wait(memory, embedder):
    embedder.is_down = True
    memory.add_many(["violet curtain"], on_embed_error="pending", user_id="u")
    memory.search("violet", user_id="u")
    embedder.is_down = False
    embedder.calls.clear()
    memory.add("something else", user_id="u")
    assert memory.search("violet", user_id="u", search_type="keyword")
    assert embedder.calls == [["something else"], ["violet curtain"]]


def test_a_pending_memory_is_found_by_its_meaning_as_soon_as_the_embedder_answers(memory, embedder):
    embedder.is_down = True
    memory.add_many(["violet curtain"], on_embed_error="pending", user_id="u")
    assert memory.search("violet", user_id="u").degraded
    embedder.is_down = False
    (first, *_) = memory.search("violet", user_id="u", search_type="semantic")
    assert first.content == "violet curtain"
    assert first.score == pytest.approx(np.sqrt(0.5), abs=0.3)


def test_while_the_embedder_is_down_the_backlog_is_not_tried_at_every_search(memory, embedder):
    embedder.is_down = True
    memory.add_many(["violet curtain"], on_embed_error="pending", user_id="u")
    memory.search("violet", user_id="u")
    embedder.calls.clear()
    for _ in range(5):
        memory.search("violet", user_id="u")
    assert embedder.calls == [["violet"]] * 5
