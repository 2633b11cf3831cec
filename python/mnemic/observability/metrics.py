"""Metrics of mnemic, through the OpenTelemetry API.

OpenTelemetry is never imported here: it is used from the moment when the program itself has
imported `opentelemetry.metrics`. Until then a measurement is one lookup in `sys.modules`.
"""

import os
import sys
import weakref
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from mnemic._core import __version__
from mnemic.model import Scope
from mnemic.observability.table import HISTOGRAMS, METRICS, Row
from mnemic.protocols import Clock
from mnemic.reporting.description import failure
from mnemic.reporting.logs import logger
from mnemic.store.operations import EntryCount, StoredAmount
from mnemic.threads.locks import Lock

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
