"""Stored rows as entries."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime

from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.rows import Record
from mnemic.store import errors
from mnemic.store.postgres.session import Columns
from mnemic.store.row_codec import COLUMN_NAMES, ENCRYPTED, RowCodec
from mnemic.store.sql.reads import readable

CHANGED: str = "another program changed it, or the database is damaged: restore a backup"
"""Advice for values that mnemic cannot have stored."""

_RECORD = slice(1, 1 + len(COLUMN_NAMES))


def reading_stored(what: str) -> AbstractContextManager[None]:
    """Convert errors of decoding stored values of a database; see `errors.reading_stored`."""
    return errors.reading_stored(what, CHANGED)


def entries_of(codec: RowCodec, rows: Iterable[Columns], scope: Scope) -> list[MemoryEntry]:
    """Return the entries of rows, each its number and its columns; all of a scope.

    Raises:
        StoreCorruptError: If a row cannot be read.
    """
    with reading_stored("a stored memory"):
        entries = [codec.decode(row[_RECORD]) for row in rows]
    if not all(map(scope.has, entries)):
        raise StoreCorruptError(f"a statement led outside {scope}; {CHANGED}")
    return entries


def active_entries(
    codec: RowCodec, rows: Sequence[Columns], scope: Scope, now: datetime
) -> dict[int, MemoryEntry]:
    """Return the active entries of a scope among rows of its agent, by their numbers."""
    everybody = Scope(scope.agent_id, all_users=True)
    visible = rows if codec.seals else [row for row in rows if not row[ENCRYPTED]]
    found = readable(visible, lambda rows: entries_of(codec, rows, everybody))
    return {row: entry for row, entry in found.items() if scope.has(entry) and entry.is_active(now)}


def records_of(codec: RowCodec, rows: Sequence[Columns]) -> list[Record]:
    """Return rows, each a number and columns, as the index reads them."""
    with reading_stored("a memory"):
        return codec.records(list(rows))
