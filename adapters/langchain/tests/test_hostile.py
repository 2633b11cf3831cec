"""Two users of one file, deletions that stay, and a writer that is killed."""

import killed
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_mnemic import MnemicRetriever, MnemicVectorStore

from mnemic.errors import MnemicError

PRIVATE = "The code of the vault is 4711"
FAKE = DeterministicFakeEmbedding(size=16)


def opened(path, user_id=None):
    return MnemicVectorStore(FAKE, path, user_id=user_id, embedding_model="fake")


def all_answers(store):
    """What a user can learn by any call of the store and of the retriever."""
    retriever = MnemicRetriever(memory=store.memory, k=100)
    return (
        store.similarity_search_with_score("the code", k=100),
        store.similarity_search_with_relevance_scores("the code", k=100),
        store.max_marginal_relevance_search("the code", k=100, fetch_k=100),
        store.get_by_ids(["shared id", "0"]),
        retriever.invoke("What is the code of the vault?"),
        [hit.score for hit in store.memory.search("What is the code of the vault?")],
    )


@pytest.mark.parametrize("bound", [None, "bob"])
def test_what_one_user_does_changes_nothing_of_another(tmp_path, bound):
    bob = opened(tmp_path / "documents.db", bound)
    bob.add_texts(["Bob's own code", "Bob's tea"], [{"n": 1}, {"n": 2}], ids=["shared id", "tea"])
    before = all_answers(bob)
    alice = bob.scoped("alice") if bound is None else opened(tmp_path / "documents.db", "alice")
    alice.add_texts([PRIVATE] * 20, ids=[str(at) for at in range(20)])
    alice.add_texts([f"Alice's {PRIVATE}"], [{"n": 1}], ids=["shared id"])
    assert all_answers(bob) == before
    bob.delete(["0", "1"])
    assert len(alice.get_by_ids(["0", "1", "shared id"])) == 3
    alice.delete()
    assert all_answers(bob) == before
    bob.close()


def test_a_store_of_a_user_cannot_be_widened(tmp_path):
    alice = opened(tmp_path / "documents.db", "alice")
    with pytest.raises(MnemicError):
        alice.scoped("bob")
    with pytest.raises(MnemicError):
        MnemicRetriever(memory=alice.memory).invoke("code", user_id="bob")
    with pytest.raises(MnemicError):
        MnemicRetriever(memory=alice.memory, user_id="bob").invoke("code")
    alice.close()


@pytest.mark.parametrize("how", ["ids", "all", "replaced"])
def test_what_is_deleted_is_gone_from_the_file_and_stays_so(tmp_path, how):
    store = opened(tmp_path / "documents.db", "alice")
    store.add_texts([PRIVATE], ids=["1"])
    {
        "ids": lambda: store.delete(["1"]),
        "all": store.delete,
        "replaced": lambda: store.add_texts(["new"], ids=["1"]),
    }[how]()
    store.close()
    again = opened(tmp_path / "documents.db", "alice")
    assert PRIVATE not in str(all_answers(again))
    again.close()
    for file in tmp_path.iterdir():
        assert PRIVATE.encode() not in file.read_bytes()


WRITER = """
import sys
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_mnemic import MnemicVectorStore
embedding = DeterministicFakeEmbedding(size=16)
store = MnemicVectorStore(embedding, sys.argv[1], embedding_model="fake")
for at in range(100_000):
    store.add_texts([f"note {at}"], ids=[str(at)])
    print(at, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    path = tmp_path / "documents.db"
    last = int(killed.lines_of(WRITER, path, least=200)[-1])
    store = opened(path)
    ids = [str(at) for at in range(last + 1)]
    assert [each.page_content for each in store.get_by_ids(ids)] == [f"note {at}" for at in ids]
    assert store.similarity_search("note 7", k=1) == store.get_by_ids(["7"])
    store.close()
