"""`Memory` without the embedding: vectors are looked up."""

import shutil
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import mkdtemp

from benches.asv import Timed
from benches.support.memories import calls_of_search, open_stored
from benches.support.timing import P95_GOAL_MS, p95, timed
from mnemic.model import MemoryQuery

COUNT = 5_000
CALLS = 200
numbers = count()


@cache
def own_copy():
    """Return the path of a file of this process alone, in the folder that asv removes."""
    return Path(shutil.copy("search.db", mkdtemp(dir=".")))


@cache
def opened():
    return open_stored(own_copy(), COUNT)


def search(memory):
    found = memory.search(f"query {next(numbers)}", user_id="user3")
    assert len(found) == 10


def recall(mode):
    assert len(opened().recall(f"query {next(numbers)}", mode=mode, user_id="user3")) == 10


class Front(Timed):
    def setup_cache(self):
        open_stored("search.db", COUNT).close()

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
        with open_stored(own_copy(), COUNT) as memory:
            search(memory)

    def peakmem_search(self):
        search(opened())

    def track_p95_ms(self, call, goal_ms):  # noqa: ARG002 - a parameter to be shown
        """Return the 95th percentile, which asv shows beside its goal."""
        called = calls_of_search(opened(), numbers)[call]
        found = [timed(called) for _ in range(CALLS)][CALLS // 4 :]  # the first ones warm up
        assert all(len(answer) == 10 for _, answer in found)
        return round(p95([seconds for seconds, _ in found]), 3)

    track_p95_ms.params = (("search", "semantic", "retrieve", "recall"), (P95_GOAL_MS,))
    track_p95_ms.param_names = ("call", "goal_ms")
    track_p95_ms.unit = "ms"
