"""What PostgreSQL does otherwise in storing entries: numbers of a sequence, COPY, pipelines."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final, cast

from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import EMBEDDINGS, MORE, SEALED_VECTORS, bound
from mnemic.store.postgres.vectors import COPIED, upsert_vectors
from mnemic.store.row_codec import COLUMN_NAMES
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.new_rows import AddOptions, NewRow, NewVectors
from mnemic.store.sql.replacing import Overwrite
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.values import Model

_COLUMNS: Final = ("row", *COLUMN_NAMES, *MORE)
_COPY: Final = f"COPY {ENTRIES} ({', '.join(_COLUMNS)}) FROM STDIN"
_INSERT: Final = (
    f"INSERT INTO {ENTRIES} ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"
)
_NUMBERS: Final = "SELECT nextval('mnemic.agent_memory_rows') FROM generate_series(1, ?)"
_CREATED_AT: Final = COLUMN_NAMES.index("created_at")


def adding(
    session: SqlSession, rows: Sequence[NewRow], rules: AddOptions
) -> AbstractContextManager[None]:
    """Return a pipeline, in which neither COPY nor the batches of a filter run."""
    on = cast("Session", session)
    is_copied = max(len(rows), sum(len(new.vectors) for new in rows)) >= COPIED
    if rules.wanted.instead_of is not None or (on.can_copy and is_copied):
        return nullcontext()
    return on.pipeline()


def fetch_numbered(
    session: SqlSession, select: Condition, number: int
) -> tuple[list[Columns], Sequence[int]]:
    """Return the rows of a statement, and numbers for new rows, in one round trip of a pipeline."""
    found, numbers = cast("Session", session).fetch_each(select, (_NUMBERS, (number,)))
    return found, sorted([row for (row,) in numbers])


def insert_entries(
    session: SqlSession,
    agent_id: str,
    rows: Sequence[NewRow],
    model: Model | None,
    numbers: Sequence[int],
) -> Sequence[int]:
    """Insert entries of an agent with their vectors, as the rows of these numbers."""
    on = cast("Session", session)
    numbered = list(zip(numbers, rows, strict=True))
    values = [(row, *bound(new.columns), *new.more) for row, new in numbered]
    on.insert(_COPY if on.can_copy and len(values) >= COPIED else _INSERT, values)
    vectors = [
        NewVectors(row, new.columns[_CREATED_AT], new.stored_vectors) for row, new in numbered
    ]
    upsert_vectors(on, agent_id, model, vectors)
    return numbers


def overwrite_vectors(
    session: SqlSession, agent_id: str, model: Model | None, overwrites: Sequence[Overwrite]
) -> None:
    """Write the vectors of entries over those of the rows whose places they take."""
    outdated = [each for each in overwrites if not each.keeps_vectors]
    shadowed = [each for each in overwrites if each.changes_content or each.entry.hides_content]
    sealed = [each for each in outdated if each.old.is_sealed]
    for table, gone in (
        (f"{EMBEDDINGS} WHERE is_companion", shadowed),
        (f"{EMBEDDINGS} WHERE NOT is_companion", outdated),
        (f"{SEALED_VECTORS} WHERE true", sealed),
    ):
        if gone:
            sql = f"DELETE FROM {table} AND agent_id = ? AND entry_row = ANY(?)"
            session.run(sql, (agent_id, [each.old.row for each in gone]))
    new = [NewVectors(each.old.row, each.time, each.new.stored_vectors) for each in outdated]
    upsert_vectors(cast("Session", session), agent_id, model, new)
