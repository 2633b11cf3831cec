"""The HyDE engine: its turns, its stages and its doors."""

import asyncio
import threading
from contextlib import closing

import pytest

from mnemic import HttpEmbedder, Memory, MemoryEntry, errors
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.hyde import AsyncHydeEngine, HydeConfig, HydeEngine
from tests.support.hyde import (
    AxisEmbedder,
    ListedModel,
    PlainModel,
    axis,
    contents,
    memory_of,
)
from tests.support.model_server import model_server

WINDOW = ["user: what is it?"]


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


@pytest.mark.requirement("R389", "R398", "T009")
@pytest.mark.parametrize("make", [ListedModel, PlainModel])
def test_a_failing_model_gives_nothing_for_the_turn(door, make, caplog):
    caplog.set_level("DEBUG", logger="mnemic.hyde")
    memory = memory_of("alpha")
    model = make("alpha")
    model.complete = failing_with("quoted secret")
    engine = AsyncHydeEngine(memory, memory.embedder, model)
    assert retrieved(door, engine, "1") == [[]]
    assert engine.stats().failures == {"hypotheses": 1}
    assert "secret" not in caplog.text
    assert any(record.levelname == "DEBUG" for record in caplog.records)


def failing_with(text):
    def complete(_prompt, **_):
        raise RuntimeError(text)

    return complete


@pytest.mark.requirement("R390", "R361", "T010")
def test_an_embedder_that_fails_on_hypotheses_gives_nothing_for_the_turn(door):
    embedder = AxisEmbedder()
    memory = memory_of("alpha", embedder=embedder)
    engine = AsyncHydeEngine(memory, memory.embedder, ListedModel("alpha", "beta"))
    embedder.fail = failing_with_error
    assert retrieved(door, engine, "1") == [[]]
    assert engine.stats().failures == {"embedding": 1}
    assert embedder.calls[-1] == ["alpha", "beta"]


def failing_with_error():
    raise OSError("down")


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
