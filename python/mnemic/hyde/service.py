"""The service behind both interfaces of a HyDE engine."""

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

from mnemic.embed.limited import started
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import InvalidArgumentError
from mnemic.hyde.build import CLOSE_SECONDS, BuildWorker
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.flow import CachedTurn, Flow
from mnemic.hyde.limited import LimitedTasks
from mnemic.hyde.pipeline import Pipeline
from mnemic.hyde.telemetry import HydeStats, HydeTelemetry
from mnemic.hyde.threads import CallThreads, ThreadedModel
from mnemic.hyde.turn_cache import TurnCache
from mnemic.hyde.turn_memory import TurnMemories
from mnemic.licensing import SEARCHING_BY_MEANING, STORING
from mnemic.model import Scope
from mnemic.model.deadline import seconds_left
from mnemic.protocols import Clock
from mnemic.reporting.description import described, must_be
from mnemic.repository import Repository
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.event_loop_thread import EventLoopThread
from mnemic.threads.loop_threads import threads_of
from mnemic.threads.sync_bridge import run_blocking, runs_sync

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder
    from mnemic.llm.base import AnyLanguageModel

MAX_WAIT = 3600.0
"""Most seconds that `ready` waits."""

GRACE_SECONDS = 0.025
"""Seconds that a call waits for a flight beyond the deadline, which the flight itself keeps."""


class Closable(Protocol):
    """Has something to close, such as connections."""

    def close(self) -> object:
        """Close it. Repeated calls have no effect."""
        ...


class _ProcessParts(NamedTuple):
    """The parts of one process: a forked child has no threads and no tasks of its parent's.

    Attributes:
        process: Its id.
        turns: Keeps the result of one turn.
        tasks: Runs coroutines of callers.
        worker: Builds the index; None without an embedder.
        flow: Runs the stages; None for a disabled engine.
        loop: The event loop of the plain interface.
    """

    process: int
    turns: TurnCache
    tasks: LimitedTasks
    worker: BuildWorker | None
    flow: Flow | None
    loop: EventLoopThread


class HydeService:
    """Retrieves the memories of turns, for coroutines of any event loop and for threads.

    Args:
        repository: The agent's memories.
        scope: Only its memories are found.
        config: The configuration.
        embedder: Embeds hypotheses; None disables.
        llm: Writes them; None disables.
        clock: Gives the time at which kept memories may have expired.
        include_sensitive: Whether sensitive memories are found.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        config: HydeConfig,
        *,
        embedder: "AnyEmbedder | None",
        llm: "AnyLanguageModel | None",
        clock: Clock,
        include_sensitive: bool,
    ) -> None:
        self.config = config
        self.scope = scope
        self._repository = repository
        self._now = clock
        self._owned: list[Closable] = []
        self._threads = CallThreads("hyde-call")
        self.model = None if llm is None else ThreadedModel(llm, self._threads)
        self.embedder = None if embedder is None else self._validated(embedder)
        if self.is_enabled:
            repository.limits.require(STORING, SEARCHING_BY_MEANING)
        self._telemetry = HydeTelemetry(repository)
        self._include_sensitive = include_sensitive
        self._is_closed = False
        self._in_process = self._started()

    @property
    def is_enabled(self) -> bool:
        """Whether there are both an embedder and a language model."""
        return self.model is not None and self.embedder is not None

    def own(self, closable: Closable) -> None:
        """Close an object at the end, such as a client of the engine's own."""
        self._owned.append(closable)

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
        return worker.ready_sync(seconds) if runs_sync() else await worker.ready(seconds)

    async def retrieve(self, turn_id: object, window: object) -> TurnMemories:
        """Return the memories of a turn; no failure raises.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type.
        """
        name, lines = _checked(turn_id, window)
        parts = self._parts()
        if parts.flow is None or self._is_closed:
            return TurnMemories()
        deadline = time.monotonic() + self.config.timeout
        try:
            cached = self._cached(parts.turns, name)
            if cached is None and runs_sync():
                seconds = self.config.timeout + 2 * GRACE_SECONDS
                return parts.loop.run(self.retrieve(turn_id, window), seconds)
            if cached is None:
                cached = await self._retrieved(parts.turns, parts.flow, name, lines, deadline)
            else:
                self._telemetry.hit()
                if self._repository.finder.is_remote or self._is_stale(cached):
                    current = partial(self._current, parts.turns, parts.flow, name, cached)
                    cached = await run_blocking(current, self._repository)
            stale_since = cached.marks.stale_since or self._repository.finder.stale_since
            return TurnMemories(cached.memories, stale_since=stale_since)
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
        parts = self._stopped()
        if parts is None:
            return
        if runs_sync():
            self._end(parts)
        else:
            await parts.tasks.end(CLOSE_SECONDS)
            await _in_thread(partial(self._end, parts))

    def _stopped(self) -> _ProcessParts | None:
        """Begin nothing any more; return what runs in this process."""
        self._is_closed = True
        parts = self._in_process
        if parts.process != os.getpid():
            return None
        parts.turns.close()
        return parts

    def _end(self, parts: _ProcessParts) -> None:
        """Wait for the end of all threads, together for a bounded time."""
        end = time.monotonic() + CLOSE_SECONDS
        if parts.worker is not None:
            parts.worker.close(seconds_left(end))
        parts.loop.close(seconds_left(end))
        wait([started(owned.close) for owned in self._owned], seconds_left(end))
        self._threads.join(seconds_left(end))

    def _parts(self) -> _ProcessParts:
        """Return the parts of this process."""
        parts = self._in_process
        if parts.process != os.getpid():
            self._threads.renew()
            self._telemetry.renew()
            parts = self._in_process = self._started()
        return parts

    def _started(self) -> _ProcessParts:
        turns, tasks = TurnCache(), LimitedTasks()
        loop = EventLoopThread("hyde")
        if self.embedder is None:
            return _ProcessParts(os.getpid(), turns, tasks, None, None, loop)
        build = partial(self._repository.readiness.build, self.embedder)
        worker = BuildWorker(build, self._repository.agent_id)
        flow = None
        if self.model is not None:
            pipeline = Pipeline(
                self._repository,
                self.scope,
                self.embedder,
                self.config,
                self._telemetry,
                include_sensitive=self._include_sensitive,
            )
            flow = Flow(self.model, pipeline, worker=worker, threads=self._threads, tasks=tasks)
        return _ProcessParts(os.getpid(), turns, tasks, worker, flow, loop)

    async def _retrieved(
        self,
        turns: TurnCache,
        flow: Flow,
        name: str,
        window: list[str],
        deadline: float,
    ) -> CachedTurn:
        self._telemetry.started()
        if not name:
            return await flow.run(window, deadline)
        seconds = seconds_left(deadline) + GRACE_SECONDS
        return await turns.shared(name, lambda: flow.run(window, deadline), seconds)

    def _cached(self, turns: TurnCache, name: str) -> CachedTurn | None:
        """Return the kept result of a turn; none that was stale once the store can be read."""
        cached = turns.cached(name) if name else None
        if (
            cached is None
            or cached.marks.stale_since is None
            or self._repository.finder.stale_since
        ):
            return cached
        turns.replace(name, cached, None)
        return None

    def _is_stale(self, cached: CachedTurn) -> bool:
        """Return whether memories of a kept result may be deleted, changed or expired."""
        if not cached.memories:
            return False
        if cached.expires_at is not None and self._now() >= cached.expires_at:
            return True
        return self._repository.finder.latest_position().seq != cached.seq

    def _current(self, turns: TurnCache, flow: Flow, name: str, cached: CachedTurn) -> CachedTurn:
        """Return a kept result with the present state of its memories, and keep that.

        What is known while the store cannot be read is not kept.
        """
        if not self._is_stale(cached):
            return cached
        fresh = flow.refreshed(cached, self._now())
        if fresh.marks.stale_since is None:
            turns.replace(name, cached, fresh)
        return fresh

    def _validated(self, given: "AnyEmbedder") -> ValidatedEmbedder:
        """Return the memory's own embedder where that is given, else another one of its model.

        Raises:
            EmbeddingModelMismatchError: If it is of another model.
        """
        readiness = self._repository.readiness
        own = readiness.embedder
        if own is not None and (given is own.embedder or given is own.given):
            return own
        validated = ValidatedEmbedder(given)
        readiness.check_model(validated.model)
        self._owned.append(validated)
        return validated


async def _in_thread(work: Callable[[], None]) -> None:
    """Do blocking work in a thread that has ended afterwards."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    threads = threads_of(loop)

    def run() -> None:
        try:
            work()
        finally:
            threads.arrive(done)

    thread = thread_of("hyde-close", run)
    start_thread(thread)
    await done
    thread.join()


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
