"""Builds of an engine's index: one worker, coalesced triggers, and a ready event."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import NamedTuple

from mnemic.reporting.description import failure
from mnemic.reporting.logs import logger
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.calls import Call
from mnemic.threads.locks import Event, Lock
from mnemic.threads.loop_threads import threads_of
from mnemic.threads.sync_bridge import runs_sync

_log = logger("mnemic.hyde")

FIRST_DELAY = 0.1
"""Seconds between a failed build and the next one; each further failure doubles them."""

MAX_DELAY = 30.0
"""Most seconds between two builds after failures."""

CLOSE_SECONDS = 2.0
"""Seconds that closing waits for a running build; one that hangs is left behind."""


class _Failures(NamedTuple):
    """Builds that failed in a row, and when the next one may begin by the monotonic clock."""

    number: int = 0
    next_at: float = 0.0


class BuildWorker:
    """Builds in a thread of its own, one build at a time.

    Triggers during a build are one further build after it. The thread ends when no build is due, so
    an engine that is never closed leaves none. Thread-safe.

    Args:
        build: Builds, in the worker's thread; an error leaves the state before.
        agent_id: The agent, for log lines.

    Attributes:
        is_ready: Whether a build has succeeded.
        builds: Number of builds that ended.
        failed_builds: Number of those that failed.
        was_triggered: Whether a build ended, or is under way.
    """

    def __init__(self, build: Callable[[], object], agent_id: str) -> None:
        self._build = build
        self._agent_id = agent_id
        self._lock = Lock()
        self._stop = Event()
        self._running: Future[None] | None = None
        self._call: Call | None = None
        self._thread: threading.Thread | None = None
        self._is_pending = False
        self.is_ready = False
        self._failures = _Failures()
        self.builds = 0
        self.failed_builds = 0
        self.was_triggered = False

    def trigger(self) -> None:
        """Let a build begin, or follow the running one; returns at once."""
        with self._lock:
            if self._stop.is_set():
                return
            if self._running is not None:
                self._is_pending = True
                return
            running = self._running = _started()
            self.was_triggered = True
        thread = thread_of("hyde-build", self._work, running)
        try:
            start_thread(thread)
            self._thread = thread
        except RuntimeError as error:  # no thread to be had
            self._failed(error)
            with self._lock:
                self._is_pending = False
            self._ended(running)

    async def ready(self, seconds: float, *, only_first: bool = False) -> bool:
        """Wait until a build has succeeded, at most until those under way have ended.

        Args:
            seconds: Most seconds to wait.
            only_first: Whether to wait for the first build alone.

        Returns:
            Whether one has succeeded.
        """
        end = time.monotonic() + seconds
        while not self.is_ready and not self._stop.is_set():
            running = self._running
            if running is None or (only_first and self.builds):
                break
            if not await _has_ended(running, max(0.0, end - time.monotonic())):
                break
        return self.is_ready and not self._stop.is_set()

    def stop(self) -> None:
        """Begin no further build, and cancel a coroutine embedder. May be repeated."""
        with self._lock:
            self._stop.set()
            self._is_pending = False
            call = self._call
        if call is not None:
            call.cancel()

    def close(self, seconds: float) -> None:
        """Stop, and wait for a running build for a bounded time."""
        self.stop()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(seconds)
        if thread.is_alive():
            _log.debug("A build for agent %s hangs and is left behind", self._agent_id)

    def _work(self, running: "Future[None] | None") -> None:
        while running is not None:
            if self._failures.number:
                self._stop.wait(max(0.0, self._failures.next_at - time.monotonic()))
            self._build_once()
            running = self._ended(running)

    def _build_once(self) -> None:
        call = Call(self._build)
        with self._lock:
            if self._stop.is_set():
                return
            self._call = call
        try:
            call.run_in_context()
        except BaseException as error:  # noqa: BLE001 - the state before is kept
            self._failed(error)
            return
        finally:
            self._call = None
        self._failures, self.is_ready = _Failures(), True
        self.builds += 1

    def _failed(self, error: BaseException) -> None:
        """Log a failed build: the first as a warning, as long as none has succeeded."""
        if self._stop.is_set():
            return
        is_first = self.builds == 0
        self.builds += 1
        self.failed_builds += 1
        number = self._failures.number
        delay = min(MAX_DELAY, FIRST_DELAY * 2**number)
        self._failures = _Failures(number + 1, time.monotonic() + delay)
        _log.log(
            logging.WARNING if is_first else logging.DEBUG,
            "The index of agent %s could not be built for retrieval by hypotheses: %s; turns get "
            "%s until a later build succeeds",
            self._agent_id,
            failure(error),
            "the memories indexed before" if self.is_ready else "no memories",
        )

    def _ended(self, running: "Future[None]") -> "Future[None] | None":
        """End a build; return the next one if one is due."""
        with self._lock:
            following = _started() if self._is_pending and not self._stop.is_set() else None
            self._is_pending = False
            self._running = following
        running.set_result(None)
        return following


async def _has_ended(running: "Future[None]", seconds: float) -> bool:
    """Wait for a build; return whether it ended in time."""
    if runs_sync():
        return bool(wait([running], seconds).done)
    try:
        async with asyncio.timeout(seconds):
            await threads_of(asyncio.get_running_loop()).wait(running)
    except TimeoutError:
        return False
    return True


def _started() -> "Future[None]":
    """Return a future that a cancelled caller does not cancel."""
    future: Future[None] = Future()
    future.set_running_or_notify_cancel()
    return future
