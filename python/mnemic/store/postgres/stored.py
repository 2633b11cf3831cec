"""Rows as they are stored: their tables and columns, how they are bound, and how they are read.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.rows import Record
from mnemic.store import errors
from mnemic.store.postgres.session import Columns
from mnemic.store.row_codec import COLUMN_NAMES, ENCRYPTED, RowCodec, uuid_of
from mnemic.store.sql.reads import readable

EMBEDDINGS: Final = "mnemic.agent_memory_embeddings"
SEALED_VECTORS: Final = "mnemic.agent_memory_sealed_vectors"

COLUMNS: Final = ", ".join(COLUMN_NAMES)
"""The columns of an entry, in the order of its codec."""

ROW: Final = f"row, {COLUMNS}"
"""A row's number and its columns."""

MORE: Final = ("fingerprint", "idempotency_key", "key_fingerprint")

USER_KEY: Final = "coalesce(user_id, '')"


def lacks(rows: str) -> str:
    """Return the condition that a row has none of some rows of another table, an anti-join.

    It is evaluated row by row. Of NOT EXISTS the server may make a join that compares every row
    with every other, as long as a table has no statistics.

    Args:
        rows: The other rows, from FROM on; they name the row that has them.
    """
    return f"(SELECT true {rows} LIMIT 1) IS NULL"


_VECTOR: Final = "AS v WHERE v.agent_id = ? AND entry_row = row AND model = ? AND part = 0"

HAS_NO_VECTOR: Final = " AND ".join(
    [
        lacks(f"FROM {EMBEDDINGS} {_VECTOR} AND NOT is_companion"),
        lacks(f"FROM {SEALED_VECTORS} {_VECTOR}"),
    ]
)
"""Condition of rows without a vector of a model; the values to bind are agent and model, twice."""


def bound(columns: Columns, names: Sequence[str] = COLUMN_NAMES) -> Columns:
    """Return columns of a codec as they are bound: ids as UUIDs, flags as booleans, texts."""
    return tuple(
        _BOUND[name](value) if name in _BOUND and value is not None else value
        for name, value in zip(names, columns, strict=True)
    )


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode()


_BOUND: Final[Mapping[str, Callable[[Any], object]]] = {
    "content": _text,  # that of a sealed entry is bytes of Base64
    "id": uuid_of,
    "supersedes": uuid_of,
    "is_sensitive": bool,
    "is_encrypted": bool,
}

CHANGED: str = "another program changed it, or the database is damaged: restore a backup"
"""Advice for values that mnemic cannot have stored."""

_RECORD = slice(1, 1 + len(COLUMN_NAMES))


def reading_stored(what: str) -> errors.ReadingStored:
    """Convert errors of decoding stored values of a database; see `errors.ReadingStored`."""
    return errors.ReadingStored(what, CHANGED)


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
