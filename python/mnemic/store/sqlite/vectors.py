"""Sealed rows, and the vectors of all rows: compared with their checksums, and opened.

A sealed row that is damaged costs itself alone: reads of many rows leave it out.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from mnemic._core import RECORD_COLUMNS, VectorSums
from mnemic.arrays import Float32Array, np
from mnemic.crypto.envelope import header
from mnemic.errors import SealBrokenError, StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.model.rows import Record
from mnemic.model.timestamps import to_microseconds
from mnemic.store.new_rows import NewVectors
from mnemic.store.row_codec import ENCRYPTED, ENTRY_ID, RowCodec, sealed_ids, vector_of
from mnemic.store.sealing_codec import (
    PREFIX,
    SealingRowCodec,
    broken,
    log_broken,
    sealed_prefix,
)
from mnemic.store.sql.change_log import recorded_model
from mnemic.store.sql.conditions import visible
from mnemic.store.sql.dialect import PlainVector, VectorsOfRows
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.sqlite.checksums import Sums, VerifiedSums, added, check, check_vectors
from mnemic.store.sqlite.new_rows import insert_vectors
from mnemic.store.sqlite.sql import AMONG, BY_ROW, DELETE_SHADOW_VECTORS, IS_OWN, Columns
from mnemic.store.sqlite.sqlite_errors import plain_records, reading_stored

if TYPE_CHECKING:
    from mnemic.store.sqlite.hardening import GuardedConnection

_STATUS = RECORD_COLUMNS.index("status")
_FORGOTTEN_AT = RECORD_COLUMNS.index("forgotten_at")


_DAMAGED_VECTOR = "a sealed vector of it is not as it was stored"


class ReadSums(NamedTuple):
    """The sums of the vectors of the rows that were read.

    Attributes:
        plain: Of rows in plain text.
        sealed: Of sealed rows that open.
    """

    plain: VectorSums
    sealed: VectorSums


class ReadRows(NamedTuple):
    """Rows that agree with their checksums, and open.

    Attributes:
        records: In plain text, by row.
        sealed: The ids of those that are sealed, by row.
        sums: Part of all the given rows in the agent's sum.
        links: Sum of each row's links, where it has or had any.
    """

    records: list[Record]
    sealed: dict[int, bytes]
    sums: Sums
    links: dict[int, int]


def read_rows(codec: RowCodec, rows: list[Columns], vectors: ReadSums) -> ReadRows:
    """Read rows, each the columns of `CHECKED_COLUMNS`, without sealed ones that do not open.

    Args:
        codec: Codec of the entries.
        rows: The rows.
        vectors: Gets the sums of their vectors.

    Raises:
        StoreCorruptError: If a row that is not sealed is damaged.
        WrongKeyError: If one is sealed under a key that is not given.
    """
    sealed = [row for row in rows if row[ENCRYPTED]]
    if not sealed:
        checked = check(rows, vectors.plain)
        return ReadRows(plain_records(codec, rows), {}, checked.sums, checked.links)
    plain = [row for row in rows if not row[ENCRYPTED]]
    checked = check(plain, vectors.plain)
    opened = plain_records(codec, _intact(codec, sealed))
    ids = {row[0]: row[ENTRY_ID] for row in opened}
    of_sealed = check([row for row in sealed if row[0] in ids], vectors.sealed)
    return ReadRows(
        sorted([*plain_records(codec, plain), *opened], key=itemgetter(0)),
        ids,
        checked.sums.plus(added([placed(row) for row in sealed])),
        checked.links | of_sealed.links,
    )


def placed(row: Columns) -> Columns:
    """Return the `SUM_COLUMNS` of a row, the columns of `CHECKED_COLUMNS`."""
    return (row[0], *row[-3:], row[_STATUS], row[_FORGOTTEN_AT])


def _intact(codec: RowCodec, rows: list[Columns]) -> list[Columns]:
    """Return the sealed rows that agree with their checksums; others are logged."""
    if _checked(rows) is not None:
        return rows
    intact = [row for row in rows if _checked([row]) is not None]
    if codec.seals:
        for row in rows:
            if row not in intact:
                log_broken(broken(row[ENTRY_ID], "it is sealed, and not as it was stored"))
    return intact


def _checked(rows: list[Columns]) -> VerifiedSums | None:
    try:
        return check(rows)
    except StoreCorruptError:
        return None


class VectorOpener(NamedTuple):
    """Opens the vectors of sealed rows.

    Attributes:
        codec: Codec of the entries.
        agent_id: The agent.
        model: Model of the vectors.
        sealed: The ids of sealed rows, by row.
    """

    codec: RowCodec
    agent_id: str
    model: str
    sealed: Mapping[int, bytes]

    def opened(self, found: list[Columns]) -> list[Columns]:
        """Return vectors, each a row and bytes, in plain text.

        Args:
            found: All vectors of each row, ordered by row and part.

        Raises:
            SealBrokenError: If one does not open.
        """
        if not self.sealed:
            return found
        return [
            (row, self._opened(row, part, blob))
            for row, parts in groupby(found, itemgetter(0))
            for part, (_, blob) in enumerate(parts)
        ]

    def _opened(self, row: int, part: int, blob: object) -> object:
        entry_id = self.sealed.get(row)
        if entry_id is None:
            return blob
        return self.codec.open_vector((self.agent_id, entry_id), self.model, part, blob)

    def checked(self, found: list[Columns], known: VectorSums) -> list[Columns]:
        """Return vectors, compared with their sums, in plain text; see `opened`.

        Raises:
            SealBrokenError: If one of a sealed row is damaged.
            StoreCorruptError: If another is.
        """
        try:
            check_vectors(self.model, found, known)
        except StoreCorruptError:
            for row, parts in groupby(found, itemgetter(0)):
                self._check_row(row, list(parts), known)
        return self.opened(found)

    def _check_row(self, row: int, found: list[Columns], known: VectorSums) -> None:
        try:
            check_vectors(self.model, found, known)
        except StoreCorruptError:
            if row not in self.sealed:
                raise
            raise broken(self.sealed[row], _DAMAGED_VECTOR) from None

    def readable(self, found: list[Columns], known: VectorSums, dimensions: int) -> list[Columns]:
        """Return the vectors of sealed rows, as `checked`, whatever is damaged.

        A row with a damaged vector is logged, and gets a vector of zeros, which is similar to
        nothing: without one it would be embedded again and again.
        """
        with suppress(SealBrokenError):
            return self._fitting(self.checked(found, known), dimensions)
        readable: list[Columns] = []
        for row, parts in groupby(found, itemgetter(0)):
            try:
                readable += self._fitting(self.checked(list(parts), known), dimensions)
            except SealBrokenError as error:
                log_broken(error)
                readable.append((row, bytes(4 * dimensions)))
        return readable

    def _fitting(self, opened: list[Columns], dimensions: int) -> list[Columns]:
        """Return vectors if all have so many dimensions; zeros may have been written there."""
        for row, blob in opened:
            if dimensions and len(blob) != 4 * dimensions:
                raise broken(self.sealed[row], _DAMAGED_VECTOR)
        return opened


_UNDER_OTHER_KEYS: Final = (
    "SELECT row FROM agent_memory_entries INDEXED BY agent_memory_entries_by_seal "
    f"WHERE agent_id = ? AND is_encrypted <> 0 AND row > ? AND (substr(content, 1, {PREFIX}) <> ? "
    "OR EXISTS (SELECT 1 FROM agent_memory_embeddings "
    "WHERE entry_row = row AND substr(embedding, 1, 9) <> ? "
    "AND embedding <> zeroblob(length(embedding))))"  # zeros are never sealed
)
_OWN_VECTORS: Final = (
    "SELECT entry_row, embedding, model FROM agent_memory_embeddings "
    f"WHERE entry_row IN (SELECT value FROM json_each(?)) AND {IS_OWN} "
    "ORDER BY model, entry_row, part"
)
_UPDATE_VECTOR: Final = (
    "UPDATE agent_memory_embeddings SET embedding = ? "
    "WHERE entry_row = ? AND model = ? AND part = ?"
)


def under_other_keys(agent_id: str, key_id: bytes, after: int) -> Condition:
    """Return the SELECT of an agent's rows that, or a vector of which, other keys seal."""
    return _UNDER_OTHER_KEYS, [agent_id, after, sealed_prefix(key_id), header(key_id)]


def opened_vectors(
    on: SqlSession, codec: SealingRowCodec, agent_id: str, stored: list[Columns]
) -> list[PlainVector]:
    """Return the own vectors of sealed rows in plain text, after a look at their checksums.

    Raises:
        SealBrokenError: If one does not open, or a row is damaged.
    """
    known, ids = check(stored).vectors, sealed_ids(stored)
    found = on.fetch(_OWN_VECTORS, (list(ids),))
    plain: list[PlainVector] = []
    for model, of_model in groupby(found, itemgetter(2)):
        vectors = [vector[:2] for vector in of_model]
        opened = VectorOpener(codec, agent_id, model, ids).checked(vectors, known)
        for row, parts in groupby(opened, itemgetter(0)):
            plain += [(model, part, row, blob) for part, (_, blob) in enumerate(parts)]
    return plain


def write_sealed(
    session: SqlSession, _agent_id: str, rows: Sequence[int], vectors: Sequence[Columns]
) -> None:
    """Write sealed vectors over those of their rows; shadow vectors, which are rebuilt, go."""
    on = cast("GuardedConnection", session)
    on.run_all(_UPDATE_VECTOR, vectors)
    on.summed_rows.write_vectors(rows)
    on.run_all(DELETE_SHADOW_VECTORS, [(row,) for row in rows])


_OF_ROWS: Final = (
    f"FROM agent_memory_entries {BY_ROW} CROSS JOIN agent_memory_embeddings ON entry_row = row "
    f"WHERE agent_id = ? AND {AMONG} AND model = ?"
)
_DELETE_OWN: Final = f"DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND {IS_OWN}"


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


def delete_vectors(on: SqlSession, _agent_id: str, row: Columns) -> None:
    """Delete the vectors of a row by its agent's own model."""
    on.run(_DELETE_OWN, (row[0],))


def delete_shadow_vectors(on: SqlSession, _agent_id: str, row: Columns) -> None:
    """Delete the vectors of a row by other models."""
    on.run(DELETE_SHADOW_VECTORS, (row[0],))


def seal_vectors(on: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry) -> None:
    """Seal the vectors of a row that was not sealed; shadow vectors are deleted."""
    agent_id, number = entry.agent_id, row[0]
    own = on.fetch(_OWN_VECTORS, ([number],))
    delete_vectors(on, agent_id, row)
    delete_shadow_vectors(on, agent_id, row)
    if own:
        model, found = own[0][2], [vector[:2] for vector in own]
        check_vectors(model, found, check([row]).vectors)
        sealed = [
            codec.seal_vector(entry, model, part, blob) for part, (_, blob) in enumerate(found)
        ]
        new = NewVectors(number, to_microseconds(entry.updated_at), sealed)
        insert_vectors(on, agent_id, (model, 0), [new])
