"""The services beside the embedding: `python -m benches.services [--rows N ...]`, from 2,000 rows.

Memories and queries are those of `benches.ranking`. Searches by meaning alone take turns with the
services, as a measure of the machine's speed at the moment.
"""

import argparse
import asyncio
import itertools
import logging
import tempfile
from datetime import timedelta
from pathlib import Path

import numpy as np

from benches import environment
from benches.ranking import BEGIN, MODEL, StoredQueries, entries_of, in_turns, show
from benches.timing import quartile, timed
from mnemic import ContextWindow, LinkType, Memory, MemoryQuery, MemoryRetriever
from mnemic.embed.minilm import SIMILARITY_FLOOR, MiniLmEmbedder
from mnemic.sync_bridge import run_sync

SIZES = (10_000, 100_000)
LEAST_ROWS = 2_000
"""A context takes 50 memories of one user of ten, and links join 10,000 pairs of a user's."""
ROUNDS = 200
LINKED = 5_000
LINKS = 10_000


def measure(folder, count):
    queries = StoredQueries()
    queries.similarity_floor = SIMILARITY_FLOOR  # the vectors are MiniLM's
    with Memory(folder / f"memories-{count}.db", embedder=queries) as memory:
        for entries in entries_of(count):
            memory.add_many(entries)
        for whose, named in (("one user", {"user_id": "user 1"}), ("all", {"all_users": True})):
            measure_scope(memory, f"10 of {count:,}, {whose}", queries.texts, named)
        measure_cache(memory, count, queries.texts)
        measure_context(memory, count)
        measure_telemetry(memory, count, queries.texts)
        measure_links(memory, count)
    measure_whole(folder / f"memories-{count}.db", count, queries.texts)


def measure_scope(memory, label, texts, named):
    def retrieve(**options):
        return lambda text: memory.retrieve(
            MemoryQuery(query=text, use_cache=False, **options), **named
        )

    def recall(mode):
        return lambda text: memory.recall(text, mode=mode, **named)

    calls = {
        "Memory.search by meaning": lambda text: memory.search(
            text, search_type="semantic", **named
        ),
        "retrieve": retrieve(),
        "retrieve without total": retrieve(with_total=False),
        "retrieve, hybrid": retrieve(search_type="hybrid"),
        "retrieve, expanded": retrieve(expand_query=True),
        "context": lambda text: memory.context(text, **named),
    }
    measure_calls(calls, label, texts)
    # Apart: the next search that ranks by accesses counts those of these calls.
    modes = ("relevant", "recent", "important", "frequent")
    retriever, begin = MemoryRetriever(memory), BEGIN + timedelta(days=1)
    whose = {"user_id": None, **named}
    others = {
        "recall_temporal, a day": lambda _: run_sync(
            retriever.recall_temporal(begin, begin + timedelta(days=1), limit=10, **whose)
        ),
        "recall_temporal, a day with a topic": lambda text: run_sync(
            retriever.recall_temporal(begin, begin + timedelta(days=1), text, limit=10, **whose)
        ),
        "recall_by_type": lambda _: run_sync(retriever.recall_by_type("fact", **whose)),
    }
    by_mode = {f"recall, {mode}": recall(mode) for mode in modes}
    measure_calls(by_mode | others, label, texts)


def measure_calls(calls, label, texts):
    for call in calls.values():
        for text in texts[:5]:
            call(text)
    for name, times in in_turns(calls, texts, ROUNDS).items():
        show(f"{name}, {label}", times)


def measure_cache(memory, count, texts):
    calls = {"cached": lambda text: memory.retrieve(MemoryQuery(query=text), user_id="user 1")}
    queries = texts[:20]
    for text in queries:
        calls["cached"](text)
    times = in_turns(calls, queries, 10 * ROUNDS)
    show(f"retrieve, cached, 10 of {count:,}, one user", times["cached"])


def measure_context(memory, count):
    query = MemoryQuery(filters={"importance": {"gte": 0.0}}, limit=50)
    memory.retrieve(query, user_id="user 1")
    times = []
    for _ in range(ROUNDS):
        window = ContextWindow(1_000_000)
        took, added = timed(
            lambda window: memory.retrieve_to_context(query, window, user_id="user 1"), window
        )
        assert added == 50, f"the context took {added} memories of 50"
        times.append(took)
    show(f"retrieve_to_context of 50 of {count:,}, cached", times)


def measure_whole(path, count, texts):
    """Time a retrieval with MiniLM embedding the query."""
    embedder = MiniLmEmbedder()
    embedder.model = MODEL  # the stored vectors are its own
    with Memory(path, embedder=embedder) as memory:
        calls = {
            "embedding alone": lambda text: embedder.embed([text]),
            "retrieve with MiniLM": lambda text: memory.retrieve(
                MemoryQuery(query=text, use_cache=False), user_id="user 1"
            ),
        }
        for call in calls.values():
            call(texts[0])
        for name, times in in_turns(calls, texts, ROUNDS).items():
            show(f"{name}, 10 of {count:,}, one user", times)


def measure_telemetry(memory, count, texts):
    """Measure the overhead of events, metrics and log lines without subscribers."""
    retrieval = memory._services.retrieval_engine  # noqa: SLF001 - not public
    query = MemoryQuery(query=texts[0])
    memory.retrieve(query, user_id="user 1")
    full, silent = retrieval._telemetry, _Silent()  # noqa: SLF001

    def took(telemetry):
        retrieval._telemetry = telemetry  # noqa: SLF001
        return timed(lambda given: memory.retrieve(given, user_id="user 1"), query)[0]

    times = {name: [] for name in ("full", "silent")}
    for _ in range(20 * ROUNDS):
        times["full"].append(took(full))
        times["silent"].append(took(silent))
    retrieval._telemetry = full  # noqa: SLF001
    spent = quartile(times["full"]) - quartile(times["silent"])
    print(f"overhead of telemetry of a retrieval of {count:,}: {spent:.1f} µs")


class _Silent:
    """Emits nothing."""

    def hit_cache(self):
        pass

    async def retrieved(self, result, milliseconds):
        pass


def measure_links(memory, count):
    ids, cursor = [], None
    while len(ids) < LINKED:
        page = memory.list(limit=1000, user_id="user 1", cursor=cursor)
        ids += [entry.id for entry in page]
        cursor = page.cursor
        if cursor is None:
            break
    draw = np.random.default_rng(5)
    pairs = set()
    while len(pairs) < LINKS:
        pairs.add(tuple(draw.choice(len(ids), 2, replace=False).tolist()))
    for one, other in pairs:
        memory.link(ids[one], ids[other], LinkType.RELATED, strength=0.5, user_id="user 1")
    retriever = MemoryRetriever(memory)
    starts = itertools.islice(itertools.cycle(ids), ROUNDS)

    async def walk(start, direction):
        return await retriever.recall_linked(start, user_id="user 1", direction=direction, depth=3)

    async def all_walks():
        times = {"out": [], "both": []}
        for start in starts:
            for direction, of_direction in times.items():
                begun = asyncio.get_running_loop().time()
                await walk(start, direction)
                of_direction.append(asyncio.get_running_loop().time() - begun)
        return times

    for direction, times in asyncio.run(all_walks()).items():
        show(f"recall_linked, {direction}, 3 deep, {LINKS:,} links of {count:,}", times)


def rows(argument):
    """Return a number of rows that is large enough for every measurement."""
    count = int(argument)
    if count < LEAST_ROWS:
        raise argparse.ArgumentTypeError(
            f"{count} rows are too few for a context of 50 and {LINKS:,} links of one user's "
            f"memories; measure at least {LEAST_ROWS:,}"
        )
    return count


def main():
    parser = argparse.ArgumentParser(prog="python -m benches.services", description=__doc__)
    parser.add_argument("--rows", type=rows, nargs="*", default=SIZES)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    environment.restart_at_their_best()
    print(environment.title(environment.machine()))
    with tempfile.TemporaryDirectory() as folder:
        for count in options.rows:
            measure(Path(folder), count)


if __name__ == "__main__":
    main()
