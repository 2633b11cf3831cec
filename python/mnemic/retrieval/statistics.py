"""Statistics of a retrieval service."""

from collections import deque

from mnemic.arrays import np
from mnemic.model import RetrievalStats
from mnemic.observability.telemetry import Sums

WINDOW_SIZE = 10_000
"""Number of last retrievals whose durations are kept."""


class Statistics:
    """Counters. Thread-safe."""

    def __init__(self) -> None:
        self._sums = Sums()
        self._milliseconds = deque[float](maxlen=WINDOW_SIZE)

    def retrieved(self, milliseconds: float, results: int, *, is_expanded: bool) -> None:
        """Count a retrieval."""
        self._milliseconds.append(milliseconds)
        self._sums.add(
            retrievals=1, results=results, milliseconds=milliseconds, expansions=is_expanded
        )

    def record_lookup(self, *, is_hit: bool) -> None:
        """Count a cache lookup."""
        self._sums.add(lookups=1, hits=is_hit)

    def augmented(self) -> None:
        """Count memories added to a context window."""
        self._sums.add(augmentations=1)

    def read(self) -> RetrievalStats:
        """Return the current statistics."""
        sums = self._sums.read()
        each = max(1, sums["retrievals"])
        p95 = float(np.quantile(self._milliseconds.copy(), 0.95)) if sums["retrievals"] else 0.0
        return RetrievalStats(
            total_retrievals=sums["retrievals"],
            cache_hit_rate=100 * sums["hits"] / max(1, sums["lookups"]),
            average_retrieval_time_ms=sums["milliseconds"] / each,
            p95_retrieval_time_ms=p95,
            average_results_per_query=sums["results"] / each,
            expansion_usage_rate=100 * sums["expansions"] / each,
            context_augmentations=sums["augmentations"],
        )
