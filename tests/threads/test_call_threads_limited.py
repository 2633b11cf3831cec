"""Callers' coroutines within the limit of a turn: those that hang, and callers that leave."""

import asyncio
import threading

import pytest

from tests.support.hyde_twin import LineModel
from tests.support.hyde_worlds import run


@pytest.mark.requirement("R398", "R389", "R392", "R335", "R359", "C128", "C110")
def test_a_language_model_that_hangs_ends_with_the_limit():
    async def scenario(w):
        assert await w.ask() == []
        assert len(w.model.calls) == 1
        await w.until(lambda: w.model.cancelled == 1)  # its work is not left running

    run(scenario, "east", model=LineModel(hangs=True), timeout=0.05)


@pytest.mark.requirement("R392", "C110", "R390")
def test_an_embedder_that_hangs_ends_with_the_limit_and_its_late_vectors_are_dropped():
    async def scenario(w):
        gate = w.embedder.gate = threading.Event()
        assert await w.ask("t") == []
        gate.set()
        w.embedder.gate = None
        assert await w.ask("t") == []  # for the rest of the turn
        assert await w.ask("u") == ["east"]

    run(
        scenario,
        "east",
        lines=["east, in other words"],
        table={"east, in other words": (1, 0, 0, 0)},
        timeout=0.2,
    )


@pytest.mark.requirement("C113", "C111")
def test_a_caller_that_leaves_does_not_stop_those_that_wait_with_it():
    async def scenario(w):
        gate = w.model.gate = threading.Event()
        first, *others = [asyncio.create_task(w.ask("t")) for _ in range(5)]
        await w.model.entered.wait()
        first.cancel()
        await asyncio.sleep(0)
        gate.set()
        assert await asyncio.gather(*others) == [["east"]] * 4
        with pytest.raises(asyncio.CancelledError):
            await first

    run(scenario, "east", timeout=30)
