import asyncio
import inspect
import re
import subprocess
import sys

import pytest

import mnemic
from mnemic import (
    AsyncMemory,
    Memory,
    MemoryEntryUpdate,
    MemoryFilter,
    Ranking,
    Weights,
    as_embedder,
)
from mnemic.compat import (
    AsyncLongTermMemory,
    AsyncRetrievalService,
    BuildContextOptions,
    ContextWindow,
    MemoryRetriever,
)
from mnemic.errors import (
    ArgumentMismatchError,
    FilterError,
    InvalidArgumentError,
    InvalidEntryError,
    MnemicError,
)
from mnemic.model import MemoryQuery, RecallOptions
from mnemic.reporting.hints import ADVICE
from mnemic.reporting.near_names import nearest
from mnemic_files import RelatedFile


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None) as opened:
        yield opened


def message_of(call):
    with pytest.raises(TypeError) as caught:
        call()
    assert isinstance(caught.value, MnemicError)
    assert caught.value.__suppress_context__  # the message of Python's own error adds nothing
    return str(caught.value)


CALLS = {
    "a near name": (
        lambda memory: memory.search("x", user="a"),
        "Memory.search() has no argument 'user'; did you mean 'user_id'?",
    ),
    "a word of another library": (
        lambda memory: memory.search("x", top_k=3),
        "Memory.search() has no argument 'top_k'; did you mean 'limit'?",
    ),
    "a name that is given already is not suggested": (
        lambda memory: memory.count(filters={}, filter={}),
        "Memory.count() has no argument 'filter'; it takes user_id, session_id,",
    ),
    "a wrong name before the missing one": (
        lambda memory: memory.add(text="x"),
        "Memory.add() has no argument 'text'; did you mean 'content'?",
    ),
    "a missing argument": (
        lambda memory: memory.add(),
        "Memory.add(): missing a required argument: 'content'",
    ),
    "several that are missing": (
        lambda _: RelatedFile(),
        "RelatedFile(): missing required arguments: 'id', 'relationship'",
    ),
    "too many by position": (
        lambda memory: memory.search("x", "alice"),
        "Memory.search(): too many positional arguments; by position it takes query",
    ),
    "one twice": (
        lambda memory: memory.add("x", content="x"),
        "Memory.add(): multiple values for argument 'content'",
    ),
    "a view": (
        lambda memory: memory.scoped(user_id="a").count(filter={}),
        "ScopedMemory.count() has no argument 'filter'; did you mean 'filters'?",
    ),
    "making a view": (
        lambda memory: memory.scoped(user="a"),
        "Memory.scoped() has no argument 'user'; did you mean 'user_id'?",
    ),
    "options of opening": (
        lambda _: Memory(":memory:", embeder=None),
        "Memory() has no argument 'embeder'; did you mean 'embedder'?",
    ),
    "no path": (lambda _: Memory(), "Memory(): missing a required argument: 'path'"),
    "options of the coroutine door": (
        lambda _: AsyncMemory(":memory:", log_contents=True),
        "AsyncMemory() has no argument 'log_contents'; did you mean 'log_content'?",
    ),
    "options of the documented door": (
        lambda _: AsyncLongTermMemory(":memory:", agent="a"),
        "AsyncLongTermMemory() has no argument 'agent'; did you mean 'agent_id'?",
    ),
    "fields of a text that is retrieved": (
        lambda memory: memory.retrieve("x", filter={}),
        "Memory.retrieve() has no argument 'filter'; did you mean 'filters'?",
    ),
    "the plain door of a service": (
        lambda memory: MemoryRetriever(memory).recall("x", user="a"),
        "MemoryRetriever.recall() has no argument 'user'; did you mean 'user_id'?",
    ),
    "options of a service": (
        lambda memory: AsyncRetrievalService(memory, cache=3),
        "AsyncRetrievalService() has no argument 'cache'; did you mean 'cache_size'?",
    ),
    "a context window": (
        lambda _: ContextWindow(max_token=3),
        "ContextWindow() has no argument 'max_token'; did you mean 'max_tokens'?",
    ),
    "a static method": (
        lambda _: Memory.model_of(file="a.db"),
        "Memory.model_of() has no argument 'file'; did you mean 'path'?",
    ),
    "a function": (
        lambda _: as_embedder(len, modle="m"),
        "as_embedder() has no argument 'modle'; did you mean 'model'?",
    ),
    "a ranking": (
        lambda _: Ranking(weigths=Weights()),
        "Ranking() has no argument 'weigths'; did you mean 'weights'?",
    ),
    "weights": (
        lambda _: Weights(relevence=1.0),
        "Weights() has no argument 'relevence'; did you mean 'relevance'?",
    ),
    "a query": (
        lambda _: MemoryQuery(filter={}),
        "MemoryQuery() has no argument 'filter'; did you mean 'filters'?",
    ),
    "a query by its short form": (
        lambda _: MemoryQuery.semantic("x", max_results=3),
        "MemoryQuery.semantic() has no argument 'max_results'; did you mean 'limit'?",
    ),
    "a filter": (
        lambda _: MemoryFilter(tag="x"),
        "MemoryFilter() has no argument 'tag'; did you mean 'tags'?",
    ),
    "an update": (
        lambda _: MemoryEntryUpdate(contents="x"),
        "MemoryEntryUpdate() has no argument 'contents'; did you mean 'content'?",
    ),
    "options of recall": (
        lambda _: RecallOptions(limit=3),
        "RecallOptions(): missing a required argument: 'user_id'",
    ),
    "the second name of a limit": (
        lambda _: BuildContextOptions(limt=3),
        "BuildContextOptions() has no argument 'limt'; did you mean 'limit'?",
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_names_the_public_method_and_the_near_argument(memory, name):
    call, wanted = CALLS[name]
    found = message_of(lambda: call(memory))
    assert found == wanted if wanted.endswith(("?", "'", "query")) else wanted in found


def test_a_type_error_inside_the_call_stays_as_it_is(memory):
    def embed(texts):
        return len(texts, texts)

    with Memory(":memory:", embedder=embed, embedding_model="broken") as broken:
        with pytest.raises(MnemicError) as caught:
            broken.add("x")
        assert not isinstance(caught.value, ArgumentMismatchError)

    class Counter:
        def count(self, text, /):
            del text
            raise TypeError("of the counter")

    memory.add("x")
    with pytest.raises(TypeError, match=r"^of the counter$") as caught:
        memory.context("x", counter=Counter(), min_score=None)
    assert not isinstance(caught.value, ArgumentMismatchError)


@pytest.mark.parametrize("door", [Memory, AsyncMemory])
@pytest.mark.parametrize("name", ["add", "search", "export", "delete_many"])
def test_methods_keep_their_signature_and_kind(door, name):
    method = getattr(door, name)
    assert next(iter(inspect.signature(method).parameters)) == "self"
    assert inspect.iscoroutinefunction(method) is (door is AsyncMemory)
    assert method.__doc__


def test_a_call_that_fits_looks_at_no_signature():
    code = (
        "from mnemic import Memory; memory = Memory(':memory:', embedder=None); memory.add('x'); "
        "memory.search('x'); memory.retrieve('x'); import sys; "
        "assert 'difflib' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


FILTERS = {
    "field": ({"tag": "x"}, "did you mean 'tags'?"),
    "operator": ({"importance": {"gteq": 1}}, "did you mean 'gte'?"),
    "a word of another language": ({"category": {"$startswith": "x"}}, "did you mean 'prefix'?"),
    "below metadata": ({"metadata": {"key": {"$not_in": [1]}}}, "did you mean 'nin'?"),
    "the case of a junction": ({"or": []}, "did you mean 'OR'?"),
}


@pytest.mark.parametrize("name", FILTERS)
def test_filters_suggest_fields_and_operators(memory, name):
    filters, wanted = FILTERS[name]
    with pytest.raises(FilterError) as caught:
        memory.search("x", filters=filters)
    assert str(caught.value).endswith(wanted)


def test_a_filter_far_from_any_field_suggests_none(memory):
    with pytest.raises(FilterError) as caught:
        memory.search("x", filters={"zzzz": 1})
    assert "did you mean" not in str(caught.value)


def test_keys_of_memories_are_suggested(memory):
    with pytest.raises(InvalidEntryError, match=r"\['user'\]; did you mean 'user_id'\? The fields"):
        memory.add_many([{"content": "x", "user": "a"}])
    with pytest.raises(InvalidEntryError, match=r"\['text'\]; did you mean 'content'\?"):
        memory.add_many([{"text": "x"}])


def test_names_of_weights_are_suggested(memory):
    with pytest.raises(InvalidArgumentError, match=r"'recencyy', only .*; did you mean 'recency'"):
        memory.search("x", ranking={"recencyy": 1.0})


def test_a_long_name_is_not_quoted(memory):
    name = "words of a memory " * 5
    with pytest.raises(ArgumentMismatchError) as caught:
        memory.search("x", **{name: 1})
    assert "words of a memory" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("USER_ID", "user_id"),
        ("usr", "user_id"),
        ("agent_id", None),
        ("limits", "limit"),
        ("zzz", None),
        (3, None),
        ("", None),
    ],
)
def test_near_names(name, near):
    assert nearest(name, ["user_id", "limit"]) == near


@pytest.mark.parametrize(
    ("wrong", "known"),
    [
        ("user_id", "search_in"),
        ("collection", "encryption"),
        ("agent_id", "user_id"),
        ("agent_id", "entry_id"),
        ("max_tokens", "max_connections"),
        ("include_pinned", "include_deleted"),
        ("is_rate_limited", "exact_limit"),
    ],
)
def test_a_name_that_means_something_else_is_not_suggested(wrong, known):
    assert nearest(wrong, [known]) is None


ADVISED = {
    "user_id": "memory = Memory(path).scoped(user_id=…), or name it in each call",
    "session_id": "memory = Memory(path).scoped(session_id=…), or name it in each call",
    "project_id": "memory = Memory(path).scoped(project_id=…)",
    "collection": "agents of one file are apart: name one by agent_id",
    "name": "agents of one file are apart: name one by agent_id",
    "dimensions": "the embedder has the length of its vectors",
    "api_key": "embedder=HttpEmbedder(model, base_url=…, api_key=…)",
    "key": "give encryption=Encryption(key)",
    "config": "Memory(path, **config)",
    "db": "did you mean 'path'?",
    "url": "did you mean 'path'?",
    "persist_directory": "did you mean 'path'?",
    "model": "did you mean 'embedder'?",
    "embedding_function": "did you mean 'embedder'?",
    "readonly": "did you mean 'read_only'?",
}


@pytest.mark.parametrize("door", [Memory, AsyncMemory])
@pytest.mark.parametrize("name", ADVISED)
def test_what_other_libraries_give_when_they_open_is_told_where_it_goes(door, name):
    found = message_of(lambda: door(":memory:", **{name: "x"}))
    assert found.startswith(f"{door.__name__}() has no argument {name!r}; ")
    assert ADVISED[name] in found


def test_advice_names_calls_that_there_are_and_arguments_that_they_have_not():
    for call, sentences in ADVICE.items():
        kind, _, method = call.partition(".")
        known = getattr(mnemic, kind)
        shapes = [inspect.signature(getattr(known, method))] if method not in ("", "*") else []
        assert not {*sentences} & {name for shape in shapes for name in shape.parameters}
        assert all(sentence.format(name="x", method="add") for sentence in sentences.values())


def test_a_method_of_a_class_wants_an_open_memory():
    with pytest.raises(ArgumentMismatchError, match=r"add\(\) was called on a class; call it on"):
        Memory.add("a text")
    with pytest.raises(ArgumentMismatchError, match=r"search\(\) was called on a class; call it"):
        asyncio.run(AsyncMemory.search("a text", k=3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AsyncMemory(file="x"), "AsyncMemory() has no argument 'file'; did you"),
        (AsyncMemory, "AsyncMemory(): missing a required argument: 'path'"),
        (
            lambda: AsyncLongTermMemory(path="x"),
            "AsyncLongTermMemory() has no argument 'path'",
        ),
    ],
)
def test_opening_names_its_arguments(call, message):
    async def opened():
        call()

    with pytest.raises(ArgumentMismatchError, match=re.escape(message)):
        asyncio.run(opened())
