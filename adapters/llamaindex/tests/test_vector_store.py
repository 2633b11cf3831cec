"""Nodes, filters, modes and awaited forms of the store, beside LlamaIndex's; the memory block."""

import asyncio
import inspect
import random
import threading

import pytest
from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import Memory as LlamaMemory
from llama_index.core.schema import (
    Document,
    ImageNode,
    IndexNode,
    NodeRelationship,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn
from llama_index.vector_stores.mnemic import MnemicMemoryBlock, MnemicVectorStore

from mnemic import Memory
from mnemic.errors import MnemicError

PLACES = {"north": [1.0, 0.0], "north east": [1.0, 1.0], "east": [0.0, 1.0], "south": [-1.0, 0.0]}


@pytest.fixture
def store(tmp_path):
    made = MnemicVectorStore(path=str(tmp_path / "nodes.db"), user_id="alice")
    yield made
    made.close()


@pytest.fixture
def places(store):
    store.add(
        [
            TextNode(id_=text, text=text, embedding=vector, metadata={"length": len(text)})
            for text, vector in PLACES.items()
        ]
    )
    return store


def asked(store, mode="default", top_k=9, named=None, **fields):
    query = VectorStoreQuery(similarity_top_k=top_k, mode=VectorStoreQueryMode(mode), **fields)
    found = store.query(query, **named or {})
    awaited = asyncio.run(store.aquery(query, **named or {}))
    assert (found.ids, found.similarities) == (awaited.ids, awaited.similarities)
    assert [node.node_id for node in found.nodes] == found.ids
    return found


def where(*tests, condition="and"):
    filters = [
        test
        if isinstance(test, MetadataFilters)
        else MetadataFilter(key=test[0], operator=FilterOperator(test[1]), value=test[2])
        for test in tests
    ]
    return MetadataFilters(filters=filters, condition=FilterCondition(condition))


@pytest.mark.parametrize("text", ["text", "", " \n"])
def test_a_node_comes_back_with_all_its_fields(store, text):
    source = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id="document")}
    nodes = [
        TextNode(id_="a \n", text=text, metadata={"$a": {"eq": [1.0, None]}}, relationships=source),
        ImageNode(id_="image", text=text, image_url="https://example.invalid/a.png"),
        IndexNode(id_="index", text=text, index_id="other"),
    ]
    vectors = [[1.0, 0.5], [0.5, 1.0], [-1.0, 0.0]]
    with_vectors = [
        node.model_copy(update={"embedding": vector})
        for node, vector in zip(nodes, vectors, strict=True)
    ]
    assert store.add(with_vectors) == ["a \n", "image", "index"]
    assert store.get_nodes() == nodes
    assert asked(store, query_embedding=[-2.0, 0.0], top_k=1).nodes == [nodes[2]]
    assert store.get_nodes(filters=where(("$a", "is_empty", None))) == nodes[1:]
    store.delete("document")
    assert store.get_nodes() == nodes[1:]


def test_a_node_whose_id_is_stored_takes_that_ones_place(store):
    store.add([TextNode(id_="1", text="old", embedding=[1.0, 0.0])])
    store.add([TextNode(id_="1", text="new", embedding=[0.0, 1.0])])
    found = asked(store, query_embedding=[0.0, 1.0])
    assert ([node.text for node in found.nodes], found.similarities) == (["new"], [1.0])


def test_what_cannot_be_stored_stores_nothing(store):
    good = TextNode(text="good", embedding=[1.0, 0.0])
    for wrong in (
        TextNode(text="no vector"),
        TextNode(text="zeros", embedding=[0.0, 0.0]),
        TextNode(text="other length", embedding=[1.0]),
        TextNode(text="number", embedding=[0.0, 1.0], metadata={"n": 2**60}),
    ):
        with pytest.raises((ValueError, MnemicError)):
            store.add([good, wrong])
    assert store.get_nodes() == []


def test_scores_are_cosines_and_the_nearest_is_first(places):
    found = asked(places, query_embedding=[3.0, 0.0])
    assert found.ids == ["north", "north east", "east", "south"]
    assert found.similarities == pytest.approx([1, 0.5**0.5, 0, -1], abs=1e-6)


def test_modes_find_by_words_by_both_and_unlike_nodes(places):
    both = {"query_str": "south", "query_embedding": [0.0, 1.0]}
    for mode in ("sparse", "text_search"):
        assert asked(places, mode, query_str="south").ids == ["south"]
    for mode in ("hybrid", "semantic_hybrid"):
        assert set(asked(places, mode, 2, **both).ids) == {"south", "east"}
        assert asked(places, mode, 1, alpha=1.0, **both).ids == ["east"]
        assert asked(places, mode, 1, alpha=0.0, **both).ids == ["south"]
        assert len(asked(places, mode, 1, hybrid_top_k=3, **both).ids) == 3
    near = {"query_embedding": [1.0, 0.1]}
    assert asked(places, "mmr", 2, mmr_threshold=1.0, **near).ids == ["north", "north east"]
    assert asked(places, "mmr", 2, mmr_threshold=0.1, **near).ids == ["north", "south"]
    few = {"mmr_prefetch_k": 3, "mmr_threshold": 0.1}
    assert asked(places, "mmr", 2, named=few, **near).ids == ["north", "east"]
    with pytest.raises(ValueError, match="svm"):
        asked(places, "svm", **near)


def test_ids_documents_and_nested_filters_choose_nodes(places):
    near = {"query_embedding": [1.0, 0.0]}
    assert asked(places, node_ids=["south", "unknown"], **near).ids == ["south"]
    assert len(asked(places, node_ids=[], doc_ids=[], **near).ids) == 4  # as an index asks
    assert places.get_nodes([]) == []
    assert asked(places, doc_ids=["None"], top_k=1, **near).ids == ["north"]
    nested = where(
        where(("length", ">", 4), ("length", "<", 6)), ("length", "==", 4), condition="or"
    )
    assert asked(places, filters=nested, **near).ids == ["north", "east", "south"]
    assert asked(places, filters=where(nested, condition="not"), **near).ids == ["north east"]
    assert [node.text for node in places.get_nodes(["east", "south"], nested)] == ["east", "south"]
    places.delete_nodes(["east"], where(("length", "==", 5)))
    places.delete_nodes(["east"], where(("length", "==", 4)))
    places.delete_nodes(["north"], nested)
    assert [node.text for node in places.get_nodes(filters=nested)] == ["south"]


@pytest.mark.parametrize(
    "wrong", [("a", "text_match", "x"), ("a", "in", "x"), ("a", ">", ["x"]), ("a", "any", 1)]
)
def test_a_filter_that_cannot_be_decided_is_an_error(places, wrong):
    with pytest.raises(ValueError, match="found"):
        places.get_nodes(filters=where(wrong))
    with pytest.raises(ValueError, match="found"):
        places.delete_nodes(filters=where(wrong))
    assert len(places.get_nodes()) == 4


def test_the_store_is_written_down_and_read_again(places):
    again = MnemicVectorStore.from_json(places.to_json())
    assert again.get_nodes() == places.get_nodes()
    assert (again.user_id, again.class_name()) == ("alice", "MnemicVectorStore")
    again.close()


def test_an_index_of_llama_index_stores_finds_and_deletes(store):
    embed_model = MockEmbedding(embed_dim=8)
    context = StorageContext.from_defaults(vector_store=store)
    index = VectorStoreIndex.from_documents(
        [Document(text="Tea at four", id_="tea"), Document(text="Rain at noon", id_="rain")],
        storage_context=context,
        embed_model=embed_model,
    )
    index.insert(Document(text="Snow", id_="snow"))
    index.delete_ref_doc("rain")
    again = VectorStoreIndex.from_vector_store(store, embed_model=embed_model)
    found = again.as_retriever(similarity_top_k=5).retrieve("tea")
    assert sorted(each.node.text for each in found) == ["Snow", "Tea at four"]
    words = again.as_retriever(vector_store_query_mode="text_search").retrieve("tea")
    assert [each.node.ref_doc_id for each in words] == ["tea"]


def test_every_form_that_waits_is_awaited(store):
    names = ["async_add", "adelete", "adelete_nodes", "aclear", "aget_nodes", "aquery"]
    for name in names:
        assert name in vars(MnemicVectorStore)
        assert inspect.iscoroutinefunction(getattr(MnemicVectorStore, name))

    async def steps():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await asyncio.sleep(0.001)
                beats += 1

        beating = asyncio.create_task(beat())
        before = threading.active_count()
        batches = [
            [TextNode(id_=f"{at} {n}", text="text", embedding=[1.0, n]) for n in range(20)]
            for at in range(50)
        ]
        await asyncio.gather(*(store.async_add(batch) for batch in batches))
        query = VectorStoreQuery([1.0, 0.0], 3)
        await asyncio.gather(*(store.aquery(query) for _ in range(100)))
        threads = threading.active_count() - before
        await store.adelete_nodes(["0 0", "0 1"])
        remaining = len(await store.aget_nodes())
        await store.adelete("None")
        beating.cancel()
        return beats, threads, remaining

    beats, threads, remaining = asyncio.run(steps())
    assert beats > 3
    assert threads < 30
    assert remaining == 998
    assert store.get_nodes() == []
    asyncio.run(store.aclear())


KEYS = {
    "number": [1, 2, 2.5, -3],
    "name": ["tea", "rain", "green tea", ""],
    "tags": [["a", "b"], ["b"], []],
    "doc_id": ["d1", "d2", "None"],
}
OPERATORS = {
    "number": ["==", "!=", ">", "<", ">=", "<=", "in", "nin", "is_empty"],
    "name": ["==", "!=", ">", "<=", "in", "nin", "contains", "text_match_insensitive", "is_empty"],
    "tags": ["any", "all", "contains", "is_empty", "=="],
    "doc_id": ["==", "!=", "in", "nin"],
}
TAGS = ["a", "b", "c"]
IS_ALIKE = "FilterCondition.NOT" in inspect.getsource(build_metadata_filter_fn)


def drawn_test(draw):
    key = draw.choice(list(KEYS))
    operator = draw.choice(OPERATORS[key])
    value = draw.choice(KEYS[key])
    if operator in {"in", "nin"}:
        kinds = [each for each in KEYS[key] if type(each) is type(value)]
        value = draw.choices(kinds, k=draw.randint(1, 3))
    elif operator in {"any", "all"}:
        value = draw.choices(TAGS, k=draw.randint(1, 2))
    elif operator == "contains" and key == "tags":
        value = draw.choice(TAGS)
    elif operator == "text_match_insensitive":
        value = value.upper()
    elif operator == "is_empty":
        value = None
    return key, operator, value


def drawn_filters(draw):
    tests = [drawn_test(draw) for _ in range(draw.randint(0, 3))]
    return where(*tests, condition=draw.choice(["and", "or", "not"]))


def drawn_node(draw):
    source = draw.choice(KEYS["doc_id"])
    relationships = {NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
    metadata = {
        key: draw.choice(KEYS[key]) for key in ("number", "name", "tags") if draw.random() < 0.8
    }
    return TextNode(
        id_=str(draw.randrange(40)),
        text=f"text {draw.randrange(9)}",
        embedding=[draw.gauss(0, 1) for _ in range(8)],
        metadata=metadata,
        relationships={} if source == "None" else relationships,
    )


@pytest.mark.skipif(not IS_ALIKE, reason="before 0.14.16 it decides NOT and empty lists otherwise")
@pytest.mark.parametrize("seed", range(4))
def test_answers_agree_with_llama_indexs_store_in_memory(store, seed):
    draw = random.Random(seed)  # noqa: S311 - the same each time
    theirs = SimpleVectorStore()
    for _ in range(250):
        kind = draw.random()
        if kind < 0.6:
            nodes = [drawn_node(draw) for _ in range(draw.randint(1, 5))]
            assert store.add(nodes) == theirs.add(nodes)
        elif kind < 0.65:
            document = draw.choice(KEYS["doc_id"])
            store.delete(document)
            theirs.delete(document)
        elif kind < 0.8:
            ids = draw.choice([None, [str(draw.randrange(40)) for _ in range(9)]])
            filters = where(drawn_test(draw), drawn_test(draw))
            store.delete_nodes(ids, filters)
            theirs.delete_nodes(ids, filters)
        elif kind < 0.81:
            store.clear()
            theirs.clear()
        mode = draw.choice(["default", "mmr"])
        query = VectorStoreQuery(
            [draw.gauss(0, 1) for _ in range(8)],
            draw.randint(1, 50),
            node_ids=draw.choice([None, None, [str(draw.randrange(40)) for _ in range(9)]]),
            filters=draw.choice([None, drawn_filters(draw)]),
            mode=VectorStoreQueryMode(mode),
        )
        named = {"mmr_prefetch_k": 1000, "mmr_threshold": draw.random()} if mode == "mmr" else {}
        mine, other = store.query(query, **named), theirs.query(query, **named)
        assert mine.ids == other.ids, query
        assert mine.similarities == pytest.approx(other.similarities, abs=1e-5)
        found = {node.node_id for node in store.get_nodes(filters=query.filters)}
        everything = VectorStoreQuery([1.0] * 8, 1000, filters=query.filters)
        assert found == set(theirs.query(everything).ids)


def test_the_block_remembers_by_meaning_what_left_the_conversation(tmp_path):
    with Memory(tmp_path / "memories.db") as memory:
        block = MnemicMemoryBlock(memory=memory, user_id="alice")
        said = [
            ChatMessage("I'm allergic to peanuts"),
            ChatMessage(" "),
            ChatMessage("Noted: the invoice is number 4711", role=MessageRole.ASSISTANT),
        ]
        asyncio.run(block.aput(said, session_id="monday"))
        entries = memory.list(user_id="alice")
        assert [(each.role, each.session_id) for each in reversed(entries)] == [
            ("user", "monday"),
            ("assistant", "monday"),
        ]
        foods = [ChatMessage("Which foods must I avoid?"), ChatMessage("")]
        assert "allergic to peanuts" in asyncio.run(block.aget(foods))
        assert asyncio.run(block.aget([])) == ""
        assert asyncio.run(block.aget()) == ""
        longest = [ChatMessage("Which foods? " * 10_000)]
        assert "allergic" in asyncio.run(block.aget(longest))


def test_the_block_serves_a_memory_of_llama_index(tmp_path):
    with Memory(tmp_path / "memories.db") as memory:
        block = MnemicMemoryBlock(memory=memory, user_id="alice")
        chat = LlamaMemory.from_defaults(
            session_id="s", token_limit=60, token_flush_size=20, memory_blocks=[block],
            chat_history_token_ratio=0.5, tokenizer_fn=str.split,
        )  # fmt: skip
        chat.put(ChatMessage("I'm allergic to peanuts"))
        for at in range(8):
            chat.put(ChatMessage(f"Sentence {at} of a talk about boats and the weather at sea"))
        chat.put(ChatMessage("Which foods must I avoid?"))
        prompt = "\n".join(message.content for message in chat.get())
        assert "allergic to peanuts" in prompt
        assert memory.count(user_id="alice") > 0
