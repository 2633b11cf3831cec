"""The numbered changes of an agent: written with every change, read by index synchronisation."""

import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from mnemic._core import VectorSums
from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.crypto.envelope import OVERHEAD
from mnemic.errors import StoreCorruptError
from mnemic.licensing import Quota
from mnemic.model import LinkType, Scope
from mnemic.model.rows import RowBatch, State
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
from mnemic.store.quota import NO_QUOTAS, Quotas, check_quota, check_user_quota
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite.checksums import (
    MASK,
    NO_SUMS,
    SUM_COLUMNS,
    Sums,
    added,
    check_links,
    check_no_vector_is_lost,
    check_vectors,
    checked_columns,
    read_vectors,
)
from mnemic.store.sqlite.damage import DAMAGED
from mnemic.store.sqlite.sealed_rows import ReadSums, VectorOpener, read_rows
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    Columns,
    execute_all,
    fetch,
    fetch_batches,
    integers,
    json_array,
    stream,
)
from mnemic.store.values import LogPosition, Model

if TYPE_CHECKING:
    from mnemic.store.sqlite.hardening import GuardedConnection

_INSERT = (
    "INSERT INTO agent_memory_changes (agent_id, seq, entry_row, entry_id, kind, user_id, nonce) "
    "VALUES (?, ?, ?, ?, ?, ?, ?)"
)
# Two statements: an upsert that returns its row takes nearly three times as long.
_ADVANCE = (
    "UPDATE agent_memory_agents SET seq = seq + ?, used_bytes = used_bytes + ?, "
    f"summed_rows = summed_rows + ?, rows_sum = (rows_sum + ?) & {MASK}, "
    "model = ifnull(model, ?), dimensions = ifnull(dimensions, ?), "
    "time_zone = ifnull(time_zone, ?) WHERE agent_id = ?"
)
_BEGIN = (
    "INSERT INTO agent_memory_agents "
    "(seq, used_bytes, summed_rows, rows_sum, model, dimensions, time_zone, agent_id) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_CHANGE_MODEL = "UPDATE agent_memory_agents SET model = ?, dimensions = ? WHERE agent_id = ?"
_HAS_VECTORS = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_entries AS e "
    "CROSS JOIN agent_memory_embeddings AS v ON v.entry_row = e.row "
    "WHERE e.agent_id = ?1 AND v.model = ?2 "
    f"AND length(v.embedding) IN (4 * ?3, 4 * ?3 + {OVERHEAD}))"  # the latter sealed
)
_ADVANCED = "SELECT seq, used_bytes, model, dimensions FROM agent_memory_agents WHERE agent_id = ?"
_HAS_SWITCHED = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_changes WHERE agent_id = ? AND seq > ? "
    "AND kind = 'switch')"
)
# Expired rows are included: the reader knows their expiry.
_RECORD = checked_columns("e.")
_HAS_STATE = {
    State.ACTIVE: "e.forgotten_at IS NULL AND e.status = 0",
    State.INACTIVE: "e.forgotten_at IS NULL AND e.status <> 0",
    State.DELETED: "e.forgotten_at IS NOT NULL",
}
# The index is named, because the planner would sort all rows.
_ALL_RECORDS = {
    state: f"SELECT {_RECORD} FROM agent_memory_entries AS e "
    f"INDEXED BY agent_memory_entries_by_agent WHERE e.agent_id = ? AND {has_state} ORDER BY e.row"
    for state, has_state in _HAS_STATE.items()
}
# Reading all vectors in file order takes a quarter of the time of looking up each of them.
_SCAN_FROM = 4
_ALL_VECTORS = (
    "SELECT entry_row, embedding FROM agent_memory_embeddings WHERE model = ? AND part = 0"
)
# File order does not keep the chunks of a row together; those of long entries are looked up.
_LONG = "SELECT entry_row FROM agent_memory_embeddings WHERE model = ? AND part = 1"
_LONG_VECTORS = (
    f"SELECT row, embedding FROM agent_memory_entries {BY_ROW} "
    "CROSS JOIN agent_memory_embeddings ON entry_row = row "
    f"WHERE agent_id = ? AND {AMONG} AND model = ? ORDER BY row, part"
)
_LAST_VECTOR = "SELECT max(rowid) FROM agent_memory_embeddings"
_OWN_VECTORS = (
    "SELECT v.entry_row, v.embedding FROM agent_memory_entries AS e "
    "INDEXED BY agent_memory_entries_by_agent CROSS JOIN agent_memory_embeddings AS v "
    "ON v.entry_row = e.row WHERE e.agent_id = ? AND v.model = ? ORDER BY e.row, v.part"
)
_AGENT_SUMS = "SELECT summed_rows, rows_sum FROM agent_memory_agents WHERE agent_id = ?"
# By indexes that hold few rows, or all selected columns.
_PLACED = {
    state: f"SELECT {SUM_COLUMNS} FROM agent_memory_entries AS e "
    f"INDEXED BY agent_memory_entries_by_{index} WHERE e.agent_id = ? AND {_HAS_STATE[state]}"
    for state, index in (
        (State.ACTIVE, "agent"),
        (State.INACTIVE, "user"),
        (State.DELETED, "forgotten"),
    )
}
_LINK = "l.from_row, l.to_row, l.type, l.strength, l.created_at"
_ALL_LINKS = (
    f"SELECT {_LINK} FROM agent_memory_links AS l CROSS JOIN agent_memory_entries AS e {BY_ROW} "
    f"ON e.row = l.from_row WHERE e.agent_id = ? AND {_HAS_STATE[State.ACTIVE]}"
)
# A link to a row in another state leads on to what superseded it. Links between users, which
# earlier versions wrote, lead nowhere.
_SUPERSESSIONS = (
    "SELECT l.from_row, l.to_row, l.type, l.strength FROM agent_memory_links AS l "
    f"CROSS JOIN agent_memory_entries AS e {BY_ROW} ON e.row = l.from_row "
    f"CROSS JOIN agent_memory_entries AS t {BY_ROW} ON t.row = l.to_row "
    f"WHERE e.agent_id = ?1 AND l.type = {int(LinkType.SUPERSEDES)} "
    f"AND NOT ({_HAS_STATE[State.ACTIVE]}) AND t.user_id IS e.user_id"
)
_CHANGES = "SELECT entry_row, kind FROM agent_memory_changes WHERE agent_id = ? AND seq > ?"
_TOUCHED = "SELECT entry_row FROM agent_memory_changes WHERE agent_id = ?1 AND seq > ?2"
_SENSITIVE = (
    "SELECT row FROM agent_memory_entries INDEXED BY agent_memory_entries_by_sensitive "
    "WHERE agent_id = ?1 AND is_sensitive <> 0 "
    "UNION ALL SELECT row FROM agent_memory_entries INDEXED BY agent_memory_entries_by_seal "
    "WHERE agent_id = ?1 AND is_encrypted <> 0"
)


class _TouchedReads(NamedTuple):
    """Reads of the touched rows of an agent; their values are the agent and a change number.

    Attributes:
        records: Those in a state.
        vectors: The vectors of those in the state; the third value is the model.
        links: The links that lead from them.
        supersessions: Those of the links that lead on from rows in another state.
        rows: Those that exist in any state.
    """

    records: str
    vectors: str
    links: str
    supersessions: str
    rows: str


def _reads_of(state: State, touched: str) -> _TouchedReads:
    # The access is named, because the planner would read all rows of an agent to find a few.
    chosen = f"e.agent_id = ?1 AND {_HAS_STATE[state]} AND e.row IN ({touched})"
    return _TouchedReads(
        f"SELECT {_RECORD} FROM agent_memory_entries AS e {BY_ROW} WHERE {chosen}",
        f"SELECT e.row, v.embedding FROM agent_memory_entries AS e {BY_ROW} "
        "CROSS JOIN agent_memory_embeddings AS v ON v.entry_row = e.row "
        f"WHERE {chosen} AND v.model = ?3 ORDER BY e.row, v.part",
        f"SELECT {_LINK} FROM agent_memory_links AS l WHERE l.from_row IN ({touched})",
        f"{_SUPERSESSIONS} AND l.from_row IN ({touched})",
        f"SELECT e.row FROM agent_memory_entries AS e {BY_ROW} "
        f"WHERE e.agent_id = ?1 AND e.row IN ({touched})",
    )


_TOUCHED_READS = {
    (state, with_sensitive): _reads_of(state, touched)
    for state in State
    for with_sensitive, touched in (
        (False, _TOUCHED),
        (True, f"{_TOUCHED} UNION ALL {_SENSITIVE}"),
    )
}
_PART = 8192
_AGENT = "SELECT seq, pruned, model, dimensions FROM agent_memory_agents WHERE agent_id = ?"
_ADVANCE_USER = (
    "UPDATE agent_memory_walls SET revision = revision + ?, used_bytes = used_bytes + ? "
    "WHERE agent_id = ? AND user_key = ?"
)
_BEGIN_USER = (
    "INSERT INTO agent_memory_walls (revision, used_bytes, agent_id, user_key) VALUES (?, ?, ?, ?)"
)
_USER_BYTES = "SELECT used_bytes FROM agent_memory_walls WHERE agent_id = ? AND user_key = ?"
_USER_REVISION = "SELECT revision FROM agent_memory_walls WHERE agent_id = ? AND user_key = ?"
_POSITION = "SELECT seq, accesses FROM agent_memory_agents WHERE agent_id = ?"
_POSITION_AND_REVISION = (
    f"SELECT seq, accesses, ifnull(({_USER_REVISION}), 0) FROM agent_memory_agents "
    "WHERE agent_id = ?"
)


def position(connection: apsw.Connection, agent_id: str) -> LogPosition:
    """Return an agent's position in its logs, (0, 0) before anything is stored."""
    found = connection.execute(_POSITION, (agent_id,)).fetchone()
    if found is None:
        return LogPosition(0, 0)
    seq, accesses = found
    if type(seq) is not int or type(accesses) is not int:
        raise _damaged_agent(agent_id)
    return LogPosition(seq, accesses)


def reaches_back(connection: apsw.Connection, agent_id: str, since: int | None) -> bool:
    """Return whether the log has all changes after a change number, and no switch of the model."""
    last, pruned, _ = _agent(connection, agent_id)
    if since is None or not pruned <= since <= last:
        return False
    return not fetch(connection, _HAS_SWITCHED, (agent_id, since))[0][0]


def _agent(connection: apsw.Connection, agent_id: str) -> tuple[int, int, list[Any]]:
    """Return the last change number, the last pruned one, and the model with its dimension."""
    agent = fetch(connection, _AGENT, (agent_id,))
    if not agent:
        return 0, 0, [None, None]
    seq, pruned, *model = agent[0]
    if type(seq) is not int or type(pruned) is not int:
        raise _damaged_agent(agent_id)
    return seq, pruned, model


def _damaged_agent(agent_id: str) -> StoreCorruptError:
    return StoreCorruptError(f"what is stored of agent {agent_id!r} cannot be read; {DAMAGED}")


def position_and_revision(connection: apsw.Connection, scope: Scope) -> tuple[LogPosition, int]:
    """Return an agent's position and the revision of a scope's user."""
    if scope.all_users:
        stands = position(connection, scope.agent_id)
        return stands, stands.seq
    values = (scope.agent_id, scope.user_id or "", scope.agent_id)
    found = connection.execute(_POSITION_AND_REVISION, values).fetchone()
    return (LogPosition(0, 0), 0) if found is None else (LogPosition(*found[:2]), found[2])


def revision(connection: apsw.Connection, scope: Scope) -> int:
    """Return the number of changes within a scope's user, 0 before any."""
    if scope.all_users:
        return position(connection, scope.agent_id).seq
    found = connection.execute(_USER_REVISION, (scope.agent_id, scope.user_id or "")).fetchone()
    return 0 if found is None else integers(found)[0]


def changed_rows_since(connection: apsw.Connection, agent_id: str, since: int) -> list[int] | None:
    """Return the rows changed after a change number, or None if the log has dropped some."""
    last, pruned, _ = _agent(connection, agent_id)
    if not pruned <= since <= last:
        return None
    sql = "SELECT DISTINCT entry_row FROM agent_memory_changes WHERE agent_id = ? AND seq > ?"
    return [row for (row,) in fetch(connection, sql, (agent_id, since))]


def embedding_model(connection: apsw.Connection, agent_id: str) -> Model | None:
    """Return the model recorded for the agent's vectors, or None if there was none yet."""
    sql = (
        "SELECT model, dimensions FROM agent_memory_agents WHERE agent_id = ? AND model IS NOT NULL"
    )
    found = fetch(connection, sql, (agent_id,))
    if not found:
        return None
    model, dimensions = found[0]
    if type(model) is not str or type(dimensions) is not int:
        raise _damaged_agent(agent_id)
    return model, dimensions


def time_zone(connection: apsw.Connection, agent_id: str) -> str | None:
    """Return the name of the agent's time zone, or None if there was none yet."""
    sql = "SELECT time_zone FROM agent_memory_agents WHERE agent_id = ?"
    for (name,) in fetch(connection, sql, (agent_id,)):
        if name is None or type(name) is str:
            return name
        raise _damaged_agent(agent_id)
    return None


def model_in_use(connection: apsw.Connection, agent_id: str) -> Model | None:
    """Return the recorded model if the agent has vectors of it."""
    model = embedding_model(connection, agent_id)
    return model if model is not None and _has_vectors(connection, agent_id, model) else None


def _has_vectors(connection: apsw.Connection, agent_id: str, model: Sequence[Any]) -> bool:
    return bool(fetch(connection, _HAS_VECTORS, (agent_id, *model))[0][0])


def _check_model(
    connection: apsw.Connection, agent_id: str, known: Sequence[Any], model: Model
) -> bool:
    """Return whether the model is another one than the recorded one, which has no vectors."""
    is_new = known[0] is not None and tuple(known) != model
    if is_new and _has_vectors(connection, agent_id, known):
        check_model(agent_id, known, model)
    return is_new


def rows_since(
    connection: apsw.Connection,
    agent_id: str,
    model: Model | None,
    since: int | None,
    sink: BatchSink | None = None,
    *,
    codec: RowCodec,
    state: State = State.ACTIVE,
    with_sensitive: bool = False,
) -> RowBatch:
    """Return the changes after `since`, or all rows if the log has dropped some of them."""
    last, pruned, known = _agent(connection, agent_id)
    if model is not None:
        _check_model(connection, agent_id, known, model)
    if since is None or not pruned <= since <= last:
        return _full_batch(
            connection, agent_id, model, last, sink or CollectedBatch(), codec=codec, state=state
        )
    here = (agent_id, since)
    reads = _TOUCHED_READS[state, with_sensitive]
    changes = fetch(connection, _CHANGES, here)
    if model is not None and any(kind == "switch" for _, kind in changes):
        return _full_batch(
            connection, agent_id, model, last, sink or CollectedBatch(), codec=codec, state=state
        )
    touched = set(integers([row for row, _ in changes]))
    replaced = {row for row, kind in changes if kind == "replace"}
    if with_sensitive:
        touched.update(row for (row,) in fetch(connection, _SENSITIVE, (agent_id,)))
    name, dim = model or (None, 0)
    of_vectors = ReadSums(VectorSums(), VectorSums())
    read = read_rows(codec, fetch(connection, reads.records, here), of_vectors)
    records = read.records
    current = {columns[0] for columns in records}
    embedded = []
    if model and records:
        found = fetch(connection, reads.vectors, (*here, name))
        opener = VectorOpener(codec, agent_id, model[0], read.sealed)
        wanted = [vector for vector in found if vector[0] in current]
        embedded = _checked(opener, wanted, of_vectors, model[1])
    links = fetch(connection, reads.links, here) if records else []
    check_links(links, read.links)
    others = touched - current
    kept, supersessions = others, list[Columns]()
    if others:
        kept = {row for (row,) in fetch(connection, reads.rows, here)}
        if state is State.ACTIVE:
            supersessions = fetch(connection, reads.supersessions, here)
    return RowBatch(
        since=since,
        seq=last,
        records=records,
        embedded=[row for row, _ in embedded],
        vectors=_vectors([blob for _, blob in embedded], dim) if embedded else None,
        removed=sorted((touched - current) | replaced),
        linked=sorted(current | kept),
        links=[*(link[:-1] for link in links if link[0] in current), *supersessions],
    )


def _full_batch(
    connection: apsw.Connection,
    agent_id: str,
    model: Model | None,
    seq: int,
    sink: BatchSink,
    *,
    codec: RowCodec,
    state: State,
) -> RowBatch:
    rows_read: set[int] = set()
    sealed: dict[int, bytes] = {}
    of_vectors = ReadSums(VectorSums(), VectorSums())
    of_links: dict[int, int] = {}
    sums = _sums_of_other_states(connection, agent_id, state)
    for stored in fetch_batches(connection, _ALL_RECORDS[state], (agent_id,), _PART):
        read = read_rows(codec, stored, of_vectors)
        sums = sums.plus(read.sums)
        of_links |= read.links
        rows_read.update(map(itemgetter(0), read.records))
        sealed |= read.sealed
        sink.add_records(read.records)
    _check_sums(connection, agent_id, sums)
    batches: Iterable[tuple[Int64Array, Float32Array]] = ()
    if model and rows_read:
        plain = _vector_batches(
            connection, agent_id, model, rows_read - sealed.keys(), of_vectors.plain
        )
        opener = VectorOpener(codec, agent_id, model[0], sealed)
        batches = chain(plain, _sealed_batches(connection, opener, model[1], of_vectors.sealed))
    for rows, vectors in batches:
        sink.add_vectors(rows, vectors)
    links, supersessions = [], []
    if state is State.ACTIVE:
        links = fetch(connection, _ALL_LINKS, (agent_id,))
        check_links(links, of_links)
        supersessions = fetch(connection, _SUPERSESSIONS, (agent_id,))
    return full_batch(seq, sink, [*(link[:-1] for link in links), *supersessions])


def _sums_of_other_states(connection: apsw.Connection, agent_id: str, state: State) -> Sums:
    """Return the sum of the agent's rows in other states."""
    sums = NO_SUMS
    for other in State:
        if other is not state:
            sums = sums.plus(added(fetch(connection, _PLACED[other], (agent_id,))))
    return sums


def _check_sums(connection: apsw.Connection, agent_id: str, found: Sums) -> None:
    """Compare the sum over all rows of an agent with the stored sum."""
    agent = fetch(connection, _AGENT_SUMS, (agent_id,))
    wanted = Sums(*integers(agent[0])) if agent else NO_SUMS
    if found != wanted:
        raise StoreCorruptError(
            f"agent {agent_id!r} should have {wanted.rows} memories with checksums, and has "
            f"{found.rows}{' others' if found.rows == wanted.rows else ''}; {DAMAGED}"
        )


def _vector_batches(
    connection: apsw.Connection,
    agent_id: str,
    model: Model,
    wanted_rows: set[int],
    sums: VectorSums,
) -> Iterator[tuple[Int64Array, Float32Array]]:
    """Yield the vectors of wanted rows in batches; each vector is copied once, to its place."""
    found = _stored_vectors(connection, agent_id, model[0], wanted_rows)
    checked = 0
    batch = list(islice(found, _PART))
    while batch:
        following = next(found, None)
        while following is not None and following[0] == batch[-1][0]:
            batch.append(following)
            following = next(found, None)
        rows, vectors, summed = read_vectors(model, batch, sums)
        checked += summed
        yield rows, vectors
        batch = [] if following is None else [following, *islice(found, _PART - 1)]
    check_no_vector_is_lost(sums, checked)


def _sealed_batches(
    connection: apsw.Connection, opener: VectorOpener, dimensions: int, sums: VectorSums
) -> Iterator[tuple[Int64Array, Float32Array]]:
    """Yield the vectors of sealed rows in batches, in plain text."""
    rows, found_rows = sorted(opener.sealed), 0
    for first in range(0, len(rows), _PART):
        values = (opener.agent_id, json_array(rows[first : first + _PART]), opener.model)
        found = fetch(connection, _LONG_VECTORS, values)
        if found:
            opened = opener.readable(found, sums, dimensions)
            numbers = [row for row, _ in opened]
            found_rows += len(set(numbers))
            vectors = _vectors([blob for _, blob in opened], dimensions)
            yield np.array(numbers, dtype=np.int64), vectors
    check_no_vector_is_lost(sums, found_rows)


def _checked(
    opener: VectorOpener, found: list[Columns], sums: ReadSums, dimensions: int
) -> list[Columns]:
    """Return vectors, compared with their sums, in plain text."""
    plain = [vector for vector in found if vector[0] not in opener.sealed]
    check_vectors(opener.model, plain, sums.plain, is_all=True)
    sealed = [vector for vector in found if vector[0] in opener.sealed]
    return [*plain, *opener.readable(sealed, sums.sealed, dimensions)] if sealed else plain


def _stored_vectors(
    connection: apsw.Connection, agent_id: str, model: str, wanted_rows: set[int]
) -> Iterator[Columns]:
    """Yield wanted rows with their chunks' vectors, those of a row next to each other."""
    ((stored,),) = fetch(connection, _LAST_VECTOR, ())
    if _SCAN_FROM * len(wanted_rows) < (stored or 0):
        for found in stream(connection, _OWN_VECTORS, (agent_id, model)):
            if found[0] in wanted_rows:
                yield found
        return
    long = {row for (row,) in fetch(connection, _LONG, (model,)) if row in wanted_rows}
    short = wanted_rows - long
    for found in stream(connection, _ALL_VECTORS, (model,)):
        if found[0] in short:
            yield found
    if long:
        values = (agent_id, json_array(sorted(long)), model)
        yield from stream(connection, _LONG_VECTORS, values)


def _vectors(blobs: list[bytes], dim: int) -> Float32Array:
    if not {bytes}.issuperset(map(type, blobs)) or not {4 * dim}.issuperset(map(len, blobs)):
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {DAMAGED}")
    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dim)


def log_changes(
    connection: "GuardedConnection",
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
    connection.changed_users.update((agent_id, user.user_id) for user in users)
    _advance_users(connection, agent_id, users, quotas.user)
    last = _advance(connection, agent_id, users, model, quotas.agent, time_zone=time_zone)
    first = last - len(changes) + 1
    nonce = _drawn_nonce()
    execute_all(
        connection,
        _INSERT,
        [(agent_id, seq, *change[:-1], nonce) for seq, change in enumerate(changes, start=first)],
    )
    mark = last_dropped(first, last)
    if mark is not None:
        _prune(connection, agent_id, mark)
    return last


def _drawn_nonce() -> int:
    """Return 63 random bits of the system, which a fork or a copy of the process cannot repeat."""
    return int.from_bytes(os.urandom(8), "big") >> 1


def _advance(
    connection: "GuardedConnection",
    agent_id: str,
    users: Sequence[UserTotals],
    model: Model | None,
    quota: Quota | None,
    *,
    time_zone: str | None,
) -> int:
    sums = connection.summed_rows.settle(connection, agent_id)
    steps, size = sum([user.steps for user in users]), sum([user.size for user in users])
    values = (steps, size, *sums, *(model or (None, None)), time_zone, agent_id)
    connection.execute(_ADVANCE, values)
    if connection.changes() == 0:
        connection.execute(_BEGIN, values)
    ((last, used, *known),) = fetch(connection, _ADVANCED, (agent_id,))
    if type(last) is not int or type(used) is not int:
        raise _damaged_agent(agent_id)
    if model is not None and _check_model(connection, agent_id, known, model):
        connection.execute(_CHANGE_MODEL, (*model, agent_id))
    check_quota(quota, used - size, size)
    return last


def _advance_users(
    connection: apsw.Connection, agent_id: str, users: Sequence[UserTotals], quota: UserLimit | None
) -> None:
    for user_id, steps, size in users:
        values = (steps, size, agent_id, user_id or "")
        connection.execute(_ADVANCE_USER, values)
        if connection.changes() == 0:
            connection.execute(_BEGIN_USER, values)
        if quota is not None and size > 0:
            used = used_by_user(connection, agent_id, user_id)
            check_user_quota(quota, user_id, used - size, size)


def used_bytes(connection: apsw.Connection, agent_id: str) -> int:
    """Return the bytes of the agent's contents, deleted entries included."""
    sql = "SELECT used_bytes FROM agent_memory_agents WHERE agent_id = ?"
    found = fetch(connection, sql, (agent_id,))
    return integers(found[0])[0] if found else 0


def used_by_user(connection: apsw.Connection, agent_id: str, user_id: str | None) -> int:
    """Return the bytes of a user's contents, deleted entries included."""
    found = fetch(connection, _USER_BYTES, (agent_id, user_id or ""))
    return integers(found[0])[0] if found else 0


def _prune(connection: apsw.Connection, agent_id: str, mark: int) -> None:
    connection.execute(
        "DELETE FROM agent_memory_changes WHERE agent_id = ? AND seq <= ?", (agent_id, mark)
    )
    connection.execute(
        "UPDATE agent_memory_agents SET pruned = ? WHERE agent_id = ?", (mark, agent_id)
    )
