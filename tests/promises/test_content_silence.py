"""Nothing that is told of a memory holds its content.

Every verb of every door is called: rightly, wrongly, with what fails, and on a damaged file. What
is told meanwhile (events, log records, metrics, warnings, errors with all they are chained to,
reprs) is searched for canaries: words that stand in contents, tags, metadata, speakers and queries.
Doors, verbs, parameters, events and services are found by looking, so that a new one is called
too, or fails here until it is.
"""

import asyncio
import gc
import inspect
import io
import itertools
import logging
import sys
import warnings
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType
from uuid import uuid4

import apsw
import msgspec
import pytest

import mnemic
from mnemic import (
    AsyncMemory,
    ContextWindow,
    LicenseTier,
    LongTermMemory,
    Memory,
    MemoryEntry,
    MemoryQuery,
    MemoryRetriever,
    RecallOptions,
    RetrievalService,
)
from mnemic.async_memory import AsyncScopedMemory
from mnemic.context import ContextItem, ContextSnapshot
from mnemic.contradictions import Judgement, LanguageModelJudge
from mnemic.licensing import DocumentedLicenses
from mnemic.memory import ScopedMemory
from mnemic.model import ExpandedQuery, MemoryEntryUpdate, MemoryFilter
from mnemic.observability import events, metrics, telemetry
from mnemic.retrieval import LanguageModelExpander, LanguageModelSuggester
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder

HIDDEN_WORD = "zqsecret"
"""In sensitive memories: told nowhere, and in no repr."""
TAIL = "zqtail"
"""Past the fiftieth character of contents and queries, and in fields: told nowhere."""
HEAD = "zqhead"
"""At the beginning of contents and queries: told only with `log_content=True`."""
WORD = "zqword"
"""Further words of contents: told only with `log_content=True`, where they expand a query."""
CANARIES = (HIDDEN_WORD, TAIL, HEAD, WORD)
SHOWN = (HEAD, WORD)

FILLER = "likes the long and winding way home from the harbour in"
CONTENT = f"{HEAD} content {FILLER} {WORD} winter"
QUERY = f"{HEAD} query {FILLER} {TAIL} summer"
HIDDEN = f"{HIDDEN_WORD} content {FILLER} {HIDDEN_WORD} autumn"


def fields(mark=TAIL):
    """Return what a memory carries beside its content, each with a canary."""
    return {
        "tags": [f"{mark} tag"],
        "metadata": {f"{mark} key": [f"{mark} value", {"inner": f"{mark} inner"}]},
        "speaker": f"{mark} speaker",
        "role": f"{mark} role",
        "category": f"{mark} category",
    }


class DeliberateError(Exception):
    """What a caller's own function raises; it quotes all it was given."""


def refuse(*given, **named):
    raise DeliberateError(repr((given, named)))


class Fallible(WordEmbedder):
    """An embedder that quotes what it is given, where it is to fail."""

    fails = False

    def embed(self, texts):
        if self.fails:
            raise DeliberateError(f"cannot embed {list(texts)}")
        return super().embed(texts)


# What is told


class Ear(logging.Handler):
    """Keeps all that is told while it listens."""

    def __init__(self):
        super().__init__(logging.DEBUG)
        self.told, self.events = [], set()

    def emit(self, record):
        kept = {name: repr(value) for name, value in vars(record).items()}
        chain = record.exc_info[1] if record.exc_info else None
        self.told += [record.getMessage(), repr(kept), self.format(record), *said_by(chain)]

    def hear(self, event):
        self.events.add(type(event))
        self.told += [repr(event), str(event), repr(msgspec.structs.asdict(event))]

    def measure(self, name):
        ear = self

        class Instrument:
            def record(self, value, attributes):
                ear.told.append(f"{name} {value} {attributes}")

            add = record

        return Instrument()

    def take(self):
        told, self.told = self.told, []
        return told


def said_by(error, seen=None):
    """Return all that an error says, and all errors that it is chained to or made of."""
    seen = set() if seen is None else seen
    if error is None or id(error) in seen:
        return []
    seen.add(id(error))
    said = [str(error), repr(error), repr(error.args), repr(vars(error))]
    said += getattr(error, "__notes__", [])
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        said += said_by(other, seen)
    return said


KINDS = {
    kind
    for kind in vars(events).values()
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct) and kind is not msgspec.Struct
}


@pytest.fixture
def ear(monkeypatch, tmp_path):
    """Hear events, log records of all loggers, measurements and warnings."""
    monkeypatch.chdir(tmp_path)  # paths that are wrong may name files all the same
    ear = Ear()

    class All(dict):
        def __missing__(self, name):
            self[name] = ear.measure(name)
            return self[name]

    instruments = metrics._Instruments(All(), All())
    monkeypatch.setattr(metrics._process, "instruments", lambda: instruments)
    root, level = logging.getLogger(), logging.getLogger().level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield ear
        ear.told += [str(one.message) for one in warned]
        assert not found_in(ear.told, HIDDEN_WORD)
    root.removeHandler(ear)
    root.setLevel(level)


def listen(ear, memory):
    for kind in KINDS:
        memory.events.subscribe(kind, ear.hear)
        memory.events.subscribe(kind, lambda event: refuse(event, CONTENT, HIDDEN))


def found_in(told, *canaries):
    return [text for text in told if any(canary in str(text).lower() for canary in canaries)]


# What is called


class World:
    """A memory, opened as a door, with one plain and one sensitive memory in it."""

    def __init__(self, memory, tmp_path, embedder):
        self.memory, self.tmp_path, self.embedder = memory, tmp_path, embedder
        self.plain = self.hidden = None
        self.numbers = itertools.count()

    def value_of(self, name, verb):
        """Return a right value for a parameter of this name, with canaries where it may have."""
        special = SPECIAL.get((verb, name))
        return (special or RIGHT[name])(self)

    def path(self):
        return str(self.tmp_path / f"{next(self.numbers)}.out")

    def entry(self, **changed):
        given = {"id": uuid4(), "agent_id": "aide", "content": CONTENT, "created_at": NOON}
        return MemoryEntry(**{**given, **fields(), **changed})

    def exported(self):
        target = io.StringIO()
        with Memory(":memory:", "aide", embedder=None) as other:
            other.add(f"{next(self.numbers)} {CONTENT}", **fields())
            other.export(target)
        target.seek(0)
        return target

    def snapshot(self):
        item = ContextItem(content=CONTENT, type="user_message", id="x", added_at=NOON)
        return ContextSnapshot(agent_id="default", max_tokens=999, items=(item,), taken_at=NOON)


def recalled(_):
    return RecallOptions(user_id=None, min_salience=0.0, with_total=True)


RIGHT = {
    "content": lambda _: CONTENT,
    "query": lambda _: QUERY,
    "conversation_context": lambda _: QUERY,
    "topic_filter": lambda _: QUERY,
    "memories": lambda world: [CONTENT, {"content": CONTENT, **fields()}, world.entry()],
    "entry": lambda world: world.entry(),
    "entries": lambda world: [world.entry(), world.entry()],
    "idempotency_keys": lambda world: [f"key-{next(world.numbers)}", None],
    "idempotency_key": lambda world: f"key-{next(world.numbers)}",
    "tags": lambda _: fields()["tags"],
    "tag": lambda _: fields()["tags"][0],
    "add_tags": lambda _: fields()["tags"],
    "remove_tags": lambda _: fields()["tags"],
    "metadata": lambda _: fields()["metadata"],
    "speaker": lambda _: fields()["speaker"],
    "role": lambda _: fields()["role"],
    "category": lambda _: fields()["category"],
    "filters": lambda _: {"speaker": fields()["speaker"], "tags": {"any": fields()["tags"]}},
    "filter": lambda _: MemoryFilter(content_contains=HEAD, tags=fields()["tags"]),
    "update": lambda _: MemoryEntryUpdate(content=CONTENT, metadata=fields()["metadata"]),
    "id": lambda world: world.plain,
    "entry_id": lambda world: world.plain,
    "memory_id": lambda world: world.plain,
    "reference_id": lambda world: world.plain,
    "from_id": lambda world: world.plain,
    "to_id": lambda world: world.hidden,
    "ids": lambda world: [world.plain, world.hidden],
    "entry_ids": lambda world: [world.plain, world.hidden],
    "memory_ids": lambda world: [world.plain, world.hidden],
    "exclude_ids": lambda _: [uuid4()],
    "supersedes": lambda world: world.plain,
    "message_id": lambda _: "message-1",
    "user_id": lambda _: None,
    "project_id": lambda _: None,
    "session_id": lambda _: None,
    "all_users": lambda _: False,
    "position": lambda _: 1,
    "created_at": lambda _: NOON,
    "expires_at": lambda _: NOON + timedelta(days=9999),
    "since": lambda _: NOON - timedelta(days=1),
    "until": lambda _: NOON + timedelta(days=9999),
    "from_": lambda _: NOON - timedelta(days=1),
    "to": lambda _: NOON + timedelta(days=9999),
    "type": lambda _: "fact",
    "importance": lambda _: 0.5,
    "sensitive": lambda _: False,
    "on_duplicate": lambda _: "keep",
    "on_embed_error": lambda _: "raise",
    "check": lambda _: "contradictions",
    "limit": lambda _: 5,
    "most": lambda _: 5,
    "max_tokens": lambda _: 500,
    "counter": lambda _: None,
    "include_sensitive": lambda _: True,
    "include_deleted": lambda _: True,
    "include_forgotten": lambda _: True,
    "include_archived": lambda _: True,
    "include_superseded": lambda _: True,
    "include_pinned": lambda _: False,
    "permanent": lambda _: False,
    "status": lambda _: "active",
    "cursor": lambda _: None,
    "direction": lambda _: "both",
    "types": lambda _: None,
    "link_types": lambda _: None,
    "depth": lambda _: 2,
    "strength": lambda _: 0.5,
    "search_type": lambda _: "hybrid",
    "weights": lambda _: None,
    "ranking": lambda _: None,
    "explain": lambda _: True,
    "mode": lambda _: "relevant",
    "min_salience": lambda _: 0.0,
    "min_similarity": lambda _: 0.0,
    "min_confidence": lambda _: 0.0,
    "half_open": lambda _: False,
    "strict": lambda _: True,
    "reason": lambda _: "repeated_access",
    "options": lambda _: None,
    "window": lambda _: ContextWindow(2000),
    "target": lambda world: world.path(),
    "path": lambda world: world.path(),
    "source": lambda world: world.exported(),
    "embeddings": lambda _: True,
    "overwrite": lambda _: False,
    "progress": lambda _: None,
    "repair": lambda _: False,
    "timeout": lambda _: 1.0,
    "seconds": lambda _: 1.0,
    "item": lambda _: CONTENT,
    "items": lambda _: [ContextItem(content=CONTENT, type="user_message")],
    "item_id": lambda _: "x",
    "priority": lambda _: 60,
    "strategy": lambda _: None,
    "target_percent": lambda _: 50,
    "snapshot": lambda world: world.snapshot(),
}
"""Right values by the parameter's name; a parameter without one fails the test."""

QUERIED = {
    "query": lambda _: MemoryQuery(
        query=QUERY, context_boost=QUERY, expand_query=True, filters={"speaker": {"ne": TAIL}}
    )
}
SPECIAL = {
    ("retrieve", "query"): QUERIED["query"],
    ("retrieve_to_context", "query"): QUERIED["query"],
    ("recall", "options"): recalled,
    ("update", "type"): lambda _: "fact",
    ("add", "type"): lambda _: "fact",
    ("add", "id"): lambda _: uuid4(),
    ("recall", "type"): lambda _: None,
    ("items", "type"): lambda _: None,
}
CONTEXT = {"type": lambda _: "user_message"}


class Shown:
    """Something whose repr and str quote."""

    def __repr__(self):
        return f"<{TAIL}>"


NAMES = {"user_id", "project_id", "session_id", "message_id", "item_id", "path", "target", "source"}
"""What names users, items and files may be told; content is not put there."""

WRONG = (
    lambda: f"{HEAD} wrong words",
    lambda: [f"{TAIL} wrong words", {f"{TAIL} key": f"{TAIL} value"}],
    lambda: {f"{TAIL} key": f"{TAIL} value", "AND": f"{TAIL} value"},
    lambda: f"{HEAD} control \x01 and half \ud800",
    Shown,
    lambda: b"zqtail bytes",
    lambda: int.from_bytes(TAIL.encode() * 20, "big"),
)


IDS = {"id", "entry_id", "memory_id", "reference_id"}
"""Parameters that the sensitive memory is given for too."""

WRONG_NAMES = (
    lambda: "wrong words",
    lambda: "control \x01 and half \ud800",
    lambda: [f"{TAIL} wrong words"],
    Shown,
)


ENDS = {"close", "aclose", "stop"}
"""Called last, for nothing can be called after them."""
MAKERS = {"open", "scoped"}
"""They return doors, which are tested as such."""
DANGEROUS = ("delete", "purge", "forget", "clear", "remove", "compact", "restore")
"""Called late, for they take away what others need."""


def verbs_of(door):
    """Return the names of a door's methods, what takes away last, what closes at the very end."""
    names = [
        name
        for name in dir(door)
        if (not name.startswith("_") and callable(inspect.getattr_static(type(door), name, None)))
        or isinstance(inspect.getattr_static(type(door), name, None), classmethod | staticmethod)
    ]
    names = [name for name in names if not name.startswith("_") and name not in MAKERS]
    return sorted(names, key=lambda name: (name in ENDS, name.startswith(DANGEROUS), name))


def parameters_of(verb):
    named = inspect.signature(verb).parameters.values()
    return [one for one in named if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL)]


def calls_of(door, world, verb):
    """Give the arguments of right and of wrong calls of a verb."""
    parameters = parameters_of(getattr(door, verb))
    of_context = CONTEXT if isinstance(door, ContextWindow) and verb != "items" else {}

    def right(chosen):
        return {
            one.name: of_context[one.name](world)
            if one.name in of_context
            else world.value_of(one.name, verb)
            for one in chosen
        }

    required = [one for one in parameters if one.default is one.empty]
    yield right(required)
    yield right(parameters)
    of_hidden = {one.name: world.hidden for one in parameters if one.name in IDS}
    if of_hidden and verb != "add":
        yield {**right(parameters), **of_hidden}
    for chosen in parameters:
        for wrong in WRONG_NAMES if chosen.name in NAMES else WRONG:
            yield {**right([*required, chosen]), chosen.name: wrong()}


async def called(door, verb, arguments):
    """Call a verb; return its result and its error, one of them None."""
    method = getattr(door, verb)
    given = inspect.signature(method).bind(
        *(
            arguments[one.name]
            for one in parameters_of(method)
            if one.name in arguments and one.kind is one.POSITIONAL_ONLY
        ),
        **{
            one.name: arguments[one.name]
            for one in parameters_of(method)
            if one.name in arguments and one.kind is not one.POSITIONAL_ONLY
        },
    )
    try:
        outcome = method(*given.args, **given.kwargs)
        return (await outcome if inspect.isawaitable(outcome) else outcome), None
    except Exception as error:  # noqa: BLE001 - whatever comes is searched
        return None, error


async def use_all(ear, door, world, *, allowed=()):
    """Call every verb of a door in every way, and look for canaries in all that is told."""
    canaries = [canary for canary in CANARIES if canary not in allowed]
    for verb in verbs_of(door):
        for arguments in calls_of(door, world, verb):
            result, error = await called(door, verb, arguments)
            said = [] if isinstance(error, DeliberateError) else said_by(error)
            what = f"{type(door).__name__}.{verb}({', '.join(arguments)})"
            assert not found_in(said, *CANARIES), f"{what} raised {type(error).__name__}"
            assert not found_in(shown(result), HIDDEN_WORD), (
                f"{what} returned {type(result).__name__}"
            )
            assert not found_in(ear.take(), *canaries), what
        if verb not in ENDS:
            await prepare(world)


def shown(result):
    """Return the repr and str of a result; contents of texts and lists of texts are the answer."""
    if isinstance(result, str | bytes) or result is None:
        return []
    if isinstance(result, list | tuple | dict) and type(result) in (list, tuple, dict):
        values = result.values() if isinstance(result, dict) else result
        return [text for value in values for text in shown(value)]
    plain = type(result).__str__ is object.__str__ or type(result).__str__ is msgspec.Struct.__str__
    return [repr(result), *([str(result)] if plain else [])]


async def settled(outcome):
    return await outcome if inspect.isawaitable(outcome) else outcome


async def prepare(world):
    """See to it that the plain and the sensitive memory are there, whatever was done to them."""
    repository = world.memory.repository
    world.embedder.fails = False
    everyone = repository.agent
    for name, content, marked in (("plain", CONTENT, TAIL), ("hidden", HIDDEN, HIDDEN_WORD)):
        known = getattr(world, name)
        if known is not None and await repository.peek(everyone, known) is not None:
            continue
        entry = world.entry(content=content, sensitive=name == "hidden", **fields(marked))
        await repository.add([mnemic.model.NewEntry(entry)])
        setattr(world, name, entry.id)
    await repository.link(everyone, world.plain, world.hidden, "contradicts", 0.9)


@contextmanager
def opened(door, tmp_path, ear, **options):
    """Open a memory as a door of this class, with what is told of it heard."""
    embedder = Fallible()
    given = {"embedder": embedder, **options}
    path = str(tmp_path / f"{uuid4()}.db")
    is_long_term = door is LongTermMemory
    memory = (
        asyncio.run(door.open(path, agent_id="aide", **given))
        if is_long_term
        else (door(path, "aide", **given))
    )
    listen(ear, memory)
    world = World(memory, tmp_path, embedder)
    asyncio.run(prepare(world))
    try:
        yield world
    finally:
        closing = memory.close()
        if inspect.isawaitable(closing):
            asyncio.run(settled(closing))


class SayingAll:
    """Expands, suggests and judges by repeating what it is given."""

    async def expand(self, query, ask):
        related = await ask(query)
        words = tuple(term for term, _ in related.terms) or ("more",)
        return ExpandedQuery(
            original=query, expanded=" ".join([query, *words]), added_terms=words, confidence=0.9
        )

    async def suggest(self, context, limit, _ask):
        return [context][:limit]

    async def judge(self, statement, others):
        return [Judgement(0.9, f"{statement} against {other}") for other in others]


class Unsure(SayingAll):
    async def expand(self, query, ask):
        return msgspec.structs.replace(await super().expand(query, ask), confidence=0.1)


class Refusing:
    """Fails in every way, and quotes what it was given."""

    model = "refusing"

    async def complete(self, prompt, *, system=None):
        refuse(prompt, system)

    async def expand(self, query, ask):
        refuse(query, (await ask(query)).terms)

    async def suggest(self, context, limit, _ask):
        refuse(context, limit)

    async def judge(self, statement, others):
        refuse(statement, others)


class Rambling:
    """A language model that answers with what it was asked."""

    model = "rambling"

    async def complete(self, prompt, *, system=None):
        return f"[{prompt} {system}"


def services_of(memory):
    """Return services of every sort, with every option that decides what is told."""
    llm, broken = Rambling(), Refusing()
    for log_queries in (True, False):
        yield from (
            RetrievalService(memory, log_queries=log_queries),
            RetrievalService(
                memory, log_queries=log_queries, expander=SayingAll(), suggester=SayingAll()
            ),
            RetrievalService(
                memory,
                log_queries=log_queries,
                expander=LanguageModelExpander(llm),
                suggester=LanguageModelSuggester(llm),
            ),
            MemoryRetriever(memory, log_queries=log_queries),
            MemoryRetriever(memory, log_queries=log_queries, judge=SayingAll()),
            MemoryRetriever(memory, log_queries=log_queries, judge=LanguageModelJudge(llm)),
        )
    yield from (
        RetrievalService(memory, expander=Unsure(), suggester=broken),
        RetrievalService(memory, expander=broken, suggester=LanguageModelSuggester(broken)),
        RetrievalService(memory, expander=LanguageModelExpander(broken)),
        MemoryRetriever(memory, judge=broken),
        MemoryRetriever(memory, judge=LanguageModelJudge(broken)),
    )


DOORS = [Memory, AsyncMemory, LongTermMemory]


@pytest.mark.parametrize("door", DOORS)
def test_no_verb_tells_content_however_it_is_called(door, tmp_path, ear):
    with opened(door, tmp_path, ear) as world:
        asyncio.run(use_all(ear, world.memory, world))
        assert not found_in(reprs_within(world.memory), *CANARIES)


@pytest.mark.parametrize("door", [Memory, AsyncMemory])
def test_no_view_tells_content(door, tmp_path, ear):
    with opened(door, tmp_path, ear) as world:
        view = world.memory.scoped(project_id="p")
        assert isinstance(view, ScopedMemory | AsyncScopedMemory)
        asyncio.run(use_all(ear, view, world))


def test_no_service_tells_content_whatever_its_options_are(tmp_path, ear):
    with opened(AsyncMemory, tmp_path, ear) as world:
        for service in services_of(world.memory):
            asyncio.run(use_all(ear, service, world))
            assert not found_in(reprs_within(service), *CANARIES), service


def test_no_context_window_tells_content(tmp_path, ear):
    with opened(AsyncMemory, tmp_path, ear) as world:
        for options in (
            {"max_tokens": 500},
            {"max_tokens": 60, "compaction_strategy": "summarize", "summarizer": " ".join},
            {"max_tokens": 60, "compaction_strategy": "summarize", "summarizer": refuse},
        ):
            window = ContextWindow(**options, license=DocumentedLicenses(LicenseTier.TEAMS))
            window.try_add(HIDDEN, "user_message", id="x", metadata=fields(HIDDEN_WORD)["metadata"])
            asyncio.run(use_all(ear, window, world))
            assert not found_in(reprs_within(window), *CANARIES)


@pytest.mark.parametrize("door", DOORS)
def test_with_log_content_the_beginnings_of_queries_are_told_and_nothing_else(door, tmp_path, ear):
    with opened(door, tmp_path, ear, log_content=True) as world:
        asyncio.run(use_all(ear, world.memory, world, allowed=SHOWN))


def test_with_log_content_services_tell_the_beginnings_of_queries_alone(tmp_path, ear):
    with opened(AsyncMemory, tmp_path, ear, log_content=True) as world:
        for service in services_of(world.memory):
            asyncio.run(use_all(ear, service, world, allowed=SHOWN))


def test_with_log_content_queries_are_told(tmp_path, ear):
    with opened(AsyncMemory, tmp_path, ear, log_content=True) as world:
        heard = []
        for kind in KINDS:
            world.memory.events.subscribe(kind, heard.append)

        async def ask():
            await world.memory.search(QUERY)
            await RetrievalService(world.memory).retrieve(MemoryQuery(query=QUERY))
            await MemoryRetriever(world.memory).recall(QUERY, user_id=None)

        ear.take()
        asyncio.run(ask())
        assert {event.query for event in heard if hasattr(event, "query")} == {f"{QUERY[:50]}..."}
        lines = found_in(ear.take(), HEAD)
        for begin in ("hybrid search", "retrieved ", "[mem:retrieve] recalled"):
            assert any(begin in line.lower() for line in lines), begin


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("log_content", [False, True])
def test_what_an_embedder_quotes_is_not_told(door, log_content, tmp_path, ear):
    with opened(door, tmp_path, ear, log_content=log_content) as world:
        world.embedder.fails = True
        allowed = SHOWN if log_content else []

        async def failing():
            services = RetrievalService(world.memory), MemoryRetriever(world.memory)
            for used, verb in (
                (one, verb) for one in (world.memory, *services) for verb in verbs_of(one)
            ):
                if verb in ENDS:
                    continue
                for arguments in itertools.islice(calls_of(used, world, verb), 2):
                    world.embedder.fails = True
                    _, error = await called(used, verb, arguments)
                    assert not found_in(said_by(error), *CANARIES), verb
                    told = [canary for canary in CANARIES if canary not in allowed]
                    assert not found_in(ear.take(), *told), verb
                await prepare(world)

        asyncio.run(failing())


DAMAGES = {
    "content": [b"zqtail \xff zqsecret", "zqtail \0 zqsecret"],
    "tags": ["[zqtail", '{"zqtail": 1}', b"\xff zqtail"],
    "metadata": ["{zqtail", '["zqtail"]', b"\xff zqtail", '{"zqtail": 1e999}'],
    "speaker": [b"\xff zqtail"],
    "role": [b"\xff zqtail"],
    "category": [b"\xff zqtail"],
    "memory_type": [99],
    "created_at": [2**62],
    "user_id": [b"\xff zqtail"],
    "type_name": [b"\xff zqtail"],
}


@pytest.mark.parametrize(
    ("column", "damage"), [(column, each) for column, all_of in DAMAGES.items() for each in all_of]
)
def test_what_is_read_of_a_damaged_file_is_not_told(column, damage, tmp_path, ear):
    with opened(Memory, tmp_path, ear) as world:
        path = world.memory.repository.path
    connection = apsw.Connection(path)
    value = "CAST(? AS TEXT)" if isinstance(damage, bytes) else "?"
    connection.execute(f"UPDATE agent_memory_entries SET {column} = {value}", (damage,))  # noqa: S608 - columns above
    connection.close()

    async def use():
        errors = []
        try:
            memory = Memory(path, "aide", embedder=Fallible())
        except Exception as error:  # noqa: BLE001 - whatever comes is searched
            return [error]
        listen(ear, memory)
        world.memory = memory
        for verb in verbs_of(memory):
            for arguments in itertools.islice(calls_of(memory, world, verb), 2):
                _, error = await called(memory, verb, arguments)
                errors.append(error)
        memory.close()
        return errors

    errors = asyncio.run(use())
    assert any(errors), "the damage shows"
    for error in errors:
        assert not found_in(said_by(error), *CANARIES), type(error)
    assert not found_in(ear.take(), *CANARIES)


def broken_lines():
    """Give exports that cannot be read, each broken in another way where canaries stand."""
    exported = io.StringIO()
    with Memory(":memory:", "aide", embedder=None) as memory:
        memory.add(CONTENT, **fields())
        memory.export(exported)
    header, line, end = exported.getvalue().splitlines()
    value, key = f'"{TAIL} words"', f'"{TAIL} words": 1'
    first = line.removeprefix("{")
    broken = [
        line[: line.index(TAIL) + 4],
        line.replace('"', "'"),
        f"{{{key}, {first}",
        line.replace('"memory"', value, 1),
        line.replace('"created_at"', f'"created_at": {value}, "created_at"', 1),
        *(
            line.replace("}", f', "{field}": {value}}}').replace("}}", "}", 0)
            for field in ("type", "importance", "tags", "metadata", "id", "status", "sensitive")
        ),
        *(
            '{"kind": "link", "from_id": ' + value + f', "to_id": {value}, "type": {value}}}'
            for _ in range(1)
        ),
        f"{line} {line}",
        line.replace(TAIL, f"{TAIL}\\ud800", 1),
    ]
    yield f"{TAIL} words"
    yield line
    yield f"{header}\n{line}\n{end}\n{line}\n"
    for one in broken:
        yield f"{header}\n{one}\n{end}\n"


@pytest.mark.parametrize("text", list(broken_lines()))
@pytest.mark.parametrize("kind", [io.StringIO, lambda text: io.BytesIO(text.encode() + b"\xff")])
def test_what_stands_in_a_broken_export_is_not_told(kind, text, ear):
    with Memory(":memory:", "other", embedder=None) as memory:
        listen(ear, memory)
        with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever comes is searched
            memory.import_(kind(text))
    assert not found_in(said_by(caught.value), *CANARIES)
    assert not found_in(ear.take(), *CANARIES)


def test_every_kind_of_event_is_heard_by_this_test(tmp_path, ear, monkeypatch):
    monkeypatch.setattr(telemetry, "QUOTA_WARNINGS", (0.000001,))
    with opened(AsyncMemory, tmp_path, ear, quota=10**9) as world:
        service = RetrievalService(world.memory, expander=SayingAll())
        for door in (service, world.memory):
            asyncio.run(use_all(ear, door, world))
    assert ear.events == KINDS
    assert len(KINDS) >= 9


def test_every_public_class_is_a_door_a_record_or_searches_no_memories():
    """A new class with verbs fails here until this file calls them."""
    called_here = {
        *DOORS,
        RetrievalService,
        MemoryRetriever,
        ContextWindow,
        Memory,
        AsyncMemory,
    }
    others = {"VectorMap", "Selection", "Prior"}  # vectors and ids alone
    for name in mnemic.__all__:
        found = getattr(mnemic, name)
        if not inspect.isclass(found) or found in called_here or name in others:
            continue
        is_record = issubclass(found, msgspec.Struct | tuple | str | int | list)
        is_enum = isinstance(found, type) and hasattr(found, "__members__")
        is_answer = found.__module__.startswith("mnemic.model") or name == "Hits"
        assert is_record or is_enum or is_answer, f"{name} has verbs that no canary has seen"


def test_reprs_of_sensitive_memories_and_of_what_is_asked_hide_what_they_hold():
    entry = World(None, None, None).entry(content=HIDDEN, sensitive=True, **fields(HIDDEN_WORD))
    asked = [
        MemoryQuery(query=QUERY, context_boost=QUERY, filters={"speaker": TAIL}),
        MemoryFilter(tags=[TAIL], any_tags=[TAIL], content_contains=TAIL, where={"role": TAIL}),
        MemoryEntryUpdate(content=CONTENT, add_tags=[TAIL], metadata={TAIL: TAIL}),
        Judgement(1.0, CONTENT),
        ContextItem(content=CONTENT, type="user_message", metadata=fields()["metadata"]),
        entry,
        mnemic.SearchHit(entry, 1.0, {}),
        mnemic.ScoredMemory(entry, 1.0, f"{HIDDEN_WORD} reason"),
    ]
    for one in asked:
        said = [repr(one), str(one), repr(one.__rich_repr__())]
        assert not found_in(said, *CANARIES), type(one)
    assert "<" in repr(asked[0])


def reprs_within(root):
    """Return the reprs of all objects of mnemic that can be reached from one, but for answers."""
    seen, waiting, said = set(), [root], []
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, ModuleType | type | str | bytes | logging.Logger):
            continue
        seen.add(id(one))
        of_mnemic = type(one).__module__.partition(".")[0] == "mnemic"
        if of_mnemic and not isinstance(one, MemoryEntry):
            said += [repr(one), str(one)]
        if of_mnemic or isinstance(one, dict | list | tuple | set):
            waiting += gc.get_referents(one)
    return said


def test_the_package_logs_under_its_name_and_prints_nothing_by_itself():
    handlers = logging.getLogger("mnemic").handlers
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
    loggers = [name for name in logging.Logger.manager.loggerDict if name.startswith("mnemic")]
    known = {"mnemic", "mnemic.recall", "mnemic.retrieval", "mnemic.context"}
    strange = [name for name in loggers if name not in known and name not in sys.modules]
    assert strange == [], "a record says from which module it comes"


def test_the_test_hears_what_is_told():
    """The ear is not deaf: what is logged, raised, chained and measured is found."""
    ear = Ear()
    log = logging.getLogger("mnemic.test_of_the_ear")
    log.addHandler(ear)
    try:
        refuse(TAIL)
    except DeliberateError as first:
        log.warning("fine %s", "words", exc_info=True)
        error = KeyError("second")
        error.__context__ = first
    assert found_in(ear.take(), TAIL)
    assert found_in(said_by(error), TAIL)
    ear.measure("x").record(1, {"a": TAIL})
    assert found_in(ear.take(), TAIL)
