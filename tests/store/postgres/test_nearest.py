"""Searches of agents whose index is not in memory: the database selects, the core ranks."""

import random
import threading
import time
from datetime import timedelta

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import InvalidArgumentError, InvalidEntryError
from mnemic.hyde import HydeConfig
from mnemic.hyde.search import TurnSearch
from mnemic.model import Scope
from mnemic.repository import database_search
from mnemic.store.operations import RowsSince
from mnemic.store.postgres import nearest
from mnemic.vectors import IndexPool
from tests.support.clock import Clock
from tests.support.embedders import WordEmbedder
from tests.support.operations import replace_operation

WORDS = [first + last for first in "bdfgklmnprst" for last in ("ale", "ing", "on", "ure")]
FILTERS = (
    None,
    {"importance": {"gte": 0.5}},
    {"tags": {"any": ["fon"]}},
    {"NOT": {"type": "fact"}},
    {"created_at": {"gte": "2026-01-10T00:00:00Z"}, "tags": {"exists": True}},
)


class FractionEmbedder(WordEmbedder):
    """Gives vectors whose numbers have no short decimal form."""

    def embed(self, texts):
        return super().embed(texts) / np.float32(3)


def opened(url, search_in="database", clock=None, **options):
    embedder = FractionEmbedder(dimensions=8)
    clock = Clock() if clock is None else clock
    return Memory(url, embedder=embedder, clock=clock, search_in=search_in, **options)


def filled(memory, number=600):
    draw = random.Random(5)  # noqa: S311 - no secret
    for user in ("ann", "bob", None):
        memory.add_many(
            [
                {
                    "content": " ".join(draw.choices(WORDS, k=draw.randint(1, 6))),
                    "type": draw.choice(["fact", "event"]),
                    "tags": draw.sample(WORDS, 2),
                    "importance": draw.random(),
                    "session_id": f"s{at // 20}",
                    "speaker": draw.choice(["Ann", "Bob", None]),
                    "created_at": f"2026-01-{1 + at % 28:02d}T12:00:00.{at:06d}Z",
                }
                for at in range(number)
            ],
            user_id=user,
        )
    return memory


def answer(results):
    return [(hit.id, hit.score, hit.similarity, hit.components) for hit in results]


def unloaded(memory):
    """Return whether the index of the memory is not in memory."""
    return not memory.repository.finder._active.is_loaded


@pytest.mark.parametrize("kind", ["semantic", "hybrid", "keyword"])
def test_the_database_answers_as_an_index_in_memory_does(database, kind):
    with filled(opened(database, "memory")) as memory, opened(database) as cold:
        for user in ("ann", None):
            for filters in FILTERS:
                for limit, offset in ((1, 0), (10, 5), (700, 0)):
                    asked = {
                        "user_id": user,
                        "search_type": kind,
                        "filters": filters,
                        "limit": limit,
                        "offset": offset,
                    }
                    expected = memory.search("bale ding Ann", **asked)
                    found = cold.search("bale ding Ann", **asked)
                    assert answer(found) == answer(expected)
                    assert (expected.searched_in, found.searched_in) == ("memory", "database")
        assert unloaded(cold)


def test_a_query_of_several_vectors_and_chunked_memories_have_the_same_answers(database):
    draw = np.random.default_rng(3)
    with opened(database, "memory") as memory, opened(database) as cold:
        memory.add_many([" ".join(WORDS[at % 40 : at % 40 + 9]) for at in range(200)])
        memory.add(" ".join(WORDS * 40))  # of several chunks
        for vectors in (draw.random(8), draw.random((3, 8)), -draw.random(8), np.eye(8)[0]):
            given = vectors.astype(np.float32)
            asked = {"vector": given, "search_type": "semantic", "limit": 20}
            assert answer(cold.search(**asked)) == answer(memory.search(**asked))
        long = " ".join(WORDS * 20)
        asked = {"search_type": "semantic", "limit": 20}
        assert answer(cold.search(long, **asked)) == answer(memory.search(long, **asked))


def test_hypotheses_beside_a_text_have_the_same_answers(database):
    vectors = WordEmbedder(dimensions=8).embed(["bale fing", "bale kon", "gure"])
    with filled(opened(database, "memory"), 60) as memory, opened(database) as cold:
        for kind in ("semantic", "hybrid"):
            options = {"vector": vectors, "search_type": kind, "user_id": "ann"}
            wanted = answer(memory.search("bale fing", **options))
            assert answer(cold.search("bale fing", **options)) == wanted


@pytest.mark.requirement("C219")
@pytest.mark.parametrize("search_in", ["memory", "database"])
def test_a_superseded_version_leads_a_turn_to_its_head(database, search_in):
    ann, vectors = Scope("default", "ann"), WordEmbedder(dimensions=8).embed(["bale"])
    with filled(opened(database, search_in), 60) as memory, opened(database) as other:
        old = memory.add("bale", user_id="ann")
        head = other.add("fing gure", user_id="ann", supersedes=old.id)
        search = TurnSearch(memory.repository, ann, HydeConfig(retrieval_top_k=70))

        def scores():
            return {each.entry.id: each.score for each in search.found(vectors).candidates}

        assert scores()[head.id] == pytest.approx(1)
        assert old.id not in scores()
        other.delete(old.id, user_id="ann", permanent=True)
        assert scores().get(head.id, 0) < 0.99


def test_memories_that_tie_with_the_last_one_are_ordered_as_in_memory(database):
    with opened(database, "memory") as memory, opened(database) as cold:
        memory.add_many(["bale"] * 90 + ["ding"] * 5)
        for limit in (1, 30, 90, 93):
            asked = {"search_type": "semantic", "limit": limit}
            assert answer(cold.search("bale", **asked)) == answer(memory.search("bale", **asked))


def test_expired_deleted_and_excluded_memories_are_left_out(database):
    clock = Clock()
    with opened(database, "memory", clock) as memory, opened(database, clock=clock) as cold:
        kept, old, gone = memory.add_many(["bale ding", "bale", "bale fon"])
        memory.update(old.id, expires_at=clock() + timedelta(hours=1))
        memory.delete(gone.id)
        asked = {"search_type": "semantic", "limit": 5}
        assert [hit.id for hit in cold.search("bale", **asked)] == [old.id, kept.id]
        clock.now += timedelta(hours=2)
        assert [hit.id for hit in cold.search("bale", **asked)] == [kept.id]
        assert cold.similar(kept.id).hits == ()


def refused(*_):
    raise OSError("the embedder is away")


def test_a_memory_that_was_stored_without_its_vector_is_found(database, monkeypatch):
    with filled(opened(database), 30) as cold:
        with monkeypatch.context() as patched:
            patched.setattr(FractionEmbedder, "embed", refused)
            added = cold.add_many(["sure gale"], on_embed_error="pending", user_id="ann")[0]
        for kind in ("semantic", "hybrid"):
            found = cold.search("sure gale", user_id="ann", search_type=kind, limit=1)
            assert found.hits[0].id == added.id


def test_a_small_agent_is_loaded_at_once(database):
    with filled(opened(database, "auto"), 20) as memory:
        memory.close()
    with opened(database, "auto") as memory:
        assert not unloaded(memory)


@pytest.fixture
def small_limits(monkeypatch):
    monkeypatch.setattr(database_search, "SMALL_AGENT", 100)


@pytest.mark.usefixtures("small_limits")
def test_a_large_agent_is_searched_in_the_database_until_loading_pays(database, monkeypatch):
    with filled(opened(database, "auto", index_pool=IndexPool(1 << 28))) as memory:
        memory.close()
    with opened(database, "auto", index_pool=IndexPool(1 << 28)) as memory:
        ask = {"user_id": "ann", "search_type": "semantic", "limit": 3}
        assert memory.search("bale", **ask).searched_in == "database"
        assert unloaded(memory)
        monkeypatch.setattr(database_search, "_LOADED_PER_SECOND", 1e9)
        expected = answer(memory.search("bale", **ask))  # from now on it pays
        memory.repository.finder._active.loading._thread.join()
        found = memory.search("bale", **ask)
        assert (answer(found), found.searched_in) == (expected, "memory")


@pytest.mark.usefixtures("small_limits")
def test_a_call_that_needs_the_index_waits_for_its_load_in_the_background(database, monkeypatch):
    begun, ended = threading.Event(), []

    def rows_since(read, *args, **options):
        if threading.current_thread().name.startswith("mnemic-load"):
            begun.set()
            suggesting.join(0.2)
        return read(*args, **options)

    def suggest():
        begun.wait()
        ended.append(memory.suggest("bale"))

    with filled(opened(database, "auto", index_pool=IndexPool(1 << 28))) as memory:
        memory.close()
    monkeypatch.setattr(database_search, "_LOADED_PER_SECOND", 1e9)
    memory = opened(database, "auto", index_pool=IndexPool(1 << 28))
    replace_operation(monkeypatch, memory.repository._store, RowsSince, rows_since)
    suggesting = threading.Thread(target=suggest, daemon=True)
    suggesting.start()
    for _ in range(2):
        memory.search("bale", user_id="ann", search_type="semantic", limit=3)
    suggesting.join(20)
    assert len(ended) == 1
    memory.close()


@pytest.mark.usefixtures("small_limits")
def test_an_agent_beyond_the_budget_stays_in_the_database(database, monkeypatch):
    monkeypatch.setattr(database_search, "_LOADED_PER_SECOND", 1e9)
    with (
        filled(opened(database, "memory", index_pool=IndexPool(1 << 28))) as memory,
        opened(database, "auto", index_pool=IndexPool(100_000)) as cold,
    ):
        for _ in range(3):
            for kind in ("semantic", "hybrid"):
                ask = {"user_id": "ann", "search_type": kind, "limit": 3}
                found = cold.search("bale ding", **ask)
                assert answer(found) == answer(memory.search("bale ding", **ask))
                assert found.searched_in == "database"
        assert unloaded(cold)


def test_writes_of_others_are_found_at_once_by_the_next_search_in_the_database(database):
    with filled(opened(database, "memory"), 30) as writer, opened(database) as cold:
        ask = {"user_id": "ann", "search_type": "semantic", "limit": 1}
        assert cold.search("sure gale", **ask)
        added = writer.add("sure gale", user_id="ann")
        assert cold.search("sure gale", **ask).hits[0].id == added.id
        writer.delete(added.id, user_id="ann")
        assert cold.search("sure gale", **ask).hits[0].id != added.id


def test_more_memories_than_the_exact_limit_are_chosen_by_an_index_of_the_database(database):
    with (
        filled(opened(database, "memory"), 900) as memory,
        opened(database, exact_limit=100) as cold,
    ):
        assert cold.index.create()
        found_all = 0
        for at in range(40):
            query = " ".join(WORDS[at : at + 3])
            ask = {"user_id": "ann", "search_type": "semantic", "limit": 5}
            expected = memory.search(query, **ask)
            found = cold.search(query, **ask)
            assert (expected.approximate, found.approximate) == (False, True)
            scores = {hit.id: hit.score for hit in memory.search(query, **{**ask, "limit": 900})}
            assert all(hit.score == scores[hit.id] for hit in found)
            found_all += answer(found) == answer(expected)
        assert found_all > 30


@pytest.mark.parametrize("model", ["words", "which? 100% of 'pgvector.vector'"])
def test_the_index_of_the_database_is_built_in_the_background(database, model):
    embedder = WordEmbedder(dimensions=8, model=model)
    options = {"search_in": "database", "exact_limit": 100}
    with filled(Memory(database, embedder=embedder, **options), 300) as cold:
        ask = {"user_id": "ann", "search_type": "semantic", "limit": 5}
        assert not cold.search("bale", **ask).approximate
        cold.repository._store._database.vector_indexes._thread.join()
        assert cold.search("bale", **ask).approximate


def test_an_index_that_finds_too_few_gives_way_to_the_exact_search(database, monkeypatch):
    monkeypatch.setattr(nearest, "_MIN_CANDIDATES", 5)
    with filled(opened(database, exact_limit=100), 300) as cold, opened(database, "memory") as warm:
        cold.scoped(project_id="p").add_many([f"sure {word}" for word in WORDS[:20]], user_id="zoe")
        cold.index.create()
        ask = {"user_id": "ann", "search_type": "semantic", "limit": 250}
        ask["filters"] = {"importance": {"gte": 0.2}}
        found = cold.search("bale", **ask)
        assert not found.approximate
        assert answer(found) == answer(warm.search("bale", **ask))


def test_an_unknown_place_to_search_in_is_refused(database):
    with pytest.raises(InvalidArgumentError, match="search_in must be one of auto, memory"):
        opened(database, "disk")


class Away(FractionEmbedder):
    def embed(self, texts):
        raise OSError(f"away, and so are {len(texts)} texts")


def test_a_memory_without_a_vector_is_found_though_an_index_of_vectors_serves_its_scope(database):
    with opened(database, exact_limit=20) as memory:
        memory.add_many([f"{first} {last}" for first in WORDS for last in WORDS[:6]])
        assert memory.index.create()
        assert memory.search("bale ding", search_type="semantic").approximate
        with Memory(database, embedder=Away(dimensions=8), search_in="database") as other:
            other.add_many(["a zebra"], on_embed_error="pending")
        ends = time.monotonic() + 20
        while memory.count() < 6 * len(WORDS) + 1:
            assert time.monotonic() < ends
            time.sleep(0.01)
        assert memory.search("zebra", search_type="semantic", limit=1)[0].content == "a zebra"
        memory.delete(memory.search("zebra", search_type="semantic", limit=1)[0].id)


@pytest.mark.parametrize("length", [1e-9, 1e20])
def test_a_vector_that_the_database_compares_otherwise_than_the_core_is_refused(database, length):
    with Memory(database, embedder=None) as memory:
        with pytest.raises(InvalidEntryError, match="length"):
            memory.add(MemoryEntry("an apple", embedding=[length, 0.0, 0.0]))
        memory.add(MemoryEntry("nothing", embedding=[1.0, 0.0, 0.0]))
        assert memory.count() == 1


@pytest.mark.parametrize("places", [{"database": True}, {"database": False}], ids=str)
def test_numbers_and_texts_that_a_database_has_not_are_compared_as_the_core_does(
    database, tmp_path, places
):
    url = database if places["database"] else str(tmp_path / "a.db")
    with Memory(url, embedder=None) as memory:
        memory.add(MemoryEntry("one", position=2**53 + 1, category="c"))
        memory.add(MemoryEntry("two", position=2**53))
        assert memory.count(filters={"position": {"gt": float(2**53)}}) == 1
        assert memory.count(filters={"category": "c\0"}) == 0
        assert memory.count(filters={"category": {"in": ["c", "\0"]}}) == 1
        assert memory.count(filters={"NOT": {"category": "\0"}}) == 2
        assert memory.delete_many(filters={"position": float(2**53)}) == 1
        assert [entry.content for entry in memory.list()] == ["one"]
