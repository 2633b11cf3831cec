"""Latency of memories without the embedding: `python -m benches.memory [--folder DIR]`.

Memories come with their vectors and the embedder of queries looks them up, so only mnemic is
measured: checks, SQLite, the flush to the disk, the index. The lower limits are measured in the
same rounds: a bare commit of two inserts, and the vector search itself.
"""

import argparse
import asyncio
import gc
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import apsw
import numpy as np

from mnemic import Memory, MemoryEntry, VectorMap, simd_kernel
from mnemic.long_term import LongTermMemory
from mnemic.model import UuidFactory

DIM = 384
ROUNDS = 400
CALLERS = 100
CONCURRENT = 10_000
BATCH = 10_000
BATCHES = 5
SIZES = (10_000, 100_000)
THREADS = 2
SEARCHES = 200
CHECKED = 3
OPENINGS = 5
MODEL = "stored"
AGENT = "default"

new_id = UuidFactory()


class StoredVectors:
    """Random unit vectors, by the number that ends a text."""

    def __init__(self, count, seed=1):
        vectors = np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)
        self.vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        self.model = MODEL
        self.dimensions = DIM

    def embed(self, texts):
        rows = [int(text.rsplit(" ", 1)[1]) % len(self.vectors) for text in texts]
        return self.vectors[rows]

    def entry(self, number):
        """Return a memory with its vector."""
        now = datetime.now(UTC)
        return MemoryEntry(
            id=new_id(now),
            agent_id=AGENT,
            content=f"memory {number}",
            created_at=now,
            embedding=self.vectors[number % len(self.vectors)],
            embedding_model=MODEL,
        )

    def entries(self, count, first=0):
        return [self.entry(number) for number in range(first, first + count)]


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


def measure_single_stores(folder):
    """Time single durable stores beside bare commits, through both classes (goal: 50 ms)."""
    commit, embedder = bare_commits(folder), StoredVectors(1000)
    bare, stored, added = [], [], []

    async def alternate():
        async with await LongTermMemory.open(folder / "async.db", embedder=embedder) as long_term:
            with Memory(folder / "sync.db", embedder=embedder) as memory:
                for entry in embedder.entries(ROUNDS):
                    bare.append(microseconds(commit))
                    added.append(microseconds(lambda one=entry: memory.add_many([one])))
                    start = time.perf_counter()
                    await long_term.store(entry)
                    stored.append(1e6 * (time.perf_counter() - start))
                assert memory.count() == await long_term.count() == ROUNDS

    asyncio.run(alternate())
    floor = statistics.median(bare)
    show_times("bare commit of two inserts", bare)
    for name, times in (("Memory, one memory", added), ("LongTermMemory.store", stored)):
        ratio = statistics.median(times) / floor
        show_times(name, times, f"= {ratio:.2f} x bare; the aim is {1.3 * floor + 150:,.0f}")


def measure_concurrent_stores(folder):
    embedder = StoredVectors(1000)
    show(f"LongTermMemory.store, {CALLERS} tasks", tasks_rate(folder, embedder), "entries/s")
    show(f"Memory, one memory, {CALLERS} threads", threads_rate(folder, embedder), "entries/s")


def tasks_rate(folder, embedder):
    entries = iter(embedder.entries(CONCURRENT))

    async def caller(memory):
        for entry in entries:
            await memory.store(entry)

    async def run():
        async with await LongTermMemory.open(folder / "tasks.db", embedder=embedder) as memory:
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
    embedder = StoredVectors(1000)

    async def run():
        rates = []
        async with await LongTermMemory.open(folder / "batches.db", embedder=embedder) as memory:
            for number in range(BATCHES):
                entries = embedder.entries(BATCH)
                start = time.perf_counter()
                await memory.store_batch(entries)
                rates.append(BATCH / (time.perf_counter() - start))
                assert await memory.count() == BATCH * (number + 1)
        return rates

    rates = asyncio.run(run())
    rate, least = statistics.median(rates), min(rates)
    show(f"store_batch of {BATCH:,}", rate, "entries/s", f"least {least:,.0f}")


def filled(folder, count, embedder):
    path = folder / f"filled{count}.db"
    with Memory(path, embedder=embedder) as memory:
        for first in range(0, count, BATCH):
            memory.add_many(embedder.entries(min(BATCH, count - first), first))
    return path


def measure_searches(folder, count):
    """Time searches beside those of the vectors alone, through both classes (goal: 100 ms)."""
    embedder = StoredVectors(count)
    path = filled(folder, count, embedder)
    vectors = VectorMap(DIM, metric="cosine")
    vectors.replace(np.arange(count), embedder.vectors)
    vectors.flush()
    queries = np.random.default_rng(2).permutation(count)[:ROUNDS]

    async def alternate():
        floor, searched, plain, changes = [], [], [], []
        memory = await LongTermMemory.open(path, embedder=embedder)
        blocking = Memory(path, embedder=embedder)
        async with memory:
            for number in queries:
                query = embedder.vectors[number]
                floor.append(microseconds(lambda at=query: vectors.search(at, k=10)))
                text = f"query {number}"
                plain.append(
                    microseconds(
                        lambda text=text: blocking.search(text, limit=10, search_type="semantic")
                    )
                )
                start = time.perf_counter()
                await asyncio.to_thread(int)
                changes.append(1e6 * (time.perf_counter() - start))
                start = time.perf_counter()
                found = await memory.search_semantic(f"query {number}", min_similarity=0.0)
                searched.append(1e6 * (time.perf_counter() - start))
                assert found[0].entry.content == f"memory {number}"
                if len(floor) <= CHECKED:
                    exact = embedder.vectors.astype(np.float64) @ query
                    best = [f"memory {row}" for row in np.argsort(-exact)[:10]]
                    assert [hit.entry.content for hit in found] == best
        blocking.close()
        return floor, plain, searched, changes

    floor, plain, searched, changes = asyncio.run(alternate())
    show_times(f"vector search of {count:,}, 10 hits", floor)
    show_times("a change of thread and back", changes)
    for name, times in (("Memory.search", plain), ("search_semantic", searched)):
        over = statistics.median(np.subtract(times, floor))
        show_times(f"{name} of {count:,}, 10 hits", times, f"{over:,.0f} over the vectors'")
    return path, embedder


def check_answers(memory, embedder, count):
    """Compare the first answers by meaning, of the third of ten users, with numpy's."""
    own = np.arange(3, count, 10)
    for number in range(CHECKED):
        exact = embedder.vectors[own].astype(np.float64) @ embedder.vectors[number]
        best = [f"memory {row}" for row in own[np.argsort(-exact)[:10]]]
        hits = memory.search(f"query {number}", user_id="user3", search_type="semantic")
        assert [hit.content for hit in hits] == best


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


class StoredQuery:
    """The one query of a fresh process that holds nothing but the memory."""

    def __init__(self, vector):
        self.vector = vector
        self.model = MODEL
        self.dimensions = DIM

    def embed(self, texts):
        return np.repeat(self.vector[None], len(texts), axis=0)


def resident_bytes():
    """Return this process's resident memory now, and its largest so far (Linux)."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return tuple(1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))


def open_once(path, query):
    """Open a memory, answer a search, and print seconds, resident and largest bytes, and hit."""
    embedder = StoredQuery(np.load(query))
    before, _ = resident_bytes()
    start = time.perf_counter()
    with Memory(path, embedder=embedder) as memory:
        first = memory.search("first query", search_type="semantic")[0].content
        took = time.perf_counter() - start
        gc.collect()
        resident, largest = resident_bytes()
    print(took, resident - before, largest - before, first, sep="\t")


def measure_opening(path, embedder, folder):
    count = len(embedder.vectors)
    query = folder / "query.npy"
    np.save(query, embedder.vectors[7])
    runs = [opened(path, query) for _ in range(OPENINGS)]
    assert {first for *_, first in runs} == {"memory 7"}
    seconds, resident, largest = (
        statistics.median(map(float, column)) for column in list(zip(*runs, strict=True))[:3]
    )
    plain = embedder.vectors.nbytes + sum(len(f"memory {number}") for number in range(count))
    show(f"open {count:,} and answer the first search", 1000 * seconds, "ms")
    print(
        f"{'resident memory of vectors and texts':52} {resident / plain:10.2f} x         "
        f"{largest / plain:.2f} x while opening"
    )


def opened(path, query):
    command = [sys.executable, "-m", "benches.memory", "--open", str(path), str(query)]
    output = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return output.stdout.rstrip("\n").split("\t")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where the files go; its disk is measured")
    parser.add_argument("--open", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.open:
        open_once(*given.open)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        print(f"{DIM} dimensions, kernel {simd_kernel()}, {ROUNDS} rounds, in {folder}")
        measure_single_stores(folder)
        measure_concurrent_stores(folder)
        measure_batches(folder)
        for count in SIZES:
            path, embedder = measure_searches(folder, count)
        measure_threads(path, embedder)
        measure_opening(path, embedder, folder)


if __name__ == "__main__":
    main()
