"""The way of one turn: hypotheses, vectors, search, links and versions, within one deadline.

Its log lines and events have never a word of the conversation.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Literal, TypeAlias, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import DeadlineExceededError, EmbeddingError
from mnemic.hyde.build import BuildWorker
from mnemic.hyde.hypotheses import Completes, generate_hypotheses
from mnemic.hyde.search import TurnSearch, TurnSearchOutcome, ranked, together
from mnemic.hyde.turn_cache import NO_MEMORIES, NOT_CACHED, CachedTurn, TurnCache
from mnemic.hyde.turn_memory import TurnMemory
from mnemic.model.deadline import seconds_left
from mnemic.model.marks import UNMARKED, Marks
from mnemic.observability.table import STAGES_FAILED, TURN_ENDED, TURN_STARTED
from mnemic.protocols import Clock
from mnemic.records import Record
from mnemic.reporting.description import failure
from mnemic.repository import Repository, ServiceTelemetry
from mnemic.threads.call_threads import CallThreads, LimitedTasks
from mnemic.threads.sync_bridge import run_blocking

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
        self.latency_ms: dict[str, float] = {}

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
        self.latency_ms["turn"] = seconds * 1000
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
            latency_ms=dict(self.latency_ms),
            builds=builds,
            failed_builds=failed_builds,
        )


Value = TypeVar("Value")

GRACE_SECONDS = 0.025
"""Seconds that a call waits for a flight beyond the deadline, which the flight itself keeps."""

READ_SECONDS, READ_SHARE = 0.01, 0.1
"""A search ends so long before the deadline, or by this share of the turn's time."""

MIN_NORM = 1e-10
"""A vector shorter than this has no direction."""


class Progress:
    """How far the work of a turn has come; read while it goes on.

    Attributes:
        memories: The result of the last complete stage; None before the search is complete.
        seq: Number of the store's last change before the search.
        marks: What holds of the search.
        stage: The stage that is under way; None after the last one.
        failed_stage: The first stage after the search that failed.
        is_left: Whether the turn was not waited for any longer.
    """

    memories: Sequence[TurnMemory] | None = None
    seq = -1
    marks = UNMARKED
    stage: Stage | None = None
    failed_stage: Stage | None = None
    is_left = False


class _StageFailedError(Exception):
    """A stage failed before the search was complete.

    Attributes:
        stage: The stage.
        cause: The error; None where it was not done in time.
    """

    def __init__(self, stage: Stage, cause: Exception | None) -> None:
        super().__init__(stage)
        self.stage: Stage = stage
        self.cause = cause


class Flow(msgspec.Struct, eq=False):
    """Runs the stages of turns, each within the deadline of its turn, and keeps their results.

    Args:
        search: Finds memories, follows links, and reads versions.
        embedder: Embeds hypotheses; of the model of the memories.
        model: Writes hypotheses.
        worker: Builds the index.
        telemetry: Counts failures.
        threads: Has threads for plain functions of callers.
        now: Gives the time at which kept memories may have expired.

    Attributes:
        turns: Keeps the result of one turn.
        tasks: Runs coroutines of callers.
        searchable_at: Number of the last change of the store after which it was searchable.
    """

    search: TurnSearch
    embedder: ValidatedEmbedder
    model: Completes
    worker: BuildWorker
    telemetry: HydeTelemetry
    threads: CallThreads
    now: Clock
    turns: TurnCache = msgspec.field(default_factory=TurnCache)
    tasks: LimitedTasks = msgspec.field(default_factory=LimitedTasks)
    searchable_at: int | None = None

    def cached(self, name: str) -> CachedTurn | None:
        """Return the kept result of a turn; none that was stale once the store can be read."""
        turn = self.turns.cached(name) if name else None
        if (
            turn is None
            or turn.marks.stale_since is None
            or self.search.repository.freshness.stale_since
        ):
            return turn
        self.turns.replace(name, turn, None)
        return None

    def is_outdated(self, turn: CachedTurn) -> bool:
        """Return whether the present state of a kept result is to be read."""
        return self.search.repository.freshness.is_remote or self._is_stale(turn)

    async def retrieved(self, name: str, window: list[str], deadline: float) -> CachedTurn:
        """Return the result of a turn, for all that call for it meanwhile.

        Args:
            name: Name of the turn; a blank one shares nothing.
            window: The lines of the conversation.
            deadline: In seconds of `time.monotonic()`.
        """
        self.telemetry.record(TURN_STARTED)
        if not name:
            return await self._run(window, deadline)
        seconds = seconds_left(deadline) + GRACE_SECONDS
        return await self.turns.shared(name, partial(self._run, window, deadline), seconds)

    def _is_stale(self, turn: CachedTurn) -> bool:
        """Return whether memories of a kept result may be deleted, changed or expired."""
        if not turn.memories:
            return False
        if turn.expires_at is not None and self.now() >= turn.expires_at:
            return True
        return self.search.repository.freshness.latest_position().seq != turn.seq

    def current(self, name: str, turn: CachedTurn) -> CachedTurn:
        """Return a kept result with the present state of its memories, and keep that.

        What is known while the store cannot be read is not kept.
        """
        if not self._is_stale(turn):
            return turn
        freshness, now = self.search.repository.freshness, self.now()
        seq = freshness.position().seq
        present = self.search.present(turn.memories, now)
        fresh = CachedTurn.of(present, seq, Marks(stale_since=freshness.stale_since))
        if fresh.marks.stale_since is None:
            self.turns.replace(name, turn, fresh)
        return fresh

    async def _run(self, window: list[str], deadline: float) -> CachedTurn:
        """Return the result of a turn, and publish its end; no failure raises."""
        started, progress = time.perf_counter(), Progress()
        failed: Stage | None = None
        try:
            turn = await self._outcome(window, deadline, progress)
            failed = progress.failed_stage
        except Exception as error:  # noqa: BLE001 - the turn gets no memories
            turn, failed = self._failed(error)
        seconds = time.perf_counter() - started
        event = self.telemetry.ended(len(turn.memories), failed, seconds, turn.marks.stale_since)
        if event is not None:
            await self._published(event, deadline)
        return turn

    async def _outcome(self, window: list[str], deadline: float, progress: Progress) -> CachedTurn:
        if not window:
            return NOT_CACHED
        if not await self._stage("ready", self._is_searchable(deadline), deadline):
            return NOT_CACHED
        count = self.search.config.retrieval_hypothesis_count
        made = self.tasks.result(generate_hypotheses(self.model, window, count), deadline)
        hypotheses = await self._stage("hypotheses", made, deadline)
        if not hypotheses:
            return NO_MEMORIES
        await self._searched(hypotheses, deadline, progress)
        return CachedTurn.of(progress.memories or (), progress.seq, progress.marks)

    async def _stage(self, stage: Stage, work: Awaitable[Value], deadline: float) -> Value:
        """Return the result of a stage, whose work ends by the deadline.

        Raises:
            _StageFailedError: If it fails, or is not done in time.
        """
        started = time.perf_counter()
        try:
            return await work
        except _StageFailedError:
            raise
        except Exception as error:
            raise _StageFailedError(stage, _cause(error, deadline)) from error
        finally:
            self.telemetry.latency_ms[stage] = 1000 * (time.perf_counter() - started)

    async def _is_searchable(self, deadline: float) -> bool:
        """Wait for the first build; return whether any memory of the scope can be found."""
        worker = self.worker
        if not worker.was_triggered:
            worker.trigger()
        self.search.begin(by_meaning=True)
        if not (worker.is_ready or await worker.ready(seconds_left(deadline), only_first=True)):
            worker.trigger()
            raise _StageFailedError("ready", None)
        seq = self.search.repository.freshness.position().seq
        if seq == self.searchable_at:  # without another thread, which takes longer
            return True
        has_vectors = partial(self.search.has_vectors, deadline)
        async with asyncio.timeout(seconds_left(deadline)):
            if not await run_blocking(has_vectors, self.search.repository):
                return False
        self.searchable_at = seq
        return True

    async def _searched(self, hypotheses: list[str], deadline: float, progress: Progress) -> None:
        """Embed and search in one thread; what is complete at the deadline counts.

        The thread is the engine's own: a hanging embedder keeps it.
        """
        work = partial(self._search_in_stages, hypotheses, deadline, progress)
        try:
            async with asyncio.timeout(seconds_left(deadline)):
                await self.threads.run(work)
        except Exception as error:
            progress.is_left = True
            stage, cause = progress.stage or "embedding", _cause(error, deadline)
            if progress.memories is None:
                raise _StageFailedError(stage, cause) from error
            progress.failed_stage = progress.failed_stage or stage
            self.telemetry.failed(progress.failed_stage, cause)

    def _search_in_stages(self, hypotheses: list[str], deadline: float, progress: Progress) -> None:
        """Embed hypotheses, search, then follow links, then read earlier versions.

        A failure after the search leaves the result of the stage before.

        Args:
            hypotheses: Embedded by one call.
            deadline: In seconds of `time.monotonic()`.
            progress: Gets the result of each stage.
        """
        vectors = self._timed("embedding", progress, partial(self._embedded, hypotheses))
        if progress.is_left:
            return
        # Its deadline leaves time for reading what it found.
        end = deadline - min(READ_SECONDS, READ_SHARE * self.search.config.timeout)
        found = self._timed("search", progress, partial(self.search.found, vectors, end))
        progress.seq, progress.marks = found.seq, found.marks
        progress.memories = ranked(found.candidates)
        if not found.candidates:
            return
        self._then("expansion", progress, lambda: self._expanded(found, deadline))
        if self.search.config.max_versions:
            self._then("lineages", progress, lambda: self._with_versions(progress, deadline))
        progress.stage = None

    def _then(
        self, stage: Stage, progress: Progress, work: Callable[[], Sequence[TurnMemory]]
    ) -> None:
        """Run a stage that only adds to the search."""
        if progress.is_left:
            return
        try:
            progress.memories = self._timed(stage, progress, work)
        except Exception as error:
            if progress.is_left:
                raise
            progress.failed_stage = progress.failed_stage or stage
            is_late = isinstance(error, DeadlineExceededError)
            self.telemetry.failed(stage, None if is_late else error)

    def _timed(self, stage: Stage, progress: Progress, work: Callable[[], Value]) -> Value:
        progress.stage, started = stage, time.perf_counter()
        try:
            return work()
        finally:
            self.telemetry.latency_ms[stage] = 1000 * (time.perf_counter() - started)

    def _embedded(self, hypotheses: list[str]) -> NDArray[np.float32]:
        """Return the vectors with a direction of all hypotheses, float32, shape (m, d)."""
        vectors = np.concatenate(self.embedder.embed_chunked(hypotheses))
        directed: NDArray[np.float32] = vectors[np.linalg.norm(vectors, axis=1) >= MIN_NORM]
        if not len(directed):
            raise EmbeddingError("no hypothesis has a vector with a direction")
        return directed

    def _expanded(self, searched: TurnSearchOutcome, deadline: float) -> list[TurnMemory]:
        config, found = self.search.config, searched.candidates
        if searched.error is not None:
            raise searched.error
        if searched.neighbours is not None:
            return together(found, searched.neighbours)
        if not (config.retrieval_hop_depth and config.max_neighbours):
            return ranked(found)
        return self.search.expanded(found, deadline)

    def _with_versions(self, progress: Progress, deadline: float) -> list[TurnMemory]:
        return self.search.with_versions(progress.memories or (), deadline)

    def _failed(self, error: Exception) -> tuple[CachedTurn, Stage]:
        stage: Stage = "turn"
        cause: Exception | None = error
        if isinstance(error, _StageFailedError):
            stage, cause = error.stage, error.cause
        self.telemetry.failed(stage, cause)
        if stage == "ready":
            return NOT_CACHED, stage
        backoff = self.search.config.failure_backoff
        return NO_MEMORIES if backoff is None else CachedTurn(seconds=backoff), stage

    async def _published(self, event: Record, deadline: float) -> None:
        """Publish the end of a turn; a listener that hangs is left at the deadline."""
        try:
            await self.tasks.result(self.search.repository.events.publish(event), deadline)
        except Exception as error:  # noqa: BLE001 - the turn has its result
            self.telemetry.failed("turn", error)


def _cause(error: Exception, deadline: float) -> Exception | None:
    """Return the error of a stage; None if it was not done in time."""
    is_late = isinstance(error, TimeoutError | DeadlineExceededError)
    return None if is_late and time.monotonic() >= deadline else error
