"""Building blocks of all SQL statements of the store.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from mnemic.model import Scope
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec, uuid_of
from mnemic.store.sql.session import Condition

Columns = tuple[Any, ...]

ENTRIES: Final = "mnemic.agent_memory_entries"
EMBEDDINGS: Final = "mnemic.agent_memory_embeddings"
SEALED_VECTORS: Final = "mnemic.agent_memory_sealed_vectors"
LINKS: Final = "mnemic.agent_memory_links"

COLUMNS: Final = ", ".join(COLUMN_NAMES)
"""The columns of an entry, in the order of its codec."""

ROW: Final = f"row, {COLUMNS}"
"""A row's number and its columns."""

MORE: Final = ("fingerprint", "idempotency_key", "key_fingerprint")
STORED_ROW: Final = f"{ROW}, {', '.join(MORE)}"
"""A row's number, its columns, and its fingerprint and idempotency key."""

IS_ACTIVE: Final = "forgotten_at IS NULL AND status = 0 AND (expires_at IS NULL OR expires_at > %s)"
"""Condition of entries that can be found; the value to bind is the time now."""

HAS_ACTIVE_STATUS: Final = "forgotten_at IS NULL AND status = 0"
"""Condition of entries that an index of active ones has, expired ones included."""

IS_PRESENT: Final = "forgotten_at IS NULL AND (expires_at IS NULL OR expires_at > %s)"
"""The same, archived and superseded entries included."""

AMONG: Final = "row = ANY(%s)"
USER_KEY: Final = "coalesce(user_id, '')"


def lacks(rows: str) -> str:
    """Return the condition that a row has none of some rows of another table, an anti-join.

    It is evaluated row by row. Of NOT EXISTS the server may make a join that compares every row
    with every other, as long as a table has no statistics.

    Args:
        rows: The other rows, from FROM on; they name the row that has them.
    """
    return f"(SELECT true {rows} LIMIT 1) IS NULL"


_VECTOR: Final = "AS v WHERE v.agent_id = %s AND entry_row = row AND model = %s AND part = 0"

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


def in_scope(scope: Scope) -> Condition:
    """Return the condition that restricts a statement to a scope."""
    where: str = "agent_id = %s"
    values: list[Any] = [scope.agent_id]
    if not scope.all_users:
        where, values = _with_user(where, values, scope.user_id)
    for column, value in (("project_id", scope.project_id), ("session_id", scope.session_id)):
        if value is not None:
            where, values = f"{where} AND {column} = %s", [*values, value]
    return where, values


def _with_user(where: str, values: list[Any], user_id: str | None) -> Condition:
    # No index serves IS NOT DISTINCT FROM.
    if user_id is None:
        return f"{where} AND user_id IS NULL", values
    return f"{where} AND user_id = %s", [*values, user_id]


def visible(codec: RowCodec) -> str:
    """Return the condition of rows that a codec can read: sealed ones need a key."""
    return "true" if codec.seals else "NOT is_encrypted"


def visible_in(scope: Scope, codec: RowCodec) -> Condition:
    """Return `in_scope` without rows that a codec cannot read."""
    where, values = in_scope(scope)
    return f"{where} AND {visible(codec)}", values


def with_id(scope: Scope, entry_id: UUID) -> Condition:
    """Return `in_scope` for an id: at most one entry, unless the scope is of all users."""
    where, values = in_scope(scope)
    return f"{where} AND id = %s", [*values, entry_id]
