"""SQL statements over companion vectors: those of other models than the agent's own."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from mnemic.model import MemoryEntry, Scope
from mnemic.model.timestamps import to_microseconds
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import AMONG, EMBEDDINGS, ENTRIES, ROW
from mnemic.store.postgres.stored import entries_of
from mnemic.store.postgres.writes import put_vectors
from mnemic.store.row_codec import RowCodec

_OF_AGENT: Final = (
    f"SELECT entry_row, embedding FROM {EMBEDDINGS} WHERE agent_id = %s AND model = %s "
    "AND is_companion {rows} ORDER BY entry_row, part"
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
        f"SELECT model, count(DISTINCT entry_row) FROM {EMBEDDINGS} "
        "WHERE agent_id = %s AND is_companion GROUP BY model ORDER BY model"
    )
    return {name: int(number) for name, number in session.fetch(sql, (agent_id,))}


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
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = %s AND {AMONG} ORDER BY row"
    stored = session.fetch(sql, (agent_id, list(entries)))
    found = [
        (columns[0], entry)
        for columns, entry in zip(
            stored, entries_of(codec, stored, Scope(agent_id, all_users=True)), strict=True
        )
        if entry.content == entries[columns[0]].content and (with_sensitive or not entry.sensitive)
    ]
    session.run(
        f"DELETE FROM {EMBEDDINGS} WHERE agent_id = %s AND entry_row = ANY(%s) AND model = %s "
        "AND is_companion",
        (agent_id, [row for row, _ in found], model),
    )
    put_vectors(
        session,
        agent_id,
        (model, 0),
        [(row, to_microseconds(entry.updated_at), list(vectors[row])) for row, entry in found],
        is_companion=True,
    )
    return len(found)


def drop_companions(session: Session, agent_id: str, model: str | None) -> int:
    """Delete the companion vectors of a model, or of all; return of how many entries."""
    where, values = ("", []) if model is None else (" AND model = %s", [model])
    sql = (
        f"DELETE FROM {EMBEDDINGS} WHERE agent_id = %s AND is_companion{where} "
        "RETURNING entry_row, model"
    )
    return len(set(session.fetch(sql, (agent_id, *values))))
