"""Threads of the package: their names, and their end."""

import re
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from mnemic.threads.background import Background
from mnemic.threads.locks import settling
from tests.support.everything import Everything
from tests.support.places import SEARCHED, Places
from tests.support.waiting import until

SECONDS = 20
OURS_OR_ASYNCIO = re.compile(r"mnemic-|asyncio_|.*\(_do_shutdown\)")
TASKS = Path("/proc/self/task")


def test_work_is_begun_once_at_a_time_and_waited_for():
    background, may_end, done = Background("test"), threading.Event(), []

    def work(number):
        assert may_end.wait(SECONDS)
        done.append((number, threading.current_thread().name, threading.current_thread().daemon))

    background.begin(work, 1)
    background.begin(work, 2)
    assert background.is_running
    background.join(0.01)
    assert not done
    may_end.set()
    background.join()
    assert not background.is_running
    background.begin(work, 3)
    background.join()
    assert done == [(1, "mnemic-test", True), (3, "mnemic-test", True)]


def test_work_may_wait_for_nothing_of_its_own():
    background, ended = Background("test"), threading.Event()

    def work():
        background.join()
        ended.set()

    background.begin(work)
    assert ended.wait(SECONDS)


def test_where_no_thread_is_to_be_had_the_next_call_tries_again(monkeypatch):
    background, done = Background("test"), []

    def fail(_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        background.begin(done.append, 1)
    assert not background.is_running
    background.join()
    background.begin(done.append, 2)
    background.join()
    assert done == [2]


def test_a_thread_starts_where_its_thread_holds_the_lock_of_libraries():
    background, done = Background("test"), []
    with settling():
        background.begin(done.append, 1)
    background.join()
    assert done == [1]


def new_threads(earlier):
    return {thread.name for thread in threading.enumerate() if thread not in earlier}


def threads_of_the_core():
    """Return the names of threads that Python does not know."""
    names = []
    for path in TASKS.iterdir():
        with suppress(FileNotFoundError):  # that thread has ended since
            names.append(path.joinpath("comm").read_text().strip())
    return [name for name in names if name.startswith("mnemic-")]


@pytest.mark.parametrize("kind", [":memory:", *SEARCHED])
def test_threads_have_names_of_their_own_and_close_ends_them(kind, tmp_path, monkeypatch):
    earlier, seen, run = set(threading.enumerate()), set(), threading.Thread.run

    def note_and_run(thread):
        seen.add(thread.name)
        run(thread)

    monkeypatch.setattr(threading.Thread, "run", note_and_run)
    with Places("sqlite" if kind == ":memory:" else kind, tmp_path) as places:
        urls = [":memory:", ":memory:"] if kind == ":memory:" else [places.new(), places.new()]
        everything = Everything(kind, 0.2, *urls, tmp_path)
        everything.await_calls()
        for name, call in (everything.frequent() | everything.rare()).items():
            everything.make(name, call)
        everything.close()
        until(lambda: new_threads(earlier) == set(), SECONDS)
        if TASKS.exists():
            assert threads_of_the_core() == []
    assert [name for name in seen if not OURS_OR_ASYNCIO.match(name)] == []
    assert {"mnemic-writer", "mnemic-embedder", "mnemic-hyde-build", "mnemic-reembed"} <= seen
