"""The way of a call through the package: every function between a door and the core or the file.

    python -m benches.way            all ways, and how many functions each has
    python -m benches.way search     the way of `Memory.search` to the core's ranking
    python -m benches.way add        the way of `Memory.add` to the INSERT
    python -m benches.way policy     the way of `RetrievalPolicy.run` to the core's ranking
    python -m benches.way turn       the way of `HydeEngine.retrieve` to the core's ranking

A function counts once, however often it is called; comprehensions and lambdas do not count. Memory
and embedder are warm: earlier calls have built their caches.

Crossings are calls of a whole search into objects of `mnemic._core`, attributes and lengths
included: without speakers, with one, and with one but without an embedder.
"""

import argparse
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import mnemic
from benches.support.memories import OneVector
from mnemic import Memory
from mnemic.hyde import HydeEngine
from mnemic.policy import RetrievalPolicy, RetrievalRequest

PACKAGE = str(Path(mnemic.__file__).parent)
TABLE = "INSERT INTO agent_memory_entries"


class Way:
    """The functions of the package that a call enters, up to a place."""

    def __init__(self):
        self.begin()

    def begin(self):
        """Forget what was called so far."""
        self.steps = []
        self.depths = threading.local()
        self.is_over = False

    def __call__(self, frame, event, argument):
        if self.is_over:
            return
        if event == "c_call":
            self.is_over = getattr(argument, "__qualname__", "") == "MemoryIndex.rank"
        elif frame.f_code.co_filename.startswith(PACKAGE):
            depth = getattr(self.depths, "now", 0)
            if event == "call":
                self.steps.append((depth, name_of(frame.f_code)))
            self.depths.now = depth + {"call": 1, "return": -1}.get(event, 0)

    def stop_at_insert(self, _cursor, sql, _values):
        self.is_over = self.is_over or TABLE in sql
        return True

    @property
    def functions(self):
        """Those that were entered."""
        return {name for _, name in self.steps if not name.endswith(">")}

    @property
    def stack(self):
        """Those that had not returned when the place was reached."""
        stack = []
        for depth, name in self.steps:
            stack[depth:] = [name]
        return [name for name in stack if not name.endswith(">")]


def name_of(code):
    module = Path(code.co_filename).relative_to(PACKAGE).with_suffix("")
    return f"{'.'.join(module.parts)}.{code.co_qualname}"


@contextmanager
def followed(way):
    """Follow the calls of this thread and of those that begin meanwhile."""
    threading.setprofile(way)
    sys.setprofile(way)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


class Guesses:
    """A language model that guesses the same each time."""

    model = "guesses"

    async def complete(self, _prompt, **_):
        return "a memory is stored"


class CountedCore:
    """The core's index, which notes what is read of it."""

    def __init__(self, core):
        self.core, self.crossings = core, []

    def __getattr__(self, name):
        self.crossings.append(name)
        return getattr(self.core, name)

    def __len__(self):
        self.crossings.append("__len__")
        return len(self.core)


def crossings_of(memory, call):
    """Return the calls into the core of one call of a memory."""
    index = memory.repository._indexes.active.index  # noqa: SLF001 - nothing public leads there
    core = index._core  # noqa: SLF001
    index._core = counted = CountedCore(core)  # noqa: SLF001
    try:
        call()
    finally:
        index._core = core  # noqa: SLF001
    return counted.crossings


def show_crossings(folder):
    cases = {
        "no speakers": (OneVector(), None),
        "a speaker": (OneVector(), "Ada"),
        "a speaker, no embedder": (None, "Ada"),
    }
    for number, (name, (embedder, speaker)) in enumerate(cases.items()):
        with Memory(f"{folder}/{number}.db", embedder=embedder) as memory:
            memory.add("a boat", speaker=speaker)
            memory.search("anything")
            crossings = crossings_of(memory, lambda: memory.search("what did Ada say of a boat"))
        print(f"Memory.search, {name}: {len(crossings)} crossings: {', '.join(crossings)}")


def way_of_search(memory):
    way = Way()
    with followed(way):
        memory.search("what is stored here")
    return way


def way_of_add(memory):
    way = Way()
    writer = memory.repository._store._connections.writer  # noqa: SLF001 - nothing public leads there
    writer.exec_trace = way.stop_at_insert
    try:
        with followed(way):
            memory.add("one more memory")
    finally:
        writer.exec_trace = None
    return way


def way_of_policy(memory):
    way, policy = Way(), RetrievalPolicy(memory)
    memory.add("a memory of ann", user_id="ann")
    policy.run(RetrievalRequest("what is stored", "ann", "today"))
    request = RetrievalRequest("what is stored here", "ann", "today")
    with followed(way):
        policy.run(request)
    return way


def way_of_turn(memory):
    way, window = Way(), ["user: what is stored?"]
    with followed(way), HydeEngine(memory, memory.embedder, Guesses()) as engine:
        engine.ready(5)
        engine.retrieve("what", window)
        way.begin()
        engine.retrieve("what else", window)
    return way


WAYS = {
    "search": ("Memory.search", way_of_search),
    "add": ("Memory.add", way_of_add),
    "policy": ("RetrievalPolicy.run", way_of_policy),
    "turn": ("HydeEngine.retrieve", way_of_turn),
}


def show(name, way):
    entered, stack = len(way.functions), len(way.stack)
    print(f"{name}: {entered} functions are entered, {stack} are on the stack at the end")
    seen = set()
    for depth, function in way.steps:
        again = " (again)" if function in seen else ""
        seen.add(function)
        print(f"{'  ' * (depth + 1)}{function}{again}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("way", nargs="?", choices=WAYS, help="one alone")
    asked = parser.parse_args().way
    with TemporaryDirectory() as folder, Memory(f"{folder}/a.db", embedder=OneVector()) as memory:
        for number in range(3):
            memory.add(f"memory {number}")
            memory.search("anything")
        for asked_for, (name, follow) in WAYS.items():
            if asked in {None, asked_for}:
                way = follow(memory)
                assert way.is_over, f"{name} did not get there"
                show(name, way)
        if asked in {None, "search"}:
            show_crossings(folder)


if __name__ == "__main__":
    main()
