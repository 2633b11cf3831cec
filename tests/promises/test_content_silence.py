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
from contextlib import suppress
from types import ModuleType

import apsw
import msgspec
import pytest

import mnemic
from mnemic import AsyncMemory, Memory, MemoryEntry
from mnemic.async_memory import AsyncScopedMemory
from mnemic.compat import (
    AsyncLongTermMemory,
    AsyncMemoryRetriever,
    AsyncRetrievalService,
    ContextWindow,
    LicenseTier,
)
from mnemic.context import ContextItem
from mnemic.contradictions import Judgement, LanguageModelJudge
from mnemic.errors import MnemicError
from mnemic.hyde import AsyncHydeEngine, HydeConfig
from mnemic.licensing import DocumentedLicenses
from mnemic.memory import ScopedMemory
from mnemic.model import ExpandedQuery, MemoryEntryUpdate, MemoryFilter, MemoryQuery
from mnemic.observability import telemetry
from mnemic.policy import (
    AsyncRetrievalPolicy,
    CircuitBreaker,
    FixedWindow,
    Redaction,
    RetrievalConfig,
    RetrievalPolicy,
    RetrievalRequest,
)
from mnemic.retrieval import LanguageModelExpander, LanguageModelSuggester
from tests.support.embedders import WordEmbedder
from tests.support.places import SEARCHED
from tests.support.silence import (
    CANARIES,
    CONTENT,
    ENDS,
    HEAD,
    HIDDEN,
    HIDDEN_WORD,
    KINDS,
    QUERY,
    SHOWN,
    TAIL,
    DeliberateError,
    Ear,
    Fallible,
    World,
    called,
    calls_of,
    fields,
    found_in,
    listen,
    opened,
    prepare,
    refuse,
    said_by,
    use_all,
    verbs_of,
    wrong_for,
)


@pytest.fixture
def ear(monkeypatch, tmp_path):
    """Hear events, log records of all loggers, measurements and warnings."""
    monkeypatch.chdir(tmp_path)  # paths that are wrong may name files all the same
    ear = Ear()

    class All(dict):
        def __missing__(self, name):
            self[name] = ear.measure(name)
            return self[name]

    instruments = All()
    monkeypatch.setattr(telemetry._process, "instruments", lambda: instruments)
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
            AsyncRetrievalService(memory, log_queries=log_queries),
            AsyncRetrievalService(
                memory, log_queries=log_queries, expander=SayingAll(), suggester=SayingAll()
            ),
            AsyncRetrievalService(
                memory,
                log_queries=log_queries,
                expander=LanguageModelExpander(llm),
                suggester=LanguageModelSuggester(llm),
            ),
            AsyncMemoryRetriever(memory, log_queries=log_queries),
            AsyncMemoryRetriever(memory, log_queries=log_queries, judge=SayingAll()),
            AsyncMemoryRetriever(memory, log_queries=log_queries, judge=LanguageModelJudge(llm)),
        )
    yield from (
        AsyncRetrievalService(memory, expander=Unsure(), suggester=broken),
        AsyncRetrievalService(memory, expander=broken, suggester=LanguageModelSuggester(broken)),
        AsyncRetrievalService(memory, expander=LanguageModelExpander(broken)),
        AsyncMemoryRetriever(memory, judge=broken),
        AsyncMemoryRetriever(memory, judge=LanguageModelJudge(broken)),
        AsyncRetrievalPolicy(memory, RetrievalConfig(min_score=0, include_sensitive=True)),
        AsyncRetrievalPolicy(memory, RetrievalConfig(max_query_length=5)),
        AsyncRetrievalPolicy(
            memory,
            RetrievalConfig(
                min_score=0,
                session_boost=2,
                near_duplicates=0.5,
                redaction=Redaction(enabled=True, patterns=("email", "[a-z]+word")),
            ),
        ),
    )
    yield from policies_of(memory)
    yield from engines_of(memory)


def engines_of(memory):
    """Return HyDE engines, also such as fail."""
    embedder = memory.repository.embedder
    yield from (
        AsyncHydeEngine(memory, embedder, Repeating()),
        AsyncHydeEngine(memory, embedder, Repeating(), HydeConfig(min_similarity=-1)),
        AsyncHydeEngine(memory, embedder, Repeating(), HydeConfig(timeout=1e-9)),
        AsyncHydeEngine(memory, embedder, RefusingModel()),
        AsyncHydeEngine(memory, lambda_of(CONTENT), Repeating()),
    )


class Repeating:
    """A language model whose hypotheses are what it is given."""

    model = "repeating"

    async def complete(self, prompt, *, system=None):
        return f"{CONTENT}\n{prompt}\n{system}"


class RefusingModel:
    model = "refusing"

    async def complete(self, prompt, *, system=None):
        refuse(prompt, system)


def lambda_of(text):
    """An embedder that quotes what it is given."""

    class Quoted(WordEmbedder):
        def embed(self, texts):
            refuse(texts, text)

    return Quoted()


def policies_of(memory):
    """Return policies with whatever makes them fail."""
    semantic = RetrievalConfig(search_type="semantic", min_score=0.0)
    yield from (
        RetrievalPolicy(memory).aio,
        RetrievalPolicy(memory, limiter=FixedWindow(1, 60)).aio,
        RetrievalPolicy(memory, limiter=Quoting()).aio,
        RetrievalPolicy(memory, semantic, breaker=CircuitBreaker(1)).aio,
        RetrievalPolicy(memory, RetrievalConfig(timeout=0), breaker=CircuitBreaker(1)).aio,
    )


class Quoting:
    """A limiter that quotes what it is asked."""

    def acquire(self, user):
        refuse(user, CONTENT)


DOORS = [Memory, AsyncMemory, AsyncLongTermMemory]
DOORS_OF_STORES = [
    *(("sqlite", door) for door in DOORS),
    ("postgres", Memory),
    ("postgres-search", AsyncMemory),
    ("postgres-policies", AsyncLongTermMemory),
]


@pytest.mark.parametrize(("kind", "door"), DOORS_OF_STORES)
def test_no_verb_tells_content_however_it_is_called(kind, door, tmp_path, ear):
    with opened(door, tmp_path, ear, kind=kind) as world:
        asyncio.run(use_all(ear, world.memory, world))
        assert not found_in(reprs_within(world.memory), *CANARIES)


@pytest.mark.parametrize("door", [Memory, AsyncMemory])
def test_no_view_tells_content(door, tmp_path, ear):
    with opened(door, tmp_path, ear) as world:
        view = world.memory.scoped(project_id="p")
        assert isinstance(view, ScopedMemory | AsyncScopedMemory)
        asyncio.run(use_all(ear, view, world))


@pytest.mark.parametrize("name", MemoryEntry.__struct_fields__)
def test_an_entry_that_is_refused_tells_no_content(name):
    refused = 0
    for wrong in wrong_for(name):
        with suppress(MnemicError):  # what a text field takes is no error
            MemoryEntry(**{"content": CONTENT, name: (value := wrong())})
            continue
        with pytest.raises(MnemicError) as caught:
            MemoryEntry(**{"content": CONTENT, name: value})
        assert not found_in(said_by(caught.value), *CANARIES)
        refused += 1
    assert refused


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


@pytest.mark.parametrize("kind", SEARCHED)
def test_with_log_content_queries_are_told(kind, tmp_path, ear):
    with opened(AsyncMemory, tmp_path, ear, kind=kind, log_content=True) as world:
        heard = []
        for event in KINDS:
            world.memory.events.subscribe(event, heard.append)

        async def ask():
            await world.memory.search(QUERY)
            await AsyncRetrievalService(world.memory).retrieve(MemoryQuery(query=QUERY))
            await AsyncMemoryRetriever(world.memory).recall(QUERY, user_id=None)
            asked = RetrievalRequest(QUERY, user_id=None, session_id="s")
            for policy in policies_of(world.memory):
                await policy.run(asked)

        ear.take()
        asyncio.run(ask())
        assert {event.query for event in heard if hasattr(event, "query")} == {f"{QUERY[:50]}..."}
        lines = found_in(ear.take(), HEAD)
        for begin in (
            "hybrid search",
            "retrieved ",
            "[mem:retrieve] recalled",
            " tokens for 'zqhead query",
        ):
            assert any(begin in line.lower() for line in lines), begin


@pytest.mark.parametrize(("kind", "door"), DOORS_OF_STORES[:4])
@pytest.mark.parametrize("log_content", [False, True])
def test_what_an_embedder_quotes_is_not_told(kind, door, log_content, tmp_path, ear):
    with opened(door, tmp_path, ear, kind=kind, log_content=log_content) as world:
        world.embedder.fails = True
        allowed = SHOWN if log_content else []

        async def failing():
            services = (
                AsyncRetrievalService(world.memory),
                AsyncMemoryRetriever(world.memory),
                *policies_of(world.memory),
                *engines_of(world.memory),
            )
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
    "source": [b"\xff zqtail"],
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
        path = world.memory.repository.shared.store.path
    connection = apsw.Connection(path)
    value = "CAST(? AS TEXT)" if isinstance(damage, bytes) else "?"
    connection.execute(f"UPDATE agent_memory_entries SET {column} = {value}", (damage,))  # noqa: S608 - columns above
    connection.close()
    check_that_nothing_is_told(ear, world, path)


def check_that_nothing_is_told(ear, world, url, **options):
    """Use a place that something is wrong with, and search what is told."""

    async def use():
        errors = []
        try:
            memory = Memory(url, "aide", embedder=Fallible(), **options)
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
    assert any(errors), "something is wrong, and shows"
    for error in errors:
        assert not found_in(said_by(error), *CANARIES), type(error)
    assert not found_in(ear.take(), *CANARIES)


def broken_lines():
    """Give exports that cannot be read, each broken in another way where canaries stand."""
    exported = io.StringIO()
    with Memory(":memory:", "aide", embedder=None) as memory:
        memory.add({"content": CONTENT, **fields()})
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
    with opened(AsyncMemory, tmp_path, ear, quota=10**9, on_recalled="flag") as world:
        service = AsyncRetrievalService(world.memory, expander=SayingAll())
        for door in (service, *policies_of(world.memory), *engines_of(world.memory), world.memory):
            asyncio.run(use_all(ear, door, world))
    assert ear.events == KINDS
    assert len(KINDS) >= 12


def test_every_public_class_is_a_door_a_record_or_searches_no_memories():
    """A new class with verbs fails here until this file calls them."""
    called_here = {
        *DOORS,
        AsyncRetrievalService,
        AsyncMemoryRetriever,
        AsyncRetrievalPolicy,
        ContextWindow,
        AsyncHydeEngine,
        Memory,
        AsyncMemory,
    }
    views = {"ScopedMemory", "AsyncScopedMemory"}  # called above
    plain = {
        "RetrievalService",
        "MemoryRetriever",
        "RetrievalPolicy",
        "AsyncHydeTurn",
        "HydeEngine",
        "HydeTurn",
    }  # made from the awaited verbs
    vectors = {"VectorMap", "StringVectorMap", "Selection", "Prior", "IndexPool"}  # ids, sizes
    vectors |= {"VectorIndex", "AsyncVectorIndex"}  # numbers; see tests/repository
    parts = {  # hold no memories; a door's verbs call them
        "AdaptedEmbedder",
        "AdaptedLanguageModel",
        "CachedEmbedder",
        "CircuitBreaker",
        "Completes",
        "CorpusExpander",
        "CorpusSuggester",
        "Encryption",
        "EstimatedTokens",
        "E5Embedder",
        "FixedWindow",
        "HttpEmbedder",
        "HttpLanguageModel",
        "LanguageModelExpander",
        "LanguageModelJudge",
        "LanguageModelSuggester",
        "MasterKey",
        "MiniLmEmbedder",
        "Permit",
        "PromptForm",
        "RateLimiter",
        "RuleJudge",
        "SynonymExpander",
        "TokenBucket",
        "TokenizerTokens",
    }
    others = views | plain | vectors | parts
    public = [
        (module, name) for module in (mnemic, mnemic.policy, mnemic.hyde) for name in module.__all__
    ]
    for module, name in public:
        found = getattr(module, name)
        if not inspect.isclass(found) or found in called_here or name in others:
            continue
        is_record = issubclass(found, msgspec.Struct | tuple | str | int | list | Warning)
        is_enum = isinstance(found, type) and hasattr(found, "__members__")
        is_answer = found.__module__.startswith("mnemic.model") or name.endswith("Hits")
        assert is_record or is_enum or is_answer, f"{name} has verbs that no canary has seen"


def test_reprs_of_sensitive_memories_and_of_what_is_asked_hide_what_they_hold():
    entry = World(None, None, None).entry(content=HIDDEN, sensitive=True, **fields(HIDDEN_WORD))
    asked = [
        MemoryQuery(query=QUERY, context_boost=QUERY, filters={"speaker": TAIL}),
        MemoryFilter(tags=[TAIL], any_tags=[TAIL], content_contains=TAIL, filters={"role": TAIL}),
        MemoryEntryUpdate(content=CONTENT, add_tags=[TAIL], metadata={TAIL: TAIL}),
        Judgement(1.0, CONTENT),
        ContextItem(content=CONTENT, type="user_message", metadata=fields()["metadata"]),
        entry,
        mnemic.SearchHit(entry, 1.0, {}),
        mnemic.model.ScoredMemory(entry, 1.0, f"{HIDDEN_WORD} reason"),
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
    known = {"mnemic", "mnemic.recall", "mnemic.retrieval", "mnemic.context", "mnemic.policy"}
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
    ear.measure("x")(1, {"a": TAIL})
    assert found_in(ear.take(), TAIL)
