"""Fixtures of the suite, and its table, fastest first: percentiles of times, and recall."""

from itertools import cycle
from typing import NamedTuple

import pytest

from benches.support.cases import HUNDRED_THOUSAND, MILLION, Case
from benches.support.timing import P95_GOAL_MS, p95

RESULTS = []


class Result(NamedTuple):
    group: str
    name: str
    quartile: float
    median: float
    p95_ms: float
    recall: float | None


def pytest_addoption(parser):
    parser.addoption("--million", action="store_true", help="1,000,000 rows too, about 8 GB")
    parser.addoption(
        "--graphs", action="store_true", help="graphs of 100,000 made-up rows too: long builds"
    )


@pytest.fixture(scope="session")
def case(request):
    """Build a set of rows; 100,000 real ones by default."""
    kind, count, dim = getattr(request, "param", HUNDRED_THOUSAND)
    if count == MILLION[1] and not request.config.getoption("--million"):
        pytest.skip("needs --million")
    return Case(kind, count, dim)


@pytest.fixture
def measure(benchmark):
    """Time a call over arguments in turn, and record it for the table."""

    def run(group, name, call, arguments, *, recall=None, per_call=1):
        upcoming = cycle(arguments)
        benchmark.group = group
        benchmark.extra_info.update(system=name, recall=recall, queries_per_call=per_call)
        benchmark(lambda: call(next(upcoming)))
        times = benchmark.stats.stats
        p95_ms = p95(times.data) / per_call
        benchmark.extra_info.update(p95_ms=p95_ms, p95_goal_ms=P95_GOAL_MS)
        quartile, median = times.q1 / per_call, times.median / per_call
        RESULTS.append(Result(group, name, quartile, median, p95_ms, recall))

    return run


def pytest_terminal_summary(terminalreporter):
    groups = {}
    for result in RESULTS:
        groups.setdefault(result.group, []).append(result)
    for group, results in groups.items():
        terminalreporter.section(group, sep="-")
        terminalreporter.write_line(
            f"{'':40} {'quartile us':>12} {'median us':>12} {'p95 ms':>10}  recall@10"
            f"   (goal: p95 below {P95_GOAL_MS} ms)"
        )
        for result in sorted(results, key=lambda result: result.quartile):
            recall = "" if result.recall is None else f"{result.recall:.3f}"
            terminalreporter.write_line(
                f"{result.name:40} {1e6 * result.quartile:12,.1f} {1e6 * result.median:12,.1f}"
                f" {result.p95_ms:10.3f}  {recall:>9}"
            )
