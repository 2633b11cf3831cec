"""The way of one turn: a ready index, hypotheses, then the pipeline."""

import asyncio
import math
import time
from collections.abc import Awaitable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, TypeVar

from mnemic.errors import DeadlineExceededError
from mnemic.hyde.build import BuildWorker
from mnemic.hyde.hypotheses import generate_hypotheses
from mnemic.hyde.limited import LimitedTasks
from mnemic.hyde.pipeline import Pipeline, Progress, entries_of
from mnemic.hyde.telemetry import Stage
from mnemic.hyde.threads import CallThreads, ThreadedModel
from mnemic.hyde.turn_memory import TurnMemory
from mnemic.licensing import SEARCHING_BY_MEANING, STORING
from mnemic.model.deadline import seconds_left
from mnemic.model.marks import UNMARKED, Marks
from mnemic.observability.events import HypothesesRetrievedEvent
from mnemic.threads.sync_bridge import run_blocking

Value = TypeVar("Value")


class CachedTurn(NamedTuple):
    """The memories of a turn.

    Attributes:
        memories: Best first.
        seq: Number of the store's last change before they were read.
        expires_at: When the first of them expires; None if none does.
        marks: What holds of all of them.
        seconds: How long later calls for the turn get them; a negative number is not at all.
        until: The end of that, in seconds of a `TurnCache`.
    """

    memories: tuple[TurnMemory, ...] = ()
    seq: int = -1
    expires_at: datetime | None = None
    marks: Marks = UNMARKED
    seconds: float = math.inf
    until: float = math.inf

    @classmethod
    def of(cls, memories: Sequence[TurnMemory], seq: int, marks: Marks) -> "CachedTurn":
        """Return the result of memories as they were after a change of the store."""
        times = [
            entry.expires_at
            for each in memories
            for entry in entries_of(each)
            if entry.expires_at is not None
        ]
        return cls(tuple(memories), seq, min(times, default=None), marks)


NO_MEMORIES = CachedTurn()
NOT_CACHED = CachedTurn(seconds=-math.inf)
"""The result of a turn that could not be tried."""


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


class Flow:
    """Runs the stages of turns, each within the deadline of its turn.

    Args:
        repository: The agent's memories.
        config: The configuration.
        model: Writes hypotheses.
        worker: Builds the index.
        pipeline: Embeds hypotheses, searches, and follows links.
        telemetry: Counts failures.
        threads: Has threads for plain functions of callers.
        tasks: Runs coroutines of callers.
    """

    def __init__(
        self,
        model: ThreadedModel,
        pipeline: Pipeline,
        *,
        worker: BuildWorker,
        threads: CallThreads,
        tasks: LimitedTasks,
    ) -> None:
        self._repository = pipeline.repository
        self._config = pipeline.config
        self._telemetry = pipeline.telemetry
        self._model = model
        self._worker = worker
        self._pipeline = pipeline
        self._threads = threads
        self._tasks = tasks
        self._searchable_at: int | None = None  # number of a change of the store

    async def run(self, window: list[str], deadline: float) -> CachedTurn:
        """Return the result of a turn, and publish its end; no failure raises.

        Args:
            window: The lines of the conversation.
            deadline: In seconds of `time.monotonic()`.
        """
        started, progress = time.perf_counter(), Progress()
        failed: Stage | None = None
        try:
            turn = await self._outcome(window, deadline, progress)
            failed = progress.failed_stage
        except Exception as error:  # noqa: BLE001 - the turn gets no memories
            turn, failed = self._failed(error)
        seconds = time.perf_counter() - started
        event = self._telemetry.ended(len(turn.memories), failed, seconds, turn.marks.stale_since)
        if event is not None:
            await self._published(event, deadline)
        return turn

    def refreshed(self, cached: CachedTurn, now: datetime) -> CachedTurn:
        """Return a result with the present state of its memories."""
        seq = self._repository.finder.position().seq
        present = self._pipeline.present(cached.memories, now)
        return CachedTurn.of(present, seq, Marks(stale_since=self._repository.finder.stale_since))

    async def _outcome(self, window: list[str], deadline: float, progress: Progress) -> CachedTurn:
        if not window:
            return NOT_CACHED
        if not await self._stage("ready", self._is_searchable(deadline), deadline):
            return NOT_CACHED
        count = self._config.retrieval_hypothesis_count
        made = self._tasks.result(generate_hypotheses(self._model, window, count), deadline)
        hypotheses = await self._stage("hypotheses", made, deadline)
        if not hypotheses:
            return NO_MEMORIES
        await self._searched(hypotheses, deadline, progress)
        return CachedTurn.of(progress.memories or (), progress.seq, progress.marks)

    async def _stage(self, stage: Stage, work: Awaitable[Value], deadline: float) -> Value:
        """Return the result of a stage.

        Raises:
            _StageFailedError: If it fails, or is not done by the deadline.
        """
        started = time.perf_counter()
        try:
            async with asyncio.timeout(seconds_left(deadline)):
                return await work
        except _StageFailedError:
            raise
        except Exception as error:
            is_late = isinstance(error, TimeoutError | DeadlineExceededError)
            cause = None if is_late and time.monotonic() >= deadline else error
            raise _StageFailedError(stage, cause) from error
        finally:
            self._telemetry.took(stage, time.perf_counter() - started)

    async def _is_searchable(self, deadline: float) -> bool:
        """Wait for the first build; return whether any memory of the scope can be found."""
        if not self._worker.was_triggered:
            self._worker.trigger()
        self._repository.limits.require(STORING, SEARCHING_BY_MEANING)
        await self._wait_until_built(deadline)
        seq = self._repository.finder.position().seq
        if seq == self._searchable_at:  # without another thread, which takes longer
            return True
        has_vectors = partial(self._pipeline.has_vectors, deadline)
        if not await run_blocking(has_vectors, self._repository):
            return False
        self._searchable_at = seq
        return True

    async def _wait_until_built(self, deadline: float) -> None:
        if self._worker.is_ready:
            return
        if not await self._worker.ready(seconds_left(deadline), only_first=True):
            self._worker.trigger()
            raise _StageFailedError("ready", None)

    async def _searched(self, hypotheses: list[str], deadline: float, progress: Progress) -> None:
        """Embed and search in one thread; what is complete at the deadline counts.

        The thread is the engine's own: a hanging embedder keeps it.
        """
        work = partial(self._pipeline.run, hypotheses, deadline, progress)
        try:
            async with asyncio.timeout(seconds_left(deadline)):
                await self._threads.run(work)
        except Exception as error:
            progress.is_left = True
            stage = progress.stage or "embedding"
            is_late = isinstance(error, TimeoutError | DeadlineExceededError)
            cause = None if is_late and time.monotonic() >= deadline else error
            if progress.memories is None:
                raise _StageFailedError(stage, cause) from error
            progress.failed_stage = progress.failed_stage or stage
            self._telemetry.failed(progress.failed_stage, cause)

    def _failed(self, error: Exception) -> tuple[CachedTurn, Stage]:
        stage: Stage = "turn"
        cause: Exception | None = error
        if isinstance(error, _StageFailedError):
            stage, cause = error.stage, error.cause
        self._telemetry.failed(stage, cause)
        if stage == "ready":
            return NOT_CACHED, stage
        backoff = self._config.failure_backoff
        return NO_MEMORIES if backoff is None else CachedTurn(seconds=backoff), stage

    async def _published(self, event: HypothesesRetrievedEvent, deadline: float) -> None:
        """Publish the end of a turn; a listener that hangs is left at the deadline."""
        try:
            await self._tasks.result(self._repository.events.publish(event), deadline)
        except Exception as error:  # noqa: BLE001 - the turn has its result
            self._telemetry.failed("turn", error)
