"""Import old messages, then search them by date: `python examples/import_messages.py [COUNT]`.

20,000 generated messages of two years go into one memory, in batches, each with its own time. A
search names the time in words or as arguments.
"""

import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from mnemic import Memory

FIRST = datetime(2024, 1, 1, 8, tzinfo=UTC)
DAYS = 730
BATCH = 2000
THINGS = ("the budget", "the harbour trip", "a new sofa", "the piano lesson", "peanut soup")
VERBS = ("asked about", "cancelled", "paid for", "moved", "liked", "wrote a note on")
PEOPLE = ("Ana", "Boris", "Chen", "Dalia")


def messages(count: int) -> Iterator[dict[str, Any]]:
    """Generate messages, oldest first: dicts with the arguments of `Memory.add`."""
    step = timedelta(days=DAYS) / count
    for number in range(count):
        speaker = PEOPLE[number % len(PEOPLE)]
        thing, verb = THINGS[number % len(THINGS)], VERBS[number // 7 % len(VERBS)]
        yield {
            "content": f"{speaker} {verb} {thing}, message {number}",
            "created_at": FIRST + number * step,
            "speaker": speaker,
            "session_id": f"week {number * DAYS // count // 7}",
            "message_id": f"message-{number}",
            "idempotency_key": f"message-{number}",  # a second import stores nothing
        }


def main() -> None:
    """Import the messages and ask."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    # By words alone: embedding 20,000 messages with the local model takes far longer.
    with Memory(":memory:", embedder=None) as memory:
        alice = memory.scoped(user_id="alice")
        begun = time.perf_counter()
        waiting = messages(count)
        while batch := list(islice(waiting, BATCH)):
            alice.add_many(batch)
        print(f"imported {alice.count()} messages in {time.perf_counter() - begun:.1f} s")

        asked = "Who cancelled the piano lesson?"
        for hit in alice.search(asked, limit=3, since="2025-03-01", until="2025-04-01"):
            print(f"{hit.created_at:%Y-%m-%d}  {hit.score:.2f}  {hit.content}")
        newest = alice.recall(mode="temporal", since="2025-12-01", limit=2)
        for recalled in newest:
            print(f"{recalled.created_at:%Y-%m-%d}  newest  {recalled.content}")
        print(f"{newest.total_matches} messages since December")


if __name__ == "__main__":
    main()
