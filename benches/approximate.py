"""An approximate index beside exact search: `python -m benches.approximate [--rows N,…]`.

Options: `--kind clustered,uniform,real` (real ones are embedded once, which takes minutes),
`--index hnsw,flat`, `--depth N` for efSearch, `--threads N` for the build, `--hybrid` (the
memories then have real sentences as texts, and queries too; the vectors are the real ones),
`--save` (writes the index to a file, reads it again, and opens it by its source). Vectors have 384
dimensions; queries are one at a time, in an order drawn anew for each. Prints the time to build,
bytes, recall@10 against the exact ranking of the same index, and medians and 95th percentiles in
milliseconds: of the source alone (64 candidates), of the index by its proposals and exact, for all
memories, and for filters that 1 % and 10 % of them pass (up to 2 % are ranked exactly).
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

from benches.support.datasets import DIM, HELD_OUT, queries_of, real_texts, rows_of
from benches.support.timing import timed
from mnemic.index import NativeIndex, RankInputs
from mnemic.index.base import InitialVectors
from mnemic.index.choice import FaissOptions, faiss_library
from mnemic.index.faiss_source import FaissSource
from mnemic.model import HYBRID, SEMANTIC, Scope
from mnemic.model.filter import parse_filter
from mnemic.model.rows import RowBatch
from mnemic.model.search import Search
from mnemic.repository.proposals import MIN_PROPOSALS, rank
from tests.support.rows import record

AGENT = Scope("a", all_users=True)
AT_ONCE = 8192
LIMIT = 10
QUERIES = 200
SHARES = {"1 %": ("one in a hundred", 100), "10 %": ("one in ten", 10)}


def tags_of(number):
    return [tag for tag, each in SHARES.values() if number % each == 0]


def filled(rows, texts, source):
    """Return an index of memories with these vectors and texts, and a source."""
    index = NativeIndex(DIM, lambda _: source)
    with index.loader() as loader:
        for first in range(0, len(rows), AT_ONCE):
            numbers = range(first + 1, first + 1 + len(rows[first : first + AT_ONCE]))
            loader.add_records([given(number, texts) for number in numbers])
        for first in range(0, len(rows), AT_ONCE):
            part = rows[first : first + AT_ONCE]
            loader.add_vectors(np.arange(first + 1, first + 1 + len(part), dtype=np.int64), part)
        batch = RowBatch(
            since=None, seq=1, records=[], embedded=[], vectors=None, removed=[], links=[]
        )
        index.apply(batch, loader)
    return index


def given(number, texts):
    text = {} if texts is None else {"content": texts[number % len(texts)]}
    return record(number, tags=tags_of(number), **text)


def spread(times):
    median, high = np.quantile(np.array(times) * 1e3, [0.5, 0.95])
    return f"p50 {median:8.3f} ms   p95 {high:8.3f} ms"


def searches(ranking):
    """Return a search of all memories, and of each share of them."""
    found = {"all": lambda text: Search(text=text, ranking=ranking, limit=LIMIT)}
    for name, (tag, _) in SHARES.items():
        filters = parse_filter({"tags": {"any": [tag]}})
        found[name] = lambda text, filters=filters: Search(
            text=text, ranking=ranking, limit=LIMIT, filters=filters
        )
    return found


def measure(index, source, ranking, queries):
    """Print the figures of an index by its proposals beside the same index without them."""
    draw = np.random.default_rng(0)
    for name, search_of in searches(ranking).items():
        times, recalls, approximate = {}, [], 0
        for text, query in queries:
            search, given = search_of(text), RankInputs(AGENT, 10**18, query[np.newaxis])
            calls = {
                "by proposals": lambda s=search, g=given: rank(index, s, g, 0),
                "exact": lambda s=search, g=given: index.rank(s, g),
            }
            if name == "all":
                calls["source alone"] = lambda q=query: source.nearest(
                    q[np.newaxis], MIN_PROPOSALS, None
                )
            found = {}
            for each in draw.permutation(list(calls)):
                taken, found[each] = timed(calls[each])
                times.setdefault(each, []).append(taken)
            wanted = {hit.row for hit in found["exact"].ranked}
            rows = {hit.row for hit in found["by proposals"].ranked}
            assert len(rows) == len(wanted)
            recalls.append(len(wanted & rows) / max(1, len(wanted)))
            approximate += found["by proposals"].approximate
        print(f"  {name}: recall@10 {np.mean(recalls):.3f}, {approximate} of {len(queries)} so")
        for each, taken in sorted(times.items()):
            print(f"    {each:14} {spread(taken)}", flush=True)


def measure_file(source, options):
    """Print the time to write an index, to read it, and the bytes of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "a.faiss")
        held = source.hold()
        write = held.writer(np.empty(0, np.int64), rebuild=False)
        written, _ = timed(lambda: write(path, b"bench"))
        held.release()
        beginning = InitialVectors(path, b"bench", 1, list, print)
        read, opened = timed(lambda: settled(FaissSource(DIM, options, beginning)))
        assert opened.state.indexed == source.state.indexed
        size = Path(path).stat().st_size
    print(f"  file: {size / 1e6:,.0f} MB, written in {written:.1f} s, read in {read:.1f}")


def settled(source):
    while source.state.is_at_work:
        source.settle()
    return source


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="100000")
    parser.add_argument("--kind", default="clustered,uniform")
    parser.add_argument("--index", default="hnsw")
    parser.add_argument("--depth", type=int, default=FaissOptions().search_depth)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hybrid", action="store_true")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args()
    faiss_library()
    for kind in given.kind.split(","):
        for count in map(int, given.rows.split(",")):
            rows = rows_of(kind, count)
            texts = real_texts() if given.hybrid else [None] * (HELD_OUT + 1)
            vectors = queries_of(kind, rows, QUERIES)
            queries = list(zip(texts[:QUERIES], vectors, strict=True))
            for index in given.index.split(","):
                options = FaissOptions(index, search_depth=given.depth, threads=given.threads)
                run(kind, rows, queries, options, given)


def run(kind, rows, queries, options, given):
    """Build one index, and print its figures."""
    source = FaissSource(DIM, options)
    begun = time.perf_counter()
    contents = real_texts()[HELD_OUT:] if given.hybrid else None
    index = filled(rows, contents, source)
    loaded = time.perf_counter() - begun
    while source.waiting:
        source.settle()
    built = time.perf_counter() - begun
    print(
        f"{kind}, {len(rows):,} rows, {options.kind}: loaded in {loaded:,.1f} s, built in "
        f"{built:,.1f} s with {options.threads} threads, "
        f"{source.nbytes / len(rows):,.0f} bytes a row beside {index.nbytes / len(rows):,.0f}"
    )
    measure(index, source, SEMANTIC, [(None, query) for _, query in queries])
    if given.hybrid:
        print(" hybrid:")
        measure(index, source, HYBRID, queries)
    if given.save:
        measure_file(source, options)


if __name__ == "__main__":
    main()
