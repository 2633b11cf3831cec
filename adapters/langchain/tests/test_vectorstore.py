"""Documents, ids, filters and scores of the store; the retriever; the indexing API."""

import asyncio
import inspect
import math
import random
import threading
import time

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.indexing import InMemoryRecordManager, aindex, index
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_mnemic import MnemicRetriever, MnemicVectorStore

from mnemic import Memory, MemoryFilter
from mnemic.errors import FilterError, InvalidEntryError, MnemicError

PLACES = {"north": [1.0, 0.0], "north east": [1.0, 1.0], "east": [0.0, 1.0], "south": [-1.0, 0.0]}


class Places(Embeddings):
    """Embeds names of directions, and counts the calls of each form."""

    model = "places"

    def __init__(self):
        self.plain = self.awaited = 0

    def embed_documents(self, texts):
        self.plain += 1
        return [PLACES.get(text, [1.0, 1.0]) for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts):
        self.awaited += 1
        await asyncio.sleep(0)
        return [PLACES.get(text, [1.0, 1.0]) for text in texts]

    async def aembed_query(self, text):
        return (await self.aembed_documents([text]))[0]


@pytest.fixture
def store(tmp_path):
    made = MnemicVectorStore(Places(), tmp_path / "documents.db")
    yield made
    made.close()


def texts(documents):
    return [each.page_content for each in documents]


def test_scores_are_cosines_and_the_nearest_is_first(store):
    store.add_texts(list(PLACES))
    scored = store.similarity_search_with_score("north", k=4)
    assert texts(each for each, _ in scored) == ["north", "north east", "east", "south"]
    assert [score for _, score in scored] == pytest.approx([1, math.sqrt(0.5), 0, -1], abs=1e-6)
    relevant = store.similarity_search_with_relevance_scores("north", k=4)
    assert [score for _, score in relevant] == pytest.approx([1, math.sqrt(0.5), 0, 0], abs=1e-6)
    above = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.5}
    )
    assert texts(above.invoke("north")) == ["north", "north east"]
    assert texts(store.similarity_search_by_vector([0.0, 3.0], k=1)) == ["east"]


def test_unlike_documents_are_chosen_among_the_nearest(store):
    store.add_texts(["north", "north", "north east", "south"])
    assert texts(store.max_marginal_relevance_search("north", k=2, lambda_mult=1)) == ["north"] * 2
    unlike = store.max_marginal_relevance_search("north", k=2, fetch_k=3, lambda_mult=0.1)
    assert texts(unlike) == ["north", "north east"]
    awaited = store.amax_marginal_relevance_search("north", k=2, fetch_k=3, lambda_mult=0.1)
    assert asyncio.run(awaited) == unlike
    assert store.max_marginal_relevance_search("north", k=0) == []
    assert texts(store.max_marginal_relevance_search("north", k=9, filter={"no": 1})) == []


def test_every_text_without_an_id_gets_one(store):
    first, second = store.add_texts(["north", "north"], ids=["mine", None])
    assert first == "mine"
    assert second not in {"", "mine"}
    assert [each.id for each in store.get_by_ids([second, "unknown", "mine"])] == [second, "mine"]
    documents = [Document("east"), Document("south", id="s")]
    assert store.add_documents(documents)[1] == "s"


@pytest.mark.parametrize("named", [{"ids": ["1"]}, {"metadatas": [{}]}])
def test_lists_of_other_lengths_are_refused(store, named):
    with pytest.raises(ValueError, match="shorter"):
        store.add_texts(["north", "east"], **named)


def test_what_cannot_be_stored_stores_nothing(store):
    with pytest.raises(InvalidEntryError):
        store.add_texts(["north", "east"], [{}, {"when": object()}])
    assert store.similarity_search("north") == []


def test_an_empty_text_is_a_document_too(store):
    store.add_texts([""], [{"page": 1}], ids=["empty"])
    assert store.get_by_ids(["empty"]) == [Document("", metadata={"page": 1}, id="empty")]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"page": 1}, ["north"]),
        ({"page": {"$gte": 2}}, ["east", "north east"]),
        ({"page": {"gte": 2}, "lang": "en"}, ["north east"]),
        ({"lang": {"in": ["de", "en"]}}, ["east", "north", "north east"]),
        ({"place": {"city": "Oslo"}}, ["east"]),
        ({"none": None}, ["east", "north", "north east"]),
        ({}, ["east", "north", "north east"]),
        (None, ["east", "north", "north east"]),
        (MemoryFilter(content_contains="east"), ["east", "north east"]),
        (MemoryFilter(filters={"NOT": {"metadata.page": 1}}), ["east", "north east"]),
    ],
)
def test_filters_choose_documents(store, conditions, expected):
    store.add_texts(
        ["north", "north east", "east"],
        [
            {"page": 1, "lang": "de"},
            {"page": 2, "lang": "en"},
            {"page": 3, "lang": "de", "place": {"city": "Oslo"}},
        ],
    )
    assert sorted(texts(store.similarity_search("north", k=9, filter=conditions))) == expected
    diverse = store.max_marginal_relevance_search("north", k=9, filter=conditions)
    assert sorted(texts(diverse)) == expected
    awaited = asyncio.run(store.asimilarity_search("north", k=9, filter=conditions))
    assert sorted(texts(awaited)) == expected


@pytest.mark.parametrize("wrong", [lambda _: True, "page", {"page": {"$near": 1}}])
def test_a_filter_that_cannot_be_understood_is_an_error(store, wrong):
    with pytest.raises(FilterError):
        store.similarity_search("north", filter=wrong)


def test_deletion_by_ids_leaves_others_and_without_any_nothing(store):
    store.add_texts(["north", "east"], ids=["1", "2"])
    assert store.delete([]) is True
    assert store.delete(["2", "unknown"]) is True
    assert texts(store.similarity_search("north")) == ["north"]
    assert asyncio.run(store.adelete()) is True
    assert store.similarity_search("north") == []


def test_stores_are_made_from_documents_and_kept_in_the_file(tmp_path):
    path = tmp_path / "documents.db"
    documents = [Document("north", metadata={"n": 1}, id="1"), Document("east")]
    MnemicVectorStore.from_documents(documents, Places(), path=path, user_id="alice").close()
    again = MnemicVectorStore(Places(), path, user_id="alice")
    assert again.get_by_ids(["1"]) == documents[:1]
    assert MnemicVectorStore(Places(), path).similarity_search("north") == []
    awaited = asyncio.run(
        MnemicVectorStore.afrom_texts(["south"], Places(), ids=["s"], path=tmp_path / "b.db")
    )
    assert texts(awaited.similarity_search("north")) == ["south"]


def test_vectors_of_two_models_share_no_file(tmp_path):
    MnemicVectorStore.from_texts(["north"], Places(), path=tmp_path / "a.db").close()
    other = DeterministicFakeEmbedding(size=2)
    with pytest.raises(MnemicError, match="embedding_model"):
        MnemicVectorStore(other, tmp_path / "a.db")  # it has no name
    with pytest.raises(MnemicError, match="'places'"):
        MnemicVectorStore(other, tmp_path / "a.db", embedding_model="fake")


def test_every_form_that_waits_is_awaited(store):
    """No default of LangChain's is left, which would take a thread for each call."""
    for name in (
        *("aadd_texts", "adelete", "aget_by_ids", "asimilarity_search"),
        *("asimilarity_search_with_score", "asimilarity_search_by_vector"),
        *("amax_marginal_relevance_search", "amax_marginal_relevance_search_by_vector"),
    ):
        assert getattr(MnemicVectorStore, name) is not getattr(VectorStore, name)
        assert inspect.iscoroutinefunction(getattr(MnemicVectorStore, name))

    async def steps():
        await store.aadd_documents([Document("north"), Document("east")])
        return texts(await store.asimilarity_search("east", k=1))

    store.add_texts(["south"])  # the first vector of a file
    before = store.embeddings.plain
    assert asyncio.run(steps()) == ["east"]
    assert (store.embeddings.plain, store.embeddings.awaited) == (before, 2)


def test_awaited_calls_run_beside_each_other_and_block_nothing(store):
    async def steps():
        delays = []

        async def beat():
            while True:
                before = time.perf_counter()
                await asyncio.sleep(0.001)
                delays.append(time.perf_counter() - before)

        beating = asyncio.create_task(beat())
        before = threading.active_count()
        await asyncio.gather(*(store.aadd_texts(["north"] * 20) for _ in range(50)))
        await asyncio.gather(*(store.asimilarity_search("north") for _ in range(100)))
        beating.cancel()
        return len(delays), threading.active_count() - before

    beats, threads = asyncio.run(steps())
    assert beats > 3
    assert threads < 30
    assert store.memory.count() == 1000


def test_the_retriever_finds_by_words_and_meaning_without_an_embeddings_object(tmp_path):
    with Memory(tmp_path / "memories.db") as memory:
        memory.add("I'm allergic to peanuts", user_id="alice", metadata={"n": 1})
        memory.add("The invoice is number 4711", user_id="alice")
        memory.add("Bob likes peanuts", user_id="bob")
        retriever = MnemicRetriever(memory=memory, user_id="alice", k=1)
        [document] = retriever.invoke("Which foods must she avoid?")
        assert (document.page_content, document.metadata) == ("I'm allergic to peanuts", {"n": 1})
        assert memory.get(document.id, user_id="alice").content == document.page_content
        assert texts(asyncio.run(retriever.ainvoke("4711"))) == ["The invoice is number 4711"]
        assert len(retriever.invoke("peanuts", k=9)) == 2
        with pytest.raises(MnemicError):
            retriever.invoke("peanuts", user_id="bob")
        each = MnemicRetriever(memory=memory, options={"min_score": "auto"})
        assert texts(each.invoke("Who likes peanuts?", user_id="bob")) == ["Bob likes peanuts"]
        assert each.invoke("peanuts") == []


def test_the_retriever_finds_documents_of_a_store(store):
    store.add_texts(["north", "east"], [{"n": 1}, {"n": 2}], ids=["1", "2"])
    retriever = MnemicRetriever(memory=store.memory, options={"search_type": "keyword"})
    assert retriever.invoke("east") == store.get_by_ids(["2"])
    named = {"filters": {"metadata.n": 1}, "search_type": "semantic"}
    assert texts(retriever.invoke("east", **named)) == ["north"]


def test_the_indexing_api_adds_skips_and_cleans_up(store):
    records = InMemoryRecordManager(namespace="mnemic")
    records.create_schema()
    named = {"source_id_key": "source", "key_encoder": "sha256"}
    if "key_encoder" not in inspect.signature(index).parameters:  # before langchain-core 0.3.66
        del named["key_encoder"]
    first = [Document(text, metadata={"source": text}) for text in ("north", "east")]
    result = index(first, records, store, cleanup="incremental", **named)
    assert (result["num_added"], result["num_skipped"]) == (2, 0)
    result = index(first, records, store, cleanup="incremental", **named)
    assert (result["num_added"], result["num_skipped"]) == (0, 2)
    second = [Document("north east", metadata={"source": "north"}), first[1]]
    result = asyncio.run(aindex(second, records, store, cleanup="full", **named))
    assert (result["num_added"], result["num_deleted"], result["num_skipped"]) == (1, 1, 1)
    assert sorted(texts(store.similarity_search("north", k=9))) == ["east", "north east"]


@pytest.mark.parametrize("seed", range(3))
def test_answers_agree_with_langchains_store_in_memory(tmp_path, seed):
    embedding = DeterministicFakeEmbedding(size=8)
    ours = MnemicVectorStore(embedding, tmp_path / "ours.db", embedding_model="fake")
    theirs = InMemoryVectorStore(embedding)
    draw = random.Random(seed)  # noqa: S311 - the same each time
    for step in range(60):
        ids = [str(draw.randrange(30)) for _ in range(draw.randint(1, 4))]
        if draw.random() < 0.7:
            given = dict.fromkeys(ids)
            documents = [
                Document(f"{name} {step}", metadata={"n": step}, id=name) for name in given
            ]
            assert ours.add_documents(documents) == theirs.add_documents(documents)
        else:
            ours.delete(ids)
            theirs.delete(ids)
        query, k = str(draw.random()), draw.randint(1, 40)
        scored = [store.similarity_search_with_score(query, k) for store in (ours, theirs)]
        assert [each for each, _ in scored[0]] == [each for each, _ in scored[1]]
        assert [score for _, score in scored[0]] == pytest.approx(
            [score for _, score in scored[1]], abs=1e-5
        )
        diverse = [store.max_marginal_relevance_search(query, 5, 10) for store in (ours, theirs)]
        assert diverse[0] == diverse[1]
        assert ours.get_by_ids(ids[:1]) == theirs.get_by_ids(ids[:1])
    ours.close()
