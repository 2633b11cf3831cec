"""Statistics of a retrieval service."""

from collections import Counter, deque

from mnemic.arrays import np
from mnemic.model import RetrievalStats

WINDOW_SIZE = 10_000
"""Number of last retrievals whose durations are kept."""


def statistics_of(sums: Counter[str], milliseconds: deque[float]) -> RetrievalStats:
    """Return the statistics of what was added up, and of the last durations."""
    each = max(1, sums["retrievals"])
    return RetrievalStats(
        total_retrievals=sums["retrievals"],
        cache_hit_rate=100 * sums["hits"] / max(1, sums["lookups"]),
        average_retrieval_time_ms=sums["latency_ms"] / each,
        p95_retrieval_time_ms=float(np.quantile(milliseconds, 0.95)) if milliseconds else 0.0,
        average_results_per_query=sums["result_count"] / each,
        expansion_usage_rate=100 * sums["is_expanded"] / each,
        context_augmentations=sums["augmentations"],
    )
