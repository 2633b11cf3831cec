"""Each benchmark that asv times runs and finds what it should; nothing is measured here."""

import importlib
from itertools import product

import pytest

from benches.asv import WARM_CALLS, Timed, hyde, memory, policy

ROWS = 300
TEXTS = [f"The ferry of number {number} leaves at noon. It is full." for number in range(2_000)]


@pytest.fixture(autouse=True)
def few_rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "COUNT", ROWS)
    for module in (hyde, policy):
        monkeypatch.setattr(module, "ROWS", ROWS)
    monkeypatch.setattr(policy, "real_texts", lambda: TEXTS)
    yield
    for module in (hyde, memory, policy):
        for value in vars(module).values():
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def timed(group):
    return [getattr(group(), name) for name in vars(group) if name.startswith(("time_", "peak"))]


def test_the_benchmarks_of_a_memory_run(monkeypatch):
    monkeypatch.setattr(memory, "CALLS", 8)
    memory.Front().setup_cache()
    for call in timed(memory.Front):
        call()
    tracked = memory.Front().track_p95_ms
    for call, goal in product(*tracked.params):
        assert tracked(call, goal) > 0
        assert goal == 100
    memory.opened().close()


def test_the_one_call_of_a_quick_run_is_not_the_first():
    called = []

    class Group(Timed):
        def time_call(self, *given):
            called.append(given)

    timed_call = Group().time_call
    for given in ((), (40,), (40,)):  # asv does so before each call that it times
        timed_call.setup(*given)
    assert called == [()] * WARM_CALLS + [(40,)] * WARM_CALLS


def test_the_benchmarks_of_hyde_run():
    for call in timed(hyde.Hyde):
        call()
    hyde.engine().close()


def test_the_benchmarks_of_the_policy_run():
    for call in timed(policy.Steps):
        call(40)
    for call in timed(policy.Policy):
        call()


@pytest.mark.parametrize("name", ["text", "vector_map"])
def test_the_other_benchmarks_can_be_loaded(name):
    importlib.import_module(f"benches.asv.{name}")
