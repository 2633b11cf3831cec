"""SQL statements over companion vectors: those of other models than the agent's own."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mnemic.model import MemoryEntry, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import AMONG, EMBEDDINGS, ENTRIES, ROW, SEALED_VECTORS
from mnemic.store.postgres.stored import entries_of
from mnemic.store.postgres.vectors import NewVectors, as_stored, put_vectors
from mnemic.store.row_codec import RowCodec

_OF_AGENT: Final = (
    f"SELECT entry_row, embedding FROM {EMBEDDINGS} WHERE agent_id = %s AND model = %s "
    "AND is_companion {rows} ORDER BY entry_row, part"
)


_IS_OTHER: Final = (  # than the agent's own model
    "model IS DISTINCT FROM (SELECT model FROM mnemic.agent_memory_agents WHERE agent_id = %s)"
)
_ALL: Final = (
    f"SELECT entry_row, model FROM {EMBEDDINGS} WHERE agent_id = %s AND is_companion UNION ALL "
    f"SELECT entry_row, model FROM {SEALED_VECTORS} WHERE agent_id = %s AND {_IS_OTHER}"
)


def companions(
    session: Session,
    agent_id: str,
    model: str,
    rows: Sequence[int] | None,
    dimensions: int | None,
) -> dict[int, NDArray[np.float32]]:
    """Return companion vectors of a length by row."""
    where = "" if rows is None else "AND entry_row = ANY(%s)"
    values = (agent_id, model) if rows is None else (agent_id, model, list(rows))
    parts: dict[int, list[NDArray[np.float32]]] = {}
    for row, vector in session.fetch(_OF_AGENT.format(rows=where), values):
        parts.setdefault(row, []).append(vector)
    found = {
        row: np.stack(own) for row, own in parts.items() if len({one.size for one in own}) == 1
    }
    if dimensions is None and found:
        dimensions = next(iter(found.values())).shape[1]
    return {row: vectors for row, vectors in found.items() if vectors.shape[1] == dimensions}


def companion_models(session: Session, agent_id: str) -> dict[str, int]:
    """Return the number of entries with companion vectors, by model."""
    sql = (
        f"SELECT model, count(DISTINCT entry_row) FROM ({_ALL}) AS found GROUP BY model "
        "ORDER BY model"
    )
    return {name: int(number) for name, number in session.fetch(sql, (agent_id,) * 3)}


def add_companions(
    session: Session,
    codec: RowCodec,
    agent_id: str,
    model: str,
    entries: Mapping[int, MemoryEntry],
    *,
    vectors: Mapping[int, NDArray[np.float32]],
    with_sensitive: bool = False,
) -> int:
    """Store the vectors of those of these rows whose contents are still the same."""
    takes_sealed = with_sensitive and codec.seals
    where = f"agent_id = %s AND {AMONG} AND (NOT is_encrypted OR {takes_sealed})"
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} ORDER BY row"
    stored = session.fetch(sql, (agent_id, list(entries)))
    found = [
        (columns[0], entry)
        for columns, entry in zip(
            stored, entries_of(codec, stored, Scope(agent_id, all_users=True)), strict=True
        )
        if entry.content == entries[columns[0]].content
        and (with_sensitive or not entry.hides_content)
    ]
    where = "agent_id = %s AND entry_row = ANY(%s) AND model = %s"
    written = (agent_id, [row for row, _ in found], model)
    session.run(f"DELETE FROM {EMBEDDINGS} WHERE {where} AND is_companion", written)
    if takes_sealed:
        session.run(f"DELETE FROM {SEALED_VECTORS} WHERE {where}", written)
    put_vectors(
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
        is_companion=True,
    )
    return len(found)


def drop_companions(session: Session, agent_id: str, model: str | None) -> int:
    """Delete the companion vectors of a model, or of all; return of how many entries."""
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
