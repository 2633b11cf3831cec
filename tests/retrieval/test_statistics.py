"""Statistics of a retrieval service."""

import pytest

from mnemic.errors import (
    InvalidArgumentError,
)
from mnemic.retrieval.statistics import WINDOW_SIZE, Statistics
from tests.support.retrieval import serve


@pytest.mark.requirement("C025")
def test_p95_is_that_of_the_last_ten_thousand():
    statistics = Statistics()
    for _ in range(10_000):
        statistics.retrieved(1000.0, 1, is_expanded=False)
    for number in range(10_000):
        statistics.retrieved(float(number), 3, is_expanded=True)
    stats = statistics.read()
    assert WINDOW_SIZE == 10_000
    assert stats.p95_retrieval_time_ms == pytest.approx(9500, abs=2)
    assert stats.total_retrievals == 20_000
    assert stats.average_results_per_query == 2
    assert stats.average_retrieval_time_ms == pytest.approx((1000 + 4999.5) / 2)
    assert stats.expansion_usage_rate == 50


def test_p95_of_few_retrievals_is_one_of_theirs():
    statistics = Statistics()
    for milliseconds in range(1, 101):
        statistics.retrieved(float(milliseconds), 0, is_expanded=False)
    assert statistics.read().p95_retrieval_time_ms == pytest.approx(95, abs=0.5)


def test_failed_and_refused_retrievals_are_not_counted():
    async def scenario(_, service):
        with pytest.raises(InvalidArgumentError):
            await service.retrieve(5)
        assert (await service.get_stats()).total_retrievals == 0

    serve(scenario)
