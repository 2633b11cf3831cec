"""Latency of memories without the embedding: `python -m benches.memory [--folder DIR]`.

Memories come with their vectors and the embedder of queries looks them up, so only mnemic is
measured: checks, SQLite, the flush to the disk, the index. The lower limits are measured in the
same rounds: a bare commit of two inserts, and the vector search itself.
"""

import argparse
import asyncio
import statistics
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import numpy as np

from benches.support.datasets import DIM
from benches.support.memories import StoredVectors
from benches.support.timing import timed
from mnemic import AsyncMemory, Memory, VectorMap
from mnemic.vectors import simd_kernel

ROUNDS = 400
CALLERS = 100
CONCURRENT = 10_000
BATCH = 10_000
BATCHES = 5
SIZES = (10_000, 100_000)
THREADS = 2
SEARCHES = 200
CHECKED = 3


def microseconds(work):
    start = time.perf_counter()
    work()
    return 1e6 * (time.perf_counter() - start)


def show(name, value, unit, note=""):
    print(f"{name:52} {value:10,.0f} {unit:9} {note}", flush=True)


def show_times(name, times, note=""):
    p95 = statistics.quantiles(times, n=20)[18]
    show(name, statistics.median(times), "µs", f"p95 {p95:,.0f} {note}")


def bare_commits(folder):
    """Return a function that commits two inserts of an entry's size, flushed."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE a (x); CREATE TABLE b (x)")

    def commit():
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO a VALUES (?)", (b"x" * 200,))
        connection.execute("INSERT INTO b VALUES (?)", (b"x" * 4 * DIM,))
        connection.execute("COMMIT")

    return commit


def measure_single_adds(folder):
    """Time single durable additions beside bare commits."""
    commit, embedder = bare_commits(folder), StoredVectors(1000)
    bare, added = [], []
    with Memory(folder / "single.db", embedder=embedder) as memory:
        for entry in embedder.entries(ROUNDS):
            bare.append(microseconds(commit))
            added.append(microseconds(lambda one=entry: memory.add_many([one])))
        assert memory.count() == ROUNDS
    floor, ratio = statistics.median(bare), statistics.median(added) / statistics.median(bare)
    show_times("bare commit of two inserts", bare)
    note = f"= {ratio:.2f} x bare; the aim is {1.3 * floor + 150:,.0f}"
    show_times("one durable memory", added, note)


def measure_concurrent_adds(folder):
    embedder = StoredVectors(1000)
    show(f"one by one, from {CALLERS} tasks", tasks_rate(folder, embedder), "entries/s")
    show(f"one by one, from {CALLERS} threads", threads_rate(folder, embedder), "entries/s")


def tasks_rate(folder, embedder):
    entries = iter(embedder.entries(CONCURRENT))

    async def caller(memory):
        for entry in entries:
            await memory.add_many([entry])

    async def run():
        async with AsyncMemory(folder / "tasks.db", embedder=embedder) as memory:
            start = time.perf_counter()
            await asyncio.gather(*(caller(memory) for _ in range(CALLERS)))
            took = time.perf_counter() - start
            assert await memory.count() == CONCURRENT
        return CONCURRENT / took

    return asyncio.run(run())


def threads_rate(folder, embedder):
    entries = embedder.entries(CONCURRENT)
    with Memory(folder / "threads.db", embedder=embedder) as memory:

        def caller(at):
            for entry in entries[at::CALLERS]:
                memory.add_many([entry])

        start = time.perf_counter()
        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(caller, range(CALLERS)))
        took = time.perf_counter() - start
        assert memory.count() == CONCURRENT
    return CONCURRENT / took


def measure_batches(folder):
    embedder, rates = StoredVectors(1000), []
    with Memory(folder / "batches.db", embedder=embedder) as memory:
        for number in range(BATCHES):
            entries = embedder.entries(BATCH)
            took, _ = timed(memory.add_many, entries)
            rates.append(BATCH / took)
            assert memory.count() == BATCH * (number + 1)
    rate, least = statistics.median(rates), min(rates)
    show(f"add_many of {BATCH:,}", rate, "entries/s", f"least {least:,.0f}")


def filled(folder, count, embedder):
    path = folder / f"filled{count}.db"
    with Memory(path, embedder=embedder) as memory:
        for first in range(0, count, BATCH):
            memory.add_many(embedder.entries(min(BATCH, count - first), first))
    return path


def measure_searches(folder, count):
    """Time searches by meaning beside those of the vectors alone."""
    embedder = StoredVectors(count)
    path = filled(folder, count, embedder)
    vectors = VectorMap(DIM, metric="cosine")
    vectors.replace(np.arange(count), embedder.vectors)
    vectors.flush()
    floor, searched = [], []
    with Memory(path, embedder=embedder) as memory:
        for number in np.random.default_rng(2).permutation(count)[:ROUNDS]:
            query = embedder.vectors[number]
            floor.append(microseconds(lambda query=query: vectors.search(query, k=10)))
            took, hits = timed(
                lambda at=number: memory.search(f"query {at}", search_type="semantic")
            )
            searched.append(1e6 * took)
            assert hits[0].content == f"memory {number}"
            if len(floor) <= CHECKED:
                exact = embedder.vectors.astype(np.float64) @ query
                best = [f"memory {row}" for row in np.argsort(-exact)[:10]]
                assert [hit.content for hit in hits] == best
    show_times(f"vector search of {count:,}, 10 hits", floor)
    over = statistics.median(np.subtract(searched, floor))
    show_times(f"Memory.search of {count:,}, 10 hits", searched, f"{over:,.0f} over the vectors'")
    return path, embedder


def measure_threads(path, embedder):
    """Search from one thread and from several, in turns."""
    ratios, rates = [], []
    with Memory(path, embedder=embedder) as memory:
        for _ in range(5):
            one, several = search_rate(memory, 1), search_rate(memory, THREADS)
            rates.append(one)
            ratios.append(several / one)
    show("searches in one thread", statistics.median(rates), "/s")
    print(f"{f'{THREADS} threads against one':52} {statistics.median(ratios):10.2f} x")


def search_rate(memory, threads):
    def work():
        for number in range(SEARCHES):
            hits = memory.search(f"query {number}", limit=1, search_type="semantic")
            assert hits[0].content == f"memory {number}"

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return threads * SEARCHES / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where the files go; its disk is measured")
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES, help="of searched memories")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        print(f"{DIM} dimensions, kernel {simd_kernel()}, {ROUNDS} rounds, in {folder}")
        measure_single_adds(folder)
        measure_concurrent_adds(folder)
        measure_batches(folder)
        for count in given.rows:
            path, embedder = measure_searches(folder, count)
        measure_threads(path, embedder)


if __name__ == "__main__":
    main()
