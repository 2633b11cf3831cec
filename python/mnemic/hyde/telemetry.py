"""Counts, log lines and events of an engine's turns; never a word of the conversation."""

from datetime import datetime
from typing import Literal, TypeAlias

from mnemic.observability.table import STAGES_FAILED, TURN_ENDED
from mnemic.records import Record
from mnemic.reporting.description import failure
from mnemic.repository import Repository, ServiceTelemetry

Stage: TypeAlias = Literal[
    "ready", "hypotheses", "embedding", "search", "expansion", "lineages", "turn"
]
"""A stage of a turn; "turn" is all of them, and whatever fails outside of the others."""


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
    """Emits what happens to the turns of one engine. Thread-safe.

    Args:
        repository: The agent's memories, their listeners of events and their clock.
    """

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository)
        self._latency_ms: dict[str, float] = {}

    def took(self, stage: Stage, seconds: float) -> None:
        """Note how long a stage took."""
        self._latency_ms[stage] = seconds * 1000

    def failed(self, stage: Stage, error: BaseException | None) -> None:
        """Count a failure, and log its type and place: its text may quote the conversation."""
        cause = "not in time" if error is None else failure(error)
        self.record(STAGES_FAILED[stage], cause=cause)

    def ended(
        self, count: int, stage: Stage | None, seconds: float, stale_since: datetime | None = None
    ) -> Record | None:
        """Count the end of a flight; return its event if it has listeners.

        Args:
            count: Number of memories.
            stage: The stage that failed; None if none did.
            seconds: Duration.
            stale_since: Since when changes may be missing, because the store cannot be read.
        """
        self.took("turn", seconds)
        facts = {
            "result_count": count,
            "failed_stage": stage,
            "partial": stage is not None and count > 0,
            "stale_since": stale_since,
            "latency_ms": seconds * 1000,
        }
        self.record(TURN_ENDED, **facts)
        return self.event(TURN_ENDED, facts)

    def stats(self, builds: int, failed_builds: int) -> HydeStats:
        """Return the statistics so far."""
        sums = self.sums.read()
        return HydeStats(
            turns=sums["turns"],
            cache_hits=sums["cache_hits"],
            failures={stage: sums[stage] for stage in sums if stage in STAGES_FAILED},
            partial=sums["partial"],
            latency_ms=dict(self._latency_ms),
            builds=builds,
            failed_builds=failed_builds,
        )
