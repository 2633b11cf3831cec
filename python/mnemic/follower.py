"""Keeps an index in step with its store."""

import logging
import threading
import time
from contextlib import suppress

from mnemic.embed.checked import CheckedEmbedder
from mnemic.errors import EmbeddingError, EmbeddingModelMismatchError, StoreError
from mnemic.index import NativeIndex
from mnemic.model import RowBatch
from mnemic.store import Store
from mnemic.waiting import computed, drive

_log = logging.getLogger("mnemic.long_term")

EMBEDDED_AT_ONCE = 256
RETRY_SECONDS = 30.0
"""How long texts that could not be embedded wait before they are tried again."""


class Follower:
    """Brings what others wrote, and what lacks a vector, into one agent's index.

    Args:
        store: The truth.
        agent_id: Whose entries are followed.
        embedder: Gives entries the vectors they lack.
        can_write: Whether such vectors may be stored.

    Attributes:
        index: What is kept in step.

    Raises:
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StoreError: If the store cannot be read.
    """

    def __init__(
        self, store: Store, agent_id: str, embedder: CheckedEmbedder, *, can_write: bool = True
    ) -> None:
        self.index = NativeIndex(embedder.dimensions)
        self._store = store
        self._agent_id = agent_id
        self._embedder = embedder
        self._can_write = can_write
        self._catching_up = threading.Lock()
        self._unembedded: set[int] = set()
        self._retry_at = 0.0
        self._check_model()
        self.catch_up()

    async def follow(self) -> None:
        """Take in what was just written; if that fails, the next search does it or says why."""
        with suppress(StoreError):
            await computed(self._apply_changes)

    async def take_in(self, batch: RowBatch | None) -> None:
        """Take in a change; read it from the store if it does not follow where the index stands."""
        if batch is None or not self._applied(batch):
            await self.follow()

    def is_behind(self) -> bool:
        """Return whether there is anything to catch up with."""
        return not self._is_current() or self._has_texts_to_embed()

    def catch_up(self) -> None:
        """Bring the index to the store's last change, and embed what lacks a vector."""
        self._apply_changes()
        if self._has_texts_to_embed():
            with self._catching_up:
                self._embed_missing()
            self._apply_changes()

    def _check_model(self) -> None:
        known = drive(self._store.embedding_model(self._agent_id))
        mine = (self._embedder.model, self._embedder.dimensions)
        if known is not None and known != mine:
            raise EmbeddingModelMismatchError(
                f"agent {self._agent_id!r} has vectors of {known[0]!r} with {known[1]} dimensions, "
                f"and the embedder is {mine[0]!r} with {mine[1]}; open the file with the embedder "
                "it was made with, or store the memories in a new file"
            )

    def _applied(self, batch: RowBatch) -> bool:
        if not self.index.apply(batch):
            return False
        self._unembedded.difference_update(batch.gone, [facts.row for facts in batch.facts])
        self._unembedded.update(batch.unembedded)
        return True

    def _apply_changes(self) -> None:
        if self._is_current():
            return
        with self._catching_up:
            while not self._is_current():
                since = self._store.rows_since(
                    self._agent_id,
                    self._embedder.model,
                    self._embedder.dimensions,
                    self.index.seq,
                )
                # Once is enough: what others write from now on is not waited for.
                if self._applied(drive(since)):
                    return

    def _is_current(self) -> bool:
        return drive(self._store.position(self._agent_id)).seq == self.index.seq

    def _has_texts_to_embed(self) -> bool:
        return bool(self._unembedded) and self._can_write and time.monotonic() >= self._retry_at

    def _embed_missing(self) -> None:
        """Embed what was stored while no embedder was at hand, or while it failed (C172)."""
        rows = sorted(self._unembedded)
        for first in range(0, len(rows), EMBEDDED_AT_ONCE):
            some = rows[first : first + EMBEDDED_AT_ONCE]
            contents = drive(self._store.contents(self._agent_id, some))
            try:
                vectors = self._embedder.embed(list(contents.values()))
            except EmbeddingError as error:
                self._retry_at = time.monotonic() + RETRY_SECONDS
                _log.warning(
                    "%d memories of agent %s still lack vectors: %s",
                    len(self._unembedded),
                    self._agent_id,
                    error,
                )
                return
            drive(
                self._store.add_embeddings(self._agent_id, self._embedder.model, contents, vectors)
            )
            self._unembedded.difference_update(some)
