"""Latency of the front door without the embedding: `python -m benches.memory [--folder DIR]`.

The embedder looks its vectors up, so what is measured is mnemic alone: checks, SQLite, the flush to
the disk, the index. Beside a durable add stands a bare commit of two inserts in the same round.
"""

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

import apsw
import numpy as np

from mnemic import Memory, kernel

DIM = 384
ROUNDS = 400


class StoredVectors:
    """Random unit vectors, by the number that ends a text."""

    def __init__(self, count, seed=1):
        vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.model = "stored"
        self.dimensions = DIM

    def embed(self, texts):
        rows = [int(text.rsplit(" ", 1)[1]) % len(self.vectors) for text in texts]
        return self.vectors[rows]


def microseconds(work, rounds=ROUNDS):
    times = []
    for number in range(rounds):
        start = time.perf_counter()
        work(number)
        times.append(1e6 * (time.perf_counter() - start))
    return times


def report(name, times):
    p50, p95 = statistics.median(times), statistics.quantiles(times, n=20)[18]
    print(f"{name:48} p50 {p50:9.0f} µs   p95 {p95:9.0f} µs")


def bare_commits(folder):
    """Return a function that commits two inserts of an entry's size, flushed."""
    connection = apsw.Connection(str(folder / "bare.db"))
    connection.pragma("journal_mode", "WAL")
    connection.pragma("synchronous", "FULL")
    connection.execute("CREATE TABLE a (x); CREATE TABLE b (x)")

    def commit(_number):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO a VALUES (?)", (b"x" * 200,))
        connection.execute("INSERT INTO b VALUES (?)", (b"x" * 4 * DIM,))
        connection.execute("COMMIT")

    return commit


def measure_adds(folder):
    commit = bare_commits(folder)
    with Memory(folder / "adds.db", embedder=StoredVectors(1000)) as memory:
        bare, adds = [], []
        for number in range(ROUNDS):
            bare += microseconds(lambda _: commit(0), 1)
            adds += microseconds(lambda _, at=number: memory.add(f"memory {at}"), 1)
        report("bare commit of two inserts", bare)
        report("add, durable", adds)
        start = time.perf_counter()
        memory.add_many(f"memory {number}" for number in range(10_000))
        print(f"{'add_many of 10,000':48} {10_000 / (time.perf_counter() - start):9.0f} entries/s")
    with Memory(folder / "concurrent.db", embedder=StoredVectors(1000)) as memory:
        measure_concurrent_adds(memory)


def measure_concurrent_adds(memory, threads=16, each=100):
    def work():
        for number in range(each):
            memory.add(f"memory {number}")

    workers = [threading.Thread(target=work) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rate = threads * each / (time.perf_counter() - start)
    print(f"{f'add, durable, {threads} threads':48} {rate:9.0f} entries/s")


def measure_searches(folder, count):
    path = folder / f"search{count}.db"
    embedder = StoredVectors(count)
    with Memory(path, embedder=embedder) as memory:
        for first in range(0, count, 10_000):
            numbers = range(first, min(count, first + 10_000))
            memory.add_many(
                {"content": f"memory {number}", "user_id": f"user{number % 10}"}
                for number in numbers
            )
        memory.add_many(f"memory {number}" for number in range(count // 2))
        check_answers(memory, embedder, count)
        user = microseconds(lambda at: memory.search(f"query {at}", user_id="user3"))
        report(f"search, 10 of a tenth of {count:,}", user)
        half = microseconds(lambda at: memory.search(f"query {at}"))
        report(f"search, 10 of {count // 2:,} without a user", half)
        entry = memory.search("query 1")[0].entry
        report("get", microseconds(lambda _: memory.get(entry.id)))
    start = time.perf_counter()
    with Memory(path, embedder=embedder) as memory:
        memory.search("query 1")
        took = 1000 * (time.perf_counter() - start)
    print(f"{f'open {count * 3 // 2:,} and answer the first search':48}     {took:9.0f} ms")


def check_answers(memory, embedder, count):
    for number in (3, 13, 23):
        query = embedder.vectors[number].astype(np.float64)
        rows = np.arange(3, count, 10)
        exact = embedder.vectors[rows].astype(np.float64) @ query
        best = rows[np.argsort(-exact)[:10]]
        found = [hit.content for hit in memory.search(f"query {number}", user_id="user3")]
        assert found == [f"memory {row}" for row in best]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where the files go; its disk is what is measured")
    with tempfile.TemporaryDirectory(dir=parser.parse_args().folder) as folder:
        print(f"{DIM} dimensions, kernel {kernel()}, {ROUNDS} rounds, in {folder}")
        measure_adds(Path(folder))
        for count in (5_000, 100_000):
            measure_searches(Path(folder), count)


if __name__ == "__main__":
    main()
