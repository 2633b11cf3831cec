"""VectorMap beside peers that read every row, and its distance from the limits of the machine.

Run as `python -m benches.vector_map [--only sizes,batches] [--most 100000] [--json FILE]`.

One thread, lower quartiles, all systems in one process on the same queries, interleaved: "call by
call" each system finds the caches as the others left them; "in turns of 16 calls" each answers 16
queries before the next one starts, as for an agent that searches repeatedly. Every
answer is checked against brute force in float64. Ratios are to the best exact peer of the run;
the others have their recall beside their times.
"""

import argparse
import ctypes
import sys
import threading
import time
from itertools import cycle

import numpy as np

from benches.support import environment
from benches.support.cases import (
    HUNDRED_THOUSAND,
    KINDS,
    MILLION,
    QUERIES,
    SMALL_TO_LARGE,
    WIDE,
    Case,
)
from benches.support.datasets import DIM
from benches.support.exact import K, best_ids
from benches.support.systems import BATCH_SCANS, SCANS, installed
from benches.support.timing import interleave, quartile, timed
from mnemic import VectorMap

GOALS = {
    "real 1,000 x 384": 3,
    "real 10,000 x 384": 8,
    "real 100,000 x 384": 25,
    "uniform 100,000 x 384": 6,
    "clustered 100,000 x 768": 6.5,
    "clustered 100,000 x 1,536": 6.5,
    "real 1,000,000 x 384": 17,
    "batch of 8": 12,
    "batch of 64": 5,
}
TURN = 16
# The first stage of a scan reads sketches if there are some, else half a byte a component from
# this many components on, else one byte; and eight bytes of bounds a row.
NIBBLES_FROM = 2_000_000
SKETCH = 64
BOUNDS = 8
FAR_BEYOND_CACHES = 512_000_000
# Keyword arguments of `search` by the number of threads of one scan.
SCAN_OPTIONS = {1: {}, 2: {"threads": 2}}


def measure_sizes(case, seconds):
    """Single queries: call by call, then in turns."""
    systems = [case.mnemic, *map(case.build, installed(SCANS))]
    once, recalls = [], {}
    for system in systems:
        took, answers = timed(lambda of=system: [of.search(query) for query in case.queries])
        note_recall(recalls, system, case.check(system, answers))
        once.append(took / QUERIES)
    rounds = int(np.clip(seconds / sum(once), 24, 4_000))
    found = {}
    for way, turn in (("call by call", 1), (f"in turns of {TURN} calls", TURN)):
        found[way] = interleave(
            {system.name: system.search for system in systems},
            case.queries,
            max(2, rounds // turn),
            turn,
        )
        report(case.name, way, found[way], recalls)
    return found


def note_recall(recalls, system, recall):
    if not system.exact:
        recalls[system.name] = recall


def report(name, way, figures, recalls):
    ours = figures["mnemic"]
    peers = {peer: value for peer, value in figures.items() if peer != "mnemic"}
    best = min(peers.keys() - recalls.keys(), key=peers.get)
    figures["ratio"] = peers[best] / ours
    figures["recall of those not exact"] = recalls
    goal = f" (goal {GOALS[name]})" if name in GOALS else ""
    marks = {peer: f" (not exact, recall {recall:.3f})" for peer, recall in recalls.items()}
    line = ", ".join(f"{peer} {value:,.1f}{marks.get(peer, '')}" for peer, value in peers.items())
    print(f"{name:26} {way:21} mnemic {ours:,.1f} us, {line}", flush=True)
    print(f"{'':26} {'':21} = {peers[best] / ours:.2f} x {best}{goal}", flush=True)


def measure_batches(case, seconds):
    """Several queries in one call, call by call; microseconds a query."""
    systems = [case.mnemic, *map(case.build, installed(BATCH_SCANS))]
    found = {}
    for size in (8, 64):
        batches = [case.queries[first : first + size] for first in range(0, QUERIES, size)]
        once, recalls = 0, {}
        for system in systems:
            took, answers = timed(system.batch, batches[0])
            note_recall(recalls, system, case.check(system, answers))
            once += took
        rounds = int(np.clip(seconds / once, 6, 500))
        searches = {system.name: system.batch for system in systems}
        times = interleave(searches, batches, rounds, 1)
        found[f"batch of {size}"] = {name: value / size for name, value in times.items()}
        report(f"batch of {size}", "call by call, a query", found[f"batch of {size}"], recalls)
    return found


def bytes_stage(case):
    """Return the bytes that a scan of a byte a component reads."""
    count, dim = case.rows.shape
    return count * (dim + BOUNDS)


def first_stage_bytes(case):
    count, dim = case.rows.shape
    unsketched = VectorMap(dim, metric="inner_product")
    unsketched.replace(np.arange(256), case.rows[:256])
    floats = case.rows.nbytes / count
    is_sketched = case.mnemic.vectors.nbytes / count > unsketched.nbytes / 256 + 0.02 * floats
    code = SKETCH if is_sketched else dim / 2 if count * dim >= NIBBLES_FROM else dim
    return int(count * (code + BOUNDS))


def measure_limits(case, seconds):
    """Compare a search with reading the first stage's bytes once, in turns of 16 calls."""
    size = first_stage_bytes(case)
    name, read = fastest_reader()
    near, far = np.ones(size // 8 * 2, np.float32), np.ones(FAR_BEYOND_CACHES // 4, np.float32)
    read_near, read_far = read(near), read(far)
    calls = {
        "search": lambda at: case.mnemic.search(case.queries[at % QUERIES]),
        "count": lambda at: case.mnemic.vectors.count(case.queries[at % QUERIES], min_score=0.5),
        "read": lambda _: read_near(),
        "read far": lambda _: read_far(),
    }
    once = sum(timed(call, 0)[0] for call in calls.values())
    rounds = max(3, int(seconds / once / TURN))
    times = interleave(calls, range(QUERIES), rounds, TURN)
    found = {
        "first stage, MB": size / 1e6,
        "read with": name,
        "read rate of as many bytes, GB/s": near.nbytes / times["read"] / 1e3,
        "read rate far beyond the caches, GB/s": far.nbytes / times["read far"] / 1e3,
        "search, us": times["search"],
        "times the reading of as many bytes (goal 1.5)": times["search"] / times["read"],
        "times their reading at the far rate": times["search"]
        / (times["read far"] * size / far.nbytes),
        "count of scores from 0.5 on, us": times["count"],
        "times the reading of all bytes at the far rate (goal 1.5)": times["count"]
        / (times["read far"] * bytes_stage(case) / far.nbytes),
    }
    return print_figures(case.name, found)


def fastest_reader():
    """Return the name and the function of the fastest way from Python to read memory.

    numpy's and the C library's loops are all bare loads; which is fastest varies by machine. Those
    that read two streams beat those that read one here: 21 and 20 against 18 GB/s.
    """
    library = ctypes.CDLL(None)
    library.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
    library.memchr.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)

    def halves(array):
        return array[: len(array) // 2], array[len(array) // 2 :]

    def memcmp(array):
        first, second = halves(array)
        return lambda: library.memcmp(first.ctypes.data, second.ctypes.data, first.nbytes)

    def dot(array):
        first, second = halves(array)
        return lambda: np.dot(first, second)

    def memchr(array):
        return lambda: library.memchr(array.ctypes.data, 255, array.nbytes)

    readers = {"memcmp of two halves": memcmp, "dot of two halves": dot, "memchr": memchr}
    probe = np.ones(16_000_000, np.float32)
    rates = {
        name: quartile([timed(reader(probe))[0] for _ in range(15)])
        for name, reader in readers.items()
    }
    best = min(rates, key=rates.get)
    return best, readers[best]


def measure_selections(case, _seconds):
    random, found = np.random.default_rng(2), {}
    count = len(case.rows)
    selections = {
        f"{share:.1%} at random": random.choice(count, int(count * share), replace=False)
        for share in (0.001, 0.01, 0.1, 0.5)
    }
    selections["10.0% in one run"] = np.arange(count // 2, count // 2 + count // 10)
    for name, ids in selections.items():
        selection = case.mnemic.vectors.select(ids)
        right = best_ids(case.rows, case.queries[:8], ids)
        seconds = []
        for turn in range(400):
            query = case.queries[turn % QUERIES]
            took, hits = timed(lambda of=query, allow=selection: search(case, of, allow=allow))
            seconds.append(took)
            assert turn >= len(right) or np.array_equal(hits.ids, right[turn])
        found[f"selection of {name}, us"] = quartile(seconds)
    return print_figures(case.name, found)


def search(case, query, **options):
    return case.mnemic.vectors.search(query, k=K, **options)


def measure_threads(case, seconds):
    """One scan on more threads, and two Python threads that each search for themselves."""
    scans = {
        threads: lambda query, given=given: search(case, query, **given)
        for threads, given in SCAN_OPTIONS.items()
    }
    once = timed(scans[1], case.queries[0])[0]
    rounds = max(2, int(seconds / once / TURN / len(scans)))
    times = interleave(scans, case.queries, rounds, TURN)
    found = {f"scan, threads: {threads}, us": took for threads, took in times.items()}
    for threads in times.keys() - {1}:
        found[f"one thread over {threads} (goal of two: 1.6)"] = times[1] / times[threads]
    rates = {1: [], 2: []}
    for _ in range(5):
        for searchers, each in rates.items():
            each.append(search_rate(case, searchers, seconds / 10))
    found["two searching threads answer times one"] = float(
        np.median(rates[2]) / np.median(rates[1])
    )
    return print_figures(case.name, found)


def search_rate(case, searchers, seconds):
    """Return the searches a second of Python threads that search side by side."""
    counts, end = [0] * searchers, time.perf_counter() + seconds

    def work(number):
        while time.perf_counter() < end:
            search(case, case.queries[counts[number] % QUERIES])
            counts[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(searchers)]
    begin = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def measure_writes(case, _seconds):
    ids = np.arange(len(case.rows))
    vectors = VectorMap(case.rows.shape[1], metric="inner_product")
    replaces = [timed(vectors.replace, ids, case.rows)[0] for _ in range(5)]
    found = {
        "call on an empty map, us": measure_empty(),
        "replace, ms": quartile(replaces) / 1e3,
        "nbytes / float32": vectors.nbytes / case.rows.nbytes,
    }
    return print_figures(case.name, found | measure_upserts(case, vectors))


def measure_empty():
    vectors, query = VectorMap(DIM), np.zeros(DIM, np.float32)
    return quartile([timed(vectors.search, query)[0] for _ in range(20_000)])


def measure_upserts(case, vectors, count=20_000):
    """Single upserts while another thread searches: by the clock and by the thread's own time."""
    stop = threading.Event()

    def keep_searching():
        for query in cycle(case.queries):
            if stop.is_set():
                return
            vectors.search(query, k=K)

    searcher = threading.Thread(target=keep_searching)
    searcher.start()
    ids = np.random.default_rng(3).integers(0, len(case.rows), count)
    # A waiting thread gets the interpreter back after this long; with the default of 5 ms only
    # that would be measured.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    seconds, own = [], []
    for at in ids:
        begin = time.thread_time()
        seconds.append(timed(vectors.upsert, at[None], case.rows[at][None])[0])
        own.append(time.thread_time() - begin)
    sys.setswitchinterval(interval)
    stop.set()
    searcher.join()
    return {
        "upsert beside a reader, us": float(np.median(seconds)) * 1e6,
        "99.9 % are below, us": float(np.quantile(seconds, 0.999)) * 1e6,
        "the longest, us": max(seconds) * 1e6,
        "the longest of own time, us": max(own) * 1e6,
        "nbytes / float32 afterwards": vectors.nbytes / case.rows.nbytes,
    }


def print_figures(name, figures):
    for what, value in figures.items():
        shown = value if isinstance(value, str) else f"{value:,.2f}"
        print(f"{name:26} {what:48} {shown}", flush=True)
    return figures


SETS = (*SMALL_TO_LARGE, *WIDE, MILLION)
PARTS = {
    "sizes": (measure_sizes, SETS),
    "batches": (measure_batches, (HUNDRED_THOUSAND,)),
    "limits": (measure_limits, (HUNDRED_THOUSAND, MILLION)),
    "selections": (measure_selections, (HUNDRED_THOUSAND,)),
    "writes": (measure_writes, (HUNDRED_THOUSAND,)),
    "threads": (measure_threads, (MILLION,)),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default=",".join(PARTS), help="of: %(default)s")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of: %(default)s")
    parser.add_argument("--dims", default="384,768,1536", help="of: %(default)s")
    parser.add_argument("--most", type=int, default=1_000_000, help="leave out sets of more rows")
    parser.add_argument("--least", type=int, default=1, help="leave out sets of fewer rows")
    parser.add_argument("--seconds", type=float, default=6, help="about how long to take each time")
    parser.add_argument("--json", help="write the record here")
    return parser.parse_args()


def main():
    chosen = options()
    environment.restart_at_their_best()
    record = {"machine": environment.machine(), "figures": {}}
    print(environment.title(record["machine"]))
    print(f"lower quartiles, one thread, k = {K}")
    kinds, dims = chosen.kinds.split(","), [int(dim) for dim in chosen.dims.split(",")]
    for of in SETS:
        kind, count, dim = of
        parts = [part for part in chosen.only.split(",") if of in PARTS[part][1]]
        if kind in kinds and dim in dims and chosen.least <= count <= chosen.most and parts:
            case = Case(*of)
            record["figures"][case.name] = {
                part: PARTS[part][0](case, chosen.seconds) for part in parts
            }
    if chosen.json:
        environment.write_record(chosen.json, record)


if __name__ == "__main__":
    main()
