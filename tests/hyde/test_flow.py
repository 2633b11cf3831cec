"""Whatever fails at whatever stage: the turn gets nothing, quietly, and the next one is well."""

import asyncio
import contextlib
import logging
import threading
from functools import partial

import numpy as np
import pytest

from mnemic import Memory
from mnemic.errors import MnemicError
from mnemic.hyde import AsyncHydeEngine, HydeConfig, HydeEngine
from tests.support.hyde_twin import LineModel, PlainLineModel, TableEmbedder
from tests.support.hyde_worlds import AXES, WINDOW, in_world, run
from tests.support.threads import run_together

CANARY = "zanzibar"


class BadError(Exception):
    """An error whose text has what nobody may see."""

    def __str__(self):
        return f"failed with {CANARY}"


class UnprintableError(Exception):
    """An error that cannot be shown."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


ANSWERS = {
    "none": None,
    "bytes": b"east",
    "number": 7,
    "list": ["east"],
    "dict": {"choices": []},
    "blank": "  \n\n",
    "surrogate": "\ud800 half",
    "nul": "\0",
    "object": object(),
}
ERRORS = [
    BadError(),
    UnprintableError(),
    TimeoutError(CANARY),
    MemoryError(CANARY),
    RecursionError(CANARY),
    StopAsyncIteration(CANARY),
    StopIteration(CANARY),
    MnemicError(CANARY),
    OSError(CANARY),
    AssertionError(CANARY),
]


def quiet(caplog):
    """Check that the engine logged nothing above debug, nobody a warning, and no content."""
    loud = [
        record.getMessage()
        for record in caplog.records
        if record.levelno
        > (logging.DEBUG if record.name.startswith("mnemic.hyde") else logging.INFO)
    ]
    assert loud == []
    told = "\n".join(record.getMessage() + str(record.exc_text) for record in caplog.records)
    assert CANARY not in told
    assert "east" not in told


async def is_well(w, turn="next"):
    """Check that the next turn finds what there is."""
    w.model.lines, w.model.failure, w.embedder.failure = ["east"], None, None
    w.embedder.result = None
    assert await w.ask(turn) == ["east"]


@pytest.fixture(autouse=True)
def debug(caplog):
    caplog.set_level(logging.DEBUG, logger="mnemic")


# The language model


@pytest.mark.requirement("R333", "R360", "R389", "T009")
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("kind", [LineModel, PlainLineModel])
def test_any_answer_of_the_model_that_is_none_gives_nothing(answer, kind, caplog):
    async def scenario(w):
        found = await w.ask()
        assert found == [] or answer in {"surrogate", "nul"}
        await is_well(w)

    run(scenario, "east", model=kind(text=ANSWERS[answer]), min_similarity=0.9)
    quiet(caplog)


@pytest.mark.requirement("R333", "R360", "R389", "R398", "T009")
@pytest.mark.parametrize("failure", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", [LineModel, PlainLineModel])
def test_any_error_of_the_model_gives_nothing(failure, kind, caplog):
    async def scenario(w):
        w.model.failure = failure
        assert await w.ask() == []
        assert w.engine.stats().failures == {"hypotheses": 1}
        assert any(record.name.startswith("mnemic.hyde") for record in caplog.records)
        await is_well(w)

    run(scenario, "east", model=kind(["east"]))
    quiet(caplog)


@pytest.mark.requirement("R333", "C125")
def test_an_answer_of_ten_megabytes_is_cut_to_its_first_lines():
    async def scenario(w):
        assert await w.ask() == ["east"]
        assert w.embedder.calls[-1] == ["east", *map(str, range(4))]

    lines = ["east", *map(str, range(1_500_000))]
    run(scenario, "east", lines=lines, min_similarity=0.99, timeout=30)


@pytest.mark.requirement("R333", "C125")
def test_one_line_of_ten_megabytes_ends_within_the_limit(caplog):
    async def scenario(w):
        await w.ask()
        await is_well(w)

    run(scenario, "east", model=LineModel(["word " * 2_000_000]), min_similarity=0.99)
    quiet(caplog)


@pytest.mark.requirement("R333", "R351")
@pytest.mark.parametrize("model", [object(), lambda: None, 7])
def test_what_is_no_model_is_refused_or_gives_nothing(model):
    with Memory(":memory:", embedder=TableEmbedder(AXES)) as memory:
        memory.add("east")
        try:
            engine = HydeEngine(memory, TableEmbedder(AXES), model, HydeConfig())
        except MnemicError:
            return
        with engine:
            assert engine.retrieve("t", WINDOW) == []


# The embedder


RESULTS = {
    "too few": lambda n: np.zeros((n - 1, 4), np.float32),
    "too many": lambda n: np.ones((n + 1, 4), np.float32),
    "nan": lambda n: np.full((n, 4), np.nan, np.float32),
    "infinite": lambda n: np.full((n, 4), np.inf, np.float32),
    "other dimension": lambda n: np.ones((n, 3), np.float32),
    "one axis": lambda n: np.ones(4 * n, np.float32),
    "none": lambda _: None,
    "text": lambda _: "east",
    "words": lambda n: [["a"] * 4] * n,
    "ragged": lambda n: [[1.0] * 4] * (n - 1) + [[1.0]],
}


@pytest.mark.requirement("R333", "R361", "R390", "T010", "C123", "C124")
@pytest.mark.parametrize("result", RESULTS)
def test_any_wrong_vectors_give_nothing(result, caplog):
    async def scenario(w):
        w.model.lines = ["east, in other words", "north, in other words"]
        w.embedder.result = RESULTS[result]
        assert await w.ask() == []
        assert w.engine.stats().failures == {"embedding": 1}
        await is_well(w)

    run(scenario, "east")
    quiet(caplog)


@pytest.mark.requirement("C124")
@in_world("east", lines=["nothing"])
async def test_a_vector_without_direction_finds_nothing_of_its_own(w):
    w.embedder.table["nothing"] = (0, 0, 0, 0)
    assert await w.ask("a") in ([], ["east"])
    w.model.lines = ["nothing", "east"]
    found = await w.engine.retrieve("b", WINDOW)
    assert found == [] or [round(one.score, 6) for one in found] == [1]
    await is_well(w)


@pytest.mark.requirement("R333", "R361", "R390", "T010")
@pytest.mark.parametrize("failure", ERRORS, ids=lambda error: type(error).__name__)
def test_any_error_of_the_embedder_gives_nothing(failure, caplog):
    async def scenario(w):
        w.model.lines = ["east, in other words"]
        w.embedder.failure = failure
        assert await w.ask() == []
        assert w.engine.stats().failures == {"embedding": 1}
        await is_well(w)

    run(scenario, "east")
    quiet(caplog)


# The store


@pytest.mark.requirement("R333", "C150")
def test_a_closed_memory_gives_nothing(caplog):
    async def scenario(w):
        await w.memory.close()
        assert await w.ask() == []
        w.engine.trigger_rebuild()
        assert await w.ask("u") == []

    run(scenario, "east")
    quiet(caplog)


@pytest.mark.requirement("R333", "C150")
def test_a_memory_that_closes_between_the_stages_gives_nothing(caplog):
    async def scenario(w):
        gate = w.model.gate = threading.Event()
        task = asyncio.create_task(w.ask())
        await w.model.entered.wait()
        await w.memory.close()
        gate.set()
        assert await task == []

    run(scenario, "east")
    quiet(caplog)


@pytest.mark.requirement("R391", "R363")
def test_a_neighbour_that_is_deleted_during_the_turn_is_left_out(caplog):
    async def scenario(w):
        await w.memory.link(w.ids["east"], w.ids["north"])
        gate = w.model.gate = threading.Event()
        task = asyncio.create_task(w.ask())
        await w.model.entered.wait()
        await w.memory.delete(w.ids["north"], permanent=True)
        gate.set()
        assert await task == ["east"]

    run(scenario, "east", "north", min_similarity=0.1)
    quiet(caplog)


# The caller


@pytest.mark.requirement("R333", "R355")
@pytest.mark.parametrize(
    "window",
    [["\ud800"], ["x" * 10_000_000], [""], ["user: \0"], ["user: </s>"] * 10_000],
    ids=["surrogate", "long", "empty", "nul", "many"],
)
@in_world("east")
async def test_any_window_of_texts_is_taken(w, window):
    assert await w.ask("t", window) in ([], ["east"])
    await is_well(w)


@pytest.mark.requirement("C111", "C110", "R333")
@pytest.mark.parametrize("steps", range(40))
@in_world("east", "north", min_similarity=0.1, timeout=30)
async def test_a_cancellation_at_any_step_leaves_the_next_call_well(w, steps):
    await w.memory.link(w.ids["east"], w.ids["north"])
    task = asyncio.create_task(w.ask("t"))
    for _ in range(steps):
        await asyncio.sleep(0)
        if task.done():
            break
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        assert await task == ["east", "north"]
    assert await w.ask("t") == ["east", "north"]
    assert await w.ask("u") == ["east", "north"]


@pytest.mark.requirement("C111", "R356")
@in_world("east", model=LineModel(hangs=True), timeout=60)
async def test_a_close_during_a_turn_ends_it(w):
    task = asyncio.create_task(w.ask())
    await w.model.entered.wait()
    await w.engine.aclose()
    done, _ = await asyncio.wait([task], timeout=20)
    assert done
    assert task.cancelled() or task.result() == []


@pytest.mark.requirement("R356", "R333")
def test_loops_in_several_threads_may_share_one_engine():
    with Memory(":memory:", embedder=TableEmbedder(AXES)) as memory:
        memory.add("east")
        engine = AsyncHydeEngine(memory, TableEmbedder(AXES), LineModel(["east"]), HydeConfig())
        seen = []

        def work(number):
            async def main():
                turns = [engine.retrieve(f"{number % 2}", WINDOW) for _ in range(5)]
                engine.trigger_rebuild()
                return await asyncio.gather(*turns)

            seen.extend([one.content for one in found] for found in asyncio.run(main()))

        engine.start()
        run_together(*[partial(work, number) for number in range(6)])
        engine.sync.close()
    assert seen == [["east"]] * 30
