"""Log lines, events, metrics and statistics of a retrieval policy."""

import logging
from collections import Counter, deque
from typing import NamedTuple, Self

from mnemic.model.payload import Step
from mnemic.observability.events import (
    CircuitChangedEvent,
    RetrievalPolicyCompletedEvent,
    RetrievalPolicyFailedEvent,
)
from mnemic.observability.telemetry import Sums
from mnemic.policy.breaker import CircuitChange, CircuitState
from mnemic.policy.errors import RetrievalError, is_expected
from mnemic.policy.payload import RetrievalMetadata
from mnemic.records import Record
from mnemic.reporting.description import failure, hidden
from mnemic.reporting.logs import logger
from mnemic.repository import Repository, ServiceTelemetry

_log = logger("mnemic.policy")


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


class RunFigures(NamedTuple):
    """The figures of one run.

    Attributes:
        message: The message.
        metadata: The metadata of its payload.
        candidates: Memories that were compared for duplicates; 0 without a search of its own.
        duplicates: Those left out.
    """

    message: str
    metadata: RetrievalMetadata
    candidates: int
    duplicates: int

    @classmethod
    def of(cls, message: str, metadata: RetrievalMetadata) -> Self:
        """Return the figures of a run; no candidates if the payload is an earlier one."""
        if metadata.from_cache:
            return cls(message, metadata, 0, 0)
        steps = Counter(each.step for each in metadata.dropped)
        candidates = metadata.total_results - sum(steps[step] for step in _BEFORE_DUPLICATES)
        return cls(message, metadata, candidates, steps["deduplicate"])

    @property
    def dedup_ratio(self) -> float | None:
        """Duplicates ÷ candidates · 100; None without candidates."""
        return 100 * self.duplicates / self.candidates if self.candidates else None

    @property
    def fallback(self) -> str:
        """What was returned in place of a result; "cache" only if there was one."""
        error = self.metadata.error
        if self.metadata.from_cache or error is None:
            return "cache"
        return "empty" if error.fallback == "empty" else "skip"


_BEFORE_DUPLICATES: tuple[Step, ...] = ("threshold", "redact")
"""Steps that leave memories out before duplicates are looked for."""


class PolicyTelemetry(ServiceTelemetry):
    """Emits log lines, events and metrics of one policy's runs; messages only if permitted.

    Thread-safe.

    Args:
        repository: The agent's memories, their listeners of events, their meter and their clock.
    """

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        self._changes: deque[CircuitChange] = deque()
        self._sums, self._errors = Sums(), Sums()

    def stats(self, circuit: CircuitState) -> RetrievalPolicyStats:
        """Return the statistics so far."""
        sums = self._sums.read()
        each = max(1, sums["runs"])
        return RetrievalPolicyStats(
            runs=sums["runs"],
            from_cache=sums["from_cache"],
            cache_hit_rate=100 * sums["from_cache"] / each,
            errors=dict(self._errors.read()),
            average_results=sums["results"] / each,
            average_tokens=sums["tokens"] / each,
            average_latency_ms=sums["milliseconds"] / each,
            dedup_ratio=100 * sums["duplicates"] / max(1, sums["candidates"]),
            circuit=circuit,
        )

    def circuit_changed(self, change: CircuitChange) -> None:
        """Queue a change of the circuit breaker; it is published at the end of the run."""
        self._changes.append(change)

    def failed(self, error: RetrievalError, cause: Exception | None) -> None:
        """Log the cause of an error by its type and place: its text may quote a message."""
        if cause is None:
            _log.info("Retrieval for agent %s: %s", self._agent_id, error.code)
            return
        level = logging.WARNING if is_expected(cause) else logging.ERROR
        _log.log(
            level, "Retrieval for agent %s: %s (%s)", self._agent_id, error.code, failure(cause)
        )

    async def ran(self, message: str, metadata: RetrievalMetadata) -> None:
        """Log, publish and measure a run that was triggered."""
        figures = RunFigures.of(message, metadata)
        self._sums.add(
            runs=1,
            from_cache=metadata.from_cache,
            results=metadata.included_results,
            tokens=metadata.total_tokens,
            candidates=figures.candidates,
            duplicates=figures.duplicates,
            milliseconds=metadata.query_time,
        )
        if metadata.error is not None:
            self._errors.add(**{metadata.error.code: 1})
        self._meter.policy_ran(
            metadata.query_time,
            metadata.included_results,
            metadata.total_tokens,
            from_cache=metadata.from_cache,
            dedup_ratio=figures.dedup_ratio,
        )
        self._log_run(message, metadata)
        query = self._query(message)
        if metadata.error is None:
            await self._publish(
                RetrievalPolicyCompletedEvent,
                query=query,
                result_count=metadata.included_results,
                tokens_used=metadata.total_tokens,
                dedup_ratio=figures.dedup_ratio,
                from_cache=metadata.from_cache,
                degraded=metadata.degraded,
                latency_ms=metadata.query_time,
            )
        else:
            await self._publish(
                RetrievalPolicyFailedEvent,
                query=query,
                code=metadata.error.code,
                fallback=figures.fallback,
                age=metadata.age,
                latency_ms=metadata.query_time,
            )
        await self.publish_changes()

    async def publish_changes(self) -> None:
        """Log and publish the changes of the circuit breaker, in their order."""
        while self._changes:
            try:
                before, after = self._changes.popleft()
            except IndexError:  # another thread took it
                return
            level = logging.WARNING if after == "open" else logging.INFO
            _log.log(level, "Circuit of agent %s: %s, was %s", self._agent_id, after, before)
            await self._publish(CircuitChangedEvent, before=before, after=after)

    def _log_run(self, message: str, metadata: RetrievalMetadata) -> None:
        if not _log.isEnabledFor(logging.DEBUG):
            return
        _log.debug(
            "Retrieved %d memories of %d tokens for '%s' in %.1fms%s",
            metadata.included_results,
            metadata.total_tokens,
            self._query(message) or hidden(message),
            metadata.query_time,
            ", from the cache" if metadata.from_cache else "",
        )

    def _query(self, message: str) -> str | None:
        shown = self._in_event(message)
        if shown is None:
            return None
        return shown.encode(errors="replace").decode()  # a lone surrogate is no text
