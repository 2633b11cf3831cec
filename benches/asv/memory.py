"""`Memory` without the embedding: vectors are looked up."""

import shutil
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.support.memories import StoredVectors
from mnemic import Memory
from mnemic.model import MemoryQuery

COUNT = 5_000
numbers = count()


def open_memory(path):
    embedder = StoredVectors(COUNT)
    embedder.similarity_floor = 0.0  # random vectors are hardly near to any
    return Memory(path, embedder=embedder)


@cache
def own_copy():
    """Return the path of a file of this process alone, in the folder that asv removes."""
    return Path(shutil.copy("search.db", mkdtemp(dir=".")))


@cache
def opened():
    return open_memory(own_copy())


def search(memory):
    found = memory.search(f"query {next(numbers)}", user_id="user3")
    assert len(found) == 10


def recall(mode):
    assert len(opened().recall(f"query {next(numbers)}", mode=mode, user_id="user3")) == 10


class Front(Timed):
    def setup_cache(self):
        with open_memory("search.db") as memory:
            memory.add_many(
                {"content": f"memory {number}", "user_id": f"user{number % 10}"}
                for number in range(COUNT)
            )

    def time_search(self):
        search(opened())

    def time_retrieve(self):
        query = MemoryQuery(query=f"query {next(numbers)}", min_relevance=0.0, use_cache=False)
        assert len(opened().retrieve(query, user_id="user3")) == 10

    def time_retrieve_cached(self):
        query = MemoryQuery(query="query 7", min_relevance=0.0)
        assert len(opened().retrieve(query, user_id="user3")) == 10

    def time_recall_frequent(self):
        recall("frequent")

    def time_recall_relevant(self):
        recall("relevant")

    def time_context(self):
        # "auto", the default, finds nothing: random vectors are hardly near to any
        query = f"query {next(numbers)}"
        assert opened().context(query, max_tokens=500, min_score=None, user_id="user3")

    def time_add(self):
        opened().add(f"memory {next(numbers)}", user_id="another")

    def time_open_and_search(self):
        with open_memory(own_copy()) as memory:
            search(memory)

    def peakmem_search(self):
        search(opened())
