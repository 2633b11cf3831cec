"""SQL statements that read the vectors of entries."""

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Final

import msgspec

from mnemic._core import VectorSums
from mnemic.arrays import Float32Array, np
from mnemic.errors import StoreCorruptError
from mnemic.store.row_codec import RowCodec, uuid_of, vector_of
from mnemic.store.sqlite.checksums import read_vectors
from mnemic.store.sqlite.damage import DAMAGED, reading_stored
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sealed_rows import VectorOpener
from mnemic.store.sqlite.sql import BY_ROW, USER_KEY, Columns, fetch, integers
from mnemic.store.values import EntryVectors, OwnedId

_OF_IDS: Final = (
    "SELECT row, row_sum, vector_sum, is_encrypted, user_id, id, version, updated_at, embedding "
    "FROM "
    "(SELECT value ->> 0 AS wanted_user, unhex(value ->> 1) AS wanted_id FROM json_each(?)) "
    "CROSS JOIN agent_memory_entries "
    f"ON agent_id = ? AND {USER_KEY} = wanted_user AND id = wanted_id "
    "LEFT JOIN agent_memory_embeddings ON entry_row = row AND model = ?"
)
_to_json = msgspec.json.Encoder().encode


def vectors(
    connection: GuardedConnection, codec: RowCodec, agent_id: str, row: int, model: str
) -> Float32Array:
    """Return the vectors of a row's chunks in their order."""
    sql = (
        "SELECT row, row_sum, vector_sum, is_encrypted, id, embedding FROM agent_memory_entries "
        f"{BY_ROW} CROSS JOIN agent_memory_embeddings ON entry_row = row "
        f"WHERE agent_id = ? AND row = ? AND model = ? AND {codec.is_visible_sql} ORDER BY part"
    )
    found = fetch(connection, sql, (agent_id, row, model))
    with reading_stored("a vector's checksum"):
        known = VectorSums(
            [(row, of_vectors or 0) for row, of_row, of_vectors, *_ in found if of_row is not None]
        )
    blobs = [(row, blob) for row, *_, blob in found]
    sealed = {row: entry_id for row, _, _, is_sealed, entry_id, _ in found if is_sealed}
    opener = VectorOpener(codec, agent_id, model, sealed)
    opened = opener.checked(blobs, known)
    with reading_stored("a vector"):
        parts = [vector_of(blob) for _, blob in opened]
        return np.stack(parts) if parts else np.empty((0, 0), dtype=np.float32)


def vectors_of(
    connection: GuardedConnection,
    codec: RowCodec,
    agent_id: str,
    wanted: Iterable[OwnedId],
    model: str,
) -> dict[OwnedId, EntryVectors]:
    """Return the vectors of entries, read in one statement; unknown ids are missing."""
    named = [(user_id or "", entry_id.hex) for user_id, entry_id in wanted]
    sql = f"{_OF_IDS} WHERE {codec.is_visible_sql} ORDER BY row, part"
    found = fetch(connection, sql, (_to_json(named).decode(), agent_id, model))
    read = _read(codec, agent_id, [row for row in found if row[-1] is not None], model)
    vectors: dict[OwnedId, EntryVectors] = {}
    at = 0
    with reading_stored("a vector"):
        for _, parts in groupby(found, itemgetter(0)):
            first, *more = parts
            end = at + (first[-1] is not None) + len(more)
            *_, user_id, entry_id, version, updated_at, _ = first
            version, updated_at = integers([version, updated_at])
            own = _own(read[at:end]) if end > at else None
            vectors[user_id, uuid_of(entry_id)] = EntryVectors(version, updated_at, own)
            at = end
    return vectors


def _read(codec: RowCodec, agent_id: str, found: list[Columns], model: str) -> Float32Array:
    """Return checked vectors, shape (n, dimensions)."""
    if not found:
        return np.empty((0, 0), dtype=np.float32)
    with reading_stored("a vector's checksum"):
        known = VectorSums(
            [(row, of_vectors or 0) for row, of_row, of_vectors, *_ in found if of_row is not None]
        )
    blobs = [(row[0], row[-1]) for row in found]
    sealed = {row[0]: row[5] for row in found if row[3]}
    if sealed:  # their sums are of what is stored, which is longer than the vectors
        blobs = VectorOpener(codec, agent_id, model, sealed).checked(blobs, known)
        known = VectorSums()
    with reading_stored("a vector"):
        dimensions = vector_of(blobs[0][1]).size
    read = read_vectors((model, dimensions), blobs, known).vectors
    if not np.isfinite(read).all():
        raise StoreCorruptError(f"a vector has a component that is no number; {DAMAGED}")
    return read


def _own(vectors: Float32Array) -> Float32Array:
    """Return a read-only copy, which does not keep the vectors of others in memory."""
    own = vectors.copy()
    own.flags.writeable = False
    return own
