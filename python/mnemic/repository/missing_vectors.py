"""Embedding of memories that were stored without an embedder, or while it failed."""

import time
from collections.abc import Callable
from concurrent.futures import wait
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakMethod

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    EmbeddingError,
    EmbeddingModelMismatchError,
    StoreBusyError,
    StoreFullError,
)
from mnemic.model import Scope
from mnemic.reporting.logs import logger
from mnemic.store import Store
from mnemic.store.operations import BEFORE_EXPIRY, AddEmbeddings, EntriesByRow
from mnemic.threads.locks import Lock
from mnemic.threads.waited_future import result_until, started

if TYPE_CHECKING:
    from concurrent.futures import Future

_log = logger(__name__)

EMBEDDED_AT_ONCE = 256
RETRY_SECONDS = 10.0
"""Maximum seconds until a text that could not be embedded is tried again, while the embedder fails.
"""

PATIENCE_SECONDS = 0.5
"""Maximum seconds that a search waits for memories without vectors to be embedded; that goes on in
the background."""

BACKLOG_SECONDS = 1.0
"""Minimum seconds between two looks for memories without vectors after writes."""

MAX_FAILURES = 3
"""Number of consecutive failing texts after which the rest is deferred."""


class _Retry(NamedTuple):
    """A text that could not be embedded, and its next attempt.

    Attributes:
        at: Latest time, by the monotonic clock.
        successes: Number of the embedder's successes at the failure.
        is_blamed: Whether it failed again after other texts succeeded, so that the text itself is
            the cause: further successes do not make it due.
    """

    at: float
    successes: int
    is_blamed: bool


class _Running(NamedTuple):
    """The last embedding in the background, and when it began by the monotonic clock."""

    embedding: "Future[None]"
    began: float


class MissingVectors:
    """Embeds the active memories of an agent that an index holds without a vector.

    Args:
        store: Gets the vectors; the index takes them in with its next changes.
        agent_id: The agent.
        embedder: Embeds them.
        unembedded: Returns the rows without a vector; a method.
        grow: Called before embedding, so that an index without a dimension may take in vectors; a
            method.

    Attributes:
        retries: The texts that could not be embedded, which wait for another attempt, by row.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        embedder: ValidatedEmbedder,
        unembedded: Callable[[], list[int]],
        grow: Callable[[], None],
    ) -> None:
        self._store = store
        self._agent_id = agent_id
        self._embedder = embedder
        # Weak: a cycle would keep the file of a memory that is dropped without being closed.
        self._rows_without_vectors = WeakMethod(unembedded)
        self._grow = WeakMethod(grow)
        self._running: _Running | None = None
        self._begin_lock = Lock()
        self._has_backlog = False
        self._backlog_at = 0.0
        self._embed_lock = Lock()  # a hanging embedder holds no other one
        self.retries: dict[int, _Retry] = {}
        self._is_stopped = False

    def stop(self) -> None:
        """Start no further call of the embedder."""
        self._is_stopped = True

    def _unembedded(self) -> list[int]:
        rows = self._rows_without_vectors()
        return [] if rows is None else rows()

    def due(self, waiting: list[int]) -> list[int]:
        """Return rows without a vector, except those that failed recently."""
        return [row for row in waiting if self._is_due(row)] if self.retries else waiting

    def _is_due(self, row: int) -> bool:
        retry = self.retries.get(row)
        if retry is None or time.monotonic() >= retry.at:
            return True
        return not retry.is_blamed and self._embedder.calls.successes > retry.successes

    def _retry_later(self, row: int) -> None:
        before, successes = self.retries.get(row), self._embedder.calls.successes
        is_blamed = before is not None and (before.is_blamed or successes > before.successes)
        self.retries[row] = _Retry(time.monotonic() + RETRY_SECONDS, successes, is_blamed)

    def note_stored(self, *, is_pending: bool, is_unknown: bool) -> None:
        """Note a write: one without vectors waits, and one with vectors shows an embedder at work.

        So memories that wait are embedded at once after the embedder is back, in the background.

        Args:
            is_pending: Whether it lacks vectors.
            is_unknown: Whether the index lacks the dimension, and so does not hold which wait.
        """
        if is_pending:
            self._has_backlog = True
        elif self._has_backlog and time.monotonic() >= self._backlog_at:
            self._backlog_at = time.monotonic() + BACKLOG_SECONDS
            waiting = self._unembedded()
            self._has_backlog = is_unknown or bool(self.retries or waiting)
            if is_unknown or self.due(waiting):
                self._begin()

    def embed_until(self, deadline: float | None, max_seconds: float | None) -> None:
        """Embed entries without a vector; past the deadline another thread goes on with it.

        So a hanging embedder is not waited for, a slow one gets on in spite of short deadlines, and
        a long backlog holds up no search.

        Args:
            deadline: In seconds of `time.monotonic()`; None for none.
            max_seconds: Maximum seconds that it takes here; None for no maximum.
        """
        if max_seconds is None:
            self._embed_in_turn()
            return
        embedding, began = self._begin()
        wait_until = began + max_seconds
        if deadline is not None and deadline <= wait_until:
            result_until(embedding, deadline)
        elif wait([embedding], max(0.0, wait_until - time.monotonic())).done:
            embedding.result()

    def _begin(self) -> _Running:
        """Embed in the background, unless that goes on already."""
        with self._begin_lock:
            running = self._running
            if running is None or running.embedding.done():
                began = time.monotonic()
                running = self._running = _Running(started(self._embed_in_turn), began)
            return running

    def _embed_in_turn(self) -> None:
        with self._embed_lock:
            grow = self._grow()
            if grow is not None:
                grow()
            self._embed_all()

    def _embed_all(self) -> None:
        """Embed entries stored without an embedder, or while it failed.

        Texts that fail together are tried apart, so that one does not block the others; if several
        fail in a row, the embedder is broken, and all wait for the next search.
        """
        waiting, failures = self.due(self._unembedded()), 0
        size = EMBEDDED_AT_ONCE
        while waiting and failures < MAX_FAILURES and not self._is_stopped:
            some, waiting = waiting[:size], waiting[size:]
            try:
                self._embed_rows(some)
                size, failures = min(EMBEDDED_AT_ONCE, 4 * size), 0
            except EmbeddingError as error:
                if len(some) > 1:
                    waiting, size = some + waiting, max(1, len(some) // 4)
                    continue
                failures += 1
                self._retry_later(some[0])
                kind = error.kind
                _log.warning("A memory of agent %s still lacks a vector: %s", self._agent_id, kind)
            except EmbeddingModelMismatchError:  # a re-embedding has changed the model
                return
            except (StoreBusyError, StoreFullError) as error:  # no reason to fail the search
                retry = _Retry(
                    time.monotonic() + RETRY_SECONDS, self._embedder.calls.successes, is_blamed=True
                )
                self.retries.update(dict.fromkeys(some + waiting, retry))
                _log.warning("Vectors of agent %s cannot be stored: %s", self._agent_id, str(error))
                return

    def _embed_rows(self, rows: list[int]) -> None:
        everyone = Scope(self._agent_id, all_users=True)
        entries = self._store.read(EntriesByRow(everyone, rows, BEFORE_EXPIRY))
        contents = {row: entry.content for row, entry in entries.items()}
        vectors = self._embedder.embed_contents(list(contents.values()))
        new = AddEmbeddings(self._agent_id, self._embedder.model, contents, vectors)
        self._store.write(new).result()
        for row in rows:
            self.retries.pop(row, None)
