"""An approximate index beside exact search: `python -m benches.approximate [--rows N]`.

Options: `--kind clustered,uniform,real` (real ones are embedded once, which takes minutes),
`--index hnsw,ivfpq,flat`, `--depth N` for efSearch, `--threads N` for the build. Vectors have 384
dimensions; queries are one at a time, in an order drawn anew for each. Prints the time to build,
bytes, recall@10 against the exact ranking, and medians and 95th percentiles in milliseconds: of the
source alone (64 candidates), of the index with the source and of the exact index, whose ranking is
similarity alone.
"""

import argparse
import time

import numpy as np

from benches.datasets import DIM, queries_of, rows_of
from mnemic.index import NativeIndex, RankInputs
from mnemic.index.faiss_kinds import FaissOptions, faiss_library
from mnemic.index.faiss_source import FaissSource
from mnemic.model import SEMANTIC, RowBatch, Scope, Search
from mnemic.repository.proposals import MIN_PROPOSALS, rank
from tests.support.rows import record

AGENT = Scope("a", all_users=True)
AT_ONCE = 8192
LIMIT = 10


def filled(rows, source=None):
    """Return an index of memories with these vectors, and with a source if one is given."""
    index = NativeIndex(DIM, None if source is None else lambda _: source)
    with index.loader() as loader:
        for first in range(0, len(rows), AT_ONCE):
            numbers = range(first + 1, first + 1 + len(rows[first : first + AT_ONCE]))
            loader.add_records([record(number) for number in numbers])
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            loader.add_vectors(np.arange(first + 1, first + 1 + len(part), dtype=np.int64), part)
        none = np.empty(0, np.int64)
        batch = RowBatch(
            since=None, seq=1, records=[], embedded=none, vectors=rows[:0], gone=[], links=[]
        )
        index.apply(batch, loader)
    return index


def timed(call):
    begun = time.perf_counter()
    result = call()
    return (time.perf_counter() - begun) * 1e3, result


def spread(times):
    return f"p50 {np.median(times):8.3f} ms   p95 {np.quantile(times, 0.95):8.3f} ms"


def measure(kind, rows, queries, options):
    """Print the figures of one index on one set."""
    source = FaissSource(DIM, options)
    begun = time.perf_counter()
    approximate = filled(rows, source)
    while source.waiting:
        source.settle()
    built = time.perf_counter() - begun
    exact = filled(rows)
    search = Search(text=None, ranking=SEMANTIC, limit=LIMIT)
    calls = {
        "source alone": lambda query: source.nearest(query[np.newaxis], MIN_PROPOSALS, None),
        "index with it": lambda query: rank(approximate, search, inputs(query), 0),
        "exact index": lambda query: exact.rank(search, inputs(query)),
    }
    times, recalls, draw = {name: [] for name in calls}, [], np.random.default_rng(0)
    for query in queries:
        found = {}
        for name in draw.permutation(list(calls)):
            taken, found[name] = timed(lambda name=name, query=query: calls[name](query))
            times[name].append(taken)
        wanted = {hit.row for hit in found["exact index"].ranked}
        recalls.append(len(wanted & {hit.row for hit in found["index with it"].ranked}) / LIMIT)
        assert found["index with it"].approximate
    print(
        f"{kind}, {len(rows):,} rows, {options.kind}: built in {built:,.1f} s, "
        f"{source.nbytes / len(rows):,.0f} bytes a row, recall@10 {np.mean(recalls):.3f}"
    )
    for name, each in times.items():
        print(f"  {name:16} {spread(each)}", flush=True)


def inputs(query):
    return RankInputs(AGENT, 10**18, query[np.newaxis])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--kind", default="clustered,uniform")
    parser.add_argument("--index", default="hnsw,ivfpq")
    parser.add_argument("--depth", type=int, default=FaissOptions().search_depth)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    if given.threads:
        faiss_library().omp_set_num_threads(given.threads)
    for kind in given.kind.split(","):
        rows = rows_of(kind, given.rows)
        queries = queries_of(kind, rows, 200)
        for index in given.index.split(","):
            trained = min(FaissOptions().trained, given.rows // 2)
            options = FaissOptions(index, search_depth=given.depth, trained=trained)
            measure(kind, rows, queries, options)


if __name__ == "__main__":
    main()
