"""The reads of entries by id and by row, and of their vectors, in the stores in SQL."""

import sys
from abc import ABC
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from datetime import datetime
from operator import itemgetter
from uuid import UUID

from mnemic.arrays import Float32Array, np
from mnemic.errors import SealBrokenError, StoreCorruptError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.agent_id import canonical, stored_spelling
from mnemic.model.timestamps import to_microseconds
from mnemic.store.duplicates import single
from mnemic.store.row_codec import RowCodec, encoded_row, key_of, uuid_of, whole
from mnemic.store.sealing_codec import log_broken
from mnemic.store.sql.conditions import (
    ENTRIES,
    HAS_ACTIVE_STATUS,
    IS_ACTIVE,
    IS_PRESENT,
    visible,
    visible_in,
    with_id,
    with_ids,
)
from mnemic.store.sql.opened import OpenedSql
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.values import EntryRow, EntryVectors, OwnedId, StoredEntry

_number = itemgetter(0)


class SqlReads(OpenedSql, ABC):
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
        dialect, codec = self._dialect, self._codec
        where, values = with_ids(dialect, scope, ids)
        where = f"{where} AND {visible(codec)}"
        if not include_deleted:
            where, values = f"{where} AND {IS_ACTIVE}", [*values, to_microseconds(now)]
        sql = f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_index('id')} WHERE {where}"

        def work(on: SqlSession) -> list[EntryRow]:
            found = on.fetch(sql, values)
            return list(map(EntryRow, map(_number, found), dialect.entries(codec, found, scope)))

        by_id: dict[UUID, list[EntryRow]] = {entry_id: [] for entry_id in ids}
        for one in self._read(scope.agent_id, work, deadline=deadline):
            others = by_id.get(one.entry.id)
            if others is None or one in others:
                raise StoreCorruptError(f"an index leads to another memory; {dialect.damaged}")
            others.append(one)
        located: dict[UUID, EntryRow] = {}
        for entry_id, found in by_id.items():
            only = single(found, scope, entry_id)
            if only is not None:
                located[entry_id] = only
        return located

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
        time = to_microseconds(now)
        return self._read(
            scope.agent_id,
            lambda on: entries_of_rows(
                on, self._codec, scope, rows, time, include_deleted=include_deleted
            ),
            deadline=deadline,
        )

    def row_of(self, scope: Scope, entry_id: UUID, *, now: datetime) -> int | None:
        """Return the row of an active entry, or None if the scope has no such entry."""
        where, values = with_id(self._dialect, scope, entry_id)
        sql = f"SELECT row FROM {ENTRIES} WHERE {where} AND {visible(self._codec)} AND {IS_ACTIVE}"
        bound = (*values, to_microseconds(now))
        rows = self._read(scope.agent_id, lambda on: on.fetch(sql, bound))
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
            f"SELECT {self._dialect.keyed_row} FROM {ENTRIES} {self._dialect.by_index('agent')} "
            f"WHERE {where} AND row > ? ORDER BY row LIMIT ?"
        )

        def work(on: SqlSession) -> list[StoredEntry]:
            after = row
            while found := on.fetch(sql, (*values, after, min(limit, sys.maxsize))):
                stored = _stored(on, self._codec, scope, found, model)
                if stored:
                    return stored
                after = found[-1][0]  # of a page whose seals are all broken
            return []

        return self._read(scope.agent_id, work, deadline=deadline, one_moment=True)

    def contents(
        self, agent_id: str, rows: Sequence[int], *, deadline: float | None = None
    ) -> dict[int, str]:
        """Return the contents of those of these rows that are active."""
        dialect, codec, everyone = self._dialect, self._codec, Scope(agent_id, all_users=True)
        sql = (
            f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} WHERE agent_id = ? "
            f"AND {HAS_ACTIVE_STATUS} AND {visible(codec)} AND {dialect.among()}"
        )
        bound = (agent_id, [int(row) for row in rows])
        entries = self._read(
            agent_id,
            lambda on: readable_entries(on, codec, everyone, on.fetch(sql, bound)),
            deadline=deadline,
        )
        return {row: entry.content for row, entry in entries.items()}

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored."""
        sql = "SELECT agent_id FROM mnemic.agent_memory_agents"
        # Also read where nothing is looked up, so that a closed store says so.
        stored = self._read(
            None, lambda on: on.fetch(sql) if canonical(agent_id) is not None else []
        )
        return stored_spelling(agent_id, [name for (name,) in stored if isinstance(name, str)])

    def vectors(self, agent_id: str, row: int, model: str) -> Float32Array:
        """Return the vectors of a row's chunks, shape (chunks, dimensions); (0, 0) for none."""
        found = self._read(
            agent_id, lambda on: on.dialect.vectors(on, self._codec, agent_id, [row], model)
        )
        return found.get(row, np.empty((0, 0), dtype=np.float32))

    def vectors_of(
        self, agent_id: str, wanted: Collection[OwnedId], model: str
    ) -> dict[OwnedId, EntryVectors]:
        """Return the vectors of entries, in any state, by user and id."""
        dialect, codec = self._dialect, self._codec
        named, values = dialect.owned_ids(wanted)
        sql = (
            f"SELECT row, user_id, id, version, updated_at FROM {named} {ENTRIES} "
            f"ON agent_id = ? AND id = wanted_id AND {dialect.user_key} = wanted_user "
            f"WHERE {visible(codec)}"
        )

        def work(on: SqlSession) -> dict[OwnedId, EntryVectors]:
            found = on.fetch(sql, (*values, agent_id))
            vectors = dialect.vectors(on, codec, agent_id, [row for row, *_ in found], model)
            for own in vectors.values():
                own.flags.writeable = False  # entries show them
            with dialect.reading_stored("a memory's state"):
                return {
                    (user_id, uuid_of(entry_id)): EntryVectors(
                        whole(version), whole(updated_at), vectors.get(row)
                    )
                    for row, user_id, entry_id, version, updated_at in found
                }

        return self._read(agent_id, work, one_moment=True)


def readable(
    rows: Sequence[Columns], entries_of: Callable[[Sequence[Columns]], Sequence[MemoryEntry]]
) -> dict[int, MemoryEntry]:
    """Return the entries of rows by row; those whose seal is broken are logged and left out."""
    try:
        entries = entries_of(rows)
    except SealBrokenError as error:
        if len(rows) > 1:
            found = [readable([row], entries_of) for row in rows]
            return {row: entry for one in found for row, entry in one.items()}
        log_broken(error)
        return {}
    return {row[0]: entry for row, entry in zip(rows, entries, strict=True)}


def readable_entries(
    on: SqlSession, codec: RowCodec, scope: Scope, rows: Sequence[Columns]
) -> dict[int, MemoryEntry]:
    """Return the entries of rows by row, without those whose seal is broken, which are logged."""
    return readable(rows, lambda rows: on.dialect.entries(codec, rows, scope))


def entries_of_rows(
    on: SqlSession,
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
    dialect = on.dialect
    is_wanted, wanted = dialect.among_rows(rows)
    sql = (
        f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_row} "
        f"WHERE {where} AND {is_wanted} ORDER BY row"
    )
    found: dict[int, MemoryEntry] = {}
    with closing(on.parts(sql, (*values, *wanted))) as parts:
        for part in parts:
            found.update(readable_entries(on, codec, scope, part))
    return found


def _stored(
    on: SqlSession, codec: RowCodec, scope: Scope, found: list[Columns], model: str | None
) -> list[StoredEntry]:
    """Return the entries of rows, with keys and vectors, without those whose seal is broken."""
    entries, dialect = readable_entries(on, codec, scope, found), on.dialect
    found = [columns for columns in found if columns[0] in entries]
    vectors: dict[int, Float32Array] = {}
    if model is not None:
        vectors = dialect.readable_vectors(on, codec, scope.agent_id, found, model)
    with dialect.reading_stored("a memory's key"):
        return [
            _with_vectors(codec, columns, entries[columns[0]], vectors.get(columns[0]), model)
            for columns in found
        ]


def _with_vectors(
    codec: RowCodec,
    columns: Columns,
    entry: MemoryEntry,
    vectors: Float32Array | None,
    model: str | None,
) -> StoredEntry:
    """Return the entry of a row with its idempotency key and the vectors of a model."""
    more: Sequence[Float32Array] = ()
    if vectors is not None and model is not None:
        first, *more = vectors
        entry = entry.with_embedding(first, model)
    used = codec.used_key(encoded_row(columns))
    return StoredEntry(columns[0], entry, key_of(used and used.key), tuple(more))
