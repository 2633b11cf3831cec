"""The service behind both interfaces of a HyDE engine."""

import os
import time
from collections.abc import Sequence
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import InvalidArgumentError
from mnemic.hyde.build import CLOSE_SECONDS, BuildWorker
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.flow import GRACE_SECONDS, Flow, HydeStats, HydeTelemetry
from mnemic.hyde.search import TurnSearch
from mnemic.hyde.turn_memory import TurnMemories
from mnemic.llm.adapting import adapted_language_model
from mnemic.model.deadline import seconds_left
from mnemic.observability.table import TURN_KEPT
from mnemic.protocols import Clock
from mnemic.reporting.description import described, must_be
from mnemic.repository import Searchable, Service
from mnemic.threads.call_threads import CallThreads
from mnemic.threads.event_loop_thread import EventLoopThread
from mnemic.threads.sync_bridge import run_blocking, runs_sync
from mnemic.threads.waited_future import started

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder
    from mnemic.llm.adapting import AnyLanguageModel

MAX_WAIT = 3600.0
"""Most seconds that `ready` waits."""


class Closable(Protocol):
    """Has something to close, such as connections."""

    def close(self) -> object:
        """Close it. Repeated calls have no effect."""
        ...


class _ProcessParts(NamedTuple):
    """The parts of one process: a forked child has no threads and no tasks of its parent's.

    Attributes:
        process: Its id.
        worker: Builds the index; None without an embedder.
        flow: Runs turns, and keeps their results; None for a disabled engine.
        loop: The event loop of the plain interface.
    """

    process: int
    worker: BuildWorker | None
    flow: Flow | None
    loop: EventLoopThread


class HydeService(Service):
    """Retrieves the memories of turns, for coroutines of any event loop and for threads.

    Args:
        memory: Only memories of its scope are found; dates in blocks are in its time zone.
        config: The configuration.
        embedder: Embeds hypotheses; None disables.
        llm: Writes them; None disables.
        clock: Gives the time at which kept memories may have expired.
        include_sensitive: Whether sensitive memories are found.

    Attributes:
        owned: What is closed at the end, such as a client of the engine's own.
    """

    def __init__(
        self,
        memory: Searchable,
        config: HydeConfig,
        *,
        embedder: "AnyEmbedder | None",
        llm: "AnyLanguageModel | None",
        clock: Clock,
        include_sensitive: bool,
    ) -> None:
        super().__init__(memory.repository)
        self.config = config
        self.scope, self.time_zone = memory.scope, memory.time_zone
        self._now = clock
        self.owned: list[Closable] = []
        self._threads = CallThreads("hyde-call")
        self.model = None if llm is None else adapted_language_model(llm, run=self._threads.run)
        self.embedder = None if embedder is None else self._validated(embedder)
        if self.is_enabled:
            self.begin(by_meaning=True)
        self._telemetry = HydeTelemetry(self.repository)
        self._include_sensitive = include_sensitive
        self._is_closed = False
        self._in_process = self._started()

    @property
    def is_enabled(self) -> bool:
        """Whether there are both an embedder and a language model."""
        return self.model is not None and self.embedder is not None

    def start(self) -> None:
        """Begin the first build, unless one was begun."""
        worker = self._parts().worker
        if worker is not None and not worker.was_triggered:
            worker.trigger()

    def trigger_rebuild(self) -> None:
        """Begin a build, or let one follow the running one."""
        worker = self._parts().worker
        if worker is not None:
            worker.trigger()

    async def ready(self, seconds: float) -> bool:
        """Wait for the first build that succeeds, at most until those under way have ended."""
        worker = self._parts().worker
        if worker is None:
            return False
        return await worker.ready(seconds)

    async def retrieve(self, turn_id: object, window: object) -> TurnMemories:
        """Return the memories of a turn; no failure raises.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type.
        """
        name, lines = _checked(turn_id, window)
        parts = self._parts()
        flow = parts.flow
        if flow is None or self._is_closed:
            return TurnMemories()
        deadline = time.monotonic() + self.config.timeout
        try:
            turn = flow.cached(name)
            if turn is not None:
                self._telemetry.record(TURN_KEPT)
                if flow.is_outdated(turn):
                    current = partial(flow.current, name, turn)
                    turn = await run_blocking(current, self.repository)
            elif runs_sync():
                seconds = self.config.timeout + 2 * GRACE_SECONDS
                return parts.loop.run(self.retrieve(turn_id, window), seconds)
            else:
                turn = await flow.retrieved(name, lines, deadline)
            stale_since = turn.marks.stale_since or self.repository.freshness.stale_since
            return TurnMemories(turn.memories, stale_since=stale_since)
        except Exception as error:  # noqa: BLE001 - never in the agent's way
            if not self._is_closed:
                self._telemetry.failed("turn", error)
            return TurnMemories()

    def stats(self) -> HydeStats:
        """Return the statistics so far."""
        worker = self._parts().worker
        if worker is None:
            return self._telemetry.stats(0, 0)
        return self._telemetry.stats(worker.builds, worker.failed_builds)

    async def close(self) -> None:
        """Cancel what is under way, and wait for its end for a bounded time.

        A synchronous call leaves tasks of event loops to end by themselves.
        """
        self._is_closed = True
        parts = self._in_process
        if parts.process != os.getpid():
            return
        if parts.flow is not None:
            parts.flow.turns.close()
        if runs_sync():
            self._end(parts)
            return
        if parts.flow is not None:
            await parts.flow.tasks.end(CLOSE_SECONDS)
        closing = CallThreads("hyde-close")
        await closing.run(partial(self._end, parts))
        closing.join(CLOSE_SECONDS)

    def _end(self, parts: _ProcessParts) -> None:
        """Wait for the end of all threads, together for a bounded time."""
        end = time.monotonic() + CLOSE_SECONDS
        if parts.worker is not None:
            parts.worker.close(seconds_left(end))
        parts.loop.close(seconds_left(end))
        wait([started(owned.close) for owned in self.owned], seconds_left(end))
        self._threads.join(seconds_left(end))

    def _parts(self) -> _ProcessParts:
        """Return the parts of this process."""
        parts = self._in_process
        if parts.process != os.getpid():
            self._threads.renew()
            self._telemetry.sums.renew()
            parts = self._in_process = self._started()
        return parts

    def _started(self) -> _ProcessParts:
        repository, embedder = self.repository, self.embedder
        loop = EventLoopThread("hyde")
        if embedder is None:
            return _ProcessParts(os.getpid(), None, None, loop)
        worker = BuildWorker(partial(repository.readiness.build, embedder), repository.agent_id)
        flow = None
        if self.model is not None:
            search = TurnSearch(
                repository,
                self.scope,
                self.config,
                model=embedder.model,
                include_sensitive=self._include_sensitive,
            )
            flow = Flow(
                search, embedder, self.model, worker, self._telemetry, self._threads, self._now
            )
        return _ProcessParts(os.getpid(), worker, flow, loop)

    def _validated(self, given: "AnyEmbedder") -> ValidatedEmbedder:
        """Return the memory's own embedder where that is given, else another one of its model.

        Raises:
            EmbeddingModelMismatchError: If it is of another model.
        """
        readiness = self.repository.readiness
        own = readiness.embedder
        if own is not None and (given is own.embedder or given is own.given):
            return own
        validated = ValidatedEmbedder(given)
        readiness.check_model(validated.model)
        self.owned.append(validated)
        return validated


def _checked(turn_id: object, window: object) -> tuple[str, list[str]]:
    """Return a turn's name, "" for a blank one, and the lines of its window."""
    if not isinstance(turn_id, str | UUID):
        raise must_be("turn_id", "a str or a UUID", turn_id)
    if isinstance(window, str | bytes) or not isinstance(window, Sequence):
        raise must_be("window", "a list of the conversation's lines", window)
    lines: list[Any] = list(window)
    for line in lines:
        if not isinstance(line, str):
            raise InvalidArgumentError(f"window must be a list of str, and holds {described(line)}")
    name = str(turn_id)
    return ("" if name.isspace() else name), lines
