"""Log lines, events, metrics and statistics of a retrieval policy."""

from collections import Counter, deque
from logging import WARNING

from mnemic.model.payload import Step
from mnemic.observability.table import BROKEN, CIRCUIT_CHANGED, COMPLETED, FAILED, REFUSED
from mnemic.observability.telemetry import Sums
from mnemic.policy.limits import CircuitChange, CircuitState
from mnemic.policy.payload import RetrievalError, RetrievalMetadata, is_expected
from mnemic.records import Record
from mnemic.reporting.description import failure, hidden
from mnemic.repository import Repository, ServiceTelemetry


class RetrievalPolicyStats(Record, frozen=True, kw_only=True):
    """Statistics of a policy since its construction. Only runs that were triggered count.

    Attributes:
        runs: Number of runs.
        from_cache: Runs whose payload is an earlier one.
        cache_hit_rate: Their share in percent; 0 without runs.
        errors: Number of runs with each code of an error, with and without a payload.
        average_results: Memories in a payload.
        average_tokens: Tokens of a prompt block.
        average_latency_ms: Milliseconds of a run.
        dedup_ratio: Duplicates ÷ candidates · 100, over all runs that searched; 0 without any.
        circuit: State of the circuit breaker.
    """

    runs: int
    from_cache: int
    cache_hit_rate: float
    errors: dict[str, int]
    average_results: float
    average_tokens: float
    average_latency_ms: float
    dedup_ratio: float
    circuit: CircuitState


_BEFORE_DUPLICATES: tuple[Step, ...] = ("threshold", "redact")
"""Steps that leave memories out before duplicates are looked for."""


class PolicyTelemetry(ServiceTelemetry):
    """Emits what happens to the runs of one policy; messages only if permitted. Thread-safe.

    Args:
        repository: The agent's memories, their listeners of events, their meter and their clock.

    Attributes:
        circuit_changes: Changes of the circuit breaker that the next end of a run tells.
    """

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        self.circuit_changes: deque[CircuitChange] = deque()
        self._errors = Sums()

    def stats(self, circuit: CircuitState) -> RetrievalPolicyStats:
        """Return the statistics so far."""
        sums = self.sums.read()
        each = max(1, sums["runs"])
        return RetrievalPolicyStats(
            runs=sums["runs"],
            from_cache=sums["from_cache"],
            cache_hit_rate=100 * sums["from_cache"] / each,
            errors=dict(self._errors.read()),
            average_results=sums["result_count"] / each,
            average_tokens=sums["tokens_used"] / each,
            average_latency_ms=sums["latency_ms"] / each,
            dedup_ratio=100 * sums["duplicates"] / max(1, sums["candidates"]),
            circuit=circuit,
        )

    def failed(self, error: RetrievalError, cause: Exception | None) -> None:
        """Log the cause of an error by its type and place: its text may quote a message."""
        if cause is None:
            self.record(REFUSED, code=error.code)
        else:
            level = WARNING if is_expected(cause) else None
            self.record(BROKEN, level, code=error.code, cause=failure(cause))

    async def ran(self, message: str, metadata: RetrievalMetadata) -> None:
        """Emit a run that was triggered."""
        error, is_earlier = metadata.error, metadata.from_cache
        candidates, duplicates = (0, 0) if is_earlier else _compared(metadata)
        own = {}
        if error is not None:
            self._errors.add([error.code], {})
            without = "empty" if error.fallback == "empty" else "skip"
            own = {"code": error.code, "fallback": "cache" if is_earlier else without}
        await self.emit(
            COMPLETED if error is None else FAILED,
            **own,
            query=message,
            age=metadata.age,
            result_count=metadata.included_results,
            tokens_used=metadata.total_tokens,
            candidates=candidates,
            duplicates=duplicates,
            dedup_ratio=100 * duplicates / candidates if candidates else None,
            from_cache=is_earlier,
            cache_hit_rate=100.0 if is_earlier else 0.0,
            source=", from the cache" if is_earlier else "",
            degraded=metadata.degraded,
            latency_ms=metadata.query_time,
        )
        while self.circuit_changes:
            try:
                before, after = self.circuit_changes.popleft()
            except IndexError:  # another thread took it
                return
            level = WARNING if after == "open" else None
            await self.emit(CIRCUIT_CHANGED, level, before=before, after=after)

    def _in_line(self, query: str, *, shows: bool) -> str:
        return super()._in_line(query, shows=shows) or hidden(query)


def _compared(metadata: RetrievalMetadata) -> tuple[int, int]:
    """Return how many memories of a search were compared for duplicates, and how many were."""
    steps = Counter(each.step for each in metadata.dropped)
    before = sum(steps[step] for step in _BEFORE_DUPLICATES)
    return metadata.total_results - before, steps["deduplicate"]
