"""A KeyboardInterrupt at any moment of a write neither hangs nor spoils a connection.

The moments are those of mnemic's functions. Inside the pool of connections an interrupt may cost
one of them, and inside `threading.Condition.__enter__` it leaves a lock locked for good.
"""

import signal
import threading

import pytest

from mnemic import Memory
from tests.support.interrupts import PACKAGE, interrupted_at


@pytest.fixture(autouse=True)
def limited():
    """End the test if a call hangs: a Python timeout would wait for the call."""
    timer = threading.Timer(240, signal.raise_signal, (signal.SIGABRT,))
    timer.daemon = True
    timer.start()
    yield
    timer.cancel()


# An interrupt while a generator is closed is reported there, and goes no further.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("part", range(3))
def test_an_add_that_is_interrupted_at_any_moment_lets_the_next_one_through(database, part):
    with Memory(database, embedder=None) as memory:
        memory.add("first")
        moment = 10 * part
        while True:
            before = memory.count()
            has_ended = interrupted_at(moment, lambda: memory.add("interrupted"), PACKAGE)
            memory.add("next")
            assert memory.count() - before in (1, 2)
            if has_ended:
                break
            moment += 31
        assert moment > 300
        assert memory.verify().ok
