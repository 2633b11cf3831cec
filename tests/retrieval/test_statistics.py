"""Statistics of a retrieval service."""

import pytest

from mnemic.errors import InvalidArgumentError
from mnemic.retrieval import engine
from mnemic.retrieval.engine import WINDOW_SIZE
from tests.support.retrieval import EVERYTHING, serve, served, three_near


@pytest.mark.requirement("C025")
def test_p95_is_that_of_the_last_ten_thousand(monkeypatch):
    assert WINDOW_SIZE == 10_000
    durations = iter([*(1000.0 for _ in range(100)), *map(float, range(100))])
    monkeypatch.setattr(engine, "WINDOW_SIZE", 100)
    monkeypatch.setattr(engine, "milliseconds_since", lambda _: next(durations))

    async def scenario(memory, service):
        for _ in range(100):
            await service.retrieve(EVERYTHING)
        assert (await service.get_stats()).p95_retrieval_time_ms == 1000
        await three_near(memory)
        for _ in range(100):
            await service.retrieve(EVERYTHING)
        stats = await service.get_stats()
        assert stats.p95_retrieval_time_ms == pytest.approx(94, abs=0.5)
        assert stats.total_retrievals == 200
        assert stats.average_results_per_query == 1.5
        assert stats.average_retrieval_time_ms == pytest.approx((1000 + 49.5) / 2)

    serve(scenario)


@served()
async def test_failed_and_refused_retrievals_are_not_counted(service):
    with pytest.raises(InvalidArgumentError):
        await service.retrieve(5)
    assert (await service.get_stats()).total_retrievals == 0
