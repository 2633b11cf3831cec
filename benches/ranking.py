"""The fused ranking, embedding excluded: `python -m benches.ranking [--rows N ...]`.

Memories are real sentences of ten users, in sessions of twenty turns, with embeddings of real
sentences; queries are other sentences of at most twelve words with their own embeddings. The
compared calls take turns in one process. Before anything is timed, an answer of each size is
checked against the expression evaluated for every row in numpy's float64.
"""

import argparse
import gc
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from benches import environment
from benches.datasets import queries_of, real_texts, rows_of
from benches.timing import timed
from mnemic import Memory, MemoryEntry, VectorMap, simd_kernel
from mnemic.index import NativeIndex, RankInputs
from mnemic.model import (
    HYBRID,
    KEYWORD,
    SEMANTIC,
    Ranking,
    RowBatch,
    Scope,
    Search,
    UuidFactory,
    Weights,
    parse_filter,
)
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import PlainRowCodec

DIM = 384
USERS = 10
TURNS = 20
SIZES = (5_000, 100_000)
HELD_OUT = 1000
MOST_WORDS = 12
ROUNDS = 300
MODEL = "stored"
SELECTIVITIES = (0.0001, 0.001, 0.01, 0.1, 0.5, 1.0)
ADDED = 2000
AGENT = "default"
EVERYONE = Scope(AGENT, all_users=True)
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)

new_id = UuidFactory()
to_row = PlainRowCodec().encode


class StoredQueries:
    """Gives the embeddings of held-out sentences by their texts."""

    def __init__(self):
        vectors = queries_of("real", None, HELD_OUT)
        by_text = dict(zip(real_texts()[:HELD_OUT], vectors, strict=True))
        self.texts = [text for text in by_text if len(text.split()) <= MOST_WORDS]
        self.vectors = by_text
        self.model = MODEL
        self.dimensions = DIM

    def embed(self, texts):
        # A text that the search put into the first person has no vector here; any one will do.
        some = self.vectors[self.texts[0]]
        vectors = [self.vectors.get(text, some) for text in texts]
        return vectors[0][None] if len(vectors) == 1 else np.stack(vectors)


def entry_of(number, text, vector):
    return MemoryEntry(
        id=new_id(BEGIN + timedelta(minutes=number)),
        agent_id=AGENT,
        content=text,
        created_at=BEGIN + timedelta(minutes=number),
        user_id=f"user {number % USERS}",
        session_id=f"session {number // (USERS * TURNS)}",
        importance=number % 100 / 100,
        metadata={"tenth of a per mille": number % 10_000},
        embedding=vector,
        embedding_model=MODEL,
    )


def entries_of(count):
    """Yield memories in lists of a few thousand."""
    texts, rows = real_texts()[HELD_OUT:], rows_of("real", count)
    for first in range(0, count, 5000):
        numbers = range(first, min(count, first + 5000))
        yield [entry_of(number, texts[number % len(texts)], rows[number]) for number in numbers]


def show(name, times, note=""):
    milliseconds = np.array(times) * 1e3
    p50, p95 = np.quantile(milliseconds, [0.5, 0.95])
    print(f"{name:58} p50 {p50:8.3f} ms   p95 {p95:8.3f} ms  {note}", flush=True)
    return p50


def in_turns(calls, arguments, rounds=ROUNDS):
    """Let every call answer each argument once, one after the other; return seconds of each."""
    times = {name: [] for name in calls}
    for argument in islice(cycle(arguments), rounds):
        for name, call in calls.items():
            times[name].append(timed(call, argument)[0])
    return times


def measure_front_door(folder, count, queries):
    """Time `Memory.search` over one user's and over everybody's memories."""
    path = folder / f"memories-{count}.db"
    with Memory(path, embedder=queries) as memory:
        for entries in entries_of(count):
            memory.add_many(entries)
        calls = {
            f"{search_type}, {whose}": lambda text, search_type=search_type, named=named: (
                memory.search(text, search_type=search_type, **named)
            )
            for search_type in ("hybrid", "semantic", "keyword")
            for whose, named in (("one user", {"user_id": "user 1"}), ("all", {"all_users": True}))
        }
        for call in calls.values():
            for text in queries.texts[:5]:
                call(text)
        for name, times in in_turns(calls, queries.texts).items():
            show(f"Memory.search, 10 of {count:,}, {name}", times)
    return path


def loaded(count):
    """Return an index of the core with this many memories, and its vectors."""
    index = NativeIndex(DIM)
    for number, entries in enumerate(entries_of(count)):
        first = number * 5000
        rows = np.arange(first, first + len(entries))
        records = [(int(row), *to_row(entry)) for row, entry in zip(rows, entries, strict=True)]
        vectors = np.stack([entry.embedding for entry in entries])
        assert index.apply(RowBatch(index.seq, number, records, rows, vectors, []))
    vectors = rows_of("real", count)
    return index, vectors


def wanted(text, queries, ranking, **more):
    vectors = None if ranking.similarity == 0 else queries.embed([text])
    now = to_microseconds(BEGIN + timedelta(days=365))
    search = Search(text=text, limit=10, ranking=ranking, **more)
    return search, RankInputs(EVERYONE, now, vectors)


def measure_ranking(count, queries):
    """Time the core's ranking beside the plain exact search and reading a byte a component."""
    index, vectors = loaded(count)
    plain = VectorMap(DIM)
    plain.replace(np.arange(count), vectors)
    plain.flush()
    codes = np.ones(count * DIM, dtype=np.uint8)
    rankings = {
        "semantic": SEMANTIC,
        "hybrid": HYBRID,
        "keyword": KEYWORD,
        "weights of MemoryQuery": Ranking(
            weights=Weights(relevance=0.6, recency=0.2, importance=0.15, access=0.05)
        ),
    }
    calls = {
        name: lambda text, ranking=ranking: index.rank(*wanted(text, queries, ranking))
        for name, ranking in rankings.items()
    }
    calls["plain"] = lambda text: plain.search(queries.embed([text])[0], k=10)
    calls["bytes"] = lambda _: np.bitwise_or.reduce(codes.view(np.uint64))
    check(index, vectors, queries)
    times = in_turns(calls, queries.texts)
    exact = statistics.median(times["plain"])
    scan = statistics.median(times["bytes"])
    for name in rankings:
        ratio = statistics.median(times[name])
        note = f"{ratio / exact:5.2f} x plain, {ratio / scan:5.2f} x reading the bytes"
        show(f"core, 10 of {count:,}, {name}", times[name], note)
    show(f"VectorMap.search, 10 of {count:,}", times["plain"])
    show(f"reading a byte a component of {count:,} rows", times["bytes"])
    return index


def check(index, vectors, queries):
    """Compare the nearest with numpy's; the whole expression is compared in the tests."""
    for text in queries.texts[:5]:
        scores = vectors.astype(np.float64) @ queries.embed([text])[0].astype(np.float64)
        found = index.rank(*wanted(text, queries, SEMANTIC)).ranked
        np.testing.assert_allclose(
            [hit.score for hit in found], np.sort(scores)[:-11:-1], atol=1e-6
        )


def measure_selectivities(index, count, queries):
    """Time filters of several widths; there are always min(k, matches) hits."""
    key = "metadata.tenth of a per mille"
    for share in SELECTIVITIES:
        limit = round(share * 10_000)
        where = parse_filter({key: {"lt": limit}})
        matches = sum(number % 10_000 < limit for number in range(count))
        for name, ranking in (("semantic", SEMANTIC), ("hybrid", HYBRID)):
            times = []
            for text in islice(cycle(queries.texts), ROUNDS // 3):
                request = wanted(text, queries, ranking, filters=where)
                took, answer = timed(lambda request: index.rank(*request), request)
                assert len(answer.ranked) == min(10, matches)
                times.append(took)
            show(f"{name}, {share:.2%} of {count:,} ({matches:,} memories)", times)


def measure_adds(index, count):
    """Time indexing one memory, as the next search does, in a full index."""
    texts = real_texts()[HELD_OUT:]
    vectors = rows_of("real", ADDED)
    records, times = [], []
    for number in range(ADDED):
        entry = entry_of(count + number, texts[number], vectors[number])
        records.append((count + number, *to_row(entry)))
    core = index._current()  # noqa: SLF001 - batches would otherwise wait for a search
    for record, vector in zip(records, vectors, strict=True):
        rows = np.array([record[0]])
        times.append(timed(core.apply, [record], rows, vector[np.newaxis], ())[0])
    show(f"indexing one memory beside {count:,}", times)


def resident_bytes():
    """Return this process's resident memory now, and its largest so far (Linux)."""
    status = Path("/proc/self/status").read_text()
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return tuple(1024 * int(fields[name].split()[0]) for name in ("VmRSS", "VmHWM"))


class StoredQuery:
    """The one query of a fresh process that holds nothing but the memory."""

    def __init__(self, vector):
        self.vector = vector
        self.model = MODEL
        self.dimensions = DIM

    def embed(self, texts):
        return np.repeat(self.vector[None], len(texts), axis=0)


def open_once(path, query):
    """Open a memory, answer a search, and print seconds, resident and largest bytes."""
    embedder = StoredQuery(np.load(query))
    before, _ = resident_bytes()
    start = time.perf_counter()
    with Memory(path, embedder=embedder) as memory:
        memory.search("the first query", user_id="user 1")
        took = time.perf_counter() - start
        gc.collect()
        resident, largest = resident_bytes()
    print(took, resident - before, largest - before, sep="\t")


def measure_opening(path, count, folder, queries):
    query = folder / "query.npy"
    np.save(query, queries.embed(queries.texts[:1])[0])
    command = [sys.executable, "-m", "benches.ranking", "--open", str(path), str(query)]
    runs = []
    for _ in range(5):
        output = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
        runs.append([float(value) for value in output.stdout.split("\t")])
    seconds, resident, largest = (statistics.median(column) for column in zip(*runs, strict=True))
    texts = real_texts()[HELD_OUT:]
    plain = count * 4 * DIM + sum(len(texts[number % len(texts)]) for number in range(count))
    print(f"open {count:,} and answer the first search {seconds:.2f} s", flush=True)
    print(
        f"resident memory of vectors and texts {resident / plain:.2f} x, "
        f"{largest / plain:.2f} x while opening",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--folder", help="where the files go")
    parser.add_argument("--open", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.open:
        open_once(*given.open)
        return
    environment.restart_at_their_best()
    queries = StoredQueries()
    print(
        f"{DIM} dimensions, kernel {simd_kernel()}, {len(queries.texts)} queries, {ROUNDS} rounds"
    )
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        for count in given.rows:
            path = measure_front_door(folder, count, queries)
            measure_opening(path, count, folder, queries)
            path.unlink()
            index = measure_ranking(count, queries)
            measure_selectivities(index, count, queries)
            measure_adds(index, count)


if __name__ == "__main__":
    main()
