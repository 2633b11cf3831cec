"""Times of the store beside LlamaIndex's own in memory: `python -m llamaindex_times`."""

import random
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from llama_index.core.schema import TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.vector_stores.mnemic import MnemicVectorStore

NODES, BATCH, DIMENSIONS, ROUNDS = 5000, 100, 384, 30
CHOSEN = MetadataFilters(filters=[MetadataFilter(key="n", value=7)])


def drawn():
    draw = random.Random(0)  # noqa: S311 - the same each time
    return [
        TextNode(
            id_=str(at),
            text=f"node {at} of {NODES}",
            metadata={"n": at % 20},
            embedding=[draw.gauss(0, 1) for _ in range(DIMENSIONS)],
        )
        for at in range(NODES)
    ]


def median(call, rounds=ROUNDS):
    """Milliseconds of a call."""
    spent = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        spent.append(time.perf_counter() - started)
    return 1000 * statistics.median(spent)


def asked(store, node, mode="default", **fields):
    store.query(
        VectorStoreQuery(node.embedding, 10, mode=VectorStoreQueryMode(mode), **fields),
        **({"mmr_threshold": 0.5} if mode == "mmr" else {}),
    )


def measured(store, nodes):
    started = time.perf_counter()
    for at in range(0, NODES, BATCH):
        store.add(nodes[at : at + BATCH])
    yield f"add {NODES:,}, {BATCH} a call", 1000 * (time.perf_counter() - started)
    asked(store, nodes[0])  # what is loaded by the first one
    first, second, third, fourth = (iter(nodes) for _ in range(4))
    yield "query", median(lambda: asked(store, next(first)))
    yield "query with a filter", median(lambda: asked(store, next(second), filters=CHOSEN))
    yield (
        "mmr of four times as many, or of all",
        median(lambda: asked(store, next(third), "mmr"), 3),
    )
    yield "add one", median(lambda: store.add([next(fourth)]))


def main():
    nodes = drawn()
    with TemporaryDirectory() as folder:
        store = MnemicVectorStore(path=str(Path(folder, "mnemic.db")))
        ours = dict(measured(store, nodes))
        each = iter(nodes)
        ours["hybrid"] = median(lambda: asked(store, n := next(each), "hybrid", query_str=n.text))
        store.close()
    theirs = dict(measured(SimpleVectorStore(), nodes))
    print(f"{'milliseconds':<30}{'mnemic':>10}{'in memory':>12}")
    for name, spent in ours.items():
        beside = f"{theirs[name]:>12.2f}" if name in theirs else ""
        print(f"{name:<30}{spent:>10.2f}{beside}")


if __name__ == "__main__":
    main()
