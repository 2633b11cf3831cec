"""VectorMap beside the exact peers: faiss IndexFlatIP and numpy, one thread, one query at a time.

Run as `python -m benches.vector_map`. All systems answer the same queries in turn in one process;
every answer is checked. Printed are lower quartiles, and the ratio to the best peer of the run.
"""

import argparse
import json
import os
import platform
import sys
import threading
import time
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402 - after the thread settings it reads

from mnemic import VectorMap, kernel  # noqa: E402

DIM = 384
K = 10


def cpu_flags():
    info = Path("/proc/cpuinfo")
    return info.read_text(encoding="utf-8") if info.exists() else ""


def restart_with_the_best_peers():
    """Let OpenBLAS choose its kernels: what the shell sets may slow numpy and faiss."""
    if os.environ.get("MNEMIC_BENCH_RESTARTED"):
        return
    environment = {**os.environ, "MNEMIC_BENCH_RESTARTED": "1"}
    environment.pop("OPENBLAS_L2_SIZE", None)
    environment.pop("OPENBLAS_CORETYPE", None)
    if "avx512f" in cpu_flags():
        environment["OPENBLAS_CORETYPE"] = "SkylakeX"
    command = [sys.executable, "-m", "benches.vector_map", *sys.argv[1:]]
    os.execve(sys.executable, command, environment)  # noqa: S606 - this very program again


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def make_rows(kind, count, dim, seed=0):
    """Unit rows: independent directions, or noise around a hundredth as many centres."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal((count, dim), dtype=np.float32)
    if kind == "uniform":
        return unit(noise)
    centres = random.standard_normal((max(8, count // 100), dim), dtype=np.float32)
    return unit(centres[random.integers(0, len(centres), count)] + 0.7 * noise)


def make_queries(rows, count=64, seed=1):
    random = np.random.default_rng(seed)
    near = rows[random.integers(0, len(rows), count)]
    return unit(near + 0.03 * random.standard_normal(near.shape, dtype=np.float32))


def numpy_search(rows, query):
    scores = rows @ query
    best = np.argpartition(scores, len(scores) - K)[len(scores) - K :]
    return best[np.argsort(-scores[best])]


def faiss_search(rows):
    try:
        import faiss  # noqa: PLC0415 - an optional peer
    except ImportError:
        return None
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(rows.shape[1])
    index.add(rows)
    return lambda query: index.search(query[None], K)[1][0]


def quartile(seconds):
    return float(np.quantile(seconds, 0.25)) * 1e6


def timed(call, *arguments):
    begin = time.perf_counter()
    answer = call(*arguments)
    return time.perf_counter() - begin, answer


def compare(rows, vectors, repetitions):
    """Interleave all systems over the same queries; returns lower quartiles in microseconds."""
    systems = {"mnemic": lambda query: vectors.search(query, k=K).ids}
    systems["numpy"] = lambda query: numpy_search(rows, query)
    if flat := faiss_search(rows):
        systems["faiss IndexFlatIP"] = flat
    queries = make_queries(rows)
    times = {name: [] for name in systems}
    for turn in range(repetitions):
        query = queries[turn % len(queries)]
        answers = {}
        for name, search in systems.items():
            seconds, answers[name] = timed(search, query)
            times[name].append(seconds)
        # Peers add in float32, so neighbours closer than its rounding may swap at the cut.
        assert len(set(answers["mnemic"].tolist()) & set(answers["numpy"].tolist())) >= K - 1
        assert answers["mnemic"][0] == answers["numpy"][0]
    return {name: quartile(seconds) for name, seconds in times.items()}


def report(name, figures):
    peers = {peer: value for peer, value in figures.items() if peer != "mnemic"}
    ratio = min(peers.values()) / figures["mnemic"]
    line = "  ".join(f"{peer} {value:,.1f} us" for peer, value in figures.items())
    print(f"{name:24} {line}  = {ratio:.2f} x the best peer", flush=True)
    return {**figures, "ratio": ratio}


def measure_sizes(kinds, sizes, dim):
    found = {}
    for kind in kinds:
        for count in sizes:
            rows = make_rows(kind, count, dim)
            vectors = VectorMap(dim, metric="inner_product")
            vectors.replace(np.arange(count), rows)
            repetitions = max(60, min(3000, 4_000_000 // count))
            name = f"{kind} {count:,} x {dim}"
            found[name] = report(name, compare(rows, vectors, repetitions))
    return found


def measure_empty():
    vectors, query = VectorMap(DIM), np.zeros(DIM, np.float32)
    return quartile([timed(vectors.search, query)[0] for _ in range(20_000)])


def measure_selections(vectors, rows):
    queries, random = make_queries(rows), np.random.default_rng(2)
    found = {}
    for share in (0.001, 0.01, 0.1, 0.5):
        ids = random.choice(len(rows), int(len(rows) * share), replace=False)
        selection = vectors.select(ids)
        hits = vectors.search(queries[0], k=K, allow=selection)
        assert set(hits.ids.tolist()) == set(ids[numpy_search(rows[ids], queries[0])].tolist())
        seconds = []
        for turn in range(400):
            begin = time.perf_counter()
            vectors.search(queries[turn % 64], k=K, allow=selection)
            seconds.append(time.perf_counter() - begin)
        found[f"selection of {share:.1%}"] = quartile(seconds)
    return found


def measure_upserts(vectors, rows, count=20_000):
    """Single upserts while another thread searches: by the clock and by the thread's own time."""
    stop = threading.Event()
    queries = make_queries(rows)

    def search():
        turn = 0
        while not stop.is_set():
            vectors.search(queries[turn % 64], k=K)
            turn += 1

    searcher = threading.Thread(target=search)
    searcher.start()
    ids = np.random.default_rng(3).integers(0, len(rows), count)
    # A waiting thread gets the interpreter back after this long; the default of 5 ms would
    # be what is measured.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    seconds, own = [], []
    for at in range(count):
        begin = time.thread_time()
        seconds.append(timed(vectors.upsert, ids[at : at + 1], rows[at : at + 1])[0])
        own.append(time.thread_time() - begin)
    sys.setswitchinterval(interval)
    stop.set()
    searcher.join()
    return {
        "upsert beside a reader, us": float(np.median(seconds)) * 1e6,
        "99.9 % are below, us": float(np.quantile(seconds, 0.999)) * 1e6,
        "the longest, us": max(seconds) * 1e6,
        "the longest of own time, us": max(own) * 1e6,
    }


def measure_large():
    rows = make_rows("clustered", 100_000, DIM)
    vectors = VectorMap(DIM, metric="inner_product")
    ids = np.arange(len(rows))
    seconds, _ = timed(vectors.replace, ids, rows)
    found = {
        "replace of 100,000, ms": seconds * 1e3,
        "nbytes / float32": vectors.nbytes / rows.nbytes,
    }
    found |= {f"{name}, us": value for name, value in measure_selections(vectors, rows).items()}
    return found | measure_upserts(vectors, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--kinds", default="uniform,clustered")
    parser.add_argument("--json", help="write the record here")
    options = parser.parse_args()
    restart_with_the_best_peers()
    machine = f"{platform.machine()}, kernel {kernel()}, numpy {np.__version__}"
    print(f"{machine}; lower quartiles, one thread, k = {K}")
    record = {"machine": machine, "empty call, us": measure_empty()}
    print(f"{'empty map':24} {record['empty call, us']:.2f} us")
    sizes = [int(size) for size in options.sizes.split(",")]
    record["sizes"] = measure_sizes(options.kinds.split(","), sizes, options.dim)
    record["100,000 x 384"] = measure_large()
    for name, value in record["100,000 x 384"].items():
        print(f"{name:32} {value:,.2f}")
    if options.json:
        Path(options.json).write_text(json.dumps(record, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
