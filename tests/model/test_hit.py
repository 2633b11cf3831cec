"""Every result is a sequence of hits, and every hit has an entry, a score and its shortcuts."""

import asyncio

import pytest

from mnemic import Memory
from mnemic.compat import AsyncLongTermMemory, MemoryRetriever, RetrievalService
from mnemic.model import Hit, MemoryQuery
from tests.support.recall import NamedSimilarities

SOURCE = "notes.md"
TEXTS = ("tea ~0.9", "bread ~0.7", "salt ~0.5")


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=NamedSimilarities()) as opened:
        notes = [
            {
                "content": text,
                "role": "user",
                "speaker": "Ann",
                "importance": 0.75,
                "source": SOURCE,
            }
            for text in TEXTS
        ]
        added = opened.add_many(notes, user_id="alice", session_id="s")
        for newer, older in zip(added[1:], added, strict=False):
            opened.link(newer.id, older.id, "contradicts", user_id="alice")
        yield opened


def results_of(memory):
    """Return the results of all that finds memories, by name."""
    scope = {"user_id": "alice"}
    newest = memory.recent(limit=1, **scope)[0].id
    retriever, service = MemoryRetriever(memory), RetrievalService(memory)
    return {
        "search": memory.search("query", **scope),
        "similar": memory.similar(newest, **scope),
        "recent": memory.recent(**scope),
        "important": memory.important(**scope),
        "retrieve": memory.retrieve(MemoryQuery.semantic("query"), **scope),
        "recall": memory.recall("query", **scope),
        "contradictions": memory.contradictions("query", **scope),
        "recall_linked": retriever.recall_linked(newest, depth=2, direction="both", **scope),
        "find_similar": service.find_similar(newest, **scope),
    }


def test_every_result_is_a_sequence_of_hits_with_entry_and_score(memory):
    for name, result in results_of(memory).items():
        hits = list(result)
        assert len(hits) == len(result) > 1, name
        assert (result[0], result[-1]) == (hits[0], hits[-1]), name
        assert list(result[1:]) == hits[1:], name
        for hit in hits:
            entry = hit.entry
            assert isinstance(hit, Hit), name
            assert 0 <= hit.score <= 1, name
            assert (hit.id, hit.content, hit.user_id) == (entry.id, entry.content, "alice"), name
            assert (hit.session_id, hit.type, hit.tags) == ("s", entry.type, ()), name
            assert (hit.created_at, hit.metadata) == (entry.created_at, {}), name
            assert (hit.role, hit.speaker) == (entry.role, entry.speaker) == ("user", "Ann"), name
            assert (hit.importance, hit.source) == (0.75, SOURCE), name
        scores = [hit.score for hit in hits]
        assert scores == sorted(scores, reverse=True), name


def test_the_documents_names_stay_beside_the_common_ones(memory):
    found = results_of(memory)
    for hit in found["retrieve"]:
        assert hit.relevance_score == hit.score
    for hit in found["recall"]:
        assert hit.memory is hit.entry
    for hit in found["find_similar"]:
        assert hit.similarity == hit.score


def test_a_semantic_search_by_the_documents_door_gives_hits(path):
    async def scenario():
        async with AsyncLongTermMemory(path, embedder=NamedSimilarities()) as memory:
            await memory.import_(export)
            return await memory.search_semantic("query", min_similarity=0.6, user_id="alice")

    export = path.with_suffix(".jsonl")
    with Memory(":memory:", embedder=NamedSimilarities()) as memory:
        memory.add_many(TEXTS, user_id="alice")
        memory.export(export, user_id="alice")
    found = asyncio.run(scenario())
    assert [hit.content for hit in found] == ["tea ~0.9", "bread ~0.7"]
    assert [(hit.rank, hit.similarity) for hit in found] == [
        (1, found[0].score),
        (2, found[1].score),
    ]


def test_a_page_of_a_list_is_a_sequence_of_entries(memory):
    page = memory.list(user_id="alice", limit=2)
    assert (len(page), page[0], page[-1], page[:1]) == (
        2,
        page.entries[0],
        page.entries[1],
        page.entries[:1],
    )
