"""Two users of one file, deletions that stay, and a writer that is killed."""

import asyncio

import killed
import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.mnemic import MnemicMemoryBlock, MnemicVectorStore

from mnemic import Memory
from mnemic.errors import MnemicError

PRIVATE = "The code of the vault is 4711"
MODES = ["default", "mmr", "text_search", "hybrid"]


def node(name, text=PRIVATE, vector=(0.6, 0.8), **metadata):
    return TextNode(
        id_=name,
        text=text,
        metadata=metadata,
        embedding=list(vector),
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id="document")},
    )


def opened(path, user_id):
    return MnemicVectorStore(path=str(path), user_id=user_id)


def all_answers(store):
    """What a user can learn by any call of the store."""
    found = [
        store.query(
            VectorStoreQuery([0.6, 0.8], 100, query_str="the code", mode=VectorStoreQueryMode(mode))
        )
        for mode in MODES
    ]
    return (
        [(each.nodes, each.ids, each.similarities) for each in found],
        store.get_nodes(),
        store.get_nodes(["shared", "0"]),
        store.client.count(),
    )


@pytest.mark.parametrize("user", [None, "bob"])
def test_what_one_user_does_changes_nothing_of_another(tmp_path, user):
    bob = opened(tmp_path / "nodes.db", user)
    bob.add([node("shared", "Bob's code", n=1), node("tea", "Bob's tea", (1.0, 0.0), n=2)])
    before = all_answers(bob)
    alice = opened(tmp_path / "nodes.db", "alice")
    alice.add([node(str(at)) for at in range(20)])
    alice.add([node("shared", n=1)])
    assert all_answers(bob) == before
    assert len(alice.get_nodes()) == 21
    bob.delete_nodes(["0", "1"])
    bob.delete_nodes(filters=MetadataFilters(filters=[MetadataFilter(key="n", value=7)]))
    assert len(alice.get_nodes()) == 21
    alice.delete("document")
    assert alice.get_nodes() == []
    assert all_answers(bob) == before
    alice.clear()
    assert all_answers(bob) == before
    alice.close()
    bob.close()


def test_a_block_shows_nothing_of_another_user(tmp_path):
    with Memory(tmp_path / "memories.db") as memory:
        alice = MnemicMemoryBlock(memory=memory, user_id="alice")
        bob = MnemicMemoryBlock(memory=memory, user_id="bob")
        question = [ChatMessage("What is the code of the vault?")]
        asyncio.run(alice.aput([ChatMessage(PRIVATE)]))
        assert "4711" in asyncio.run(alice.aget(question))
        assert asyncio.run(bob.aget(question)) == ""
        wider = MnemicMemoryBlock(memory=memory.scoped(user_id="bob"), user_id="alice")
        with pytest.raises(MnemicError):
            asyncio.run(wider.aget(question))


@pytest.mark.parametrize("how", ["ids", "filter", "document", "all", "replaced"])
def test_what_is_deleted_is_gone_from_the_file_and_stays_so(tmp_path, how):
    store = opened(tmp_path / "nodes.db", "alice")
    store.add([node("1", n=1)])
    {
        "ids": lambda: store.delete_nodes(["1"]),
        "filter": lambda: store.delete_nodes(
            filters=MetadataFilters(filters=[MetadataFilter(key="n", value=1)])
        ),
        "document": lambda: store.delete("document"),
        "all": store.clear,
        "replaced": lambda: store.add([node("1", "new")]),
    }[how]()
    store.close()
    again = opened(tmp_path / "nodes.db", "alice")
    assert PRIVATE not in str(all_answers(again))
    again.close()
    for file in tmp_path.iterdir():
        assert PRIVATE.encode() not in file.read_bytes()


WRITER = """
import sys
from llama_index.core.schema import TextNode
from llama_index.vector_stores.mnemic import MnemicVectorStore
store = MnemicVectorStore(path=sys.argv[1], user_id="alice")
for at in range(100_000):
    store.add([TextNode(id_=str(at), text=f"note {at}", embedding=[1.0, at])])
    print(at, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    path = tmp_path / "nodes.db"
    last = int(killed.lines_of(WRITER, path, least=200)[-1])
    store = opened(path, "alice")
    found = store.get_nodes()[: last + 1]
    assert [each.text for each in found] == [f"note {at}" for at in range(last + 1)]
    assert store.query(VectorStoreQuery([1.0, 0.0], 1)).ids == ["0"]
    store.close()
