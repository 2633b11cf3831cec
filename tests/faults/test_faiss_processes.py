"""FAISS and its process: what ends it, what is forked off, and what runs short."""

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from mnemic.index import faiss_source
from mnemic.index.choice import KINDS, FaissIndex, FaissOptions
from mnemic.index.faiss_source import FaissSource
from tests.support.processes import ENVIRONMENT

BEGIN = """
import atexit, os, sys, threading, time
import numpy as np
from mnemic.index.choice import FaissOptions
from mnemic.index.faiss_source import FaissSource

def drawn(number, dim=16, seed=0):
    return np.random.default_rng(seed).standard_normal((number, dim)).astype(np.float32)

def rows(first, number):
    return np.arange(first, first + number)
"""


def run(program, *, timeout=100):
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c"]
    return subprocess.run(
        [*command, BEGIN + textwrap.dedent(program)],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def drawn(number, dim=16, seed=0):
    return np.random.default_rng(seed).standard_normal((number, dim)).astype(np.float32)


def raising(error):
    def fail(*_):
        raise error

    return fail


def test_a_program_that_ends_while_an_index_is_built_ends_well():
    # FAISS asks often whether to go on, and the interpreter takes long to end.
    done = run("""
        source = FaissSource(768, FaissOptions(build_depth=400))
        source.add(rows(1, 5000), drawn(5000, 768))
        kept = [[object() for _ in range(10)] for _ in range(300_000)]
        assert source.waiting
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_program_that_ends_while_a_daemon_searches_ends_well():
    done = run("""
        source = FaissSource(16)
        source.add(rows(1, 2000), drawn(2000))
        source.settle()
        queries = drawn(50, seed=1)
        def search():
            while True:
                source.nearest(queries, 50, None)
        threading.Thread(target=search, daemon=True).start()
        time.sleep(0.2)
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("kind", KINDS)
def test_a_forked_process_gets_no_proposals_waits_for_no_lock_and_can_make_an_index_anew(kind):
    done = run(f"""
        import signal
        options = FaissOptions({kind!r})
        source = FaissSource(16, options)
        source.add(rows(1, 3000), drawn(3000))
        with source._step_lock, source._lock.writing(), source._queue_lock:
            child = os.fork()
            if not child:
                signal.alarm(60)
                assert source.nearest(drawn(1), 5, None).tolist() == []
                source.add(rows(1, 1), drawn(1))
                source.settle()
                source.close()
                del source
                fresh = FaissSource(16, options)
                fresh.add(rows(1, 3000), drawn(3000))
                fresh.settle()
                assert fresh.nearest(drawn(1), 5, None)[0] == 1
                sys.exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        source.settle()
        assert source.nearest(drawn(1), 5, None)[0] == 1
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_processes_forked_off_while_an_index_is_built_end_well():
    done = run("""
        source = FaissSource(64)
        source.add(rows(1, 6000), drawn(6000, 64))
        for _ in range(20):
            child = os.fork()
            if not child:
                fresh = FaissSource(64)
                fresh.add(rows(1, 300), drawn(300, 64))
                fresh.settle()
                sys.exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        source.close()
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's")
@pytest.mark.parametrize("kind", ["hnsw", "flat"])
def test_a_lack_of_memory_ends_no_process(kind):
    done = run(f"""
        import resource
        source = FaissSource(16, FaissOptions({kind!r}))
        source.add(rows(1, 5000), drawn(5000))
        source.settle()
        query, more = drawn(1), drawn(2000, seed=1)
        new = rows(5001, 2000)
        with open("/proc/self/statm") as told:
            pages = int(told.read().split()[0])
        held = [None] * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), -1))
        at = 0
        for size in (1 << 20, 1 << 16, 1 << 12):
            try:
                while True:
                    held[at] = bytes(size)
                    at += 1
            except MemoryError:
                pass
        del held[at - 40 : at]
        told = []
        for call in (lambda: source.nearest(query, 2000, None), lambda: source.add(new, more)):
            try:
                call()
            except MemoryError:
                told.append("MemoryError")
        resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
        del held
        source.settle()
        assert told[0] == "MemoryError", told
    """)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [(threading.Thread, "start", RuntimeError), (FaissIndex, "require_memory", MemoryError)],
)
def test_a_source_without_a_thread_compares_what_waits_and_tries_again(
    monkeypatch, caplog, kind, name, error
):
    source = FaissSource(16)
    with monkeypatch.context() as patched:
        patched.setattr(kind, name, raising(error))
        source.add(np.arange(1, 11), drawn(10))
        source.settle()
    assert source.waiting == 10
    assert source.nearest(drawn(1), 5, None)[0] == 1
    assert "No thread" in caplog.text
    source.add(np.arange(11, 12), drawn(1, seed=1))
    source.settle()
    assert source.waiting == 0


def test_a_change_that_fails_halfway_is_seen_by_no_search(monkeypatch):
    source, vectors = FaissSource(16), drawn(600)
    source.add(np.arange(1, 301), vectors[:300])
    source.settle()
    add, wrong = FaissIndex.add, []

    def add_and_fail(*given):
        add(*given)
        raise MemoryError

    def search():
        while not source._is_given_up:
            try:
                source.nearest(vectors[:1], 400, None)
            except IndexError as error:
                wrong.append(error)

    searching = threading.Thread(target=search)
    searching.start()
    monkeypatch.setattr(FaissIndex, "add", add_and_fail)
    source.add(np.arange(301, 601), vectors[300:])
    searching.join()
    source.settle()
    assert not wrong
    assert source.nearest(vectors[:1], 5, None).tolist() == []


def test_searches_wait_for_no_addition_while_nothing_is_proposed(monkeypatch):
    goes_on = threading.Event()
    monkeypatch.setattr(faiss_source, "MAX_WAITING", 100)
    monkeypatch.setattr(FaissIndex, "add", lambda *_: goes_on.wait(60))
    source = FaissSource(16)
    source.add(np.arange(1, 1001), drawn(1000))
    time.sleep(0.05)
    assert source.nearest(drawn(1), 5, None).tolist() == []
    goes_on.set()
    source.close()


def test_background_work_and_searches_use_one_thread_unless_options_say_more(monkeypatch):
    faiss = pytest.importorskip("faiss")
    told, add = [], FaissIndex.add

    def noted(*given):
        told.append(faiss.omp_get_max_threads())
        add(*given)

    monkeypatch.setattr(FaissIndex, "add", noted)
    before = faiss.omp_get_max_threads()
    for number in (1, 3):
        source = FaissSource(16, FaissOptions(threads=number))
        source.add(np.arange(1, 11), drawn(10))
        source.settle()
    assert told == [1, 3]
    assert faiss.omp_get_max_threads() == before


def test_a_source_that_is_gone_is_registered_no_more():
    number = len(faiss_source._SOURCES)
    source = FaissSource(16)
    assert len(faiss_source._SOURCES) == number + 1
    del source
    assert len(faiss_source._SOURCES) == number
