"""Embedding of all memories by another model, in batches beside the vectors in use."""

import threading
import time
from contextlib import suppress
from typing import NamedTuple

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbeddingError
from mnemic.model import Scope
from mnemic.protocols import Clock
from mnemic.reporting.logs import logger
from mnemic.reporting.progress import Report
from mnemic.store import Store
from mnemic.store.values import Model

_log = logger(__name__)

EMBEDDED_AT_ONCE = 64
_PAGE = 1024

MAX_ATTEMPTS = 4
"""Calls of the embedder for a text by itself, until it is listed as failed."""

MAX_OUTAGES = 4
"""Consecutive times that the embedder fails on every text, until its error is raised."""

FAILURES_OF_AN_OUTAGE = 3
"""Consecutive failing texts that show that the embedder fails, and not they."""

FIRST_RETRY_SECONDS = 0.2
RETRY_FACTOR = 4.0
MAX_RETRY_SECONDS = 60.0

WORKING_SHARE = 0.5
"""Largest share of the time in which this thread computes, the embedder's part included."""


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


class VectorFilling:
    """Stores the vectors of another model beside those in use, until no memory lacks them.

    What was stored stays: another filling of the same model goes on where this one ended.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        embedder: Of the other model.
        clock: Gives the time.
        stopped: Ends the work.
        report: Gets the number of memories that have their vectors, and of all.
        retries_forever: Whether an unavailable embedder is waited for without end.

    Attributes:
        embedded: Number of memories embedded so far.
        kept: Number of those that had their vectors before.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        embedder: ValidatedEmbedder,
        clock: Clock,
        *,
        stopped: threading.Event,
        report: Report,
        retries_forever: bool = False,
    ) -> None:
        self._store = store
        self._agent_id = agent_id
        self._everyone = Scope(agent_id, all_users=True)
        self._embedder = embedder
        self._now = clock
        self._stopped = stopped
        self._report = report
        self._is_patient = retries_forever
        self._failures: dict[int, _Failure] = {}
        self._failed_rows: list[int] = []
        self._outages = 0
        self._after = 0
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
        missing, wanted = self._store.to_embed(self._agent_id, model)
        self.kept = max(self.kept, wanted - missing - self.embedded)
        self._report(wanted - missing, wanted)
        end = self._tried + missing
        while self._tried < end and (rows := self._next_rows(model)):
            due = [row for row in rows if self._is_due(row)]
            if not due:
                self._wait(min(self._failures[row].at for row in rows) - time.monotonic())
            with suppress(_RetryLaterError):
                while due:
                    some, due = due[:EMBEDDED_AT_ONCE], due[EMBEDDED_AT_ONCE:]
                    self._embed(model, some)
                    self._report(min(wanted, self.kept + self.embedded), wanted)
        while waiting := [row for row in self._failures if not self._is_failed(row)]:
            for row in sorted(waiting, key=lambda row: self._failures[row].at):
                if row in self._failures:  # an outage forgets the failures before it
                    self._retry(model, row)

    def _retry(self, model: Model, row: int) -> None:
        """Try a failed text again once it is due, unless it has its vectors by then, or is gone."""
        self._wait(self._failures[row].at - time.monotonic())
        if self._store.rows_to_embed(self._agent_id, model, row - 1, 1) == [row]:
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
            while page := self._store.rows_to_embed(self._agent_id, model, self._after, _PAGE):
                self._after = page[-1]
                if found := [row for row in page if not self._is_failed(row)]:
                    return found
        return []

    def _is_failed(self, row: int) -> bool:
        return row in self._failures and self._failures[row].is_final

    def _is_due(self, row: int) -> bool:
        return row not in self._failures or self._failures[row].at <= time.monotonic()

    def _embed(self, model: Model, rows: list[int]) -> None:
        """Embed rows together; where the embedder fails, each by itself."""
        if self._stopped.is_set():
            raise StoppedError
        try:
            self._embed_together(model, rows)
        except EmbeddingError as error:
            if len(rows) == 1:
                self._fail(rows[0], error)
                return
        else:
            self._succeed()
            return
        size = max(1, len(rows) // 4)
        for at in range(0, len(rows), size):
            self._embed(model, [row for row in rows[at : at + size] if self._is_due(row)])

    def _embed_together(self, model: Model, rows: list[int]) -> None:
        started, used = time.perf_counter(), time.thread_time()
        entries = self._store.get_rows(self._everyone, rows, now=self._now(), include_deleted=True)
        found = self._embedder.embed_contents([entry.content for entry in entries.values()])
        vectors = dict(zip(entries, found, strict=True))
        stored = self._store.add_shadow_vectors(self._agent_id, model[0], entries, vectors).result()
        self.embedded += stored
        for row in rows:
            self._failures.pop(row, None)
        used = time.thread_time() - used
        self._wait(used / WORKING_SHARE - (time.perf_counter() - started))

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
        if self._outages > MAX_OUTAGES and not self._is_patient:
            raise error
        _log.warning("The re-embedding of agent %s waits: %s", self._agent_id, error.kind)
        self._wait(_pause(self._outages))

    def _wait(self, seconds: float) -> None:
        if seconds > 0 and self._stopped.wait(seconds):
            raise StoppedError


def _pause(attempts: int) -> float:
    """Return the seconds until the next attempt."""
    exponent = min(attempts - 1, 16)
    return min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * RETRY_FACTOR**exponent)
