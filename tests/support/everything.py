"""Everything that a program can do with memories, from any thread, in a place of any kind."""

import asyncio
import gc
import io
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path
from uuid import uuid4

from mnemic import AsyncMemory, CachedEmbedder, Encryption, Memory, MemoryEntry, StringVectorMap
from mnemic.compat import ContextWindow
from mnemic.context import ContextItem, ContextItemType
from mnemic.errors import MnemicError
from mnemic.events import MemoryStoredEvent
from mnemic.hyde import AsyncHydeEngine, HydeEngine
from mnemic.policy import RetrievalPolicy, RetrievalRequest, TokenBucket
from mnemic.vectors import FaissOptions, IndexPool
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY, OTHER_KEY
from tests.support.tiers import SEED

OPTIONS = {
    "sqlite": {},
    ":memory:": {},
    "postgres": {"search_in": "memory"},
    "postgres-search": {"search_in": "database"},
    "postgres-policies": {"row_security": True},
}
"""Options of memories in places of each kind."""

WORDS = ("red", "sofa", "lamp", "chair", "door", "garden", "ferry", "quay", "tea", "rent")


class Told:
    """Told of each call of a function that a program gives; other tests replace `calls`."""

    @staticmethod
    def calls():
        """Note a call."""


def given(function):
    """Return a function as one that a program gives."""

    def call(*values, **named):
        Told.calls()
        return function(*values, **named)

    return call


chance = random.Random(SEED)  # noqa: S311 - no secrets


class Embedder(WordEmbedder):
    embed = given(WordEmbedder.embed)


class AwaitedEmbedder(WordEmbedder):
    async def embed(self, texts):
        await asyncio.sleep(0)
        return super().embed(texts)


async def complete(_prompt, **_):
    await asyncio.sleep(0.01)
    return "red sofa"


@given
def clock():
    return datetime.now(UTC)


@given
def report(*_):
    pass


@given
def make_id(_time):
    return uuid4()


def text():
    return f"{' '.join(chance.choices(WORDS, k=4))} {chance.random()}"


class Everything:
    """Calls of memories of several agents, in any order and from any thread."""

    def __init__(self, kind, seconds, url, copy, folder):
        self.kind, self.url, self.copy, self.folder = kind, url, copy, Path(folder)
        self.errors, self.failed = Counter(), []
        self.numbers = count()
        self.options = OPTIONS.get(kind, {}) | {
            "encryption": Encryption(KEY),
            "clock": clock,
            "id_factory": make_id,
        }
        pool = IndexPool(200_000)
        self.memory = Memory(
            url,
            embedder=CachedEmbedder(Embedder()),
            index_pool=pool,
            progress=report,
            retention=0,
            user_max_entries=400,
            when_full="evict",
            **self.options,
        )
        approximate = {"index": FaissOptions(kind="hnsw"), "exact_limit": 10}
        self.other = Memory(
            url, "other", embedder=AwaitedEmbedder(), index_pool=pool, **approximate, **self.options
        )
        for memory in (self.memory, self.other):
            memory.events.subscribe(MemoryStoredEvent, given(lambda _: None))
        self.ids = [one.id for one in self.memory.add_many([text() for _ in range(300)])]
        self.other.add_many([text() for _ in range(60)])
        self.policy = RetrievalPolicy(self.memory, limiter=TokenBucket(rate=1e6, burst=100))
        self.hyde = HydeEngine(self.memory, Embedder(), given(lambda _, **__: "red sofa\nlamp"))
        self.hyde.start()
        self.window, self.vectors = ContextWindow(400), StringVectorMap(4)
        self.ends = time.monotonic() + seconds

    def one(self):
        return chance.choice(self.ids)

    def frequent(self):
        """Return the calls that any thread makes, by name."""
        memory, other = self.memory, self.other
        return {
            "add": lambda: self.ids.append(memory.add(text(), user_id=chance.choice("ab")).id),
            "add once": lambda: memory.add(text(), idempotency_key=text()),
            "add many": lambda: memory.add_many([text() for _ in range(5)]),
            "add sensitive": lambda: memory.add(text(), sensitive=True),
            "add checked": lambda: memory.add(text(), check="contradictions"),
            "update": lambda: memory.update(self.one(), content=text()),
            "link": lambda: memory.link(self.one(), self.one(), "related"),
            "delete": lambda: memory.delete(self.one()),
            "delete for good": lambda: memory.delete(self.one(), permanent=True),
            "purge": memory.purge,
            "search": lambda: memory.search(text(), all_users=True),
            "search explained": lambda: memory.search(text(), explain=True, all_users=True),
            "search in time": lambda: memory.search(text(), timeout=5),
            "other search": lambda: other.search(text(), search_type="semantic"),
            "other add": lambda: other.add(text()),
            "other add many": lambda: other.add_many([text() for _ in range(8)]),
            "other similar": lambda: other.similar(other.list(limit=1)[0].id),
            "context": lambda: memory.context(text()),
            "retrieve": lambda: memory.retrieve(text()),
            "expand": lambda: memory.expand(text()),
            "suggest": lambda: memory.suggest(text()),
            "recall": lambda: memory.recall(text()),
            "contradictions": lambda: memory.contradictions(text()),
            "get": lambda: memory.get(self.one()),
            "list": lambda: memory.list(limit=20, include_deleted=True, all_users=True),
            "count": memory.count,
            "stats": memory.stats,
            "audit": memory.audit,
            "reinforce": lambda: memory.reinforce(self.one(), "user_correction"),
            "salience": lambda: memory.salience(self.one()),
            "policy": lambda: self.policy.run(RetrievalRequest(text(), "a", "monday")),
            "hyde": lambda: self.hyde.retrieve(text(), [text()]),
            "window": self.use_the_window,
            "vectors": self.use_the_vectors,
        }

    def rare(self):
        """Return the calls that take long, which one thread makes, by name."""
        memory = self.memory
        return {
            "transfer": self.use_an_export,
            "backup": self.back_up,
            "verify": memory.verify,
            "reembed": lambda: memory.reembed(self.embedder(), progress=report),
            "rotate": lambda: memory.rotate_key(OTHER_KEY),
            "rotate back": lambda: memory.rotate_key(KEY),
            "drop": memory.drop_vectors,
            "rebuild": self.hyde.trigger_rebuild,
            "engine": self.use_an_engine,
            "second": self.use_a_second_memory,
            "lost": self.lose_a_memory,
            "erase": memory.erase_pending,
            "index": memory.index.info,
            "hnsw": memory.index.create,
            "copy": self.use_a_copy,
        }

    @staticmethod
    def embedder():
        return chance.choice([Embedder(), Embedder(32, "others"), AwaitedEmbedder(48, "awaited")])

    def use_the_window(self):
        self.window.add(ContextItem(content=text(), type=ContextItemType.USER_MESSAGE))
        self.window.compact()
        self.window.build()

    def use_the_vectors(self):
        self.vectors.upsert([text()], [[1.0, 2.0, 3.0, 4.0]])
        self.vectors.search([1.0, 0.0, 0.0, 0.0])

    def use_an_export(self):
        export = io.StringIO()
        self.memory.export(export, unseal=True, all_users=True, progress=report)
        export.seek(0)
        self.memory.import_(export)

    def back_up(self):
        if "postgres" not in self.kind:
            self.memory.backup(self.folder / f"backup-{next(self.numbers)}.db")

    def use_an_engine(self):
        async def turns():
            async with AsyncHydeEngine(self.other, AwaitedEmbedder(), complete) as engine:
                engine.start()
                await engine.ready(5)
                await asyncio.gather(*(engine.retrieve(text(), ["red"]) for _ in range(3)))

        asyncio.run(turns())

    def use_a_second_memory(self):
        with Memory(self.url, "third", embedder=None, **self.options) as third:
            third.add(MemoryEntry(text(), embedding=[1.0, 0.5]))
            third.search(vector=[1.0, 0.5])
            third.search("red")

    def lose_a_memory(self):
        Memory(self.url, "fourth", embedder=Embedder(), **self.options).add(text())
        gc.collect()

    def use_a_copy(self):
        with Memory(self.copy, embedder=Embedder(), **self.options) as copy:
            copy.add(text())

    def make_calls(self, calls):
        while time.monotonic() < self.ends:
            for name in chance.sample(list(calls), len(calls)):
                if time.monotonic() < self.ends:
                    self.make(name, calls[name])

    def make(self, name, call):
        try:
            call()
        except MnemicError as error:
            self.errors[f"{name}: {type(error).__name__}"] += 1

    def await_calls(self):
        asyncio.run(self.awaited())

    async def awaited(self):
        options = self.options | {"embedder": chance.choice([Embedder(), AwaitedEmbedder()])}
        async with AsyncMemory(self.url, "awaited", **options) as memory:
            while time.monotonic() < self.ends:
                adds = [memory.add(text()) for _ in range(3)]
                searches = [memory.search(text()) for _ in range(8)]
                others = [memory.recall("red"), memory.context("red"), memory.list(limit=5)]
                together = asyncio.gather(*adds, *searches, *others)
                with suppress(TimeoutError):
                    await asyncio.wait_for(together, chance.choice([None, None, 0.002]))

    def guarded(self, work):
        try:
            work()
        except BaseException as error:
            self.failed.append(f"{type(error).__name__}: {error}")
            raise

    def run(self):
        """Make all calls until the end of the time, and close everything."""
        frequent, rare = self.frequent(), self.rare()
        work = [*[partial(self.make_calls, frequent)] * 3, partial(self.make_calls, rare)]
        targets = [partial(self.guarded, one) for one in [*work, self.await_calls]]
        threads = [threading.Thread(target=one) for one in targets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.close()

    def close(self):
        self.hyde.close()
        self.memory.close()
        self.other.close()
