"""Telemetry: log lines, events, sums and metrics of what happens, by the rows of one table.

Metrics go through the OpenTelemetry API, which is never imported here: it is used from the moment
when the program itself has imported `opentelemetry.metrics`. Until then a measurement is one lookup
in `sys.modules`.
"""

import logging
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

from mnemic._core import __version__
from mnemic.errors import EmbeddingError
from mnemic.model import MemoryEntry, MemoryType, Scope
from mnemic.observability import table
from mnemic.observability.events import Events
from mnemic.observability.table import HISTOGRAMS, METRICS, Row
from mnemic.protocols import Clock
from mnemic.records import Record
from mnemic.reporting.description import failure, hidden
from mnemic.reporting.logs import logger
from mnemic.store.operations import EntryCount, StoredAmount
from mnemic.threads.locks import InnerLock, Lock

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

    from mnemic.store import Store


_log = logger(__name__)


Reading = Callable[["Store", Scope, datetime], int]
"""Reads a gauge for an agent at a time."""

_GAUGES: dict[str, tuple[str, str, Reading]] = {
    "agents.memory.longterm.entries": (
        "{entry}",
        "Memories that can be found",
        lambda store, agent, now: store.read(EntryCount(agent, now)),
    ),
    "agents.memory.longterm.storage_bytes": (
        "By",
        "UTF-8 bytes of all contents, forgotten ones too",
        lambda store, agent, _: store.read(StoredAmount(agent, "bytes")),
    ),
}
"""Unit, description and reading, by name."""


class Meter:
    """Measures one open memory of one agent; it exposes only the agent's id.

    Nothing is measured, and nothing fails, if OpenTelemetry is absent, unused or broken.
    Thread-safe; no call waits for another one.

    Args:
        agent_id: The agent; an attribute of every measurement.
        clock: Gives the time at which memories are counted.

    Attributes:
        now: The clock.
        agent: Scope of the counted memories: the agent, all users.
        store: Store that the gauges read; None before `opened` and after `closed`.
        place: Equal for two meters of the same file.
    """

    def __init__(self, agent_id: str, clock: Clock) -> None:
        self.now = clock
        self.agent = Scope(agent_id, all_users=True)
        self.store: Store | None = None
        self.place = ""
        self._attributes = {"agent_id": agent_id}

    def opened(self, store: "Store") -> None:
        """Let the gauges read a store, until `closed` or until the meter is collected."""
        in_process = store.path == ":memory:"
        self.place = f"{id(store)}" if in_process else os.path.realpath(store.path)
        self.store = store
        _process.watch(self)

    def closed(self) -> None:
        """Stop the gauges. Repeated calls have no effect."""
        self.store = None

    def measure(self, row: Row, facts: Mapping[str, Any]) -> None:
        """Move the metrics of a row by its facts."""
        instruments = _process.instruments()
        if instruments is None:
            return
        for name, unit, _, attribute, fact in row.metrics:
            usual, _ = HISTOGRAMS.get(unit, ("", ()))
            value = facts[fact or usual] if fact or usual else 1
            if value is None or (not value and unit not in HISTOGRAMS):
                continue
            attributes = {attribute: facts[attribute]} if attribute else {}
            try:  # a flag counts as 1
                instruments[name](+value, {**self._attributes, **attributes})
            except Exception as error:  # noqa: BLE001 - the operation has happened, whoever measures it
                _process.log_failure(name, error)


_Instruments: TypeAlias = dict[str, Callable[[float, dict[str, str]], None]]
"""What takes the measurements and their attributes, by the name of the metric."""


class _Process:
    """The instruments, which a process has once, and the meters that the gauges read.

    No lock is taken: garbage collection may close a memory during any operation, and a fork may
    leave a lock locked.
    """

    def __init__(self) -> None:
        self._making = Lock()
        self._is_made = False
        self._instruments: _Instruments | None = None
        self._meters: weakref.WeakValueDictionary[int, Meter] = weakref.WeakValueDictionary()
        self._failed: set[str] = set()

    def watch(self, meter: Meter) -> None:
        """Add a meter to the gauges for as long as it lives."""
        self._meters[id(meter)] = meter
        self.instruments()

    def instruments(self) -> _Instruments | None:
        """Return the instruments by name, or None while the program does not use OpenTelemetry."""
        if not self._is_made and sys.modules.get("opentelemetry.metrics") is not None:
            self._make()
        return self._instruments

    def log_failure(self, what: str, error: Exception) -> None:
        """Log the kind of an error, the first time it hits this instrument."""
        if what not in self._failed:
            self._failed.add(what)
            _log.error("Measuring %s failed: %s", what, failure(error))

    def _make(self) -> None:
        """Make the instruments; concurrent measurements are skipped."""
        if not self._making.acquire(blocking=False):
            return
        try:
            if not self._is_made:
                self._instruments = self._made()
        except Exception as error:  # noqa: BLE001 - a program runs on without being measured
            self.log_failure("agents.memory.*", error)
        finally:
            self._is_made = True  # once, failed or not: a second try would register names twice
            self._making.release()

    def _made(self) -> _Instruments:
        from opentelemetry.metrics import Observation, get_meter  # noqa: PLC0415 - loaded already

        def observing(name: str, read: Reading) -> "Callable[[CallbackOptions], list[Observation]]":
            return lambda _: [
                Observation(total, {"agent_id": agent_id})
                for agent_id, total in self._totals(name, read).items()
            ]

        meter = get_meter("mnemic", __version__)
        for name, (unit, description, read) in _GAUGES.items():
            meter.create_observable_gauge(name, [observing(name, read)], unit, description)
        instruments: _Instruments = {}
        for name, unit, description, *_ in METRICS.values():
            if unit in HISTOGRAMS:
                instruments[name] = meter.create_histogram(
                    name, unit, description, explicit_bucket_boundaries_advisory=HISTOGRAMS[unit][1]
                ).record
            else:
                instruments[name] = meter.create_counter(name, unit, description).add
        return instruments

    def _totals(self, name: str, read: Reading) -> dict[str, int]:
        """Return a reading of each agent, summed over its files, each of them read once."""
        readings: dict[tuple[str, str], int] = {}
        found = [meter() for meter in self._meters.valuerefs()]  # a copy, made in one step
        for meter in filter(None, found):
            known, store = (meter.agent.agent_id, meter.place), meter.store
            if store is None or known in readings:
                continue
            try:
                readings[known] = read(store, meter.agent, meter.now())
            except Exception as error:  # noqa: BLE001 - the others shall be measured still
                if meter.store is not None:  # else it was closed meanwhile
                    self.log_failure(name, error)
        totals: dict[str, int] = {}
        for (agent_id, _), reading in readings.items():
            totals[agent_id] = totals.get(agent_id, 0) + reading
        return totals


_process = _Process()


QUOTA_WARNINGS = (80, 90, 95)
QUOTA_HYSTERESIS = 5
"""Percent used at which a warning is given, and the decrease required before another."""

SHOWN_QUERY = 50
FILTER_ONLY = "[filter-only]"
"""Characters of a query that are shown, and what is shown where there is none."""

QUERIES = {"query", "original_query", "expanded_query"}
"""Facts that are shown only if permitted."""

_ZONES = timedelta(days=1)
"""Zones are at most 14 hours ahead of UTC: what is later by more was no local time."""

REMINDED_AFTER_S = 600
"""Seconds after which the same failure of an embedder is a warning again."""

LOGGED_IDS = 32
"""Ids of evicted memories in one log line; further ones are in further lines."""


class Sums:
    """Sums of numbers by name. Thread-safe."""

    def __init__(self) -> None:
        self.renew()
        self._sums: dict[str, Any] = {}

    def renew(self) -> None:
        """Take a new lock: that of another process may never be released."""
        self._lock = InnerLock()

    def add(self, names: Iterable[str], numbers: Mapping[str, Any]) -> None:
        """Add to each sum its number, or 1 where there is none, all at once."""
        with self._lock:
            for name in names:
                self._sums[name] = self._sums.get(name, 0) + numbers.get(name, 1)

    def read(self) -> Counter[str]:
        """Return all sums; one that nothing was added to is 0."""
        with self._lock:
            return Counter(self._sums)


class Telemetry:
    """Emits what happens to one agent's memories; queries only if permitted.

    Callers name a row of the table and give its facts. What nobody listens to is not made.

    Args:
        agent_id: The agent.
        events: Listeners of events.
        clock: Gives events their times.
        meter: Measures the agent's memory; an attribute too.
        shows_queries: Whether queries may be shown.

    Attributes:
        sums: What the rows add up.
    """

    def __init__(
        self, agent_id: str, events: Events, clock: Clock, meter: Meter, *, shows_queries: bool
    ) -> None:
        self._agent_id = agent_id
        self.events = events
        self._now = clock
        self.meter = meter
        self._shows_queries = shows_queries
        self.sums = Sums()

    async def emit(self, row: Row, level: int | None = None, /, **facts: Any) -> None:
        """Measure, add up, log and publish what happens.

        Args:
            row: Its row of the table.
            level: Level of its line, if not that of the row.
            facts: What its line, its event and its metrics say. With `is_sensitive=True` a query
                is never shown.
        """
        self.record(row, level, **facts)
        event = self.event(row, facts)
        if event is not None:
            await self.events.publish(event)

    def record(self, row: Row, level: int | None = None, /, **facts: Any) -> None:
        """Do the same without publishing."""
        if row.metrics:
            self.meter.measure(row, facts)
        if row.sums:
            self.sums.add(row.sums, facts)
        level = level or row.level
        if row.line and row.log.isEnabledFor(level):
            times = {name: at.isoformat() for name, at in facts.items() if isinstance(at, datetime)}
            row.log.log(level, row.line, {**self._shown(facts, self._in_line), **times})

    def event(self, row: Row, facts: Mapping[str, Any]) -> Record | None:
        """Return the event of a row at this moment; None if nobody listens."""
        if row.event is None or not self.events.has_listeners(row.event):
            return None
        shown = {**self._shown(facts, self._in_event), "timestamp": self._now()}
        fields = row.event.__struct_fields__
        event: Record = row.event(**{name: shown[name] for name in fields if name in shown})
        return event

    def is_enabled(self, row: Row) -> bool:
        """Return whether an event or a line of a row has listeners."""
        is_logged = row.line != "" and row.log.isEnabledFor(row.level)
        return is_logged or (row.event is not None and self.events.has_listeners(row.event))

    def _shown(self, facts: Mapping[str, Any], show: Callable[..., str | None]) -> dict[str, Any]:
        """Return the agent and the facts, with queries as they may be shown."""
        shows = self._shows_queries and not facts.get("is_sensitive")
        queries = {name: show(facts[name], shows=shows) for name in QUERIES.intersection(facts)}
        return {"agent_id": self._agent_id, **facts, **queries}

    def _in_event(self, query: str | None, *, shows: bool) -> str | None:
        if query is None:
            return FILTER_ONLY
        # A lone surrogate is no text.
        return shortened(query).encode(errors="replace").decode() if shows else None

    def _in_line(self, query: str, *, shows: bool) -> str:
        shown = self._in_event(query, shows=shows)
        return hidden(query) if shown is None else shown


class MemoryTelemetry(Telemetry):
    """Emits what happens in one agent's long-term memory; for the arguments see `Telemetry`."""

    _warned_percent = 0

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._reminded_at: dict[str, float] = {}

    def opened(self, store: "Store") -> None:
        """Log that the memory is open; from now on gauges read its store."""
        self.meter.opened(store)
        self.record(table.OPENED)

    def falls_back(self, error: EmbeddingError) -> None:
        """Log that a hybrid search is answered by keywords because the embedder failed.

        Each kind of failure is a warning once in `REMINDED_AFTER_S`; the others are for debugging.
        """
        now = time.monotonic()
        is_known = now < self._reminded_at.get(error.kind, now)
        if not is_known:
            self._reminded_at[error.kind] = now + REMINDED_AFTER_S
        self.record(table.BY_KEYWORDS, logging.DEBUG if is_known else None, error=error)

    async def stored(
        self,
        entries: Sequence[MemoryEntry],
        embedded: Collection[tuple[str | None, UUID]],
        milliseconds: float,
        slow: float,
    ) -> None:
        """Log and publish stored memories.

        Args:
            entries: The memories.
            embedded: User and id of those that were embedded.
            milliseconds: Duration of embedding them together.
            slow: Seconds of a memory's embedding above which a warning is logged.
        """
        self._warn_of_times(entries)
        share = timedelta(milliseconds=milliseconds) / max(1, len(embedded))
        is_slow = share.total_seconds() > slow
        for entry in entries if is_slow or self.is_enabled(table.STORED) else ():
            took = share if (entry.user_id, entry.id) in embedded else timedelta()
            if is_slow and took:
                shown = took / timedelta(milliseconds=1)
                self.record(table.SLOWLY_EMBEDDED, latency_ms=shown, entry_id=entry.id)
            await self.emit(
                table.STORED,
                entry_id=entry.id,
                type=entry.type,
                kind=entry.type.name,
                importance=entry.importance,
                content_length=len(entry.content),
                size=len(entry.content.encode()),
                was_encrypted=entry.is_encrypted,
                embedding_time=took,
            )

    def _warn_of_times(self, entries: Sequence[MemoryEntry]) -> None:
        """Log what was most likely not meant: memories that no search finds, or of the future."""
        now = self._now()
        latest = now + _ZONES
        ahead = sum(each.created_at > latest for each in entries)
        expired = sum(each.expires_at is not None and each.expires_at <= now for each in entries)
        for count, what in (
            (ahead, "a created_at in the future"),
            (expired, "an expires_at in the past: no search finds them"),
        ):
            if count:
                self.record(table.UNLIKELY_TIMES, count=count, what=what)

    async def searched(
        self, search_type: str, query: str, count: int, milliseconds: float, **hiding: bool
    ) -> None:
        """Emit a completed search; `is_sensitive=True` hides a query that is a memory."""
        await self.emit(
            table.SEARCHED,
            search_type=search_type,
            kind=search_type.capitalize(),
            query=query,
            **hiding,
            result_count=count,
            latency_ms=milliseconds,
            search_time=timedelta(milliseconds=milliseconds),
        )

    async def updated(
        self, updated: Iterable[tuple[UUID, MemoryType]], *, content_changed: bool
    ) -> None:
        """Publish memories that one call changed, given by id and type."""
        for entry_id, kind in updated if self.is_enabled(table.UPDATED) else ():
            await self.emit(
                table.UPDATED, entry_id=entry_id, type=kind, content_changed=content_changed
            )

    async def deleted(
        self, row: Row, ids: Sequence[UUID], *, permanent: bool, **facts: object
    ) -> None:
        """Log the deletion of memories as a row says, and publish each."""
        self.record(row, count=len(ids), permanent=permanent, **facts)
        for entry_id in ids if self.is_enabled(table.DELETED) else ():
            await self.emit(table.DELETED, entry_id=entry_id, permanent=permanent, **facts)

    async def evicted(self, ids: Sequence[UUID]) -> None:
        """Log, count and publish memories deleted permanently to make space for others."""
        for first in range(0, len(ids), LOGGED_IDS):
            shown = ids[first : first + LOGGED_IDS]
            self.record(table.EVICTED_IDS, count=len(shown), ids=", ".join(map(str, shown)))
        await self.deleted(table.EVICTED, ids, permanent=True, evicted=True)

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
        await self.emit(table.QUOTA_PASSED, current_usage=used, limit=limit, percent_used=percent)


def _step_passed(percent: float) -> int:
    return max((step for step in QUOTA_WARNINGS if percent >= step), default=0)


def milliseconds_since(started: float) -> float:
    """Return the milliseconds since a `time.perf_counter()`."""
    return (time.perf_counter() - started) * 1000


def shortened(query: str) -> str:
    """Return a query as shown in logs and events: its first 50 characters."""
    return query if len(query) <= SHOWN_QUERY else f"{query[:SHOWN_QUERY]}..."
