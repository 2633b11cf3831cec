"""Habits from mem0, Chroma and faiss are answered by what to write here."""

import copy
import doctest
import inspect
import json
import pickle
import pydoc
import re
import subprocess
import sys
from unittest import mock

import numpy as np
import pytest

import mnemic
from mnemic import (
    AsyncMemory,
    CachedEmbedder,
    Encryption,
    HttpEmbedder,
    MasterKey,
    Memory,
    MiniLmEmbedder,
    StringVectorMap,
    VectorMap,
    as_embedder,
)
from mnemic.compat import (
    AsyncLongTermMemory,
    ContextWindow,
    CorpusExpander,
    LanguageModelExpander,
    LanguageModelSuggester,
    LongTermMemory,
    MemoryRetriever,
    RetrievalService,
    SynonymExpander,
)
from mnemic.errors import (
    ArgumentMismatchError,
    InvalidArgumentError,
    MissingAttributeError,
    MnemicError,
    UnsupportedUseError,
)
from mnemic.hyde import HydeEngine, TurnMemory
from mnemic.llm import HttpLanguageModel
from mnemic.policy import CircuitBreaker, EstimatedTokens, RetrievalPolicy, TokenizerTokens
from mnemic.reporting import habits
from mnemic.vectors import IndexPool
from mnemic_files import MemoryDirectory, MemoryFiles
from tests.support.entries import entry

USER = {"user_id": "alice"}


@pytest.fixture(scope="module")
def memory():
    with Memory(":memory:", embedder=None) as opened:
        opened.add_many(["Likes green tea", "Bought a tea pot"], **USER)
        yield opened


@pytest.fixture
def results(memory):
    return memory.search("tea", **USER)


TABLES = {
    "hit": (habits.HIT, mnemic.SearchHit),
    "memory": (habits.MEMORY, Memory),
    "map": (habits.VECTOR_MAP, VectorMap),
    "embedder": (habits.EMBEDDER, HttpEmbedder),
}
NAMES = [
    (kind, name)
    for kind, (table, _) in TABLES.items()
    for name in table
    if name not in {habits.OTHERWISE, "open"}  # which an awaited memory has, to refuse it
]


def things(kind, memory):
    """Return what answers the names of a table."""
    if kind == "hit":
        return memory.search("tea", **USER)[:1]
    if kind == "memory":
        return memory, memory.scoped(**USER), memory.aio, memory.aio.scoped(**USER)
    own = as_embedder(lambda texts: np.ones((len(texts), 3)), model="own", dimensions=3)
    embedders = MiniLmEmbedder(), HttpEmbedder("m", base_url="http://[::1]:1"), own
    return maps() if kind == "map" else embedders


def check_answer(thing, name, answer):
    with pytest.raises(MissingAttributeError) as missing:
        getattr(thing, name)
    assert str(missing.value).startswith(f"{type(thing).__name__} has no attribute {name!r}; ")
    assert str(missing.value).endswith(answer)
    assert not hasattr(thing, name)
    assert name not in dir(thing)


@pytest.mark.parametrize(("kind", "name"), NAMES)
def test_names_of_other_libraries_are_answered_by_those_that_are_here(memory, kind, name):
    table, own = TABLES[kind]
    for thing in things(kind, memory):
        check_answer(thing, name, table[name])
    for part in table[name].split(f"{kind}.")[1:]:
        assert hasattr(own, re.match(r"\w+", part)[0])


@pytest.mark.parametrize(
    ("kind", "name", "answer"),
    [
        ("hit", "text", "hit.content"),
        ("hit", "payload", "hit.metadata"),
        ("hit", "contnt", "did you mean 'content'?"),
        ("memory", "remember", "memory.add(content)"),
        ("memory", "upsert", "memory.add_many(memories, on_conflict='replace')"),
        ("memory", "similarity_search", "memory.search(query, limit=…)"),
        ("memory", "get_all", "memory.list(), which gives a page of memories"),
        ("memory", "delete_user", "memory.delete_all(user_id=…)"),
        ("memory", "serach", "did you mean 'search'?"),
        ("memory", "zqnothing", "help(Memory) has all"),
        ("map", "ntotal", "len(map)"),
        ("map", "serch", "did you mean 'search'?"),
        ("embedder", "encode", "embedder.embed(texts)"),
        ("embedder", "dimension", "embedder.dimensions"),
    ],
)
def test_some_names_have_these_answers(memory, kind, name, answer):
    for thing in things(kind, memory):
        check_answer(thing, name, answer)


KEYS = [
    ("content", "write hit.content"),
    ("score", "write hit.score"),
    ("text", "the text is hit.content"),
    ("position", "write hit.entry.position"),
    ("other", "such as hit.content, and hit.to_dict() is a dict"),
    (0, "such as hit.content, and hit.to_dict() is a dict"),
]


@pytest.mark.parametrize(("key", "answer"), KEYS)
def test_a_hit_answers_keys(results, key, answer):
    with pytest.raises(UnsupportedUseError, match=r"^SearchHit has no item for ") as refused:
        results[0][key]
    assert str(refused.value).endswith(answer)


def test_a_memory_answers_keys(memory):
    with pytest.raises(UnsupportedUseError, match=r"'content'; write memory\.content$"):
        memory.list(**USER)[0]["content"]
    with pytest.raises(UnsupportedUseError, match="'memory'; its fields are attributes"):
        memory.list(**USER)[0]["memory"]


RESULTS = [
    ("results", r"results[0].content"),
    ("documents", "[hit.content for hit in results]"),
    ("ids", "[hit.id for hit in results]"),
    ("distances", "[hit.score for hit in results]"),
    ("metadatas", "[hit.metadata for hit in results]"),
]


@pytest.mark.parametrize(("name", "answer"), RESULTS)
def test_results_answer_keys_and_names(memory, results, name, answer):
    for found in (
        results,
        memory.recall("", mode="recent", **USER),
        memory.list(**USER),
        results[:1],
    ):
        with pytest.raises(UnsupportedUseError) as refused:
            found[name]
        assert str(refused.value).endswith(answer)
        with pytest.raises(MissingAttributeError) as missing:
            getattr(found, name)
        assert str(missing.value).endswith(answer)


def test_results_have_numbers_and_slices_alone(memory, results):
    for found in (results, memory.list(**USER)):
        with pytest.raises(UnsupportedUseError, match=r"has no item for 1.5; .*results\[0\]$"):
            found[1.5]
        with pytest.raises(IndexError):
            found[7]
        assert len(found[0:9]) == 2
        assert found[np.int64(1)] == found[1]


@pytest.mark.parametrize("name", ["from_config", "connect", "load", "from_texts"])
@pytest.mark.parametrize("kind", [Memory, AsyncMemory, LongTermMemory])
def test_a_class_answers_how_other_libraries_open_one(kind, name):
    with pytest.raises(MissingAttributeError, match=r"; write Memory\(path\)$"):
        getattr(kind, name)
    assert not hasattr(kind, name)
    with pytest.raises(AttributeError) as missing:
        kind.__wrapped__  # noqa: B018 - the attribute is the point
    assert not isinstance(missing.value, MnemicError)


def test_every_result_says_what_it_has_in_place_of_an_unknown_name(memory):
    results = (
        (memory.context("tea", **USER), "it is a text itself"),
        (memory.add_many(["x"], **USER), "it is a list of memories"),
        (memory.stats(**USER), r"print\(stats.to_dict\(\)\) shows its fields"),
        (memory.search("tea", **USER), r"results are a sequence of hits.*results\[0\].content"),
        (memory.search("tea", **USER)[0], "its fields are attributes, such as hit.content"),
        (VectorMap(3), "it has upsert, search, get, remove, save and load"),
        (MiniLmEmbedder(), r"texts are embedded by embedder.embed\(texts\)"),
    )
    for result, answer in results:
        with pytest.raises(MissingAttributeError, match=f"has no attribute 'zqnothing'; {answer}"):
            result.zqnothing  # noqa: B018 - the attribute is the point


MADE = {
    CachedEmbedder: {"embedder": len, "model": "m"},
    MiniLmEmbedder: {},
    MasterKey: {"key": bytes(32)},
    IndexPool: {},
    CircuitBreaker: {},
    SynonymExpander: {"synonyms": {}},
    CorpusExpander: {},
    LanguageModelExpander: {"llm": len},
    LanguageModelSuggester: {"llm": len},
    TokenizerTokens: {"tokenizer": len},
}


@pytest.mark.parametrize("kind", MADE)
def test_what_a_program_makes_names_a_wrong_argument(kind):
    with pytest.raises(ArgumentMismatchError, match=f"{kind.__name__}.. has no argument 'colour'"):
        kind(**MADE[kind], colour=1)


USES = {
    "len": (len, "memory.count(user_id=…)"),
    "in": (lambda memory: "id" in memory, "memory.get(id)"),
    "for": (list, "memory.list(user_id=…)"),
    "[]": (lambda memory: memory["id"], "memory.get(id)"),
    "pickle": (pickle.dumps, "give the other process the path"),
    "deepcopy": (copy.deepcopy, "give the other process the path"),
}


@pytest.mark.parametrize("use", USES)
def test_a_memory_is_no_container(memory, use):
    call, answer = USES[use]
    for view in (memory, memory.scoped(**USER), memory.aio):
        with pytest.raises(UnsupportedUseError) as refused:
            call(view)
        assert str(refused.value).startswith(f"{type(view).__name__} ")
        assert answer in str(refused.value)
    assert memory
    assert Memory.__bool__(memory) is True


def maps():
    rows = np.eye(3)
    return VectorMap.from_rows([1, 2, 3], rows), StringVectorMap.from_rows(["a", "b", "c"], rows)


METRICS = [
    ("ip", "; write metric='inner_product'"),
    ("dot", "; write metric='inner_product'"),
    ("L2", "; metric='cosine' orders vectors of unit length as Euclidean distance does"),
    ("euclidean", "; metric='cosine' orders vectors of unit length as Euclidean distance does"),
    ("COS", "; write metric='cosine'"),
    ("hamming", '"hamming"'),
]


@pytest.mark.parametrize(("metric", "answer"), METRICS)
def test_a_metric_of_another_library_is_answered_by_the_one_here(metric, answer):
    allowed = "^metric must be 'cosine' or 'inner_product', found "
    for kind in (VectorMap, StringVectorMap):
        with pytest.raises(InvalidArgumentError, match=allowed) as refused:
            kind(3, metric=metric)
        assert str(refused.value).endswith(answer)


def test_the_order_of_euclidean_distance_is_that_of_the_cosine():
    rows = np.random.default_rng(7).normal(size=(50, 8))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = VectorMap.from_rows(np.arange(50), rows).search(rows[0], 50)
    distances = np.linalg.norm(rows - rows[0], axis=1)
    assert found.ids.tolist() == np.argsort(distances).tolist()


def test_the_number_of_hits_may_stand_behind_the_query():
    for made in maps():
        by_place, by_name = made.search([1, 0, 0], 2), made.search([1, 0, 0], k=2)
        assert by_place.ids.tolist() == by_name.ids.tolist()
        assert len(by_place.ids) == 2
        with pytest.raises(TypeError, match="positional"):
            made.search([1, 0, 0], 2, [1])


@pytest.mark.parametrize("call", ["search", "count", "range_search"])
@pytest.mark.parametrize(
    ("name", "meant"), [("filter", "allow"), ("where", "allow"), ("wieght", "weight")]
)
def test_a_vector_map_suggests_the_argument_that_was_meant(call, name, meant):
    needed = {} if call == "search" else {"min_score": 0.0}
    for made in maps():
        with pytest.raises(ArgumentMismatchError) as refused:
            getattr(made, call)([1, 0, 0], **needed, **{name: [1]})
        message = (
            f"{type(made).__name__}.{call}() has no argument {name!r}; did you mean {meant!r}?"
        )
        assert str(refused.value) == message


@pytest.mark.parametrize("kind", [VectorMap, StringVectorMap])
@pytest.mark.parametrize(
    ("given", "answer"),
    [
        ({"dimension": 3}, "has no argument 'dimension'; did you mean 'dim'?"),
        ({"d": 3, "metric": "cosine"}, "has no argument 'd'; did you mean 'dim'?"),
        ({"dim": 3, "metrc": "cosine"}, "has no argument 'metrc'; did you mean 'metric'?"),
        ({}, "missing a required argument: 'dim'"),
    ],
)
def test_a_vector_map_is_made_by_the_names_that_it_has(kind, given, answer):
    with pytest.raises(ArgumentMismatchError) as refused:
        kind(**given)
    assert str(refused.value).startswith(f"{kind.__name__}()")
    assert str(refused.value).endswith(answer)


@pytest.mark.parametrize("name", ["top_k", "n_results", "limit"])
def test_a_vector_map_calls_the_number_of_hits_k(name):
    for made in maps():
        with pytest.raises(ArgumentMismatchError, match="did you mean 'k'"):
            made.search([1, 0, 0], **{name: 1})


def test_wrong_vectors_are_described_in_plain_words():
    for made in maps():
        with pytest.raises(MnemicError) as refused:
            made.search([1, 0])
        assert str(refused.value) == "found 2 components in the query; this map holds vectors of 3"
        with pytest.raises(MnemicError) as refused:
            made.search([1, 0, np.nan])
        assert str(refused.value).startswith("row 0 of the query holds NaN or infinity; ")


def test_hits_and_memories_have_a_dict_for_json_and_a_pickle(memory, results):
    with pytest.raises(TypeError, match="SearchHit is not JSON serializable"):  # json's own
        json.dumps(results[0])
    assert json.loads(json.dumps(results[0].to_dict()))["entry"]["content"] == "Likes green tea"
    assert json.loads(json.dumps(list(results), default=lambda each: each.to_dict()))[1]["score"]
    stored = memory.add_many(["x", "y"], **USER)
    assert [each["content"] for each in json.loads(json.dumps(stored.to_dict()))["memories"]] == [
        "x",
        "y",
    ]
    turn = TurnMemory(entry(), 0.5)
    for record in (results, results[0], results[0].entry, stored, turn):
        assert pickle.loads(pickle.dumps(record)) == record  # noqa: S301 - our own
        assert copy.copy(record) == copy.deepcopy(record) == record


def holders(memory, folder):
    """Yield one of each kind that holds a connection, a model, a key or a lock."""
    local = MiniLmEmbedder()
    yield from (memory, memory.scoped(**USER), memory.aio, memory.events, memory.index)
    yield from (local, CachedEmbedder(local), as_embedder(local), IndexPool())
    yield HttpEmbedder("m", base_url="http://[::1]:1", api_key="secret")
    yield HttpLanguageModel("m", base_url="http://[::1]:1", api_key="secret")
    yield from (MasterKey(bytes(32)), Encryption(bytes(32)))
    yield from (
        RetrievalPolicy(memory),
        CircuitBreaker(),
        HydeEngine(Memory(":memory:"), local, len),
    )
    yield from (RetrievalService(memory), MemoryRetriever(memory), ContextWindow(100))
    yield MemoryFiles(repo=folder)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy])
def test_what_stays_in_its_process_says_what_to_do_in_the_other_one(memory, tmp_path, copied):
    for holder in holders(memory, tmp_path):
        with pytest.raises(UnsupportedUseError, match=r"pickled or copied.*(open|make)") as refused:
            copied(holder)
        assert "secret" not in str(refused.value)


def test_what_holds_none_of_these_is_pickled(tmp_path):
    for made in (CorpusExpander(), EstimatedTokens(), MemoryDirectory(tmp_path, "repo")):
        assert type(pickle.loads(pickle.dumps(made))) is type(made)  # noqa: S301 - our own


def test_a_shallow_copy_of_a_memory_is_another_view_of_it(memory):
    other = copy.copy(memory)
    assert type(other) is Memory
    assert other.count(**USER) == memory.count(**USER)


PROBES = ["_repr_html_", "_ipython_canary_method_should_not_exist_", "__wrapped__", "__array__"]


def test_probes_for_protocols_get_the_answer_of_python(memory, results):
    for thing in (memory, results[0], results, MiniLmEmbedder(), *maps()):
        inspect.getmembers(thing)
        assert isinstance(doctest.DocTestFinder().find(type(thing), "thing"), list)
        for probe in PROBES:
            if probe not in dir(thing):
                with pytest.raises(AttributeError) as missing:
                    getattr(thing, probe)
                assert not isinstance(missing.value, MnemicError)
    assert np.array([results[0], results[1]], dtype=object).shape == (2,)


@pytest.mark.parametrize("kind", [Memory, AsyncMemory, AsyncLongTermMemory, mnemic.SearchHit])
def test_a_mock_and_the_help_of_a_class_have_no_habits(kind):
    made = mock.create_autospec(kind, instance=True)
    for name in ("remember", "similarity_search", "page_content"):
        with pytest.raises(AttributeError):
            getattr(made, name)
        assert name not in pydoc.plain(pydoc.render_doc(kind))


def test_an_error_inside_a_property_is_not_hidden():
    half_made = Memory.__new__(Memory)
    with pytest.raises(AttributeError, match="'_scope'"):
        _ = half_made.agent_id
    with pytest.raises(AttributeError):
        copy.copy(half_made).repository  # noqa: B018 - the property is the point


def test_python_adds_no_guess_of_its_own():
    program = (
        "from mnemic import Memory\n"
        "with Memory(':memory:', embedder=None) as memory:\n"
        "    memory.get_al\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert ended.stderr.endswith("no attribute 'get_al'; did you mean 'get_many'?\n")
