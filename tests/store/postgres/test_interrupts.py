"""A KeyboardInterrupt at any moment of a write neither hangs nor spoils a connection.

The moments are those of mnemic's functions: inside the pool of connections an interrupt may cost
one of them.
"""

import subprocess
import sys
import threading
from itertools import count

import pytest

from mnemic import Encryption, Memory
from mnemic.errors import BusyThreadError
from mnemic.store.postgres import positions
from mnemic.store.postgres.positions import Positions
from mnemic.store.postgres.target import target_of
from mnemic.store.sql import sealing
from mnemic.store.values import LogPosition
from mnemic.threads.locks import is_settling
from tests.support.interrupts import interrupted_at
from tests.support.keys import KEY, OTHER_KEY
from tests.support.processes import ENVIRONMENT

PROGRAM = """
import faulthandler, sys
from mnemic import Memory
from tests.support.interrupts import PACKAGE, interrupted_at

# Whatever hangs, all threads are shown and this process ends: a timeout in Python may wait itself.
faulthandler.dump_traceback_later(200, exit=True)
sys.unraisablehook = lambda _: None  # an interrupt while a generator is closed goes no further
moment = int(sys.argv[2])
with Memory(sys.argv[1], embedder=None) as memory:
    memory.add("first")
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
"""


@pytest.mark.parametrize("part", range(3))
def test_an_add_that_is_interrupted_at_any_moment_lets_the_next_one_through(database, part):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, database, str(10 * part)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-10_000:]


CALLS = {
    "advance": lambda asking: asking.advance({"agent": LogPosition(2, 0)}),
    "forget": lambda asking: asking.forget(["agent"]),
    "latest": lambda asking: asking.latest("agent", 60),
    "close": Positions.close,
}


@pytest.fixture
def nowhere(tmp_path):
    """Return a database whose server is unreachable."""
    return target_of(f"postgresql://mnemic@/none?host={tmp_path}")


def ends(call, asking):
    thread = threading.Thread(target=call, args=(asking,), daemon=True)
    thread.start()
    thread.join(10)
    return not thread.is_alive()


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_at_any_moment_of_a_call_leaves_positions_to_other_threads(name, nowhere):
    call = CALLS[name]
    for moment in count():
        asking = Positions(nowhere, lambda _: LogPosition(1, 0))
        if name != "latest":  # which starts the thread
            CALLS["latest"](asking)
        has_ended = interrupted_at(moment, lambda asking=asking: call(asking))
        if name != "close":
            assert ends(CALLS["advance"], asking)
            assert ends(CALLS["latest"], asking)
        assert ends(Positions.close, asking)
        if has_ended:
            break
    assert moment >= 4


def test_a_thread_whose_start_is_interrupted_at_any_moment_can_be_closed(nowhere):
    for moment in count():
        asking = Positions(nowhere, lambda _: LogPosition(1, 0))
        has_ended = interrupted_at(moment, lambda asking=asking: CALLS["latest"](asking))
        asking.close()
        if has_ended:
            break
    assert moment >= 30


def test_a_search_in_the_midst_of_a_question_of_its_own_thread_is_refused_at_once(
    database, monkeypatch
):
    """As that of a signal handler, which the answer would wait for."""
    await_socket, refused = positions._await_socket, []

    def interrupted(*args, **options):
        if threading.current_thread() is threading.main_thread():
            with pytest.raises(BusyThreadError):
                memory.search("first")
            refused.append(1)
        await_socket(*args, **options)

    with Memory(database, embedder=None) as memory:
        memory.add("first")
        memory.search("first")
        monkeypatch.setattr(positions, "_await_socket", interrupted)
        assert memory.search("first").stale_since is None
    assert refused


def test_a_call_in_the_midst_of_a_read_of_keys_is_refused_at_once(database, monkeypatch):
    """As that of a signal handler, which would wait for the one connection that reads them."""
    stored_keys, refused = sealing.stored_keys, []

    def interrupted(*args):
        if is_settling():  # other reads of keys leave that connection alone
            with pytest.raises(BusyThreadError):
                memory.rotate_key(OTHER_KEY)
            refused.append(1)
        return stored_keys(*args)

    with Memory(database, embedder=None, encryption=Encryption(KEY)) as memory:
        memory.add("first", sensitive=True)
        monkeypatch.setattr(sealing, "stored_keys", interrupted)
        memory.rotate_key(OTHER_KEY)
        monkeypatch.undo()
        assert refused
        assert [entry.content for entry in memory.list()] == ["first"]
