"""Keeps an index in step with its store."""

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    EmbeddingError,
    EmbeddingModelMismatchError,
    MnemicError,
    StoreBusyError,
    StoreError,
    StoreFullError,
)
from mnemic.index import NativeIndex
from mnemic.model import Record, RowBatch, State
from mnemic.repository.access_buffer import AccessBuffer
from mnemic.store import LogPosition, Store
from mnemic.store.base import BatchSink
from mnemic.sync_bridge import run_blocking, run_sync

_log = logging.getLogger(__name__)

EMBEDDED_AT_ONCE = 256
RETRY_SECONDS = 10.0
"""How long a text that could not be embedded waits at most, while the embedder keeps failing."""

MAX_FAILURES = 3
"""How many texts in a row may fail before the rest is left for later."""


class _StoppedError(Exception):
    """Work in the background is no longer wanted."""


class _StoppableSink:
    """Hands on what is read as long as it is wanted.

    Args:
        taker: Who takes it.
        check: Raises when it is not.
    """

    def __init__(self, sink: BatchSink, check: Callable[[], None]) -> None:
        self._taker = sink
        self._check = check

    def add_records(self, records: list[Record]) -> None:
        """Hand on records."""
        self._check()
        self._taker.add_records(records)

    def add_vectors(self, rows: NDArray[np.int64], vectors: NDArray[np.float32]) -> None:
        """Hand on vectors."""
        self._check()
        self._taker.add_vectors(rows, vectors)


class _Retry(NamedTuple):
    """When a text that could not be embedded is tried again.

    Attributes:
        at: At the latest, by the monotonic clock.
        successes: What the embedder had given when it failed.
        is_blamed: Whether it failed once more after the embedder had answered others, so that the
            text is at fault: no further success of the embedder makes it due.
    """

    at: float
    successes: int
    is_blamed: bool


class IndexSync:
    """Brings what others wrote, and what lacks a vector, into one agent's index.

    Args:
        store: The truth.
        agent_id: Whose entries are followed.
        embedder: Gives entries the vectors they lack; None follows without vectors.
        can_write: Whether such vectors may be stored.
        state: Which entries; those that are not living lack what they lack.

    Attributes:
        index: What is kept in step.

    Raises:
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StoreError: If the store cannot be read.
    """

    def __init__(
        self,
        store: Store,
        agent_id: str,
        embedder: ValidatedEmbedder | None,
        *,
        can_write: bool = True,
        state: State = State.ACTIVE,
    ) -> None:
        self._model = None if embedder is None else (embedder.model, embedder.dimensions)
        self.index = NativeIndex(None if embedder is None else embedder.dimensions)
        self._store = store
        self._agent_id = agent_id
        self._embedder = embedder
        self._state = state
        self._can_write = can_write
        self._embeds = can_write and state is State.ACTIVE
        self._catching_up = threading.Lock()
        self._rebuilding: threading.Thread | None = None
        self._rebuild_at = 0.0
        self._is_stopped = False
        self._accesses = 0  # as often written down as the index knows of, at least
        self._buffer = AccessBuffer()
        self._access_lock = threading.Lock()
        self._retries: dict[int, _Retry] = {}
        self._check_model()
        if embedder is not None:  # otherwise memories may never be searched
            self.catch_up()

    def record_accesses(self, rows: Sequence[int], now: int) -> None:
        """Note accesses before they are handed to the store: ranking by them begins at once.

        Args:
            rows: Those of memories of any state.
            now: Microseconds since 1970 in UTC.
        """
        if self.index.seq is not None:  # otherwise they are loaded with all the rest
            self._buffer.add(rows, now)

    def last_accesses(self, rows: Sequence[int]) -> list[int | None]:
        """Return when the index knows rows to have been read last, what was noted included."""
        if self.index.seq is None:
            return [None] * len(rows)
        self._push_accesses()
        known = self.index.accesses(rows)
        return [None if access is None else access[0] for access in known]

    async def refresh(self) -> None:
        """Take in what was just written; if that fails, the next search does it or says why."""
        if self.index.seq is None:
            return
        with suppress(StoreError, MemoryError):
            await run_blocking(self._apply_changes)

    async def apply(self, batch: RowBatch | None) -> None:
        """Take in a change; read it from the store if it does not follow where the index stands."""
        if batch is None or not self.index.apply(batch):
            await self.refresh()

    def catch_up(self, *, with_accesses: bool = False) -> LogPosition:
        """Bring the index to the store's last change, and embed what lacks a vector.

        Args:
            with_accesses: Whether it is to know of accesses too, which are no changes.

        Returns:
            Where the store stood before.
        """
        position = run_sync(self._store.position(self._agent_id))
        if position.seq != self.index.seq:
            self._apply_changes()
        if self._embedder is not None and self._rows_to_embed():
            with self._catching_up:
                self._embed_missing(self._embedder)
            self._apply_changes()
        if with_accesses:  # after the changes, which may bring rows whose accesses are not known
            self._catch_up_with_accesses(position)
        if self.index.needs_rebuild:
            self._start_rebuild()
        return position

    def stop(self) -> None:
        """End what goes on in the background; nothing begins there again."""
        self._is_stopped = True
        with self._catching_up:
            renewing = self._rebuilding
        if renewing is not None:
            renewing.join()

    def _start_rebuild(self) -> None:
        """Make the index anew beside the searches, unless that is being done."""
        with self._catching_up:
            is_due = time.monotonic() >= self._rebuild_at
            if self._rebuilding is None and is_due and not self._is_stopped:
                self._rebuilding = threading.Thread(
                    target=self._rebuild, name="mnemic-rebuild", daemon=True
                )
                self._rebuilding.start()

    def _rebuild(self) -> None:
        try:
            self._build()
        except _StoppedError:
            pass
        except MnemicError as error:
            _log.warning(
                "The index of agent %s cannot be made anew: %s", self._agent_id, str(error)
            )
        finally:
            self._rebuild_at = time.monotonic() + RETRY_SECONDS
            self._rebuilding = None

    def _build(self) -> None:
        fresh = NativeIndex(None if self._model is None else self._model[1])
        accesses = run_sync(self._store.position(self._agent_id)).accesses
        with fresh.loader() as loader:
            sink = _StoppableSink(loader, self._check_not_stopped)
            reading = self._rows_since(None, sink)
            fresh.apply(run_sync(reading), loader)
        while not self._swap(fresh, accesses):
            self._check_not_stopped()
            reading = self._rows_since(fresh.seq)
            fresh.apply(run_sync(reading))

    def _swap(self, fresh: NativeIndex, accesses: int) -> bool:
        with self._catching_up, self._access_lock:
            is_replaced = self.index.replace_with(fresh)
            if is_replaced:  # what was accessed while it was read is read again
                self._accesses = min(self._accesses, accesses)
                self._buffer.drop()
            return is_replaced

    def _check_not_stopped(self) -> None:
        if self._is_stopped:
            raise _StoppedError

    def _catch_up_with_accesses(self, position: LogPosition) -> None:
        if self._buffer.were_dropped():
            self._write_accesses()
            position = run_sync(self._store.position(self._agent_id))
        self._push_accesses()
        if position.accesses != self._accesses:
            self._pull_accesses()

    def _push_accesses(self) -> None:
        """Tell the index of what was noted, so that it need not be on disk first."""
        with self._access_lock:  # whoever comes meanwhile waits for those that were taken
            rows = self._buffer.take()
            if rows:
                self.index.add_accesses(
                    [(row, last, number) for row, (number, last) in rows.items()]
                )

    def _write_accesses(self) -> None:
        """Write down what waits; where that must wait, the index is a little behind."""
        if self._can_write:
            with suppress(StoreError):  # what cannot be read either will say so itself
                run_sync(self._store.write_accesses())

    def _pull_accesses(self) -> None:
        with self._catching_up:
            seq = self.index.seq
            accessed = run_sync(self._store.accesses_since(self._agent_id, self._accesses))
            self._push_accesses()  # what was read may know of them, and they count once
            self.index.raise_accesses(accessed.rows)
            # What the index does not have yet will come as it was stored: all is read again then.
            if seq is not None and seq >= accessed.position.seq:
                self._accesses = accessed.position.accesses

    def _check_model(self) -> None:
        known = run_sync(self._store.embedding_model(self._agent_id))
        if None not in (known, self._model) and known != self._model:
            found, mine = known or ("", 0), self._model or ("", 0)
            raise EmbeddingModelMismatchError(
                f"agent {self._agent_id!r} has vectors of {found[0]!r} with {found[1]} dimensions, "
                f"and the embedder is {mine[0]!r} with {mine[1]}; open the file with the embedder "
                "it was made with, or store the memories in a new file"
            )

    def _apply_changes(self) -> None:
        if self._is_current():
            return
        with self._catching_up:
            while not self._is_current():
                # Once is enough: what others write from now on is not waited for.
                if self._read_since(self.index.seq):
                    return

    def _read_since(self, seq: int | None) -> bool:
        if seq is None:  # what is loaded knows of at least so many
            self._accesses = run_sync(self._store.position(self._agent_id)).accesses
        with self.index.loader() as loader:
            batch = run_sync(self._rows_since(seq, loader))
            self._push_accesses()  # as above
            if batch.since is not None and self._restores_accessed_rows(batch):
                self._buffer.drop()
            is_applied = self.index.apply(batch, loader)
        if batch.since is None:
            self._buffer.drop()
        return is_applied

    def _restores_accessed_rows(self, batch: RowBatch) -> bool:
        """Return whether rows come, or come back, whose accesses are not on disk yet."""
        rows = [record[0] for record in batch.records]
        known = self.index.accesses(rows)
        new = [row for row, access in zip(rows, known, strict=True) if access is None]
        return bool(new) and self._store.has_pending_accesses(self._agent_id, new)

    def _rows_since(
        self, seq: int | None, sink: BatchSink | None = None
    ) -> Coroutine[None, None, RowBatch]:
        return self._store.rows_since(self._agent_id, self._model, seq, sink, state=self._state)

    def _is_current(self) -> bool:
        return run_sync(self._store.position(self._agent_id)).seq == self.index.seq

    def _rows_to_embed(self) -> list[int]:
        """Return the rows that lack a vector, without those that could not be embedded lately."""
        waiting = self.index.unembedded() if self._embeds else []
        if not waiting:
            return []
        return [row for row in waiting if self._is_due(row)] if self._retries else waiting

    def _is_due(self, row: int) -> bool:
        retry = self._retries.get(row)
        if retry is None or time.monotonic() >= retry.at:
            return True
        return not retry.is_blamed and self._successes > retry.successes

    @property
    def has_retries(self) -> bool:
        """Whether texts that could not be embedded wait for the embedder to answer again."""
        return bool(self._retries)

    @property
    def _successes(self) -> int:
        return 0 if self._embedder is None else self._embedder.successes

    def _retry_later(self, row: int) -> None:
        before, successes = self._retries.get(row), self._successes
        is_blamed = before is not None and (before.is_blamed or successes > before.successes)
        self._retries[row] = _Retry(time.monotonic() + RETRY_SECONDS, successes, is_blamed)

    def _embed_missing(self, embedder: ValidatedEmbedder) -> None:
        """Embed what was stored while no embedder was at hand, or while it failed.

        Texts that fail together are tried apart, so that one does not keep the others out; where
        several fail in a row, the embedder is out of order, and all wait for the next search.
        """
        waiting, failures = self._rows_to_embed(), 0
        size = EMBEDDED_AT_ONCE
        while waiting and failures < MAX_FAILURES:
            some, waiting = waiting[:size], waiting[size:]
            try:
                self._embed_rows(embedder, some)
                size, failures = min(EMBEDDED_AT_ONCE, 4 * size), 0
            except EmbeddingError as error:
                if len(some) > 1:
                    waiting, size = some + waiting, max(1, len(some) // 4)
                    continue
                failures += 1
                self._retry_later(some[0])
                kind = error.kind
                _log.warning("A memory of agent %s still lacks a vector: %s", self._agent_id, kind)
            except (StoreBusyError, StoreFullError) as error:  # no reason to fail the search
                retry = _Retry(time.monotonic() + RETRY_SECONDS, self._successes, is_blamed=True)
                self._retries.update(dict.fromkeys(some + waiting, retry))
                _log.warning("Vectors of agent %s cannot be stored: %s", self._agent_id, str(error))
                return

    def _embed_rows(self, embedder: ValidatedEmbedder, rows: list[int]) -> None:
        contents = run_sync(self._store.contents(self._agent_id, rows))
        vectors = embedder.embed_chunked(list(contents.values()))
        run_sync(self._store.add_embeddings(self._agent_id, embedder.model, contents, vectors))
        for row in rows:
            self._retries.pop(row, None)
