"""Re-embedding: another model's vectors take the place of the agent's own, without a pause."""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple
from uuid import UUID

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    EmbedderRequiredError,
    EmbeddingError,
    EmbeddingModelMismatchError,
    InvalidArgumentError,
    ReadOnlyError,
    StoreClosedError,
    StoreError,
)
from mnemic.model import MemoryEntry, ReembedReport, Scope
from mnemic.model.validation import flag, optional_name
from mnemic.observability.table import EMBEDDED
from mnemic.reporting.logs import logger
from mnemic.reporting.progress import Progress, Report, checked_progress, reporting
from mnemic.repository.find import Finder
from mnemic.repository.parts import Part, Shared
from mnemic.repository.query_vectors import QueryVectors
from mnemic.repository.settings import chosen_embedder
from mnemic.repository.vector_model import VectorModel
from mnemic.store.operations import (
    AddShadowVectors,
    AgentFacts,
    CountToEmbed,
    DropShadowVectors,
    EntriesByRow,
    RowsToEmbed,
    SwitchModel,
)
from mnemic.store.values import Model
from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.locks import Event, Lock
from mnemic.threads.sync_bridge import arrived
from mnemic.threads.waited_future import started

if TYPE_CHECKING:
    from mnemic.embed.base import AnyEmbedder

_log = logger(__name__)
EMBEDDED_AT_ONCE = 256
"""Texts of one call of the embedder: enough for all CPUs, and few enough to stop soon."""

CHARACTERS_AT_ONCE = 100_000
"""Characters of several texts of one call: half a second's work of two CPUs."""

_PAGE = 4096

MAX_ATTEMPTS = 4
"""Calls of the embedder for a text by itself, until it is listed as failed."""

MAX_OUTAGES = 4
"""Consecutive times that the embedder fails on every text, until its error is raised."""

FAILURES_OF_AN_OUTAGE = 3
"""Consecutive failing texts that show that the embedder fails, and not they."""

FIRST_RETRY_SECONDS = 0.2
RETRY_FACTOR = 4.0
MAX_RETRY_SECONDS = 60.0


class StoppedError(Exception):
    """The work was stopped."""


class _RetryLaterError(Exception):
    """The embedder was unavailable, and may be back."""


class _Failure(NamedTuple):
    """A text that the embedder failed on: how often, and its next attempt by the clock."""

    attempts: int
    at: float

    @property
    def is_final(self) -> bool:
        """Whether it is not tried again."""
        return self.attempts >= MAX_ATTEMPTS


class _Job:
    """One re-embedding in a thread of its own.

    Attributes:
        embedder: Of the new model.
        skips_failed: Whether the new model is used without the vectors of failed memories.
        retries_forever: Whether it is tried for ever; nobody else would begin it again.
        result: Its report, or its error.
        stopped: Ends it.
    """

    def __init__(
        self, embedder: ValidatedEmbedder, *, skips_failed: bool, retries_forever: bool
    ) -> None:
        self.embedder = embedder
        self.skips_failed = skips_failed
        self.retries_forever = retries_forever
        self.result: Future[ReembedReport] = Future()
        self.result.set_running_or_notify_cancel()  # whoever waits for it does not cancel it
        self.stopped = Event()
        self.thread: threading.Thread | None = None
        self._listeners: list[Report] = []
        self._last: tuple[int, int | None] | None = None

    def listen(self, report: Report) -> None:
        """Report to one more; what was reported last at once."""
        self._listeners = [*self._listeners, report]
        if self._last is not None:
            report(*self._last)

    def forget(self, report: Report) -> None:
        """Report to one less; end the work if no waiter is left."""
        listeners = list(self._listeners)
        listeners.remove(report)
        self._listeners = listeners
        if not (listeners or self.retries_forever):
            self.stopped.set()

    def report(self, done: int, total: int | None) -> None:
        """Report to all."""
        self._last = done, total
        for listener in list(self._listeners):
            listener(done, total)


class VectorFilling(Part):
    """Stores the vectors of another model beside those in use, until no memory lacks them.

    What was stored stays: another filling of the same model goes on where this one ended.

    Args:
        shared: What it shares with the other parts of the repository.
        job: Has the embedder of the other model; ends the work, and is told of it.

    Attributes:
        embedded: Number of memories embedded so far.
        kept: Number of those that had their vectors before.
    """

    def __init__(self, shared: Shared, job: _Job) -> None:
        super().__init__(shared)
        self._embedder = job.embedder
        self._job = job
        self._failures: dict[int, _Failure] = {}
        self._failed_rows: list[int] = []
        self._outages = 0
        self._after = 0
        self._storing: Future[int] | None = None
        self.embedded = self.kept = 0

    @property
    def failed(self) -> list[int]:
        """The rows that are not tried again, ascending."""
        return sorted(row for row, failure in self._failures.items() if failure.is_final)

    @property
    def _tried(self) -> int:
        return self.embedded + len(self.failed)

    def model(self) -> Model:
        """Return name and dimension of the model; an unknown dimension is learned from a text.

        Raises:
            EmbeddingError: If the embedder fails.
        """
        while True:
            try:
                return self._embedder.model, self._embedder.learned_dimensions()
            except EmbeddingError as error:
                self._wait_out(error)

    def fill(self, model: Model) -> None:
        """Embed as many memories as lacked their vectors at the beginning; failed texts count.

        Where memories are written meanwhile, some may lack them then: to fill until none does would
        not end while a writer is faster. A text that failed is tried until it is embedded, or
        listed as failed.

        Raises:
            EmbeddingError: If the embedder fails on all texts.
            StoppedError: If the work was stopped.
            StoreError: If the store cannot be read or written.
        """
        try:
            self._fill(model)
        finally:
            if self._storing is not None:  # nothing is written after the end
                wait([self._storing])
                self._storing = None

    def _fill(self, model: Model) -> None:
        missing, wanted = self._store.read(CountToEmbed(self._agent_id, model))
        self.kept = max(self.kept, wanted - missing - self.embedded)
        self._job.report(wanted - missing, wanted)
        end = self._tried + missing
        while self._tried < end and (rows := self._next_rows(model)):
            due = [row for row in rows if self._is_due(row)]
            if not due:
                self._wait(min(self._failures[row].at for row in rows) - time.monotonic())
            with suppress(_RetryLaterError):
                while due:
                    some, due = due[:EMBEDDED_AT_ONCE], due[EMBEDDED_AT_ONCE:]
                    self._embed(model, some)
                    self._report(wanted)
            self._finish_storing()
            self._report(wanted)
        while waiting := [row for row in self._failures if not self._is_failed(row)]:
            for row in sorted(waiting, key=lambda row: self._failures[row].at):
                if row in self._failures:  # an outage forgets the failures before it
                    self._retry(model, row)
        self._finish_storing()

    def _report(self, wanted: int) -> None:
        self._job.report(min(wanted, self.kept + self.embedded), wanted)

    def _retry(self, model: Model, row: int) -> None:
        """Try a failed text again once it is due, unless it has its vectors by then, or is gone."""
        self._wait(self._failures[row].at - time.monotonic())
        if self._lacking(model, row - 1, 1) == [row]:
            with suppress(_RetryLaterError):
                self._embed(model, [row])
        else:
            del self._failures[row]

    def _next_rows(self, model: Model) -> list[int]:
        """Return some rows that lack their vectors, without those that are not tried again.

        The search goes on after the rows that were returned last, and at the end from the first.
        """
        for start in dict.fromkeys([self._after, 0]):
            self._after = start
            while page := self._lacking(model, self._after, _PAGE):
                self._after = page[-1]
                if found := [row for row in page if not self._is_failed(row)]:
                    return found
        return []

    def _lacking(self, model: Model, after: int, limit: int) -> list[int]:
        return self._store.read(RowsToEmbed(self._agent_id, model, after, limit))

    def _is_failed(self, row: int) -> bool:
        return row in self._failures and self._failures[row].is_final

    def _is_due(self, row: int) -> bool:
        return row not in self._failures or self._failures[row].at <= time.monotonic()

    def _embed(self, model: Model, rows: list[int]) -> None:
        """Embed rows together; if they are long or the embedder fails, in ever smaller parts."""
        if self._job.stopped.is_set():
            raise StoppedError
        entries = self._store.read(
            EntriesByRow(self._everyone, rows, now=self._now(), include_deleted=True)
        )
        characters = sum(len(entry.content) for entry in entries.values())
        if len(rows) == 1 or characters <= CHARACTERS_AT_ONCE:
            try:
                self._embed_together(model, entries)
            except EmbeddingError as error:
                if len(rows) == 1:
                    self._fail(rows[0], error)
                    return
            else:
                self._succeed()
                for row in rows:
                    self._failures.pop(row, None)
                return
        size = max(1, len(rows) // 4)
        for at in range(0, len(rows), size):
            self._embed(model, [row for row in rows[at : at + size] if self._is_due(row)])

    def _embed_together(self, model: Model, entries: Mapping[int, MemoryEntry]) -> None:
        found = self._embedder.embed_contents([entry.content for entry in entries.values()])
        vectors = dict(zip(entries, found, strict=True))
        self._finish_storing()
        write = AddShadowVectors(self._agent_id, model[0], entries, vectors)
        # Beside the next call of the embedder.
        self._storing = started(lambda: self._store.write(write).result())

    def _finish_storing(self) -> None:
        """Wait for what is stored, and count it; raise its error."""
        storing, self._storing = self._storing, None
        if storing is not None:
            self.embedded += storing.result()

    def _succeed(self) -> None:
        self._failed_rows.clear()
        self._outages = 0

    def _fail(self, row: int, error: EmbeddingError) -> None:
        """Note a failure; where every text fails it is the embedder's, and not theirs."""
        attempts = self._failures[row].attempts + 1 if row in self._failures else 1
        self._failures[row] = _Failure(attempts, time.monotonic() + _pause(attempts))
        self._failed_rows.append(row)
        _log.debug("A memory of agent %s is not embedded: %s", self._agent_id, error.kind)
        if len(self._failed_rows) < FAILURES_OF_AN_OUTAGE:
            return
        try:
            self._embedder.embed([f"is the embedder there, {time.time_ns()}?"])  # in no cache
        except EmbeddingError:
            for failed_row in self._failed_rows:
                del self._failures[failed_row]
            self._failed_rows.clear()
            self._wait_out(error)
            raise _RetryLaterError from None
        self._succeed()

    def _wait_out(self, error: EmbeddingError) -> None:
        """Wait for an unavailable embedder; raise its error once it is given up."""
        self._outages += 1
        if self._outages > MAX_OUTAGES and not self._job.retries_forever:
            raise error
        _log.warning("The re-embedding of agent %s waits: %s", self._agent_id, error.kind)
        self._wait(_pause(self._outages))

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and self._job.stopped.wait(seconds):
            raise StoppedError


def _pause(attempts: int) -> float:
    """Return the seconds until the next attempt."""
    exponent = min(attempts - 1, 16)
    return min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * RETRY_FACTOR**exponent)


STOP_SECONDS = 2.0
"""Maximum seconds to wait for the end of the work; an embedder may hang, and its thread with it."""

LACKING_GROWTH = 8
"""Factor by which writers may be faster than the new embedder, and the change still ends."""


class Reembedding(Part):
    """Embeds one agent's memories again, by another embedder, and makes its vectors their own.

    Args:
        shared: What it shares with the others.
        finder: Embeds its queries by the new embedder then.
        query_vectors: Makes what embeds the queries, for a model.
    """

    def __init__(
        self,
        shared: Shared,
        finder: Finder,
        query_vectors: Callable[[VectorModel], QueryVectors],
    ) -> None:
        super().__init__(shared)
        self._shared = shared
        self._finder = finder
        self._query_vectors = query_vectors
        self._can_write = not shared.settings.read_only
        self._lock = Lock()
        self._job: _Job | None = None

    def begin(self) -> None:
        """Begin in the background what the memory waits for: the vectors of its own embedder."""
        embedder = self._models.embedder
        if embedder is not None:
            self._start(_Job(embedder, skips_failed=True, retries_forever=True))

    async def run(
        self,
        given: "AnyEmbedder | Literal['minilm', 'multilingual'] | None",
        embedding_model: str | None,
        *,
        progress: Progress | None,
        skip_failed: bool,
    ) -> ReembedReport:
        """Embed all memories by an embedder; without one, wait for what runs in the background.

        Raises:
            See `Memory.reembed`.
        """
        optional_name("embedding_model", embedding_model)
        flag("skip_failed", skip_failed)
        checked_progress(progress)
        embedder = None if given is None else chosen_embedder(given, embedding_model)
        self._limits.require_storing()
        if not self._can_write:
            raise ReadOnlyError("the memory was opened read-only, and re-embedding writes")
        with reporting(progress, "reembed") as report:
            job = self._job_of(embedder, report, skip_failed=skip_failed)
            try:
                return await arrived(job.result)
            finally:
                with self._lock:
                    job.forget(report)

    async def drop_vectors(self, model: str | None) -> int:
        """Delete the vectors of another model, or of all others; see `Memory.drop_vectors`."""
        self._limits.require_storing()
        name = optional_name("model", model)
        return await arrived(self._store.write(DropShadowVectors(self._agent_id, name)))

    def _job_of(
        self, embedder: ValidatedEmbedder | None, report: Report, *, skip_failed: bool
    ) -> _Job:
        """Return the running job, or a new one."""
        with self._lock:
            job = self._job
            if job is not None and not (job.result.done() or job.stopped.is_set()):
                if embedder is not None and embedder.model != job.embedder.model:
                    raise InvalidArgumentError(
                        f"the memories are being embedded again by {job.embedder.model!r} already; "
                        "wait for that with reembed(), or close the memory"
                    )
                job.listen(report)
                return job
            chosen = self._models.embedder if embedder is None else embedder
            if chosen is None:
                raise EmbedderRequiredError(
                    "this memory was opened with embedder=None; give reembed an embedder"
                )
            job = _Job(chosen, skips_failed=skip_failed, retries_forever=False)
            job.listen(report)
            self._start(job)
            return job

    def _start(self, job: _Job) -> None:
        job.embedder.calls.on_embedded = partial(self._telemetry.meter.measure, EMBEDDED)
        before = None if self._job is None else self._job.thread
        job.thread = thread_of("reembed", self._work, job, before)
        self._job = job
        start_thread(job.thread)

    def stop(self) -> None:
        """End what runs; what was embedded stays stored."""
        job = self._job
        if job is not None and job.thread is not None:
            job.stopped.set()
            if job.thread is not threading.current_thread():
                job.thread.join(STOP_SECONDS)

    def _work(self, job: _Job, before: threading.Thread | None) -> None:
        if before is not None:
            before.join()  # it was stopped, and may be in its last call
        try:
            job.result.set_result(self._reembedded(job))
        except StoppedError:
            job.result.set_exception(
                StoreClosedError("the memory was closed while it was being embedded again")
            )
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            if job.retries_forever:
                _log.error(
                    "The memories of agent %s are not embedded again: %s", self._agent_id, error
                )
            job.result.set_exception(error)

    def _reembedded(self, job: _Job) -> ReembedReport:
        started = time.perf_counter()
        filling = VectorFilling(self._shared, job)
        previous = self._store.read(AgentFacts(self._agent_id)).model
        model = filling.model()
        self._check_name(previous, model)
        is_complete = self._is_switched(job, filling, model)
        return ReembedReport(
            model=model[0],
            dimensions=model[1],
            previous=None if previous is None else previous[0],
            is_complete=is_complete,
            embedded=filling.embedded,
            kept=filling.kept,
            failed=self._ids(filling.failed),
            seconds=time.perf_counter() - started,
        )

    def _check_name(self, previous: Model | None, model: Model) -> None:
        if previous is not None and previous[0] == model[0] and previous != model:
            raise EmbeddingModelMismatchError(
                f"agent {self._agent_id!r} has vectors of {model[0]!r} with {previous[1]} "
                f"dimensions, and the new embedder's have {model[1]} under the same name; give it "
                "another name: as_embedder(..., model=...)"
            )

    def _is_switched(self, job: _Job, filling: VectorFilling, model: Model) -> bool:
        """Fill and switch, until no memory lacks its vectors; return whether they are in use.

        Each time that memories were written meanwhile, more of them may lack theirs: the next
        search embeds them.
        """
        max_missing = 0
        while self._store.read(AgentFacts(self._agent_id)).model != model:
            self._fill(job, filling, model)
            failed = filling.failed
            if failed and not job.skips_failed:
                return False
            if self._switch(job.embedder, model, failed, max_missing):
                return True
            max_missing = max(1, max_missing) * LACKING_GROWTH
        now = self._models.now
        if (
            now.embedder is None
            or now.name != model[0]
            or self._indexes.active.own.model.vectors is not now
        ):
            self._indexes.set_switching(is_switching=True)
            self._adopt(job.embedder)  # another process has switched, or it failed before
        return True

    def _fill(self, job: _Job, filling: VectorFilling, model: Model) -> None:
        """Fill; in the background a store that is busy or full is waited for."""
        while True:
            try:
                return filling.fill(model)
            except StoreClosedError:
                raise StoppedError from None
            except StoreError as error:
                if not job.retries_forever:
                    raise
                _log.warning("The re-embedding of agent %s waits: %s", self._agent_id, error)
                if job.stopped.wait(MAX_RETRY_SECONDS):
                    raise StoppedError from None

    def _switch(
        self, embedder: ValidatedEmbedder, model: Model, failed: list[int], max_missing: int
    ) -> bool:
        """Make the vectors the agent's own, and use them; return False if some are lacking."""
        self._indexes.set_switching(is_switching=True)
        with self._models.switching:
            try:
                is_switched = self._store.write(
                    SwitchModel(self._agent_id, model, failed, max_missing)
                ).result()
            except BaseException:
                self._indexes.set_switching(is_switching=False)
                raise
            if is_switched:
                self._models.adopt(VectorModel(self._store, self._agent_id, embedder))
        if is_switched:
            self._adopt(embedder)
        else:
            self._indexes.set_switching(is_switching=False)
        return is_switched

    def _adopt(self, embedder: ValidatedEmbedder) -> None:
        """Use vectors that are the agent's own already."""
        fresh = self._models.now
        if fresh.embedder is not embedder:
            fresh = VectorModel(self._store, self._agent_id, embedder)
            self._models.adopt(fresh)
        vectors = self._query_vectors(fresh)

        def take_over() -> None:
            self._finder.vectors = vectors

        self._indexes.adopt(fresh, take_over)

    def _ids(self, rows: list[int]) -> tuple[UUID, ...]:
        everyone = Scope(self._agent_id, all_users=True)
        found = self._store.read(
            EntriesByRow(everyone, rows, now=self._now(), include_deleted=True)
        )
        return tuple(found[row].id for row in rows if row in found)
