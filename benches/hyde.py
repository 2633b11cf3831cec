"""A HyDE engine beside its goals: `python -m benches.hyde [PART …]`.

    turns       what a turn takes beside the model and the embedder, by stage, and a kept turn
    deadline    how late a turn of 2 s ends whose model or embedder hangs
    build       the start over 10,000 memories whose vectors are at hand
    concurrent  200 turns at once
    growth      growth of the process over 3,000 turns

Hypotheses and their vectors are looked up: no model runs, and what the calls of the model and the
embedder take is subtracted. A turn has 5 hypotheses and follows one link; each memory has two. Each
line has the goal and the figure that was seen. Answers are checked, times are not. `--rows` sets
the numbers of memories of the turns; `--cpu` counts processor time, for a busy machine.
"""

import argparse
import asyncio
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benches import environment
from benches.datasets import queries_of, rows_of
from benches.policy import milliseconds, show
from benches.ranking import resident_bytes
from mnemic import LinkType, Memory
from mnemic.hyde import HydeConfig, HydeEngine
from mnemic.model import MemoryLink
from mnemic.store.values import StoredLink

SIZES = (10_000, 100_000)
GOALS = {10_000: "≤ 1 ms", 100_000: "≤ 5 ms"}
ROUNDS = 300
KEPT_ROUNDS = 2_000
USER = "user 0"
HYPOTHESES, TOP_K, MOST_NEIGHBOURS = 5, 10, 10
DISTANCES = (1, 3)
"""A memory is linked to those of its user that are so many before it."""

STAGES = ("ready", "hypotheses", "embedding", "search", "expansion", "lineages")
WINDOW = ["user: why does the ferry leave before the tide?", "assistant: Let me see."]
HANGING_TURNS, TIMEOUT = 20, 2.0
CONCURRENT = 200
WARM_UP, GROWN = 500, 3_000
BUILT = 10_000


class Clock:
    """Seconds, by the clock on the wall or by this process's work."""

    now = staticmethod(time.perf_counter)


clock = Clock()


class Stopwatch:
    """Seconds of calls that are no part of the engine; of several at once, all are counted."""

    def __init__(self):
        self.seconds = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def running(self) -> Iterator[None]:
        begun = clock.now()
        yield
        with self._lock:
            self.seconds += clock.now() - begun

    def restart(self):
        self.seconds = 0.0


class Vectors:
    """Vectors by the number that ends a text: of memories, and of hypotheses."""

    model, max_tokens, similarity_floor = "looked up", None, None

    def __init__(self, count, kind="real", stopwatch=None):
        self.rows = rows_of(kind, count)
        self.queries = queries_of(kind, self.rows, 1_000)
        self.dimensions = self.rows.shape[1]
        self.embedded = 0
        self._stopwatch = stopwatch or Stopwatch()

    def embed(self, texts):
        with self._stopwatch.running():
            self.embedded += len(texts)
            return np.stack([self._vector(text) for text in texts])

    def _vector(self, text):
        name, number = text.rstrip(".").rsplit(" ", 1)
        found = self.queries if name == "Hypothesis" else self.rows
        return found[int(number) % len(found)]


class Model:
    """A language model that answers at once, each time with other hypotheses."""

    def __init__(self, stopwatch):
        self.calls = 0
        self._stopwatch = stopwatch

    async def complete(self, _prompt, *, system=None):
        with self._stopwatch.running():
            assert system
            self.calls += 1
            numbers = range(HYPOTHESES * self.calls, HYPOTHESES * (self.calls + 1))
            return "\n".join(f"Hypothesis {number}." for number in numbers)


def filled(path, rows, users=1, kind="real", stopwatch=None):
    """Return a memory of the users' notes, each linked to two earlier ones of its user."""
    memory = Memory(path, embedder=Vectors(rows, kind, stopwatch))
    found = memory.add_many(
        {
            "content": f"The note of the harbour, number {number}",
            "user_id": f"user {number % users}",
        }
        for number in range(rows)
    )
    link(memory, [one.id for one in found], users)
    return memory


def link(memory, ids, users):
    """Write the links by one call of the store: one by one they take longer than the memories."""
    now = datetime.now(UTC)
    links = [
        StoredLink(
            MemoryLink(ids[at], ids[at - users * distance], LinkType.RELATED, 0.9, now),
            f"user {at % users}",
        )
        for at in range(len(ids))
        for distance in DISTANCES
        if at >= users * distance
    ]
    scope = memory.scope.narrowed(all_users=True)
    written = memory.repository._store.add_links(scope, links).result()  # noqa: SLF001 - no verb takes many
    assert written == len(links)


def engine_of(memory, stopwatch, model=None, **options):
    """Return an engine over the notes of the first user."""
    config = HydeConfig(min_similarity=-1.0, **options)
    view = memory.scoped(user_id=USER)
    return HydeEngine(view, memory.embedder, model or Model(stopwatch), config)


def checked(memories, rows):
    """Return the memories of a turn, which have to be full: found ones, and linked ones."""
    linked = [one for one in memories if one.via is not None]
    assert len(memories) - len(linked) == min(TOP_K, rows), len(memories)
    assert 0 < len(linked) <= MOST_NEIGHBOURS, len(linked)
    assert len({one.id for one in memories}) == len(memories)
    return memories


# Turns


def measure_turns(sizes):
    for rows in sizes:
        for users in (1, 10):
            stopwatch = Stopwatch()
            with (
                tempfile.TemporaryDirectory() as folder,
                filled(Path(folder) / "notes.db", rows, users, stopwatch=stopwatch) as memory,
            ):
                label = f"{rows:,} memories, one user" + (" of ten" if users > 1 else "")
                asyncio.run(show_turns(memory, stopwatch, label, rows, rows // users))
                show_plain_turns(memory, stopwatch, label, rows, rows // users)


async def show_turns(memory, stopwatch, label, rows, own_rows):
    async with engine_of(memory, stopwatch) as engine:
        assert await engine.ready(60)
        beside, stages = [], {stage: [] for stage in STAGES}
        for number in range(ROUNDS + 10):
            took, memories = await timed_turn(engine, stopwatch, f"turn {number}")
            checked(memories, own_rows)
            if number >= 10:
                beside.append(took)
                seen = engine.stats().latency_ms
                for stage in STAGES:
                    stages[stage].append(seen.get(stage, 0.0) / 1e3)
        show(f"a turn, {label}", GOALS.get(rows, ""), milliseconds(beside))
        for stage, seconds in stages.items():
            show(
                f"    {stage}{' (with the call)' if stage in WITH_CALLS else ''}",
                "",
                milliseconds(seconds),
            )
        kept = [(await timed_turn(engine, stopwatch, "turn 309"))[0] for _ in range(KEPT_ROUNDS)]
        show("    the same turn again", "≤ 20 µs", microseconds(kept))


WITH_CALLS = ("hypotheses", "embedding")


async def timed_turn(engine, stopwatch, name):
    """Return the seconds of a turn without the calls of the model and the embedder, and more."""
    stopwatch.restart()
    begun = clock.now()
    memories = await engine.retrieve(name, WINDOW)
    return clock.now() - begun - stopwatch.seconds, memories


def show_plain_turns(memory, stopwatch, label, rows, own_rows):
    with engine_of(memory, stopwatch).sync as engine:
        assert engine.ready(60)
        turns = [timed_plain_turn(engine, stopwatch, f"turn {at}") for at in range(ROUNDS + 10)]
        assert all(checked(memories, own_rows) for _, memories in turns)
        seconds = [took for took, _ in turns[10:]]
        show(f"a turn at the plain door, {label}", GOALS.get(rows, ""), milliseconds(seconds))
        kept = [timed_plain_turn(engine, stopwatch, "turn 309")[0] for _ in range(KEPT_ROUNDS)]
        show("    the same turn again", "≤ 20 µs", microseconds(kept))


def timed_plain_turn(engine, stopwatch, name):
    stopwatch.restart()
    begun = clock.now()
    memories = engine.retrieve(name, WINDOW)
    return clock.now() - begun - stopwatch.seconds, memories


def microseconds(seconds):
    median, p95 = np.quantile(np.array(seconds) * 1e6, [0.5, 0.95])
    return f"p50 {median:8.1f} µs   p95 {p95:8.1f} µs"


# Deadline


def measure_deadline(_sizes):
    from mnemic.llm import HttpLanguageModel  # noqa: PLC0415 - needs the extra `http`
    from tests.support.model_server import model_server  # noqa: PLC0415

    stopwatch = Stopwatch()
    with filled(":memory:", 1_000, kind="clustered", stopwatch=stopwatch) as memory:
        with model_server() as server:
            server.faults(hang=True, times=0)
            model = HttpLanguageModel("local", base_url=server.url, api_key="")
            late = lateness(memory, memory.embedder, model)
            show_lateness("the model's server hangs", late)
        late = lateness(memory, Hanging(memory.embedder), Model(stopwatch))
        show_lateness("the embedder hangs", late)


class Hanging:
    """An embedder that does not return until the engine has long given up."""

    max_tokens, similarity_floor = None, None

    def __init__(self, embedder):
        self.model, self.dimensions = embedder.model, embedder.dimensions

    def embed(self, texts):
        threading.Event().wait(2 * TIMEOUT)
        return np.ones((len(texts), self.dimensions), np.float32)


def lateness(memory, embedder, model):
    """Return by how many seconds each turn ends after its deadline, at both doors in turn."""
    engine = HydeEngine(memory.scoped(user_id=USER), embedder, model, HydeConfig(timeout=TIMEOUT))

    async def turn(number):
        return await engine.retrieve(f"turn {number}", WINDOW)

    late = []
    with engine.sync as plain:
        assert plain.ready(60)
        for number in range(HANGING_TURNS):
            begun = time.perf_counter()
            if number % 2:
                found = plain.retrieve(f"turn {number}", WINDOW)
            else:
                found = asyncio.run(turn(number))
            late.append(time.perf_counter() - begun - TIMEOUT)
            assert not found
    return late


def show_lateness(label, late):
    seen = f"median {1e3 * np.median(late):.1f} ms, latest {1e3 * max(late):.1f} ms"
    show(f"{label}: a turn of {TIMEOUT:g} s ends late by", "≤ 50 ms", seen)


# Build


def measure_build(_sizes):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "notes.db"
        filled(path, BUILT).close()
        vectors = Vectors(BUILT)
        seconds = [opened(path, vectors) for _ in range(5)]
        show(
            f"opening and start over {BUILT:,} stored vectors",
            "≤ 0.5 s",
            f"{np.median(seconds):.3f} s",
        )
        show(
            f"start over {BUILT:,} cached vectors of another model",
            "≤ 0.5 s",
            f"{np.median(built_anew(path, vectors)):.3f} s",
        )


def opened(path, vectors):
    """Return the seconds from the opening of a memory to the end of the engine's first build."""
    vectors.embedded, begun = 0, time.perf_counter()
    with Memory(path, embedder=vectors) as memory, engine_of(memory, Stopwatch()).sync as engine:
        assert engine.ready(60)
        took = time.perf_counter() - begun
        assert not vectors.embedded
        assert engine.retrieve("a turn", WINDOW)
    return took


def built_anew(path, vectors):
    """Return the same of an index of its own, by vectors that the store keeps beside the others."""
    from mnemic.hyde.own_index import OwnIndex  # noqa: PLC0415

    other = Vectors(BUILT)
    other.model = "another model"
    seconds = []
    with Memory(path, embedder=vectors) as memory:
        scope = memory.scoped(user_id=USER).scope
        OwnIndex(memory.repository, scope, other).build()  # stores them
        for _ in range(5):
            begun = time.perf_counter()
            built = OwnIndex(memory.repository, scope, other).build()
            seconds.append(time.perf_counter() - begun)
            assert (built.rows, built.loaded, built.embedded) == (BUILT, BUILT, 0)
    return seconds


# Many turns


def measure_concurrent(_sizes):
    stopwatch = Stopwatch()
    with filled(":memory:", BUILT, stopwatch=stopwatch) as memory:
        asyncio.run(show_concurrent(memory, stopwatch))


async def show_concurrent(memory, stopwatch):
    model = Model(stopwatch)
    async with engine_of(memory, stopwatch, model, timeout=30.0) as engine:
        assert await engine.ready(60)
        took, turns = await at_once(engine, [f"turn {number}" for number in range(CONCURRENT)])
        assert all(checked(memories, BUILT) for memories in turns)
        assert model.calls == CONCURRENT
        seen = f"{1e3 * took:.0f} ms together, {1e3 * took / CONCURRENT:.2f} ms each"
        show(f"{CONCURRENT} turns at once over {BUILT:,} memories", "", seen)
        took, same = await at_once(engine, ["one turn"] * CONCURRENT)
        assert model.calls == CONCURRENT + 1
        assert len({tuple(one.id for one in memories) for memories in same}) == 1
        show(f"{CONCURRENT} calls of one turn at once", "", f"{1e3 * took:.0f} ms together")


async def at_once(engine, names):
    """Return the seconds of turns that run at once, and their memories."""
    begun = time.perf_counter()
    turns = await asyncio.gather(*(engine.retrieve(name, WINDOW) for name in names))
    return time.perf_counter() - begun, turns


def measure_growth(_sizes):
    stopwatch = Stopwatch()
    with filled(":memory:", BUILT, stopwatch=stopwatch) as memory:
        with engine_of(memory, stopwatch).sync as engine:
            for number in range(WARM_UP):
                engine.retrieve(f"turn {number}", WINDOW)
            before, _ = resident_bytes()
            for number in range(GROWN):
                engine.retrieve(f"later turn {number}", WINDOW)
            growth = resident_bytes()[0] - before
        seen = f"{growth / 1e3:,.0f} kB, {growth / GROWN:,.0f} bytes each"
        show(f"growth of the process over {GROWN:,} turns", "none that stays", seen)


PARTS = {
    "turns": measure_turns,
    "deadline": measure_deadline,
    "build": measure_build,
    "concurrent": measure_concurrent,
    "growth": measure_growth,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--rows", type=int, nargs="*", default=SIZES)
    parser.add_argument("--cpu", action="store_true", help="processor time, on a busy machine")
    given = parser.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    environment.restart_at_their_best()
    clock.now = time.process_time if given.cpu else time.perf_counter
    print(environment.title(environment.machine()))
    for part in given.parts or PARTS:
        PARTS[part](given.rows)


if __name__ == "__main__":
    main()
