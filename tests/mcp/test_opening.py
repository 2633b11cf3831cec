"""The memory of a server is opened beside its start, and again where that failed."""

from contextlib import suppress

from mnemic import Memory
from mnemic.errors import StoreBusyError
from mnemic.mcp.opening import OpenedMemory
from tests.mcp.running import run


@run
async def test_what_failed_to_open_is_opened_by_the_next_call():
    outcomes = [StoreBusyError("busy"), Memory(":memory:", embedder=None)]

    def open_memory():
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    opened = OpenedMemory(open_memory, "ana")
    with suppress(StoreBusyError):
        await opened.memory()
    await (await opened.memory()).add("Ana lives in Oslo.")
    assert [entry.user_id for entry in opened.wait().list()] == ["ana"]


@run
async def test_without_a_user_it_is_that_of_nobody():
    memory = Memory(":memory:", embedder=None)
    memory.add("Ben lives in Rome.", user_id="ben")
    opened = OpenedMemory(lambda: memory, None)
    assert not await (await opened.memory()).count()
