"""Vectors given back: `embeddings=True` of the verbs that return memories."""

import threading
from uuid import UUID

import apsw
import numpy as np
import pytest

from mnemic import MemoryEntry
from mnemic.errors import StoreCorruptError
from mnemic.store.operations import VectorsById
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.operations import replace_operation

NORTH, EAST = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]
VERBS = {
    "get": lambda memory, ids, **options: [memory.get(one, **options) for one in ids],
    "get_many": lambda memory, ids, **options: memory.get_many(ids, **options),
    "list": lambda memory, ids, **options: [
        entry for one in ids for entry in memory.list(**options) if entry.id == one
    ],
}


def filled(memory):
    """Store memories with one vector, two, and none; return their ids."""
    texts = ["text one", "text two", "text three"]
    given = [*({"content": text} for text in texts[:2]), {"content": texts[2], "embed": ()}]
    ids = [one.id for one in memory.add_many(given, embeddings=[NORTH, [EAST, NORTH], None])]
    memory.add(MemoryEntry("last", embedding=[1.0, 1.0, 1.0]))
    return ids


@pytest.mark.parametrize("embedder", [WordEmbedder(dimensions=3), None])
@pytest.mark.parametrize("verb", VERBS)
def test_vectors_are_given_back_as_they_were_given(verb, embedder):
    with opened(embedder=embedder) as memory:
        ids = filled(memory)
        for _ in range(2):  # the second reads entries from the cache
            bare = VERBS[verb](memory, ids)
            full = VERBS[verb](memory, ids, embeddings=True)
            assert [entry.embedding for entry in bare] == [None] * 3
            assert [entry.embedding_model for entry in bare] == [None] * 3
            assert full[0].embedding.tolist() == NORTH
            assert full[1].embedding.tolist() == [EAST, NORTH]
            assert (full[2].embedding, full[2].embedding_model) == (None, None)
            assert {entry.embedding_model for entry in full[:2]} == {"words" if embedder else "own"}
            for entry in full[:2]:
                assert entry.embedding.dtype == np.float32
                assert not entry.embedding.flags.writeable
                assert "embedding" not in repr(entry)
            assert full == bare


def test_what_an_embedder_made_is_given_back_too():
    embedder = WordEmbedder()
    with opened(embedder=embedder) as memory:
        stored = memory.add("red cat")
        found = memory.get(stored.id, embeddings=True)
        assert found.embedding.tobytes() == embedder.embed(["red cat"])[0].tobytes()
        assert found.embedding.tobytes() == stored.embedding.tobytes()


def test_what_is_given_back_may_be_stored_elsewhere():
    with opened(embedder=None) as memory, opened(embedder=None) as other:
        ids = filled(memory)
        page = memory.list(embeddings=True)
        other.add_many(page.entries)
        found = [other.get(one, embeddings=True) for one in ids]
        assert found == [memory.get(one) for one in ids]
        assert found[1].embedding.tolist() == [EAST, NORTH]
        assert found[2].embedding is None


def test_deleted_and_archived_memories_have_their_vectors():
    with opened(embedder=None) as memory:
        one, two, _ = filled(memory)
        memory.delete(one)
        memory.update(two, status="archived")
        page = memory.list(
            include_deleted=True,
            filters={"status": {"in": ["active", "archived"]}},
            embeddings=True,
        )
        found = {entry.id: entry.embedding for entry in page}
        assert found[one].tolist() == NORTH
        assert found[two].tolist() == [EAST, NORTH]


def test_vectors_stay_within_the_scopes():
    shared = UUID(int=7)
    with opened(embedder=None) as memory:
        for user, vector in (("a", NORTH), ("b", EAST), (None, [NORTH, EAST])):
            memory.add(MemoryEntry("text", id=shared, embedding=vector), user_id=user)
        for user, vector in (("a", NORTH), ("b", EAST), (None, [NORTH, EAST])):
            found = memory.get(shared, user_id=user, embeddings=True)
            assert found.embedding.tolist() == vector
        found = memory.list(all_users=True, embeddings=True)
        given = {entry.user_id: entry.embedding.tolist() for entry in found}
        assert given == {"a": NORTH, "b": EAST, None: [NORTH, EAST]}


def test_a_page_is_read_with_one_statement(monkeypatch):
    with opened(embedder=None) as memory:
        memory.add_many([f"text {n}" for n in range(40)], embeddings=np.eye(40))
        store, calls = memory.repository._store, []

        def counted(read, wanted):
            calls.append(1)
            return read(wanted)

        replace_operation(monkeypatch, store, VectorsById, counted)
        page = memory.list(embeddings=True)
        assert sorted(entry.embedding.argmax() for entry in page) == list(range(40))
        assert calls == [1]


def test_vectors_belong_to_the_text_beside_them(tmp_path):
    """While another changes the memory, text and vector are of one state."""
    path = tmp_path / "a.db"
    embedder = WordEmbedder()
    texts = ["red cat", "green tree"]
    vectors = {text: embedder.embed([text])[0].tobytes() for text in texts}
    with opened(path, embedder=embedder) as memory, opened(path, embedder=embedder) as other:
        entry_id = memory.add(texts[0]).id
        done = threading.Event()

        def change():
            for turn in range(60):
                other.update(entry_id, content=texts[turn % 2])
            done.set()

        changing = threading.Thread(target=change)
        changing.start()
        while not done.is_set():
            entry = memory.get(entry_id, embeddings=True)
            if entry.embedding is not None:  # None after as many rounds as are tried
                assert entry.embedding.tobytes() == vectors[entry.content]
        changing.join()


def test_a_damaged_vector_is_not_given_back(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=None) as memory:
        one = memory.add(MemoryEntry("north", embedding=NORTH))
        two = memory.add(MemoryEntry("east", embedding=EAST))
    connection = apsw.Connection(str(path))
    connection.execute(
        "UPDATE agent_memory_embeddings SET embedding = ? WHERE entry_row = 1",
        (np.array(EAST, dtype="<f4").tobytes(),),
    )
    connection.close()
    with opened(path, embedder=None) as memory:
        assert memory.get(two.id, embeddings=True).embedding.tolist() == EAST
        with pytest.raises(StoreCorruptError, match="vectors of row 1 are not as stored"):
            memory.get(one.id, embeddings=True)
        with pytest.raises(StoreCorruptError):
            memory.list(embeddings=True)
