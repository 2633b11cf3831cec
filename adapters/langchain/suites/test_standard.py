"""LangChain's standard tests of vector stores and of retrievers, over the adapter."""

import pytest
from langchain_mnemic import MnemicRetriever, MnemicVectorStore
from langchain_tests.integration_tests import (
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from mnemic import Memory


class TestMnemicVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path):
        store = MnemicVectorStore(
            self.get_embeddings(), tmp_path / "documents.db", embedding_model="fake"
        )
        yield store
        store.close()


class TestMnemicVectorStoreOfAUser(VectorStoreIntegrationTests):
    """Beside another user's documents, which have the same ids."""

    @pytest.fixture
    def vectorstore(self, tmp_path):
        store = MnemicVectorStore(
            self.get_embeddings(), tmp_path / "documents.db", embedding_model="fake"
        )
        store.scoped("bob").add_texts(["foo", "bar", "baz"], ids=["1", "2", "foo"])
        yield store.scoped("alice")
        store.close()


class TestMnemicRetriever(RetrieversIntegrationTests):
    """Over mnemic's own model, without an `Embeddings` object."""

    @pytest.fixture(autouse=True)
    def memory(self, tmp_path):
        with Memory(tmp_path / "memories.db") as memory:
            memory.add_many([f"Tea at {hour} o'clock" for hour in range(5)], user_id="alice")
            self._memory = memory
            yield

    @property
    def retriever_constructor(self):
        return MnemicRetriever

    @property
    def retriever_constructor_params(self):
        return {"memory": self._memory, "user_id": "alice"}

    @property
    def retriever_query_example(self):
        return "When is tea?"
