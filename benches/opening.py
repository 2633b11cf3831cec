"""The cost of opening a file: `python -m benches.opening [FOLDER] [--rows N] [--rounds N]`.

This build opens a file of its own, all rows from the store; the same with a snapshot of its index,
once with the files in the page cache and once without (cold, beside a plain read of the snapshot's
bytes, also cold); and a copy of the file without checksums, whose rows are loaded unchecked. FOLDER
holds the package of another build (its `python/`, with the extension in it), and opens a file of
its own. All hold the same real sentences of ten users, with random vectors. The openings take
turns, each in a fresh process that loads the index and answers one search. Prints medians: seconds
of processor time and of the clock, with the median ratios of neighbouring openings.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import numpy as np

from mnemic import Memory, MemoryEntry

DIM = 384
USERS = 10
BATCH = 5000
MODEL = "random"
AGENT = "default"
BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
ROOT = Path(__file__).parents[1]


class Embedder:
    """Gives every query the same vector."""

    model = MODEL
    dimensions = DIM

    def embed(self, texts):
        return np.ones((len(texts), DIM), np.float32)


def entry_of(number, text, vector):
    return MemoryEntry(
        id=uuid.UUID(int=number + 1),
        agent_id=AGENT,
        content=text,
        created_at=BEGIN + timedelta(minutes=number),
        user_id=f"user {number % USERS}",
        session_id=f"session {number // 200}",
        importance=number % 100 / 100,
        embedding=vector,
        embedding_model=MODEL,
    )


def fill(path, rows):
    from benches.datasets import real_texts  # noqa: PLC0415 - an opening does without

    texts, random = real_texts(), np.random.default_rng(0)
    with Memory(path, embedder=Embedder()) as memory:
        for first in range(0, rows, BATCH):
            numbers = range(first, min(rows, first + BATCH))
            vectors = random.standard_normal((len(numbers), DIM)).astype(np.float32)
            few = zip(numbers, vectors, strict=True)
            memory.add_many([entry_of(at, texts[at % len(texts)], one) for at, one in few])


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
    """Print seconds of processor time and of the clock until the first search is answered."""
    began, used = time.perf_counter(), time.process_time()
    with Memory(path, embedder=Embedder()) as memory:
        found = memory.search("a first search", user_id="user 3")
        took = time.process_time() - used, time.perf_counter() - began
    assert found
    print(*took)


def save_snapshot(path):
    """Open a file and wait until its snapshot is written, which closing does."""
    with Memory(path, embedder=Embedder()) as memory:
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


def run(folder, *arguments):
    command = [sys.executable, "-m", "benches.opening", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(Path(folder).resolve())}
    environment["OPENBLAS_NUM_THREADS"] = "1"  # its threads turn idly
    done = subprocess.run(  # noqa: S603 - this very program
        command, check=True, capture_output=True, text=True, env=environment, cwd=ROOT
    )
    return [float(number) for number in done.stdout.split()]


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
    here = ROOT / "python"
    path = folder / "this.db"
    run(here, "--fill", path, "--rows", given.rows)
    mapped = folder / "mapped.db"
    shutil.copy(path, mapped)
    save_snapshot(mapped)
    openings = {
        "this": (here, path),
        "snapshot": (here, mapped),
        "snapshot, cold": (here, mapped),
        "unchecked": (here, without_checksums(path)),
    }
    if given.folder:
        openings["other"] = (given.folder, folder / "other.db")
        run(given.folder, "--fill", folder / "other.db", "--rows", given.rows)
    times = {name: [] for name in openings}
    for turn in range(given.rounds):
        for name in list(openings)[:: 1 if turn % 2 else -1]:
            build, file = openings[name]
            if not name.startswith("snapshot"):
                shutil.rmtree(f"{file}-index", ignore_errors=True)
            elif name.endswith("cold"):
                drop_from_cache([file, *snapshots_of(file)])
            times[name].append(run(build, "--open", file))
    reads = [read_cold(snapshots_of(mapped)) for _ in range(given.rounds)]
    print(f"reading the snapshot cold: {statistics.median(reads):.3f} s by the clock")
    for name, measured in times.items():
        show(f"{given.rows:,} · {name}", times["this"], measured)


def show(name, this, measured):
    used, took = (statistics.median(seconds) for seconds in zip(*measured, strict=True))
    both = list(zip(this, measured, strict=True))
    ratios = [statistics.median(one[at] / other[at] for one, other in both) for at in (0, 1)]
    print(
        f"{name}: {used:.3f} s of processor time, {took:.3f} s by the clock; "
        f"this is {ratios[0]:.3f} and {ratios[1]:.3f} of it"
    )


if __name__ == "__main__":
    main()
