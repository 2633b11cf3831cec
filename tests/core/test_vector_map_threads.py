"""What VectorMap promises to threads: no half a call, no waiting, and a free interpreter."""

import threading
import time

import numpy as np
import pytest

from mnemic import VectorMap
from tests.support.threads import run_together


def whole_state(state, rows=50):
    """Rows whose ids all belong to one state, so that a mixture is recognised."""
    ids = np.arange(rows) + 1000 * state
    return ids, np.full((rows, 8), 1.0, np.float32)


@pytest.mark.requirement("T042", "R399")
@pytest.mark.usefixtures("quiet_threads")
def test_twenty_readers_beside_five_swapping_writers_see_whole_states_only():
    vectors = VectorMap(8)
    vectors.replace(*whole_state(0))

    def read():
        for _ in range(150):
            hits = vectors.search(np.ones(8, np.float32), k=60)
            assert len(hits.ids) == 50
            assert len(set((hits.ids // 1000).tolist())) == 1
            assert len(vectors) == 50

    def swap(worker):
        for turn in range(60):
            vectors.replace(*whole_state(worker * 100 + turn))

    run_together(*[read] * 20, *[lambda w=worker: swap(w) for worker in range(1, 6)])


@pytest.mark.usefixtures("quiet_threads")
def test_an_upsert_of_many_rows_is_seen_whole_or_not_at_all():
    vectors = VectorMap(8, metric="inner_product")
    ids = np.arange(300)
    vectors.replace(ids, np.full((300, 8), 1.0, np.float32))
    done = threading.Event()

    def read():
        while not done.is_set():
            scores = vectors.search(np.ones(8, np.float32), k=300).scores
            assert len(scores) == 300
            assert scores[0] == scores[-1]
            rows = vectors.get(ids)
            assert (rows == rows[0, 0]).all()

    def write():
        for turn in range(400):
            vectors.upsert(ids, np.full((300, 8), float(turn), np.float32))
        done.set()

    run_together(read, read, write)


@pytest.mark.usefixtures("quiet_threads")
def test_readers_and_writers_agree_with_a_model():
    """Each writer owns its ids, so what a reader may see of one id only ever moves forward."""
    vectors = VectorMap(16, metric="inner_product")
    steps = 300

    def row(step):
        return np.full((1, 16), step, np.float32)

    def write(owner):
        for step in range(1, steps + 1):
            vectors.upsert([owner], row(step))
            assert vectors.get(owner)[0] == step
            if step % 7 == 0:
                assert vectors.remove([owner]) == 1
                assert owner not in vectors
                vectors.upsert([owner], row(step))

    def read():
        latest = dict.fromkeys(range(4), 0.0)
        for _ in range(600):
            hits = vectors.search(np.ones(16, np.float32), k=10)
            for owner, score in zip(hits.ids.tolist(), hits.scores.tolist(), strict=True):
                assert score / 16 >= latest[owner]
                latest[owner] = score / 16

    run_together(*[lambda o=owner: write(o) for owner in range(4)], read, read)
    assert vectors.get([0, 1, 2, 3])[:, 0].tolist() == [steps] * 4


def overlap(work):
    """Whether another thread gets to run Python while `work` is under way."""
    started, seen = threading.Event(), []
    finished = threading.Event()

    def watch():
        started.wait()
        while not finished.is_set():
            seen.append(time.perf_counter())
            time.sleep(0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    started.set()
    begin = time.perf_counter()
    work()
    end = time.perf_counter()
    finished.set()
    watcher.join()
    margin = (end - begin) / 4
    return any(begin + margin < moment < end - margin for moment in seen)


def test_the_interpreter_is_free_during_scans_and_large_writes():
    """One call far longer than the interpreter's switch interval must not stop other threads."""
    rows = np.random.default_rng(0).standard_normal((60_000, 128)).astype(np.float32)
    vectors = VectorMap(128)
    assert overlap(lambda: vectors.replace(np.arange(60_000), rows))
    assert overlap(lambda: vectors.search(rows[:60], k=60_000))


def test_two_scans_overlap_in_time():
    rows = np.random.default_rng(0).standard_normal((40_000, 128)).astype(np.float32)
    vectors = VectorMap(128)
    vectors.replace(np.arange(40_000), rows)
    windows = {}

    def scan(name):
        begin = time.perf_counter()
        vectors.search(rows[:80], k=40_000)
        windows[name] = (begin, time.perf_counter())

    run_together(lambda: scan("one"), lambda: scan("other"))
    (begin, end), (other_begin, other_end) = windows["one"], windows["other"]
    assert max(begin, other_begin) < min(end, other_end)
