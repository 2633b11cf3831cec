"""The numbered changes of an agent: written with every change, read by index synchronisation."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mnemic.model import LinkType, Scope
from mnemic.model.rows import Link, RowBatch, State
from mnemic.store.accesses import RowAccesses
from mnemic.store.changes import Change, last_dropped, totals_by_user
from mnemic.store.operations import (
    AccessesSince,
    AgentFacts,
    ChangedRows,
    PositionAndRevision,
    RowsSince,
)
from mnemic.store.row_codec import RowCodec, text_of
from mnemic.store.rules import check_model
from mnemic.store.sql.conditions import ENTRIES, HAS_ACTIVE_STATUS, LINKS, in_scope
from mnemic.store.sql.dialect import RowReader
from mnemic.store.sql.reads import used_bytes
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import (
    NO_QUOTAS,
    AccessedRows,
    BatchSink,
    CollectedBatch,
    LogPosition,
    Model,
    Quotas,
    StoredAgent,
    check_quota,
    check_user_quota,
    full_batch,
)

AGENTS: Final = "mnemic.agent_memory_agents"
USERS: Final = "mnemic.agent_memory_walls"
CHANGES: Final = "mnemic.agent_memory_changes"

HAS_STATE: Final = {
    State.ACTIVE: HAS_ACTIVE_STATUS,
    State.INACTIVE: "forgotten_at IS NULL AND status <> 0",
    State.DELETED: "forgotten_at IS NOT NULL",
}
"""Conditions of rows in a state. Expired ones are among them: the reader knows their expiry."""

# Constants: every search reads them, and a text is hashed once to find the prepared statement.
_POSITION: Final = f"SELECT seq, accesses FROM {AGENTS} WHERE agent_id = ?"
_POSITION_AND_REVISION: Final = (
    f"SELECT seq, accesses, coalesce((SELECT revision FROM {USERS} "
    f"WHERE agent_id = ? AND user_key = ?), 0) FROM {AGENTS} WHERE agent_id = ?"
)

_PART = 8192
"""Rows that a full load reads at once."""

# A link from a row in another state leads on to what superseded it. Links between users, which
# earlier versions wrote, lead nowhere.
_LEADS_ON: Final = (
    f"l.type = {int(LinkType.SUPERSEDES)} AND EXISTS (SELECT 1 FROM {ENTRIES} AS t {{by_row}} "
    "WHERE t.row = l.to_row AND t.agent_id = e.agent_id "
    "AND t.user_id IS NOT DISTINCT FROM e.user_id)"
)


def position(on: SqlSession, agent_id: str) -> LogPosition:
    """Return an agent's position in its logs, (0, 0) before anything is stored."""
    found = on.fetch(_POSITION, (agent_id,))
    return LogPosition(*on.dialect.integers(found[0])) if found else LogPosition(0, 0)


def position_and_revision(
    on: SqlSession, _codec: RowCodec, wanted: PositionAndRevision
) -> tuple[LogPosition, int]:
    """Return an agent's position and the revision of a scope's user."""
    scope = wanted.scope
    if scope.all_users:
        stands = position(on, scope.agent_id)
        return stands, stands.seq
    values = (scope.agent_id, scope.user_id or "", scope.agent_id)
    found = on.fetch(_POSITION_AND_REVISION, values)
    seq, accesses, revision = on.dialect.integers(found[0]) if found else (0, 0, 0)
    return LogPosition(seq, accesses), revision


def changed_rows(on: SqlSession, _codec: RowCodec, wanted: ChangedRows) -> list[int] | None:
    """Return the rows changed after a change number, or None if the log has dropped some."""
    agent_id, since = wanted.agent_id, wanted.seq
    last, pruned, _ = _agent(on, agent_id)
    if not pruned <= since <= last:
        return None
    sql = f"SELECT DISTINCT entry_row FROM {CHANGES} WHERE agent_id = ? AND seq > ?"
    return [row for (row,) in on.fetch(sql, (agent_id, since))]


def reaches_back(on: SqlSession, agent_id: str, since: int | None) -> bool:
    """Return whether the log has all changes after a change number, and no switch of the model."""
    last, pruned, _ = _agent(on, agent_id)
    if since is None or not pruned <= since <= last:
        return False
    sql = f"SELECT 1 FROM {CHANGES} WHERE agent_id = ? AND seq > ? AND kind = 'switch' LIMIT 1"
    return not on.fetch(sql, (agent_id, since))


def agent_facts(on: SqlSession, _codec: RowCodec, wanted: AgentFacts) -> StoredAgent:
    """Return what is stored of an agent."""
    agent_id = wanted.agent_id
    found = on.fetch(f"SELECT time_zone FROM {AGENTS} WHERE agent_id = ?", (agent_id,))
    if not found:
        return StoredAgent(None, None)
    ((zone,),) = found
    with on.dialect.reading_stored("a time zone"):
        return StoredAgent(model_in_use(on, agent_id), text_of(zone))


def recorded_model(on: SqlSession, agent_id: str) -> Model | None:
    """Return the model recorded for the agent's vectors, or None if there was none yet."""
    stored, dimensions = _agent(on, agent_id)[2]
    with on.dialect.reading_stored("an agent's model"):
        name = text_of(stored)
        return None if name is None else (name, on.dialect.integers([dimensions])[0])


def model_in_use(on: SqlSession, agent_id: str) -> Model | None:
    """Return the recorded model if the agent has vectors of it."""
    model = recorded_model(on, agent_id)
    return model if model is not None and on.dialect.has_vectors(on, agent_id, model) else None


def _agent(on: SqlSession, agent_id: str) -> tuple[int, int, Sequence[Any]]:
    """Return the last change number, the last pruned one, and the model with its dimension."""
    sql = f"SELECT seq, pruned, model, dimensions FROM {AGENTS} WHERE agent_id = ?"
    found = on.fetch(sql, (agent_id,))
    if not found:
        return 0, 0, (None, None)
    seq, pruned = on.dialect.integers(found[0][:2])
    return seq, pruned, found[0][2:]


def _is_other_model(on: SqlSession, agent_id: str, known: Sequence[Any], model: Model) -> bool:
    """Return whether a model is another one than the recorded one, which has no vectors.

    Raises:
        EmbeddingModelMismatchError: If that has vectors.
    """
    if known[0] is None or tuple(known) == model:
        return False
    if on.dialect.has_vectors(on, agent_id, known):
        check_model(agent_id, known, model)
    return True


def log_changes(
    on: SqlSession,
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
    last, used, known, by_user = on.dialect.advance(on, agent_id, users, model, time_zone)
    if quotas.user is not None:
        for user_id, _, size in users:
            whole = by_user.get(user_id or "")
            whole = used_bytes(on, Scope(agent_id, user_id)) if whole is None else whole
            check_user_quota(quotas.user, user_id, whole - size, size)
    if model is not None and _is_other_model(on, agent_id, known, model):
        sql = f"UPDATE {AGENTS} SET model = ?, dimensions = ? WHERE agent_id = ?"
        on.run(sql, (*model, agent_id))
    size = sum([user.size for user in users])
    check_quota(quotas.agent, used - size, size)
    first = last - len(changes) + 1
    on.dialect.write_changes(on, agent_id, first, changes)
    mark = last_dropped(first, last)
    if mark is not None:
        on.run(f"DELETE FROM {CHANGES} WHERE agent_id = ? AND seq <= ?", (agent_id, mark))
        on.run(f"UPDATE {AGENTS} SET pruned = ? WHERE agent_id = ?", (mark, agent_id))
    on.changed_users.update((agent_id, user.user_id) for user in users)  # none of a refused write
    return last


def rows_since(
    on: SqlSession,
    codec: RowCodec,
    wanted: RowsSince,
    hold: Callable[[list[Columns]], object] | None = None,
) -> RowBatch:
    """Return the changes after a change, or all rows if the log has dropped some of them.

    Args:
        on: At one moment.
        codec: Codec of the entries.
        wanted: What is wanted.
        hold: Gets all rows as they are stored, if all are returned.
    """
    agent_id, model, since, state = wanted.agent_id, wanted.model, wanted.seq, wanted.state
    last, pruned, known = _agent(on, agent_id)
    if model is not None:
        _is_other_model(on, agent_id, known, model)
    reader = on.dialect.row_reader(on, codec, agent_id, model)
    if since is not None and pruned <= since <= last:
        sql = f"SELECT entry_row, kind FROM {CHANGES} WHERE agent_id = ? AND seq > ?"
        changes = on.fetch(sql, (agent_id, since))
        if model is None or all(kind != "switch" for _, kind in changes):
            touched = set(on.dialect.integers([row for row, _ in changes]))
            if wanted.with_sensitive:
                touched.update(_sensitive_rows(on, agent_id))
            batch = _changed_rows(on, reader, agent_id, sorted(touched), state)
            replaced = {row for row, kind in changes if kind == "replace"}
            removed = sorted(replaced.union(batch.removed))
            return replace(batch, since=since, seq=last, removed=removed)
    on.lift_deadline()
    everything = Scope(agent_id, all_users=True)
    sink = wanted.sink or CollectedBatch()
    return replace(all_rows(on, reader, everything, sink, state=state, hold=hold), seq=last)


def _sensitive_rows(on: SqlSession, agent_id: str) -> list[int]:
    """Return the rows of sensitive and of sealed entries, in any state."""
    sql = " UNION ".join(
        f"SELECT row FROM {ENTRIES} {on.dialect.by_index(index)} "
        f"WHERE agent_id = ? AND {on.dialect.is_true(column)}"
        for index, column in (("sensitive", "is_sensitive"), ("seal", "is_encrypted"))
    )
    return [row for (row,) in on.fetch(sql, (agent_id, agent_id))]


def _changed_rows(
    on: SqlSession, reader: RowReader, agent_id: str, touched: Sequence[int], state: State
) -> RowBatch:
    """Return those of an agent's rows that have a state; others were removed."""
    dialect = on.dialect
    table = f"FROM {ENTRIES} {dialect.by_row} WHERE agent_id = ?"
    among, values = dialect.among_rows(touched, "row")
    sql = f"SELECT {dialect.row} {table} AND {among} AND {HAS_STATE[state]}"
    records = reader.records(on.fetch(sql, (agent_id, *values)))
    current = sorted([record[0] for record in records])
    embedded, vectors = reader.vectors(current)
    links = _links(on, agent_id, dialect.among_rows(current, "l.from_row")) if current else []
    others = sorted(set(touched).difference(current))
    kept: list[Columns] = []
    if others:
        among, values = dialect.among_rows(others, "row")
        kept = on.fetch(f"SELECT row {table} AND {among}", (agent_id, *values))
    if others and state is State.ACTIVE:
        among, values = dialect.among_rows(others, "l.from_row")
        source, owner = _source(on, Scope(agent_id, all_users=True), _LEADS_ON)
        links += _links(on, agent_id, (f"{among} AND {source}", [*values, *owner]))
    return RowBatch(
        since=0,
        seq=0,
        records=records,
        embedded=embedded,
        vectors=vectors,
        removed=others,
        linked=sorted([*current, *(row for (row,) in kept)]),
        links=reader.links(links),
    )


def all_rows(
    on: SqlSession,
    reader: RowReader,
    scope: Scope,
    sink: BatchSink,
    *,
    state: State = State.ACTIVE,
    hold: Callable[[list[Columns]], object] | None = None,
) -> RowBatch:
    """Return the change to all rows of a scope, with number 0; see `RowsSince`."""
    where, values = in_scope(scope)
    where = f"{where} AND {HAS_STATE[state]}"
    dialect = on.dialect
    # The index is named, because the planner of SQLite would sort all rows.
    sql = f"SELECT {dialect.row} FROM {ENTRIES} {dialect.by_index('agent')} WHERE {where}"
    for rows in on.batches(f"{sql} ORDER BY row", values, _PART):
        sink.add_records(reader.records(rows))
        if hold is not None:
            hold(rows)
    reader.check_complete(state)
    for numbers, vectors in reader.all_vectors((where, values), _PART):
        sink.add_vectors(numbers, vectors)
    links: list[Link] = []
    if state is State.ACTIVE:
        source = _source(on, scope, f"({HAS_ACTIVE_STATUS} OR {_LEADS_ON})")
        links = reader.links(_links(on, scope.agent_id, source))
    return full_batch(sink, links)


def _links(on: SqlSession, agent_id: str, condition: Condition) -> list[Columns]:
    """Return the links of an agent for which a condition holds, as `RowReader.links` takes them."""
    is_owned, owner = on.dialect.owned("l", agent_id)
    where, values = condition
    sql = f"SELECT l.from_row, l.to_row, l.type, l.strength, l.created_at FROM {LINKS} AS l"
    return on.fetch(f"{sql} WHERE {is_owned} AND {where}", (*owner, *values))


def _source(on: SqlSession, scope: Scope, condition: str) -> Condition:
    """Return the condition that a link leads from a row of a scope for which another one holds."""
    where, values = in_scope(scope)
    sql = f"SELECT 1 FROM {ENTRIES} AS e {{by_row}} WHERE e.row = l.from_row"
    exists = f"EXISTS ({sql} AND {where} AND {condition})"
    return exists.format(by_row=on.dialect.by_row), values


_MAX_COUNT: Final = 2**63 - 1
_ADVANCE: Final = (
    f"UPDATE {AGENTS} SET accesses = accesses + 1 WHERE agent_id = ? RETURNING seq, accesses"
)
_COUNT: Final = (
    f"UPDATE {ENTRIES} SET access_count = "
    # SQLite would make a REAL of a larger sum, and PostgreSQL refuse all accesses beside it.
    f"CASE WHEN access_count > {_MAX_COUNT} - ? THEN {_MAX_COUNT} ELSE access_count + ? END, "
    "last_accessed_at = CASE WHEN last_accessed_at > ? THEN last_accessed_at ELSE ? END, "
    "access_seq = ? WHERE agent_id = ? AND row = ?"
)


def accesses_since(on: SqlSession, _codec: RowCodec, wanted: AccessesSince) -> AccessedRows:
    """Return the accesses written after a number of access writes, also of deleted entries."""
    agent_id, accesses = wanted.agent_id, wanted.accesses
    now = position(on, agent_id)
    since = accesses if accesses <= now.accesses else 0
    # The index is named, because the planner of SQLite would read all rows of an agent.
    sql = (
        f"SELECT row, last_accessed_at, access_count FROM {ENTRIES} "
        f"{on.dialect.by_index('access')} WHERE agent_id = ? AND access_seq > ?"
    )
    rows = on.fetch(sql, (agent_id, since))
    return AccessedRows(now, [(row, last, count) for row, last, count in rows])


def write_accesses(on: SqlSession, accesses: RowAccesses) -> dict[str, LogPosition]:
    """Write accesses; return the positions of their agents. Those of deleted entries are lost."""
    positions = {
        agent_id: LogPosition(*on.dialect.integers(found))
        for agent_id in {agent_id for agent_id, _ in accesses}
        for found in on.fetch(_ADVANCE, (agent_id,))
    }
    written = {agent_id: position.accesses for agent_id, position in positions.items()}
    on.run_all(
        _COUNT,
        [
            (number, number, last, last, written[agent_id], agent_id, row)
            for (agent_id, row), (number, last) in accesses.items()
            if agent_id in written
        ],
    )
    return positions
