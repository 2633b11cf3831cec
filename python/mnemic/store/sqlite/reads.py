"""The reads of entries by id and by row in the SQLite store."""

from collections.abc import Sequence
from contextlib import closing, nullcontext
from datetime import datetime
from uuid import UUID

from mnemic.arrays import Float32Array
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.agent_id import canonical, stored_spelling
from mnemic.model.timestamps import to_microseconds
from mnemic.store.duplicates import single
from mnemic.store.readable_entries import Rows, readable, with_vectors
from mnemic.store.row_codec import RowCodec, sealed_ids, vector_of
from mnemic.store.sqlite.change_log import embedding_model
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    check,
    check_vectors,
    encoded_row,
    entries_of,
)
from mnemic.store.sqlite.damage import DAMAGED, reading_stored
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sealed_rows import VectorOpener
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    IS_ACTIVE,
    IS_PRESENT,
    Columns,
    among,
    fetch,
    fetch_batches,
    integers,
    json_array,
    one_moment,
    visible_in,
    with_id,
)
from mnemic.store.values import EntryRow, StoredEntry

DECODED_AT_ONCE = 128
"""Rows of which the columns are held: those of a thousand would make Python collect garbage."""


class SqliteReads(SqliteFile):
    """Reads entries by id and by row; see `Store`."""

    def get(
        self,
        scope: Scope,
        ids: Sequence[UUID],
        *,
        now: datetime,
        include_deleted: bool = False,
        deadline: float | None = None,
    ) -> dict[UUID, MemoryEntry]:
        """Return the entries of these ids that the scope has, without their embeddings."""
        found = self.located(
            scope, ids, now=now, include_deleted=include_deleted, deadline=deadline
        )
        return {entry_id: entry for entry_id, (_, entry) in found.items()}

    def located(
        self,
        scope: Scope,
        ids: Sequence[UUID],
        *,
        now: datetime,
        include_deleted: bool = False,
        deadline: float | None = None,
    ) -> dict[UUID, EntryRow]:
        """Return what `get` does, and the rows."""
        found, codec, time = {}, self._codec, to_microseconds(now)
        # A single statement is of one moment by itself.
        moment = one_moment if len(ids) > 1 else nullcontext
        with self._reading(deadline) as connection, moment(connection):
            for entry_id in ids:
                where, values = with_id(scope, entry_id)
                if not include_deleted:
                    where, values = f"{where} AND {IS_ACTIVE}", [*values, time]
                where = f"{where} AND {codec.is_visible_sql}"
                sql = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries WHERE {where}"
                columns = single(fetch(connection, sql, values), scope, entry_id)
                if columns is not None:
                    found[entry_id] = columns
            entries = _entries(codec, scope, list(found.values()))
        if any(entry.id != entry_id for entry, entry_id in zip(entries, found, strict=True)):
            raise StoreCorruptError(f"an index leads to another memory; {DAMAGED}")
        return {
            entry_id: EntryRow(columns[0], entry)
            for (entry_id, columns), entry in zip(found.items(), entries, strict=True)
        }

    def get_rows(
        self,
        scope: Scope,
        rows: Sequence[int],
        *,
        now: datetime,
        include_deleted: bool = False,
        deadline: float | None = None,
    ) -> dict[int, MemoryEntry]:
        """Return the entries of these rows that the scope has, without their embeddings."""
        with self._reading(deadline) as connection:
            time = to_microseconds(now)
            return entries_of_rows(
                connection, self._codec, scope, rows, time, include_deleted=include_deleted
            )

    def row_of(self, scope: Scope, entry_id: UUID, *, now: datetime) -> int | None:
        """Return the row of an active entry, or None if the scope has no such entry."""
        where, values = with_id(scope, entry_id)
        where = f"{where} AND {self._codec.is_visible_sql} AND {IS_ACTIVE}"
        sql = f"SELECT row FROM agent_memory_entries WHERE {where}"
        with self._reading() as connection:
            rows = fetch(connection, sql, (*values, to_microseconds(now)))
        found = single(rows, scope, entry_id)
        return None if found is None else int(found[0])

    def stored_after(
        self,
        scope: Scope,
        row: int,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool,
        model: str | None,
        deadline: float | None = None,
    ) -> list[StoredEntry]:
        """Return entries of a scope, whatever their status, in the order they were stored."""
        where, values = visible_in(scope, self._codec)
        if not include_deleted:
            where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(now)]
        sql = (
            f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries "
            f"INDEXED BY agent_memory_entries_by_agent WHERE {where} AND row > ? "
            "ORDER BY row LIMIT ?"
        )
        with self._reading(deadline) as connection, one_moment(connection):
            while found := fetch(connection, sql, (*values, row, limit)):
                stored = _stored(connection, self._codec, scope, found, model)
                if stored:
                    return stored
                row = found[-1][0]  # of a page whose seals are all broken
        return []

    def contents(
        self, agent_id: str, rows: Sequence[int], *, deadline: float | None = None
    ) -> dict[int, str]:
        """Return the contents of those of these rows that are active."""
        sql = (
            f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE agent_id = ? "
            f"AND forgotten_at IS NULL AND status = 0 AND {self._codec.is_visible_sql} AND {AMONG}"
        )
        everyone = Scope(agent_id, all_users=True)
        with self._reading(deadline) as connection:
            found = fetch(connection, sql, (agent_id, json_array(rows)))
            entries = readable_entries(self._codec, everyone, found)
        return {row: entry.content for row, entry in entries.items()}

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored."""
        stored: list[Columns] = []
        with self._reading() as connection:
            if canonical(agent_id) is not None:
                stored = fetch(connection, "SELECT agent_id FROM agent_memory_agents", ())
        return stored_spelling(agent_id, [name for (name,) in stored if isinstance(name, str)])


def readable_entries(codec: RowCodec, scope: Scope, rows: Rows) -> dict[int, MemoryEntry]:
    """Return entries by row, checked as by `_entries`, without those whose seal is broken."""
    return readable(rows, lambda rows: _entries(codec, scope, list(rows)))


def _entries(codec: RowCodec, scope: Scope, rows: list[Columns]) -> list[MemoryEntry]:
    """Return entries, checked to be in the scope; a damaged index may lead to others."""
    entries = entries_of(codec, rows)
    if not all(map(scope.has, entries)):
        raise StoreCorruptError(f"an index leads to a memory outside {scope}; {DAMAGED}")
    return entries


def entries_of_rows(
    connection: GuardedConnection,
    codec: RowCodec,
    scope: Scope,
    rows: Sequence[int],
    now: int,
    *,
    include_deleted: bool = False,
) -> dict[int, MemoryEntry]:
    """Return the entries of these rows in the scope, in any state if requested."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_ACTIVE}", [*values, now]
    is_wanted, wanted = among(rows)
    sql = (
        f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE {where} AND {is_wanted}"
    )
    found: dict[int, MemoryEntry] = {}
    with closing(fetch_batches(connection, sql, (*values, *wanted), DECODED_AT_ONCE)) as batches:
        for batch in batches:
            found.update(readable_entries(codec, scope, batch))
    return found


def _stored(
    connection: GuardedConnection,
    codec: RowCodec,
    scope: Scope,
    found: list[Columns],
    model: str | None,
) -> list[StoredEntry]:
    """Return the entries of rows, with keys and vectors, without those whose seal is broken."""
    entries = readable_entries(codec, scope, found)
    found = [columns for columns in found if columns[0] in entries]
    vectors = {} if model is None else _vectors_of(connection, codec, scope.agent_id, model, found)
    with reading_stored("a memory's key"):
        return [
            with_vectors(
                codec,
                (columns[0], encoded_row(columns)),
                entries[columns[0]],
                vectors.get(columns[0], ()),
                model,
            )
            for columns in found
        ]


def _vectors_of(
    connection: GuardedConnection,
    codec: RowCodec,
    agent_id: str,
    model: str,
    found: list[Columns],
) -> dict[int, tuple[Float32Array, ...]]:
    """Return the checked vectors of rows by row; rows without vectors are missing."""
    sql = (
        f"SELECT row, embedding FROM agent_memory_entries {BY_ROW} "
        "CROSS JOIN agent_memory_embeddings ON entry_row = row "
        f"WHERE agent_id = ? AND {AMONG} AND model = ? ORDER BY row, part"
    )
    rows = json_array([row for row, *_ in found])
    blobs = fetch(connection, sql, (agent_id, rows, model))
    known = embedding_model(connection, agent_id)
    is_all = known is not None and known[0] == model
    sealed = sealed_ids(found)
    plain = [vector for vector in blobs if vector[0] not in sealed]
    of_plain = check([columns for columns in found if columns[0] not in sealed]).vectors
    check_vectors(model, plain, of_plain, is_all=is_all)
    of_sealed = check([columns for columns in found if columns[0] in sealed]).vectors
    opener = VectorOpener(codec, agent_id, model, sealed)
    blobs = [vector for vector in blobs if vector[0] in sealed]
    opened = opener.readable(blobs, of_sealed, 0) if sealed else []
    vectors: dict[int, tuple[Float32Array, ...]] = {}
    with reading_stored("a vector"):
        for row, blob in [*plain, *(vector for vector in opened if vector[1])]:
            vectors[row] = (*vectors.get(row, ()), vector_of(blob))
    return vectors


def used_bytes(connection: GuardedConnection, agent_id: str) -> int:
    """Return the bytes of the agent's contents, deleted entries included."""
    sql = "SELECT used_bytes FROM agent_memory_agents WHERE agent_id = ?"
    found = fetch(connection, sql, (agent_id,))
    return integers(found[0])[0] if found else 0
