"""A memory with an approximate index: what it finds, and when it compares all."""

import builtins
import random

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import InvalidArgumentError, MissingExtraError
from mnemic.index import choice
from mnemic.vectors import FaissOptions, IndexPool
from tests.support.embedders import WordEmbedder

WORDS = [first + last for first in "bdfgklmnprst" for last in ("ale", "ing", "on", "ure", "est")]
ASK = {"search_type": "semantic", "limit": 10}


def opened(place=":memory:", **options):
    return Memory(place, embedder=WordEmbedder(dimensions=16), **options)


def texts(number, seed=0):
    draw = random.Random(seed)  # noqa: S311 - no secret
    return [" ".join(draw.choices(WORDS, k=6)) for _ in range(number)]


def filled(memory, number=1500):
    for user in ("ann", "bob"):
        memory.add_many(
            [{"content": text, "tags": [text.split()[0]]} for text in texts(number)], user_id=user
        )
    return memory


def settled(memory):
    """Return a memory whose index of vectors has all of them."""
    memory.search("begin", user_id="ann")
    memory.repository._indexes.active.index.source._source.settle()
    return memory


@pytest.fixture(params=["faiss", FaissOptions("flat"), FaissOptions(links=16, search_depth=64)])
def approximate(request):
    with opened(index=request.param, exact_limit=0) as memory:
        yield settled(filled(memory))


@pytest.fixture
def exact():
    with opened() as memory:
        yield filled(memory)


def answers(memory, query, **options):
    found = memory.search(query, user_id="ann", **{**ASK, **options})
    return {hit.content: hit.score for hit in found}, found.approximate


def test_most_of_the_best_are_found_and_every_score_is_exact(approximate, exact):
    same = 0
    for query in texts(40, seed=1):
        found, is_approximate = answers(approximate, query)
        wanted, _ = answers(exact, query)
        assert is_approximate
        assert len(found) == 10
        every, _ = answers(exact, query, limit=1500)
        assert all(every[content] == score for content, score in found.items())
        same += len(found.keys() & wanted.keys())
    assert same >= 0.97 * 400


def test_hybrid_searches_rank_candidates_by_the_whole_score(approximate, exact):
    same = 0
    for query in texts(40, seed=2):
        found, is_approximate = answers(approximate, query, search_type="hybrid")
        wanted, _ = answers(exact, query, search_type="hybrid")
        assert is_approximate
        same += len(found.keys() & wanted.keys())
    assert same >= 0.95 * 400


def test_no_fewer_are_found_than_match(approximate):
    for word in WORDS[:8]:
        wanted = {"tags": {"any": [word]}}
        matches = approximate.count(user_id="ann", filters=wanted)
        found = approximate.search("bale", user_id="ann", filters=wanted, **ASK)
        assert len(found) == min(10, matches)
        assert all(hit.user_id == "ann" for hit in found)


def test_changes_are_seen_at_once(approximate):
    text = "zebra quartz"
    one = approximate.add(text, user_id="ann")
    assert approximate.search(text, user_id="ann", **ASK)[0].content == text
    approximate.update(one.id, content="xylophone", user_id="ann")
    assert approximate.search("xylophone", user_id="ann", **ASK)[0].id == one.id
    approximate.delete(one.id, user_id="ann")
    assert one.id not in {hit.id for hit in approximate.search("xylophone", user_id="ann", **ASK)}


def test_few_memories_are_all_compared():
    with opened(index="faiss") as memory:
        found = filled(memory, 50).search("bale", user_id="ann", **ASK)
        assert not found.approximate


def test_a_fiftieth_of_the_memories_is_all_compared():
    with opened(index="faiss", exact_limit=0) as memory:
        settled(filled(memory))
        memory.add_many(texts(40), user_id="zoe")
        assert not memory.search("bale", user_id="zoe", **ASK).approximate
        assert memory.search("bale", user_id="ann", **ASK).approximate


def test_auto_is_approximate_above_a_number_of_memories(tmp_path, monkeypatch):
    monkeypatch.setattr(choice, "AUTO_LIMIT", 2000)
    place = tmp_path / "a.db"
    with opened(place) as memory:
        filled(memory, 900)
    with opened(place, index="auto", exact_limit=0) as memory:
        assert not memory.search("bale", user_id="ann", **ASK).approximate
        memory.add_many(texts(900, seed=3), user_id="ann")
        memory.search("bale", user_id="ann")  # begins to build it
        memory.repository._indexes.active.loading._thread.join()
        assert settled(memory).search("bale", user_id="ann", **ASK).approximate
    with opened(place, index="auto", exact_limit=0) as memory:
        assert settled(memory).search("bale", user_id="ann", **ASK).approximate


@pytest.mark.parametrize("limit", [10, 2_000_000])
@pytest.mark.parametrize("embedder", [None, WordEmbedder(dimensions=16)])
@pytest.mark.parametrize("place", [":memory:", "a.db"])
def test_auto_chooses_before_the_memories_are_read(tmp_path, monkeypatch, place, embedder, limit):
    """A memory without a file has one connection, which a read of its rows uses until its end."""
    monkeypatch.setattr(choice, "AUTO_LIMIT", limit)
    monkeypatch.chdir(tmp_path)
    given = [MemoryEntry(content=str(number), embedding=[1.0] * 16) for number in range(30)]
    options = {"embedder": embedder, "index": "auto", "index_pool": IndexPool(1)}
    with Memory(place, **options) as memory, Memory(":memory:", **options) as other:
        other.add(given[0])
        for part in (given[:15], given[15:]):
            memory.add_many(part)
            assert other.search(vector=[1.0] * 16)  # the pool drops the index of the first one
            assert memory.search(vector=[1.0] * 16)
        assert (memory.index.info().kind == "hnsw") is (limit == 10)


def test_an_exact_memory_that_has_grown_large_says_so_once(monkeypatch, caplog):
    monkeypatch.setattr(choice, "AUTO_LIMIT", 100)
    with opened() as memory:
        filled(memory, 100)
        for _ in range(3):
            memory.search("bale", user_id="ann")
    assert caplog.text.count('index="auto"') == 1


@pytest.mark.parametrize("wrong", ["hnsw", None, 1, FaissOptions("lsh"), ("flat",)])
def test_another_index_is_refused_by_name(wrong):
    with pytest.raises(InvalidArgumentError, match=r"index must be|FaissOptions"):
        opened(index=wrong)


def test_a_memory_without_the_library_says_what_to_install(monkeypatch):
    load = builtins.__import__

    def missing(name, *given, **named):
        if name == "faiss":
            raise ImportError(name)
        return load(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"mnemic\[faiss\]"):
        opened(index="faiss")
    opened(index="auto").close()
