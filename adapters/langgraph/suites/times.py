"""Times of mnemic's store beside LangGraph's own, in turns: `python -m times`.

5,000 items of four values in 500 namespaces; embeddings have 384 dimensions and take no time. Each
turn does an operation once in each store; figures are medians in milliseconds, of a whole batch
where 100 operations go at once. What is in a file or on a server is durable when a call returns.
"""

import asyncio
import importlib
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

if not hasattr(sqlite3.Connection, "enable_load_extension"):  # as Python may be built
    sys.modules["sqlite3"] = importlib.import_module("pysqlite3")

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.mnemic import AsyncMnemicStore, MnemicStore
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from langgraph.store.sqlite import AsyncSqliteStore, SqliteStore

ROOT = Path(__file__).parents[3]
ITEMS = 5_000
NAMESPACES = 500
BATCH = 100
TURNS = 50
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

    async def aembed_documents(self, texts):
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        return self.embed_query(text)


INDEX = {"dims": DIMENSIONS, "embed": Drawn(), "fields": ["text"], "text_fields": ["text"]}


def place(at):
    return ("users", f"{at % NAMESPACES:04d}")


def put(at):
    text = f"note {at} about {'x' * (at % 300)}"
    value = {"text": text, "kind": at % 7, "size": at, "nested": {"a": at % 5}}
    return PutOp(place(at), f"item {at}", value)


def puts(turn):
    return [put(at) for at in range(turn * BATCH, (turn + 1) * BATCH)]


def search(turn, **options):
    return [SearchOp(("users",), **options | {"limit": 10, "query": f"note {turn}"})]


def deletes(ops):
    return [op._replace(value=None) for op in ops]


OPERATIONS = {
    "put of 100": puts,
    "put of the same 100 again": puts,
    "put": lambda turn: [put(ITEMS + turn)],
    "get": lambda turn: [GetOp(place(turn * 97), f"item {turn * 97}")],
    "search": search,
    "search with a filter": lambda turn: search(turn, filter={"kind": turn % 7}),
    "search in one namespace": lambda turn: [SearchOp(place(turn), limit=10, query=f"note {turn}")],
    "filter": lambda turn: [SearchOp(("users",), filter={"kind": turn % 7})],
    "filter of a range": lambda turn: [SearchOp(("users",), filter={"size": {"$lt": 99 * turn}})],
    "namespaces": lambda _: [
        ListNamespacesOp((MatchCondition("prefix", ("users",)),), limit=NAMESPACES)
    ],
    "delete": lambda turn: deletes([put(ITEMS + turn)]),
    "delete of 100": lambda turn: deletes(puts(turn)),
}
assert ITEMS == TURNS * BATCH


def plain(folder, url):
    """Return medians by operation and store of the plain stores."""
    with ExitStack() as stack:
        opened = {
            "mnemic": MnemicStore.from_conn_string(f"{folder}/mnemic.db", index=INDEX),
            "SqliteStore": SqliteStore.from_conn_string(f"{folder}/sqlite.db", index=INDEX),
            "PostgresStore": PostgresStore.from_conn_string(url, index=INDEX),
        }
        stores = {name: stack.enter_context(store) for name, store in opened.items()}
        for store in stores.values():
            store.setup()
        stores["InMemoryStore"] = InMemoryStore(index=INDEX)
        return {name: medians(turned(stores, operation)) for name, operation in OPERATIONS.items()}


def turned(stores, operation):
    times = {name: [] for name in stores}
    for turn in range(TURNS):
        for name, store in stores.items():
            ops = operation(turn)
            begun = time.perf_counter()
            answer = store.batch(ops)
            times[name].append(time.perf_counter() - begun)
            assert len(answer) == len(ops)
    return times


async def awaited(folder, url):
    """Return medians by operation and store of the stores that are awaited."""
    async with AsyncExitStack() as stack:
        opened = {
            "mnemic": AsyncMnemicStore.from_conn_string(f"{folder}/mnemic-async.db", index=INDEX),
            "SqliteStore": AsyncSqliteStore.from_conn_string(f"{folder}/async.db", index=INDEX),
            "PostgresStore": AsyncPostgresStore.from_conn_string(url, index=INDEX),
        }
        stores = {name: await stack.enter_async_context(store) for name, store in opened.items()}
        for store in stores.values():
            await store.setup()
        stores["InMemoryStore"] = InMemoryStore(index=INDEX)
        return {
            name: medians(await turned_awaited(stores, operation))
            for name, operation in OPERATIONS.items()
        }


async def turned_awaited(stores, operation):
    times = {name: [] for name in stores}
    for turn in range(TURNS):
        for name, store in stores.items():
            ops = operation(turn)
            begun = time.perf_counter()
            answer = await store.abatch(ops)
            times[name].append(time.perf_counter() - begun)
            assert len(answer) == len(ops)
    return times


def medians(times):
    return {name: statistics.median(each) * 1e3 for name, each in times.items()}


def table(title, figures):
    names = list(next(iter(figures.values())))
    print(f"| {title}, ms | {' | '.join(names)} |")
    print("|---|" + "---|" * len(names))
    for operation, found in figures.items():
        cells = (f"{figure:.3f}" if figure < 1 else f"{figure:.1f}" for figure in found.values())
        print(f"| {operation} | {' | '.join(cells)} |")
    print()


def main():
    sys.path.append(str(ROOT))  # the project's tests start a server as any user
    from tests.support.postgres_server import Server  # noqa: PLC0415 - found from here on

    server = Server(fsync="on", synchronous_commit="on", autovacuum="on")
    try:
        with tempfile.TemporaryDirectory() as folder:
            table("plain", plain(folder, server.new_database(has_tables=False)))
            url = server.new_database(has_tables=False)
            table("awaited", asyncio.run(awaited(folder, url)))
    finally:
        server.close()


if __name__ == "__main__":
    main()
