"""The vectors of rows, compared with their checksums."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from mnemic._core import VectorSums
from mnemic.arrays import Float32Array, np
from mnemic.model import MemoryEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import RowCodec, sealed_ids, vector_of
from mnemic.store.sql.change_log import recorded_model
from mnemic.store.sql.conditions import visible
from mnemic.store.sql.dialect import VectorsOfRows
from mnemic.store.sql.new_rows import NewVectors
from mnemic.store.sql.session import SqlSession
from mnemic.store.sqlite.checksums import check, check_vectors
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.new_rows import insert_vectors
from mnemic.store.sqlite.sealed_rows import VectorOpener
from mnemic.store.sqlite.sql import AMONG, BY_ROW, DELETE_SHADOW_VECTORS, IS_OWN, Columns

_OF_ROWS: Final = (
    f"FROM agent_memory_entries {BY_ROW} CROSS JOIN agent_memory_embeddings ON entry_row = row "
    f"WHERE agent_id = ? AND {AMONG} AND model = ?"
)
_DELETE_OWN: Final = f"DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND {IS_OWN}"
_OWN: Final = (
    "SELECT model, embedding FROM agent_memory_embeddings "
    f"WHERE entry_row = ? AND {IS_OWN} ORDER BY model, part"
)


def vectors(
    on: SqlSession, codec: RowCodec, agent_id: str, rows: Sequence[int], model: str
) -> VectorsOfRows:
    """Return the vectors of rows by row, shape (chunks, dimensions); rows without are missing."""
    sql = (
        "SELECT row, row_sum, vector_sum, is_encrypted, id, embedding "
        f"{_OF_ROWS} AND {visible(codec)} ORDER BY row, part"
    )
    found = on.fetch(sql, (agent_id, list(rows), model))
    with reading_stored("a vector's checksum"):
        known = VectorSums(
            [(row, of_vectors or 0) for row, of_row, of_vectors, *_ in found if of_row is not None]
        )
    blobs = [(row, blob) for row, *_, blob in found]
    sealed = {row: entry_id for row, _, _, is_sealed, entry_id, _ in found if is_sealed}
    return _by_row(VectorOpener(codec, agent_id, model, sealed).checked(blobs, known))


def readable_vectors(
    on: SqlSession, codec: RowCodec, agent_id: str, found: Sequence[Columns], model: str
) -> VectorsOfRows:
    """Return the same of rows, each the columns of `CHECKED_COLUMNS`, without those that break."""
    sql = f"SELECT row, embedding {_OF_ROWS} ORDER BY row, part"
    blobs = on.fetch(sql, (agent_id, [row for row, *_ in found], model))
    known, sealed = recorded_model(on, agent_id), sealed_ids(found)
    is_all = known is not None and known[0] == model
    plain = [vector for vector in blobs if vector[0] not in sealed]
    of_plain = check([columns for columns in found if columns[0] not in sealed]).vectors
    check_vectors(model, plain, of_plain, is_all=is_all)
    if not sealed:
        return _by_row(plain)
    of_sealed = check([columns for columns in found if columns[0] in sealed]).vectors
    opener = VectorOpener(codec, agent_id, model, sealed)
    blobs = [vector for vector in blobs if vector[0] in sealed]
    opened = opener.readable(blobs, of_sealed, 0)
    return _by_row([*plain, *(vector for vector in opened if vector[1])])


def _by_row(found: Sequence[Columns]) -> VectorsOfRows:
    """Return vectors, ordered by row, in copies that keep none of another row in memory."""
    vectors: VectorsOfRows = {}
    end = 0
    with reading_stored("a vector"):
        read = _read([blob for _, blob in found])
        for row, parts in groupby(found, itemgetter(0)):
            start, end = end, end + len(list(parts))
            vectors[row] = read[start:end].copy()
    return vectors


def _read(blobs: Sequence[bytes]) -> Float32Array:
    """Return vectors, shape (n, dimensions); raise ValueError if they are none."""
    if not blobs:
        return np.empty((0, 0), dtype=np.float32)
    if not {len(blobs[0])}.issuperset(map(len, blobs)):
        raise ValueError("vectors of different lengths")
    return vector_of(b"".join(blobs)).reshape(len(blobs), -1)


def delete_vectors(on: SqlSession, agent_id: str, row: Columns) -> None:
    """Delete the vectors of a row by its agent's own model."""
    del agent_id
    on.run(_DELETE_OWN, (row[0],))


def delete_shadow_vectors(on: SqlSession, agent_id: str, row: Columns) -> None:
    """Delete the vectors of a row by other models."""
    del agent_id
    on.run(DELETE_SHADOW_VECTORS, (row[0],))


def seal_vectors(on: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry) -> None:
    """Seal the vectors of a row that was not sealed; shadow vectors are deleted."""
    agent_id, number = entry.agent_id, row[0]
    own = on.fetch(_OWN, (number,))
    delete_vectors(on, agent_id, row)
    delete_shadow_vectors(on, agent_id, row)
    if own:
        model = own[0][0]
        check_vectors(model, [(number, blob) for _, blob in own], check([row]).vectors)
        sealed = [codec.seal_vector(entry, model, part, blob) for part, (_, blob) in enumerate(own)]
        new = NewVectors(number, to_microseconds(entry.updated_at), sealed)
        insert_vectors(on, agent_id, (model, 0), [new])
