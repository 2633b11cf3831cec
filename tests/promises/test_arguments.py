"""Whatever a caller passes by mistake is refused by name: no raw error, and nothing accepted.

Every public method, class and record is called with a wrong value for each of its parameters, one
at a time. Where the annotation forbids the value, a `MnemicError` must come; where it allows the
value, an answer or a `MnemicError`, whose traceback shows two frames of mnemic at most.
"""

import asyncio
import inspect
import io
import math
import types
import typing
from collections import abc
from importlib import import_module
from uuid import UUID

import pytest

import mnemic
from mnemic import model
from mnemic.context import ContextItemType, ContextWindow
from mnemic.contradictions import LanguageModelJudge, RuleJudge
from mnemic.errors import MnemicError
from mnemic.observability.events import Events, MemoryStoredEvent
from mnemic.records import NumberedEnum
from mnemic.reporting.tracebacks import CALLERS
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.frames import frames_of_mnemic

KEPT, OLDER = UUID(int=1), UUID(int=2)
STRANGE_TEXTS = ("", "\0", "\ud800", "x" * 20_000)


class NotComparable:
    """As an array, or pandas.NA: whether it is equal to anything has no answer."""

    def __eq__(self, _other):
        return self

    def __bool__(self):
        raise TypeError("ambiguous")

    __hash__ = object.__hash__


WRONG = (
    *(None, 5, -1, "x", object(), [], {}, math.nan, b"x", [None], {"x": object()}, True),
    *(
        *STRANGE_TEXTS,
        [STRANGE_TEXTS[2]],
        NotComparable(),
        2**70,
    ),
)
LONGEST_MESSAGE = 2000


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work in a folder of its own: a text may be taken for a path."""
    monkeypatch.chdir(tmp_path)


class Fresh:
    """A right value that is rebuilt for each call."""

    def __init__(self, make):
        self.make = make


GOOD = {
    "content": "text",
    "conversation_context": "text",
    "embedder": None,
    "entries": Fresh(lambda: [entry("new", agent_id="default")]),
    "entry": Fresh(lambda: entry("new", agent_id="default")),
    "entry_id": KEPT,
    "entry_ids": [KEPT],
    "filter": {"importance": {"gte": 0.1}},
    "from_": NOON,
    "from_id": KEPT,
    "id": KEPT,
    "ids": [KEPT],
    "kind": MemoryStoredEvent,
    "listener": print,
    "memories": ["text"],
    "memory_id": KEPT,
    "memory_ids": [KEPT],
    "path": ":memory:",
    "query": "text",
    "reason": "user_correction",
    "reference_id": KEPT,
    "source": Fresh(io.StringIO),
    "tag": "t",
    "target": Fresh(io.StringIO),
    "to": NOON,
    "to_id": OLDER,
    "type": "fact",
    "update": model.MemoryEntryUpdate(importance=0.5),
    "url": ":memory:",
    "user_id": None,
    "window": Fresh(lambda: ContextWindow(1000)),
}
STRUCTURED = model.MemoryQuery(query="text")


def allows(annotation, value):
    """Return whether a value is of an annotation's type, as a type checker would say."""
    if annotation in (typing.Any, inspect.Parameter.empty, object):
        return True
    if typing.get_origin(annotation) is not None:
        return allows_parts(typing.get_origin(annotation), typing.get_args(annotation), value)
    if annotation in (None, types.NoneType):
        return value is None
    if getattr(annotation, "_is_protocol", False):
        return False  # none of the wrong values has its methods
    if isinstance(annotation, type) and issubclass(annotation, NumberedEnum):
        return type(value) is int and value in list(annotation)
    kinds = int | float if annotation is float else annotation
    return isinstance(annotation, type) and isinstance(value, kinds)


def allows_parts(origin, parts, value):
    if origin in (typing.Union, types.UnionType):
        return any(allows(part, value) for part in parts)
    if origin is typing.Literal:
        return any(type(part) is type(value) and part == value for part in parts)
    if origin is abc.Callable:
        return callable(value)
    if origin in (abc.Mapping, dict):
        return isinstance(value, dict) and all(allows(parts[1], each) for each in value.values())
    is_container = isinstance(value, list | dict | str | bytes)
    return is_container and all(allows(parts[0], each) for each in value)


NAMES = {
    name: value
    for module in (
        "embed.base",
        "context",
        "context.redaction",
        "model",
        "recall",
        "retrieval",
        "repository",
        "repository.arguments",
        "repository.index_pool",
        "annotations",
        "crypto",
        "licensing",
        "observability.events",
    )
    for imported in [import_module(f"mnemic.{module}")]
    for name, value in ((name, getattr(imported, name)) for name in dir(imported))
    if not name.startswith("_")
}
"""What annotations may name without importing it."""


def annotations_of(function):
    """Return the annotation of each parameter that has a name; options one by one."""
    signed = function.__init__ if isinstance(function, type) else inspect.unwrap(function)
    hints = typing.get_type_hints(signed, localns=NAMES)
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, typing.Any)
        if typing.get_origin(hint) is typing.Unpack:
            (options,) = typing.get_args(hint)
            found |= typing.get_type_hints(options, localns=NAMES)
        elif parameter.kind is parameter.VAR_KEYWORD:
            found |= {
                "max_results": int,
                "mode": mnemic.model.RecallMode | str,
                "min_salience": float,
            }
        elif name not in ("self", "cls"):
            found[name] = hint
    return found


def arguments_of(function, good):
    """Return right values of the parameters that must be given, by position and by name."""
    positional, named = [], {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.default is not parameter.empty and name not in good:
            continue
        value = good.get(name, GOOD.get(name))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append((name, value))
        else:
            named[name] = value
    return positional, named


def shown(value):
    return f"{value!a:.30}"


def fresh(value):
    return value.make() if isinstance(value, Fresh) else value


def too_deep(error):
    """Return that a caller's error shows more than the verb and one frame of mnemic beside it."""
    count = len(frames_of_mnemic(error))
    is_deep = isinstance(error, CALLERS) and count > 2
    return f"shows {count} frames of mnemic for {error!r}" if is_deep else None


async def complaint(call, positional, named, is_allowed):
    """Return what is wrong with how a call took a value, or None."""
    try:
        answer = call(
            *map(fresh, positional), **{name: fresh(each) for name, each in named.items()}
        )
        if inspect.isawaitable(answer):
            answer = await answer
        if hasattr(answer, "close"):
            closing = answer.close()
            if inspect.isawaitable(closing):
                await closing
    except MnemicError as error:
        if len(str(error).encode()) > LONGEST_MESSAGE:
            return f"has a message of {len(str(error))} characters"
        return too_deep(error)
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"raised {error!r}"
    return None if is_allowed else "was accepted"


async def complaints(call, function, good=None):
    """Return what is wrong with how a function takes wrong values, each in place of a right one."""
    positional, named = arguments_of(function, good or {})
    found = []
    for name, hint in annotations_of(function).items():
        for wrong in WRONG:
            values = [wrong if each == name else value for each, value in positional]
            at = [each for each, _ in positional]
            others = dict(named) if name in at else {**named, name: wrong}
            told = await complaint(call, values, others, allows(hint, wrong))
            if told:
                found.append(f"{name}={shown(wrong)} {told}")
    return found


def methods_of(kind):
    names = [name for name in dir(kind) if not name.startswith("_") and hasattr(kind, name)]
    functions = {name: getattr(kind, name) for name in names}
    return [
        name
        for name, each in functions.items()
        if callable(each) and len(inspect.signature(each).parameters) > 0
    ]


def filled(memory):
    for entry_id, text in ((OLDER, "older text"), (KEPT, "text")):
        memory.add(text, id=entry_id)


DOORS = {
    "Memory": mnemic.Memory,
    "AsyncMemory": mnemic.AsyncMemory,
    "AsyncLongTermMemory": mnemic.compat.AsyncLongTermMemory,
}
SERVICES = {
    "AsyncMemoryRetriever": mnemic.compat.AsyncMemoryRetriever,
    "AsyncRetrievalService": mnemic.compat.AsyncRetrievalService,
}
QUERIES = {
    f"{kind}.{verb}": {"query": STRUCTURED}
    for kind in ("Memory", "AsyncMemory", "AsyncRetrievalService")
    for verb in ("retrieve", "retrieve_to_context")
} | {"AsyncMemoryRetriever.recall": {"user_id": None}}


@pytest.mark.parametrize(
    ("kind", "verb"), [(name, verb) for name, kind in DOORS.items() for verb in methods_of(kind)]
)
def test_a_door_refuses_every_wrong_argument_by_name(kind, verb, tmp_path):
    path = tmp_path / "a.db"

    async def scenario():
        with mnemic.Memory(path, embedder=WordEmbedder()) as memory:
            filled(memory)
            door = DOORS[kind](path, embedder=WordEmbedder())
            call = getattr(door, verb)
            good = QUERIES.get(f"{kind}.{verb}")
            if verb == "backup":
                good = {"path": Fresh(lambda: tmp_path / "copy.db")}
            found = await complaints(call, call, good)
            closing = door.close()
            if inspect.isawaitable(closing):
                await closing
            return found

    assert asyncio.run(scenario()) == []


@pytest.mark.parametrize(
    ("kind", "verb"), [(name, verb) for name, kind in SERVICES.items() for verb in methods_of(kind)]
)
def test_a_service_refuses_every_wrong_argument_by_name(kind, verb):
    async def scenario():
        with mnemic.Memory(":memory:", embedder=WordEmbedder()) as memory:
            filled(memory)
            call = getattr(SERVICES[kind](memory), verb)
            return await complaints(call, call, QUERIES.get(f"{kind}.{verb}"))

    assert asyncio.run(scenario()) == []


@pytest.mark.parametrize("verb", methods_of(ContextWindow))
def test_a_window_refuses_every_wrong_argument_by_name(verb):
    window = ContextWindow(1000)
    window.add("text", ContextItemType.USER_MESSAGE, id="kept")
    good = {"item_id": "kept", "priority": 5, "snapshot": window.snapshot(), "items": []}
    if verb in ("add", "try_add"):
        good["type"] = ContextItemType.USER_MESSAGE
    elif verb == "items":
        good = {}
    call = getattr(window, verb)
    assert asyncio.run(complaints(call, call, good)) == []


CLASSES = {
    "Memory": (mnemic.Memory, {"path": ":memory:", "embedder": None}),
    "AsyncMemory": (mnemic.AsyncMemory, {"path": ":memory:", "embedder": None}),
    "AsyncLongTermMemory": (
        mnemic.compat.AsyncLongTermMemory,
        {"url": ":memory:", "embedder": None},
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_door_that_is_opened_with_a_wrong_argument_says_so(name):
    kind, good = CLASSES[name]
    assert asyncio.run(complaints(lambda **named: kind(**{**good, **named}), kind, good)) == []


@pytest.mark.parametrize("kind", SERVICES)
def test_a_service_that_is_made_with_a_wrong_argument_says_so(kind):
    with mnemic.Memory(":memory:", embedder=None) as memory:
        found = asyncio.run(complaints(SERVICES[kind], SERVICES[kind], {"memory": memory}))
    assert found == []


RECORDS = {
    mnemic.compat.BuildContextOptions: {},
    mnemic.compat.ContextItem: {"content": "text", "type": ContextItemType.USER_MESSAGE},
    mnemic.model.KeywordFields: {},
    mnemic.MemoryEntry: {"id": KEPT, "created_at": NOON, "content": "text", "agent_id": "a"},
    mnemic.MemoryEntryUpdate: {},
    mnemic.MemoryFilter: {},
    mnemic.model.MemoryLink: {
        "from_id": KEPT,
        "to_id": OLDER,
        "type": mnemic.model.LinkType.RELATED,
        "strength": 0.5,
        "created_at": NOON,
    },
    mnemic.model.MemoryQuery: {"query": "text"},
    mnemic.model.MemoryRetrieverOptions: {},
    mnemic.Ranking: {},
    mnemic.model.RecallOptions: {"user_id": None},
    mnemic.model.Recency: {},
    mnemic.model.Salience: {},
    mnemic.model.SalienceOptions: {},
    mnemic.model.SalienceWeights: {},
    mnemic.model.SessionTerms: {},
    mnemic.Weights: {},
    model.Scope: {"agent_id": "a"},
    mnemic.compat.DocumentedLicenses: {"tier": mnemic.compat.LicenseTier.TEAMS},
}


LENIENT = {
    (mnemic.MemoryEntry, "updated_at"): None,
    (mnemic.MemoryEntryUpdate, "add_tags"): None,
    (mnemic.MemoryEntryUpdate, "remove_tags"): None,
    (mnemic.model.MemoryQuery, "exclude_ids"): None,
    (mnemic.model.MemoryQuery, "cache_ttl"): 5,
    (mnemic.model.MemoryRetrieverOptions, "access_interval"): 5,
}
"""What records put into its final form: None says nothing, a number is seconds."""


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_a_record_refuses_every_wrong_field_by_name(kind):
    hints = typing.get_type_hints(kind, localns=NAMES)
    found = []
    for name in kind.__struct_fields__:
        for wrong in WRONG:
            if (kind, name) in LENIENT and type(wrong) is type(LENIENT[kind, name]):
                continue
            named = {**RECORDS[kind], name: wrong}
            told = asyncio.run(complaint(kind, [], named, allows(hints[name], wrong)))
            if told:
                found.append(f"{name}={shown(wrong)} {told}")
    assert found == []


def test_events_refuse_what_is_no_kind_and_no_listener():
    call = Events().subscribe
    assert asyncio.run(complaints(call, call)) == []


class Model:
    model = "model"

    async def complete(self, _prompt, **_options):
        return "[]"


@pytest.mark.parametrize("kind", [RuleJudge, LanguageModelJudge])
def test_a_judge_refuses_what_is_no_text(kind):
    judge = kind(Model()) if kind is LanguageModelJudge else kind()
    good = {"statement": "text", "others": ["text"]}
    assert asyncio.run(complaints(judge.judge, judge.judge, good)) == []


CORE = {
    "fingerprint": (mnemic.model.fingerprint, ["text"]),
    "fingerprint_digests": (mnemic.model.fingerprint_digests, [["text"]]),
    "VectorMap": (mnemic.VectorMap, [2]),
    **{
        name: (getattr(mnemic.VectorMap, name), [Fresh(lambda: mnemic.VectorMap(2)), *given])
        for name, given in {
            "replace": [[1], [[1, 0]]],
            "upsert": [[1], [[1, 0]]],
            "remove": [[1]],
            "get": [[]],
            "select": [[1]],
            "prior": [[1], [0.5]],
            "search": [[1, 0]],
            "save": ["absent/map"],
        }.items()
    },
    "VectorMap.load": (mnemic.VectorMap.load, ["absent/map"]),
    "VectorMap.from_rows": (mnemic.VectorMap.from_rows, [[1], [[1, 0]], "cosine"]),
    "StringVectorMap": (mnemic.StringVectorMap, [2]),
    **{
        f"StringVectorMap.{name}": (
            getattr(mnemic.StringVectorMap, name),
            [Fresh(lambda: mnemic.StringVectorMap(2)), *given],
        )
        for name, given in {
            "replace": [["a"], [[1, 0]]],
            "upsert": [["a"], [[1, 0]]],
            "remove": [["a"]],
            "get": [[]],
            "search": [[1, 0]],
            "save": ["absent/map"],
        }.items()
    },
    "StringVectorMap.load": (mnemic.StringVectorMap.load, ["absent/map"]),
    "StringVectorMap.from_rows": (mnemic.StringVectorMap.from_rows, [["a"], [[1, 0]]]),
}


@pytest.mark.parametrize("name", CORE)
def test_the_core_refuses_every_wrong_argument_with_a_typed_error(name):
    call, given = CORE[name]
    for at, value in enumerate(given):
        for wrong in WRONG:
            if isinstance(value, Fresh):
                continue
            values = [fresh(each) for each in given]
            values[at] = wrong
            try:
                call(*values)
            except (MnemicError, TypeError):
                continue


KEYWORDS = ("k", "allow", "min_score", "weight", "prior", "combine", "threads")


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_search_of_vectors_refuses_every_wrong_keyword_with_a_typed_error(name):
    for vectors in (mnemic.VectorMap(2), mnemic.StringVectorMap(2)):
        for wrong in WRONG:
            try:
                vectors.search([1, 0], **{name: wrong})
            except (MnemicError, TypeError):
                continue
