"""LangGraph's store over a memory, beside LangGraph's own in memory: `make outside` runs it last.

Items are dicts of six values in 500 namespaces; embeddings have 384 dimensions and take no time.
Medians in milliseconds, for batches and deletions of many of one item.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore
from outside.langgraph_store import MnemicStore

ITEMS = 5_000
NAMESPACES = 500
BATCH = 100
ROUNDS = 50
DIMENSIONS = 384


class Drawn(Embeddings):
    """One of a thousand vectors for each text."""

    def __init__(self):
        rows = np.random.default_rng(0).standard_normal((1000, DIMENSIONS))
        self._rows = [list(map(float, row)) for row in rows]

    def embed_documents(self, texts):
        return [self._rows[len(text) * 31 % 1000] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def puts(first, count):
    return [
        PutOp(
            ("users", f"{at % NAMESPACES:04d}"),
            f"item {at}",
            {
                "text": f"note {at} about {'x' * (at % 300)}",
                "kind": at % 7,
                "nested": {"a": at % 5},
            },
        )
        for at in range(first, first + count)
    ]


def each(call, rounds=ROUNDS):
    times = []
    for turn in range(rounds):
        begun = time.perf_counter()
        call(turn)
        times.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(times)


def measure(store):
    batches = [puts(first, BATCH) for first in range(0, ITEMS, BATCH)]
    figures = {"batch put": each(lambda turn: store.batch(batches[turn]), len(batches)) / BATCH}
    figures["batch put again"] = each(lambda turn: store.batch(batches[turn])) / BATCH
    store.search(("users",), query="note", limit=10)
    figures["get"] = each(lambda turn: store.get(("users", f"{turn:04d}"), f"item {turn}"))
    figures["search + filter"] = each(
        lambda turn: store.search(("users",), query=f"note {turn}", filter={"kind": turn % 7})
    )
    figures["filter"] = each(
        lambda turn: store.search(("users",), filter={"nested": {"a": turn % 5}})
    )
    figures["page at 40"] = each(lambda _: store.search(("users",), limit=10, offset=40))
    figures["namespaces"] = each(
        lambda _: store.list_namespaces(prefix=("users",), limit=NAMESPACES)
    )
    deleted = [[op._replace(value=None) for op in batch] for batch in batches]
    figures["delete of many"] = each(lambda turn: store.batch(deleted[turn])) / BATCH
    return figures


def main():
    index = {"dims": DIMENSIONS, "embed": Drawn(), "fields": ["text"]}
    with tempfile.TemporaryDirectory() as folder:
        kinds = {
            "mnemic": MnemicStore(Path(folder) / "a.db", index=index),
            "mnemic, no index": MnemicStore(Path(folder) / "b.db"),
            "in memory": InMemoryStore(index=index),
        }
        found = {name: measure(store) for name, store in kinds.items()}
    print(f"{ITEMS:,} items, ms".ljust(20), *(name.rjust(18) for name in found))
    for figure in next(iter(found.values())):
        print(figure.ljust(20), *(f"{of[figure]:18.3f}" for of in found.values()))


if __name__ == "__main__":
    sys.exit(main())
