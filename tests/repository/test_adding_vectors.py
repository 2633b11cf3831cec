"""Vectors of a program's own: stored beside memories, in place of their texts, and as queries."""

import array
import asyncio
import io
import pickle
import threading
from functools import partial
from uuid import UUID

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.compat import AsyncLongTermMemory, ContextWindow
from mnemic.errors import (
    CountMismatchError,
    DimensionMismatchError,
    EmbedderRequiredError,
    EmbeddingError,
    EmbeddingModelMismatchError,
    InvalidArgumentError,
    InvalidEntryError,
)
from mnemic.memory import ScopedMemory
from mnemic.model import MemoryQuery, Scope
from mnemic.repository import Repository, Settings
from tests.support.clock import NOON
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.exact_source import ExactSource
from tests.support.failing_embedders import FailingEmbedder
from tests.support.threads import run_together

NORTH, EAST = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
BETWEEN = [3.0, 4.0, 0.0]


@pytest.fixture
def memory():
    with opened(embedder=None) as made:
        yield made


def contents(found):
    return [hit.content for hit in found]


def scores(found):
    return {hit.content: round(hit.score, 6) for hit in found}


# Storing


@pytest.mark.parametrize(
    "vector",
    [
        NORTH,
        tuple(NORTH),
        [1, 0, 0],
        np.array(NORTH),
        np.array(NORTH, dtype=np.float16),
        np.array(NORTH, dtype=np.float32)[::-1][::-1],
        np.array([1, 0, 0], dtype=np.uint8),
        array.array("d", NORTH),
        np.array([NORTH]),
    ],
)
def test_any_array_or_list_of_numbers_is_a_vector(memory, vector):
    stored = memory.add(MemoryEntry("north", embedding=vector))
    assert stored.embedding.tolist() == NORTH
    assert (stored.embedding.dtype, stored.embedding_model) == (np.float32, "own")
    assert not stored.embedding.flags.writeable
    assert scores(memory.search(vector=vector)) == {"north": 1.0}


def test_an_array_that_changes_later_changes_no_memory(memory):
    vector = np.array(NORTH, dtype=np.float32)
    stored = memory.add(MemoryEntry("north", embedding=vector))
    vector[:] = EAST
    assert stored.embedding.tolist() == NORTH
    assert scores(memory.search(vector=NORTH)) == {"north": 1.0}


def test_the_nearest_of_several_vectors_counts(memory):
    stored = memory.add(MemoryEntry("both", embedding=[NORTH, EAST]))
    memory.add(MemoryEntry("between", embedding=BETWEEN))
    assert stored.embedding.tolist() == [NORTH, EAST]
    assert scores(memory.search(vector=EAST)) == {"both": 1.0, "between": 0.8}
    assert scores(memory.search(vector=[NORTH, EAST])) == {"both": 1.0, "between": 0.8}


def test_many_come_with_an_array_beside_them(memory):
    memory.add_many(["north", "east"], embeddings=np.array([NORTH, EAST]))
    assert contents(memory.search(vector=EAST)) == ["east", "north"]


def test_many_come_with_a_list_of_vectors_chunks_and_none():
    embedder = WordEmbedder(dimensions=3)
    with opened(embedder=embedder) as memory:
        record = memory.add(MemoryEntry("a record", embedding=NORTH))
    with opened(embedder=embedder) as memory:
        given = ["text", {"content": "dict", "user_id": None}, record, {"content": "embedded"}]
        stored = memory.add_many(given, embeddings=[NORTH, np.array([EAST, NORTH]), EAST, None])
    shapes = [entry.embedding.tolist() for entry in stored]
    assert shapes[:3] == [NORTH, [EAST, NORTH], EAST]
    assert embedder.texts == ["embedded"]
    assert {entry.embedding_model for entry in stored} == {"words"}


def test_a_dict_of_add_many_holds_its_own(memory):
    memory.add_many([{"content": "north", "embedding": NORTH}, {"content": "none", "embed": ()}])
    assert scores(memory.search(vector=NORTH)) == {"north": 1.0, "none": 0.0}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"embedding": [1.0, 0.0]}, EmbeddingModelMismatchError, r"shape \(2,\).* 3 dimensions"),
        ({"embedding": [[1.0, 0.0]] * 2}, EmbeddingModelMismatchError, r"shape \(2, 2\).* with 3"),
        ({"embedding": [0.0] * 3}, InvalidEntryError, "vector of zeros"),
        ({"embedding": [NORTH, [0.0] * 3]}, InvalidEntryError, "vector of zeros"),
        ({"embedding": [float("nan")] * 3}, InvalidEntryError, "NaN"),
        ({"embedding": "north"}, InvalidEntryError, "a list of numbers"),
        ({"embedding": NORTH, "embed": "text"}, InvalidEntryError, "leave one of them out"),
        ({"embed": "text"}, EmbedderRequiredError, "embedder=None"),
        ({"embed": [""]}, InvalidEntryError, r"embed=\(\) stores no vector"),
        ({"embed": 5}, InvalidArgumentError, "embed must be a list"),
        ({"embed": [5]}, InvalidEntryError, "a text of embed must be a str"),
        ({"embed": ["a"] * 257}, InvalidEntryError, "at most 256"),
    ],
)
def test_what_is_no_vector_is_refused_and_nothing_stored(memory, given, error, message):
    memory.add(MemoryEntry("north", embedding=NORTH))
    with pytest.raises(error, match=message):
        memory.add({"content": "refused", **given})
    with pytest.raises(error, match=message):
        memory.add_many(["fine", {"content": "refused", **given}])
    assert memory.count() == 1


@pytest.mark.parametrize("embeddings", [np.eye(3), [NORTH], []])
def test_each_memory_of_a_list_has_one_row(memory, embeddings):
    with pytest.raises(CountMismatchError, match="2 memories come with"):
        memory.add_many(["one", "two"], embeddings=embeddings)
    with pytest.raises(InvalidEntryError, match="memory 0 of the list: its embedding stands"):
        memory.add_many([{"content": "x", "embedding": NORTH}], embeddings=[NORTH])
    with pytest.raises(InvalidEntryError, match=r"memory 0 .* got \(\)"):
        memory.add_many(["one", "two"], embeddings=[1.0, 2.0])


def test_vectors_of_one_call_have_one_dimension(memory):
    with pytest.raises(EmbeddingModelMismatchError, match=r"shape \(2,\).* with 3 dimensions"):
        memory.add_many(["one", "two"], embeddings=[NORTH, [1.0, 2.0]])
    assert memory.count() == 0


def test_an_error_of_another_length_has_both(memory):
    memory.add(MemoryEntry("a", embedding=NORTH))
    with pytest.raises(DimensionMismatchError) as of_query:
        memory.search(vector=[1.0, 2.0])
    with pytest.raises(EmbeddingModelMismatchError) as of_entry:
        memory.add_many([MemoryEntry("b", embedding=[1.0, 2.0])])
    for error in (of_query.value, of_entry.value):
        assert (error.stored, error.given) == (3, 2)
        again = pickle.loads(pickle.dumps(error))  # noqa: S301 - its own
        assert (again.stored, again.given, str(again)) == (3, 2, str(error))


def test_an_error_of_another_model_has_no_lengths(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None, embedding_model="one") as memory:
        memory.add(MemoryEntry("a", embedding=NORTH))
    with pytest.raises(EmbeddingModelMismatchError) as refused:
        Memory(tmp_path / "a.db", embedder=None, embedding_model="two")
    assert (refused.value.stored, refused.value.given) == (None, None)


def test_an_error_shows_no_number_of_a_vector(memory):
    with pytest.raises(InvalidEntryError) as caught:
        memory.add(MemoryEntry("north", embedding=["8.125", "x"]))
    assert "8.125" not in str(caught.value)


# Beside an embedder


@pytest.mark.requirement("R022")
def test_given_vectors_count_as_the_embedders():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        memory.add(MemoryEntry("hello", embedding=embedder.embed(["red cat"])[0]))
        memory.add("red dog")
        embedder.texts.clear()
        assert contents(memory.search("red cat", search_type="semantic")) == ["hello", "red dog"]
        assert embedder.texts == ["red cat"]
        with pytest.raises(EmbeddingModelMismatchError, match=r"shape \(3,\).*'words' with 64"):
            memory.add(MemoryEntry("refused", embedding=NORTH))
        assert memory.verify().ok


def test_texts_are_embedded_in_place_of_the_content():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        stored = memory.add({"content": "blue fish", "embed": ["red cat", "green tree"]})
        one = memory.add({"content": "white fish", "embed": "yellow sun"})
        assert embedder.texts == ["red cat", "green tree", "yellow sun"]
        assert (stored.embedding.shape, one.embedding.shape) == ((2, 64), (64,))
        found = memory.search("green tree", search_type="semantic")
        assert scores(found) == {"blue fish": 1.0, "white fish": 0.0}
        assert contents(memory.search("fish blue", search_type="keyword"))[0] == "blue fish"


def test_texts_of_a_list_are_embedded_in_one_call():

    embedder = FailingEmbedder()
    with opened(embedder=embedder) as memory:
        memory.add_many(
            ["one", {"content": "two", "embed": ["a", "b"]}, {"content": "x", "embed": ()}]
        )
        assert embedder.calls == [["one", "a", "b"]]
        assert contents(memory.search("b", search_type="semantic"))[0] == "two"


def test_a_memory_without_a_vector_is_found_by_keywords_and_never_embedded(tmp_path):
    embedder = WordEmbedder()
    path = tmp_path / "a.db"
    with opened(path, embedder=embedder) as memory:
        stored = memory.add({"content": "hidden words", "embed": ()})
        assert stored.embedding is None
        assert contents(memory.search("hidden")) == ["hidden words"]
    with opened(path, embedder=embedder) as memory, opened(path, embedder=embedder) as other:
        assert contents(memory.search("words")) == contents(other.search("words"))
        assert scores(memory.search("hidden words", search_type="semantic")) == {"hidden words": 0}
        assert memory.verify().ok
    assert embedder.texts == ["hidden", "words", "words", "hidden words"]


def test_given_vectors_need_no_embedder_that_works():
    with opened(embedder=FailingEmbedder(3, is_down=True)) as memory:
        memory.add(MemoryEntry("north", embedding=NORTH))
        memory.add({"content": "none", "embed": ()})
        memory.add("", metadata={"k": 1})
        assert contents(memory.search(vector=NORTH))[0] == "north"


def test_texts_that_are_not_stored_cannot_wait_for_the_embedder():
    embedder = FailingEmbedder(is_down=True)
    with opened(embedder=embedder) as memory:
        with pytest.raises(EmbeddingError):
            memory.add_many([{"content": "waiting", "embed": "other"}], on_embed_error="pending")
        with pytest.raises(EmbeddingError):
            memory.add_many(["a", {"content": "b", "embed": "c"}], on_embed_error="pending")
        assert memory.count() == 0
        memory.add_many(["waiting"], on_embed_error="pending")
        embedder.is_down = False
        assert scores(memory.search("waiting", search_type="semantic")) == {"waiting": 1.0}


class Undeclared(WordEmbedder):
    """An embedder that does not declare its dimensions."""

    def __init__(self):
        super().__init__(dimensions=3)
        self.dimensions = None
        self.length = 3

    def embed(self, texts):
        self.dimensions = self.length
        try:
            return super().embed(texts)
        finally:
            self.dimensions = None


def test_a_dimension_that_is_not_declared_is_learned_from_the_embedder(tmp_path):
    cases = ({"embed": ()}, {"embedding": NORTH}, {"content": "", "metadata": {"k": 1}})
    for number, options in enumerate(cases):
        path, embedder = tmp_path / f"{number}.db", Undeclared()
        with opened(path, embedder=embedder) as memory:
            memory.add({"content": "hidden words", **options})
            with pytest.raises(EmbeddingModelMismatchError, match="with 3 dimensions"):
                memory.add(MemoryEntry("refused", embedding=[1.0, 0.0]))
        with opened(path, embedder=embedder) as memory:
            memory.search("something")
        assert set(embedder.texts) == {"the length of a vector", "something"}


def test_an_embedder_that_is_not_declared_may_meet_empty_texts_first(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=None) as memory:
        memory.add("", metadata={"k": 1})
    embedder = Undeclared()
    with opened(path, embedder=embedder) as memory:
        memory.search("north")
        memory.add("north")
        assert contents(memory.search("north", search_type="semantic"))[0] == "north"
        assert memory.verify().ok


# Without an embedder


def test_the_dimension_is_learned_from_the_first_vector(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=None) as memory, opened(path, embedder=None) as other:
        memory.add("words alone")
        assert len(memory.search(vector=NORTH)) == len(other.search(vector=[1.0])) == 0
        assert contents(memory.search("words", vector=NORTH)) == ["words alone"]
        memory.add(MemoryEntry("north", embedding=NORTH))
        assert scores(memory.search(vector=NORTH)) == {"north": 1.0}
        assert scores(other.search(vector=NORTH)) == {"north": 1.0}
        other.add(MemoryEntry("east", embedding=EAST))
        assert contents(memory.search(vector=EAST)) == ["east", "north"]
        with pytest.raises(DimensionMismatchError, match=r"shape \(1,\).*'own' have 3 dimensions"):
            other.search(vector=[1.0])
    with opened(path, embedder=None) as memory:
        assert contents(memory.search(vector=EAST)) == ["east", "north"]
        assert contents(memory.search("north")) == ["north"]
        with pytest.raises(EmbedderRequiredError, match="give the query's vector"):
            memory.search("north", search_type="semantic")


def test_the_model_has_the_name_it_is_given(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=None, embedding_model="mine-v1") as memory:
        assert memory.add(MemoryEntry("north", embedding=NORTH)).embedding_model == "mine-v1"
    with pytest.raises(EmbeddingModelMismatchError, match=r"'mine-v1' with 3 .*'mine-v2'"):
        opened(path, embedder=None, embedding_model="mine-v2")
    with opened(path, embedder=None) as memory:  # which may search by keywords
        assert contents(memory.search("north")) == ["north"]
        for refused in (
            lambda: memory.search(vector=NORTH),
            lambda: memory.add(MemoryEntry("east", embedding=EAST)),
        ):
            with pytest.raises(EmbeddingModelMismatchError, match="embedding_model='mine-v1'"):
                refused()
    with pytest.raises(EmbeddingModelMismatchError, match="the embedder is 'words'"):
        opened(path)


def test_a_memory_of_an_embedder_takes_vectors_of_its_model_without_it(tmp_path):
    path = tmp_path / "a.db"
    embedder = WordEmbedder()
    with opened(path, embedder=embedder) as memory:
        memory.add("red cat")
    with opened(path, embedder=None, embedding_model="words") as memory:
        memory.add(MemoryEntry("red dog", embedding=embedder.embed(["red dog"])[0]))
        found = memory.search(vector=embedder.embed(["dog"])[0])
        assert contents(found) == ["red dog", "red cat"]
    with opened(path, embedder=embedder) as memory:
        assert contents(memory.search("dog", search_type="semantic")) == ["red dog", "red cat"]


def test_given_vectors_are_of_the_embedders_model_by_the_name_that_it_is_given():
    with opened(embedding_model="mine") as memory:
        given = memory.add(MemoryEntry("red cat", embedding=WordEmbedder().embed(["red cat"])[0]))
        assert given.embedding_model == memory.add("red dog").embedding_model == "mine"


# Searching


def test_a_window_of_a_context_passes_over_empty_texts():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        memory.add({"content": "", "embed": "red cat"})
        memory.add("red dog")
        window = ContextWindow(1000)
        query = MemoryQuery(query="red cat", min_relevance=0.0)
        assert memory.retrieve_to_context(query, window) == 1
        assert [item.content for item in window.items()] == ["red dog"]


def test_a_record_of_several_vectors_is_stored_by_every_door(memory):
    record = {"agent_id": "aide", "content": "both", "created_at": NOON}
    made = MemoryEntry(id=UUID(int=1), embedding=[NORTH, EAST], **record)

    async def scenario():
        async with AsyncLongTermMemory(":memory:", agent_id="aide", embedder=None) as long:
            await long.store(made)
            await long.store_batch([MemoryEntry(id=UUID(int=2), embedding=EAST, **record)])
            target = io.StringIO()
            await long.export(target, embeddings=True)
            return target.getvalue()

    memory.import_(io.StringIO(asyncio.run(scenario())))
    assert vectors_of(memory) == {UUID(int=1): [NORTH, EAST], UUID(int=2): EAST}


def test_searches_find_the_first_vectors_while_others_write_them(tmp_path):
    """The index learns the dimension beside writers and readers, and loses nothing."""
    path, failures = tmp_path / "a.db", []
    with opened(path, embedder=None) as memory:
        memory.add_many([f"text {number}" for number in range(300)])
        memory.search("text")
        barrier = threading.Barrier(4)

        def write(which):
            barrier.wait()
            for number in range(20):
                memory.add(MemoryEntry(f"{which} {number}", embedding=NORTH))

        def read():
            barrier.wait()
            for _ in range(60):
                known = memory.count() - 300
                found = memory.search(vector=NORTH, limit=100)
                if known > len(found):
                    failures.append((known, len(found)))

        tasks = [(write, "a"), (write, "b"), (read,), (read,)]
        run_together(*(partial(task, *given) for task, *given in tasks))
        assert failures == []
        assert len(memory.search(vector=NORTH, limit=100)) == 40
        assert memory.verify().ok


def test_a_candidate_source_takes_vectors_from_the_first_one_on():
    options = {"embedder": None, "make_source": ExactSource, "exact_limit": 2}
    repository = Repository(Settings.of(":memory:", "aide", **options))
    memory = ScopedMemory(repository, Scope(repository.agent_id))
    try:
        memory.search("nothing")
        vectors = np.eye(400)
        memory.add_many([f"memory {number}" for number in range(400)], embeddings=vectors)
        found = memory.search(vector=vectors[3], limit=1)
        assert (contents(found), found.approximate) == (["memory 3"], True)
    finally:
        asyncio.run(repository.close())


def exact(found):
    return [(hit.id, hit.score.hex(), sorted(hit.components.items())) for hit in found], found.share


def test_own_vectors_find_what_an_embedders_find():
    """A memory of given vectors answers as one that embeds, bit for bit."""
    embedder = WordEmbedder()
    stored = ["one red cat sleeps", "a dog barks in the park", "the boat", "Oslo in winter is cold"]
    with opened(embedder=embedder, clock=lambda: NOON) as memory:
        ids = [entry.id for entry in memory.add_many(stored)]
        expected = exact(memory.search("red boat in Oslo", explain=True))
    with opened(embedder=None, clock=lambda: NOON) as memory:
        named = zip(stored, ids, strict=True)
        given = [{"content": text, "id": entry_id} for text, entry_id in named]
        memory.add_many(given, embeddings=embedder.embed(stored))
        vector = embedder.embed(["red boat in Oslo"])[0]
        assert exact(memory.search("red boat in Oslo", vector=vector, explain=True)) == expected


# Empty contents


@pytest.mark.parametrize("embedder", [WordEmbedder(dimensions=3), None])
def test_a_memory_may_have_no_text_if_it_has_a_vector_or_metadata(tmp_path, embedder):
    path = tmp_path / "a.db"
    with opened(path, embedder=embedder) as memory:
        one = memory.add(MemoryEntry("", embedding=NORTH))
        two = memory.add("", metadata={"kind": "image"})
        assert (two.embedding, two.content) == (None, "")
        with pytest.raises(InvalidEntryError, match="unless the memory has metadata or an embed"):
            memory.add("")
        with pytest.raises(InvalidEntryError, match="white space"):
            memory.add(MemoryEntry(" ", embedding=NORTH))
    with opened(path, embedder=embedder) as memory:
        assert memory.get(one.id).content == ""
        assert memory.list(filters={"metadata.kind": "image"})[0].id == two.id
        assert memory.search(vector=NORTH)[0].id == one.id
        assert len(memory.search("image", search_type="keyword")) == 0
        assert memory.update(two.id, importance=0.9).importance == 0.9
        assert memory.count() == 2
        assert memory.verify().ok
    if embedder is not None:
        assert embedder.texts == []


@pytest.mark.parametrize("on_duplicate", ["skip", "merge"])
def test_empty_texts_repeat_no_other(memory, on_duplicate):
    for number in range(3):
        memory.add("", metadata={"n": number}, on_duplicate=on_duplicate)
    assert memory.count() == 3


def test_a_key_of_an_empty_text_stores_once(memory):
    one = memory.add("", metadata={"n": 1}, idempotency_key="k")
    assert memory.add("", metadata={"n": 1}, idempotency_key="k").id == one.id


def test_a_judge_is_asked_nothing_of_an_empty_text():
    with opened() as memory:
        memory.add("Lives in Oslo")
        checked = memory.add("", metadata={"n": 1}, check="contradictions")
        assert checked.contradictions == ()


def test_an_empty_text_is_similar_by_its_vector_alone():
    with opened(embedder=WordEmbedder(dimensions=3)) as memory:
        one = memory.add(MemoryEntry("", embedding=NORTH))
        two = memory.add("", metadata={"k": 1})
        near = memory.add(MemoryEntry("near", embedding=[1.0, 0.1, 0.0]))
        assert memory.similar(one.id)[0].id == near.id
        assert all(hit.score == 0 for hit in memory.similar(two.id))


def test_a_record_without_text_metadata_and_vector_is_none():
    with pytest.raises(InvalidEntryError, match="cannot be empty"):
        MemoryEntry(id="0" * 32, agent_id="a", content="", created_at=NOON)


# Exports


def vectors_of(memory):
    return {
        entry.id: None if entry.embedding is None else entry.embedding.tolist()
        for entry in memory.list(embeddings=True)
    }


@pytest.mark.parametrize("embedder", [WordEmbedder(dimensions=3), None])
def test_an_export_keeps_own_vectors(tmp_path, embedder):
    path = tmp_path / "out.jsonl"
    name = None if embedder else "mine"
    with opened(embedder=embedder, embedding_model=name) as memory:
        memory.add_many(["one", "two", ""], embeddings=[NORTH, [EAST, NORTH], EAST])
        memory.add({"content": "none", "embed": ()})
        memory.export(path, embeddings=True)
        expected = vectors_of(memory)
    with opened(embedder=embedder, embedding_model=name) as copy:
        assert copy.import_(path).stored == 4
        assert vectors_of(copy) == expected
        assert sorted(contents(copy.search(vector=EAST, limit=2))) == ["", "two"]
        assert copy.verify().ok
    with opened(embedder=None) as plain:  # takes any one model, as before
        plain.import_(path)
        assert vectors_of(plain) == expected


def test_an_import_embeds_what_has_vectors_of_another_model(tmp_path):
    path = tmp_path / "out.jsonl"
    with opened(embedder=None, embedding_model="mine") as memory:
        memory.add_many(["red cat", ""], embeddings=[NORTH, EAST])
        memory.export(path, embeddings=True)
    embedder = WordEmbedder()
    with opened(embedder=embedder) as copy:
        copy.import_(path)
        assert embedder.texts == ["red cat"]
        assert scores(copy.search("red cat", search_type="semantic")) == {"red cat": 1, "": 0}
    with opened(embedder=None, embedding_model="others") as copy:
        copy.import_(path)
        assert set(vectors_of(copy).values()) == {None}


def test_a_memory_of_a_vector_alone_comes_back_from_an_export_without_vectors(tmp_path):
    path = tmp_path / "out.jsonl"
    with opened(embedder=None) as memory:
        stored = memory.add(MemoryEntry("", embedding=NORTH))
        memory.export(path)
    for embedder in (None, WordEmbedder()):
        with opened(embedder=embedder) as copy:
            copy.import_(path)
            assert copy.get(stored.id) == stored
            assert copy.get(stored.id, embeddings=True).embedding is None


# Replacing


@pytest.mark.parametrize("embedder", [WordEmbedder(dimensions=3), None])
def test_given_vectors_take_the_place_of_stored_ones(embedder, tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=embedder) as memory, opened(path, embedder=embedder) as other:
        one = memory.add(MemoryEntry("same text", embedding=NORTH))
        memory.add(MemoryEntry("east", embedding=EAST))
        assert other.search(vector=NORTH)[0].id == one.id
        put = {"content": "same text", "id": one.id}
        memory.add_many([put], on_conflict="replace")  # keeps its vector
        assert memory.get(one.id, embeddings=True).embedding.tolist() == NORTH
        memory.add_many([{**put, "embedding": [0.0, 0.0, 2.0]}], on_conflict="replace")
        for each in (memory, other):
            assert scores(each.search(vector=[0.0, 0.0, 1.0])) == {"same text": 1.0, "east": 0.0}
        memory.add_many([{**put, "embed": ()}], on_conflict="replace")
        for each in (memory, other):
            assert scores(each.search(vector=[0.0, 0.0, 1.0])) == {"same text": 0.0, "east": 0.0}
        assert memory.verify().ok
    if embedder is not None:
        assert embedder.texts == []


def test_other_texts_take_the_place_of_stored_ones():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        one = memory.add({"content": "same", "embed": "red cat", "metadata": {"n": 1}})
        memory.add_many(
            [{"content": "same", "embed": "green tree", "id": one.id}], on_conflict="replace"
        )
        assert embedder.texts == ["red cat", "green tree"]
        assert scores(memory.search("green tree", search_type="semantic")) == {"same": 1.0}


def test_an_empty_text_put_again_keeps_no_vector_of_other_texts():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        one = memory.add({"content": "", "embed": "red cat", "metadata": {"n": 1}})
        memory.add_many([MemoryEntry("", metadata={"n": 2}, id=one.id)], on_conflict="replace")
        assert scores(memory.search("red cat", search_type="semantic")) == {"": 0.0}


# Changing


@pytest.mark.parametrize("embedder", [WordEmbedder(dimensions=3), None])
def test_an_update_brings_other_vectors(embedder, tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=embedder) as memory, opened(path, embedder=embedder) as other:
        one = memory.add(MemoryEntry("same text", embedding=NORTH, metadata={"n": 1}))
        memory.add(MemoryEntry("east", embedding=EAST))
        assert other.search(vector=NORTH)[0].id == one.id
        changed = memory.update(one.id, embedding=[[0.0, 0.0, 1.0], EAST])
        assert (changed.content, changed.version) == ("same text", one.version + 1)
        for each in (memory, other):
            assert each.search(vector=[0.0, 0.0, 1.0])[0].id == one.id
            assert each.search("same text", vector=[0.0, 0.0, 1.0])[0].id == one.id
            assert scores(each.search(vector=NORTH)) == {"same text": 0.0, "east": 0.0}
            found = each.get(one.id, embeddings=True).embedding
            assert found.tolist() == [[0.0, 0.0, 1.0], EAST]
        memory.update(one.id, content="other text", embedding=NORTH, importance=0.9)
        assert scores(other.search(vector=NORTH)) == {"other text": 1.0, "east": 0.0}
        memory.update(one.id, embed=())
        assert other.get(one.id, embeddings=True).embedding is None
        assert scores(other.search(vector=NORTH)) == {"other text": 0.0, "east": 0.0}
        assert memory.verify().ok
    with opened(path, embedder=embedder) as memory:
        assert scores(memory.search(vector=EAST)) == {"other text": 0.0, "east": 1.0}
    if embedder is not None:
        assert embedder.texts == []


def test_an_update_embeds_other_texts_in_place_of_the_content():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        one = memory.add("blue fish")
        memory.update(one.id, embed=["red cat", "green tree"])
        assert scores(memory.search("green tree", search_type="semantic")) == {"blue fish": 1.0}
        memory.update(one.id, content="white fish")
        assert scores(memory.search("green tree", search_type="semantic")) == {"white fish": 0.0}
        assert scores(memory.search("white fish", search_type="semantic")) == {"white fish": 1.0}
        assert memory.verify().ok


def test_without_an_embedder_a_new_text_has_no_vector(memory):
    one = memory.add(MemoryEntry("north", embedding=NORTH))
    memory.update(one.id, content="south")
    assert memory.get(one.id, embeddings=True).embedding is None
    assert contents(memory.search(vector=NORTH)) == []
    assert contents(memory.search("south")) == ["south"]
    assert memory.verify().ok


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"embedding": [1.0]}, EmbeddingModelMismatchError, "3 dimensions"),
        ({"embedding": [0.0] * 3}, InvalidEntryError, "zeros"),
        ({"embedding": NORTH, "embed": ()}, InvalidEntryError, "leave one of them out"),
        ({"embed": "text"}, EmbedderRequiredError, "embedder=None"),
        ({"content": ""}, InvalidEntryError, "content cannot be empty"),
    ],
)
def test_an_update_refuses_what_is_no_vector(memory, given, error, message):
    one = memory.add(MemoryEntry("north", embedding=NORTH))
    with pytest.raises(error, match=message):
        memory.update(one.id, **given)
    assert memory.get(one.id) == one


def test_an_access_that_is_not_written_yet_outlives_new_vectors(memory):
    one = memory.add(MemoryEntry("north", embedding=NORTH))
    memory.get(one.id)
    memory.update(one.id, embedding=EAST)
    (hit,) = memory.search(vector=EAST, ranking={"relevance": 1.0, "access": 1.0})
    assert hit.entry.access_count == 1
    assert contents(memory.search(vector=EAST, filters={"access_count": 1})) == ["north"]
