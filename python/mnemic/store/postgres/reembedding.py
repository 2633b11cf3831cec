"""SQL statements that make the vectors of another model the agent's own."""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mnemic.crypto.envelope import OVERHEAD
from mnemic.model import MemoryEntry, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.changes import Change
from mnemic.store.postgres.change_log import log_changes
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.session import Columns, Session, Vector
from mnemic.store.postgres.sql import AMONG, EMBEDDINGS, ENTRIES, ROW, SEALED_VECTORS, lacks
from mnemic.store.postgres.stored import entries_of
from mnemic.store.postgres.vectors import NewVectors, as_stored, upsert_vectors
from mnemic.store.reembedding import ReembeddingProgress, reembedded_without_key
from mnemic.store.row_codec import RowCodec
from mnemic.store.values import Model

_VECTOR: Final = (
    f"FROM {EMBEDDINGS} AS v WHERE v.agent_id = e.agent_id AND v.entry_row = e.row AND v.part = 0"
)
_ZERO: Final = f"{_VECTOR} AND NOT v.is_companion AND {{pgvector}}.vector_norm(v.embedding) = 0"
_WANTED: Final = (
    f"FROM {ENTRIES} AS e WHERE e.agent_id = %s AND e.row > %s AND e.forgotten_at IS NULL "
    f"AND {lacks(_ZERO)}"
)
_LACKS: Final = " AND ".join(
    [
        lacks(
            f"{_VECTOR} AND v.is_companion AND v.model = %s "
            "AND {pgvector}.vector_dims(v.embedding) = %s"
        ),
        lacks(
            f"FROM {SEALED_VECTORS} AS s WHERE s.agent_id = e.agent_id AND s.entry_row = e.row "
            "AND s.part = 0 AND s.model = %s AND octet_length(s.sealed) = %s"
        ),
    ]
)
_HAS_SEALED: Final = f"SELECT EXISTS (SELECT FROM {ENTRIES} WHERE agent_id = %s AND is_encrypted)"
_DROP_SEALED: Final = (
    f"DELETE FROM {SEALED_VECTORS} WHERE agent_id = %s AND (model <> %s OR entry_row = ANY(%s))"
)
_DROP_STALE: Final = (  # of the agent's model, and of rows that shall have no vector
    f"DELETE FROM {EMBEDDINGS} AS v WHERE v.agent_id = %s AND v.is_companion AND ("
    f"(v.model = %s AND EXISTS (SELECT FROM {EMBEDDINGS} AS own WHERE own.agent_id = v.agent_id "
    "AND own.entry_row = v.entry_row AND own.model = v.model AND NOT own.is_companion)) OR "
    "(v.model = %s AND ({pgvector}.vector_dims(v.embedding) <> %s OR v.entry_row = ANY(%s))))"
)
_DROP_OWN: Final = (
    f"DELETE FROM {EMBEDDINGS} AS v USING {ENTRIES} AS e WHERE v.agent_id = %s "
    "AND NOT v.is_companion AND e.agent_id = v.agent_id AND e.row = v.entry_row "
    "AND (e.is_sensitive OR e.is_encrypted OR v.entry_row = ANY(%s))"
)
_KEEP: Final = (
    f"UPDATE {EMBEDDINGS} SET is_companion = true WHERE agent_id = %s AND NOT is_companion"
)
_TAKE_OVER: Final = (
    f"UPDATE {EMBEDDINGS} SET is_companion = false "
    "WHERE agent_id = %s AND is_companion AND model = %s"
)
_INSERT_ZERO: Final = (
    f"INSERT INTO {EMBEDDINGS} (agent_id, entry_row, model, is_companion, part, created_at, "
    f"embedding) SELECT agent_id, row, %s, false, 0, updated_at, %s FROM {ENTRIES} "
    "WHERE agent_id = %s AND row = ANY(%s)"
)
_IS_OTHER: Final = (  # than the agent's own model
    "model IS DISTINCT FROM (SELECT model FROM mnemic.agent_memory_agents WHERE agent_id = %s)"
)
_USERS: Final = (
    f"SELECT DISTINCT ON (user_id) row, id, user_id FROM {ENTRIES} WHERE agent_id = %s "
    "ORDER BY user_id, row"
)


def add_shadow_vectors(
    session: Session,
    codec: RowCodec,
    agent_id: str,
    model: str,
    entries: Mapping[int, MemoryEntry],
    *,
    vectors: Mapping[int, NDArray[np.float32]],
) -> int:
    """Store the vectors of those of these rows whose contents are still the same."""
    where = f"agent_id = %s AND {AMONG} AND (NOT is_encrypted OR {codec.seals})"
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} ORDER BY row"
    stored = session.fetch(sql, (agent_id, list(entries)))
    found = [
        (columns[0], entry)
        for columns, entry in zip(
            stored, entries_of(codec, stored, Scope(agent_id, all_users=True)), strict=True
        )
        if entry.content == entries[columns[0]].content
    ]
    where = "agent_id = %s AND entry_row = ANY(%s) AND model = %s"
    written = (agent_id, [row for row, _ in found], model)
    session.run(f"DELETE FROM {EMBEDDINGS} WHERE {where} AND is_companion", written)
    if codec.seals:
        session.run(f"DELETE FROM {SEALED_VECTORS} WHERE {where}", written)
    upsert_vectors(
        session,
        agent_id,
        (model, 0),
        [
            NewVectors(
                row,
                to_microseconds(entry.updated_at),
                as_stored(codec, entry, model, vectors[row]),
            )
            for row, entry in found
        ],
        is_shadow=True,
    )
    return len(found)


def drop_shadow_vectors(session: Session, agent_id: str, model: str | None) -> int:
    """Delete the shadow vectors of a model, or of all; return of how many entries."""
    where, values = ("", []) if model is None else (" AND model = %s", [model])
    plain = (
        f"DELETE FROM {EMBEDDINGS} WHERE agent_id = %s AND is_companion{where} "
        "RETURNING entry_row, model"
    )
    sealed = (
        f"DELETE FROM {SEALED_VECTORS} WHERE agent_id = %s AND {_IS_OTHER}{where} "
        "RETURNING entry_row, model"
    )
    found = session.fetch(plain, (agent_id, *values))
    found += session.fetch(sealed, (agent_id, agent_id, *values))
    return len(set(found))


def to_embed(session: Session, agent_id: str, model: Model) -> ReembeddingProgress:
    """Return how many entries lack the shadow vectors of a model, and how many need them."""
    wanting = _WANTED.format(pgvector=session.pgvector)
    missing = session.value(
        f"SELECT count(*) {wanting} AND {_LACKS.format(pgvector=session.pgvector)}",
        (agent_id, 0, *_stored(model)),
    )
    wanted = session.value(f"SELECT count(*) {wanting}", (agent_id, 0))
    return ReembeddingProgress(int(missing), int(wanted))


def has_sealed(session: Session, agent_id: str) -> bool:
    """Return whether an agent has sealed entries."""
    return bool(session.value(_HAS_SEALED, (agent_id,)))


def _stored(model: Model) -> tuple[str, int, str, int]:
    """Return the name and the size of new vectors, in plain text and sealed."""
    name, dimensions = model
    return name, dimensions, name, 4 * dimensions + OVERHEAD


def rows_to_embed(
    session: Session, agent_id: str, model: Model, after: int, limit: int
) -> list[int]:
    """Return rows that lack the shadow vectors of a model, ascending."""
    lacking = f"{_WANTED} AND {_LACKS}".format(pgvector=session.pgvector)
    sql = f"SELECT e.row {lacking} ORDER BY e.row LIMIT %s"
    return [row for (row,) in session.fetch(sql, (agent_id, after, *_stored(model), limit))]


def switch_model(
    session: Session, agent_id: str, model: Model, skipped: AbstractSet[int], max_missing: int
) -> bool:
    """Make the shadow vectors of a model the agent's own, unless entries lack them."""
    missing = rows_to_embed(session, agent_id, model, 0, len(skipped) + max_missing + 1)
    if len(set(missing) - skipped) > max_missing:
        return False
    zero = _zero_rows(session, agent_id)
    old = session.fetch(
        "SELECT model FROM mnemic.agent_memory_agents WHERE agent_id = %s", (agent_id,)
    )
    name, dimensions = model
    stale = _DROP_STALE.format(pgvector=session.pgvector)
    session.run(stale, (agent_id, old[0][0] if old else None, name, dimensions, zero))
    session.run(_DROP_OWN, (agent_id, zero))
    session.run(_KEEP, (agent_id,))
    session.run(_TAKE_OVER, (agent_id, name))
    session.run(_DROP_SEALED, (agent_id, name, zero))
    if zero:
        nothing = Vector(np.zeros(dimensions, np.float32))
        session.run(_INSERT_ZERO, (name, nothing, agent_id, zero))
    _log_switch(session, agent_id, model)
    return True


def _zero_rows(session: Session, agent_id: str) -> list[int]:
    """Return the rows whose own vector stands for none."""
    sql = (
        f"SELECT entry_row FROM {EMBEDDINGS} WHERE agent_id = %s AND NOT is_companion "
        f"AND part = 0 AND {session.pgvector}.vector_norm(embedding) = 0"
    )
    return [row for (row,) in session.fetch(sql, (agent_id,))]


def _log_switch(session: Session, agent_id: str, model: Model) -> None:
    users: list[Columns] = session.fetch(_USERS, (agent_id,))
    if users:
        changes = [Change(row, entry_id, "switch", user) for row, entry_id, user in users]
        log_changes(session, agent_id, changes, model)


class PostgresReembedding(OpenedDatabase):
    """Makes another model the agent's own; see `Reembedding`."""

    def add_shadow_vectors(
        self,
        agent_id: str,
        model: str,
        entries: Mapping[int, MemoryEntry],
        vectors: Mapping[int, NDArray[np.float32]],
    ) -> Future[int]:
        """Store shadow vectors; return of how many rows."""
        return self._write(
            agent_id,
            lambda on: add_shadow_vectors(
                on, self._codec, agent_id, model, entries, vectors=vectors
            ),
        )

    def drop_shadow_vectors(self, agent_id: str, model: str | None) -> Future[int]:
        """Delete the shadow vectors of a model, or of all; return of how many entries."""
        return self._write(agent_id, lambda on: drop_shadow_vectors(on, agent_id, model))

    def to_embed(self, agent_id: str, model: Model) -> ReembeddingProgress:
        """Return how many entries lack a model's vectors, and how many need them."""

        def work(on: Session) -> ReembeddingProgress:
            if not self._codec.seals and has_sealed(on, agent_id):
                raise reembedded_without_key(agent_id)
            return to_embed(on, agent_id, model)

        return self._read(agent_id, work)

    def rows_to_embed(self, agent_id: str, model: Model, after: int, limit: int) -> list[int]:
        """Return rows that lack the shadow vectors of a model, ascending."""
        return self._read(agent_id, lambda on: rows_to_embed(on, agent_id, model, after, limit))

    def switch_model(
        self, agent_id: str, model: Model, skipped: Collection[int] = (), max_missing: int = 0
    ) -> Future[bool]:
        """Make the shadow vectors of a model the agent's own, unless entries lack them."""
        rows = frozenset(skipped)
        return self._write(
            agent_id, lambda on: switch_model(on, agent_id, model, rows, max_missing)
        )
