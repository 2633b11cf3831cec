"""The HyDE engine: its turns, its stages and its doors."""

import asyncio
import importlib
import logging
import threading
from contextlib import closing
from uuid import uuid4

import pytest

import mnemic
from mnemic import HttpEmbedder, Memory, MemoryEntry, errors
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.hyde import AsyncHydeEngine, HydeConfig, HydeEngine, format_injection
from mnemic.model import LinkType
from tests.support.doors import opened
from tests.support.hyde import AxisEmbedder, ListedModel, PlainModel, axis, contents, memory_of
from tests.support.hyde_twin import LineModel, TableEmbedder
from tests.support.hyde_worlds import AXES, WINDOW, in_world, run
from tests.support.model_server import model_server


@pytest.fixture(params=["async", "sync"])
def door(request):
    """Opens an engine and calls it, through one of both doors."""
    return request.param


def retrieved(door, engine, *turns, window=WINDOW):
    """The results of turns, one after the other."""
    if door == "sync":
        with engine.sync as opened:
            return [opened.retrieve(turn, window) for turn in turns]

    async def run():
        async with engine:
            return [await engine.retrieve(turn, window) for turn in turns]

    return asyncio.run(run())


def two():
    return HydeConfig(retrieval_top_k=2)


@pytest.mark.requirement("R354", "R405")
def test_without_an_embedder_no_thread_is_started(threads_named):
    engine = AsyncHydeEngine(memory_of("alpha"), None, ListedModel())
    engine.start()
    engine.trigger_rebuild()
    assert not threads_named("hyde")
    assert engine.stats().builds == 0


@pytest.mark.requirement("R382", "R356")
@pytest.mark.parametrize(
    ("turn_id", "window"),
    [(None, WINDOW), (7, WINDOW), (b"1", WINDOW), ("1", "user: a"), ("1", None), ("1", [1])],
)
def test_arguments_of_a_wrong_type_raise(door, turn_id, window):
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"))
    with pytest.raises(errors.InvalidArgumentError):
        retrieved(door, engine, turn_id, window=window)


def test_the_doors_name_each_other():
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha"))
    assert engine.sync is engine.sync
    assert engine.sync.aio is engine
    plain = HydeEngine(memory, memory.embedder, ListedModel("alpha"))
    assert plain.aio.sync is plain


class OtherEmbedder(AxisEmbedder):
    """Another model, in whose space the axes are the other way round."""

    model = "other"

    def embed(self, texts):
        return super().embed(texts)[:, ::-1]


@pytest.mark.requirement("R339", "C115", "C208")
@pytest.mark.parametrize("kind", [AsyncHydeEngine, HydeEngine])
@pytest.mark.parametrize("llm", [ListedModel("beta"), None])
def test_an_embedder_of_another_model_than_the_memorys_is_refused(kind, llm):
    with pytest.raises(errors.EmbeddingModelMismatchError) as refused:
        kind(memory_of("alpha"), OtherEmbedder(), llm)
    for part in ("'other'", "'axes'", "memory.reembed(", "reembed=True", "memory.embedder"):
        assert part in str(refused.value)


@pytest.mark.requirement("R339", "C115", "C208", "R381")
def test_a_configuration_that_names_another_model_than_the_memorys_is_refused(threads_named):
    config = on(hypothesis_model="small", embedding_model="other")
    with pytest.raises(errors.EmbeddingModelMismatchError, match=r"'other'.*'axes'.*reembed"):
        AsyncHydeEngine.from_config(memory_of("alpha"), config)
    assert not threads_named("hyde")


def test_an_embedder_for_a_memory_without_one_is_of_the_model_that_the_memory_names():
    unnamed = Memory(":memory:", embedder=None)
    with pytest.raises(errors.EmbeddingModelMismatchError, match="without an embedder"):
        AsyncHydeEngine(unnamed, AxisEmbedder(), ListedModel("alpha"))
    with Memory(":memory:", embedder=None, embedding_model="axes") as memory:
        memory.add(MemoryEntry("alpha", embedding=axis("alpha")))
        with HydeEngine(memory, AxisEmbedder(), ListedModel("alpha")) as engine:
            assert contents(engine.retrieve("1", WINDOW)) == ["alpha"]


@pytest.mark.requirement("R339", "C115", "C208")
def test_an_engine_searches_by_another_model_once_the_memory_is_embedded_again(door):
    memory = memory_of("alpha", "beta")
    before = AsyncHydeEngine(memory, memory.embedder, ListedModel("beta"), two())
    other = OtherEmbedder()
    assert memory.reembed(other).embedded == 2
    other.calls.clear()
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("beta"), two())
    (found,) = retrieved(door, engine, "1")
    assert [(each.content, each.score) for each in found] == [("beta", 1.0), ("alpha", 0.0)]
    assert other.calls == [["beta"]]  # the memories have their vectors
    assert retrieved(door, before, "1") == [[]]
    assert before.stats().failures == {"search": 1}


@pytest.mark.requirement("R339", "R388", "C208")
def test_while_a_memory_waits_for_its_vectors_turns_get_nothing_and_call_no_model(door, tmp_path):
    with Memory(tmp_path / "a.db", embedder=AxisEmbedder()) as memory:
        memory.add("beta")
    release, other, model = threading.Event(), OtherEmbedder(), ListedModel("beta")
    other.fail = lambda: release.wait(20)
    with Memory(tmp_path / "a.db", embedder=other, reembed=True) as memory:
        engine = AsyncHydeEngine(memory, memory.embedder, model)
        early = AsyncHydeEngine(memory, memory.embedder, model, HydeConfig(timeout=0.2))
        assert retrieved(door, early, "1") == [[]]
        assert model.calls == 0
        release.set()
        assert memory.reembed().is_complete
        assert [contents(each) for each in retrieved(door, engine, "2")] == [["beta"]]


def test_closing_leaves_no_thread_and_later_turns_get_nothing(door, threads_named):
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, PlainModel("alpha"))
    assert [contents(each) for each in retrieved(door, engine, "1")] == [["alpha"]]
    assert not threads_named("hyde")
    assert retrieved(door, engine, "1", "2") == [[], []]
    engine.trigger_rebuild()
    assert not threads_named("hyde")


def on(**options):
    return HydeConfig(enabled=True, **options)


@pytest.mark.requirement("R382", "C130", "C169")
@pytest.mark.parametrize("kind", [AsyncHydeEngine, HydeEngine])
def test_a_configuration_that_is_not_enabled_makes_no_engine(kind):
    memory = memory_of("alpha")
    given = {"embedder": memory.embedder, "llm": ListedModel("alpha")}
    assert kind.from_config(memory, HydeConfig(), **given) is None
    assert isinstance(kind.from_config(memory, on(), **given), kind)


@pytest.mark.requirement("R383")
@pytest.mark.parametrize(
    ("named", "missing"),
    [("hypothesis_model", "embedding_model"), ("embedding_model", "hypothesis_model")],
)
def test_one_model_alone_disables_the_engine_with_one_warning(door, named, missing, caplog):
    engine = AsyncHydeEngine.from_config(memory_of("alpha"), on(**{named: "m"}))
    assert retrieved(door, engine, "1") == [[]]
    (warning,) = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warning.getMessage().endswith(f"{missing} is not")


def test_no_model_at_all_disables_the_engine_in_silence(caplog):
    engine = AsyncHydeEngine.from_config(memory_of("alpha"), on())
    assert not engine.is_enabled
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_a_name_of_the_memorys_model_takes_the_memorys_embedder(door):
    embedder = AxisEmbedder()
    memory = memory_of("alpha", embedder=embedder)
    model = ListedModel("alpha")
    engine = AsyncHydeEngine.from_config(memory, on(embedding_model="axes"), llm=model)
    assert [contents(each) for each in retrieved(door, engine, "1")] == [["alpha"]]
    assert embedder.calls[-1] == ["alpha"]


@pytest.mark.requirement("T077", "R338", "R381", "R384")
def test_clients_are_made_of_the_named_models_and_closed(door, monkeypatch, threads_named):
    text = "The build server is called Heron"
    memory = Memory(":memory:", embedder=None, embedding_model="hashed")
    with model_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        config = on(
            hypothesis_model="small",
            embedding_model="hashed",
            embedding_base_url=server.url,
            min_similarity=-1.0,
            timeout=10,
        )
        with closing(ValidatedEmbedder(HttpEmbedder("hashed", base_url=server.url))) as embedder:
            memory.add(MemoryEntry(text, embedding=embedder.embed([text])[0]))
        engine = AsyncHydeEngine.from_config(memory, config)
        engine.start()
        assert engine.sync.ready(20)
        window = ["user: Which build server is called Heron?"]
        (found,) = retrieved(door, engine, "1", window=window)
        assert contents(found) == [text]
        assert not threads_named("hyde")
        asked = {(sent["path"], sent["body"]["model"]) for sent in server.requests()}
        assert asked == {("/v1/embeddings", "hashed"), ("/v1/chat/completions", "small")}


def test_a_model_may_be_a_function(door):
    memory = memory_of("alpha")
    engine = AsyncHydeEngine(memory, memory.embedder, lambda _prompt: "alpha")
    assert [contents(each) for each in retrieved(door, engine, "1")] == [["alpha"]]


# Search


@pytest.mark.requirement("C106")
@in_world(*"cab", table=dict.fromkeys("cab", AXES["east"]))
async def test_ties_of_one_moment_go_to_the_smaller_id(w):
    equal = await w.engine.retrieve("t", WINDOW)
    assert [one.id for one in equal] == sorted(one.id for one in equal)


# Versions


@pytest.mark.requirement("C109")
@in_world(max_versions=2)
async def test_no_more_than_the_wanted_versions_are_read(w):
    for number in range(8):
        w.embedder.table[f"v{number}"] = AXES["east"]
        await w.add(f"v{number}", supersedes=w.ids.get(f"v{number - 1}"))
    (found,) = await w.engine.retrieve("t", WINDOW)
    assert [one.content for one in found.versions] == ["v5", "v6"]


# The cache of a turn


@pytest.mark.requirement("C112")
@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
@in_world("east")
async def test_a_turn_without_a_name_is_never_cached(w, blank):
    for calls in (1, 2, 3):
        assert await w.ask(blank) == ["east"]
        assert len(w.model.calls) == calls


@pytest.mark.requirement("C111", "R357")
@in_world("north", min_similarity=0.9)
async def test_a_definite_nothing_is_cached(w):
    assert await w.ask() == []
    assert await w.ask() == []
    assert len(w.model.calls) == 1


# Stages and their failures


@pytest.mark.requirement("R360", "R365")
@in_world("east", model=LineModel(text="\n"))
async def test_no_hypotheses_and_no_window_give_nothing(w):
    embedded = len(w.embedder.calls)
    assert await w.ask("a") == []
    assert len(w.model.calls) == 1
    assert await w.ask("b", []) == []
    assert len(w.model.calls) == 1
    assert len(w.embedder.calls) == embedded


@pytest.mark.requirement("C111")
@in_world("east")
async def test_a_failure_holds_for_the_rest_of_its_turn_and_not_longer(w):
    w.model.failure = ConnectionError("no route")
    assert await w.ask("t") == []
    w.model.failure = None
    assert await w.ask("t") == []
    assert len(w.model.calls) == 1
    assert await w.ask("u") == ["east"]


@pytest.mark.requirement("C111")
@in_world("east", failure_backoff=0)
async def test_a_failure_is_forgotten_after_the_back_off(w):
    w.model.failure = ConnectionError("no route")
    assert await w.ask("t") == []
    w.model.failure = None
    assert await w.ask("t") == ["east"]


# Without an embedder or a language model


@pytest.mark.requirement("R385", "R386", "R397", "R351", "R333")
@pytest.mark.parametrize("missing", ["embedder", "model", "both"])
def test_without_an_embedder_or_a_model_there_is_nothing_and_no_log(missing, caplog):
    caplog.set_level(logging.DEBUG)
    table = TableEmbedder(AXES)
    with opened(embedder=table) as memory:
        memory.add("east")
        caplog.clear()
        table.calls.clear()
        embedder = None if missing in {"embedder", "both"} else table
        model = None if missing in {"model", "both"} else LineModel(["east"])
        engine = AsyncHydeEngine(memory, embedder, model, HydeConfig())

        async def main():
            engine.start()
            engine.trigger_rebuild()
            found = await engine.retrieve("t", WINDOW)
            await engine.aclose()
            return found

        assert asyncio.run(main()) == []
        assert model is None or model.calls == []
        assert embedder is None or embedder.calls == []
    assert [r.getMessage() for r in caplog.records if "hyde" in r.name] == []


# The build


@pytest.mark.requirement("T006", "C108")
@in_world()
async def test_an_empty_memory_gives_nothing_without_a_call_and_is_not_cached(w):
    assert await w.ask("t") == []
    assert w.model.calls == []
    await w.add("east")
    assert await w.ask("t") == ["east"]


async def pending(w, *contents):
    """Store memories whose vectors are still to be made."""
    w.embedder.failure = ConnectionError("down")
    await w.memory.add_many([*contents], on_embed_error="pending")
    w.embedder.failure = None


@pytest.mark.requirement("C115", "R346", "C168")
@in_world("east", "up")
async def test_a_rebuild_embeds_only_what_has_no_vector(w):
    await pending(w, "north")
    w.embedder.calls.clear()
    w.engine.trigger_rebuild()
    await w.until(lambda: "north" in w.embedder.texts)
    assert "east" not in w.embedder.texts
    assert "up" not in w.embedder.texts


@pytest.mark.requirement("C108", "R337", "R399")
@in_world(started=False, timeout=0.1)
async def test_a_turn_waits_for_the_first_build_within_its_limit_and_asks_no_model_before(w):
    await pending(w, "north")
    gate = w.embedder.gate = threading.Event()
    w.engine.start()
    await w.embedder.entered.wait()
    assert await w.ask("t") == []
    assert w.model.calls == []
    assert w.engine.stats().failures == {"ready": 1}
    gate.set()
    w.embedder.gate = None
    await w.engine.ready(20)
    w.model.lines = ["north"]
    assert await w.ask("t") == ["north"]  # it was not cached


@pytest.mark.requirement("R329", "R346")
@in_world()
async def test_memories_of_both_scopes_are_found(w):
    entries = [
        mnemic.MemoryEntry(
            id=uuid4(), agent_id="default", content=text, created_at=w.clock(), scope=scope
        )
        for text, scope in (("east", "repo"), ("half east", "user"))
    ]
    await w.memory.add_many(entries)
    found = await w.engine.retrieve("t", WINDOW)
    assert [(one.content, one.memory.scope) for one in found] == [
        ("east", "repo"),
        ("half east", "user"),
    ]


@pytest.mark.requirement("R346")
@in_world("half east")
async def test_what_is_stored_is_found_by_the_next_turn(w):
    assert await w.ask("a") == ["half east"]
    await w.add("east")
    assert await w.ask("b") == ["east", "half east"]
    await w.memory.delete(w.ids["east"])
    assert await w.ask("c") == ["half east"]


# The whole of it


@pytest.mark.requirement("T085", "R406", "R407", "R408", "C107")
@pytest.mark.parametrize("file", [True, False])
def test_the_documented_integration_scenario(file, tmp_path):
    contents = [("word " * 60 + name) for name in ("first", "second", "third")]
    vectors = ["east", "north", "up"]

    async def scenario(w):
        await w.add(*contents, user_id=None)
        await w.memory.link(w.ids[contents[0]], w.ids[contents[2]], LinkType.RELATED)
        assert await w.memory.count() == 3
        first = await w.engine.retrieve("turn-1", WINDOW)
        searched = [one.content for one in first if one.relation is None]
        assert sorted(searched) == sorted(contents[:2])
        assert {one.content for one in first} == set(contents)
        assert len(first) == 3
        calls = len(w.model.calls), len(w.embedder.calls)
        assert await w.engine.retrieve("turn-1", WINDOW) == first
        assert (len(w.model.calls), len(w.embedder.calls)) == calls
        assert await w.engine.retrieve("turn-2", WINDOW) == first
        assert len(w.model.calls) == calls[0] + 1
        tight = format_injection(first, 200)
        assert 0 < len(tight) <= 800
        assert sum(content in tight for content in contents) < 3
        whole = format_injection(first, 0)
        assert all(content in whole for content in contents)

    run(
        scenario,
        lines=["east", "north"],
        table=dict(zip(contents, (AXES[name] for name in vectors), strict=True)),
        retrieval_top_k=2,
        retrieval_hop_depth=1,
        path=str(tmp_path / "a.db") if file else ":memory:",
    )


@pytest.mark.requirement("R394", "R334")
def test_each_part_has_its_module_and_nothing_captures():
    for module in ("engine", "hypotheses", "injection", "window", "config"):
        importlib.import_module(f"mnemic.hyde.{module}")
    names = " ".join(dir(mnemic.hyde)).lower()
    for word in ("capture", "classif", "consolidat", "tui"):
        assert word not in names


@pytest.mark.requirement("R352")
def test_the_engine_reads_no_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "EMBEDDING_BASE_URL", "EMBEDDING_API_KEY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async def scenario(w):
        assert await w.ask() == ["east"]

    run(scenario, "east")


@pytest.mark.requirement("R355", "R356")
@in_world(embedder=TableEmbedder(dimensions=32))
async def test_two_hundred_turns_at_once_each_get_their_own(w):
    contents = [f"memory {n}" for n in range(50)]
    await w.memory.add_many(contents)

    class Echo(LineModel):
        async def complete(self, prompt, *, system=None):  # noqa: ARG002 - as every model
            await asyncio.sleep(0)
            return prompt[prompt.index("memory ") :].splitlines()[0]

    engine = AsyncHydeEngine(
        w.memory, w.embedder, Echo(), HydeConfig(retrieval_top_k=1, timeout=60)
    )
    async with engine:
        engine.start()
        await engine.ready(20)
        wanted = [contents[n % 50] for n in range(200)]
        found = await asyncio.gather(
            *(engine.retrieve(f"t{n}", [f"user: {text}"]) for n, text in enumerate(wanted))
        )
    assert [[one.content for one in each] for each in found] == [[text] for text in wanted]
