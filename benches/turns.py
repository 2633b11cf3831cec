"""Every verb of two builds, in turns: `python -m benches.turns FOLDER [VERB…]`.

FOLDER holds the package of another build (its `python/`, with the extension in it). Each build runs
in a process of its own over 10,000 memories of ten users (384 dimensions, tags, metadata), and
calls the same verbs on the same memories; several pairs of processes follow each other, for where a
process has its memory makes some percent. Prints a Markdown table of processor time: the median
microseconds of a call of either build, the median ratio of neighbouring turns, the other build over
this one, and the ratio of the fastest turns. Above 1 is faster than the other build. Run it by
`taskset -c 1`, with little beside it.
"""

import argparse
import gc
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benches.support.builds import HERE, Build, serve
from benches.verbs import Random, entry
from mnemic import Memory
from mnemic.hyde import HydeEngine
from mnemic.policy import RetrievalPolicy, RetrievalRequest

ROWS, USERS, BATCH, HUNDRED, FEW = 10_000, 10, 2000, 100, 10
QUESTION = "kettle of the kitchen"


class Call(NamedTuple):
    """What is measured, how many calls it makes, and what undoes it, given its answer."""

    run: Callable[[], Any]
    calls: int = 1
    undo: Callable[[Any], object] = bool


def same_hypothesis(_prompt):
    return QUESTION


def opened(path):
    return Memory(path, embedder=Random(), track_access=False)


class Verbs:
    """A filled memory, and calls of its verbs, which leave it as it was but for its contents."""

    def __init__(self, folder):
        names = "memories.db", "copy.db", "empty.db"
        self.path, self.copy, self.empty = [folder / name for name in names]
        self.turn = 0
        with opened(self.path) as memory:
            self.ids = [
                [memory.id for memory in memory.add_many(entries, user_id=f"user {user}")]
                for user in range(USERS)
                for entries in [[entry(number) for number in range(user, ROWS, USERS)]]
            ]
        shutil.copy(self.path, self.copy)
        with opened(self.empty):
            pass
        self.memory = opened(self.path)
        self.memory.search(QUESTION, user_id="user 0")
        user = self.memory.scoped(user_id="user 0")
        self.payloads = RetrievalPolicy(self.memory)
        self.engine = HydeEngine(user, self.memory.embedder, same_hypothesis)
        self.engine.start()
        self.engine.ready()

    @property
    def user(self):
        return {"user_id": f"user {self.turn % USERS}"}

    @property
    def some(self):
        """A hundred memories of the user, spread over its pages."""
        ids = self.ids[self.turn % USERS]
        return ids[self.turn % 7 :: len(ids) // HUNDRED][:HUNDRED]

    def new(self, number):
        return [entry(ROWS + at) for at in range(number)]

    def each(self, verb, **options):
        user, ids = self.user, self.some
        return Call(lambda: [verb(each, **options, **user) for each in ids], len(ids))

    def repeated(self, verb, *arguments, times=HUNDRED, **options):
        user = self.user
        return Call(lambda: [verb(*arguments, **options, **user) for _ in range(times)], times)

    @property
    def questions(self):
        """A hundred that nobody asked before."""
        return [f"kettle {self.turn * HUNDRED + at} in Lisbon" for at in range(HUNDRED)]

    def asked(self, verb):
        user, asks = self.user, self.questions
        return Call(lambda: [verb(ask, **user) for ask in asks], HUNDRED)

    def read_search(self):
        """Searches that find none of their memories in the cache of entries."""
        user, asks, cache = self.user, self.questions, self.memory.repository._cache  # noqa: SLF001

        def run():
            for ask in asks:
                cache.clear()
                self.memory.search(ask, **user)

        return Call(run, HUNDRED)

    def policy(self):
        run, user = self.payloads.run, self.user["user_id"]
        requests = [RetrievalRequest(ask, user, "a session") for ask in self.questions]
        return Call(lambda: [run(request) for request in requests], HUNDRED)

    def hyde_turn(self):
        retrieve, asks = self.engine.retrieve, self.questions
        return Call(lambda: [retrieve(ask, [ask]) for ask in asks], HUNDRED)

    def remove(self, added):
        ids = [memory.id for memory in added]
        self.memory.delete_many(ids, permanent=True, all_users=True)

    def add(self):
        add, user, new = self.memory.add, self.user, self.new(HUNDRED)
        return Call(lambda: [add(fields, **user) for fields in new], HUNDRED, self.remove)

    def add_many(self, size):
        return Call(partial(self.memory.add_many, self.new(size), **self.user), 1, self.remove)

    def replace(self):
        given = [entry(self.turn + at) | {"id": one} for at, one in enumerate(self.some)]
        for fields in given:
            fields["content"] += f" Anew {self.turn}."
        return Call(partial(self.memory.add_many, given, on_conflict="replace", **self.user))

    def restore(self, ids):
        for each in ids:
            self.memory.restore(each, **self.user)

    def soft_delete(self):
        ids = self.some
        run = partial(self.memory.delete_many, ids, **self.user)
        return Call(run, 1, lambda _: self.restore(ids))

    def soft_delete_each(self):
        ids = self.some
        return self.each(self.memory.delete)._replace(undo=lambda _: self.restore(ids))

    def restore_each(self):
        ids = self.some
        self.memory.delete_many(ids, **self.user)
        return Call(partial(self.restore, ids), HUNDRED)

    def delete(self):
        ids = [memory.id for memory in self.memory.add_many(self.new(HUNDRED), **self.user)]
        return Call(partial(self.memory.delete_many, ids, permanent=True, **self.user))

    def link(self):
        pairs, options = list(pairwise(self.some)), {"strength": self.turn % 97 / 100, **self.user}
        link = self.memory.link
        return Call(lambda: [link(one, two, **options) for one, two in pairs], len(pairs))

    def touch(self):
        expiry = f"21{self.turn % 90 + 10}-01-01T00:00:00Z"
        return Call(partial(self.memory.touch, self.some, expires_at=expiry, **self.user))

    def opening(self, path):
        def run():
            with opened(path) as memory:
                return memory.count(**user)

        user = self.user
        return Call(lambda: [run() for _ in range(FEW)], FEW)

    def loading(self):
        def run():
            memory = opened(self.copy)
            memory.search(QUESTION, **user)
            return memory

        user = self.user
        shutil.rmtree(f"{self.copy}-index", ignore_errors=True)
        return Call(run, 1, Memory.close)

    def measured(self, name):
        """Return the microseconds of a call of a verb, in this and each later turn."""
        self.turn += 1
        run, calls, undo = VERBS[name](self)
        gc.collect()
        began = time.process_time()
        answer = run()
        took = time.process_time() - began
        undo(answer)
        return took / calls * 1e6


VERBS = {
    "add": Verbs.add,
    "add_many 100": lambda on: on.add_many(HUNDRED),
    "add_many 2,000": lambda on: on.add_many(BATCH),
    "update": lambda on: on.each(on.memory.update, importance=on.turn % 97 / 100),
    "update, content": lambda on: on.each(on.memory.update, content=f"The kettle is {on.turn}."),
    "replace 100": Verbs.replace,
    "soft delete": Verbs.soft_delete_each,
    "soft delete 100": Verbs.soft_delete,
    "restore": Verbs.restore_each,
    "delete 100": Verbs.delete,
    "link": Verbs.link,
    "links": lambda on: on.each(on.memory.links),
    "touch 100, expiry": Verbs.touch,
    "get": lambda on: on.each(on.memory.get),
    "get 100": lambda on: on.repeated(on.memory.get_many, on.some, times=FEW),
    "list 100": lambda on: on.repeated(on.memory.list, limit=HUNDRED, times=FEW),
    "count": lambda on: on.repeated(on.memory.count),
    "search": lambda on: on.asked(on.memory.search),
    "search, entries read": Verbs.read_search,
    "context": lambda on: on.asked(on.memory.context),
    "retrieve": lambda on: on.asked(on.memory.retrieve),
    "recall": lambda on: on.asked(on.memory.recall),
    "policy run": Verbs.policy,
    "HyDE turn": Verbs.hyde_turn,
    "opening, no memories": lambda on: on.opening(on.empty),
    "opening, from a snapshot": lambda on: on.opening(on.copy),
    "opening, from rows": Verbs.loading,
}
"""What prepares each verb."""


def serve_verbs():
    with tempfile.TemporaryDirectory() as folder:
        verbs = Verbs(Path(folder))
        serve((), lambda name: [verbs.measured(name)])
        verbs.engine.close()
        verbs.memory.close()


def started_together(folders, names, rounds):
    """Yield verbs with the microseconds of either build in each turn, of processes of their own."""
    builds = [Build("benches.turns", folder, "--serve") for folder in folders]
    for name in names:
        for build in builds:
            build.ask(name)
        for turn in range(rounds):
            order = builds if turn % 2 else builds[::-1]
            times = {build: build.ask(name)[0] for build in order}
            yield name, [times[build] for build in builds]
    for build in builds:
        build.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=HERE, help="python/ of another build")
    parser.add_argument("verbs", nargs="*", help="some of the verbs")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each pair of processes")
    parser.add_argument("--starts", type=int, default=3, help="pairs of processes")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args()
    if given.serve:
        serve_verbs()
        return
    pairs = {name: [] for name in given.verbs or VERBS}
    for _ in range(given.starts):
        for name, pair in started_together((given.folder, HERE), pairs, given.rounds):
            pairs[name].append(pair)
    print("| verb | other, µs | this, µs | ratio | of the fastest |", "|---" * 5 + "|", sep="\n")
    for name, times in pairs.items():
        other, this = zip(*times, strict=True)
        ratio = statistics.median(before / now for before, now in times)
        shown = f"{statistics.median(other):,.1f} | {statistics.median(this):,.1f}"
        print(f"| {name} | {shown} | {ratio:.3f} | {min(other) / min(this):.3f} |")


if __name__ == "__main__":
    main()
