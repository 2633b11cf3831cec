"""Searches through a candidate source: from the store to the results."""

import time

import pytest

from mnemic import Memory
from mnemic.compat import MemoryRetriever
from mnemic.index import native
from mnemic.model import MemoryFilter, MemoryQuery
from tests.support.candidate_sources import Made, RecordingSource
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.exact_source import ExactSource

WORDS = "harbour boat sailing winter ice cats dog red sofa ferry noon quay tea milk lamp".split()  # noqa: SIM905
COUNT = 400
PATIENCE = 20.0  # seconds, for what takes milliseconds
SEARCH_TYPES = ("hybrid", "semantic")


def text_of(number):
    picked = (WORDS[number * step % len(WORDS)] for step in (1, 7, 11))
    return f"{' '.join(picked)} {number}"


@pytest.fixture
def open_memory():
    """Return what opens a memory, with a source unless another is named, that is always asked."""
    opened = []

    def opens(path=":memory:", make_source=ExactSource, exact_limit=0):
        memory = Memory(
            path,
            embedder=WordEmbedder(),
            clock=Clock(),
            make_source=make_source,
            exact_limit=exact_limit,
        )
        opened.append(memory)
        return memory

    yield opens
    for memory in opened:
        memory.close()


def fill(memory, count=COUNT):
    users = [None, "alice", "bob"]
    for user in users:
        texts = [text_of(number) for number in range(count) if number % 3 == users.index(user)]
        memory.add_many(texts, user_id=user)


def hits_of(results):
    return [(hit.content, hit.score, hit.components) for hit in results]


@pytest.mark.requirement("C167", "C204")
@pytest.mark.parametrize("search_type", SEARCH_TYPES)
def test_an_approximate_answer_says_so_and_scores_as_the_exact_one(open_memory, search_type):
    memory, exact = open_memory(), open_memory(make_source=None)
    for each in (memory, exact):
        fill(each)
    call = {"search_type": search_type, "explain": True, "all_users": True}
    wanted = exact.search("red sofa by the harbour", limit=COUNT, **call)
    found = memory.search("red sofa by the harbour", limit=5, **call)
    assert found.approximate
    assert not wanted.approximate
    assert hits_of(found) == hits_of(wanted)[:5], "the exact source proposes the nearest"
    assert not memory.search("red sofa", search_type="keyword").approximate
    assert not memory.search("red sofa", limit=COUNT, **call).approximate, "it is asked for all"


def test_a_rebuilt_index_has_a_source_of_its_own(open_memory, monkeypatch):
    monkeypatch.setattr(native, "MIN_VACANT", 8)
    made = Made(ExactSource)
    memory = open_memory(make_source=made)
    entry = memory.add("the first text")
    before = len(made.sources)
    for number in range(30):
        memory.update(entry.id, content=f"text {number}")
    end = time.monotonic() + PATIENCE
    while len(made.sources) == before and time.monotonic() < end:
        memory.search("text")
    fill(memory)
    found = memory.search("text 29", search_type="semantic", limit=1)
    assert [hit.id for hit in found] == [entry.id]
    assert found.approximate
    assert len(made.sources) > before


def test_a_source_belongs_to_active_memories_alone(open_memory):
    made = Made(RecordingSource)
    memory = open_memory(make_source=made)
    fill(memory)
    deleted = memory.add(f"{text_of(30)} zeppelin")
    memory.delete(deleted.id)
    query = MemoryQuery(
        query=f"{text_of(30)} zeppelin",
        filters=MemoryFilter(include_forgotten=True),
        with_total=False,
        limit=2,
    )
    found = memory.retrieve(query)
    assert found.results[0].entry.id == deleted.id
    assert found.approximate
    assert len(made.sources) <= 2, "one at the start, one for the full load"


def test_a_retrieval_that_counts_all_matches_is_exact(open_memory):
    memory = open_memory()
    fill(memory)
    counted = memory.retrieve(MemoryQuery(query=text_of(30), limit=2))
    assert not counted.approximate
    query = MemoryQuery(query=text_of(30), limit=2, with_total=False)
    uncounted = memory.retrieve(query)
    assert uncounted.approximate
    assert uncounted.total_is_lower_bound
    again = memory.retrieve(query)
    assert (again.from_cache, again.approximate) == (True, True)


def test_a_recall_and_a_context_have_the_mark_too(open_memory):
    memory = open_memory()
    fill(memory)
    retriever = MemoryRetriever(memory)

    def recalled(**fields):
        return retriever.recall(text_of(30), user_id=None, max_results=2, **fields)

    assert recalled(with_total=False).approximate
    assert not recalled().approximate
    assert not recalled(mode="recent", with_total=False).approximate
    assert memory.context(text_of(30), limit=2).approximate
    assert not memory.context("red sofa", limit=COUNT).approximate
