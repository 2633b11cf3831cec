"""An engine made from the configuration: off, half configured, given parts, parts over HTTP."""

import asyncio
import logging
from contextlib import closing

import pytest

from mnemic import AsyncMemory, HttpEmbedder, Memory
from mnemic.hyde import AsyncHydeEngine, HydeConfig, HydeEngine
from tests.support.doors import opened
from tests.support.hyde_twin import LineModel, TableEmbedder
from tests.support.hyde_worlds import AXES, WINDOW
from tests.support.scripted_server import Answer, counted, scripted

KEY = "sk-very-secret"


def chat(text):
    """Return a body of the protocol with one answer."""
    message = {"role": "assistant", "content": text}
    return {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message}]}


def warnings_of(caplog):
    """Return the warnings of mnemic."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.name.startswith("mnemic") and record.levelno == logging.WARNING
    ]


@pytest.mark.requirement("R382", "C130", "C169")
def test_a_configuration_that_is_off_makes_no_engine():
    with opened() as memory:
        assert AsyncHydeEngine.from_config(memory, HydeConfig()) is None
        assert AsyncHydeEngine.from_config(memory, HydeConfig(hypothesis_model="m")) is None


@pytest.mark.requirement("R383", "R351")
@pytest.mark.parametrize("given", ["hypothesis_model", "embedding_model"])
def test_one_warning_if_only_one_model_is_named(given, caplog):
    with opened() as memory:
        config = HydeConfig(enabled=True, **{given: "m"})
        engine = AsyncHydeEngine.from_config(memory, config)
        (warning,) = warnings_of(caplog)
        assert "hypothesis_model" in warning
        assert "embedding_model" in warning
        if engine is not None:
            assert engine.sync.retrieve("t", WINDOW) == []
            engine.sync.close()


@pytest.mark.requirement("R384", "R381")
def test_a_given_embedder_and_model_are_used():
    async def main():
        embedder = TableEmbedder(AXES)
        async with AsyncMemory(":memory:", embedder=embedder) as memory:
            await memory.add("east")
            config = HydeConfig(enabled=True, hypothesis_model="m", embedding_model="table")
            model = LineModel(["east"])
            engine = AsyncHydeEngine.from_config(memory, config, embedder=embedder, llm=model)
            async with engine:
                engine.start()
                await engine.ready(20)
                return [one.content for one in await engine.retrieve("t", WINDOW)], model.calls

    found, calls = asyncio.run(main())
    assert found == ["east"]
    assert len(calls) == 1


@pytest.mark.requirement("T077", "R382")
def test_an_engine_that_is_off_is_none():
    with Memory(":memory:", embedder=None) as memory:
        config = HydeConfig(hypothesis_model="h", embedding_model="m", embedding_api_key=KEY)
        assert AsyncHydeEngine.from_config(memory, config) is None


@pytest.mark.requirement("T077", "R381", "R384", "R338")
def test_an_engine_of_a_configuration_uses_the_models_that_it_names():
    def answer(sent):
        return counted(sent) if sent.path.endswith("/embeddings") else chat("east\nnorth")

    with (
        scripted(Answer(answer)) as server,
        closing(HttpEmbedder("a-vector-model", base_url=server.url, api_key=KEY)) as embedder,
        Memory(":memory:", embedder=embedder) as memory,
    ):
        config = HydeConfig(
            enabled=True,
            hypothesis_model="a-small-model",
            embedding_model="a-vector-model",
            embedding_base_url=server.url,
            embedding_api_key=KEY,
            timeout=30,
        )
        memory.add_many(["east", "west"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", server.url)
            patch.setenv("OPENAI_API_KEY", KEY)
            with HydeEngine.from_config(memory, config) as engine:
                engine.start()
                engine.ready(20)
                assert len(engine.retrieve("t", WINDOW)) == 2
        models = {(sent.path, sent.body["model"]) for sent in server.sent}
        assert models == {
            ("/v1/embeddings", "a-vector-model"),
            ("/v1/chat/completions", "a-small-model"),
        }
