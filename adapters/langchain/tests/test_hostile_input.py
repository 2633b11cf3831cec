"""Texts, ids and metadata of any kind: stored with the rest of their batch, or refused with it."""

import hostile
import pytest
from langchain_core.embeddings import Embeddings
from langchain_mnemic import MnemicRetriever, MnemicVectorStore


class Lengths(Embeddings):
    """Takes any text."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [1.0, len(text) % 7]


@pytest.fixture
def store():
    opened = MnemicVectorStore(Lengths(), embedding_model="lengths")
    yield opened
    opened.close()


def add(store, text="tea", metadata=None, name="middle"):
    """Add one of three documents, of which all are stored or none."""
    with hostile.refusals() as refused:
        store.add_texts(
            ["first", text, "last"],
            [{"n": 1}, metadata or {}, {"n": 3}],
            ids=["first", name, "last"],
        )
    assert store.memory.count() == (0 if refused else 3)
    return refused


@hostile.texts
def test_a_text(store, text):
    if not add(store, text):
        assert store.get_by_ids(["middle"])[0].page_content == text
    store.add_texts(["tea and cake"])
    assert store.similarity_search(text, k=1)
    with hostile.refusals():
        MnemicRetriever(memory=store.memory).invoke(text)


@hostile.metadatas
def test_metadata(store, metadata):
    if not add(store, metadata=metadata):
        (found,) = store.get_by_ids(["middle"])
        assert found.metadata == metadata
    with hostile.refusals():
        store.similarity_search("tea", filter=metadata)


@hostile.names
def test_an_id(store, name):
    refused = add(store, name=name)
    known = [name] if name and not refused else []
    assert [each.id for each in store.get_by_ids([name])] == known
    store.delete([name])
    assert store.get_by_ids([name]) == []


@hostile.names
def test_a_user(name):
    with hostile.refusals() as refused:
        MnemicVectorStore(Lengths(), user_id=name, embedding_model="lengths").add_texts(["tea"])
    assert not refused or name != hostile.NAMES["quotes"]
