"""Files of vectors beside those of faiss and numpy: how fast they open and answer.

Run as `python -m benches.vector_files [--rows 1000000] [--dim 384] [--rounds 7] [--json FILE]`.

Clustered vectors are saved once by each system. Each file, all of it in the page cache, is then
opened in turns by fresh processes of one thread that answer queries one by one: medians of the
opening, the first search, the second, and those that follow. `VectorMap.load` checks the ids, and
its first search compares the checksums of all codes; the peers have no checksums. Of faiss's flags,
IO_FLAG_MMAP_IFC maps a flat index; IO_FLAG_MMAP maps inverted lists and reads a flat index. Every
answer is checked against brute force in float64.
"""

import argparse
import importlib
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benches import environment
from benches.cases import Case
from benches.datasets import DIM
from benches.exact import K
from benches.systems import FaissFlat, Numpy
from benches.timing import timed
from mnemic import VectorMap

KIND = "clustered"
QUERIES = 12
STEPS = ("opening", "first search", "second search", "later searches")
PIECE = 1 << 22


def open_map(path):
    vectors = VectorMap.load(path)
    return lambda query: vectors.search(query, k=K).ids


def open_numpy(path):
    return Numpy(np.load(path, mmap_mode="r")).search


def faiss_opener(flag=None):
    """Return a function that opens a file with the flag of this name."""

    def opened(path):
        faiss = sys.modules["faiss"]
        index = faiss.read_index(str(path), getattr(faiss, flag) if flag else 0)
        return lambda query: index.search(query[None], K)[1][0]

    return opened


OPENERS = {
    "VectorMap.load": ("map", open_map),
    "faiss.read_index": ("faiss", faiss_opener()),
    "the same, IO_FLAG_MMAP": ("faiss", faiss_opener("IO_FLAG_MMAP")),
    "the same, IO_FLAG_MMAP_IFC": ("faiss", faiss_opener("IO_FLAG_MMAP_IFC")),
    "numpy.load, mapped": ("rows.npy", open_numpy),
}


def save_all(case, folder):
    """Write the files; return the seconds that each took, and its bytes."""
    np.save(folder / "queries.npy", case.queries)
    index = case.build(FaissFlat).index
    writers = {
        "map": case.mnemic.vectors.save,
        "faiss": lambda path: importlib.import_module("faiss").write_index(index, str(path)),
        "rows.npy": lambda path: np.save(path, case.rows),
    }
    return {name: saved(folder / name, write) for name, write in writers.items()}


def saved(path, write):
    took, _ = timed(write, path)
    size = path.stat().st_size
    print(f"{path.name:28} written in {took:.2f} s, {size / 1e6:,.0f} MB", flush=True)
    return {"written in, s": took, "bytes": size}


def open_once(name, folder):
    """Print the seconds of opening a file and of each search, and save the answers."""
    file, opener = OPENERS[name]
    queries = np.load(folder / "queries.npy")
    if file == "faiss":
        importlib.import_module("faiss")
    took, search = timed(opener, folder / file)
    searches = [timed(search, query) for query in queries]
    np.save(folder / "answers.npy", [ids for _, ids in searches])
    print(took, *(seconds for seconds, _ in searches))


def steps_of(name, case, folder):
    """Return the seconds of each step in a fresh process, whose answers are checked."""
    read_through(folder / OPENERS[name][0])
    command = [sys.executable, "-m", "benches.vector_files", "--open", name, "--folder", folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 - this very program
    system = case.mnemic if OPENERS[name][1] is open_map else Numpy
    case.check(system, np.load(folder / "answers.npy"))
    opening, first, second, *later = map(float, done.stdout.split())
    return opening, first, second, statistics.median(later)


def read_through(path):
    """Make sure that a file is in the page cache."""
    with path.open("rb", buffering=0) as file:
        while file.read(PIECE):
            pass


def measure(case, folder, rounds):
    times = {name: [] for name in OPENERS}
    for turn in range(rounds):
        for name in list(OPENERS)[:: 1 if turn % 2 else -1]:
            times[name].append(steps_of(name, case, folder))
    return {name: medians_of(name, each) for name, each in times.items()}


def medians_of(name, times):
    medians = [statistics.median(step) for step in zip(*times, strict=True)]
    found = dict(zip(STEPS, medians, strict=True))
    line = ", ".join(f"{step} {seconds * 1e3:,.1f}" for step, seconds in found.items())
    print(f"{name:28} {line} ms", flush=True)
    return found


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", help="write the record here")
    parser.add_argument("--open", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = options()
    if given.open:
        open_once(given.open, given.folder)
        return
    environment.restart_at_their_best()
    record = {"machine": environment.machine()}
    print(environment.title(record["machine"]))
    case = Case(KIND, given.rows, given.dim, QUERIES)
    print(f"{case.name}, medians of {given.rounds} fresh processes, one thread, k = {K}")
    with tempfile.TemporaryDirectory() as folder:
        record["files"] = save_all(case, Path(folder))
        record["seconds"] = measure(case, Path(folder), given.rounds)
    if given.json:
        environment.write_record(given.json, record)


if __name__ == "__main__":
    main()
