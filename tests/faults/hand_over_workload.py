"""Three event loops, plain threads, forks, Ctrl-C, and a close in the midst of all of it.

A program: `python -m tests.faults.hand_over_workload SEED SECONDS URL` prints, as JSON, the ids of
the memories whose addition was acknowledged, what raised, and how the forked processes ended.
"""

import asyncio
import faulthandler
import json
import os
import random
import signal
import sys
import threading
import time
from collections import Counter

from mnemic import AsyncMemory, Memory
from mnemic.errors import MnemicError, StoreError
from tests.support.embedders import WordEmbedder

LOOPS, TASKS, PLAIN = 3, 8, 2
LONGEST_CHILD = 20
"""Seconds after which a forked process is ended by its alarm."""


class Slow(WordEmbedder):
    """An embedder on whose answers event loops wait."""

    async def embed(self, texts, /):
        await asyncio.sleep(random.uniform(0, 0.002))  # noqa: S311 - no secret
        return super().embed(texts)


class Crowd:
    """Whoever uses a memory at once, until it is closed under them.

    Args:
        url: Where it is.
        seed: Of its random choices.
    """

    def __init__(self, url, seed):
        self.random = random.Random(seed)  # noqa: S311 - no secret
        self.awaited, self.plain = AsyncMemory(url, embedder=Slow()), Memory(url, embedder=Slow())
        self.added, self.raised, self.children = [], Counter(), Counter()
        self.is_over = threading.Event()

    def note(self, error):
        self.raised[f"{type(error).__name__}: {str(error)[:150]}"] += 1

    async def task(self, name):
        at = 0
        while not self.is_over.is_set():
            at += 1
            try:
                entry = await self.awaited.add(f"{name} keeps number {at}")
                self.added.append(str(entry.id))
                await self.awaited.search(f"number {at}")
                await self.awaited.get(entry.id)
            except MnemicError as error:
                self.note(error)
                await asyncio.sleep(0.01)

    async def tasks(self, name):
        await asyncio.gather(*[self.task(f"{name}, task {at}") for at in range(TASKS)])

    def run_loop(self, name):
        asyncio.run(self.tasks(name))

    def run_plain(self, name):
        at = 0
        while not self.is_over.is_set():
            at += 1
            try:
                self.added.append(str(self.plain.add(f"{name} keeps number {at}").id))
                self.plain.search(f"number {at}")
            except MnemicError as error:
                self.note(error)
                time.sleep(0.01)

    def run_forks(self):
        while not self.is_over.is_set():
            child = os.fork()
            if child == 0:
                self.refused_in_child()
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            self.children[str(status)] += 1
            time.sleep(0.05)

    def refused_in_child(self):
        """End with 0 where a memory of the parent's is refused, and with 3 otherwise."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, LONGEST_CHILD)
        try:
            self.plain.search("number")
        except StoreError:
            os._exit(0)
        finally:
            os._exit(3)

    def interrupted(self, seconds):
        """Add memories in this thread, whose calls Ctrl-C ends at random moments."""
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        ends, at = time.monotonic() + seconds, 0
        while time.monotonic() < ends:
            at += 1
            try:
                signal.setitimer(signal.ITIMER_REAL, self.random.uniform(1e-5, 0.01))
                entry = self.plain.add(f"the interrupted one keeps number {at}")
                signal.setitimer(signal.ITIMER_REAL, 0)
                self.added.append(str(entry.id))
            except KeyboardInterrupt:
                self.raised["KeyboardInterrupt"] += 1
            except MnemicError as error:
                self.note(error)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def close(self):
        """Close both memories while everybody uses them."""
        closing = threading.Thread(target=lambda: asyncio.run(self.awaited.close()))
        closing.start()
        self.plain.close()
        closing.join()

    def run(self, seconds):
        threads = [
            *[threading.Thread(target=self.run_loop, args=[f"loop {at}"]) for at in range(LOOPS)],
            *[
                threading.Thread(target=self.run_plain, args=[f"thread {at}"])
                for at in range(PLAIN)
            ],
            threading.Thread(target=self.run_forks),
        ]
        for thread in threads:
            thread.start()
        self.interrupted(seconds)
        self.close()
        time.sleep(0.1)  # the others' calls of a closed memory
        try:
            self.plain.search("number")
        except MnemicError as error:
            self.note(error)
        self.is_over.set()
        for thread in threads:
            thread.join()


def main(seed, seconds, url):
    faulthandler.dump_traceback_later(100, exit=True)
    crowd = Crowd(url, int(seed))
    crowd.run(float(seconds))
    told = {"added": crowd.added, "raised": crowd.raised, "children": crowd.children}
    json.dump(told, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
