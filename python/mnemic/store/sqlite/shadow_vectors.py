"""SQL statements over shadow vectors: those of other models than the agent's own.

They lie among the agent's own in the rows of their entries, so that they go with their entry in one
transaction, also if another process deletes it. Their model's name begins with `MARK`, which no
name of a model has: what reads, checks and counts an agent's own vectors never meets them.

Each has a checksum behind its numbers, over them, its row, its chunk and their number. The rows'
own sums leave them out: storing them changes no entry.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from mnemic._core import vector_sums
from mnemic.arrays import Float32Array, np
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite.checksums import MASK
from mnemic.store.sqlite.damage import DAMAGED
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    INSERT_VECTOR,
    Columns,
    execute_all,
    fetch,
    json_array,
)
from mnemic.store.values import Model

MARK: Final = "\x1f"
"""First character of a shadow model's stored name; names have no control characters."""

IS_OWN: Final = f"((model >= '{MARK}') = (model >= ' '))"
"""Condition of the vectors of an agent's own model."""

DELETE_OF_ROW: Final = f"DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND NOT {IS_OWN}"

SUM_BYTES: Final = 8
"""Bytes of the checksum behind the numbers of a vector."""
_ROW, _CHUNK, _NUMBER = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
"""Odd factors of 64 bits, of xxHash and the golden ratio, that spread small numbers."""

_OF_ROWS: Final = (
    f"SELECT entry_row, embedding FROM agent_memory_entries {BY_ROW} "
    "CROSS JOIN agent_memory_embeddings ON entry_row = row "
    f"WHERE agent_id = ? AND {AMONG} AND model = ? ORDER BY row, part"
)
_DELETE: Final = "DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND model = ?"
_DROP: Final = (
    f"DELETE FROM agent_memory_embeddings WHERE NOT {IS_OWN} AND ifnull(model = ?, TRUE) "
    "AND entry_row IN (SELECT row FROM agent_memory_entries WHERE agent_id = ?) "
    "RETURNING entry_row, model"
)
_ALL: Final = (
    "SELECT entry_row, embedding, model FROM agent_memory_embeddings "
    f"WHERE NOT {IS_OWN} AND entry_row NOT IN "  # which have no checksum of this kind
    "(SELECT row FROM agent_memory_entries WHERE is_encrypted <> 0) ORDER BY entry_row, model, part"
)


def shadow_vectors(
    connection: GuardedConnection, agent_id: str, model: Model, rows: Sequence[int]
) -> dict[int, Float32Array]:
    """Return the sound vectors of a model, shape (chunks, dimensions), by row."""
    name = MARK + model[0]
    found = fetch(connection, _OF_ROWS, (agent_id, json_array(list(rows)), name))
    return {row: own for row, own in _sound(name, found) if own.shape[1] == model[1]}


def _sound(name: str, found: list[Columns]) -> Iterator[tuple[int, Float32Array]]:
    """Yield the vectors of rows that agree with their checksums."""
    size = len(found[0][1]) if found and type(found[0][1]) is bytes else 0
    if size and all(type(blob) is bytes and len(blob) == size for _, blob in found):
        read = _read_all(name, found, size)
        if read is not None:
            yield from read
            return
    for row, parts in groupby(found, itemgetter(0)):
        vectors = vectors_of_row(name, row, [blob for _, blob in parts])
        if vectors is not None:
            yield row, vectors


def _read_all(name: str, found: list[Columns], size: int) -> list[tuple[int, Float32Array]] | None:
    """Return the vectors of rows, all of one length; None if any is damaged."""
    if size <= SUM_BYTES or size % 4:
        return None
    numbers = [(row, len(list(parts))) for row, parts in groupby(map(itemgetter(0), found))]
    table = np.frombuffer(b"".join([blob for _, blob in found]), np.uint8).reshape(-1, size)
    vectors = np.ascontiguousarray(table[:, :-SUM_BYTES]).view("<f4")
    stored = np.ascontiguousarray(table[:, -SUM_BYTES:]).view("<u8").ravel()
    sums = _sums(name, numbers, vectors)
    if not np.isfinite(vectors).all() or stored.tolist() != sums:
        return None
    read, begin = [], 0
    for row, number in numbers:
        read.append((row, vectors[begin : begin + number]))
        begin += number
    return read


def vectors_of_row(name: str, row: int, blobs: Sequence[object]) -> Float32Array | None:
    """Return the vectors of a row, shape (chunks, dimensions); None if any is damaged."""
    sizes = {len(blob) if isinstance(blob, bytes) else 0 for blob in blobs}
    if len(sizes) != 1:
        return None
    read = _read_all(name, [(row, blob) for blob in blobs], *sizes)
    return None if read is None else read[0][1]


def _sums(name: str, numbers: Iterable[tuple[int, int]], vectors: Float32Array) -> list[int]:
    """Return the checksum of each vector of rows, given with the number of each row's chunks."""
    places = [(row, chunk, number) for row, number in numbers for chunk in range(number)]
    return [
        (own + row * _ROW + chunk * _CHUNK + number * _NUMBER) & MASK
        for own, (row, chunk, number) in zip(
            vector_sums(name, [[vector] for vector in vectors]), places, strict=True
        )
    ]


def write_shadow_vectors(
    connection: GuardedConnection,
    codec: RowCodec,
    model: str,
    entries: Mapping[int, MemoryEntry],
    vectors: Mapping[int, Float32Array],
) -> None:
    """Write the vectors of rows, with their entries, over those of the model."""
    name = MARK + model
    execute_all(connection, _DELETE, [(row, name) for row in entries])
    execute_all(
        connection,
        INSERT_VECTOR,
        [
            (row, name, part, to_microseconds(entry.updated_at), blob)
            for row, entry in entries.items()
            for part, blob in enumerate(_stored_blobs(codec, entry, name, row, vectors[row]))
        ],
    )


def _stored_blobs(
    codec: RowCodec, entry: MemoryEntry, name: str, row: int, vectors: Float32Array
) -> list[bytes]:
    """Return vectors as they are stored; those of a sealed entry as if they were its own."""
    if not entry.is_encrypted or not vectors.any():
        return _blobs(name, row, vectors)
    plain = vectors.astype("<f4", copy=False)
    model, seal = name[len(MARK) :], codec.seal_vector
    return [seal(entry, model, part, each.tobytes()) for part, each in enumerate(plain)]


def _blobs(name: str, row: int, vectors: Float32Array) -> list[bytes]:
    return blobs_of(name, [(row, len(vectors))], vectors)


def blobs_of(name: str, numbers: Sequence[tuple[int, int]], vectors: Float32Array) -> list[bytes]:
    """Return the vectors of rows as they are stored, each with its checksum.

    Args:
        name: Stored name of the model.
        numbers: Each row, and the number of its chunks.
        vectors: Shape (chunks, dimensions), those of all rows.
    """
    plain = vectors.astype("<f4", copy=False)
    return [
        vector.tobytes() + own.to_bytes(SUM_BYTES, "little")
        for vector, own in zip(plain, _sums(name, numbers, plain), strict=True)
    ]


def drop_shadow_vectors(connection: GuardedConnection, agent_id: str, model: str | None) -> int:
    """Delete the shadow vectors of a model, or of all; return of how many entries."""
    name = None if model is None else MARK + model
    return len(set(fetch(connection, _DROP, (name, agent_id))))


def drop_damaged(connection: GuardedConnection) -> None:
    """Delete shadow vectors that differ from their checksums."""
    found = fetch(connection, _ALL, ())
    for (row, name), parts in groupby(found, itemgetter(0, 2)):
        if vectors_of_row(name, row, [blob for _, blob, _ in parts]) is None:
            connection.execute(_DELETE, (row, name))


def check_shadow_vectors(row: int, found: list[Columns]) -> None:
    """Check the shadow vectors of a row, each (row, bytes, model).

    Raises:
        StoreCorruptError: If some are damaged.
    """
    for name, parts in groupby(found, itemgetter(2)):
        if vectors_of_row(name, row, [blob for _, blob, _ in parts]) is None:
            raise StoreCorruptError(
                f"the vectors of row {row} by another model are not as stored; {DAMAGED}, or "
                "have verify(repair=True) drop them"
            )
