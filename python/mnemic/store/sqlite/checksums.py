"""Checksums of rows and, for each agent, of all its rows: compared with what is read.

`row_sum` covers a row's columns except its number and its accesses, `vector_sum` its vectors and
`link_sum` the links from it; the latter two are NULL where there are none. An agent's `rows_sum`
adds up its rows' numbers, sums and states, so that a lost row is detected. Rows written by earlier
versions have no sums until they are rewritten, and the agent's sum leaves them out. The core
computes the sums; `summed_rows` keeps them.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mnemic._core import (
    RECORD_COLUMNS,
    SUMMED_COLUMNS,
    VectorSums,
    check_rows,
    placed_sums,
)
from mnemic._core import check_links as links_differing
from mnemic._core import check_vectors as vectors_differing
from mnemic._core import read_vectors as vectors_read
from mnemic.arrays import Float32Array, Int64Array
from mnemic.errors import MnemicError, StoreCorruptError
from mnemic.model import MemoryEntry
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENCRYPTED,
    ENTRY_ID,
    UNREADABLE,
    RowCodec,
)
from mnemic.store.sealing_codec import broken
from mnemic.store.sql.session import SqlSession
from mnemic.store.sqlite.sql import BY_ROW, Columns, among, read_column
from mnemic.store.sqlite.sqlite_errors import DAMAGED, reading_stored, unreadable
from mnemic.store.values import Model

MASK: Final = 2**62 - 1
"""Sums have 62 bits: two of them can be added in SQL."""

_CHECKED: Final = (
    *("fingerprint", "idempotency_key", "key_fingerprint"),
    *("row_sum", "vector_sum", "link_sum"),
)


CHECKED_COLUMNS: Final = ", ".join(["row", *map(read_column, COLUMN_NAMES), *_CHECKED])
"""The columns of a row that `check` needs."""

KEY: Final = 2 + len(COLUMN_NAMES)
"""Index of the idempotency key among the columns of `CHECKED_COLUMNS`."""

SUMMED: Final = slice(1, 1 + len(SUMMED_COLUMNS))
"""Where the columns that `row_sum` covers are among those of `CHECKED_COLUMNS`."""
_RECORD = slice(1, len(RECORD_COLUMNS))
_ID = RECORD_COLUMNS.index("id")

SUM_COLUMNS: Final = "row, row_sum, vector_sum, link_sum, status, forgotten_at"
"""The columns of a row that count in its agent's sum."""

_PLACED = f"SELECT {SUM_COLUMNS} FROM agent_memory_entries"
_LINKS = (
    "SELECT from_row, to_row, type, strength, created_at FROM agent_memory_links WHERE from_row = ?"
)


class Sums(NamedTuple):
    """Number of rows with sums, and the sum over them."""

    rows: int
    total: int

    def plus(self, other: "Sums") -> "Sums":
        """Return the sum of two."""
        return Sums(self.rows + other.rows, (self.total + other.total) & MASK)


NO_SUMS: Final = Sums(0, 0)


class VerifiedSums(NamedTuple):
    """Checked sums of rows.

    Attributes:
        sums: Their part of the agent's sum.
        vectors: Sum of each row's vectors; rows without sums are missing.
        links: Sum of each row's links, where it has or had any.
    """

    sums: Sums
    vectors: VectorSums
    links: dict[int, int]


def check(rows: list[Columns], vectors: VectorSums | None = None) -> VerifiedSums:
    """Compare rows, each the columns of `CHECKED_COLUMNS`, with their sums.

    Args:
        rows: The rows.
        vectors: Sums of the vectors of rows checked before; the new ones are added to it.

    Raises:
        StoreCorruptError: If a row differs from its sum; the message names the memory.
    """
    vectors = VectorSums() if vectors is None else vectors
    try:  # a context manager takes as long as the check of four rows
        wrong, number, total, links = check_rows(rows, vectors)
    except MnemicError:
        raise
    except UNREADABLE as error:
        raise unreadable("a memory's checksum", error) from None
    if wrong is not None:
        raise damaged(rows[wrong])
    return VerifiedSums(Sums(number, total), vectors, links)


def damaged(row: Columns) -> StoreCorruptError:
    """Return the error for a row whose sum is wrong; columns as in `check`."""
    if row[ENCRYPTED]:
        return broken(row[ENTRY_ID], "it is sealed, and not as it was stored")
    return StoreCorruptError(f"{named(row)} is not as it was stored; {DAMAGED}")


def named(row: Columns) -> str:
    """Name the memory of a row, as in `check`, as well as it can be read."""
    entry_id = row[_ID]
    shown = entry_id.hex() if isinstance(entry_id, bytes) else "of no readable id"
    return f"memory {shown} in row {row[0]}"


def entries_of(codec: RowCodec, rows: list[Columns]) -> list[MemoryEntry]:
    """Return the entries of rows, each the columns of `CHECKED_COLUMNS`, after checking their sums.

    Raises:
        StoreCorruptError: If a row is damaged.
    """
    if rows:
        check(rows)
    with reading_stored("a stored memory"):
        return [codec.decode(row[_RECORD]) for row in rows]


def rows_with_sums(on: SqlSession, rows: Sequence[int]) -> list[Columns]:
    """Return the `SUM_COLUMNS` of rows."""
    where, values = among(rows)
    return on.fetch(f"{_PLACED} {BY_ROW} WHERE {where}", values)


def added(rows: Sequence[Columns]) -> Sums:
    """Return the part of rows, each the `SUM_COLUMNS`, in their agent's sum."""
    with reading_stored("a memory's checksum"):
        return Sums(*placed_sums(list(rows)))


def check_links_of(on: SqlSession, rows: Sequence[int]) -> None:
    """Compare the links from rows with their sums.

    Raises:
        StoreCorruptError: If a link is damaged or lost.
    """
    known = {row[0]: row[3] or 0 for row in rows_with_sums(on, rows) if row[1] is not None}
    found = [link for row in known for link in on.fetch(_LINKS, (row,))]
    check_links(found, known)


def check_links(links: list[Columns], known: dict[int, int]) -> None:
    """Compare links, each (from, to, type, strength, time), with the link sums of rows.

    Raises:
        StoreCorruptError: If a link is damaged or lost.
    """
    with reading_stored("a link"):
        wrong = links_differing(links, known)
    if wrong is not None:
        raise StoreCorruptError(f"the links from row {wrong} are not as stored; {DAMAGED}")


def check_vectors(
    model: str, vectors: list[Columns], known: VectorSums, *, is_all: bool = False
) -> int:
    """Compare vectors, ordered by row, with the vector sums of rows.

    Args:
        model: Model of the vectors.
        vectors: Each a row and the vector's bytes.
        known: Sum of the vectors of each row that has sums.
        is_all: Whether all vectors of these rows are given.

    Returns:
        Number of the rows that have sums.

    Raises:
        StoreCorruptError: If a vector is damaged or lost.
    """
    with reading_stored("a vector"):
        wrong, number = vectors_differing(model, vectors, known)
    _check_none_is_wrong(wrong)
    if is_all:
        check_no_vector_is_lost(known, number)
    return number


def _check_none_is_wrong(wrong: int | None) -> None:
    if wrong is not None:
        raise StoreCorruptError(f"the vectors of row {wrong} are not as stored; {DAMAGED}")


class ReadVectors(NamedTuple):
    """Vectors that agree with their sums.

    Attributes:
        rows: int64, shape (n,): row of each vector.
        vectors: float32, shape (n, dim).
        summed: Number of the rows that have sums.
    """

    rows: Int64Array
    vectors: Float32Array
    summed: int


def read_vectors(model: Model, vectors: list[Columns], known: VectorSums) -> ReadVectors:
    """Read vectors, ordered by row, and compare them with the vector sums of rows.

    Args:
        model: Model of the vectors.
        vectors: Each a row and the vector's bytes.
        known: Sum of the vectors of each row that has sums.

    Raises:
        StoreCorruptError: If a vector is damaged, lost, or has another dimension.
    """
    name, dim = model
    with reading_stored("a vector"):
        wrong, number, found = vectors_read(name, dim, vectors, known)
    _check_none_is_wrong(wrong)
    if found is None:
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {DAMAGED}")
    return ReadVectors(*found, number)


def check_no_vector_is_lost(known: VectorSums, found: int) -> None:
    """Compare the number of rows with vectors and sums with the expected number.

    Raises:
        StoreCorruptError: If there are fewer.
    """
    if found < known.rows:
        raise StoreCorruptError(f"{known.rows - found} memories have lost their vectors; {DAMAGED}")
