"""The front door without the embedding: vectors are looked up."""

import shutil
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.memory import StoredVectors
from mnemic import Memory

COUNT = 5_000
numbers = count()


def open_memory(path):
    return Memory(path, embedder=StoredVectors(COUNT))


@cache
def own_copy():
    """Return the path of a file of this process alone, in the folder that asv clears away."""
    return Path(shutil.copy("search.db", mkdtemp(dir=".")))


@cache
def opened():
    return open_memory(own_copy())


def search(memory):
    found = memory.search(f"query {next(numbers)}", user_id="user3")
    assert len(found) == 10


class Front(Timed):
    def setup_cache(self):
        with open_memory("search.db") as memory:
            memory.add_many(
                {"content": f"memory {number}", "user_id": f"user{number % 10}"}
                for number in range(COUNT)
            )

    def time_search(self):
        search(opened())

    def time_add(self):
        opened().add(f"memory {next(numbers)}", user_id="another")

    def time_open_and_search(self):
        with open_memory(own_copy()) as memory:
            search(memory)

    def peakmem_search(self):
        search(opened())
