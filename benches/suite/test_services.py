"""Retrieval, recall and context without the embedding, over one user's memories."""

import pytest

from benches.memory import StoredVectors
from mnemic import Memory, MemoryQuery, RecallMode

COUNT = 10_000
GROUP = f"services without the embedding, 10 of a user's {COUNT // 10:,} among {COUNT:,}"
QUERIES = [f"query {number}" for number in range(400)]
MODES = [mode for mode in RecallMode if mode is not RecallMode.TEMPORAL]


@pytest.fixture(scope="module")
def memory(tmp_path_factory):
    path = tmp_path_factory.mktemp("services") / "search.db"
    embedder = StoredVectors(COUNT)
    embedder.similarity_floor = 0.0  # random vectors are hardly near to any
    with Memory(path, embedder=embedder) as opened:
        opened.add_many(
            {"content": f"memory {number}", "user_id": f"user{number % 10}"}
            for number in range(COUNT)
        )
        yield opened


def retrieved(memory, text, **options):
    query = MemoryQuery(query=text, min_relevance=0.0, **options)
    return memory.retrieve(query, user_id="user3")


def test_a_retrieval_that_is_not_cached(memory, measure):
    assert len(retrieved(memory, "query 7", use_cache=False)) == 10
    measure(
        GROUP, "Memory.retrieve", lambda text: retrieved(memory, text, use_cache=False), QUERIES
    )


def test_a_retrieval_that_is_cached(memory, measure):
    retrieved(memory, "query 7")
    assert retrieved(memory, "query 7").from_cache
    measure(GROUP, "Memory.retrieve, cached", lambda text: retrieved(memory, text), ["query 7"])


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
def test_a_recall(memory, measure, mode):
    def recalled(text):
        return memory.recall(text, mode=mode, user_id="user3")

    assert len(recalled("query 7")) == 10
    measure(GROUP, f"Memory.recall, {mode.value}", recalled, QUERIES)


def test_a_context(memory, measure):
    def context(text):
        return memory.context(text, max_tokens=500, user_id="user3")

    assert context("query 7")
    measure(GROUP, "Memory.context of 500 tokens", context, QUERIES)
