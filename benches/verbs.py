"""Verbs over many memories: `python -m benches.verbs [--rows N] [--rounds N] [NAME…]`.

Each verb that writes runs on a fresh copy of one file of N memories of one user (384 dimensions,
tags, metadata), which was opened and searched before. The verbs that read run on one copy, ten
times a round after a first call that does not count. Those "of the store" run without an index.
Prints the median: milliseconds of a call, how many memories it was for (or values, or users), and
microseconds for each of them.
"""

import argparse
import math
import shutil
import statistics
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import numpy as np

from benches.support.datasets import DIM
from benches.support.timing import timed
from mnemic import Memory
from mnemic.model import MemoryType

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
THIRD = {"metadata.third": 0}
HUNDRED = 100
OWN = np.random.default_rng(1).standard_normal((HUNDRED, DIM), dtype=np.float32)


class Random:
    """An embedder whose vectors nothing is searched with."""

    model, dimensions, max_tokens = "random", DIM, None

    def __init__(self):
        self.random = np.random.default_rng(0)

    def embed(self, texts, /):
        return self.random.standard_normal((len(texts), DIM), dtype=np.float32)


def entry(number):
    return {
        "content": f"Ada said that the green kettle {number % 1000} of the kitchen was bought in "
        f"Lisbon. It cost {number} escudos. Nobody remembers the shop.",
        "created_at": NOON + timedelta(seconds=number),
        "type": list(MemoryType)[number % 7],
        "importance": (number * 7919 % 10_007) / 10_007,
        "tags": [f"tag {number % 10}", "home"],
        "metadata": {"room": number % 10, "number": number % 1000, "source": "chat"},
        "category": f"category {number % 10_000}",
    }


def every_third(memory):
    return memory.ids[::3]


SPREAD = 47
"""Places between two memories that a call stores over, so that each lies on pages of its own."""


def renewed(memory, *, old, new=0, suffix=""):
    """Return the fields of memories to store over old ones and as new ones."""
    numbers = [at * SPREAD for at in range(old)]
    given = [entry(number) | {"id": memory.ids[number]} for number in numbers]
    given += [entry(number) | {"id": uuid4()} for number in range(new)]
    for fields in given:
        fields["content"] += suffix
    return given


def put(*, old, new=0, suffix="", way="replace"):
    def call(memory):
        given = renewed(memory, old=old, new=new, suffix=suffix)
        return len(memory.user.add_many(given, on_conflict=way))

    return call


def put_each(*, old, new=0, suffix="", way="replace"):
    def call(memory):
        given = renewed(memory, old=old, new=new, suffix=suffix)
        return len([memory.user.add_many([fields], on_conflict=way) for fields in given])

    return call


def touched(memory):
    ids = memory.ids[: HUNDRED * SPREAD : SPREAD]
    memory.user.touch(ids, expires_at="2100-01-01T00:00:00Z")
    return len(ids)


def with_vectors(memory):
    given = [entry(number) for number in range(HUNDRED)]
    return len(memory.user.add_many(given, embeddings=OWN))


def updated_vectors(memory):
    pairs = zip(memory.ids[::SPREAD], OWN, strict=False)
    return len([memory.user.update(each, embedding=vector) for each, vector in pairs])


VERBS = {
    "delete by filter": lambda memory: memory.user.delete_many(filters=THIRD),
    "delete by filter, permanent": lambda memory: memory.user.delete_many(
        filters=THIRD, permanent=True
    ),
    "delete_many ids": lambda memory: memory.user.delete_many(every_third(memory)),
    "delete_many ids, permanent": lambda memory: memory.user.delete_many(
        every_third(memory), permanent=True
    ),
    "delete one by one, 100": lambda memory: sum(
        memory.user.delete(each) for each in memory.ids[:HUNDRED]
    ),
    "update_many by filter": lambda memory: memory.user.update_many(
        filters=THIRD, add_tags=["seen"]
    ),
    "update_many by filter, content": lambda memory: memory.user.update_many(
        filters=THIRD, content="removed on request"
    ),
    "delete_all, permanent": lambda memory: memory.user.delete_all(permanent=True),
    "users": lambda memory: len(memory.users()),
    "add 100": put(old=0, new=HUNDRED, way="raise"),
    "put 100, all new": put(old=0, new=HUNDRED),
    "put 100, other content": put(old=HUNDRED, suffix=" Anew."),
    "put 100, same content": put(old=HUNDRED),
    "put 100, half new": put(old=HUNDRED // 2, new=HUNDRED // 2, suffix=" Anew."),
    "put 100, skipped": put(old=HUNDRED, way="skip"),
    "add one by one, 100": put_each(old=0, new=HUNDRED, way="raise"),
    "put one by one, 100 new": put_each(old=0, new=HUNDRED),
    "put one by one, 100 other": put_each(old=HUNDRED, suffix=" Anew."),
    "put one by one, 100 same": put_each(old=HUNDRED),
    "touch 100, expiry": touched,
    "add 100, embeddings": with_vectors,
    "update 100, embedding": updated_vectors,
}
"""What is measured; each returns for how many memories it was."""

CALLS = 10
OF_TAG = {"tags": {"contains": "tag 3"}}
PAGE = 10
READS = {
    "get": lambda memory: len([memory.user.get(memory.ids[7])]),
    "get_many 100": lambda memory: len(memory.user.get_many(memory.ids[:HUNDRED])),
    "get_many all": lambda memory: len(memory.user.get_many(memory.ids)),
    "count": lambda memory: memory.user.count(),
    "count by tag": lambda memory: memory.user.count(filters=OF_TAG),
    "count by metadata": lambda memory: memory.user.count(filters=THIRD),
    "distinct category": lambda memory: len(memory.user.distinct("category")),
    "distinct metadata": lambda memory: len(memory.user.distinct("metadata.half")),
    "distinct path": lambda memory: len(memory.user.distinct(("metadata", "deep", "half"))),
    "distinct prefix": lambda memory: len(memory.user.distinct("metadata.half", prefix="half/1")),
    "distinct tags": lambda memory: len(memory.user.distinct("tags")),
    "list at 40": lambda memory: len(memory.user.list(limit=PAGE, offset=40)),
    "list at 40 by tag": lambda memory: len(
        memory.user.list(limit=PAGE, offset=40, filters=OF_TAG)
    ),
    "search text": lambda memory: len(memory.user.search("a harbour")),
    "search text, vector": lambda memory: len(memory.user.search("a harbour", vector=OWN[0])),
    "search vector": lambda memory: len(memory.user.search(vector=OWN[0])),
    "get, embeddings": lambda memory: len([memory.user.get(memory.ids[7], embeddings=True)]),
    "get_many 100, embeddings": lambda memory: len(
        memory.user.get_many(memory.ids[:HUNDRED], embeddings=True)
    ),
    "list at 4,000": lambda memory: len(memory.user.list(limit=PAGE, offset=4000)),
}
"""Verbs that read; each returns how many memories or values it read."""

OF_STORE = " of the store"


class Opened(Memory):
    """A memory with the ids of its memories, and a view of its user."""

    def __init__(self, path, ids, embedder):
        super().__init__(path, embedder=embedder, track_access=False)
        self.ids = ids
        self.user = self.scoped(user_id="ada")


def made(path, rows):
    """Fill a file; return the ids."""
    with Memory(path, embedder=Random()) as memory:
        given = [entry(number) for number in range(rows)]
        for number, fields in enumerate(given):
            half = f"half/{number % 500}"
            fields["metadata"] |= {"third": number % 3, "half": half, "deep": {"half": half}}
            fields["category"] = f"category {number % 500}"
            fields["created_at"] += timedelta(microseconds=number)
        return [stored.id for stored in memory.add_many(given, user_id="ada")]


def measured(verb, source, ids, folder):
    """Return the seconds of one call on a copy of a file, and for how many memories it was."""
    path = Path(folder) / "copy.db"
    shutil.copy(source, path)
    with Opened(path, ids, Random()) as memory:
        memory.user.search("kettle of the kitchen")
        seconds, count = timed(verb, memory)
    path.unlink()
    return seconds, int(count)


def measured_reads(names, source, ids, folder, rounds):
    """Yield name, seconds of the calls and number of memories of the verbs that read."""
    path = Path(folder) / "copy.db"
    shutil.copy(source, path)
    for embedder, where in ((Random(), ""), (None, OF_STORE)):
        with Opened(path, ids, embedder) as memory:
            if embedder is not None:
                memory.user.search("kettle of the kitchen")
            else:  # or the lists themselves would load the index
                memory.repository.lister._loading_seconds = math.inf  # noqa: SLF001
            for name, verb in READS.items():
                if f"{name}{where}" in names:
                    count = verb(memory)
                    runs = [timed(verb, memory)[0] for _ in range(CALLS * rounds)]
                    yield f"{name}{where}", runs, count


def shown(name, seconds, count):
    each = seconds / max(count, 1) * 1e6
    print(f"{name:32} {seconds * 1e3:9.3f} ms {count:7} {each:9.1f} µs each")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    everything = [*VERBS, *READS, *(f"{name}{OF_STORE}" for name in READS)]
    parser.add_argument("names", nargs="*", default=everything)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "source.db"
        ids = made(source, options.rows)
        for name in filter(VERBS.get, options.names):
            runs = [measured(VERBS[name], source, ids, folder) for _ in range(options.rounds)]
            shown(name, statistics.median(each for each, _ in runs), runs[0][1])
        for name, runs, count in measured_reads(options.names, source, ids, folder, options.rounds):
            shown(name, statistics.median(runs), count)


if __name__ == "__main__":
    main(sys.argv[1:])
