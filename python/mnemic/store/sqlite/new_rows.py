"""What storing entries in SQLite takes and gives: checksums, vectors, and what was written."""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from mnemic._core import row_sums, vector_sums
from mnemic.arrays import Float32Array
from mnemic.model.new_entry import NewEntry
from mnemic.store.changes import Change
from mnemic.store.new_rows import NewRow, Outcome, encoded
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sql import COLUMNS, INSERT_VECTOR, Columns, execute_all, fetch, mark_of
from mnemic.store.values import Model


def new_rows(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    vectors: Sequence[Sequence[Float32Array]],
    model: str | None,
) -> list[NewRow]:
    """Return entries, with the vectors of each, and their checksums."""
    plain = encoded(codec, entries, vectors, model)
    of_rows = row_sums([(*new.columns, *new.more) for new in plain])
    of_vectors: Sequence[int | None] = [None] * len(plain)
    if model is not None:
        sums = vector_sums(model, [new.stored_vectors for new in plain])
        of_vectors = [
            of_row if parts else None for of_row, parts in zip(sums, vectors, strict=True)
        ]
    return [
        new._replace(sums=own)
        for new, own in zip(plain, zip(of_rows, of_vectors, strict=True), strict=True)
    ]


_PLACES = ", ".join([*map(mark_of, COLUMN_NAMES), *"?????"])
_INSERT_ENTRY = (
    f"INSERT INTO agent_memory_entries ({COLUMNS}, fingerprint, "
    f"idempotency_key, key_fingerprint, row_sum, vector_sum) "
    f"VALUES ({_PLACES})"
)
_STATUS, _FORGOTTEN_AT = map(COLUMN_NAMES.index, ("status", "forgotten_at"))


def insert_rows(connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow]) -> int:
    """Insert entries of an agent, their vectors left out; return the first one's row.

    Raises:
        ConstraintError: If an id is in use; those before it are inserted.
    """
    execute_all(connection, _INSERT_ENTRY, [(*new.columns, *new.more, *new.sums) for new in rows])
    first = connection.last_insert_rowid() - len(rows) + 1  # AUTOINCREMENT leaves no gaps
    summed = [
        (row, *new.sums, None, new.columns[_STATUS], new.columns[_FORGOTTEN_AT])
        for row, new in enumerate(rows, start=first)
    ]
    connection.summed_rows.insert(agent_id, summed)
    return first


_UPSERT_VECTOR = (
    f"{INSERT_VECTOR.replace('OR IGNORE ', '')} ON CONFLICT (entry_row, model, part) "
    "DO UPDATE SET created_at = excluded.created_at, embedding = excluded.embedding"
)


def insert_vectors(
    connection: GuardedConnection, model: Model | None, rows: Sequence[tuple[int, int, NewRow]]
) -> None:
    """Insert the vectors of new entries, given with row and time, whose rows have their sum."""
    if model is not None:
        execute_all(connection, INSERT_VECTOR, _vectors(model[0], rows))


def upsert_vectors(
    connection: GuardedConnection, model: Model | None, rows: Sequence[tuple[int, int, NewRow]]
) -> None:
    """Write the vectors of entries, given with row and time, over those of their rows.

    They are written in their places: a deletion and an insertion write twice as many pages.
    """
    if model is not None:
        execute_all(connection, _UPSERT_VECTOR, _vectors(model[0], rows))
        report_vectors(connection, {row: new.sums[1] for row, _, new in rows if new.vectors})


def _vectors(model: str, rows: Sequence[tuple[int, int, NewRow]]) -> list[Columns]:
    return [
        (row, model, part, time, vector)
        for row, time, new in rows
        for part, vector in enumerate(new.stored_vectors)
    ]


def write_vectors(connection: GuardedConnection, vectors: Sequence[Columns]) -> None:
    """Insert vectors, each the values of the statement; its row is the first."""
    execute_all(connection, INSERT_VECTOR, vectors)
    report_vectors(connection, dict.fromkeys(map(itemgetter(0), vectors)))


def report_vectors(connection: GuardedConnection, sums: Mapping[int, int | None]) -> None:
    """Have the checksums of rows take in that their vectors were written.

    Args:
        connection: In the transaction that wrote them.
        sums: The sum of a row's vectors; None if it is not known.
    """
    connection.summed_rows.write_vectors(sums)


def fetch_checked(
    connection: GuardedConnection, sql: str, values: Sequence[object]
) -> list[Columns]:
    """Return rows that are compared with their sums, after the changes of this write."""
    connection.summed_rows.settle_rows(connection)
    return fetch(connection, sql, values)


class WrittenRows(NamedTuple):
    """What a part of storing entries wrote.

    Attributes:
        outcomes: One for each entry.
        changes: For the change log.
    """

    outcomes: list[Outcome]
    changes: list[Change]

    @classmethod
    def joined(cls, parts: Iterable["WrittenRows"]) -> "WrittenRows":
        """Return what all parts wrote, in their order."""
        outcomes: list[Outcome] = []
        changes: list[Change] = []
        for part in parts:
            outcomes += part.outcomes
            changes += part.changes
        return cls(outcomes, changes)
