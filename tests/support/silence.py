"""Calls of every verb with canaries in all their arguments, and the search for them."""

import asyncio
import inspect
import io
import itertools
import logging
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

import msgspec

import mnemic
from mnemic import Memory, MemoryEntry
from mnemic.compat import ContextWindow
from mnemic.context import ContextItem, ContextSnapshot
from mnemic.hyde import HydeConfig
from mnemic.model import MemoryEntryUpdate, MemoryFilter, MemoryQuery, RecallOptions
from mnemic.model.new_entry import FIELDS
from mnemic.observability import events
from mnemic.policy import RetrievalRequest
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.keys import OTHER_KEY
from tests.support.places import Places

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
        "source": f"{mark} source",
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
        def record(value, attributes):
            self.told.append(f"{name} {value} {attributes}")

        return record

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
    for name, kind in vars(events).items()
    if inspect.isclass(kind)
    and not name.startswith("_")
    and issubclass(kind, msgspec.Struct)
    and kind.__module__ == events.__name__
}


def listen(ear, memory):
    for kind in KINDS:
        memory.events.subscribe(kind, ear.hear)
        memory.events.subscribe(kind, lambda event: refuse(event, CONTENT, HIDDEN))


def found_in(told, *canaries):
    return [text for text in told if any(canary in str(text).lower() for canary in canaries)]


# What is called


class World:
    """A memory, opened as a door, with one plain and one sensitive memory in it."""

    def __init__(self, memory, tmp_path, embedder, places=None):
        self.memory, self.tmp_path, self.embedder = memory, tmp_path, embedder
        self.places = places
        self.plain = self.hidden = None
        self.numbers = itertools.count()

    def value_of(self, name, verb):
        """Return a right value for a parameter of this name, with canaries where it may have."""
        special = SPECIAL.get((verb, name))
        return (special or RIGHT[name])(self)

    def path(self):
        return str(self.tmp_path / f"{next(self.numbers)}.out")

    def place(self):
        """Return where a backup may be made."""
        return self.path() if self.places.kind == "sqlite" else self.places.new_for_a_copy()

    def entry(self, **changed):
        given = {"id": uuid4(), "agent_id": "aide", "content": CONTENT, "created_at": NOON}
        return MemoryEntry(**{**given, **fields(), **changed})

    def exported(self):
        target = io.StringIO()
        with Memory(":memory:", "aide", embedder=None) as other:
            other.add({"content": f"{next(self.numbers)} {CONTENT}", **fields()})
            other.export(target)
        target.seek(0)
        return target

    def snapshot(self):
        item = ContextItem(content=CONTENT, type="user_message", id="x", added_at=NOON)
        return ContextSnapshot(agent_id="default", max_tokens=999, items=(item,), taken_at=NOON)


def recalled(_):
    return RecallOptions(user_id=None, min_salience=0.0, with_total=True)


ALIKE = {
    None: (
        *("embedding", "vector", "replace_metadata", "user_id", "project_id", "session_id"),
        *("if_version", "counter", "cursor", "types", "link_types", "weights", "ranking"),
        *("options", "embedding_model", "progress", "strategy"),
    ),
    True: (
        *("expired", "include_sensitive", "include_deleted", "include_forgotten"),
        *("include_archived", "include_superseded", "explain", "total", "strict", "embeddings"),
        "unseal",
    ),
    False: (
        *("all_users", "sensitive", "include_pinned", "permanent", "half_open", "skip_failed"),
        *("overwrite", "repair"),
    ),
}
RIGHT = {
    "content": lambda _: CONTENT,
    "text": lambda _: f"# {CONTENT}\n\n{CONTENT}",
    "name": lambda _: f"{TAIL} name",
    "query": lambda _: QUERY,
    "conversation_context": lambda _: QUERY,
    "conversation": lambda _: QUERY,
    "prefix": lambda _: HEAD,
    "request": lambda _: RetrievalRequest(
        QUERY, None, "session", filters={"speaker": {"ne": TAIL}}
    ),
    "field": lambda _: "category",
    "turn_id": lambda world: f"{TAIL} {next(world.numbers)}",
    "embed": lambda _: [CONTENT],
    "topic_filter": lambda _: QUERY,
    "memories": lambda world: [CONTENT, {"content": CONTENT, **fields()}, world.entry()],
    "entry": lambda world: world.entry(),
    "entries": lambda world: [world.entry(), world.entry()],
    "idempotency_keys": lambda world: [f"key-{next(world.numbers)}", None],
    "key": lambda _: OTHER_KEY,
    "idempotency_key": lambda world: f"key-{next(world.numbers)}",
    "tags": lambda _: fields()["tags"],
    "tag": lambda _: fields()["tags"][0],
    "add_tags": lambda _: fields()["tags"],
    "remove_tags": lambda _: fields()["tags"],
    "metadata": lambda _: fields()["metadata"],
    "speaker": lambda _: fields()["speaker"],
    "role": lambda _: fields()["role"],
    "category": lambda _: fields()["category"],
    "scope": lambda _: fields()["category"],
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
    "instead_of": lambda _: [uuid4()],
    "supersedes": lambda world: world.plain,
    "message_id": lambda _: "message-1",
    "position": lambda _: 1,
    "created_at": lambda _: NOON,
    "expires_at": lambda _: NOON + timedelta(days=9999),
    "since": lambda _: NOON - timedelta(days=1),
    "until": lambda _: NOON + timedelta(days=9999),
    "from_": lambda _: NOON - timedelta(days=1),
    "to": lambda _: NOON + timedelta(days=9999),
    "type": lambda _: "fact",
    "importance": lambda _: 0.5,
    "on_duplicate": lambda _: "keep",
    "on_conflict": lambda _: "raise",
    "older_than": lambda _: timedelta(days=9),
    "on_embed_error": lambda _: "raise",
    "check": lambda _: "contradictions",
    "limit": lambda _: 5,
    "most": lambda _: 5,
    "max_tokens": lambda _: 500,
    "status": lambda _: "active",
    "direction": lambda _: "both",
    "depth": lambda _: 2,
    "strength": lambda _: 0.5,
    "search_type": lambda _: "hybrid",
    "min_score": lambda _: "auto",
    "offset": lambda _: 0,
    "mode": lambda _: "relevant",
    "min_salience": lambda _: 0.0,
    "min_similarity": lambda _: 0.0,
    "min_confidence": lambda _: 0.0,
    "reason": lambda _: "repeated_access",
    "window": lambda _: ContextWindow(2000),
    "target": lambda world: world.path(),
    "path": lambda world: world.path(),
    "model": lambda _: "another-model",
    "embedder": lambda world: world.embedder,
    "agent_id": lambda _: "aide",
    "source": lambda world: world.exported(),
    "timeout": lambda _: 1.0,
    "on_timeout": lambda _: "raise",
    "seconds": lambda _: 1.0,
    "near": lambda _: 0.5,
    "stale_after": lambda _: timedelta(days=1),
    "max_bytes": lambda _: 10,
    "patterns": lambda _: ["email", TAIL],
    "item": lambda _: CONTENT,
    "items": lambda _: [ContextItem(content=CONTENT, type="user_message")],
    "item_id": lambda _: "x",
    "priority": lambda _: 60,
    "target_percent": lambda _: 50,
    "snapshot": lambda world: world.snapshot(),
    **{name: lambda _, value=value: value for value, names in ALIKE.items() for name in names},
}
"""Right values by the parameter's name; a parameter without one fails the test."""

QUERIED = {
    "query": lambda _: MemoryQuery(
        query=QUERY, context_boost=QUERY, expand_query=True, filters={"speaker": {"ne": TAIL}}
    )
}
SPECIAL = {
    ("backup", "path"): lambda world: world.place(),
    ("turn", "message"): lambda _: QUERY,
    ("turn", "history"): lambda _: [("user", QUERY), ("assistant", CONTENT)],
    ("turn", "last_summarization_index"): lambda _: 0,
    ("turn", "turn_id"): lambda _: None,
    ("from_config", "memory"): lambda world: world.memory,
    ("from_config", "config"): lambda _: HydeConfig(enabled=True),
    ("from_config", "embedder"): lambda world: world.embedder,
    ("from_config", "llm"): lambda _: None,
    ("from_config", "clock"): lambda _: None,
    ("from_config", "include_sensitive"): lambda _: True,
    ("retrieve", "window"): lambda _: [f"user: {QUERY}", f"assistant: {CONTENT}"],
    ("retrieve", "query"): QUERIED["query"],
    ("retrieve_to_context", "query"): QUERIED["query"],
    ("recall", "options"): recalled,
    ("update", "type"): lambda _: "fact",
    ("add", "type"): lambda _: "fact",
    ("add", "id"): lambda _: uuid4(),
    ("audit", "ids"): lambda _: True,
    ("add", "source"): lambda _: fields()["source"],
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
MAKERS = {"scoped"}
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
        for wrong in wrong_for(chosen.name):
            yield {**right([*required, chosen]), chosen.name: wrong()}
    if "content" in right(required) and "on_duplicate" in right(parameters):
        for name in FIELDS:  # of a dict in place of the content
            for value in (lambda name=name: world.value_of(name, verb), *wrong_for(name)):
                yield {"content": {"content": CONTENT, name: value()}}


def wrong_for(name):
    """Return what makes wrong values of a parameter or a field."""
    return WRONG_NAMES if name in NAMES else WRONG


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
    """Return the repr, str, HTML and rich form of a result; texts are the answer."""
    if isinstance(result, str | bytes) or result is None:
        return []
    if isinstance(result, list | tuple | dict) and type(result) in (list, tuple, dict):
        values = result.values() if isinstance(result, dict) else result
        return [text for value in values for text in shown(value)]
    plain = type(result).__str__ is object.__str__ or type(result).__str__ is msgspec.Struct.__str__
    for_rich = getattr(result, "__rich_repr__", list)()
    html = getattr(result, "_repr_html_", str)()
    return [repr(result), repr(for_rich), html, *([str(result)] if plain else [])]


async def settled(outcome):
    return await outcome if inspect.isawaitable(outcome) else outcome


async def prepare(world):
    """See to it that the plain and the sensitive memory are there, whatever was done to them."""
    repository = world.memory.repository
    world.embedder.fails = False
    everyone = mnemic.model.Scope(repository.agent_id)
    for name, content, marked in (("plain", CONTENT, TAIL), ("hidden", HIDDEN, HIDDEN_WORD)):
        known = getattr(world, name)
        if known is not None and repository.reader.locate(everyone, known) is not None:
            continue
        entry = world.entry(content=content, sensitive=name == "hidden", **fields(marked))
        await repository.adder.add([mnemic.model.new_entry.NewEntry(entry)])
        setattr(world, name, entry.id)
    await repository.linker.link(everyone, world.plain, world.hidden, "contradicts", 0.9)


@contextmanager
def opened(door, tmp_path, ear, *, kind="sqlite", url=None, **options):
    """Open a memory as a door of this class, with what is told of it heard."""
    embedder = Fallible()
    with Places(kind, tmp_path) as places:
        given = {"embedder": embedder, **places.options, **options}
        url = url or places.new()
        memory = door(url, agent_id="aide", **given)
        listen(ear, memory)
        world = World(memory, tmp_path, embedder, places)
        asyncio.run(prepare(world))
        try:
            yield world
        finally:
            closing = memory.close()
            if inspect.isawaitable(closing):
                asyncio.run(settled(closing))
