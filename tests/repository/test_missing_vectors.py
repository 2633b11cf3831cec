"""Memories whose embedder fails: refused, or embedded later."""

import logging

import pytest

from mnemic.errors import EmbeddingError
from mnemic.memory import Memory
from mnemic.repository.missing_vectors import RETRY_SECONDS
from tests.support.embedders import WordEmbedder
from tests.support.failing_embedders import FailingEmbedder


@pytest.mark.requirement("C172")
def test_a_failing_embedder_fails_the_write_or_leaves_the_vector_for_later(caplog):
    embedder = FailingEmbedder(is_down=True)
    with Memory(":memory:", embedder=embedder) as memory:
        with pytest.raises(EmbeddingError, match="failed: ConnectionError at failing_embedders"):
            memory.add("lost")
        with caplog.at_level(logging.WARNING):
            kept = memory.add_many(["a red sofa"], on_embed_error="pending")[0]
            memory.add_many(["a blue chair", "a green lamp"], on_embed_error="pending")
        assert "stored without vectors for now" in caplog.text
        assert kept.embedding is None
        assert memory.count() == 3
        embedder.is_down = False
        assert memory.search("red sofa", limit=1)[0].entry == kept
        assert len(memory.search("furniture")) == 3


def test_a_text_that_cannot_be_embedded_never_stops_a_search(monkeypatch, caplog):

    now = [0.0]
    monkeypatch.setattr("mnemic.repository.missing_vectors.time.monotonic", lambda: now[0])
    with Memory(":memory:", embedder=FailingEmbedder(fails_on="poison")) as memory:
        memory.add("a red sofa")
        memory.add_many(["poison"], on_embed_error="pending")
        with caplog.at_level(logging.WARNING, "mnemic.compat.long_term"):
            caplog.clear()
            for _ in range(3):
                assert [hit.content for hit in memory.search("sofa")] == ["a red sofa"]
            # Tried once more, because the embedder has answered since.
            assert caplog.text.count("still lacks a vector") == 2
            now[0] += RETRY_SECONDS
            memory.search("sofa")
            assert caplog.text.count("still lacks a vector") == 3


def test_a_vector_of_an_older_content_is_not_kept(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=None) as bare:
        kept = bare.add("red sofa")
        embedder = WordEmbedder()
        embed, done = embedder.embed, []

        def overtaken(texts):
            if not done:
                done.append(bare.update(kept.id, content="blue chair"))
            return embed(texts)

        embedder.embed = overtaken
        with Memory(path, embedder=embedder) as memory:
            found = memory.search("blue chair", search_type="semantic")[0]
            assert (found.content, round(found.score, 6)) == ("blue chair", 1.0)
