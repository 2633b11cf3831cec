"""Each benchmark that asv times runs and finds what it should; nothing is measured here."""

import importlib

import pytest

from benches.asv import hyde, memory, policy

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


def test_the_benchmarks_of_a_memory_run():
    memory.Front().setup_cache()
    for call in timed(memory.Front):
        call()
    memory.opened().close()


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
