"""What a forked process may do with a memory that its parent had open: nothing, and it is told."""

import os
import subprocess
import sys

import pytest

from tests.support.processes import ENVIRONMENT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PROGRAM = """
import asyncio, os, sys
from mnemic.errors import StoreError
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.memory import Memory
from tests.support.embedders import WordEmbedder

path = sys.argv[1]

def refused(call):
    try:
        call()
    except StoreError as error:
        assert "fork" in str(error), error
    else:
        raise AssertionError("not refused")

def in_child(act):
    child = os.fork()
    if child == 0:
        try:
            act()
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def opened(**options):
    return Memory(path, embedder=WordEmbedder(), **options)
"""


def run(body, path):
    # A fork beside the writer's thread is what is tested, and what Python 3.12 warns of.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning"]
    subprocess.run(
        [*command, "-c", PROGRAM + body, str(path)], env=ENVIRONMENT, check=True, timeout=60
    )


def test_every_call_on_a_memory_opened_before_a_fork_is_refused_and_the_parents_still_works(
    tmp_path,
):
    body = """
memory = opened()
added = memory.add("from the parent")
def act():
    refused(lambda: memory.add("x"))
    refused(lambda: memory.add_many(["x", "y"]))
    refused(lambda: memory.search("parent"))
    refused(lambda: memory.get(added.id))
    refused(lambda: memory.update(added.id, content="x"))
    refused(lambda: memory.delete(added.id))
    refused(lambda: memory.restore(added.id))
    refused(lambda: memory.count())
    memory.close()
in_child(act)
memory.add("afterwards")
assert memory.count() == 2
memory.close()
assert os.listdir(os.path.dirname(path)) == ["a.db"]
"""
    run(body, tmp_path / "a.db")


def test_the_memory_and_opening_it_again_say_the_same_and_what_they_advise_works(tmp_path):
    body = """
memory = opened()
memory.add("from the parent")
said = []
def told(call):
    try:
        call()
    except StoreError as error:
        said.append(str(error))
def act():
    told(lambda: memory.count())
    told(opened)
    assert len(said) == 2 and said[0] == said[1], said
    assert "close it before a fork and open it afterwards" in said[0], said
in_child(act)
memory.close()
def afterwards():
    with opened() as again:
        assert again.count() == 1
in_child(afterwards)
"""
    run(body, tmp_path / "a.db")


def test_closing_in_a_forked_process_waits_for_no_lock_that_another_thread_had(tmp_path):
    body = """
import signal, threading
from mnemic.threads.locks import Lock

def locks_of(root):
    found, seen, waiting = [], set(), [root]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, (type(threading.Lock()), Lock)):
            found.append(each)
        elif type(each).__module__.partition(".")[0] in ("mnemic", "concurrent"):
            waiting += getattr(each, "__dict__", {}).values()
    return found

memory = opened()
memory.add("from the parent")
memory.search("parent")
memory.repository.executor.submit(int).result()
held, is_held, is_over = [], threading.Event(), threading.Event()
def hold():
    held[:] = [lock for lock in locks_of(memory) if lock.acquire(blocking=False)]
    is_held.set()
    is_over.wait(40)
    for lock in held:
        lock.release()
another = threading.Thread(target=hold)
another.start()
is_held.wait()
number = len(held)
def act():
    signal.alarm(20)
    memory.close()
try:
    in_child(act)
finally:
    is_over.set()
    another.join()
assert number >= 10, number
memory.close()
"""
    run(body, tmp_path / "a.db")


def test_the_asynchronous_door_is_refused_after_a_fork_too(tmp_path):
    body = """
memory = AsyncLongTermMemory(path, embedder=WordEmbedder())
def act():
    refused(lambda: asyncio.run(memory.count()))
    refused(lambda: asyncio.run(memory.search_semantic("x")))
    asyncio.run(memory.close())
in_child(act)
assert asyncio.run(memory.count()) == 0
asyncio.run(memory.close())
"""
    run(body, tmp_path / "a.db")


def test_a_file_that_was_open_at_the_fork_is_not_opened_again_where_writes_would_be_lost(tmp_path):
    body = """
memory = opened()
memory.add("from the parent")
link = path + ".link"
os.symlink(path, link)
def act():
    refused(opened)
    refused(lambda: opened(agent_id="other"))
    refused(lambda: Memory(link, embedder=WordEmbedder()))
    memory.close()
    refused(opened)
    Memory(path + ".other", embedder=WordEmbedder()).close()
    Memory(":memory:", embedder=WordEmbedder()).close()
    in_child(lambda: refused(opened))
in_child(act)
assert memory.count() == 1
memory.close()
"""
    run(body, tmp_path / "a.db")


def test_a_file_that_was_closed_before_the_fork_or_is_opened_after_it_is_shared(tmp_path):
    body = """
memory = opened()
memory.add("from the parent")
memory.close()
def act():
    child = opened()
    child.add("from the child")
    assert child.count() == 2
    child.close()
in_child(act)
memory = opened()
assert memory.count() == 2
memory.close()
"""
    run(body, tmp_path / "a.db")
