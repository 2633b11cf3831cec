"""Building blocks of all SQL statements of the store.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mnemic.store.row_codec import COLUMN_NAMES, uuid_of

Columns = tuple[Any, ...]

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
