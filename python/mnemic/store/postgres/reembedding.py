"""SQL statements that make the vectors of another model the agent's own."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import Future
from typing import Final

from mnemic.arrays import Float32Array, np
from mnemic.crypto.envelope import OVERHEAD
from mnemic.model import MemoryEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.store.new_rows import NewVectors, as_stored
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.session import Session, Vector
from mnemic.store.postgres.sql import EMBEDDINGS, SEALED_VECTORS, lacks
from mnemic.store.postgres.vectors import upsert_vectors
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.reembedding import SqlReembedding
from mnemic.store.sql.session import Condition
from mnemic.store.values import Model

_DIMENSIONS: Final = "pgvector.vector_dims(v.embedding)"
_VECTOR: Final = (
    f"FROM {EMBEDDINGS} AS v WHERE v.agent_id = e.agent_id AND v.entry_row = e.row AND v.part = 0"
)
_LACKS: Final = " AND ".join(
    [
        lacks(f"{_VECTOR} AND v.is_companion AND v.model = ? AND {_DIMENSIONS} = ?"),
        lacks(
            f"FROM {SEALED_VECTORS} AS s WHERE s.agent_id = e.agent_id AND s.entry_row = e.row "
            "AND s.part = 0 AND s.model = ? AND octet_length(s.sealed) = ?"
        ),
    ]
)
_DROP_SEALED: Final = (
    f"DELETE FROM {SEALED_VECTORS} WHERE agent_id = ? AND (model <> ? OR entry_row = ANY(?))"
)
_DROP_STALE: Final = (  # of the agent's model, and of rows that shall have no vector
    f"DELETE FROM {EMBEDDINGS} AS v WHERE v.agent_id = ? AND v.is_companion AND ("
    f"(v.model = ? AND EXISTS (SELECT FROM {EMBEDDINGS} AS own WHERE own.agent_id = v.agent_id "
    "AND own.entry_row = v.entry_row AND own.model = v.model AND NOT own.is_companion)) OR "
    f"(v.model = ? AND ({_DIMENSIONS} <> ? OR v.entry_row = ANY(?))))"
)
_DROP_OWN: Final = (
    f"DELETE FROM {EMBEDDINGS} AS v USING {ENTRIES} AS e WHERE v.agent_id = ? "
    "AND NOT v.is_companion AND e.agent_id = v.agent_id AND e.row = v.entry_row "
    "AND (e.is_sensitive OR e.is_encrypted OR v.entry_row = ANY(?))"
)
_KEEP: Final = (
    f"UPDATE {EMBEDDINGS} SET is_companion = true WHERE agent_id = ? AND NOT is_companion"
)
_TAKE_OVER: Final = (
    f"UPDATE {EMBEDDINGS} SET is_companion = false "
    "WHERE agent_id = ? AND is_companion AND model = ?"
)
_INSERT_ZERO: Final = (
    f"INSERT INTO {EMBEDDINGS} (agent_id, entry_row, model, is_companion, part, created_at, "
    f"embedding) SELECT agent_id, row, ?, false, 0, updated_at, ? FROM {ENTRIES} "
    "WHERE agent_id = ? AND row = ANY(?)"
)
_IS_OTHER: Final = (  # than the agent's own model
    "model IS DISTINCT FROM (SELECT model FROM mnemic.agent_memory_agents WHERE agent_id = ?)"
)
_ZERO_ROWS: Final = (
    f"SELECT v.entry_row FROM {EMBEDDINGS} AS v WHERE v.agent_id = ? AND v.part = 0 "
    f"AND {POSTGRES.is_own_zero}"
)


class PostgresReembedding(SqlReembedding, OpenedDatabase):
    """Makes another model the agent's own; see `Reembedding`."""

    def drop_shadow_vectors(self, agent_id: str, model: str | None) -> Future[int]:
        """Delete the shadow vectors of a model, or of all; return of how many entries."""
        where, values = ("", []) if model is None else (" AND model = ?", [model])
        returning = f"{where} RETURNING entry_row, model"

        def work(on: Session) -> int:
            found = on.fetch(
                f"DELETE FROM {EMBEDDINGS} WHERE agent_id = ? AND is_companion {returning}",
                (agent_id, *values),
            )
            found += on.fetch(
                f"DELETE FROM {SEALED_VECTORS} WHERE agent_id = ? AND {_IS_OTHER} {returning}",
                (agent_id, agent_id, *values),
            )
            return len(set(found))

        return self._write(agent_id, work)

    def _lacks(self, model: Model) -> Condition:
        name, dimensions = model
        return _LACKS, [name, dimensions, name, 4 * dimensions + OVERHEAD]

    def _write_shadow_vectors(
        self,
        on: Session,
        agent_id: str,
        model: str,
        found: Mapping[int, MemoryEntry],
        vectors: Mapping[int, Float32Array],
    ) -> None:
        where = f"agent_id = ? AND {on.dialect.among('entry_row')} AND model = ?"
        written = (agent_id, list(found), model)
        on.run(f"DELETE FROM {EMBEDDINGS} WHERE {where} AND is_companion", written)
        if self._codec.seals:
            on.run(f"DELETE FROM {SEALED_VECTORS} WHERE {where}", written)
        new = [
            NewVectors(
                row,
                to_microseconds(entry.updated_at),
                as_stored(self._codec, entry, model, vectors[row]),
            )
            for row, entry in found.items()
        ]
        upsert_vectors(on, agent_id, (model, 0), new, is_shadow=True)

    def _switch_vectors(
        self,
        on: Session,
        agent_id: str,
        model: Model,
        skipped: AbstractSet[int],  # noqa: ARG002 - they have no vectors
    ) -> None:
        zero = [row for (row,) in on.fetch(_ZERO_ROWS, (agent_id,))]
        old = on.fetch(
            "SELECT model FROM mnemic.agent_memory_agents WHERE agent_id = ?", (agent_id,)
        )
        name, dimensions = model
        on.run(_DROP_STALE, (agent_id, old[0][0] if old else None, name, dimensions, zero))
        on.run(_DROP_OWN, (agent_id, zero))
        on.run(_KEEP, (agent_id,))
        on.run(_TAKE_OVER, (agent_id, name))
        on.run(_DROP_SEALED, (agent_id, name, zero))
        if zero:
            nothing = Vector(np.zeros(dimensions, np.float32))
            on.run(_INSERT_ZERO, (name, nothing, agent_id, zero))
