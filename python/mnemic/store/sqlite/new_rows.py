"""What storing entries takes and gives: rows and their vectors, options, results."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from mnemic._core import row_sums, vector_sums
from mnemic.model import MemoryEntry, NewEntry, OnConflict, OnDuplicate
from mnemic.store.changes import Change
from mnemic.store.quota import NO_QUOTAS, Quotas
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite.checksums import NO_SUMS, Sums
from mnemic.store.sqlite.sql import INSERT_VECTOR, Columns, execute_all
from mnemic.store.values import Model, Replaced


class NewRow(NamedTuple):
    """An entry to store, in the form of the statements.

    Attributes:
        entry: The entry.
        size: Bytes of its content that count in the quota.
        columns: Its columns, in the order of `COLUMNS`.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        sums: Sum of its columns, and sum of its vectors.
        vectors: One for each chunk.
    """

    entry: MemoryEntry
    size: int
    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
    sums: tuple[int, int | None]
    vectors: Sequence[NDArray[np.float32]]


def new_rows(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    vectors: Sequence[Sequence[NDArray[np.float32]]],
    model: str | None,
) -> list[NewRow]:
    """Return entries, with the vectors of each, in the form of the statements."""
    columns = [codec.encode(new.entry) for new in entries]
    found = codec.fingerprints([new.entry.content for new in entries])
    more = [
        (fingerprint, new.key, None if new.key is None else fingerprint)
        for fingerprint, new in zip(found, entries, strict=True)
    ]
    of_rows = row_sums([(*own, *others) for own, others in zip(columns, more, strict=True)])
    of_vectors: Sequence[int | None] = [None] * len(entries)
    if model is not None:
        sums = vector_sums(model, vectors)
        of_vectors = [
            of_row if parts else None for of_row, parts in zip(sums, vectors, strict=True)
        ]
    return [
        NewRow(new.entry, codec.content_size(new.entry), *row)
        for new, row in zip(
            entries,
            zip(columns, more, zip(of_rows, of_vectors, strict=True), vectors, strict=True),
            strict=True,
        )
    ]


_PUT_VECTOR = (
    f"{INSERT_VECTOR.replace('OR IGNORE ', '')} ON CONFLICT (entry_row, model, part) "
    "DO UPDATE SET created_at = excluded.created_at, embedding = excluded.embedding"
)


def insert_vectors(
    connection: apsw.Connection, model: Model | None, rows: Sequence[tuple[int, int, NewRow]]
) -> None:
    """Insert the vectors of entries, given with row and time, whose rows have none."""
    _write_vectors(connection, INSERT_VECTOR, model, rows)


def put_vectors(
    connection: apsw.Connection, model: Model | None, rows: Sequence[tuple[int, int, NewRow]]
) -> None:
    """Write the vectors of entries, given with row and time, over those of their rows.

    They are written in their places: a deletion and an insertion write twice as many pages.
    """
    _write_vectors(connection, _PUT_VECTOR, model, rows)


def _write_vectors(
    connection: apsw.Connection,
    statement: str,
    model: Model | None,
    rows: Sequence[tuple[int, int, NewRow]],
) -> None:
    if model is not None:
        vectors = [
            (row, model[0], part, time, vector)
            for row, time, new in rows
            for part, vector in enumerate(new.vectors)
        ]
        execute_all(connection, statement, vectors)


class AddOptions(NamedTuple):
    """Options of storing entries.

    Attributes:
        codec: Codec of the entries.
        now: Microseconds since 1970 in UTC.
        model: Model of the given vectors; None if there are none.
        quotas: Maximum bytes of content of the agent and of each user.
        on_duplicate: Treatment of a text that the user already has.
        is_import: Whether a superseded entry may be missing.
        on_conflict: Treatment of an id that the user already has.
    """

    codec: RowCodec
    now: int
    model: Model | None = None
    quotas: Quotas = NO_QUOTAS
    on_duplicate: OnDuplicate = "keep"
    is_import: bool = False
    on_conflict: OnConflict = "raise"


class Replacement(NamedTuple):
    """An entry that was stored over another one.

    Attributes:
        shown: The entry, as the store returns it.
        columns: Its columns, as they are stored.
        is_anew: Whether an index must not keep anything of the old one; see `changes`.
    """

    shown: Replaced
    columns: Columns
    is_anew: bool


class Outcome(NamedTuple):
    """Result for one entry: its row and id, or those of the existing entry it repeats.

    Attributes:
        row: The row.
        entry_id: The id.
        is_new: Whether the row is new.
        replacement: The entry, if it took the place of the row's earlier one.
    """

    row: int
    entry_id: bytes
    is_new: bool
    replacement: Replacement | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the entry was stored, in a new row or over another entry."""
        return self.is_new or self.replacement is not None


class Written(NamedTuple):
    """What a part of storing entries wrote.

    Attributes:
        outcomes: One for each entry.
        changes: For the change log.
        sums: Change of the sums of the agent's rows.
    """

    outcomes: list[Outcome]
    changes: list[Change]
    sums: Sums = NO_SUMS

    @classmethod
    def joined(cls, parts: Iterable["Written"]) -> "Written":
        """Return what all parts wrote, in their order."""
        outcomes: list[Outcome] = []
        changes: list[Change] = []
        sums = NO_SUMS
        for part in parts:
            outcomes += part.outcomes
            changes += part.changes
            sums = sums.plus(part.sums)
        return cls(outcomes, changes, sums)


class AddedRows(NamedTuple):
    """Results for the entries of one call, in their order.

    Attributes:
        seq: Number of the agent's last change.
        steps: Number of changes.
        outcomes: One for each entry.
        changed: Other existing rows that changed.
    """

    seq: int
    steps: int
    outcomes: list[Outcome]
    changed: list[int]
