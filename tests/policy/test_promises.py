"""Work and memory of a run beside the search itself."""

import time
import tracemalloc

import pytest

from mnemic import Memory
from mnemic.policy import Redaction, RetrievalConfig, RetrievalPolicy
from tests.support.policy import request

CONTENT = 2000
"""Characters of a candidate."""

LARGEST = RetrievalConfig(
    search_type="keyword",
    min_score=0,
    cache_ttl=0,
    timeout=None,
    redaction=Redaction(enabled=True),
    near_duplicates=0.95,
).overridden(top_k=20, clip_sentences=5, max_tokens=3000)
"""The configuration with the most work, which is never answered from the cache."""


def sentence(number, length=CONTENT):
    words = (f"harbour{number * 31 % (at + 7)} boat{at}" for at in range(length))
    return f"{' '.join(words)[: length - 20]}. ann{number}@example.com"


@pytest.fixture
def memory():
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([{"content": sentence(number), "user_id": "alice"} for number in range(40)])
        yield memory


def prepared(memory, monkeypatch, config=LARGEST):
    """Return a policy whose back end answers at once, with what it has found before."""
    policy, repository = RetrievalPolicy(memory, config), memory.repository
    found, calls = {}, []
    find, has_memories = repository.finder.find, repository.finder.has_memories

    def once(scope, search, *needs):
        calls.append(search.limit)
        if search.limit not in found:
            found[search.limit] = find(scope, search, *needs)
        return found[search.limit]

    assert has_memories(memory.scope.narrowed("alice"))
    monkeypatch.setattr(repository.finder, "find", once)
    monkeypatch.setattr(repository.finder, "has_memories", lambda *_: True)
    assert len(policy.run(request("harbour1 boat1")).memories) > 1
    calls.clear()
    return policy, calls


@pytest.mark.requirement("R312", "R313")
def test_a_run_without_the_back_end_takes_far_less_than_200_ms_of_the_processor(
    memory, monkeypatch
):
    policy, calls = prepared(memory, monkeypatch)

    def seconds():
        started = time.thread_time()
        policy.run(request("harbour1 boat1"))
        return time.thread_time() - started

    # Time of this thread's processor, best of five: some milliseconds, whatever else is running.
    assert min(seconds() for _ in range(5)) < 0.2
    assert calls == [40] * 5, "one search a run"


@pytest.mark.requirement("R314")
def test_a_run_takes_less_than_10_mb_beside_what_it_returns(memory, monkeypatch):
    policy, _ = prepared(memory, monkeypatch)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        payload = policy.run(request("harbour1 boat1"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert payload.metadata.total_results == 40
    assert peak - before < 10 * 2**20
    assert peak - before < 2**20, "40 candidates of 2 kB take a tenth of the limit"
