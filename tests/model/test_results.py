"""Results of searches."""

from uuid import UUID

import pytest

from mnemic.model import LongTermMemoryStats, MemoryEntry, MemoryType, SearchHit, SearchResults
from tests.support.clock import NOON

ID = UUID("01890000-0000-7000-8000-000000000001")


def entry(**fields):
    return MemoryEntry(
        **{"id": ID, "agent_id": "a", "content": "Lives in Oslo", "created_at": NOON, **fields}
    )


def test_results_are_a_sequence_of_hits_that_show_their_memory():
    hits = [SearchHit(entry(user_id=name), 0.5, {"similarity": 0.5}) for name in "xyz"]
    results = SearchResults(hits)
    assert len(results) == 3
    assert list(results) == hits
    assert results[0].content == "Lives in Oslo"
    assert (results[1].user_id, results[1].id, results[1].type) == ("y", ID, MemoryType.FACT)
    assert (results[1].created_at, results[1].tags, results[1].metadata) == (NOON, (), {})
    assert list(results[1:]) == hits[1:]
    assert results == SearchResults(hits)
    assert results != SearchResults(hits[:2])
    assert not SearchResults([])


@pytest.mark.requirement("R064", "C083")
@pytest.mark.parametrize(
    ("used", "limit", "percent"),
    [(25, 100, 25.0), (25, 10, 250.0), (25, None, 0.0), (25, 0, 0.0), (25, -1, 0.0), (0, -1, 0.0)],
)
def test_without_a_limit_above_0_no_per_cent_of_it_are_used(used, limit, percent):
    stats = LongTermMemoryStats(
        active_entries=1, forgotten_entries=0, storage_bytes_used=used, storage_bytes_limit=limit
    )
    assert stats.storage_percent_used == percent
