"""Documents, policies, filters, awaited forms and retrievers, also beside Haystack's own store."""

import asyncio
import inspect
import random
import threading
import time

import pytest
from haystack import Pipeline
from haystack.dataclasses import ByteStream, Document, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack_integrations.components.retrievers.mnemic import (
    MnemicEmbeddingRetriever,
    MnemicHybridRetriever,
)
from haystack_integrations.document_stores.mnemic import MnemicDocumentStore

from mnemic.errors import MnemicError

PLACES = {"north": [1.0, 0.0], "north east": [1.0, 1.0], "east": [0.0, 1.0], "south": [-1.0, 0.0]}


@pytest.fixture
def store(tmp_path):
    made = MnemicDocumentStore(tmp_path / "documents.db", "alice")
    yield made
    made.close()


@pytest.fixture
def places(store):
    store.write_documents(
        [
            Document(id=text, content=text, embedding=vector, meta={"length": len(text)})
            for text, vector in PLACES.items()
        ]
    )
    return store


def ids(documents):
    return [each.id for each in documents]


@pytest.mark.parametrize("content", ["text", None, "", " \n"])
def test_a_document_comes_back_with_all_its_fields(store, content):
    document = Document(
        id="any id \n",
        content=content,
        blob=ByteStream(b"\x00\xff", {"name": "blob"}, "image/png"),
        meta={"content": 1, "id": None, "eq": {"in": [1.0, {"$x": True}]}, "score": 3},
        embedding=[0.5, -0.25],
        sparse_embedding=SparseEmbedding([1, 5], [0.5, 0.25]),
    )
    store.write_documents([document])
    assert store.filter_documents() == [document]
    [found] = MnemicEmbeddingRetriever(store).run([0.5, -0.25])["documents"]
    assert found.score == pytest.approx(1)
    assert found.embedding is None
    assert found.content == content
    for field, value in {
        "id": "any id \n",
        "content": content,
        "blob.mime_type": "image/png",
        "blob.meta.name": "blob",
        "meta.content": 1,
        "meta.id": None,
        "meta.eq.in": [1.0, {"$x": True}],
        "meta.eq": {"in": [1, {"$x": True}]},
    }.items():
        for operator, chosen in [("==", value), ("in", [value])]:
            test = {"field": field, "operator": operator, "value": chosen}
            assert store.count_documents_by_filter(test) == 1, test
            assert store.count_documents_by_filter({"operator": "NOT", "conditions": [test]}) == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"field": "meta.n", "operator": "~", "value": 1},
        {"field": "meta.n", "operator": [], "value": 1},
        {"field": 3, "operator": "==", "value": 1},
        {"field": "meta.n", "operator": ">", "value": "text"},
        {"field": "meta.n", "operator": ">", "value": {}},
        {"field": "meta.n", "operator": "==", "value": object()},
        {"field": "meta.n", "operator": "in", "value": "text"},
        {"operator": "AND", "conditions": {}},
        {"operator": "XOR", "conditions": []},
        {"operator": "AND", "conditions": ["text"]},
        {"operator": "OR", "conditions": [{"field": "id", "operator": "==", "value": 1}] * 300},
        "text",
        ["text"],
    ],
)
def test_a_filter_that_cannot_be_understood_is_an_error_of_haystack(places, wrong):
    for call in (places.filter_documents, places.delete_by_filter):
        with pytest.raises(FilterError):
            call(wrong)
    assert places.count_documents() == 4


def test_a_filter_of_any_depth_is_an_answer_or_an_error(places):
    deep = {"field": "meta.length", "operator": "==", "value": 5}
    for _ in range(5000):
        deep = {"operator": "NOT", "conditions": [deep]}
    with pytest.raises(FilterError):
        places.filter_documents(deep)


def test_policies_say_what_becomes_of_stored_ids(store):
    first, second = Document(id="1", content="first"), Document(id="1", content="second")
    new = Document(id="2", content="new")
    assert store.write_documents([first]) == 1
    with pytest.raises(DuplicateDocumentError):
        store.write_documents([new, second])
    assert store.filter_documents() == [first]  # nothing of a call that fails
    assert store.write_documents([second, new, new], DuplicatePolicy.SKIP) == 1
    assert store.filter_documents() == [first, new]
    assert store.write_documents([second, new], DuplicatePolicy.OVERWRITE) == 2
    assert store.filter_documents() == [second, new]


def test_what_cannot_be_stored_stores_nothing(store):
    for wrong in (
        Document(id="1", content="text", meta={"when": object()}),
        Document(id="1", content="text", meta={"_haystack_document": 1}),
        Document(id="1", content="text", embedding=[0.0, 0.0]),
        Document(id="1", content="text", embedding=[1.0]),
    ):
        with pytest.raises((ValueError, MnemicError)):
            store.write_documents([Document(id="2", embedding=[1.0, 0.0]), wrong])
    with pytest.raises(ValueError, match="rename"):
        store.update_by_filter({}, {"_haystack_document": 1})
    assert store.count_documents() == 0


def test_thousands_of_documents_are_listed_in_the_order_of_writing(store):
    documents = [Document(id=str(at), content=f"text {at}") for at in range(2500)]
    store.write_documents(documents)
    assert store.filter_documents() == documents
    names = {"field": "id", "operator": "in", "value": ids(documents[300:900])}
    assert store.filter_documents(names) == documents[300:900]


def test_scores_are_cosines_and_the_nearest_is_first(places):
    found = MnemicEmbeddingRetriever(places, top_k=4).run([2.0, 0.0])["documents"]
    assert ids(found) == ["north", "north east", "east", "south"]
    assert [each.score for each in found] == pytest.approx([1, 0.5**0.5, 0, -1], abs=1e-6)
    assert MnemicEmbeddingRetriever(places).run([2.0, 0.0], top_k=0) == {"documents": []}


def test_the_hybrid_retriever_finds_by_words_and_meaning(places):
    hybrid = MnemicHybridRetriever(places, top_k=2)
    assert ids(hybrid.run("south", [0.0, 1.0])["documents"]) == ["south", "east"]
    assert ids(hybrid.run("south")["documents"]) == ["south"]
    assert ids(asyncio.run(hybrid.run_async("east", top_k=1))["documents"]) == ["east"]


def test_filters_of_a_retriever_are_replaced_or_merged(places):
    long = {"field": "meta.length", "operator": ">", "value": 4}
    south = {"field": "content", "operator": "!=", "value": "south"}
    for policy, expected in {"replace": ["north", "north east", "east"], "merge": None}.items():
        retriever = MnemicEmbeddingRetriever(places, long, filter_policy=policy)
        found = ids(retriever.run([1.0, 0.0], filters=south)["documents"])
        assert found == (expected or ["north", "north east"])


def test_a_pipeline_is_written_down_and_read_again(tmp_path):
    store = MnemicDocumentStore(str(tmp_path / "documents.db"), user_id="alice")
    store.write_documents([Document(id="north", content="north", embedding=[1.0, 0.0])])
    pipeline = Pipeline()
    pipeline.add_component("near", MnemicEmbeddingRetriever(store, top_k=3, filter_policy="merge"))
    pipeline.add_component("both", MnemicHybridRetriever(store))
    again = Pipeline.loads(pipeline.dumps())
    assert again.to_dict() == pipeline.to_dict()
    given = {"near": {"query_embedding": [1.0, 0.0]}, "both": {"query": "north"}}
    answers = again.run(given)
    assert {name: ids(each["documents"]) for name, each in answers.items()} == {
        "near": ["north"],
        "both": ["north"],
    }
    again.get_component("near").document_store.close()
    again.get_component("both").document_store.close()
    assert MnemicDocumentStore.from_dict(store.to_dict()).count_documents() == 1
    store.close()


def test_every_method_has_both_forms(store):
    awaited = [name for name in dir(store) if name.endswith("_async")]
    assert len(awaited) == 13
    for name in awaited:
        plain, other = getattr(store, name.removesuffix("_async")), getattr(store, name)
        assert inspect.iscoroutinefunction(other)
        assert not inspect.iscoroutinefunction(plain)
        assert inspect.signature(plain) == inspect.signature(other)


def test_awaited_calls_run_beside_each_other_and_block_nothing(store):
    async def steps():
        beats = 0

        async def beat():
            nonlocal beats
            while True:
                await asyncio.sleep(0.001)
                beats += 1

        beating = asyncio.create_task(beat())
        before = threading.active_count()
        batches = [[Document(content=f"{at} {n}") for n in range(20)] for at in range(50)]
        await asyncio.gather(*(store.write_documents_async(batch) for batch in batches))
        await asyncio.gather(*(store.filter_documents_async() for _ in range(20)))
        beating.cancel()
        return beats, threading.active_count() - before

    started = time.perf_counter()
    beats, threads = asyncio.run(steps())
    assert beats > 3, time.perf_counter() - started
    assert threads < 30
    assert store.count_documents() == 1000


KEYS = {
    "meta.number": [1, 2, 2.5, -3, None],
    "meta.name": ["tea", "Tea", "rain", "", None],
    "meta.day": ["2025-01-01T10:00:00", "2025-06-01T00:00:00", "2026-01-01T00:00:00"],
    "meta.place.city": ["Oslo", "Rome", None],
    "meta.list": [[1, 2], ["tea"], []],
    "content": ["text 1", "text 2", None],
    "id": ["1", "2", "3"],
}


def drawn_filter(draw, depth=3):
    if depth and draw.random() < 0.5:
        conditions = [drawn_filter(draw, depth - 1) for _ in range(draw.randint(0, 3))]
        return {"operator": draw.choice(["AND", "OR", "NOT"]), "conditions": conditions}
    field = draw.choice(list(KEYS))
    operator, value = draw.choice(["==", "!=", "in", "not in"]), draw.choice(KEYS[field])
    if operator.endswith("in"):
        value = draw.choices(KEYS[field], k=draw.randint(0, 3))
    elif field in {"meta.number", "meta.day"}:
        operator = draw.choice(["==", "!=", ">", ">=", "<", "<="])
    return {"field": field, "operator": operator, "value": value}


def drawn_document(draw):
    meta = {
        key: draw.choice(KEYS[f"meta.{key}"])
        for key in ("number", "name", "day", "list")
        if draw.random() < 0.8
    }
    if draw.random() < 0.8:
        meta["place"] = {"city": draw.choice(KEYS["meta.place.city"])}
    vector = [draw.randint(1, 9) / 8 for _ in range(4)]
    content = f"text {draw.randrange(9)}" if draw.random() < 0.9 else None
    return Document(id=str(draw.randrange(40)), content=content, meta=meta, embedding=vector)


@pytest.mark.parametrize("seed", range(4))
def test_answers_agree_with_haystacks_store_in_memory(store, seed):
    draw = random.Random(seed)  # noqa: S311 - the same each time
    theirs = InMemoryDocumentStore(embedding_similarity_function="cosine", shared=False)

    def both(call):
        answers = []
        for each in (store, theirs):
            try:
                answers.append(call(each))
            except (DuplicateDocumentError, FilterError) as error:
                answers.append(type(error))
        return answers

    def by_id(documents):
        return sorted(documents, key=lambda each: each.id)

    for _ in range(250):
        documents = [drawn_document(draw) for _ in range(draw.randint(1, 4))]
        documents = list({each.id: each for each in documents}.values())
        chosen, kind = drawn_filter(draw), draw.random()
        if kind < 0.5:
            policy = draw.choice([DuplicatePolicy.SKIP, DuplicatePolicy.OVERWRITE])
            mine, other = both(lambda each, d=documents, p=policy: each.write_documents(d, p))
        elif kind < 0.6:
            mine, other = both(lambda each, d=documents: each.delete_documents(ids(d)))
        elif kind < 0.7:
            meta = {"number": draw.randrange(5)}
            mine, other = both(lambda each, f=chosen, m=meta: each.update_by_filter(f, dict(m)))
        elif kind < 0.8:
            unlikely = {"operator": "AND", "conditions": [chosen, drawn_filter(draw)]}
            mine, other = both(lambda each, f=unlikely: each.delete_by_filter(f))
        else:
            vector = [draw.random() for _ in range(4)]
            mine, other = both(
                lambda each, v=vector, f=chosen: {
                    found.id: pytest.approx(found.score, abs=1e-5)
                    for found in (
                        each.retrieval(None, vector=v, filters=f, limit=50)
                        if each is store
                        else each.embedding_retrieval(v, f, 50)
                    )
                }
            )
            mine = {name: value.expected for name, value in mine.items()}
        assert mine == other
        mine, other = both(lambda each, f=chosen: by_id(each.filter_documents(f)))
        assert mine == other, chosen
    assert store.count_documents() > 5
