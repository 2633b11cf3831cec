"""Calls of an embedder, and what joining them costs: `python -m benches.embedders`.

Prints the number of calls that 140 concurrent `add`s and `search`es make with an embedder that
takes `--seconds` for a call, from tasks and from threads; then the medians of a single `add` and a
single `search`, with and without joined calls, in turns, and the median ratio of neighbouring turns
(`--kind local` for MiniLM, `instant` for an embedder that takes no time).
"""

import argparse
import asyncio
import statistics
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from mnemic import AsyncMemory, Memory, as_embedder
from mnemic.embed import MiniLmEmbedder

CALLERS = 140
DIM = 384
TURNS = 40
CALLS_A_TURN = 50


class Slow:
    """Takes a while for a call, like a service, and counts its calls."""

    model, dimensions = "slow", DIM

    def __init__(self, seconds, *, join_calls):
        self.seconds, self.join_calls = seconds, join_calls
        self.calls, self.lock = 0, threading.Lock()

    def embed(self, texts):
        with self.lock:
            self.calls += 1
        if self.seconds:
            time.sleep(self.seconds)
        return np.stack([vector_of(text) for text in texts])


def vector_of(text):
    random = np.random.default_rng(zlib.crc32(text.encode()))
    vector = random.standard_normal(DIM).astype(np.float32)
    return vector / np.linalg.norm(vector)


async def awaited(embedder, verb):
    async with AsyncMemory(":memory:", embedder=embedder) as memory:
        await memory.add("the first")
        embedder.calls = 0
        begun = time.perf_counter()
        call = getattr(memory, verb)
        await asyncio.gather(*(call(f"text {at}") for at in range(CALLERS)))
        return embedder.calls, time.perf_counter() - begun


def threaded(embedder, verb):
    with Memory(":memory:", embedder=embedder) as memory, ThreadPoolExecutor(CALLERS) as pool:
        memory.add("the first")
        embedder.calls = 0
        begun = time.perf_counter()
        list(pool.map(getattr(memory, verb), [f"text {at}" for at in range(CALLERS)]))
        return embedder.calls, time.perf_counter() - begun


def report_calls(seconds):
    for verb in ("add", "search"):
        for join_calls in (True, False):
            joined = "joined" if join_calls else "apart "
            calls, took = asyncio.run(awaited(Slow(seconds, join_calls=join_calls), verb))
            print(f"{CALLERS} tasks    {verb:6} {joined} {calls:4} calls {took * 1000:8.1f} ms")
            calls, took = threaded(Slow(seconds, join_calls=join_calls), verb)
            print(f"{CALLERS} threads  {verb:6} {joined} {calls:4} calls {took * 1000:8.1f} ms")


def embedder_of(kind, *, join_calls):
    if kind == "local":
        return as_embedder(MiniLmEmbedder(), join_calls=join_calls)
    return Slow(0.0, join_calls=join_calls)


def milliseconds(call, turn):
    times = []
    for at in range(CALLS_A_TURN):
        begun = time.perf_counter()
        call(f"a note of turn {turn}, number {at}")
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times)


def report_single(kind):
    memories = {
        join_calls: Memory(
            ":memory:", embedder=embedder_of(kind, join_calls=join_calls), query_cache=0
        )
        for join_calls in (True, False)
    }
    for verb in ("add", "search"):
        calls = {join_calls: getattr(memory, verb) for join_calls, memory in memories.items()}
        taken = {True: [], False: []}
        for turn in range(TURNS):
            for join_calls in (True, False) if turn % 2 else (False, True):
                taken[join_calls].append(milliseconds(calls[join_calls], turn))
        ratios = [joined / apart for joined, apart in zip(*taken.values(), strict=True)]
        joined, apart = map(statistics.median, taken.values())
        print(
            f"single {verb:6} {kind:7} joined {joined:.3f} ms, apart {apart:.3f} ms, "
            f"ratio {statistics.median(ratios):.3f}"
        )
    for memory in memories.values():
        memory.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--kind", choices=("local", "instant"), default="instant")
    parser.add_argument("--only", choices=("calls", "single"))
    given = parser.parse_args()
    if given.only != "single":
        report_calls(given.seconds)
    if given.only != "calls":
        report_single(given.kind)


if __name__ == "__main__":
    main()
