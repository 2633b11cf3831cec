"""Two users of one file, deletions that stay, and a writer that is killed."""

import killed
import pytest
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy
from haystack_integrations.components.retrievers.mnemic import (
    MnemicEmbeddingRetriever,
    MnemicHybridRetriever,
)
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore

PRIVATE = "The code of the vault is 4711"


def private(name, **fields):
    return Document(id=name, content=PRIVATE, embedding=[0.6, 0.8], **fields)


def all_answers(store):
    """What a user can learn by any call of the store and of the retrievers."""
    every = {"field": "meta.n", "operator": "!=", "value": 99}
    return (
        store.count_documents(),
        store.count_documents_by_filter(every),
        store.filter_documents(),
        store.filter_documents(every),
        store.count_unique_metadata_by_filter({}, ["n", "secret"]),
        store.get_metadata_fields_info(),
        store.get_metadata_field_min_max("n"),
        store.get_metadata_field_unique_values("n"),
        MnemicEmbeddingRetriever(store, top_k=100).run([0.6, 0.8]),
        MnemicHybridRetriever(store, top_k=100).run("the code of the vault", [0.6, 0.8]),
        MnemicHybridRetriever(store, top_k=100).run("the code of the vault"),
    )


@pytest.mark.parametrize("user", [None, "bob"])
def test_what_one_user_does_changes_nothing_of_another(tmp_path, user):
    bob = MnemicDocumentStore(tmp_path / "documents.db", user)
    bob.write_documents(
        [
            Document(id="shared", content="Bob's code", meta={"n": 1}, embedding=[1.0, 0.0]),
            Document(id="tea", content="Bob's tea", meta={"n": 2}, embedding=[0.0, 1.0]),
        ]
    )
    before = all_answers(bob)
    alice = MnemicDocumentStore(tmp_path / "documents.db", "alice")
    alice.write_documents([private(str(at), meta={"secret": at}) for at in range(20)])
    alice.write_documents([private("shared", meta={"n": 1})], DuplicatePolicy.FAIL)
    alice.update_by_filter({"field": "meta.n", "operator": "==", "value": 1}, {"n": 5})
    assert all_answers(bob) == before
    bob.delete_documents(["0", "1"])
    assert bob.delete_by_filter({"field": "meta.n", "operator": "==", "value": 5}) == 0
    assert bob.update_by_filter({"field": "meta.secret", "operator": "==", "value": 3}, {}) == 0
    assert alice.count_documents() == 21
    alice.delete_all_documents()
    assert all_answers(bob) == before
    alice.close()
    bob.close()


@pytest.mark.parametrize("how", ["ids", "filter", "all", "overwritten"])
def test_what_is_deleted_is_gone_from_the_file_and_stays_so(tmp_path, how):
    store = MnemicDocumentStore(tmp_path / "documents.db", "alice")
    store.write_documents([private("1", meta={"n": 1})])
    {
        "ids": lambda: store.delete_documents(["1"]),
        "filter": lambda: store.delete_by_filter(
            {"field": "meta.n", "operator": "in", "value": [1]}
        ),
        "all": store.delete_all_documents,
        "overwritten": lambda: store.write_documents(
            [Document(id="1", content="new")], DuplicatePolicy.OVERWRITE
        ),
    }[how]()
    store.close()
    again = MnemicDocumentStore(tmp_path / "documents.db", "alice")
    assert PRIVATE not in str(all_answers(again))
    again.close()
    for file in tmp_path.iterdir():
        assert PRIVATE.encode() not in file.read_bytes()


WRITER = """
import sys
from haystack.dataclasses import Document
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore
store = MnemicDocumentStore(sys.argv[1], "alice")
for at in range(100_000):
    store.write_documents([Document(id=str(at), content=f"note {at}", embedding=[1.0, at])])
    print(at, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    path = tmp_path / "documents.db"
    last = int(killed.lines_of(WRITER, path, least=200)[-1])
    store = MnemicDocumentStore(path, "alice")
    found = store.filter_documents()
    assert [each.id for each in found[: last + 1]] == [str(at) for at in range(last + 1)]
    assert found[7] == Document(id="7", content="note 7", embedding=[1.0, 7.0])
    [nearest] = MnemicEmbeddingRetriever(store, top_k=1).run([1.0, 0.0])["documents"]
    assert nearest.id == "0"
    store.close()
