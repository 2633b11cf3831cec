"""Adding to a full memory: `python -m benches.eviction [--rows N ...]`.

Prints the median of a single `add`, in milliseconds, to one user of a file who has all memories:
without limits, with a budget of entries that is not reached, and with one that is, so that each
`add` deletes the least important memory and erases its bytes.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from benches.timing import timed
from mnemic import Memory

AT_ONCE = 10_000
ROUNDS = 50
ENOUGH = 2**40


def fill(path, rows):
    with Memory(path, embedder=None, snapshots=False) as memory:
        for first in range(0, rows, AT_ONCE):
            texts = (
                {
                    "content": f"Memory {number} of a long conversation.",
                    "importance": number % 97 / 97,
                }
                for number in range(first, min(first + AT_ONCE, rows))
            )
            memory.add_many(texts, user_id="ada")


def measure(path, rows):
    ways = {
        "no limit": {},
        "budget": {"user_max_entries": ENOUGH},
        "full": {"user_max_entries": rows, "when_full": "evict"},
    }
    times = {name: [] for name in ways}
    for name, limits in ways.items():
        with Memory(path, embedder=None, snapshots=False, **limits) as memory:
            for number in range(ROUNDS):
                add = lambda: memory.add(f"News {number}", importance=0.99, user_id="ada")  # noqa: B023, E731 - called at once
                seconds, added = timed(add)
                assert len(added.evicted) == (name == "full")
                times[name].append(seconds)
    return {name: statistics.median(seconds) * 1000 for name, seconds in times.items()}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    for rows in parser.parse_args(arguments).rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "memories.db"
            fill(path, rows)
            found = measure(path, rows)
        print(f"{rows:>9,}  " + "  ".join(f"{name} {took:.2f} ms" for name, took in found.items()))


if __name__ == "__main__":
    main(sys.argv[1:])
