"""Texts, keys, labels and values of any kind: stored with the rest of their batch, or refused."""

import hostile
import pytest
from conftest import INDEX
from langgraph.store.base import InvalidNamespaceError, PutOp
from langgraph.store.mnemic import MnemicStore


@pytest.fixture
def store():
    with MnemicStore.from_conn_string(":memory:", index=INDEX) as opened:
        yield opened


def put(store, namespace=("a",), key="middle", value=None):
    """Put one of three items, of which all are stored or none."""
    ops = [PutOp(("z",), name, {"text": "tea"}) for name in ("first", "last")]
    with hostile.refusals(TypeError, InvalidNamespaceError) as refused:
        store.batch([ops[0], PutOp(namespace, key, value or {"text": "tea"}), ops[1]])
    assert len(store.search((), limit=10)) == (0 if refused else 3)
    return refused


@hostile.texts
def test_a_text(store, text):
    refused = put(store, value={"text": text})
    assert refused or store.get(("a",), "middle").value == {"text": text}
    store.put(("b",), "x", {"text": "tea"})
    assert store.search((), query=text)


@hostile.metadatas
def test_a_value(store, metadata):
    put(store, value={"text": "tea", "value": metadata})
    with hostile.refusals(TypeError):
        store.search((), filter=metadata)


@hostile.names
def test_a_key(store, name):
    refused = put(store, key=name)
    assert (store.get(("a",), name) is None) == bool(refused)
    store.delete(("a",), name)
    assert store.get(("a",), name) is None


@hostile.names
def test_a_label(store, name):
    put(store, namespace=("a", name))
    for call in (
        lambda: store.search(("a", name)),
        lambda: store.get(("a", name), "middle"),
        lambda: store.list_namespaces(prefix=("a", name)),
        lambda: store.list_namespaces(suffix=(name,)),
    ):
        with hostile.refusals(InvalidNamespaceError):
            call()
