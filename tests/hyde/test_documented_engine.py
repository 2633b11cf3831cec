"""The documented engine: stages, cache, degradation and wiring, by requirement and scenario."""

import asyncio
import importlib
import logging
import threading
from uuid import uuid4

import pytest

import mnemic
from mnemic.hyde import AsyncHydeEngine, HydeConfig
from mnemic.model import LinkType
from tests.support.doors import opened
from tests.support.hyde_twin import LineModel, TableEmbedder
from tests.support.hyde_worlds import AXES, WINDOW, run

try:
    from mnemic.hyde import format_injection
except ImportError:
    format_injection = None


def found(*contents, links=(), **options):
    """Return what a turn finds in a memory with these contents and links."""

    async def scenario(w):
        for start, end, *how in links:
            await w.memory.link(w.ids[start], w.ids[end], *how)
        return await w.engine.retrieve("t", WINDOW)

    return run(scenario, *contents, **options)


# Search


@pytest.mark.requirement("C106")
def test_ties_of_one_moment_go_to_the_smaller_id():
    equal = found(*"cab", table=dict.fromkeys("cab", AXES["east"]))
    assert [one.id for one in equal] == sorted(one.id for one in equal)


# Versions


@pytest.mark.requirement("C109")
def test_no_more_than_the_wanted_versions_are_read():
    async def scenario(w):
        for number in range(8):
            w.embedder.table[f"v{number}"] = AXES["east"]
            await w.add(f"v{number}", supersedes=w.ids.get(f"v{number - 1}"))
        (found,) = await w.engine.retrieve("t", WINDOW)
        assert [one.content for one in found.versions] == ["v5", "v6"]

    run(scenario, max_versions=2)


# The cache of a turn


@pytest.mark.requirement("C112")
@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_a_turn_without_a_name_is_never_cached(blank):
    async def scenario(w):
        for calls in (1, 2, 3):
            assert await w.ask(blank) == ["east"]
            assert len(w.model.calls) == calls

    run(scenario, "east")


@pytest.mark.requirement("C111", "R357")
def test_a_definite_nothing_is_cached():
    async def scenario(w):
        assert await w.ask() == []
        assert await w.ask() == []
        assert len(w.model.calls) == 1

    run(scenario, "north", min_similarity=0.9)


# Stages and their failures


@pytest.mark.requirement("R360", "R365")
def test_no_hypotheses_and_no_window_give_nothing():
    async def scenario(w):
        embedded = len(w.embedder.calls)
        assert await w.ask("a") == []
        assert len(w.model.calls) == 1
        assert await w.ask("b", []) == []
        assert len(w.model.calls) == 1
        assert len(w.embedder.calls) == embedded

    run(scenario, "east", model=LineModel(text="\n"))


@pytest.mark.requirement("C111")
def test_a_failure_holds_for_the_rest_of_its_turn_and_not_longer():
    async def scenario(w):
        w.model.failure = ConnectionError("no route")
        assert await w.ask("t") == []
        w.model.failure = None
        assert await w.ask("t") == []
        assert len(w.model.calls) == 1
        assert await w.ask("u") == ["east"]

    run(scenario, "east")


@pytest.mark.requirement("C111")
def test_a_failure_is_forgotten_after_the_back_off():
    async def scenario(w):
        w.model.failure = ConnectionError("no route")
        assert await w.ask("t") == []
        w.model.failure = None
        assert await w.ask("t") == ["east"]

    run(scenario, "east", failure_backoff=0)


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
def test_an_empty_memory_gives_nothing_without_a_call_and_is_not_cached():
    async def scenario(w):
        assert await w.ask("t") == []
        assert w.model.calls == []
        await w.add("east")
        assert await w.ask("t") == ["east"]

    run(scenario)


async def pending(w, *contents):
    """Store memories whose vectors are still to be made."""
    w.embedder.failure = ConnectionError("down")
    await w.memory.add_many([*contents], on_embed_error="pending")
    w.embedder.failure = None


@pytest.mark.requirement("C115", "R346", "C168")
def test_a_rebuild_embeds_only_what_has_no_vector():
    async def scenario(w):
        await pending(w, "north")
        w.embedder.calls.clear()
        w.engine.trigger_rebuild()
        await w.until(lambda: "north" in w.embedder.texts)
        assert "east" not in w.embedder.texts
        assert "up" not in w.embedder.texts

    run(scenario, "east", "up")


@pytest.mark.requirement("C108", "R337", "R399")
def test_a_turn_waits_for_the_first_build_within_its_limit_and_asks_no_model_before():
    async def scenario(w):
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

    run(scenario, started=False, timeout=0.1)


@pytest.mark.requirement("R329", "R346")
def test_memories_of_both_scopes_are_found():
    async def scenario(w):
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

    run(scenario)


@pytest.mark.requirement("R346")
def test_what_is_stored_is_found_by_the_next_turn():
    async def scenario(w):
        assert await w.ask("a") == ["half east"]
        await w.add("east")
        assert await w.ask("b") == ["east", "half east"]
        await w.memory.delete(w.ids["east"])
        assert await w.ask("c") == ["half east"]

    run(scenario, "half east")


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
def test_two_hundred_turns_at_once_each_get_their_own():
    async def scenario(w):
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

    run(scenario, embedder=TableEmbedder(dimensions=32))
