"""HydeEngine: the memories of a turn, found by hypotheses of what they may say."""

import asyncio
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import wait
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from mnemic.description import described
from mnemic.embed.event_loop import EventLoopThread
from mnemic.embed.limited import started
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    EmbeddingError,
    EmbeddingModelMismatchError,
    InvalidArgumentError,
    MnemicError,
)
from mnemic.hyde.build import CLOSE_SECONDS, BuildWorker
from mnemic.hyde.config import HydeConfig
from mnemic.hyde.hypotheses import generate_hypotheses
from mnemic.hyde.limited import LimitedTasks
from mnemic.hyde.models import ThreadedModel
from mnemic.hyde.pipeline import Pipeline, Progress, directed, entries_of
from mnemic.hyde.ranked_memory import RankedMemory
from mnemic.hyde.telemetry import HydeStats, HydeTelemetry, Stage
from mnemic.hyde.threads import CallThreads
from mnemic.hyde.turns import Landing, Turns
from mnemic.licensing import SEARCHING_BY_MEANING, STORING
from mnemic.model import validation
from mnemic.model.deadline import seconds_left
from mnemic.near_names import names_arguments
from mnemic.protocols import Clock
from mnemic.repository import Repository, Searchable, checked_memory
from mnemic.sync_bridge import run_blocking

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder
    from mnemic.hyde.sync_engine import SyncHydeEngine
    from mnemic.llm.base import LanguageModel

Value = TypeVar("Value")

MAX_WAIT = 3600.0
"""Most seconds that `ready` waits."""

GRACE_SECONDS = 0.025
"""Seconds that a call waits for a flight beyond the deadline, which the flight itself keeps."""


class _Result(NamedTuple):
    """The memories of a turn.

    Attributes:
        memories: Best first.
        seq: Number of the store's last change before they were read.
        expires_at: When the first of them expires; None if none does.
    """

    memories: tuple[RankedMemory, ...] = ()
    seq: int = -1
    expires_at: datetime | None = None


_NO_MEMORIES = _Result()
_NOT_KEPT = Landing(_NO_MEMORIES, is_kept=False)


class _StageFailedError(Exception):
    """A stage of a turn failed.

    Attributes:
        stage: The stage.
        cause: The error; None where the index was not ready in time.
    """

    def __init__(self, stage: Stage, cause: Exception | None) -> None:
        super().__init__(stage)
        self.stage: Stage = stage
        self.cause = cause


@names_arguments
class HydeEngine:
    """Finds the memories that belong in an agent's context, once per turn.

    A small language model writes hypotheses: sentences that a relevant memory might contain. They
    are embedded by one call, and the memories nearest to any of them are found, with those that
    links lead to and their earlier versions (Gao et al., "Precise Zero-Shot Dense Retrieval without
    Relevance Labels", 2022). No failure of a stage raises: the turn gets fewer memories or none.

    Coroutine methods may be called from any event loop; `sync` has the same methods as plain calls.
    A turn counts no access of its memories, and sensitive memories are left out, as in
    `Memory.context`.

    Example:
        >>> engine = HydeEngine(memory, memory.embedder, llm)  # doctest: +SKIP
        >>> async with engine:  # doctest: +SKIP
        ...     memories = await engine.retrieve(turn_id, ["user: why is the build red?"])

    Args:
        memory: A `Memory`, an `AsyncMemory`, a `LongTermMemory` or a view of one, whose scope
            limits what is found.
        embedder: Embeds the hypotheses as memories are embedded, by the model of the memories;
            None disables the engine.
        llm: The language model, with `complete(prompt, *, system=None)`, a coroutine function or a
            plain one; None disables the engine.
        config: The configuration. A constructed engine is enabled.
        clock: Gives the time at which kept memories may have expired; the memory's own unless
            given.
        include_sensitive: Whether sensitive memories are found.

    Raises:
        EmbeddingModelMismatchError: If the embedder's model is not the one of the memories.
        InvalidArgumentError: If an argument is of the wrong type.
        LicenseRestrictionError: If the license policy does not allow searching by meaning.
    """

    def __init__(
        self,
        memory: Searchable,
        embedder: "AnyEmbedder | None",
        llm: "LanguageModel | None",
        config: HydeConfig = HydeConfig(),  # noqa: B008 # pyright: ignore[reportCallInDefaultInitializer] - it is immutable
        *,
        clock: Clock | None = None,
        include_sensitive: bool = False,
    ) -> None:
        memory = checked_memory(memory)
        validation.optional_function("clock", clock)
        if not isinstance(config, HydeConfig):
            raise InvalidArgumentError(f"config must be a HydeConfig, got {described(config)}")
        self.config = config
        self._repository: Repository = memory.repository
        self._scope = memory.scope
        self._now = self._repository.now if clock is None else clock
        self._threads = CallThreads("mnemic-hyde-call")
        self._model = None if llm is None else ThreadedModel(llm, self._threads)
        self._embedder = None if embedder is None else _validated(self._repository, embedder)
        if self.is_enabled:
            self._repository.limits.require(STORING, SEARCHING_BY_MEANING)
        self._telemetry = HydeTelemetry(
            self._repository.agent_id, self._repository.events, self._repository.now
        )
        self._pipeline = Pipeline(
            self._repository,
            self._scope,
            config,
            self._telemetry,
            include_sensitive=validation.flag("include_sensitive", include_sensitive),
        )
        self._is_closed = False
        self._door_lock = threading.Lock()
        self._sync: SyncHydeEngine | None = None
        self._maker: weakref.ref[SyncHydeEngine] | None = None
        self._begin_process()

    def _begin_process(self) -> None:
        """Make the state of this process: a forked child has no threads and no tasks of it."""
        self._process = os.getpid()
        self._turns = Turns[_Result]()
        self._tasks = LimitedTasks()
        self._loop = EventLoopThread("hyde")
        self._worker = BuildWorker(self._build, self._repository.agent_id)

    @property
    def sync(self) -> "SyncHydeEngine":
        """The same engine with plain methods; the same object each time."""
        from mnemic.hyde.sync_engine import SyncHydeEngine  # noqa: PLC0415 - each door names the other

        with self._door_lock:
            sync = self._sync if self._maker is None else self._maker()
            if sync is None:
                sync = self._sync = SyncHydeEngine.of(self)
            return sync

    def made_by(self, sync: "SyncHydeEngine") -> None:
        """Take the plain door that made this engine as `sync`; it is held weakly."""
        self._maker = weakref.ref(sync)

    @property
    def is_enabled(self) -> bool:
        """Whether there are both an embedder and a language model."""
        return self._model is not None and self._embedder is not None

    def start(self) -> None:
        """Begin the first build in the background, and return at once.

        Further calls have no effect; a retrieval before the first call makes it. Nothing happens
        without an embedder.
        """
        if not self._worker_here().was_triggered:
            self.trigger_rebuild()

    def trigger_rebuild(self) -> None:
        """Begin a build in the background, and return at once; from any thread.

        It embeds the memories that lack a vector. Triggers during a build are one further build.
        Memories with vectors are found without it.
        """
        if self._embedder is not None and not self._is_closed:
            self._worker_here().trigger()

    async def ready(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - the name of time limits everywhere
        """Wait until the first build has succeeded, or the builds under way have failed.

        Args:
            timeout: Most seconds to wait; None waits up to an hour.

        Returns:
            Whether one has succeeded.
        """
        if self._embedder is None or self._is_closed:
            return False
        return await self._worker_here().ready(MAX_WAIT if timeout is None else timeout)

    def wait_ready(self, timeout: float) -> bool:
        """Do the same in this thread."""
        if self._embedder is None or self._is_closed:
            return False
        return self._worker_here().wait_ready(timeout)

    def retrieve_here(self, turn_id: str | UUID, window: Sequence[str]) -> list[RankedMemory]:
        """Do what `retrieve` does in a thread without an event loop."""
        checked_turn(turn_id, window)
        try:
            kept = self._kept_now(turn_id)
            if kept is not None:
                return kept
            seconds = self.config.timeout + 2 * GRACE_SECONDS
            return self._loop.run(self.retrieve(turn_id, window), seconds)
        except Exception as error:  # noqa: BLE001 - never in the agent's way
            self._telemetry.failed("turn", error)
            return []

    async def retrieve(self, turn_id: str | UUID, window: Sequence[str]) -> list[RankedMemory]:
        """Return the memories of a turn, best first.

        The result of a turn is kept until the next one, so that further calls for it cost nothing.
        Concurrent calls for a turn share one retrieval. A memory that is deleted or expires leaves
        the kept result, and one that is changed is shown as it is then.

        Args:
            turn_id: Names the turn, and all its calls; a new one for each message of the user. With
                a blank one nothing is kept.
            window: The lines of the conversation, such as `build_conversation_window` returns.

        Returns:
            The memories by descending score; empty where there are none, or where a stage failed
            before the search was complete.

        Raises:
            InvalidArgumentError: If an argument is of the wrong type.
        """
        name, lines = checked_turn(turn_id, window)
        if not self.is_enabled or self._is_closed:
            return []
        deadline = time.monotonic() + self.config.timeout
        try:
            kept = self._kept(name)
            if kept is None:
                found = await self._retrieved(name, lines, deadline)
            elif self._is_stale(kept):
                found = await self._blocking(partial(self._refreshed, name, kept), deadline)
            else:
                found = kept
            return list(found.memories)
        except Exception as error:  # noqa: BLE001 - never in the agent's way
            self._telemetry.failed("turn", error)
            return []

    def _kept_now(self, turn_id: str | UUID) -> list[RankedMemory] | None:
        """Return the kept result of a turn in its present state, or None without any."""
        name, _ = checked_turn(turn_id, ())
        if not self.is_enabled or self._is_closed:
            return []
        kept = self._kept(name)
        if kept is not None and self._is_stale(kept):
            kept = self._refreshed(name, kept)
        return None if kept is None else list(kept.memories)

    def stats(self) -> HydeStats:
        """Return the statistics so far."""
        worker = self._worker_here()
        return self._telemetry.stats(worker.builds, worker.failed_builds)

    async def aclose(self) -> None:
        """Cancel what is under way, and wait for its end for a bounded time.

        The memory stays open. Calls that wait, and later ones, return no memories. Repeated calls
        have no effect.
        """
        self._stop()
        await self._threads.run(self.join)
        await self._tasks.end(CLOSE_SECONDS)

    def close(self) -> None:
        """Do the same in this thread, except for tasks of event loops."""
        self._stop()
        self.join()

    def _stop(self) -> None:
        self._is_closed = True
        if self._process == os.getpid():
            self._turns.close()

    def join(self) -> None:
        """Wait for the end of the build, of a coroutine embedder and of the sync door's loop."""
        if self._process != os.getpid():
            return
        self._worker.close()
        embedder = self._embedder
        if embedder is not None and embedder is not self._repository.readiness.embedder:
            wait([started(embedder.close)], CLOSE_SECONDS)
        self._loop.close(CLOSE_SECONDS)

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        model = "no model" if self._model is None else f"model {self._model.model!r}"
        embedder = "no embedder" if self._embedder is None else f"embedder {self._embedder.model!r}"
        return f"{type(self).__name__}({self._scope}, {model}, {embedder})"

    def _worker_here(self) -> BuildWorker:
        if self._process != os.getpid():
            self._begin_process()
        return self._worker

    def _build(self) -> None:
        self._repository.readiness.build()

    def _kept(self, name: str) -> _Result | None:
        """Return the kept result of a turn, or None; it may be stale."""
        self._worker_here()
        kept = self._turns.kept(name) if name else None
        if kept is not None:
            self._telemetry.hit()
        return kept

    def _is_stale(self, kept: _Result) -> bool:
        """Return whether memories of a kept result may be deleted, changed or expired."""
        if not kept.memories:
            return False
        if kept.expires_at is not None and self._now() >= kept.expires_at:
            return True
        return self._repository.finder.position().seq != kept.seq

    def _refreshed(self, name: str, kept: _Result) -> _Result:
        """Return a kept result with the present state of its memories, and keep that."""
        seq = self._repository.finder.position().seq
        memories = self._pipeline.present(kept.memories, self._now())
        fresh = _Result(memories, seq, _first_expiry(memories))
        self._turns.replace(name, kept, fresh)
        return fresh

    async def _retrieved(self, name: str, window: list[str], deadline: float) -> _Result:
        self._telemetry.begun()
        if not name:
            return (await self._flight(window, deadline)).value
        seconds = seconds_left(deadline) + GRACE_SECONDS
        return await self._turns.shared(name, lambda: self._flight(window, deadline), seconds)

    async def _flight(self, window: list[str], deadline: float) -> Landing[_Result]:
        """Run the stages of a turn, and report its end."""
        begun, progress = time.perf_counter(), Progress()
        failed: Stage | None = None
        try:
            landing = await self._staged(window, deadline, progress)
            failed = progress.failed_stage
        except Exception as error:  # noqa: BLE001 - the turn gets no memories
            failed, cause = _failure_of(error)
            self._telemetry.failed(failed, cause)
            landing = _NOT_KEPT if failed == "ready" else self._failed_landing()
        count = len(landing.value.memories)
        ended = self._telemetry.ended(
            count, failed, time.perf_counter() - begun, partial=bool(failed and count)
        )
        await self._told(ended, deadline)
        return landing

    async def _told(self, ended: Coroutine[Any, Any, None], deadline: float) -> None:
        """Let the listeners hear of the end of a turn, as long as there is time."""
        try:
            await self._tasks.result(ended, deadline)
        except Exception as error:  # noqa: BLE001 - the turn has its result
            self._telemetry.failed("turn", error)

    def _failed_landing(self) -> Landing[_Result]:
        return Landing(_NO_MEMORIES, seconds=self.config.failure_backoff)

    async def _staged(
        self, window: list[str], deadline: float, progress: Progress
    ) -> Landing[_Result]:
        if not window:
            return _NOT_KEPT
        if not await self._has_memories(deadline):
            return _NOT_KEPT
        hypotheses = await self._hypotheses(window, deadline)
        if not hypotheses:
            return Landing(_NO_MEMORIES)
        vectors = await self._vectors(hypotheses, deadline)
        await self._found(vectors, deadline, progress)
        memories = tuple(progress.memories or ())
        return Landing(_Result(memories, progress.seq, _first_expiry(memories)))

    async def _has_memories(self, deadline: float) -> bool:
        """Return whether the index is ready and has a memory of the scope with a vector."""
        begun, worker = time.perf_counter(), self._worker_here()
        self.start()
        try:
            if not await worker.ready(seconds_left(deadline), only_first=True):
                worker.trigger()
                raise _StageFailedError("ready", None)
            readiness = self._repository.readiness
            return await self._blocking(
                lambda: readiness.has_vectors(self._scope, deadline), deadline
            )
        except MnemicError as error:
            raise _StageFailedError("ready", error) from error
        finally:
            self._telemetry.took("ready", time.perf_counter() - begun)

    async def _hypotheses(self, window: list[str], deadline: float) -> list[str]:
        begun = time.perf_counter()
        try:
            generated = _generated(self._model, window, self.config.retrieval_hypothesis_count)
            return await self._tasks.result(generated, deadline)
        except Exception as error:
            raise _StageFailedError("hypotheses", error) from error
        finally:
            self._telemetry.took("hypotheses", time.perf_counter() - begun)

    async def _vectors(self, hypotheses: list[str], deadline: float) -> NDArray[np.float32]:
        begun = time.perf_counter()
        try:
            async with asyncio.timeout(seconds_left(deadline)):
                return await self._threads.run(lambda: self._embedded(hypotheses))
        except Exception as error:
            raise _StageFailedError("embedding", error) from error
        finally:
            self._telemetry.took("embedding", time.perf_counter() - begun)

    def _embedded(self, hypotheses: list[str]) -> NDArray[np.float32]:
        """Return the vectors of all hypotheses by one call, shape (m, d)."""
        if self._embedder is None:
            raise EmbeddingError("there is no embedder")
        vectors = directed(np.concatenate(self._embedder.embed_chunked(hypotheses)))
        if not len(vectors):
            raise EmbeddingError("no hypothesis has a vector with a direction")
        return vectors

    async def _found(
        self, vectors: NDArray[np.float32], deadline: float, progress: Progress
    ) -> None:
        """Run the search and the stages after it; what is complete at the deadline counts."""
        try:
            await self._blocking(lambda: self._pipeline.run(vectors, deadline, progress), deadline)
        except Exception as error:
            if progress.memories is None:
                raise _StageFailedError("search", error) from error
            progress.failed_stage = progress.failed_stage or "expansion"

    async def _blocking(self, work: Callable[[], Value], deadline: float) -> Value:
        async with asyncio.timeout(seconds_left(deadline)):
            return await run_blocking(work, self._repository)


async def _generated(model: ThreadedModel | None, window: list[str], count: int) -> list[str]:
    return [] if model is None else await generate_hypotheses(model, window, count)


def checked_turn(turn_id: object, window: object) -> tuple[str, list[str]]:
    """Return a turn's name, "" for a blank one, and the lines of its window.

    Raises:
        InvalidArgumentError: If one of them is of the wrong type.
    """
    if not isinstance(turn_id, str | UUID):
        raise InvalidArgumentError(f"turn_id must be a str or a UUID, got {described(turn_id)}")
    if isinstance(window, str | bytes) or not isinstance(window, Sequence):
        raise InvalidArgumentError(
            f"window must be a list of the conversation's lines, got {described(window)}"
        )
    lines = list(window)
    for line in lines:
        if not isinstance(line, str):
            raise InvalidArgumentError(f"window must be a list of str, and holds {described(line)}")
    name = str(turn_id)
    return ("" if name.isspace() else name), lines


def _validated(repository: Repository, given: "AnyEmbedder") -> ValidatedEmbedder:
    """Return the embedder of hypotheses: the memory's own, or another one of its model."""
    readiness = repository.readiness
    own = readiness.embedder
    if own is not None and (given is own.embedder or given is own.given):
        return own
    validated = ValidatedEmbedder(given)
    if validated.model != readiness.model_name:
        raise EmbeddingModelMismatchError(
            f"the embedder is {validated.model!r}, and the memories' vectors are of "
            f"{readiness.model_name!r}; give the memory's own embedder, or open the memory with "
            "the other one"
        )
    return validated


def _failure_of(error: Exception) -> tuple[Stage, Exception | None]:
    if isinstance(error, _StageFailedError):
        return error.stage, error.cause
    return "turn", error


def _first_expiry(memories: Sequence[RankedMemory]) -> datetime | None:
    times = [
        entry.expires_at
        for each in memories
        for entry in entries_of(each)
        if entry.expires_at is not None
    ]
    return min(times, default=None)
