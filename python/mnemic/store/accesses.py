"""Accesses, collected in memory until a store writes them."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeAlias

from mnemic.store.values import AccessCount
from mnemic.threads.locks import InnerLock

MAX_UNMERGED = 1024
"""Calls after which recorded accesses are merged by row."""

RowAccesses: TypeAlias = Mapping[tuple[str, int], AccessCount]
"""Accesses by agent and row."""


class PendingAccesses:
    """Accesses that are not written yet. Thread-safe."""

    def __init__(self) -> None:
        self._lock = InnerLock()
        self._calls: list[tuple[str, tuple[int, ...], int]] = []
        self._pending: dict[tuple[str, int], AccessCount] = {}
        self._is_scheduled = False  # whether a submitted flush will take them
        self._in_flight: set[AccessFlush] = set()  # those that took accesses and have not ended

    def add(self, agent_id: str, rows: Iterable[int], now: int) -> bool:
        """Record accesses; return whether a flush must be submitted to write them."""
        touched = tuple(rows)
        with self._lock:
            if touched:
                self._calls.append((agent_id, touched, now))
            if len(self._calls) >= MAX_UNMERGED:
                self._merge_calls()
            is_due = self._is_anything_pending() and not self._is_scheduled
            self._is_scheduled = self._is_scheduled or is_due
            return is_due

    def is_pending(self) -> bool:
        """Return whether anything is not on disk; accesses in flight are, after the next write."""
        return bool(self._is_anything_pending() or self._in_flight)

    def has(self, agent_id: str, rows: Iterable[int]) -> bool:
        """Return whether accesses of any of these entries may not be on disk yet."""
        with self._lock:
            self._merge_calls()
            return bool(self._in_flight) or any((agent_id, row) in self._pending for row in rows)

    def of(self, agent_id: str, rows: Iterable[int]) -> dict[int, AccessCount]:
        """Return the accesses of an agent's rows that no write has taken yet."""
        with self._lock:
            self._merge_calls()
            found = ((row, self._pending.get((agent_id, row))) for row in rows)
            return {row: count for row, count in found if count is not None}

    def _is_anything_pending(self) -> bool:
        return bool(self._calls or self._pending)

    def _merge_calls(self) -> None:
        """Count accesses by row; ten times as slow as recording them, so no caller waits for it."""
        pending, calls, self._calls = self._pending, self._calls, []
        for agent_id, rows, now in calls:
            for row in rows:
                key = agent_id, row
                number, last = pending.get(key, (0, now))
                pending[key] = number + 1, max(last, now)

    def flush(self) -> "AccessFlush":
        """Return the accesses pending at its first `taken`, for one write."""
        return AccessFlush(self)

    def agents(self) -> set[str]:
        """Return the agents of the pending accesses."""
        with self._lock:
            self._merge_calls()
            return {agent_id for agent_id, _ in self._pending}

    def take(
        self, flush: "AccessFlush", agents: Collection[str] | None = None
    ) -> dict[tuple[str, int], AccessCount]:
        """Return the pending accesses of agents, or all, which the flush writes from now on."""
        with self._lock:
            self._merge_calls()
            taken, self._pending = self._pending, {}
            if agents is not None:
                pending = taken
                taken = {key: count for key, count in pending.items() if key[0] in agents}
                self._pending = {key: pending[key] for key in pending.keys() - taken.keys()}
            self._is_scheduled = False
            if taken and not flush.has_ended:  # a cancelled write ends before it may run
                self._in_flight.add(flush)
            return taken

    def end(self, flush: "AccessFlush") -> None:
        """Record that a flush has ended; one that never ran must be submitted again."""
        with self._lock:
            flush.has_ended = True
            self._in_flight.discard(flush)
            self._is_scheduled = False

    def put_back(self, taken: RowAccesses) -> None:
        """Take back accesses of a flush that could not be written, for the next one."""
        with self._lock:
            self._merge_calls()
            for key, (number, last) in taken.items():
                later, latest = self._pending.get(key, (0, last))
                self._pending[key] = number + later, max(last, latest)


class AccessFlush:
    """One write of pending accesses, which a store may run twice.

    Args:
        accesses: The pending accesses.

    Attributes:
        has_ended: Whether it is on disk or has failed.
    """

    def __init__(self, accesses: PendingAccesses) -> None:
        self.has_ended = False
        self._accesses = accesses
        self._taken: dict[tuple[str, int], AccessCount] | None = None

    def taken(self, agents: Collection[str] | None = None) -> RowAccesses:
        """Return the accesses to write, of agents or all: those pending at the first call."""
        if self._taken is None:
            self._taken = self._accesses.take(self, agents)
        return self._taken

    def ended(self) -> None:
        """Record, once, that the transaction is on disk or has failed."""
        self._accesses.end(self)

    def postponed(self) -> None:
        """Leave the accesses to the next flush, once the transaction cannot be begun."""
        self._accesses.put_back(self._taken or {})
        self._accesses.end(self)
