"""Building blocks of statements: columns, states, scopes.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from mnemic.model import Scope
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.session import Condition

ENTRIES: Final = "mnemic.agent_memory_entries"
LINKS: Final = "mnemic.agent_memory_links"
EMBEDDINGS: Final = "mnemic.agent_memory_embeddings"

HAS_ACTIVE_STATUS: Final = "forgotten_at IS NULL AND status = 0"
"""Condition of entries that an index of active ones has, expired ones included."""

IS_PRESENT: Final = "forgotten_at IS NULL AND (expires_at IS NULL OR expires_at > ?)"
"""Condition of entries that are neither deleted nor expired; the value to bind is the time now."""

IS_ACTIVE: Final = "forgotten_at IS NULL AND status = 0 AND (expires_at IS NULL OR expires_at > ?)"
"""The same, without archived and superseded entries: those that can be found."""

IS_NOT_SUPERSEDED: Final = f"{IS_PRESENT} AND status <> 2"
"""The same, archived entries included."""


def in_scope(scope: Scope) -> Condition:
    """Return the condition that restricts a statement to a scope."""
    where: str = "agent_id = ?"
    values: list[Any] = [scope.agent_id]
    if not scope.all_users:
        where, values = _of_user(where, values, scope.user_id)
    for column, value in (("project_id", scope.project_id), ("session_id", scope.session_id)):
        if value is not None:
            where, values = f"{where} AND {column} = ?", [*values, value]
    return where, values


def _of_user(where: str, values: list[Any], user_id: str | None) -> Condition:
    # No index of PostgreSQL serves IS NOT DISTINCT FROM.
    if user_id is None:
        return f"{where} AND user_id IS NULL", values
    return f"{where} AND user_id = ?", [*values, user_id]


def visible(codec: RowCodec) -> str:
    """Return the condition of rows that a codec can read: sealed ones need a key."""
    return "true" if codec.seals else "NOT is_encrypted"


def visible_in(scope: Scope, codec: RowCodec) -> Condition:
    """Return `in_scope` without rows that a codec cannot read."""
    where, values = in_scope(scope)
    return f"{where} AND {visible(codec)}", values


def with_id(dialect: Dialect, scope: Scope, entry_id: UUID) -> Condition:
    """Return `in_scope` for an id: at most one entry, unless the scope is of all users."""
    return _with_id(dialect, scope, "id = ?", entry_id)


def with_ids(dialect: Dialect, scope: Scope, ids: Sequence[UUID]) -> Condition:
    """Return `in_scope` for ids: at most one entry of each, unless the scope is of all users."""
    if len(ids) == 1:
        return with_id(dialect, scope, ids[0])
    return _with_id(dialect, scope, dialect.among_ids(), list(ids))


def _with_id(
    dialect: Dialect, scope: Scope, is_wanted: str, wanted: UUID | list[UUID]
) -> Condition:
    where, values = in_scope(scope)
    where, values = f"{where} AND {is_wanted}", [*values, wanted]
    if scope.all_users:
        return where, values
    return f"{where} AND {dialect.user_key} = ?", [*values, scope.user_id or ""]


def cut(limit: int, offset: int) -> tuple[int, int]:
    """Return a limit and an offset as they are bound: no table has more rows than they can say."""
    return min(limit, sys.maxsize), min(offset, sys.maxsize)


def assigned(names: Iterable[str]) -> str:
    """Return assignments of columns, of which a sealed content may be bytes."""
    marks = {"content": "CAST(? AS text)"}
    return ", ".join(f"{name} = {marks.get(name, '?')}" for name in names)
