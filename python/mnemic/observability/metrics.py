"""Metrics of mnemic, through the OpenTelemetry API.

OpenTelemetry is never imported here: it is used from the moment when the program itself has
imported `opentelemetry.metrics`. Until then a measurement is one lookup in `sys.modules`.
"""

import os
import sys
import weakref
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, TypeAlias

from mnemic._core import __version__
from mnemic.model import Scope
from mnemic.protocols import Clock
from mnemic.reporting.description import failure
from mnemic.reporting.logs import logger
from mnemic.threads.locks import Lock

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation

LONG_TERM = "agents.memory.longterm."
RETRIEVAL = "agents.memory.retrieval."
RETRIEVER = "Agents.Memory.Retriever."
POLICY = "retrieval."
"""Prefixes of the names of metrics."""

_log = logger(__name__)

# OpenTelemetry's own bounds begin at 5 ms; most operations end below one (docs/lab/performance.md).
_MILLISECONDS = (
    *(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0),
    *(500.0, 1000.0, 2500.0, 5000.0, 10000.0),
)
_PERCENT = (0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 99.0, 100.0)
_TOKENS = (0.0, 50.0, 100.0, 200.0, 400.0, 600.0, 800.0, 1000.0, 1250.0, 1500.0, 2000.0, 3000.0)
_RESULTS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


class CountedStore(Protocol):
    """The interface of a store for gauges."""

    @property
    def path(self) -> str:
        """The place of the store."""
        ...

    def count(self, scope: Scope, *, now: datetime) -> int:
        """Return the number of entries in a scope."""
        ...

    def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents."""
        ...


Reading = Callable[[CountedStore, Scope, datetime], int]
"""Reads a gauge for an agent at a time."""


def _entries(store: CountedStore, agent: Scope, now: datetime) -> int:
    return store.count(agent, now=now)


def _storage_bytes(store: CountedStore, agent: Scope, _now: datetime) -> int:
    return store.used_bytes(agent.agent_id)


# Name, unit (UCUM: what is counted stands in braces), description, and how it is read or bounded.
_GAUGES = (
    (LONG_TERM + "entries", "{entry}", "Memories that can be found", _entries),
    (
        LONG_TERM + "storage_bytes",
        "By",
        "UTF-8 bytes of all contents, forgotten ones too",
        _storage_bytes,
    ),
)
_HISTOGRAMS = (
    (LONG_TERM + "store_latency_ms", "ms", "Storing one memory or a batch", _MILLISECONDS),
    (LONG_TERM + "retrieve_latency_ms", "ms", "Retrieving one id or several", _MILLISECONDS),
    (
        LONG_TERM + "search_latency_ms",
        "ms",
        "One search, embedding included, by search_type",
        _MILLISECONDS,
    ),
    (LONG_TERM + "embedding_time_ms", "ms", "One call of the embedder", _MILLISECONDS),
    (LONG_TERM + "search_results", "{result}", "Memories that a search found", _RESULTS),
    (RETRIEVAL + "latency_ms", "ms", "Answering one query, from the cache or not", _MILLISECONDS),
    (RETRIEVAL + "results", "{result}", "Memories that a retrieval returned", _RESULTS),
    (RETRIEVER + "Latency", "ms", "One recall", _MILLISECONDS),
    (RETRIEVER + "ResultCount", "{result}", "Memories that were recalled", _RESULTS),
    (POLICY + "latency_ms", "ms", "One run of a retrieval policy, end to end", _MILLISECONDS),
    (POLICY + "results_count", "{result}", "Memories that a run returned", _RESULTS),
    (POLICY + "tokens_used", "{token}", "Tokens of a run's prompt block", _TOKENS),
    (POLICY + "dedup_ratio", "%", "Duplicates among the candidates of a run", _PERCENT),
    (
        POLICY + "cache_hit_rate",
        "%",
        "100 for a run served from the cache, 0 for another: the mean is the rate",
        _PERCENT,
    ),
)
_COUNTERS = (
    (LONG_TERM + "evictions", "{entry}", "Memories that were deleted to make space for others"),
    (RETRIEVAL + "total", "{retrieval}", "Queries that were answered"),
    (RETRIEVAL + "cache_hits", "{retrieval}", "Queries whose answer was known"),
    (RETRIEVAL + "augmentations", "{augmentation}", "Times that a context window was augmented"),
    (RETRIEVER + "Queries", "{recall}", "Recalls, by mode"),
)


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
        self.store: CountedStore | None = None
        self.place = ""
        self._attributes = {"agent_id": agent_id}

    def opened(self, store: CountedStore) -> None:
        """Let the gauges read a store, until `closed` or until the meter is collected."""
        in_process = store.path == ":memory:"
        self.place = f"{id(store)}" if in_process else os.path.realpath(store.path)
        self.store = store
        _process.watch(self)

    def closed(self) -> None:
        """Stop the gauges. Repeated calls have no effect."""
        self.store = None

    def stored(self, milliseconds: float) -> None:
        """Measure a call that stored memories."""
        self._record(LONG_TERM + "store_latency_ms", milliseconds)

    def retrieved(self, milliseconds: float) -> None:
        """Measure a call that read memories by their ids, found or not."""
        self._record(LONG_TERM + "retrieve_latency_ms", milliseconds)

    def searched(self, search_type: str, milliseconds: float, results: int) -> None:
        """Measure a search of a type, such as "semantic"."""
        self._record(LONG_TERM + "search_latency_ms", milliseconds, search_type=search_type)
        self._record(LONG_TERM + "search_results", results, search_type=search_type)

    def embedded(self, milliseconds: float) -> None:
        """Measure one call of the embedder, whatever its number of texts."""
        self._record(LONG_TERM + "embedding_time_ms", milliseconds)

    def evicted(self, number: int) -> None:
        """Count memories that were deleted to make space."""
        self._record(LONG_TERM + "evictions", number)

    def retrieval(self, milliseconds: float, results: int, *, from_cache: bool) -> None:
        """Measure a query of the retrieval service."""
        self._record(RETRIEVAL + "total", 1)
        if from_cache:
            self._record(RETRIEVAL + "cache_hits", 1)
        self._record(RETRIEVAL + "latency_ms", milliseconds)
        self._record(RETRIEVAL + "results", results)

    def augmented(self) -> None:
        """Count memories added to a context window."""
        self._record(RETRIEVAL + "augmentations", 1)

    def policy_ran(
        self,
        milliseconds: float,
        results: int,
        tokens: int,
        *,
        from_cache: bool,
        dedup_ratio: float | None,
    ) -> None:
        """Measure a run of a retrieval policy.

        Args:
            milliseconds: Duration.
            results: Memories in the payload.
            tokens: Tokens of the prompt block.
            from_cache: Whether the payload is an earlier one.
            dedup_ratio: Duplicates ÷ candidates · 100; None without candidates.
        """
        self._record(POLICY + "latency_ms", milliseconds)
        self._record(POLICY + "results_count", results)
        self._record(POLICY + "tokens_used", tokens)
        self._record(POLICY + "cache_hit_rate", 100.0 if from_cache else 0.0)
        if dedup_ratio is not None:
            self._record(POLICY + "dedup_ratio", dedup_ratio)

    def recalled(self, mode: str, milliseconds: float, results: int) -> None:
        """Measure a recall."""
        self._record(RETRIEVER + "Queries", 1, mode=mode)
        self._record(RETRIEVER + "Latency", milliseconds)
        self._record(RETRIEVER + "ResultCount", results)

    def _record(self, name: str, value: float, **attributes: str) -> None:
        instruments = _process.instruments()
        if instruments is None:
            return
        try:
            instruments[name](value, {**self._attributes, **attributes})
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
        for name, unit, description, read in _GAUGES:
            meter.create_observable_gauge(name, [observing(name, read)], unit, description)
        instruments: _Instruments = {
            name: meter.create_counter(name, unit, description).add
            for name, unit, description in _COUNTERS
        }
        for name, unit, description, bounds in _HISTOGRAMS:
            instruments[name] = meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=bounds
            ).record
        return instruments

    def _totals(self, name: str, read: Reading) -> dict[str, int]:
        """Return a reading of each agent, summed over its files, each of them read once."""
        readings: dict[tuple[str, str], int] = {}
        for meter in self._open_meters():
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

    def _open_meters(self) -> list[Meter]:
        found = (meter() for meter in self._meters.valuerefs())  # a copy, made in one step
        return [meter for meter in found if meter is not None]


_process = _Process()
