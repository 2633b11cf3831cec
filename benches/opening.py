"""The cost of opening a file: `python -m benches.opening [FOLDER] [--rows N] [--rounds N]`.

This build opens a file of its own, all rows from the store; the same with a snapshot of its index,
once with the files in the page cache and once without (cold, beside a plain read of the snapshot's
bytes, also cold); and a copy of the file without checksums, whose rows are loaded unchecked. FOLDER
holds the package of another build (its `python/`, with the extension in it), and opens a file of
its own. All hold the same real sentences of ten users, with random vectors. The openings take
turns, each in a fresh process that loads the index and answers one search. Prints medians: seconds
of processor time and of the clock, with the median ratios of neighbouring openings, and megabytes
that the process holds more than before.
"""

import argparse
import gc
import os
import shutil
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np

from benches.support.builds import HERE, run
from benches.support.datasets import DIM, real_texts
from benches.support.memories import OneVector, entry_of, of_user, resident_bytes
from mnemic import Memory

BATCH = 5000
MODULE = "benches.opening"


def fill(path, rows):
    """Store real sentences of ten users, with random vectors."""
    texts, random = real_texts(), np.random.default_rng(0)
    with Memory(path, embedder=OneVector()) as memory:
        for first in range(0, rows, BATCH):
            numbers = range(first, min(rows, first + BATCH))
            vectors = random.standard_normal((len(numbers), DIM)).astype(np.float32)
            few = zip(numbers, vectors, strict=True)
            memory.add_many(
                [entry_of(at, texts[at % len(texts)], one, **of_user(at)) for at, one in few]
            )


def without_checksums(path):
    """Return a copy of a file as one of an earlier version comes: its rows have no checksums."""
    copy = path.with_name(f"unchecked-{path.name}")
    shutil.copy(path, copy)
    with closing(apsw.Connection(str(copy))) as connection:
        connection.execute(
            "UPDATE agent_memory_entries SET row_sum = NULL, vector_sum = NULL, link_sum = NULL;"
            "UPDATE agent_memory_agents SET summed_rows = 0, rows_sum = 0"
        )
    return copy


def open_once(path):
    """Print what opening and a first search take: seconds of work and of the clock, bytes."""
    held, _ = resident_bytes()
    began, used = time.perf_counter(), time.process_time()
    with Memory(path, embedder=OneVector()) as memory:
        found = memory.search("a first search", user_id="user 3")
        took = time.process_time() - used, time.perf_counter() - began
        gc.collect()
        now, most = resident_bytes()
    assert found
    print(*took, now - held, most - held)


def save_snapshot(path):
    """Open a file and wait until its snapshot is written, which closing does."""
    with Memory(path, embedder=OneVector()) as memory:
        memory.search("a first search", user_id="user 3")


def snapshots_of(path):
    return sorted(Path(f"{path}-index").glob("*.index"))


def drop_from_cache(paths):
    for path in paths:
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_cold(paths):
    """Return the seconds that reading files takes that are not in the page cache."""
    drop_from_cache(paths)
    began = time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 22):
                pass
    return time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="python/ of another build")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--fill", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--open", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fill:
        fill(given.fill, given.rows)
    elif given.open:
        open_once(given.open)
    else:
        with tempfile.TemporaryDirectory() as folder:
            compare(Path(folder), given)


def compare(folder, given):
    path = folder / "this.db"
    run(MODULE, HERE, "--fill", path, "--rows", given.rows)
    mapped = folder / "mapped.db"
    shutil.copy(path, mapped)
    save_snapshot(mapped)
    openings = {
        "this": (HERE, path),
        "snapshot": (HERE, mapped),
        "snapshot, cold": (HERE, mapped),
        "unchecked": (HERE, without_checksums(path)),
    }
    if given.folder:
        openings["other"] = (given.folder, folder / "other.db")
        run(MODULE, given.folder, "--fill", folder / "other.db", "--rows", given.rows)
    measured = {name: [] for name in openings}
    for turn in range(given.rounds):
        for name in list(openings)[:: 1 if turn % 2 else -1]:
            build, file = openings[name]
            if not name.startswith("snapshot"):
                shutil.rmtree(f"{file}-index", ignore_errors=True)
            elif name.endswith("cold"):
                drop_from_cache([file, *snapshots_of(file)])
            measured[name].append(run(MODULE, build, "--open", file))
    reads = [read_cold(snapshots_of(mapped)) for _ in range(given.rounds)]
    print(f"reading the snapshot cold: {statistics.median(reads):.3f} s by the clock")
    for name, figures in measured.items():
        show(f"{given.rows:,} · {name}", measured["this"], figures)


def show(name, this, figures):
    used, took, now, most = (statistics.median(each) for each in zip(*figures, strict=True))
    both = list(zip(this, figures, strict=True))
    ratios = [statistics.median(one[at] / other[at] for one, other in both) for at in (0, 1)]
    print(
        f"{name}: {used:.3f} s of processor time, {took:.3f} s by the clock; "
        f"this is {ratios[0]:.3f} and {ratios[1]:.3f} of it; "
        f"{now / 1e6:.0f} MB resident, {most / 1e6:.0f} MB while opening"
    )


if __name__ == "__main__":
    main()
