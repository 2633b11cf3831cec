"""Lists by filter from the index and from the store: `python -m benches.listing [--rows N]`.

Both ways take turns in one process, for a page of 100 of one user who has all memories. Prints the
lower quartile of each way in microseconds, and their ratio. The memories have
contents of three sentences, tags, metadata, seven types and all importances.
"""

import argparse
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from benches.timing import interleave
from mnemic import Memory, MemoryFilter
from mnemic.model import MemorySortOrder, MemoryType, parse_filter
from mnemic.sync_bridge import run_sync

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
AT_ONCE = 10_000
ROUNDS = 4
PAGE = 100
FILTERS = {
    "no filter": {},
    "content contains, 1 of 1,000": {"content": {"contains": "KETTLE 7 of"}},
    "content contains, none": {"content": {"contains": "samovar"}},
    "metadata equality, 1 of 10": {"metadata.room": 3},
    "metadata equality, 1 of 1,000": {"metadata.number": 77},
    "tag, 1 of 10": {"tags": {"contains": "tag 3"}},
    "type and importance, 1 of 14": {"type": "fact", "importance": {"gte": 0.5}},
    "type and importance, 1 of 7,000": {"type": "fact", "importance": {"gte": 0.999}},
    "category, 1 of 10,000": {"category": "category 5"},
}
ORDERS = (MemorySortOrder.CREATED_DESCENDING, MemorySortOrder.IMPORTANCE_DESCENDING)


class NoMeaning:
    """An embedder whose vectors nothing is searched with."""

    model, dimensions, max_tokens = "no meaning", 4, None

    def embed(self, texts, /):
        return np.ones((len(texts), 4), dtype=np.float32)


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


def measure(memory):
    repository, user = memory.repository, memory.scoped(user_id="ada").scope
    store = repository._store  # noqa: SLF001 - the way of a list without the index
    for order in ORDERS:
        print(f"{order.value}: store, index, store / index")
        for name, where in FILTERS.items():
            page = MemoryFilter(filters=where, limit=PAGE, sort_by=order)
            tree = parse_filter(page)
            ways = {
                "store": lambda page, tree=tree: store.matching(user, tree, page, now=NOON),
                "index": lambda page: run_sync(repository.lister.matching(user, page)),
            }
            answers = [[one.id for one in way(page)] for way in ways.values()]
            assert answers[0] == answers[1]
            took = interleave(ways, [page], ROUNDS, 1)
            ratio = took["store"] / took["index"]
            print(f"  {name:34} {took['store']:11,.0f} {took['index']:9,.0f} {ratio:8.1f}")


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args(arguments).rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.db"
        with Memory(path, embedder=NoMeaning(), track_access=False) as memory:
            for first in range(0, rows, AT_ONCE):
                numbers = range(first, min(first + AT_ONCE, rows))
                memory.add_many([entry(number) for number in numbers], user_id="ada")
            measure(memory)


if __name__ == "__main__":
    main(sys.argv[1:])
