"""Building blocks of all SQL statements of the store.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.
"""

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from mnemic.errors import StoreCorruptError
from mnemic.store.row_codec import COLUMN_NAMES
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.sqlite_errors import DAMAGED

Columns: TypeAlias = tuple[Any, ...]

COLUMNS = ", ".join(COLUMN_NAMES)
"""The columns of an entry, in the order of its codec."""


def read_column(name: str, table: str = "") -> str:
    """Return a column to be read; the content of sealed rows as bytes, which always can be."""
    column = f"{table}{name}"
    if name != "content":
        return column
    return f"CASE WHEN {table}is_encrypted THEN CAST({column} AS BLOB) ELSE {column} END"


def mark_of(name: str) -> str:
    """Return the placeholder of a column's value: that of sealed contents is bytes."""
    return "CAST(? AS TEXT)" if name == "content" else "?"


INSERT_VECTOR = (
    "INSERT OR IGNORE INTO agent_memory_embeddings "
    "(entry_row, model, part, created_at, embedding) VALUES (?, ?, ?, ?, ?)"
)

MARK: Final = "\x1f"
"""First character of a shadow model's stored name; names have no control characters."""


def is_own(table: str = "") -> str:
    """Return the condition of the vectors of an agent's own model."""
    return f"(({table}model >= '{MARK}') = ({table}model >= ' '))"


IS_OWN: Final = is_own()

DELETE_SHADOW_VECTORS: Final = (
    f"DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND NOT {IS_OWN}"
)

AMONG = "row IN (SELECT value FROM json_each(?))"
BY_ROW = "NOT INDEXED"
"""Forces access by row, because the planner would read all rows of an agent to find a few."""


USER_KEY = "ifnull(user_id, '')"
"""As in the unique index of ids, which the planner chooses by this very text."""

_WHOLE = frozenset({int})
_FEW_ROWS = 16  # each number of rows is a statement of its own, and 100 are kept prepared


def among(rows: Sequence[int], column: str = "row") -> Condition:
    """Return the condition that a column is one of these numbers, in a faster form for a few."""
    if len(rows) > _FEW_ROWS:
        return f"{column} IN (SELECT value FROM json_each(?))", [[int(row) for row in rows]]
    return f"{column} IN ({', '.join('?' * len(rows))})", [int(row) for row in rows]


def integers(values: Sequence[Any]) -> list[int]:
    """Return stored integers; in a damaged file they may be anything.

    Raises:
        StoreCorruptError: If one is not an integer.
    """
    if not _WHOLE.issuperset(map(type, values)):
        raise StoreCorruptError(f"a stored number is not whole; {DAMAGED}")
    return list(values)
