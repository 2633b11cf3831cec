"""The numbered changes of an agent: written with every change, read by index synchronisation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mnemic.crypto.envelope import OVERHEAD
from mnemic.errors import StoreCorruptError
from mnemic.model import LinkType, Scope
from mnemic.model.rows import Record, RowBatch, State
from mnemic.protocols import UserLimit
from mnemic.store.base import BatchSink
from mnemic.store.changes import (
    Change,
    CollectedBatch,
    UserTotals,
    full_batch,
    last_dropped,
    totals_by_user,
)
from mnemic.store.embedding_model import check_model
from mnemic.store.pending_accesses import RowAccesses
from mnemic.store.postgres.session import Columns, Session, uuids
from mnemic.store.postgres.sql import (
    EMBEDDINGS,
    ENTRIES,
    HAS_ACTIVE_STATUS,
    LINKS,
    ROW,
    SEALED_VECTORS,
    in_scope,
    visible,
)
from mnemic.store.postgres.stored import CHANGED, records_of
from mnemic.store.postgres.vectors import Vectors, sealed_vectors
from mnemic.store.quota import NO_QUOTAS, Quotas, check_quota, check_user_quota
from mnemic.store.row_codec import RowCodec, sealed_ids
from mnemic.store.sql.session import Condition
from mnemic.store.values import AccessedRows, LogPosition, Model

_AGENTS: Final = "mnemic.agent_memory_agents"
_USERS: Final = "mnemic.agent_memory_walls"
_CHANGES: Final = "mnemic.agent_memory_changes"
_PART: Final = 8192
"""Rows that a full load reads at once."""

_ADVANCE: Final = (
    f"INSERT INTO {_AGENTS} AS agent (agent_id, seq, used_bytes, model, dimensions, time_zone) "
    "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (agent_id) DO UPDATE SET "
    "seq = agent.seq + excluded.seq, used_bytes = agent.used_bytes + excluded.used_bytes, "
    "model = coalesce(agent.model, excluded.model), "
    "dimensions = coalesce(agent.dimensions, excluded.dimensions), "
    "time_zone = coalesce(agent.time_zone, excluded.time_zone) "
    "RETURNING seq, accesses, used_bytes, model, dimensions"
)
_ADVANCE_USERS: Final = (
    f"INSERT INTO {_USERS} AS wall (agent_id, user_key, revision, used_bytes) "
    "SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) "
    "ON CONFLICT (agent_id, user_key) DO UPDATE SET "
    "revision = wall.revision + excluded.revision, "
    "used_bytes = wall.used_bytes + excluded.used_bytes RETURNING user_key, used_bytes"
)
_INSERT: Final = (
    f"INSERT INTO {_CHANGES} (agent_id, seq, entry_row, entry_id, kind, user_id) "
    "SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::uuid[], %s::text[], %s::text[])"
)
_HAS_VECTORS: Final = (
    f"SELECT EXISTS (SELECT 1 FROM {EMBEDDINGS} WHERE agent_id = %s AND model = %s "
    "AND NOT is_companion AND {pgvector}.vector_dims(embedding) = %s) "
    f"OR EXISTS (SELECT 1 FROM {SEALED_VECTORS} WHERE agent_id = %s AND model = %s "
    f"AND octet_length(sealed) = 4 * %s + {OVERHEAD})"
)
_HAS_STATE: Final = {
    State.ACTIVE: HAS_ACTIVE_STATUS,
    State.INACTIVE: "forgotten_at IS NULL AND status <> 0",
    State.DELETED: "forgotten_at IS NOT NULL",
}
_LINK: Final = "l.from_row, l.to_row, l.type, l.strength"
_OF_SOURCES: Final = (
    f"SELECT {_LINK} FROM {LINKS} AS l JOIN {ENTRIES} AS e "
    "ON e.agent_id = l.agent_id AND e.row = l.from_row WHERE l.agent_id = %s"
)
# A link to a row in another state leads on to what superseded it.
_IS_SUPERSESSION: Final = f"l.type = {int(LinkType.SUPERSEDES)}"


def position(session: Session, agent_id: str) -> LogPosition:
    """Return an agent's position in its logs, (0, 0) before anything is stored."""
    found = session.fetch(f"SELECT seq, accesses FROM {_AGENTS} WHERE agent_id = %s", (agent_id,))
    return LogPosition(*found[0]) if found else LogPosition(0, 0)


def _agent(session: Session, agent_id: str) -> tuple[int, int, list[Any]]:
    """Return the last change number, the last pruned one, and the model with its dimension."""
    sql = f"SELECT seq, pruned, model, dimensions FROM {_AGENTS} WHERE agent_id = %s"
    found = session.fetch(sql, (agent_id,))
    if not found:
        return 0, 0, [None, None]
    seq, pruned, *model = found[0]
    return seq, pruned, model


def position_and_revision(session: Session, scope: Scope) -> tuple[LogPosition, int]:
    """Return an agent's position and the revision of a scope's user."""
    if scope.all_users:
        stands = position(session, scope.agent_id)
        return stands, stands.seq
    sql = (
        f"SELECT seq, accesses, (SELECT revision FROM {_USERS} AS wall "
        "WHERE wall.agent_id = agent.agent_id AND user_key = %s) "
        f"FROM {_AGENTS} AS agent WHERE agent_id = %s"
    )
    found = session.fetch(sql, (scope.user_id or "", scope.agent_id))
    return (LogPosition(*found[0][:2]), found[0][2] or 0) if found else (LogPosition(0, 0), 0)


def revision(session: Session, scope: Scope) -> int:
    """Return the number of changes within a scope's user, 0 before any."""
    return position_and_revision(session, scope)[1]


def used_bytes(session: Session, agent_id: str) -> int:
    """Return the bytes of the agent's contents, deleted entries included."""
    sql = f"SELECT used_bytes FROM {_AGENTS} WHERE agent_id = %s"
    found = session.fetch(sql, (agent_id,))
    return int(found[0][0]) if found else 0


def used_by_user(session: Session, agent_id: str, user_id: str | None) -> int:
    """Return the bytes of a user's contents, deleted entries included."""
    sql = f"SELECT used_bytes FROM {_USERS} WHERE agent_id = %s AND user_key = %s"
    found = session.fetch(sql, (agent_id, user_id or ""))
    return int(found[0][0]) if found else 0


def changed_rows_since(session: Session, agent_id: str, since: int) -> list[int] | None:
    """Return the rows changed after a change number, or None if the log has dropped some."""
    last, pruned, _ = _agent(session, agent_id)
    if not pruned <= since <= last:
        return None
    sql = f"SELECT DISTINCT entry_row FROM {_CHANGES} WHERE agent_id = %s AND seq > %s"
    return [row for (row,) in session.fetch(sql, (agent_id, since))]


def embedding_model(session: Session, agent_id: str) -> Model | None:
    """Return the model of the agent's vectors; None if it has none."""
    name, dimensions = _agent(session, agent_id)[2]
    if name is None or not _has_vectors(session, agent_id, (name, dimensions)):
        return None
    return name, dimensions


def time_zone(session: Session, agent_id: str) -> str | None:
    """Return the name of the agent's time zone; None if it has none."""
    found = session.fetch(f"SELECT time_zone FROM {_AGENTS} WHERE agent_id = %s", (agent_id,))
    return found[0][0] if found else None


def _has_vectors(session: Session, agent_id: str, model: Sequence[Any]) -> bool:
    sql = _HAS_VECTORS.format(pgvector=session.pgvector)
    return bool(session.value(sql, (agent_id, *model, agent_id, *model)))


def _check_model(session: Session, agent_id: str, known: Sequence[Any], model: Model) -> bool:
    """Return whether the model is another one than the recorded one, which has no vectors."""
    is_new = known[0] is not None and tuple(known) != model
    if is_new and _has_vectors(session, agent_id, known):
        check_model(agent_id, known, model)
    return is_new


def log_changes(
    session: Session,
    agent_id: str,
    changes: Sequence[Change],
    model: Model | None = None,
    quotas: Quotas = NO_QUOTAS,
    *,
    time_zone: str | None = None,
) -> int:
    """Number changes in the agent's row and in those of its users; prune old changes.

    Returns:
        The agent's last change number.

    Raises:
        EmbeddingModelMismatchError: If the agent's vectors come from another model.
        StorageQuotaExceededError: If the changes exceed the quota of the agent or of a user.
    """
    users = totals_by_user(changes)
    session.changed_users.update((agent_id, user.user_id) for user in users)
    now = _advance(session, agent_id, users, model, quotas, time_zone=time_zone)
    last, _ = session.positions[agent_id] = now
    first = last - len(changes) + 1
    columns: tuple[list[Any], ...] = tuple(map(list, zip(*changes, strict=True)))
    rows, ids, kinds, user_ids, _ = columns
    numbers = list(range(first, last + 1))
    session.run(_INSERT, (agent_id, numbers, rows, uuids(ids), kinds, user_ids))
    mark = last_dropped(first, last)
    if mark is not None:
        session.run(f"DELETE FROM {_CHANGES} WHERE agent_id = %s AND seq <= %s", (agent_id, mark))
        session.run(f"UPDATE {_AGENTS} SET pruned = %s WHERE agent_id = %s", (mark, agent_id))
    return last


def _advance(
    session: Session,
    agent_id: str,
    users: Sequence[UserTotals],
    model: Model | None,
    quotas: Quotas,
    *,
    time_zone: str | None,
) -> LogPosition:
    """Count changes in the agent's row and in those of its users; check quotas and model."""
    names, steps, sizes = map(list, zip(*users, strict=True))
    by_user = agent_id, [name or "" for name in names], steps, sizes
    in_all = agent_id, sum(steps), sum(sizes), *(model or (None, None)), time_zone
    user_bytes, ((last, accesses, used, *known),) = session.fetch_each(
        (_ADVANCE_USERS, by_user), (_ADVANCE, in_all)
    )
    _check_user_quotas(users, dict(user_bytes), quotas.user)
    if model is not None and _check_model(session, agent_id, known, model):
        sql = f"UPDATE {_AGENTS} SET model = %s, dimensions = %s WHERE agent_id = %s"
        session.run(sql, (*model, agent_id))
    check_quota(quotas.agent, used - sum(sizes), sum(sizes))
    return LogPosition(last, accesses)


def _check_user_quotas(
    users: Sequence[UserTotals], used: Mapping[str, int], quota: UserLimit | None
) -> None:
    for user_id, _, size in users:
        check_user_quota(quota, user_id, used[user_id or ""] - size, size)


def rows_since(
    session: Session,
    agent_id: str,
    model: Model | None,
    since: int | None,
    sink: BatchSink | None = None,
    *,
    codec: RowCodec,
    state: State = State.ACTIVE,
    with_sensitive: bool = False,
    hold: Callable[[list[Columns]], object] | None = None,
) -> RowBatch:
    """Return the changes after `since`, or all rows if the log has dropped some of them."""
    last, pruned, known = _agent(session, agent_id)
    if model is not None:
        _check_model(session, agent_id, known, model)
    reaches_back = since is not None and pruned <= since <= last
    sql = f"SELECT entry_row, kind FROM {_CHANGES} WHERE agent_id = %s AND seq > %s"
    changes = session.fetch(sql, (agent_id, since)) if reaches_back else []
    has_switched = model is not None and any(kind == "switch" for _, kind in changes)
    if not reaches_back or has_switched:
        collected = sink or CollectedBatch()
        everything = Scope(agent_id, all_users=True)
        return _full_batch(
            session, everything, model, last, collected, codec=codec, state=state, hold=hold
        )
    changed = {row for row, _ in changes}
    replaced = {row for row, kind in changes if kind == "replace"}
    touched = sorted(changed | (_sensitive_rows(session, agent_id) if with_sensitive else set()))
    here = (agent_id, touched)
    where = "agent_id = %s AND row = ANY(%s)"
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} AND {_HAS_STATE[state]}"
    records = records_of(codec, session.fetch(sql, here))
    current = {columns[0] for columns in records}
    embedded = _embedded(session, codec, agent_id, records, model)
    links = session.fetch(
        f"SELECT {_LINK} FROM {LINKS} AS l WHERE agent_id = %s AND from_row = ANY(%s)",
        (agent_id, sorted(current)),
    )
    others = sorted(set(touched) - current)
    kept: set[int] = set()
    if others:
        sql = f"SELECT row FROM {ENTRIES} WHERE {where}"
        kept = {row for (row,) in session.fetch(sql, (agent_id, others))}
        if state is State.ACTIVE:
            sql = f"{_OF_SOURCES} AND {_IS_SUPERSESSION} AND l.from_row = ANY(%s)"
            links += session.fetch(sql, (agent_id, others))
    return RowBatch(
        since=since,
        seq=last,
        records=records,
        embedded=[row for row, own in embedded.items() for _ in own],
        vectors=_stacked([vector for own in embedded.values() for vector in own], model)
        if embedded
        else None,
        removed=sorted((set(touched) - current) | replaced),
        linked=sorted(current | kept),
        links=links,
    )


def _embedded(
    session: Session, codec: RowCodec, agent_id: str, records: list[Record], model: Model | None
) -> dict[int, Vectors]:
    """Return the vectors of rows by row; zeros for a row with a broken one."""
    if model is None:
        return {}
    name, dimensions = model
    sealed = sealed_ids(records)
    rows = sorted(row for row, *_ in records)
    found = session.vectors(agent_id, rows, name)  # zeros of sealed rows too
    if not sealed:
        return found
    return found | sealed_vectors(session, codec, agent_id, sealed, name, dimensions=dimensions)


def _sensitive_rows(session: Session, agent_id: str) -> set[int]:
    sql = f"SELECT row FROM {ENTRIES} WHERE agent_id = %s AND (is_sensitive OR is_encrypted)"
    return {row for (row,) in session.fetch(sql, (agent_id,))}


def _stacked(vectors: list[NDArray[np.float32]], model: Model | None) -> NDArray[np.float32]:
    dim = model[1] if model else 0
    if not {dim}.issuperset(vector.size for vector in vectors):
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {CHANGED}")
    return np.stack(vectors) if vectors else np.empty((0, dim), dtype=np.float32)


def rows_of(
    session: Session, codec: RowCodec, scope: Scope, model: Model | None
) -> tuple[RowBatch, list[Columns]]:
    """Return the active rows of a scope with their vectors and links, and their columns."""
    rows: list[Columns] = []
    sink = CollectedBatch()
    batch = _full_batch(
        session, scope, model, 0, sink, codec=codec, state=State.ACTIVE, hold=rows.extend
    )
    return batch, rows


def _full_batch(
    session: Session,
    scope: Scope,
    model: Model | None,
    seq: int,
    sink: BatchSink,
    *,
    codec: RowCodec,
    state: State,
    hold: Callable[[list[Columns]], object] | None,
) -> RowBatch:
    has_rows, sealed = False, dict[int, bytes]()
    selected = in_scope(scope)
    where, values = f"{selected[0]} AND {visible(codec)} AND {_HAS_STATE[state]}", selected[1]
    sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {where} ORDER BY row"
    for rows in session.batches(sql, values, _PART):
        records = records_of(codec, rows)
        sealed |= sealed_ids(records)
        sink.add_records(records)
        if hold is not None:
            hold(rows)
        has_rows = True
    if model is not None and has_rows:
        for numbers, vectors in chain(
            _vector_batches(session, (where, values), model),
            _sealed_batches(session, codec, scope.agent_id, sealed, model),
        ):
            sink.add_vectors(numbers, vectors)
    links: list[Columns] = []
    if state is State.ACTIVE:
        sources = f"SELECT agent_id, row, status, forgotten_at FROM {ENTRIES} WHERE {selected[0]}"
        links = session.fetch(
            f"SELECT {_LINK} FROM {LINKS} AS l JOIN ({sources}) AS e "
            "ON e.agent_id = l.agent_id AND e.row = l.from_row "
            f"WHERE {_IS_SUPERSESSION} OR ({_HAS_STATE[State.ACTIVE]})",
            values,
        )
    return full_batch(seq, sink, links)


# A COPY in binary format: a signature with flags, the rows, and a mark of two bytes. Each row has
# its number of columns, and before each column its size; a vector begins with its dimension.
_COPY_HEADER: Final = 19
_COPY_END: Final = 2


def _vector_batches(
    session: Session, selected: Condition, model: Model
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Yield the vectors in plain text of the rows of a condition; the chunks of a row together."""
    (where, values), (name, dim) = selected, model
    sql = (
        f"SELECT entry_row, embedding FROM {EMBEDDINGS} AS v JOIN {ENTRIES} AS e USING (agent_id) "
        f"WHERE {where} AND (NOT is_encrypted OR "
        f"{session.pgvector}.vector_norm(embedding) = 0) "
        "AND e.row = v.entry_row AND model = %s AND NOT is_companion ORDER BY entry_row, part"
    )
    data = session.copied(sql, (*values, name))
    row = np.dtype(
        [
            ("columns", ">i2"),
            ("row_size", ">i4"),
            ("row", ">i8"),
            ("vector_size", ">i4"),
            ("dim", ">i2"),
            ("unused", ">i2"),
            ("vector", ">f4", (dim,)),
        ]
    )
    size = len(data) - _COPY_HEADER - _COPY_END
    if size % row.itemsize:
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {CHANGED}")
    table = np.frombuffer(data, row, count=size // row.itemsize, offset=_COPY_HEADER)
    if not (table["dim"] == dim).all():
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {CHANGED}")
    rows = table["row"].astype(np.int64)
    begin = 0
    while begin < len(rows):
        end = min(begin + _PART, len(rows))
        while end < len(rows) and rows[end] == rows[end - 1]:
            end += 1
        yield rows[begin:end], table["vector"][begin:end].astype(np.float32)
        begin = end


def _sealed_batches(
    session: Session, codec: RowCodec, agent_id: str, sealed: Mapping[int, bytes], model: Model
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """Yield the vectors of sealed rows in batches, in plain text; zeros for broken ones."""
    rows, (name, dimensions) = sorted(sealed), model
    for first in range(0, len(rows), _PART):
        part = {row: sealed[row] for row in rows[first : first + _PART]}
        found = sealed_vectors(session, codec, agent_id, part, name, dimensions=dimensions)
        if found:
            numbers = [row for row, own in found.items() for _ in own]
            vectors = _stacked([vector for own in found.values() for vector in own], model)
            yield np.array(numbers, dtype=np.int64), vectors


def accesses_since(session: Session, agent_id: str, accesses: int) -> AccessedRows:
    """Return the accesses written after a number of access writes, also of deleted entries."""
    now = position(session, agent_id)
    since = accesses if accesses <= now.accesses else 0
    sql = (
        f"SELECT row, last_accessed_at, access_count FROM {ENTRIES} "
        "WHERE agent_id = %s AND access_seq > %s"
    )
    rows = session.fetch(sql, (agent_id, since))
    return AccessedRows(now, [(row, last, count) for row, last, count in rows])


_MAX_COUNT: Final = 2**63 - 1
_ADVANCE_ACCESSES: Final = (
    f"UPDATE {_AGENTS} SET accesses = accesses + 1 WHERE agent_id = %s RETURNING seq, accesses"
)
_COUNT: Final = (
    f"UPDATE {ENTRIES} AS e SET "
    f"access_count = least(e.access_count, {_MAX_COUNT} - u.number) + u.number, "
    "last_accessed_at = greatest(e.last_accessed_at, u.last), access_seq = %s "
    "FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) AS u (row, number, last) "
    "WHERE e.agent_id = %s AND e.row = u.row"
)


def write_accesses(session: Session, accesses: RowAccesses) -> None:
    """Write accesses; entries that no longer exist are skipped."""
    by_agent: dict[str, list[tuple[int, int, int]]] = {}
    for (agent_id, row), (number, last) in accesses.items():
        by_agent.setdefault(agent_id, []).append((row, number, last))
    for agent_id, counted in by_agent.items():
        for position in session.fetch(_ADVANCE_ACCESSES, (agent_id,)):
            now = session.positions[agent_id] = LogPosition(*position)
            rows, numbers, times = (list(column) for column in zip(*counted, strict=True))
            session.run(_COUNT, (now.accesses, rows, numbers, times, agent_id))
