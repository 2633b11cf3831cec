"""The embedded store: one SQLite file, durable, shared between threads and processes."""

import os
import weakref
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar, overload
from uuid import UUID

import apsw
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import EmbeddingModelMismatchError, InvalidEntryError
from mnemic.licensing import Quota
from mnemic.model import (
    Expression,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    MemoryStatus,
    RowBatch,
    RowFacts,
    Scope,
)
from mnemic.store import statements
from mnemic.store.backup import backup_to
from mnemic.store.connections import Connections, typed_errors
from mnemic.store.records import to_microseconds, to_row
from mnemic.store.url import path_of
from mnemic.store.writer import Writer
from mnemic.waiting import Settled, computed

Result = TypeVar("Result")


class SqliteStore:
    """Keeps memories in one SQLite file; see `Store` for what its methods promise.

    Reads run where they are called, on connections of their own, and never wait for a write. Writes
    run in one thread, grouped; SQLite's write-ahead log is flushed before a write's call returns.
    Methods may be called from any thread and from any event loop.

    Args:
        path: A file, made if there is none (mode 0600), or ":memory:"; or a URL, see `path_of`.
        read_only: Whether nothing of the file may change. Then it must be there, and every write is
            a `ReadOnlyError`. What other processes write is seen.

    Raises:
        StoreFileError: If the path cannot be used or holds something else.
        SchemaVersionError: If a newer mnemic wrote the file.
        StoreCorruptError: If the file is damaged.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        self.path = path_of(path)
        self._connections = Connections(self.path, read_only=read_only)
        self._writer = Writer(self._connections)
        # Runs at `close`, or when the store is collected, or at exit, whichever comes first.
        self._close = weakref.finalize(self, _close, self._writer, self._connections)

    async def add(
        self, agent_id: str, entries: Sequence[MemoryEntry], quota: Quota | None = None
    ) -> RowBatch:
        """Store entries of this agent, all or none, with the embeddings they carry."""
        model = _model_of(entries)
        columns = [(to_row(entry), _vector_bytes(entry.embedding)) for entry in entries]
        seq, rows = await self._write(
            lambda on: statements.add(on, agent_id, columns, model, quota)
        )
        return _batch(seq, rows, entries)

    async def add_embeddings(
        self, agent_id: str, model: str, rows: Sequence[int], vectors: NDArray[np.float32]
    ) -> None:
        """Give rows the vectors they lack; rows that are gone or have one are passed over."""
        blobs = dict(zip(rows, map(_vector_bytes, vectors), strict=True))
        known = model, vectors.shape[1]
        if blobs:
            await self._write(lambda on: statements.add_embeddings(on, agent_id, blobs, known))

    async def get(
        self, scope: Scope, ids: Sequence[UUID], *, include_forgotten: bool = False
    ) -> dict[UUID, MemoryEntry]:
        """Return the entries of these ids that the scope has, without their embeddings."""
        with self._reading() as connection:
            return statements.entries_of_ids(
                connection, scope, ids, include_forgotten=include_forgotten
            )

    async def get_rows(self, scope: Scope, rows: Sequence[int]) -> dict[int, MemoryEntry]:
        """Return the entries of these rows that the scope has, without their embeddings."""
        with self._reading() as connection:
            return statements.entries_of_rows(connection, scope, rows)

    async def matching(
        self, scope: Scope, expression: Expression, page: MemoryFilter
    ) -> list[MemoryEntry]:
        """Return the entries of a scope for which a filter's tree is true, ordered and cut."""
        with self._reading() as connection:
            return statements.entries_matching(connection, scope, expression, page)

    async def forget(self, scope: Scope, entry_id: UUID, now: datetime) -> bool:
        """Mark an entry as forgotten; return False if the scope has none of that id."""
        time = to_microseconds(now)
        return await self._write(lambda on: statements.forget(on, scope, entry_id, time))

    async def restore(self, scope: Scope, entry_id: UUID, oldest: datetime) -> bool:
        """Take a forgotten entry back; return False if there is none forgotten since `oldest`."""
        time = to_microseconds(oldest)
        return await self._write(lambda on: statements.restore(on, scope, entry_id, time))

    async def delete(self, scope: Scope, entry_id: UUID) -> bool:
        """Delete an entry for good; return False if the scope has none of that id."""
        return await self._write(lambda on: statements.delete(on, scope, entry_id))

    async def forget_all(self, scope: Scope, now: datetime) -> int:
        """Mark all entries of a scope as forgotten that are not; return how many."""
        time = to_microseconds(now)
        return await self._write(lambda on: statements.forget_all(on, scope, time))

    async def delete_all(self, scope: Scope) -> int:
        """Delete all entries of a scope for good, forgotten or not; return how many."""
        return await self._write(lambda on: statements.delete_all(on, scope))

    async def purge(self, agent_id: str, oldest: datetime) -> int:
        """Delete for good what was forgotten before `oldest`; return how many entries."""
        time = to_microseconds(oldest)
        return await self._write(lambda on: statements.purge(on, agent_id, time))

    async def update(
        self,
        scope: Scope,
        entry_id: UUID,
        change: Callable[[MemoryEntry], MemoryEntry],
        embedded: tuple[str, NDArray[np.float32]] | None = None,
        quota: Quota | None = None,
    ) -> MemoryEntry | None:
        """Change a living entry; return it as it is then, or None if the scope has none."""
        vector = None
        if embedded is not None:
            model, values = embedded
            vector = (model, values.size), _vector_bytes(values)
        return await self._write(
            lambda on: statements.update(on, scope, entry_id, change, vector, quota=quota)
        )

    async def used_bytes(self, agent_id: str) -> int:
        """Return how many bytes the agent's contents take, forgotten ones included."""
        with self._reading() as connection:
            return statements.used_bytes(connection, agent_id)

    async def stats(self, agent_id: str) -> LongTermMemoryStats:
        """Return what the agent has, as of one moment."""
        with self._reading() as connection, _one_moment(connection):
            return statements.stats(connection, agent_id)

    async def count(self, scope: Scope) -> int:
        """Return how many entries the scope has."""
        with self._reading() as connection:
            return statements.count(connection, scope)

    async def embedding_model(self, agent_id: str) -> tuple[str, int] | None:
        """Return name and dimension of the model of the agent's vectors, or None before any."""
        with self._reading() as connection:
            return statements.embedding_model(connection, agent_id)

    async def contents(self, agent_id: str, rows: Sequence[int]) -> dict[int, str]:
        """Return the texts of those of these rows that are living."""
        with self._reading() as connection:
            return statements.contents(connection, agent_id, rows)

    async def seq(self, agent_id: str) -> int:
        """Return the number of the agent's last change, 0 before any."""
        with self._reading() as connection:
            return statements.seq(connection, agent_id)

    async def rows_since(self, agent_id: str, model: str, dim: int, seq: int | None) -> RowBatch:
        """Return what an index needs to step from change `seq` to now.

        Everything is returned for None, or if the changes since `seq` are no longer kept.
        """
        with self._reading() as connection, _one_moment(connection):
            return statements.rows_since(connection, agent_id, (model, dim), seq)

    async def erase(self) -> bool:
        """Remove what was deleted from the file and its log; return whether nothing is left (C175).

        Somebody who reads at this moment may keep the log from being emptied, and so may a backup
        that is being made. Then it is tried again after later writes, and by whoever closes the
        file last. The change table keeps the ids of deleted entries, and nothing else of them.
        """
        return await computed(self._connections.erase)

    async def backup(self, target: str | os.PathLike[str]) -> None:
        """Copy everything, as of one moment, to a new file of mode 0600; see `backup_to`."""
        path = path_of(target)
        await computed(lambda: backup_to(self._connections, path))

    async def close(self) -> None:
        """Finish the writes that were handed in, then let go of the file. Harmless if repeated."""
        self._close()

    @contextmanager
    def _reading(self) -> Generator[apsw.Connection, None, None]:
        with typed_errors(self.path), self._connections.reading() as connection:
            yield connection

    async def _write(self, job: Callable[[apsw.Connection], Result]) -> Result:
        self._connections.check_writable()
        with typed_errors(self.path):
            return await Settled(self._writer.submit(job))


@contextmanager
def _one_moment(connection: apsw.Connection) -> Generator[None, None, None]:
    """Let several statements read the same state."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:  # a failing disk may have ended it
            connection.execute("COMMIT")


def _close(writer: Writer, connections: Connections) -> None:
    if writer.close():
        connections.close()


def _model_of(entries: Sequence[MemoryEntry]) -> tuple[str, int] | None:
    models = {
        (entry.embedding_model, entry.embedding.size)
        for entry in entries
        if entry.embedding is not None
    }
    if len(models) > 1:
        raise EmbeddingModelMismatchError(f"one call brings vectors of several models: {models}")
    for name, dimensions in models:
        if name is None:
            raise InvalidEntryError("an entry has an embedding without its embedding_model")
        return name, dimensions
    return None


@overload
def _vector_bytes(vector: NDArray[np.float32]) -> bytes: ...
@overload
def _vector_bytes(vector: None) -> None: ...
def _vector_bytes(vector: NDArray[np.float32] | None) -> bytes | None:
    return None if vector is None else vector.astype("<f4").tobytes()


def _batch(seq: int, rows: list[int], entries: Sequence[MemoryEntry]) -> RowBatch:
    living = [
        (row, entry)
        for row, entry in zip(rows, entries, strict=True)
        if entry.forgotten_at is None and entry.status == MemoryStatus.ACTIVE
    ]
    embedded = [(row, entry) for row, entry in living if entry.embedding is not None]
    vectors = [entry.embedding for _, entry in embedded if entry.embedding is not None]
    return RowBatch(
        since=seq - len(rows),
        seq=seq,
        facts=[_facts(row, entry) for row, entry in embedded],
        vectors=np.stack(vectors) if vectors else np.empty((0, 0), dtype=np.float32),
        gone=[],
        unembedded=[row for row, entry in living if entry.embedding is None],
    )


def _facts(row: int, entry: MemoryEntry) -> RowFacts:
    return RowFacts(
        row,
        entry.user_id,
        entry.project_id,
        entry.session_id,
        to_microseconds(entry.created_at),
        entry.id.bytes,
    )
