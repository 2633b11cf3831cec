"""What is said to SQLite: each function runs its statements on a connection it is lent.

Every statement that touches an agent's data names the agent. Values are always bound; the only
texts put together are the constants of this package.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingModelMismatchError,
    StorageQuotaExceededError,
    StoreCorruptError,
)
from mnemic.licensing import Quota
from mnemic.model import (
    All,
    AnyOf,
    Expression,
    LongTermMemoryStats,
    MemoryEntry,
    MemoryFilter,
    MemoryType,
    Not,
    RowBatch,
    RowFacts,
    Scope,
    TagUsage,
    Test,
)
from mnemic.store import filter_sql
from mnemic.store.records import (
    CHANGEABLE,
    COLUMNS,
    DAMAGED,
    from_microseconds,
    from_row,
    to_changed,
    to_microseconds,
)

Columns = tuple[Any, ...]
Model = tuple[str, int]
"""Name and dimension of an embedding model."""


class Charge(NamedTuple):
    """What a write adds to an agent's bytes, and how many it may have then."""

    size: int
    quota: Quota | None = None


NO_CHARGE = Charge(0)

KEPT_CHANGES = 100_000

_PRUNE_EVERY = 1024
_TOP_TAGS = 10
_LIVING = "forgotten_at IS NULL AND status = 0"
_PLACES = ", ".join("?" * len(COLUMNS.split(",")))
_ID, _CREATED_AT, _CONTENT = 1, 8, -1  # positions in COLUMNS
_AMONG = "row IN (SELECT value FROM json_each(?))"

_INSERT_ENTRY = (
    f"INSERT INTO agent_memory_entries ({COLUMNS}) VALUES ({_PLACES}) "
    "ON CONFLICT (agent_id, id) DO NOTHING RETURNING row"
)
_INSERT_VECTOR = (
    "INSERT OR IGNORE INTO agent_memory_embeddings "
    "(entry_row, model, part, created_at, embedding) VALUES (?, ?, 0, ?, ?)"
)
_INSERT_CHANGE = (
    "INSERT INTO agent_memory_changes (agent_id, seq, entry_row, entry_id, kind) "
    "VALUES (?, ?, ?, ?, ?)"
)
_ADVANCE = (
    "INSERT INTO agent_memory_agents (agent_id, seq, used_bytes, model, dimensions) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq = seq + excluded.seq, "
    "used_bytes = used_bytes + excluded.used_bytes, model = ifnull(model, excluded.model), "
    "dimensions = ifnull(dimensions, excluded.dimensions) "
    "RETURNING seq, used_bytes, model, dimensions"
)
_INDEXED = (
    "SELECT e.row, e.user_id, e.project_id, e.session_id, e.created_at, e.id, v.embedding "
    "FROM agent_memory_entries AS e {access} LEFT JOIN agent_memory_embeddings AS v "
    "ON v.entry_row = e.row AND v.model = ? AND v.part = 0 "
    f"WHERE e.agent_id = ? AND {_LIVING}"
)
# Named, because the planner would sort all rows, or read all of an agent's to find a few.
_BY_AGENT = "INDEXED BY agent_memory_entries_by_agent"
_BY_ROW = "NOT INDEXED"
_ALL_INDEXED = f"{_INDEXED.format(access=_BY_AGENT)} ORDER BY e.row"
_AGENT = "SELECT seq, pruned, model, dimensions FROM agent_memory_agents WHERE agent_id = ?"
_TOUCHED = "SELECT entry_row FROM agent_memory_changes WHERE agent_id = ? AND seq > ?"
_TOUCHED_INDEXED = f"{_INDEXED.format(access=_BY_ROW)} AND e.row IN ({_TOUCHED})"


def _inside(scope: Scope) -> tuple[str, list[Any]]:
    """Return the one WHERE that keeps a statement inside its walls, and its values."""
    where: str = "agent_id = ?"
    values: list[Any] = [scope.agent_id]
    if not scope.all_users:
        where, values = f"{where} AND user_id IS ?", [*values, scope.user_id]
    for column, value in (("project_id", scope.project_id), ("session_id", scope.session_id)):
        if value is not None:
            where, values = f"{where} AND {column} = ?", [*values, value]
    return where, values


def _json_array(rows: Sequence[int]) -> str:
    return msgspec.json.encode([int(row) for row in rows]).decode()


def _rows(connection: apsw.Connection, sql: str, values: Sequence[Any]) -> list[Columns]:
    try:
        return connection.execute(sql, tuple(values)).fetchall()
    except UnicodeDecodeError as error:
        raise StoreCorruptError(f"a stored text is not UTF-8 ({error}); {DAMAGED}") from error


# Reading


def entries_of_ids(
    connection: apsw.Connection, scope: Scope, ids: Sequence[UUID], *, include_forgotten: bool
) -> dict[UUID, MemoryEntry]:
    """Return the entries of these ids in the scope, forgotten ones too if asked for."""
    where, values = _inside(scope)
    living = "TRUE" if include_forgotten else _LIVING
    sql = f"SELECT {COLUMNS} FROM agent_memory_entries WHERE {where} AND {living} AND id = ?"
    found = [_rows(connection, sql, (*values, entry_id.bytes)) for entry_id in ids]
    entries = [from_row(rows[0]) for rows in found if rows]
    return {entry.id: entry for entry in entries}


def entries_of_rows(
    connection: apsw.Connection, scope: Scope, rows: Sequence[int]
) -> dict[int, MemoryEntry]:
    """Return the living entries of these rows in the scope."""
    where, values = _inside(scope)
    sql = (
        f"SELECT row, {COLUMNS} FROM agent_memory_entries {_BY_ROW} "
        f"WHERE {where} AND {_LIVING} AND {_AMONG}"
    )
    found = _rows(connection, sql, (*values, _json_array(rows)))
    return {columns[0]: from_row(columns[1:]) for columns in found}


def entries_matching(
    connection: apsw.Connection, scope: Scope, expression: Expression, page: MemoryFilter
) -> list[MemoryEntry]:
    """Return the entries of a scope for which a filter's tree is true, ordered and cut as asked.

    Archived and superseded ones are left out unless the filter asks for a status (C161).
    """
    where, values = _inside(scope)
    if not page.include_forgotten:
        where = f"{where} AND forgotten_at IS NULL"
    if not _asks_for_status(expression):
        where = f"{where} AND status = 0"
    condition, bound = filter_sql.compiled(expression)
    sql = (
        f"SELECT {COLUMNS} FROM agent_memory_entries WHERE {where} AND ({condition}) "
        f"ORDER BY {filter_sql.order_by(page.sort_by)} LIMIT ? OFFSET ?"
    )
    found = _rows(connection, sql, (*values, *bound, page.limit, page.offset))
    return [from_row(columns) for columns in found]


def _asks_for_status(expression: Expression) -> bool:
    match expression:
        case All(parts) | AnyOf(parts):
            return any(map(_asks_for_status, parts))
        case Not(part):
            return _asks_for_status(part)
        case Test(field):
            return field.name == "status"


def count(connection: apsw.Connection, scope: Scope) -> int:
    """Return how many living entries the scope has."""
    where, values = _inside(scope)
    sql = f"SELECT count(*) FROM agent_memory_entries WHERE {where} AND {_LIVING}"
    return int(_rows(connection, sql, values)[0][0])


def used_bytes(connection: apsw.Connection, agent_id: str) -> int:
    """Return how many bytes the agent's contents take, forgotten ones included (C085)."""
    sql = "SELECT used_bytes FROM agent_memory_agents WHERE agent_id = ?"
    found = _rows(connection, sql, (agent_id,))
    return int(found[0][0]) if found else 0


def stats(connection: apsw.Connection, agent_id: str) -> LongTermMemoryStats:
    """Return what the agent has; nothing of the embedder and of quota, which are not stored."""
    forgotten = _rows(
        connection,
        "SELECT count(*) FROM agent_memory_entries WHERE agent_id = ? AND forgotten_at IS NOT NULL",
        (agent_id,),
    )[0][0]
    kept = "FROM agent_memory_entries WHERE agent_id = ? AND forgotten_at IS NULL"
    types = _rows(
        connection, f"SELECT memory_type, count(*) {kept} GROUP BY memory_type", (agent_id,)
    )
    tags = _rows(
        connection,
        "SELECT tag.value, count(DISTINCT e.row) AS used FROM agent_memory_entries AS e, "
        "json_each(e.tags) AS tag WHERE e.agent_id = ? AND e.forgotten_at IS NULL "
        "GROUP BY tag.value ORDER BY used DESC, tag.value LIMIT ?",
        (agent_id, _TOP_TAGS),
    )
    oldest, newest = _rows(
        connection, f"SELECT min(created_at), max(created_at) {kept}", (agent_id,)
    )[0]
    return LongTermMemoryStats(
        active_entries=sum(number for _, number in types),
        forgotten_entries=forgotten,
        storage_bytes_used=used_bytes(connection, agent_id),
        entries_by_type={MemoryType(number): used for number, used in types},
        top_tags=tuple(TagUsage(tag, used) for tag, used in tags),
        oldest_entry=None if oldest is None else from_microseconds(oldest),
        newest_entry=None if newest is None else from_microseconds(newest),
    )


def contents(connection: apsw.Connection, agent_id: str, rows: Sequence[int]) -> dict[int, str]:
    """Return the texts of the living among these rows."""
    sql = (
        f"SELECT row, content FROM agent_memory_entries {_BY_ROW} "
        f"WHERE agent_id = ? AND {_LIVING} AND {_AMONG}"
    )
    found = _rows(connection, sql, (agent_id, _json_array(rows)))
    return {row: content for row, content in found}  # noqa: C416 - dict() loses the types


def embedding_model(connection: apsw.Connection, agent_id: str) -> Model | None:
    """Return the model of the agent's vectors, or None before any."""
    sql = (
        "SELECT model, dimensions FROM agent_memory_agents WHERE agent_id = ? AND model IS NOT NULL"
    )
    found = _rows(connection, sql, (agent_id,))
    return (found[0][0], found[0][1]) if found else None


def seq(connection: apsw.Connection, agent_id: str) -> int:
    """Return the number of the agent's last change, 0 before any."""
    sql = "SELECT seq FROM agent_memory_agents WHERE agent_id = ?"
    found = _rows(connection, sql, (agent_id,))
    return int(found[0][0]) if found else 0


def rows_since(
    connection: apsw.Connection, agent_id: str, model: Model, since: int | None
) -> RowBatch:
    """Return what changed after `since`, or everything if that cannot be told."""
    agent = _rows(connection, _AGENT, (agent_id,))
    last, pruned, *known = agent[0] if agent else (0, 0, None, None)
    _check_model(agent_id, known, model)
    if since is None or not pruned <= since <= last:
        living = _rows(connection, _ALL_INDEXED, (model[0], agent_id))
        return _batch(None, last, living, set(), model[1])
    touched = {row for (row,) in _rows(connection, _TOUCHED, (agent_id, since))}
    living = _rows(connection, _TOUCHED_INDEXED, (model[0], agent_id, agent_id, since))
    return _batch(since, last, living, touched, model[1])


def _batch(
    since: int | None, seq: int, living: list[Columns], touched: set[int], dim: int
) -> RowBatch:
    embedded = [columns for columns in living if columns[-1] is not None]
    return RowBatch(
        since=since,
        seq=seq,
        facts=[RowFacts(*columns[:-1]) for columns in embedded],
        vectors=_vectors([columns[-1] for columns in embedded], dim),
        gone=sorted(touched.difference(columns[0] for columns in living)),
        unembedded=[columns[0] for columns in living if columns[-1] is None],
    )


def _vectors(blobs: list[bytes], dim: int) -> NDArray[np.float32]:
    if any(len(blob) != 4 * dim for blob in blobs):
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {DAMAGED}")
    flat = np.frombuffer(b"".join(blobs), dtype="<f4").astype(np.float32, copy=False)
    return flat.reshape(len(blobs), dim)


# Writing


def add(
    connection: apsw.Connection,
    agent_id: str,
    entries: Sequence[tuple[Columns, bytes | None]],
    model: Model | None,
    quota: Quota | None,
) -> tuple[int, list[int]]:
    """Insert entries with the vectors they carry; return their last change and their rows."""
    rows = [
        (_insert_entry(connection, agent_id, columns), columns, vector)
        for columns, vector in entries
    ]
    if model is not None:
        vectors = [
            (row, model[0], columns[_CREATED_AT], vector)
            for row, columns, vector in rows
            if vector is not None
        ]
        connection.executemany(_INSERT_VECTOR, vectors)
    changed = [(row, columns[_ID]) for row, columns, _ in rows]
    size = sum(_size(columns[_CONTENT]) for columns, _ in entries)
    charge = Charge(size, quota)
    seq = _log_changes(connection, agent_id, changed, "add", model, charge=charge)
    return seq, [row for row, _ in changed]


def add_embeddings(
    connection: apsw.Connection, agent_id: str, vectors: dict[int, bytes], model: Model
) -> None:
    """Insert vectors for those of these rows that the agent has."""
    sql = (
        f"SELECT row, id, created_at FROM agent_memory_entries {_BY_ROW} "
        f"WHERE agent_id = ? AND {_AMONG}"
    )
    found = _rows(connection, sql, (agent_id, _json_array(list(vectors))))
    connection.executemany(
        _INSERT_VECTOR,
        [(row, model[0], created_at, vectors[row]) for row, _, created_at in found],
    )
    changed = [(row, entry_id) for row, entry_id, _ in found]
    _log_changes(connection, agent_id, changed, "embed", model)


def forget(connection: apsw.Connection, scope: Scope, entry_id: UUID, now: int) -> bool:
    """Mark an entry as forgotten unless it already is; return whether the scope has it (C097)."""
    where, values = _inside(scope)
    found = _rows(
        connection,
        f"SELECT row, forgotten_at FROM agent_memory_entries WHERE {where} AND id = ?",
        (*values, entry_id.bytes),
    )
    if not found:
        return False
    row, forgotten_at = found[0]
    if forgotten_at is None:
        connection.execute(
            f"UPDATE agent_memory_entries SET forgotten_at = ? WHERE {where} AND row = ?",
            (now, *values, row),
        )
        _log_changes(connection, scope.agent_id, [(row, entry_id.bytes)], "forget", None)
    return True


def restore(connection: apsw.Connection, scope: Scope, entry_id: UUID, oldest: int) -> bool:
    """Take a forgotten entry back unless it was forgotten before `oldest`."""
    where, values = _inside(scope)
    restored = _rows(
        connection,
        f"UPDATE agent_memory_entries SET forgotten_at = NULL "
        f"WHERE {where} AND id = ? AND forgotten_at >= ? RETURNING row",
        (*values, entry_id.bytes, oldest),
    )
    if restored:
        changed = [(restored[0][0], entry_id.bytes)]
        _log_changes(connection, scope.agent_id, changed, "restore", None)
    return bool(restored)


def delete(connection: apsw.Connection, scope: Scope, entry_id: UUID) -> bool:
    """Delete an entry, forgotten or not, with its vectors and links."""
    where, values = _inside(scope)
    return bool(
        _delete(connection, scope.agent_id, f"{where} AND id = ?", (*values, entry_id.bytes))
    )


def forget_all(connection: apsw.Connection, scope: Scope, now: int) -> int:
    """Mark all entries of a scope as forgotten that are not; return how many."""
    where, values = _inside(scope)
    forgotten = _rows(
        connection,
        f"UPDATE agent_memory_entries SET forgotten_at = ? "
        f"WHERE {where} AND forgotten_at IS NULL RETURNING row, id",
        (now, *values),
    )
    if forgotten:
        changed = [(row, entry_id) for row, entry_id in forgotten]
        _log_changes(connection, scope.agent_id, changed, "forget", None)
    return len(forgotten)


def delete_all(connection: apsw.Connection, scope: Scope) -> int:
    """Delete all entries of a scope, forgotten or not; return how many."""
    where, values = _inside(scope)
    return _delete(connection, scope.agent_id, where, values)


def purge(connection: apsw.Connection, agent_id: str, oldest: int) -> int:
    """Delete what was forgotten before `oldest`; return how many entries that were."""
    where = "agent_id = ? AND forgotten_at < ?"
    return _delete(connection, agent_id, where, (agent_id, oldest))


def _delete(connection: apsw.Connection, agent_id: str, where: str, values: Sequence[Any]) -> int:
    sql = f"DELETE FROM agent_memory_entries WHERE {where} RETURNING row, id, octet_length(content)"
    deleted = _rows(connection, sql, values)
    if deleted:
        changed = [(row, entry_id) for row, entry_id, _ in deleted]
        freed = Charge(-sum(size for *_, size in deleted))
        _log_changes(connection, agent_id, changed, "delete", None, charge=freed)
    return len(deleted)


def update(
    connection: apsw.Connection,
    scope: Scope,
    entry_id: UUID,
    change: Callable[[MemoryEntry], MemoryEntry],
    vector: tuple[Model, bytes] | None,
    *,
    quota: Quota | None,
) -> MemoryEntry | None:
    """Change a living entry; a new content takes the old vectors away, and brings its own."""
    where, values = _inside(scope)
    sql = f"SELECT row, {COLUMNS} FROM agent_memory_entries WHERE {where} AND {_LIVING} AND id = ?"
    found = _rows(connection, sql, (*values, entry_id.bytes))
    if not found:
        return None
    row, before = found[0][0], from_row(found[0][1:])
    after = change(before)
    connection.execute(
        f"UPDATE agent_memory_entries SET {CHANGEABLE} WHERE {where} AND row = ?",
        (*to_changed(after), *values, row),
    )
    model = None
    if after.content != before.content:
        connection.execute("DELETE FROM agent_memory_embeddings WHERE entry_row = ?", (row,))
        if vector is not None:
            model, blob = vector
            now = to_microseconds(after.updated_at)
            connection.execute(_INSERT_VECTOR, (row, model[0], now, blob))
    charge = Charge(_size(after.content) - _size(before.content), quota)
    _log_changes(
        connection, scope.agent_id, [(row, entry_id.bytes)], "update", model, charge=charge
    )
    return after


def _insert_entry(connection: apsw.Connection, agent_id: str, columns: Columns) -> int:
    inserted = _rows(connection, _INSERT_ENTRY, columns)
    if not inserted:
        raise DuplicateEntryError(
            f"a memory with id {UUID(bytes=columns[_ID])} is already stored for agent {agent_id!r}"
        )
    return int(inserted[0][0])


def _log_changes(
    connection: apsw.Connection,
    agent_id: str,
    changed: Sequence[tuple[int, bytes]],
    kind: str,
    model: Model | None,
    *,
    charge: Charge = NO_CHARGE,
) -> int:
    """Number changes in the agent's own row (C163), prune old ones, return the last number."""
    last = _advance(connection, agent_id, len(changed), model, charge)
    first = last - len(changed) + 1
    connection.executemany(
        _INSERT_CHANGE,
        [
            (agent_id, seq, row, entry_id, kind)
            for seq, (row, entry_id) in enumerate(changed, start=first)
        ],
    )
    mark = last - KEPT_CHANGES
    if mark > 0 and last // _PRUNE_EVERY != (first - 1) // _PRUNE_EVERY:
        _prune_changes(connection, agent_id, mark)
    return last


def _advance(
    connection: apsw.Connection, agent_id: str, steps: int, model: Model | None, charge: Charge
) -> int:
    values = (agent_id, steps, charge.size, *(model or (None, None)))
    ((last, used, *known),) = _rows(connection, _ADVANCE, values)
    if model is not None:
        _check_model(agent_id, known, model)
    quota = charge.quota
    if quota is not None and charge.size > 0 and used > quota.limit:
        raise StorageQuotaExceededError(used - charge.size, quota.limit, quota.tier)
    return int(last)


def _size(content: str) -> int:
    """Return what a content counts (C084)."""
    return len(content.encode())


def _check_model(agent_id: str, known: list[Any], model: Model) -> None:
    if known[0] is not None and tuple(known) != model:
        raise EmbeddingModelMismatchError(
            f"agent {agent_id!r} has vectors of {known[0]!r} with {known[1]} dimensions; "
            f"those of {model[0]!r} with {model[1]} cannot be stored beside them"
        )


def _prune_changes(connection: apsw.Connection, agent_id: str, mark: int) -> None:
    connection.execute(
        "DELETE FROM agent_memory_changes WHERE agent_id = ? AND seq <= ?", (agent_id, mark)
    )
    connection.execute(
        "UPDATE agent_memory_agents SET pruned = ? WHERE agent_id = ?", (mark, agent_id)
    )
