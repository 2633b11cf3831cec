"""Counts, log lines and events of an engine's turns; never a word of the conversation."""

from datetime import datetime
from typing import Literal, TypeAlias

from mnemic.observability.events import HypothesesRetrievedEvent
from mnemic.observability.telemetry import Sums
from mnemic.records import Record
from mnemic.reporting.description import failure
from mnemic.reporting.logs import logger
from mnemic.repository import Repository, ServiceTelemetry

_log = logger("mnemic.hyde")

Stage: TypeAlias = Literal[
    "ready", "hypotheses", "embedding", "search", "expansion", "lineages", "turn"
]
"""A stage of a turn; "turn" is all of them, and whatever fails outside of the others."""

_MESSAGES: dict[Stage, str] = {
    "ready": "The index is not ready for agent %s; the turn gets no memories: %s",
    "hypotheses": "The hypotheses of a turn of agent %s failed; it gets no memories: %s",
    "embedding": "The hypotheses of a turn of agent %s got no vectors; it gets no memories: %s",
    "search": "The search of a turn of agent %s failed; it gets no memories: %s",
    "expansion": "The links of a turn of agent %s were not followed: %s",
    "lineages": "The earlier versions of a turn of agent %s were not read: %s",
    "turn": "A turn of agent %s failed; it gets no memories: %s",
}


class HydeStats(Record, frozen=True, kw_only=True):
    """Statistics of an engine since its construction.

    Attributes:
        turns: Calls of `retrieve` for turns whose result was not kept.
        cache_hits: Calls that got the kept result of a turn.
        failures: Number of failures at each stage: "ready" is an index that was not built in time,
            then "hypotheses", "embedding", "search", "expansion", "lineages", and "turn" for
            whatever failed outside of them.
        partial: Turns with memories whose later stages failed or were cut at the deadline.
        latency_ms: Milliseconds that each stage took the last time; "turn" is the whole.
        builds: Builds of the index that ended.
        failed_builds: Those that failed.
    """

    turns: int
    cache_hits: int
    failures: dict[str, int]
    partial: int
    latency_ms: dict[str, float]
    builds: int
    failed_builds: int


class HydeTelemetry(ServiceTelemetry):
    """Counts the turns of one engine. Thread-safe.

    Args:
        repository: The agent's memories, their listeners of events and their clock.
    """

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        self._sums, self._failures = Sums(), Sums()
        self._latency_ms: dict[str, float] = {}

    def renew(self) -> None:
        """Take new locks: those of another process may never be released."""
        self._sums.renew()
        self._failures.renew()

    def hit(self) -> None:
        """Count a call that got the kept result."""
        self._sums.add(cache_hits=1)

    def started(self) -> None:
        """Count a call without a kept result."""
        self._sums.add(turns=1)

    def took(self, stage: Stage, seconds: float) -> None:
        """Note how long a stage took."""
        self._latency_ms[stage] = seconds * 1000

    def failed(self, stage: Stage, error: BaseException | None) -> None:
        """Count a failure, and log its type and place: its text may quote the conversation."""
        self._failures.add(**{stage: 1})
        _log.debug(
            _MESSAGES[stage], self._agent_id, "not in time" if error is None else failure(error)
        )

    def ended(
        self, count: int, stage: Stage | None, seconds: float, stale_since: datetime | None = None
    ) -> HypothesesRetrievedEvent | None:
        """Count the end of a flight; return its event if it has listeners.

        Args:
            count: Number of memories.
            stage: The stage that failed; None if none did.
            seconds: Duration.
            stale_since: Since when changes may be missing, because the store cannot be read.
        """
        is_partial = stage is not None and count > 0
        self._sums.add(partial=is_partial)
        self.took("turn", seconds)
        if not self._events.has_listeners(HypothesesRetrievedEvent):
            return None
        return HypothesesRetrievedEvent(
            agent_id=self._agent_id,
            result_count=count,
            failed_stage=stage,
            partial=is_partial,
            stale_since=stale_since,
            latency_ms=seconds * 1000,
            timestamp=self._now(),
        )

    def stats(self, builds: int, failed_builds: int) -> HydeStats:
        """Return the statistics so far."""
        sums = self._sums.read()
        return HydeStats(
            turns=sums["turns"],
            cache_hits=sums["cache_hits"],
            failures=dict(self._failures.read()),
            partial=sums["partial"],
            latency_ms=dict(self._latency_ms),
            builds=builds,
            failed_builds=failed_builds,
        )
