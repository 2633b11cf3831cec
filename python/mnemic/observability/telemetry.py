"""Log lines, events and metrics of long-term memory."""

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

from mnemic.errors import EmbeddingError
from mnemic.model import MemoryEntry, MemoryType, Scope
from mnemic.observability.events import (
    Events,
    MemoryForgottenEvent,
    MemoryQuotaWarningEvent,
    MemoryRepeatedEvent,
    MemoryRetrievedEvent,
    MemorySearchCompletedEvent,
    MemoryStoredEvent,
    MemoryUpdatedEvent,
)
from mnemic.observability.metrics import CountedStore, Meter
from mnemic.protocols import Clock
from mnemic.records import Record
from mnemic.reporting.description import hidden
from mnemic.reporting.logs import logger
from mnemic.threads.locks import InnerLock

QUOTA_WARNINGS = (80, 90, 95)
QUOTA_HYSTERESIS = 5
"""Percent used at which a warning is given, and the decrease required before another."""

SHOWN_QUERY = 50

_ZONES = timedelta(days=1)
"""Zones are at most 14 hours ahead of UTC: what is later by more was no local time."""

REMINDED_AFTER_S = 600
"""Seconds after which the same failure of an embedder is a warning again."""

LOGGED_IDS = 32
"""Ids of evicted memories in one log line; further ones are in further lines."""

_log = logger(__name__)


class Sums:
    """Sums of numbers by name. Thread-safe."""

    def __init__(self) -> None:
        self.renew()
        self._sums: dict[str, Any] = {}

    def renew(self) -> None:
        """Take a new lock: that of another process may never be released."""
        self._lock = InnerLock()

    def add(self, **numbers: float) -> None:
        """Add numbers to their sums, all at once."""
        with self._lock:
            for name, number in numbers.items():
                self._sums[name] = self._sums.get(name, 0) + number

    def read(self) -> Counter[str]:
        """Return all sums; one that nothing was added to is 0."""
        with self._lock:
            return Counter(self._sums)


class Publisher:
    """Publishes events of one agent; queries only if permitted.

    Args:
        agent_id: The agent.
        events: Listeners of events.
        clock: Gives events their times.
        shows_queries: Whether queries may be shown, in log lines too.
    """

    def __init__(self, agent_id: str, events: Events, clock: Clock, *, shows_queries: bool) -> None:
        self._agent_id = agent_id
        self._events = events
        self._now = clock
        self._shows_queries = shows_queries

    async def _publish(self, kind: type[Record], **fields: object) -> None:
        """Publish an event of the agent and of this moment, where somebody listens."""
        if self._events.has_listeners(kind):
            make = cast("Callable[..., Record]", kind)  # each kind has these two fields
            event = make(agent_id=self._agent_id, timestamp=self._now(), **fields)
            await self._events.publish(event)

    def _in_event(self, query: str, *, is_sensitive: bool = False) -> str | None:
        """Return a query as an event shows it; None if it must not be shown."""
        return shortened(query) if self._shows_queries and not is_sensitive else None

    def _in_line(self, query: str, *, is_sensitive: bool = False) -> str:
        """Return a query as a log line shows it; its length if it must not be shown."""
        shown = self._in_event(query, is_sensitive=is_sensitive)
        return hidden(query) if shown is None else shown


class Telemetry(Publisher):
    """Emits log lines, events and metrics of one agent's memories; contents only if permitted.

    Args:
        agent_id: The agent.
        events: Listeners of events.
        clock: Gives events their times.
        logs_content: Whether queries may be shown.
        slow_embedding: Seconds of a memory's embedding above which a warning is logged.

    Attributes:
        meter: Measures the agent's memory.
    """

    def __init__(
        self,
        agent_id: str,
        events: Events,
        clock: Clock,
        *,
        logs_content: bool,
        slow_embedding: float,
    ) -> None:
        super().__init__(agent_id, events, clock, shows_queries=logs_content)
        self._slow_embedding = slow_embedding
        self._warned_percent = 0
        self._reminded_at: dict[str, float] = {}
        self.meter = Meter(agent_id, clock)

    def opened(self, store: CountedStore) -> None:
        """Log that the memory is open; from now on gauges read its store."""
        self.meter.opened(store)
        _log.info("Long-term memory initialized for agent %s", self._agent_id)

    def closed(self) -> None:
        """Stop the gauges. Repeated calls have no effect."""
        self.meter.closed()

    def store_failed(self, error: Exception) -> None:
        """Log a failed write; the error itself goes to the caller."""
        _log.error("Failed to store memory entry: %s", str(error))

    def embedding_deferred(self, count: int, error: Exception) -> None:
        """Log that memories are stored without vectors for now."""
        _log.warning("%d memory entries are stored without vectors for now: %s", count, str(error))

    def hinted(self, call: str, hint: str) -> None:
        """Log what a call may have missed."""
        _log.warning("%s() of agent %s: %s", call, self._agent_id, hint)

    def falls_back(self, error: EmbeddingError) -> None:
        """Log that a hybrid search is answered by keywords because the embedder failed.

        Each kind of failure is a warning once in `REMINDED_AFTER_S`; the others are for debugging.
        """
        now = time.monotonic()
        is_known = now < self._reminded_at.get(error.kind, now)
        if not is_known:
            self._reminded_at[error.kind] = now + REMINDED_AFTER_S
        level = logging.DEBUG if is_known else logging.WARNING
        _log.log(level, "A search of agent %s is answered by keywords: %s", self._agent_id, error)

    async def stored(
        self,
        entries: Sequence[MemoryEntry],
        embedded: Collection[tuple[str | None, UUID]],
        milliseconds: float,
    ) -> None:
        """Log and publish stored memories.

        Args:
            entries: The memories.
            embedded: User and id of those that were embedded.
            milliseconds: Duration of embedding them together.
        """
        self._warn_of_times(entries)
        share = timedelta(milliseconds=milliseconds) / max(1, len(embedded))
        is_logged = _log.isEnabledFor(logging.DEBUG)
        is_heard = self._events.has_listeners(MemoryStoredEvent)
        if not is_logged and not is_heard and share.total_seconds() <= self._slow_embedding:
            return
        for entry in entries:
            took = share if (entry.user_id, entry.id) in embedded else timedelta()
            if took.total_seconds() > self._slow_embedding:
                shown = took / timedelta(milliseconds=1)
                _log.warning("Embedding generation slow: %.0fms for entry %s", shown, entry.id)
            if is_logged:
                self._log_stored(entry)
            await self._publish(
                MemoryStoredEvent,
                entry_id=entry.id,
                type=entry.type,
                importance=entry.importance,
                content_length=len(entry.content),
                was_encrypted=entry.is_encrypted,
                embedding_time=took,
            )

    def _warn_of_times(self, entries: Sequence[MemoryEntry]) -> None:
        """Log what was most likely not meant: memories that no search finds, or of the future."""
        now = self._now()
        latest = now + _ZONES
        ahead = sum(each.created_at > latest for each in entries)
        expired = sum(each.expires_at is not None and each.expires_at <= now for each in entries)
        for number, what in (
            (ahead, "a created_at in the future"),
            (expired, "an expires_at in the past: no search finds them"),
        ):
            if number:
                _log.warning("%d memory entries of agent %s have %s", number, self._agent_id, what)

    def _log_stored(self, entry: MemoryEntry) -> None:
        _log.debug(
            "Stored memory entry %s for agent %s, type=%s, size=%dbytes, encrypted=%s",
            entry.id,
            self._agent_id,
            entry.type.name,
            len(entry.content.encode()),
            entry.is_encrypted,
        )

    async def repeated(self, entry_id: UUID, repeats: UUID) -> None:
        """Log and publish a stored memory that repeats one returned lately."""
        _log.info(
            "Memory entry %s of agent %s repeats %s, which was recalled lately",
            entry_id,
            self._agent_id,
            repeats,
        )
        await self._publish(MemoryRepeatedEvent, entry_id=entry_id, repeats=repeats)

    async def retrieved(self, entry: MemoryEntry) -> None:
        """Log and publish a memory retrieved by its id."""
        _log.debug("Retrieved memory entry %s for agent %s", entry.id, self._agent_id)
        await self._publish(
            MemoryRetrievedEvent,
            entry_id=entry.id,
            type=entry.type,
            was_decrypted=entry.is_encrypted,
        )

    async def searched(
        self,
        search_type: str,
        query: str,
        count: int,
        milliseconds: float,
        *,
        is_sensitive: bool = False,
    ) -> None:
        """Log, publish and measure a completed search.

        Args:
            search_type: Its type, such as "semantic".
            query: The query.
            count: Number of results.
            milliseconds: Duration.
            is_sensitive: Whether the query comes from a sensitive memory, and is never shown.
        """
        self.meter.searched(search_type, milliseconds, count)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "%s search for agent %s: query='%s', results=%d, time=%.1fms",
                search_type.capitalize(),
                self._agent_id,
                self._in_line(query, is_sensitive=is_sensitive),
                count,
                milliseconds,
            )
        await self._publish(
            MemorySearchCompletedEvent,
            query=self._in_event(query, is_sensitive=is_sensitive),
            search_type=search_type,
            result_count=count,
            search_time=timedelta(milliseconds=milliseconds),
        )

    async def updated(self, entry: MemoryEntry, *, content_changed: bool) -> None:
        """Publish a changed memory."""
        await self.updated_all([(entry.id, entry.type)], content_changed=content_changed)

    async def updated_all(
        self, updated: Iterable[tuple[UUID, MemoryType]], *, content_changed: bool
    ) -> None:
        """Publish memories that one call changed, given by id and type."""
        if not self._events.has_listeners(MemoryUpdatedEvent):
            return
        for entry_id, kind in updated:
            await self._publish(
                MemoryUpdatedEvent, entry_id=entry_id, type=kind, content_changed=content_changed
            )

    async def forgotten(self, entry_id: UUID, *, permanent: bool) -> None:
        """Log and publish a deleted memory."""
        _log.info(
            "Memory entry %s forgotten for agent %s, permanent=%s",
            entry_id,
            self._agent_id,
            permanent,
        )
        await self._publish_deleted([entry_id], permanent=permanent)

    async def emptied(self, scope: Scope, ids: Sequence[UUID], *, permanent: bool) -> None:
        """Log and publish the deletion of all memories of a scope."""
        _log.info("%d memory entries forgotten for %s, permanent=%s", len(ids), scope, permanent)
        await self._publish_deleted(ids, permanent=permanent)

    async def purged(self, ids: Sequence[UUID]) -> None:
        """Log and publish memories deleted permanently after their retention."""
        _log.info("%d memory entries purged for agent %s", len(ids), self._agent_id)
        await self._publish_deleted(ids, permanent=True)

    async def evicted(self, ids: Sequence[UUID]) -> None:
        """Log, count and publish memories deleted permanently to make space for others."""
        for first in range(0, len(ids), LOGGED_IDS):
            shown = ids[first : first + LOGGED_IDS]
            _log.info(
                "%d memory entries evicted for agent %s to make space: %s",
                len(shown),
                self._agent_id,
                ", ".join(map(str, shown)),
            )
        self.meter.evicted(len(ids))
        await self._publish_deleted(ids, permanent=True, evicted=True)

    async def _publish_deleted(
        self, ids: Sequence[UUID], *, permanent: bool, evicted: bool = False
    ) -> None:
        if not self._events.has_listeners(MemoryForgottenEvent):
            return
        for entry_id in ids:
            await self._publish(
                MemoryForgottenEvent, entry_id=entry_id, permanent=permanent, evicted=evicted
            )

    def freed(self, used: int, limit: int) -> float:
        """Reset warnings if usage fell far enough; return the percent used."""
        percent = used / limit * 100 if limit else 100.0
        if percent < self._warned_percent - QUOTA_HYSTERESIS:
            self._warned_percent = _step_passed(percent)
        return percent

    async def used(self, used: int, limit: int) -> None:
        """Warn once when usage exceeds 80, 90 or 95 %, again only after it fell by 5."""
        percent = self.freed(used, limit)
        passed = _step_passed(percent)
        if passed <= self._warned_percent:
            return
        self._warned_percent = passed
        _log.warning("Storage quota at %.0f%% for agent %s", percent, self._agent_id)
        await self._publish(
            MemoryQuotaWarningEvent, current_usage=used, limit=limit, percent_used=percent
        )


def _step_passed(percent: float) -> int:
    return max((step for step in QUOTA_WARNINGS if percent >= step), default=0)


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since a `time.perf_counter()`."""
    return (time.perf_counter() - started) * 1000


def shortened(query: str) -> str:
    """Return a query as shown in logs and events: its first 50 characters."""
    return query if len(query) <= SHOWN_QUERY else f"{query[:SHOWN_QUERY]}..."
