"""The vectors of entries: in pgvector's column, those of sealed entries in another table."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from mnemic.crypto.envelope import OVERHEAD, header
from mnemic.errors import InvalidEntryError, StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.store.new_rows import NewVectors, as_stored, new_vectors
from mnemic.store.operations import AddShadowVectors
from mnemic.store.postgres.session import Columns, Insertion, Session, Vector
from mnemic.store.postgres.stored import EMBEDDINGS, SEALED_VECTORS, lacks, reading_stored
from mnemic.store.row_codec import ENCRYPTED, RowCodec, sealed_ids, vector_of
from mnemic.store.sealing_codec import PREFIX, broken, log_broken, sealed_prefix
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.dialect import PlainVector, VectorsOfRows
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.values import Model

_COLUMNS: Final = "agent_id, entry_row, model, is_companion, part, created_at, embedding"
_PLAIN: Final = Insertion.into(
    EMBEDDINGS, _COLUMNS, ("text", "int8", "text", "bool", "int4", "int8", "vector")
)
_SEALED: Final = Insertion.into(
    SEALED_VECTORS, "agent_id, entry_row, model, part, created_at, sealed"
)
_PLAIN_OF_ROWS: Final = (
    f"SELECT entry_row, embedding FROM {EMBEDDINGS} WHERE agent_id = %s "
    "AND entry_row = ANY(%s) AND model = %s AND NOT is_companion ORDER BY entry_row, part"
)
_SEALED_WITHIN: Final = (
    f"SELECT row, id FROM {ENTRIES} WHERE agent_id = %s AND row = ANY(%s) AND is_encrypted"
)

MAX_DIMENSIONS: Final = 16_000
"""Of pgvector's type `vector`."""

MIN_LENGTH: Final = 1e-6
MAX_LENGTH: Final = 1e18
"""Between them squares of lengths, which pgvector adds up in single precision, are exact enough."""

Vectors = tuple[NDArray[np.float32], ...]
"""The vectors of a row's chunks."""


def insert_vectors(
    session: SqlSession, agent_id: str, model: Model, rows: Iterable[NewVectors]
) -> None:
    """Insert the vectors of rows that have none of the model."""
    upsert_vectors(cast("Session", session), agent_id, model, rows)


def upsert_vectors(
    session: Session,
    agent_id: str,
    model: Model | None,
    rows: Iterable[NewVectors],
    *,
    is_shadow: bool = False,
) -> None:
    """Insert the vectors of rows that have none of the model."""
    if model is None:
        return
    plain: list[Columns] = []
    sealed: list[Columns] = []
    for row, time, vectors in rows:
        for part, vector in enumerate(vectors):
            if isinstance(vector, bytes):
                sealed.append((agent_id, row, model[0], part, time, vector))
            else:
                _check_vector(vector)
                plain.append((agent_id, row, model[0], is_shadow, part, time, Vector(vector)))
    session.insert(_PLAIN, plain)
    session.insert(_SEALED, sealed)


def _check_vector(vector: NDArray[np.float32]) -> None:
    """Check that PostgreSQL has a vector, and compares it as the core does."""
    if vector.size > MAX_DIMENSIONS:
        raise InvalidEntryError(
            f"PostgreSQL's vectors have at most {MAX_DIMENSIONS:,} dimensions; use an embedder "
            "with fewer, or a store in a file"
        )
    length = float(np.linalg.norm(vector.astype(np.float64)))
    if length and not MIN_LENGTH <= length <= MAX_LENGTH:
        raise InvalidEntryError(
            f"PostgreSQL compares vectors whose length is 0 or from {MIN_LENGTH:g} to "
            f"{MAX_LENGTH:g}; this one's is {length:.3g}: scale it, or use a store in a file"
        )


def delete_vectors(on: SqlSession, agent_id: str, row: Columns) -> None:
    """Delete the vectors of a row by the agent's own model."""
    where, values = "agent_id = ? AND entry_row = ?", (agent_id, row[0])
    on.run(f"DELETE FROM {EMBEDDINGS} WHERE {where} AND NOT is_companion", values)
    if row[ENCRYPTED]:
        on.run(f"DELETE FROM {SEALED_VECTORS} WHERE {where}", values)


def delete_shadow_vectors(on: SqlSession, agent_id: str, row: Columns) -> None:
    """Delete the shadow vectors of a row."""
    where = "agent_id = ? AND entry_row = ? AND is_companion"
    on.run(f"DELETE FROM {EMBEDDINGS} WHERE {where}", (agent_id, row[0]))


def seal_vectors(on: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry) -> None:
    """Move the vectors of a row that is sealed now; shadow vectors are deleted."""
    own = on.fetch(
        f"DELETE FROM {EMBEDDINGS} WHERE agent_id = ? AND entry_row = ? "
        "RETURNING model, part, is_companion, created_at, embedding",
        (entry.agent_id, row[0]),
    )
    kept = sorted((vector for vector in own if not vector[2]), key=itemgetter(0, 1))
    for model, parts in groupby(kept, itemgetter(0)):
        (*_, time, vector), *more = parts
        sealed = as_stored(codec, entry, model, [vector, *(each for *_, each in more)])
        insert_vectors(on, entry.agent_id, (model, 0), [NewVectors(row[0], time, sealed)])


def plain_vectors(
    session: SqlSession, agent_id: str, rows: Sequence[int], model: str
) -> dict[int, Vectors]:
    """Return the vectors of rows' chunks by row; rows without any are missing."""
    found: dict[int, Vectors] = {}
    for row, vector in session.fetch(_PLAIN_OF_ROWS, (agent_id, list(rows), model)):
        found[row] = (*found.get(row, ()), vector)
    return found


def own_vectors(
    session: SqlSession, codec: RowCodec, agent_id: str, rows: Sequence[int], model: str
) -> VectorsOfRows:
    """Return the vectors of rows by row, shape (chunks, dimensions); rows without are missing.

    Raises:
        SealBrokenError: If a sealed vector does not open.
    """
    sealed = dict[int, bytes]()
    if codec.seals:
        sealed = dict(session.fetch(_SEALED_WITHIN, (agent_id, list(rows))))
    plain = plain_vectors(session, agent_id, rows, model)  # zeros of sealed rows too
    opened = sealed_vectors(session, codec, agent_id, sealed, model) if sealed else {}
    return {row: np.stack(own) for row, own in (plain | opened).items()}


def readable_vectors(
    session: SqlSession, codec: RowCodec, agent_id: str, rows: Sequence[Columns], model: str
) -> VectorsOfRows:
    """Return the same of rows that begin with number and columns, without those that break."""
    plain = plain_vectors(session, agent_id, [row for row, *_ in rows], model)
    opened = sealed_vectors(session, codec, agent_id, sealed_ids(rows), model, dimensions=0)
    found = plain | {row: own for row, own in opened.items() if own[0].size}
    return {row: np.stack(own) for row, own in found.items()}


def sealed_vectors(
    session: SqlSession,
    codec: RowCodec,
    agent_id: str,
    sealed: Mapping[int, bytes],
    model: str,
    *,
    dimensions: int | None = None,
) -> dict[int, Vectors]:
    """Return the vectors of sealed rows in plain text, by row.

    Args:
        session: The connection.
        codec: Opens them.
        agent_id: The agent.
        sealed: The ids of the rows' entries.
        model: Model of the vectors.
        dimensions: A row with a broken vector is logged, and gets a vector of so many zeros, which
            is similar to nothing: without one it would be embedded again and again. None is an
            error.

    Raises:
        SealBrokenError: If one does not open.
    """
    found: dict[int, Vectors] = {}
    for row, _, blobs in sealed_parts(session, agent_id, sealed, model):
        try:
            found[row] = opened(codec, (agent_id, sealed[row]), model, blobs)
            if dimensions and any(own.size != dimensions for own in found[row]):
                raise broken(sealed[row], "a sealed vector is not as it was stored")
        except StoreCorruptError:
            if dimensions is None:
                raise
            log_broken(broken(sealed[row], "a sealed vector is not as it was stored"))
            found[row] = (np.zeros(dimensions, dtype=np.float32),)
    return found


def sealed_parts(
    session: SqlSession, agent_id: str, rows: Iterable[int], model: str | None = None
) -> Iterator[tuple[int, str, list[bytes]]]:
    """Yield the sealed vectors of rows' chunks with row and model; None is every model."""
    where, values = ("", []) if model is None else ("AND model = ?", [model])
    sql = (
        f"SELECT entry_row, model, sealed FROM {SEALED_VECTORS} WHERE agent_id = ? "
        f"AND entry_row = ANY(?) {where} ORDER BY entry_row, model, part"
    )
    found = session.fetch(sql, (agent_id, list(rows), *values))
    for (row, name), parts in groupby(found, itemgetter(0, 1)):
        yield row, name, [blob for *_, blob in parts]


def opened(
    codec: RowCodec, place: tuple[str, bytes], model: str, blobs: Sequence[bytes]
) -> Vectors:
    """Return the vectors of a sealed row's chunks in plain text.

    Raises:
        SealBrokenError: If one does not open.
    """
    with reading_stored("a vector"):
        return tuple(
            vector_of(codec.open_vector(place, model, part, blob)).astype(np.float32, copy=False)
            for part, blob in enumerate(blobs)
        )


_UNDER_OTHER_KEYS: Final = (
    f"SELECT row FROM {ENTRIES} WHERE agent_id = ? AND is_encrypted "
    f"AND left(content, {PREFIX}) <> ? AND row > ? "
    f"UNION SELECT entry_row FROM {SEALED_VECTORS} WHERE agent_id = ? "
    "AND substr(sealed, 1, 9) <> ? AND entry_row > ?"
)
_UPDATE_SEALED: Final = (
    f"UPDATE {SEALED_VECTORS} AS v SET sealed = new.sealed "
    "FROM unnest(?::bytea[], ?::bigint[], ?::text[], ?::integer[]) "
    "AS new (sealed, row, model, part) WHERE v.agent_id = ? AND v.entry_row = new.row "
    "AND v.model = new.model AND v.part = new.part"
)


def under_other_keys(agent_id: str, key_id: bytes, after: int) -> Condition:
    """Return the SELECT of an agent's rows that, or a vector of which, other keys seal."""
    values = [agent_id, sealed_prefix(key_id), after, agent_id, header(key_id), after]
    return _UNDER_OTHER_KEYS, values


def opened_vectors(
    on: SqlSession, codec: RowCodec, agent_id: str, stored: list[Columns]
) -> list[PlainVector]:
    """Return all sealed vectors of stored rows in plain text.

    Raises:
        SealBrokenError: If one does not open.
    """
    ids = sealed_ids(stored)
    return [
        (model, part, row, vector.tobytes())
        for row, model, blobs in sealed_parts(on, agent_id, ids)
        for part, vector in enumerate(opened(codec, (agent_id, ids[row]), model, blobs))
    ]


def write_sealed(
    on: SqlSession, agent_id: str, rows: Sequence[int], vectors: Sequence[Columns]
) -> None:
    """Write sealed vectors, each with its row, model and part, over those of their rows."""
    del rows  # all were opened
    if vectors:
        on.run(_UPDATE_SEALED, (*map(list, zip(*vectors, strict=True)), agent_id))


IS_OWN_ZERO: Final = "NOT v.is_companion AND pgvector.vector_norm(v.embedding) = 0"
"""Condition of vectors, `v`, of the agent's own model that stand for none."""

_DIMENSIONS: Final = "pgvector.vector_dims(v.embedding)"
_AGENTS_MODEL: Final = "(SELECT model FROM mnemic.agent_memory_agents WHERE agent_id = ?)"
_LACKS: Final = " AND ".join(
    [
        lacks(
            f"FROM {EMBEDDINGS} AS v WHERE v.agent_id = e.agent_id AND v.entry_row = e.row "
            f"AND v.part = 0 AND v.is_companion AND v.model = ? AND {_DIMENSIONS} = ?"
        ),
        lacks(
            f"FROM {SEALED_VECTORS} AS s WHERE s.agent_id = e.agent_id AND s.entry_row = e.row "
            "AND s.part = 0 AND s.model = ? AND octet_length(s.sealed) = ?"
        ),
    ]
)
_ZERO_ROWS: Final = (
    f"SELECT v.entry_row FROM {EMBEDDINGS} AS v "
    f"WHERE v.agent_id = ? AND v.part = 0 AND {IS_OWN_ZERO}"
)
_DROP_STALE: Final = (  # of the agent's model, and of rows that shall have no vector
    f"DELETE FROM {EMBEDDINGS} AS v WHERE v.agent_id = ? AND v.is_companion AND ("
    f"(v.model = {_AGENTS_MODEL} AND EXISTS (SELECT FROM {EMBEDDINGS} AS own "
    "WHERE own.agent_id = v.agent_id AND own.entry_row = v.entry_row "
    "AND own.model = v.model AND NOT own.is_companion)) OR "
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
_DROP_SEALED: Final = (
    f"DELETE FROM {SEALED_VECTORS} WHERE agent_id = ? AND (model <> ? OR entry_row = ANY(?))"
)
_INSERT_ZERO: Final = (
    f"INSERT INTO {EMBEDDINGS} ({_COLUMNS}) "
    f"SELECT agent_id, row, ?, false, 0, updated_at, ? FROM {ENTRIES} "
    "WHERE agent_id = ? AND row = ANY(?)"
)


def lacks_shadow_vectors(model: Model) -> Condition:
    """Return the condition of entries, `e`, without shadow vectors of a model."""
    name, dimensions = model
    return _LACKS, [name, dimensions, name, 4 * dimensions + OVERHEAD]


def shadow_vectors(agent_id: str, model: str | None) -> list[Condition]:
    """Return FROM and WHERE of the shadow vectors of a model, or of all, in each table."""
    where, values = ("", []) if model is None else (" AND model = ?", [model])
    plain = f"FROM {EMBEDDINGS} WHERE agent_id = ? AND is_companion{where}"
    sealed = (
        f"FROM {SEALED_VECTORS} WHERE agent_id = ? AND model IS DISTINCT FROM {_AGENTS_MODEL}"
        f"{where}"
    )
    return [(plain, [agent_id, *values]), (sealed, [agent_id, agent_id, *values])]


def write_shadow_vectors(
    session: SqlSession,
    codec: RowCodec,
    wanted: AddShadowVectors,
    found: Mapping[int, MemoryEntry],
) -> None:
    """Write the vectors of rows, with their stored entries, over those of the model."""
    on, agent_id, model = cast("Session", session), wanted.agent_id, wanted.model
    where = "agent_id = ? AND entry_row = ANY(?) AND model = ?"
    written = (agent_id, list(found), model)
    on.run(f"DELETE FROM {EMBEDDINGS} WHERE {where} AND is_companion", written)
    if codec.seals:
        on.run(f"DELETE FROM {SEALED_VECTORS} WHERE {where}", written)
    new = [
        new_vectors(codec, row, entry, model, wanted.vectors[row]) for row, entry in found.items()
    ]
    upsert_vectors(on, agent_id, (model, 0), new, is_shadow=True)


def switch_vectors(
    session: SqlSession, agent_id: str, model: Model, skipped: Collection[int]
) -> None:
    """Make own vectors shadow vectors, and those of a model the agent's own."""
    del skipped  # they have no vectors
    name, dimensions = model
    zero = [row for (row,) in session.fetch(_ZERO_ROWS, (agent_id,))]
    session.run(_DROP_STALE, (agent_id, agent_id, name, dimensions, zero))
    session.run(_DROP_OWN, (agent_id, zero))
    session.run(_KEEP, (agent_id,))
    session.run(_TAKE_OVER, (agent_id, name))
    session.run(_DROP_SEALED, (agent_id, name, zero))
    if zero:
        nothing = Vector(np.zeros(dimensions, np.float32))
        session.run(_INSERT_ZERO, (name, nothing, agent_id, zero))
