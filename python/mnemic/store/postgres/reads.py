"""The reads of entries by id and by row in the PostgreSQL store."""

import sys
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from numpy.typing import NDArray

from mnemic.arrays import np
from mnemic.model import MemoryEntry, Scope
from mnemic.model.agent_id import canonical, stored_spelling
from mnemic.model.timestamps import to_microseconds
from mnemic.store.duplicates import single
from mnemic.store.postgres.cached_rows import cached_rows, row_changes
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import (
    AMONG,
    ENTRIES,
    HAS_ACTIVE_STATUS,
    IS_ACTIVE,
    IS_PRESENT,
    ROW,
    USER_KEY,
    visible,
    visible_in,
    with_id,
)
from mnemic.store.postgres.stored import (
    active_entries,
    entries_of,
    readable_entries,
    reading_stored,
)
from mnemic.store.postgres.vectors import Vectors, own_vectors, sealed_vectors
from mnemic.store.readable_entries import with_vectors
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENCRYPTED,
    EncodedRow,
    RowCodec,
    sealed_ids,
    uuid_of,
)
from mnemic.store.sealing_codec import PREFIX, SealingRowCodec, sealed_prefix
from mnemic.store.values import EntryRow, EntryVectors, OwnedId, StoredEntry

_CONTENT: Final = 1 + COLUMN_NAMES.index("content")


class PostgresReads(OpenedDatabase):
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
        where, values = visible_in(scope, self._codec)
        if not include_deleted:
            where, values = f"{where} AND {IS_ACTIVE}", [*values, to_microseconds(now)]
        sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} AND id = ANY(%s)"

        def work(on: Session) -> dict[UUID, EntryRow]:
            found = on.fetch(sql, (*values, list(ids)))
            by_id: dict[UUID, list[EntryRow]] = {}
            for columns, entry in zip(found, entries_of(self._codec, found, scope), strict=True):
                by_id.setdefault(entry.id, []).append(EntryRow(columns[0], entry))
            located = {}
            for entry_id in ids:
                one = single(by_id.get(entry_id, []), scope, entry_id)
                if one is not None:
                    located[entry_id] = one
            return located

        return self._read(scope.agent_id, work, deadline=deadline)

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
        cached = None if include_deleted else self._cached_rows(scope.agent_id, rows, deadline)
        if cached is not None:
            return active_entries(self._codec, cached, scope, now)
        return self._read(
            scope.agent_id,
            lambda on: entries_of_rows(
                on, self._codec, scope, rows, time, include_deleted=include_deleted
            ),
            deadline=deadline,
        )

    def _cached_rows(
        self, agent_id: str, rows: Sequence[int], deadline: float | None
    ) -> list[Columns] | None:
        database = self._usable()
        cached = database.cached.of(agent_id)
        if cached is None:
            return None
        is_behind = cached.position != self.known_position(agent_id)
        if is_behind and self.stale_since(agent_id) is None:
            is_current = cached.catch_up(
                lambda since: self._read(
                    agent_id,
                    lambda on: row_changes(on, agent_id, since),
                    deadline=deadline,
                    one_moment=True,
                )
            )
            if not is_current:
                database.cached.release(agent_id)
                return None
        found = cached.of(rows)
        former = [] if found is None else self._under_former_keys(agent_id, found)
        if not former:
            return found
        cached.renew(
            former,
            lambda: self._read(
                agent_id, lambda on: cached_rows(on, agent_id, former), deadline=deadline
            ),
        )
        return cached.of(rows)

    def _under_former_keys(self, agent_id: str, rows: Sequence[Columns]) -> list[int]:
        """Return the numbers of sealed rows that no present key of their agent opens.

        They were resealed since they were read: that changes nothing of them, and is not logged.
        """
        sealed = [row for row in rows if row[ENCRYPTED]]
        if not (sealed and isinstance(self._codec, SealingRowCodec)):
            return []
        known = set(map(sealed_prefix, self._codec.keyring.keys(agent_id).sealers))
        return [row[0] for row in sealed if row[_CONTENT][:PREFIX] not in known]

    def row_of(self, scope: Scope, entry_id: UUID, *, now: datetime) -> int | None:
        """Return the row of an active entry, or None if the scope has no such entry."""
        where, values = with_id(scope, entry_id)
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
            f"SELECT {ROW}, fingerprint, idempotency_key, key_fingerprint FROM {ENTRIES} "
            f"WHERE {where} AND row > %s ORDER BY row LIMIT %s"
        )

        def work(on: Session) -> list[StoredEntry]:
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
        sql = (
            f"SELECT {ROW} FROM {ENTRIES} "
            f"WHERE agent_id = %s AND {HAS_ACTIVE_STATUS} AND {visible(self._codec)} AND {AMONG}"
        )
        bound = (agent_id, [int(row) for row in rows])
        found = self._read(agent_id, lambda on: on.fetch(sql, bound), deadline=deadline)
        entries = readable_entries(self._codec, found, Scope(agent_id, all_users=True))
        return {row: entry.content for row, entry in entries.items()}

    def stored_agent_id(self, agent_id: str) -> str:
        """Return an agent's id as it is stored."""
        sql = "SELECT agent_id FROM mnemic.agent_memory_agents"
        # Also read where nothing is looked up, so that a closed store says so.
        stored = self._read(
            None, lambda on: on.fetch(sql) if canonical(agent_id) is not None else []
        )
        return stored_spelling(agent_id, [name for (name,) in stored])

    def vectors(self, agent_id: str, row: int, model: str) -> NDArray[np.float32]:
        """Return the vectors of a row's chunks, shape (chunks, dimensions); (0, 0) for none."""
        found = self._read(
            agent_id, lambda on: own_vectors(on, self._codec, agent_id, [row], model)
        )
        return np.stack(found[row]) if found else np.empty((0, 0), dtype=np.float32)

    def vectors_of(
        self, agent_id: str, wanted: Collection[OwnedId], model: str
    ) -> dict[OwnedId, EntryVectors]:
        """Return the vectors of entries, in any state, by user and id."""
        sql = (
            f"SELECT row, user_id, id, version, updated_at FROM {ENTRIES} AS entry "
            "JOIN unnest(%s::text[], %s::uuid[]) AS wanted (wanted_user, wanted_id) "
            f"ON id = wanted_id AND {USER_KEY} = wanted_user "
            f"WHERE agent_id = %s AND {visible(self._codec)}"
        )
        users, ids = [user_id or "" for user_id, _ in wanted], [each for _, each in wanted]

        def work(on: Session) -> dict[OwnedId, EntryVectors]:
            found = on.fetch(sql, (users, ids, agent_id))
            rows = [row for row, *_ in found]
            vectors = own_vectors(on, self._codec, agent_id, rows, model)
            return {
                (user_id, uuid_of(entry_id)): EntryVectors(
                    version, updated_at, np.stack(vectors[row]) if row in vectors else None
                )
                for row, user_id, entry_id, version, updated_at in found
            }

        return self._read(agent_id, work, one_moment=True)


def entries_of_rows(
    session: Session,
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
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} AND {AMONG} ORDER BY row"
    found = session.fetch(sql, (*values, [int(row) for row in rows]))
    return readable_entries(codec, found, scope)


def _stored(
    session: Session, codec: RowCodec, scope: Scope, found: list[Columns], model: str | None
) -> list[StoredEntry]:
    """Return the entries of rows, with keys and vectors, without those whose seal is broken."""
    entries = readable_entries(codec, found, scope)
    found = [columns for columns in found if columns[0] in entries]
    vectors: dict[int, Vectors] = {}
    if model is not None:
        vectors = session.vectors(scope.agent_id, list(entries), model)
        opened = sealed_vectors(
            session, codec, scope.agent_id, sealed_ids(found), model, dimensions=0
        )
        vectors |= {row: own for row, own in opened.items() if own[0].size}
    with reading_stored("a memory's key"):
        return [
            with_vectors(
                codec,
                (columns[0], EncodedRow(columns[1:-3], columns[-3:])),
                entries[columns[0]],
                vectors.get(columns[0], ()),
                model,
            )
            for columns in found
        ]
