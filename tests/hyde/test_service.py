"""The service of an engine: its doors, its memory, and its end."""

import asyncio
import sqlite3
import sys

import pytest

import mnemic
from mnemic import Memory
from mnemic.hyde import AsyncHydeEngine, HydeConfig, HydeEngine
from tests.support.entries import entry
from tests.support.hyde_twin import LineModel, TableEmbedder
from tests.support.hyde_worlds import AXES, WINDOW, in_world, run


@pytest.mark.requirement("R353")
@in_world("east")
async def test_starting_twice_is_starting_once(w):
    for _ in range(3):
        w.engine.start()
    await w.engine.ready(20)
    assert await w.ask() == ["east"]


VIEWS = {
    "awaited": lambda memory: memory,
    "plain": lambda memory: memory.sync,
    "view": lambda memory: memory.scoped(session_id="s"),
    "plain view": lambda memory: memory.sync.scoped(session_id="s"),
}


@pytest.mark.requirement("R351")
@pytest.mark.parametrize("view", VIEWS)
@in_world("east")
async def test_any_door_and_any_view_of_a_memory_will_do(w, view):
    await w.add("half east", session_id="s")
    given = VIEWS[view](w.memory)
    async with AsyncHydeEngine(given, w.embedder, w.model, HydeConfig()) as engine:
        engine.start()
        await engine.ready(20)
        found = [one.content for one in await engine.retrieve("t", WINDOW)]
    assert found == (["half east"] if "view" in view else ["east", "half east"])


@pytest.mark.requirement("R351", "R329")
def test_a_long_term_memory_will_do():
    async def main():
        embedder = TableEmbedder(AXES)
        async with mnemic.compat.AsyncLongTermMemory(
            ":memory:", agent_id="aide", embedder=embedder
        ) as memory:
            await memory.store(entry("east"))
            async with AsyncHydeEngine(
                memory, embedder, LineModel(["east"]), HydeConfig()
            ) as engine:
                engine.start()
                await engine.ready(20)
                return [one.content for one in await engine.retrieve("t", WINDOW)]

    assert asyncio.run(main()) == ["east"]


@pytest.mark.requirement("C169", "R352")
@in_world("east", enabled=False)
async def test_a_constructed_engine_is_on(w):
    assert await w.ask() == ["east"]


@pytest.mark.requirement("R395")
def test_a_file_is_the_same_kind_of_file_with_an_engine(tmp_path):
    def tables(path):
        with sqlite3.connect(path) as connection:
            names = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name")
            return names.fetchall(), connection.execute("PRAGMA user_version").fetchone()

    before, after = str(tmp_path / "a.db"), str(tmp_path / "b.db")

    async def scenario(_):
        return None

    with Memory(before, embedder=TableEmbedder(AXES)) as memory:
        memory.add("east")

    async def asking(w):
        assert await w.ask() == ["east"]

    run(asking, "east", path=after)
    assert tables(before) == tables(after)
    run(scenario, path=before)
    assert tables(before) == tables(after)


class EndingModel(LineModel):
    """Ends its event loop by a task or by a callback, as long as it is told to."""

    ends = None

    async def complete(self, prompt, *, system=None):
        if self.ends == "task":
            await asyncio.wait_for(asyncio.to_thread(sys.exit), 5)
        if self.ends == "inner task":
            await asyncio.create_task(_exit())
        if self.ends == "callback":
            asyncio.get_running_loop().call_soon(sys.exit)
            await asyncio.sleep(60)
        return await super().complete(prompt, system=system)


async def _exit():
    sys.exit()


@pytest.mark.parametrize("ends", ["task", "inner task", "callback"])
def test_a_model_that_ends_the_event_loop_costs_the_turn_its_memories_and_no_later_one(ends):
    model, embedder = EndingModel(["east"]), TableEmbedder(AXES)
    with Memory(":memory:", embedder=embedder) as memory:
        memory.add_many(["east", "north"])
        with HydeEngine(memory, embedder, model, HydeConfig(timeout=20)) as engine:
            assert engine.ready(20)
            model.ends = ends
            assert not engine.retrieve("first", WINDOW)
            model.ends = None
            assert engine.retrieve("first", WINDOW)[0].content == "east"
            assert engine.retrieve("second", WINDOW)[0].content == "east"
