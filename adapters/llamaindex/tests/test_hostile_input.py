"""Texts, ids and metadata of any kind: stored with the rest of their batch, or refused with it."""

import asyncio

import hostile
import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
from llama_index.vector_stores.mnemic import MnemicMemoryBlock, MnemicVectorStore

from mnemic import Memory


@pytest.fixture
def store():
    opened = MnemicVectorStore()
    yield opened
    opened.close()


def node(name, text="tea", metadata=None):
    return TextNode(id_=name, text=text, metadata=metadata or {}, embedding=[0.6, 0.8])


def add(store, *nodes):
    """Add nodes between two others, of which all are stored or none."""
    with hostile.refusals(TypeError, ValueError) as refused:  # of LlamaIndex's own serializer
        store.add([node("first"), *nodes, node("last")])
    assert store.client.count() == (0 if refused else 2 + len(nodes))
    return refused


@hostile.texts
def test_a_text(store, text):
    if not add(store, node("middle", text)):
        assert store.get_nodes(["middle"])[0].text == text
    for mode in ("default", "text_search", "hybrid"):
        query = VectorStoreQuery([0.6, 0.8], 3, query_str=text, mode=VectorStoreQueryMode(mode))
        assert store.query(query).ids is not None


@hostile.texts
def test_a_message(text):
    async def play(block):
        await block._aput([ChatMessage("tea"), ChatMessage(text), ChatMessage("tea and cake")])
        return await block._aget([ChatMessage(text)])

    with Memory(":memory:") as memory:
        block = MnemicMemoryBlock(memory=memory, user_id="alice")
        with hostile.refusals() as refused:
            asyncio.run(play(block))
        assert not refused
        assert memory.count(user_id="alice") == (3 if text.strip() else 2)


@hostile.metadatas
def test_metadata(store, metadata):
    try:
        given = node("middle", metadata=metadata)
    except ValueError:  # of pydantic
        return
    with hostile.refusals(TypeError, ValueError) as unreadable:
        kept = metadata_dict_to_node(node_to_metadata_dict(given)).metadata
    refused = add(store, given)
    assert refused or store.get_nodes(["middle"])[0].metadata == kept
    assert refused or not unreadable
    for key, value in metadata.items():
        test = MetadataFilter.model_construct(key=key, value=value)
        with hostile.refusals():
            store.get_nodes(filters=MetadataFilters(filters=[test]))


@hostile.names
def test_an_id(store, name):
    refused = add(store, node(name))
    assert [each.node_id for each in store.get_nodes([name])] == ([] if refused else [name])
    store.delete_nodes([name])
    with hostile.refusals():
        store.delete(name)
    assert store.get_nodes([name]) == []


@hostile.names
def test_a_user(name):
    with hostile.refusals(ValueError) as refused:
        MnemicVectorStore(user_id=name).add([node("only")])
    assert not refused or name != hostile.NAMES["quotes"]
