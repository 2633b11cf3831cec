"""mem0's provider `langchain` over the store: its memories, found by vector and by user."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_mnemic import MnemicVectorStore
from mem0.vector_stores.langchain import Langchain

FAKE = DeterministicFakeEmbedding(size=16)


@pytest.fixture
def provider(tmp_path):
    store = MnemicVectorStore(FAKE, tmp_path / "mem0.db", embedding_model="fake")
    yield Langchain(client=store, collection_name="mem0")
    store.close()


def inserted(provider, *texts, user_id):
    payloads = [{"data": text, "user_id": user_id} for text in texts]
    vectors = FAKE.embed_documents(list(texts))
    provider.insert(vectors, payloads, [f"{user_id} {text}" for text in texts])


def test_memories_of_mem0_are_stored_found_changed_and_deleted(provider):
    inserted(provider, "tea", "rain", user_id="alice")
    inserted(provider, "tea", user_id="bob")
    query = {"query": "tea", "vectors": FAKE.embed_query("tea"), "filters": {"user_id": "alice"}}
    first, second = provider.search(**query)
    assert (first.id, first.score) == ("alice tea", pytest.approx(1))
    assert first.payload == {"data": "tea", "user_id": "alice"}
    assert second.score < first.score
    provider.update("alice tea", FAKE.embed_query("milk"), {"data": "milk", "user_id": "alice"})
    assert provider.get("alice tea").payload["data"] == "milk"
    provider.delete("alice tea")
    assert provider.get("alice tea") is None
    assert [each.id for each in provider.search(**query)] == ["alice rain"]
    provider.reset()
    assert provider.get("bob tea") is None
