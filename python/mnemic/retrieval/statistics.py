"""Statistics of a retrieval service."""

from collections import deque

import msgspec

from mnemic.arrays import np
from mnemic.model import RetrievalStats
from mnemic.threads.locks import InnerLock

WINDOW_SIZE = 10_000
"""Number of last retrievals whose durations are kept."""


class Statistics:
    """Counters. Thread-safe."""

    def __init__(self) -> None:
        self._lock = InnerLock()
        self._milliseconds = deque[float](maxlen=WINDOW_SIZE)
        self._retrievals = 0
        self._results = 0
        self._total_milliseconds = 0.0
        self._hits = 0
        self._misses = 0
        self._expansions = 0
        self._augmentations = 0

    def retrieved(self, milliseconds: float, results: int, *, is_expanded: bool) -> None:
        """Count a retrieval."""
        with self._lock:
            self._milliseconds.append(milliseconds)
            self._retrievals += 1
            self._results += results
            self._total_milliseconds += milliseconds
            self._expansions += is_expanded

    def record_lookup(self, *, is_hit: bool) -> None:
        """Count a cache lookup."""
        with self._lock:
            self._hits += is_hit
            self._misses += not is_hit

    def augmented(self) -> None:
        """Count memories added to a context window."""
        with self._lock:
            self._augmentations += 1

    def read(self) -> RetrievalStats:
        """Return the current statistics."""
        with self._lock:
            retrievals, looks = self._retrievals, self._hits + self._misses
            last = list(self._milliseconds)
            each = max(1, retrievals)
            stats = RetrievalStats(
                total_retrievals=retrievals,
                cache_hit_rate=100 * self._hits / max(1, looks),
                average_retrieval_time_ms=self._total_milliseconds / each,
                average_results_per_query=self._results / each,
                expansion_usage_rate=100 * self._expansions / each,
                context_augmentations=self._augmentations,
            )
        if not retrievals:
            return stats
        p95 = float(np.quantile(last, 0.95))
        return msgspec.structs.replace(stats, p95_retrieval_time_ms=p95)
