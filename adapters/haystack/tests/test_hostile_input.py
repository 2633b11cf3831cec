"""Texts, ids and metadata of any kind: stored with the rest of their batch, or refused with it."""

import hostile
import pytest
from haystack.dataclasses import Document
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.mnemic import MnemicHybridRetriever
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore


@pytest.fixture
def store():
    opened = MnemicDocumentStore()
    yield opened
    opened.close()


def add(store, **fields):
    """Add one of three documents, of which all are stored or none."""
    middle = Document(**{"id": "middle", "content": "tea", "embedding": [0.6, 0.8]} | fields)
    others = [Document(id=name, content="tea", embedding=[1.0, 0.0]) for name in ("first", "last")]
    with hostile.refusals() as refused:
        store.write_documents([others[0], middle, others[1]])
    assert store.count_documents() == (0 if refused else 3)
    return refused


def known_as(store, name):
    return store.filter_documents({"field": "id", "operator": "==", "value": name})


@hostile.texts
def test_a_text(store, text):
    if not add(store, content=text):
        assert known_as(store, "middle")[0].content == text
    retriever = MnemicHybridRetriever(store)
    retriever.run(text)
    store.write_documents([Document(id="another", content="tea", embedding=[1.0, 0.0])])
    assert retriever.run(text, [1.0, 0.0])["documents"]
    with hostile.refusals(FilterError):
        store.filter_documents({"field": "content", "operator": "==", "value": text})


@hostile.metadatas
def test_metadata(store, metadata):
    refused = add(store, meta=metadata)
    assert refused or known_as(store, "middle")[0].meta == metadata
    for key, value in metadata.items():
        with hostile.refusals(FilterError):
            store.filter_documents({"field": f"meta.{key}", "operator": "==", "value": value})
    with hostile.refusals():
        store.update_by_filter({}, metadata)


@hostile.names
def test_an_id(store, name):
    refused = add(store, id=name or "middle")
    with hostile.refusals(FilterError):
        assert len(known_as(store, name or "middle")) == (0 if refused else 1)
    store.delete_documents([name or "middle"])
    assert store.count_documents() == (0 if refused else 2)


@hostile.names
def test_a_user(name):
    with hostile.refusals() as refused:
        MnemicDocumentStore(user_id=name).write_documents([Document(content="tea")])
    assert not refused or name != hostile.NAMES["quotes"]
