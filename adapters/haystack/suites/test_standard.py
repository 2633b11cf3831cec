"""Haystack's tests of document stores, over the adapter, plain and awaited, of a user."""

import pytest
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.testing import document_store as tests
from haystack.testing import document_store_async as awaited_tests
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore


class OverMnemic:
    @pytest.fixture
    def document_store(self, tmp_path):
        """A user's store, beside another one's documents in the same file."""
        other = MnemicDocumentStore(tmp_path / "documents.db", "bob")
        other.write_documents(
            [Document(id=str(at), content=f"Doc {at}", meta={"category": "A"}) for at in range(9)]
        )
        store = MnemicDocumentStore(tmp_path / "documents.db", "alice")
        yield store
        store.close()
        assert other.count_documents() == 9
        other.close()

    def assert_documents_are_equal(self, received, expected):
        """As the suite's, but for embeddings, which are stored as float32."""
        for mine, theirs in zip(received, expected, strict=True):
            vectors = mine.embedding, theirs.embedding
            assert vectors == (None, None) or vectors[0] == pytest.approx(vectors[1], rel=1e-6)
            assert mine.to_dict() | {"embedding": 0} == theirs.to_dict() | {"embedding": 0}


class TestMnemicDocumentStore(
    OverMnemic,
    tests.DocumentStoreBaseExtendedTests,
    tests.CountDocumentsByFilterTest,
    tests.CountUniqueMetadataByFilterTest,
    tests.GetMetadataFieldsInfoTest,
    tests.GetMetadataFieldMinMaxTest,
    tests.GetMetadataFieldUniqueValuesTest,
):
    def test_write_documents(self, document_store):
        """What the policy NONE does is a store's own: FAIL, as of the store in memory."""
        document = Document(content="test doc")
        assert document_store.write_documents([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents([document])
        self.assert_documents_are_equal(document_store.filter_documents(), [document])


class TestAwaitedMnemicDocumentStore(
    OverMnemic,
    awaited_tests.CountDocumentsAsyncTest,
    awaited_tests.CountDocumentsByFilterAsyncTest,
    awaited_tests.CountUniqueMetadataByFilterAsyncTest,
    awaited_tests.DeleteAllAsyncTest,
    awaited_tests.DeleteByFilterAsyncTest,
    awaited_tests.DeleteDocumentsAsyncTest,
    awaited_tests.FilterDocumentsAsyncTest,
    awaited_tests.GetMetadataFieldMinMaxAsyncTest,
    awaited_tests.GetMetadataFieldsInfoAsyncTest,
    awaited_tests.GetMetadataFieldUniqueValuesAsyncTest,
    awaited_tests.UpdateByFilterAsyncTest,
    awaited_tests.WriteDocumentsAsyncTest,
):
    @pytest.fixture
    def filterable_docs(self):
        return tests.create_filterable_docs()

    async def test_write_documents_async(self, document_store):
        document = Document(content="test doc")
        assert await document_store.write_documents_async([document]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([document])
