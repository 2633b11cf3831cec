"""Lines of the log about what was most likely not meant, and sums of what was counted."""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from mnemic import Memory, MemoryEntry
from mnemic.observability.telemetry import Sums

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ()),
        ({"created_at": NOW + timedelta(hours=14)}, ()),  # a local time without its zone
        ({"created_at": NOW + timedelta(days=2)}, ("created_at in the future",)),
        ({"created_at": datetime(2062, 1, 1)}, ("created_at in the future",)),  # noqa: DTZ001
        ({"expires_at": NOW + timedelta(seconds=1)}, ()),
        ({"expires_at": NOW}, ("expires_at in the past: no search finds them",)),
        ({"expires_at": NOW, "created_at": NOW + timedelta(days=2)}, ("created_at", "expires_at")),
    ],
)
def test_times_that_hide_a_memory_or_lead_it_are_logged(caplog, fields, said):
    with Memory(":memory:", embedder=None, clock=lambda: NOW) as memory:
        entries = [MemoryEntry(content, **fields) for content in ("secret one", "secret two")]
        with caplog.at_level(logging.WARNING, "mnemic"):
            memory.add_many(entries)
        lines = [record.getMessage() for record in caplog.records]
        assert len(lines) == len(said)
        for line, part in zip(lines, said, strict=True):
            assert line.startswith("2 memory entries of agent default have a")
            assert part in line
            assert "secret" not in line


def test_sums_lose_nothing_that_threads_add_at_once():
    sums, names, interval = Sums(), ("runs", "hits"), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            for _ in range(4):
                threads.submit(lambda: [sums.add(names, {"hits": at % 2}) for at in range(5_000)])
    finally:
        sys.setswitchinterval(interval)
    assert sums.read() == {"runs": 20_000, "hits": 10_000}
    assert sums.read()["errors"] == 0
