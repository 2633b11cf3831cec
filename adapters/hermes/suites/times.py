"""Times beside Hermes's own local provider: 2,000 turns or facts, then some more, and searches.

Medians in milliseconds. mnemic embeds both texts of a turn, and writes them to disk.
"""

import os
import statistics
import sys
import tempfile
import time

from hermes_mnemic import MnemicMemoryProvider
from plugins.memory import load_memory_provider

SIZE = 2_000
ROUNDS = 50
SUBJECTS = ("the garden", "my sister", "a train to Bergen", "the red car", "our kitchen", "a piano")
VERBS = ("asked about", "forgot", "talked of", "remembered", "sold", "painted", "saw", "liked")


def text(at):
    subject, number = SUBJECTS[at % 6], at * 7919 % 1000
    return f"On day {at} I {VERBS[at % 8]} {subject} and told number {number}"


def median(call, rounds):
    times = []
    for turn in rounds:
        begun = time.perf_counter()
        call(turn)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def measure(provider, store):
    def search(turn):
        assert provider.prefetch(f"number {turn * 7919 % 1000}")

    provider.initialize("one", hermes_home=os.environ["HERMES_HOME"], platform="cli")
    for at in range(SIZE):
        store(text(at))
    provider.on_session_switch("two")
    search(0)
    rounds = range(SIZE, SIZE + ROUNDS)
    stored = median(lambda turn: store(text(turn)), rounds)
    provider.on_session_switch("three")
    return {"store": stored, "before a turn": median(search, range(ROUNDS))}


def main():
    with tempfile.TemporaryDirectory() as home:
        os.environ["HERMES_HOME"] = home
        ours, rival = MnemicMemoryProvider(), load_memory_provider("holographic")
        found = {
            "mnemic": measure(ours, lambda said: ours.sync_turn(said, "Good to know")),
            "holographic": measure(
                rival,
                lambda said: rival.handle_tool_call(
                    "fact_store", {"action": "add", "content": said}
                ),
            ),
        }
    print(f"{SIZE:,} turns, ms".ljust(20), *(kind.rjust(12) for kind in found))
    for figure in next(iter(found.values())):
        print(figure.ljust(20), *(f"{of[figure]:12.2f}" for of in found.values()))


if __name__ == "__main__":
    sys.exit(main())
