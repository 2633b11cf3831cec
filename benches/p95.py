"""A whole search, from the text to the memories, with MiniLM: `make p95`.

`python -m benches.p95 [--rows N ...] [--cpu]` prints, for `Memory.search` with its defaults
(hybrid), the median and the 95th percentile of the whole call in milliseconds, and the median of
each step:

- embed: MiniLM embeds the query; no call uses the vectors of an earlier one;
- index: what was written since the last search is applied to the index (here nothing);
- rank: the core ranks all memories of the scope;
- read: the entries of the hits are taken from the cache, or read and decoded;
- events: metrics and events of the search;
- rest: everything else.

Cold is the median of searches by memories just opened, whose only search yet found another memory:
the entry cache, the query cache and SQLite's own are empty.

Embedding 100,000 texts would take seven minutes and more, so only `EMBEDDED` real sentences are.
A memory is made of thirds of three of them, no two alike; its vector is that of the first, moved by
the difference of the others and a little noise (`datasets.mixtures`). Queries are other real
sentences of at most twelve words. The memories are those of ten users, in sessions of twenty turns.
The files stay under `target/bench-data`.
"""

import argparse
import hashlib
import time
from contextlib import contextmanager
from itertools import islice

import numpy as np

from benches.support import environment
from benches.support.datasets import (
    CACHE,
    FILLED_AT_ONCE,
    HELD_OUT,
    embed,
    mixtures,
    real_texts,
    report,
)
from benches.support.memories import entry_of, of_user, short
from benches.support.timing import P95_GOAL_MS, clock
from mnemic import Memory
from mnemic.embed import MiniLmEmbedder

SIZES = (10_000, 100_000)
EMBEDDED = 4_000
ROUNDS = 100
FRESH = 5
LIMITS = (10, 1000)
SCOPES = {"one user": {"user_id": "user 1"}, "all users": {"all_users": True}}
STEPS = ("embed", "index", "rank", "read", "events")
PROGRAM = "1"  # another number where memories are made in another way


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cpu", action="store_true", help="processor time, on a busy machine")
    given = parser.parse_args()
    environment.restart_at_their_best()
    if given.cpu:
        clock.now = time.thread_time
    embedder = MiniLmEmbedder()
    texts = real_texts()
    queries = short(texts[:HELD_OUT])
    print(environment.title(environment.machine()))
    for count in given.rows:
        path = stored(count, texts[HELD_OUT:][:EMBEDDED], embedder)
        measure(path, count, embedder, queries, given.rounds)


def measure(path, count, embedder, queries, rounds):
    """Print a line for each scope and limit; the calls take turns."""
    cells = [(whose, limit) for whose in SCOPES for limit in LIMITS]
    times = {cell: [] for cell in cells}
    # Without a query cache: there are more calls than queries.
    with Memory(path, embedder=embedder, query_cache=0) as memory, watched(memory) as seconds:
        search(memory, queries[0], "all users", 1000)  # loads the index
        for number in range(rounds):
            for at, cell in enumerate(cells):
                text = queries[(number * len(cells) + at) % len(queries)]
                times[cell].append(timed_steps(memory, text, *cell, seconds))
    cold = {cell: cold_time(path, embedder, queries, *cell) for cell in cells}
    print(f"\n{count:,} memories      p50     p95 |   " + "  ".join(STEPS) + "    rest |   cold")
    print(f"{'goal':24} {P95_GOAL_MS:7} |")
    for (whose, limit), found in times.items():
        whole, *steps = np.median(found, axis=0)
        p95 = np.quantile([one[0] for one in found], 0.95)
        parts = "".join(f"{step:7.2f}" for step in steps)
        name = f"{whose}, {limit:,}"
        print(
            f"{name:16} {whole:7.2f} {p95:7.2f} | {parts} | {cold[whose, limit]:6.1f}", flush=True
        )


def timed_steps(memory, text, whose, limit, seconds):
    """Return the milliseconds of a search, of each of its steps, and of the rest."""
    seconds.update(dict.fromkeys(STEPS, 0.0))
    begun = clock()
    found = search(memory, text, whose, limit)
    whole = clock() - begun
    check(found, memory, whose, limit)
    parts = [seconds[step] for step in STEPS]
    return [1e3 * part for part in (whole, *parts, whole - sum(parts))]


def search(memory, text, whose, limit):
    return memory.search(text, limit=limit, **SCOPES[whose])


def check(found, memory, whose, limit):
    """Check that a search found so many, or all of a scope with fewer memories."""
    wanted = min(limit, memory.count(**SCOPES[whose]))
    assert len(found) == wanted, f"{len(found)} hits of {wanted}"


def cold_time(path, embedder, queries, whose, limit):
    """Return the median milliseconds of the first such search of a memory just opened."""
    times = []
    for text in islice(queries, 1, 1 + FRESH):
        with Memory(path, embedder=embedder) as memory:
            memory.search(queries[0], limit=1, **SCOPES[whose])  # loads the index
            begun = clock()
            found = search(memory, text, whose, limit)
            times.append(clock() - begun)
            check(found, memory, whose, limit)
    return 1e3 * np.median(times)


@contextmanager
def watched(memory):
    """Lend the seconds spent in each step since they were last set to 0."""
    repository = memory.repository
    finder, seconds = repository.finder, dict.fromkeys(STEPS, 0.0)
    index = finder._active.index  # noqa: SLF001 - nothing public leads there
    places = {
        "embed": (finder.vectors, "of"),
        "index": (finder._active, "catch_up"),  # noqa: SLF001 - as above
        "rank": (index, "rank"),
        "read": (finder, "_entries"),
    }
    for step, (owner, name) in places.items():
        setattr(owner, name, timed_step(getattr(owner, name), seconds, step))
    telemetry = repository._telemetry  # noqa: SLF001
    telemetry.searched = timed_event(telemetry.searched, seconds)
    yield seconds


def timed_step(function, seconds, step):
    def call(*given, **named):
        begun = clock()
        try:
            return function(*given, **named)
        finally:
            seconds[step] += clock() - begun

    return call


def timed_event(function, seconds):
    async def call(*given, **named):
        begun = clock()
        await function(*given, **named)
        seconds["events"] += clock() - begun

    return call


def stored(count, texts, embedder):
    """Return the file with so many memories, after filling it if it is missing."""
    key = hashlib.sha256("\n".join([PROGRAM, embedder.model, *texts]).encode()).hexdigest()[:16]
    path = CACHE / f"p95-{count}-{key}.db"
    if not path.exists():
        for leftover in CACHE.glob(f"unfinished-{path.name}*"):
            leftover.unlink()
        unfinished = path.with_name(f"unfinished-{path.name}")
        fill(unfinished, count, texts, embedder, embedded(texts, embedder, key))
        unfinished.rename(path)
    return path


def embedded(texts, embedder, key):
    path = CACHE / f"p95-{key}.npy"
    if not path.exists():
        np.save(path, embed(embedder, texts))
    return np.load(path)


def fill(path, count, texts, embedder, vectors):
    begun = time.monotonic()
    with Memory(path, embedder=embedder) as memory:
        for first in range(0, count, FILLED_AT_ONCE):
            numbers = range(first, min(count, first + FILLED_AT_ONCE))
            memory.add_many(list(entries_of(numbers, texts, vectors, embedder.model)))
            left = (time.monotonic() - begun) / numbers.stop * (count - numbers.stop)
            report(f"stored {numbers.stop:,} of {count:,} memories, about {left:.0f} s left")


def entries_of(numbers, texts, vectors, model):
    """Yield memories of the mixtures of sentences and of their vectors."""
    rows = mixtures(vectors, np.random.default_rng(numbers.start))
    # The first that `mixtures` draws, too.
    sentences = np.random.default_rng(numbers.start).integers(0, len(texts), (3, FILLED_AT_ONCE))
    for number, row, mixed in zip(numbers, rows, sentences.T, strict=False):
        text = mixed_text([texts[at] for at in mixed])
        yield entry_of(number, text, row, model, **of_user(number))


def mixed_text(texts):
    """Return the first third of a text, the second of another, and the last of a third."""
    thirds = zip(range(3), map(str.split, texts), strict=True)
    return " ".join(word for third, words in thirds for word in part(words, third))


def part(words, third):
    """Return a third of some words, rounded so that the first has a word at least."""
    begin, end = ((len(words) * place + 2) // 3 for place in (third, third + 1))
    return words[begin:end]


if __name__ == "__main__":
    main()
