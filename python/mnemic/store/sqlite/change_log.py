"""What SQLite does otherwise in the change log: sums of agents and rows, nonces, and snapshots."""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, cast

from mnemic._core import VectorSums
from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.crypto.envelope import OVERHEAD
from mnemic.errors import StoreCorruptError
from mnemic.model.rows import Link, Record, State
from mnemic.store.changes import Change, UserTotals
from mnemic.store.operations import HasRemovedSince, NonceOfChange, SealedRows
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.change_log import HAS_STATE, reaches_back
from mnemic.store.sql.dialect import Advanced
from mnemic.store.sql.operations import Reading
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.sqlite.checksums import (
    MASK,
    NO_SUMS,
    SUM_COLUMNS,
    Sums,
    added,
    check_links,
    check_no_vector_is_lost,
    check_vectors,
    read_vectors,
)
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    among,
    integers,
)
from mnemic.store.sqlite.sqlite_errors import DAMAGED
from mnemic.store.sqlite.vectors import ReadSums, VectorOpener, read_rows
from mnemic.store.values import Model

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
_HAS_VECTORS = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_entries AS e "
    "CROSS JOIN agent_memory_embeddings AS v ON v.entry_row = e.row "
    "WHERE e.agent_id = ?1 AND v.model = ?2 "
    f"AND length(v.embedding) IN (4 * ?3, 4 * ?3 + {OVERHEAD}))"  # the latter sealed
)
_ADVANCED = "SELECT seq, used_bytes, model, dimensions FROM agent_memory_agents WHERE agent_id = ?"
# Reading all vectors in file order takes a quarter of the time of looking up each of them.
_SCAN_FROM = 4
_ALL_VECTORS = (
    "SELECT entry_row, embedding FROM agent_memory_embeddings WHERE model = ? AND part = 0"
)
# File order does not keep the chunks of a row together; those of long entries are looked up.
_LONG = "SELECT entry_row FROM agent_memory_embeddings WHERE model = ? AND part = 1"
_VECTORS_OF = (
    f"SELECT row, embedding FROM agent_memory_entries {BY_ROW} "
    "CROSS JOIN agent_memory_embeddings ON entry_row = row "
    "WHERE agent_id = ? AND {} AND model = ? ORDER BY row, part"
)
_LONG_VECTORS = _VECTORS_OF.format(AMONG)
_LAST_VECTOR = "SELECT max(rowid) FROM agent_memory_embeddings"
_OWN_VECTORS = (
    "SELECT v.entry_row, v.embedding FROM agent_memory_entries AS e "
    "INDEXED BY agent_memory_entries_by_agent CROSS JOIN agent_memory_embeddings AS v "
    "ON v.entry_row = e.row WHERE e.agent_id = ? AND v.model = ? ORDER BY e.row, v.part"
)
_AGENT_SUMS = "SELECT summed_rows, rows_sum FROM agent_memory_agents WHERE agent_id = ?"
# By indexes that hold few rows, or all selected columns.
_PLACED = {
    state: f"SELECT {SUM_COLUMNS} FROM agent_memory_entries "
    f"INDEXED BY agent_memory_entries_by_{index} WHERE agent_id = ? AND {HAS_STATE[state]}"
    for state, index in (
        (State.ACTIVE, "agent"),
        (State.INACTIVE, "user"),
        (State.DELETED, "forgotten"),
    )
}
_ADVANCE_USER = (
    "UPDATE agent_memory_walls SET revision = revision + ?, used_bytes = used_bytes + ? "
    "WHERE agent_id = ? AND user_key = ?"
)
_BEGIN_USER = (
    "INSERT INTO agent_memory_walls (revision, used_bytes, agent_id, user_key) VALUES (?, ?, ?, ?)"
)
_SEALED = (
    "SELECT row FROM agent_memory_entries INDEXED BY agent_memory_entries_by_seal "
    "WHERE agent_id = ? AND is_encrypted <> 0"
)
_NONCE = "SELECT nonce FROM agent_memory_changes WHERE agent_id = ? AND seq = ?"
_REMOVES_CONTENT = (
    "SELECT EXISTS (SELECT 1 FROM agent_memory_changes WHERE agent_id = ? AND seq > ? "
    "AND kind IN ('delete', 'replace', 'update'))"
)


def advance(
    session: SqlSession,
    agent_id: str,
    users: Sequence[UserTotals],
    model: Model | None,
    time_zone: str | None,
) -> Advanced:
    """Add changes to the rows of an agent and of its users; see `Dialect.advance`."""
    for user_id, steps, size in users:
        values: Columns = (steps, size, agent_id, user_id or "")
        if session.run(_ADVANCE_USER, values) == 0:
            session.run(_BEGIN_USER, values)
    connection = cast("GuardedConnection", session)
    sums = connection.summed_rows.settle(connection, agent_id)
    steps, size = sum([user.steps for user in users]), sum([user.size for user in users])
    values = (steps, size, *sums, *(model or (None, None)), time_zone, agent_id)
    if session.run(_ADVANCE, values) == 0:
        session.run(_BEGIN, values)
    ((seq, used, *known),) = session.fetch(_ADVANCED, (agent_id,))
    seq, used = integers([seq, used])
    return Advanced(seq, used, known, {})


def write_changes(
    session: SqlSession, agent_id: str, first: int, changes: Sequence[Change]
) -> None:
    """Insert changes into an agent's log, numbered from `first`."""
    # 63 random bits of the system, which a fork or a copy of the process cannot repeat.
    nonce = int.from_bytes(os.urandom(8), "big") >> 1
    session.run_all(
        _INSERT,
        [(agent_id, seq, *change[:-1], nonce) for seq, change in enumerate(changes, start=first)],
    )


def has_vectors(session: SqlSession, agent_id: str, model: Sequence[Any]) -> bool:
    """Return whether an agent has vectors of a model, given by its name and its dimension."""
    return bool(session.value(_HAS_VECTORS, (agent_id, *model)))


class CheckedRows:
    """Reads rows with their checksums; see `RowReader`.

    Args:
        session: At one moment.
        codec: Codec of the entries.
        agent_id: The agent.
        model: Model of the vectors.
    """

    def __init__(
        self, session: SqlSession, codec: RowCodec, agent_id: str, model: Model | None
    ) -> None:
        self._session = session
        self._codec = codec
        self._agent_id = agent_id
        self._model = model
        self._rows: set[int] = set()
        self._sealed: dict[int, bytes] = {}
        self._sums = NO_SUMS
        self._of_vectors = ReadSums(VectorSums(), VectorSums())
        self._of_links: dict[int, int] = {}

    def records(self, rows: list[Columns]) -> list[Record]:
        """Return further rows, in plain text."""
        read = read_rows(self._codec, rows, self._of_vectors)
        self._sums = self._sums.plus(read.sums)
        self._of_links |= read.links
        self._rows.update(map(itemgetter(0), read.records))
        self._sealed |= read.sealed
        return read.records

    def check_complete(self, state: State) -> None:
        """Compare the sum over all rows of the agent with the stored sum."""
        found = self._sums
        for other in State:
            if other is not state:
                placed = self._session.fetch(_PLACED[other], (self._agent_id,))
                found = found.plus(added(placed))
        agent = self._session.fetch(_AGENT_SUMS, (self._agent_id,))
        wanted = Sums(*integers(agent[0])) if agent else NO_SUMS
        if found != wanted:
            raise StoreCorruptError(
                f"agent {self._agent_id!r} should have {wanted.rows} memories with checksums, and "
                f"has {found.rows}{' others' if found.rows == wanted.rows else ''}; {DAMAGED}"
            )

    def vectors(self, rows: Sequence[int]) -> tuple[list[int], Float32Array | None]:
        """Return all vectors of rows that were given."""
        if self._model is None or not rows:
            return [], None
        name, dimensions = self._model
        where, among_rows = among(rows)
        values = (self._agent_id, *among_rows, name)
        found = self._session.fetch(_VECTORS_OF.format(where), values)
        sealed = [vector for vector in found if vector[0] in self._sealed]
        plain = [vector for vector in found if vector[0] not in self._sealed] if sealed else found
        check_vectors(name, plain, self._of_vectors.plain, is_all=True)
        if sealed:
            plain += self._opener(name).readable(sealed, self._of_vectors.sealed, dimensions)
        return [row for row, _ in plain], _stacked(plain, dimensions) if plain else None

    def all_vectors(
        self, selected: Condition, size: int
    ) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield the vectors of all rows that were given in batches."""
        del selected
        if self._model is None or not self._rows:
            return iter(())
        return chain(
            self._plain_batches(self._model, size), self._sealed_batches(self._model, size)
        )

    def _opener(self, model: str) -> VectorOpener:
        return VectorOpener(self._codec, self._agent_id, model, self._sealed)

    def _plain_batches(self, model: Model, size: int) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield the vectors of rows in plain text; each is copied once, to its place."""
        found = self._stored_vectors(model[0], self._rows - self._sealed.keys())
        sums, checked = self._of_vectors.plain, 0
        batch = list(islice(found, size))
        while batch:
            following = next(found, None)
            while following is not None and following[0] == batch[-1][0]:
                batch.append(following)
                following = next(found, None)
            rows, vectors, summed = read_vectors(model, batch, sums)
            checked += summed
            yield rows, vectors
            batch = [] if following is None else [following, *islice(found, size - 1)]
        check_no_vector_is_lost(sums, checked)

    def _sealed_batches(self, model: Model, size: int) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield the vectors of sealed rows, in plain text."""
        opener, (name, dimensions) = self._opener(model[0]), model
        rows, found_rows = sorted(self._sealed), 0
        for first in range(0, len(rows), size):
            values = self._agent_id, rows[first : first + size], name
            found = self._session.fetch(_LONG_VECTORS, values)
            if found:
                opened = opener.readable(found, self._of_vectors.sealed, dimensions)
                numbers = [row for row, _ in opened]
                found_rows += len(set(numbers))
                yield np.array(numbers, dtype=np.int64), _stacked(opened, dimensions)
        check_no_vector_is_lost(self._of_vectors.sealed, found_rows)

    def _stored_vectors(self, model: str, wanted_rows: set[int]) -> Iterator[Columns]:
        """Yield wanted rows with their chunks' vectors, those of a row next to each other."""
        agent_id = self._agent_id
        stored = self._session.value(_LAST_VECTOR)
        if _SCAN_FROM * len(wanted_rows) < (stored or 0):
            for found in self._session.stream(_OWN_VECTORS, (agent_id, model)):
                if found[0] in wanted_rows:
                    yield found
            return
        long = {row for (row,) in self._session.fetch(_LONG, (model,)) if row in wanted_rows}
        short = wanted_rows - long
        for found in self._session.stream(_ALL_VECTORS, (model,)):
            if found[0] in short:
                yield found
        if long:
            values = (agent_id, sorted(long), model)
            yield from self._session.stream(_LONG_VECTORS, values)

    def links(self, found: list[Columns]) -> list[Link]:
        """Return links, after comparing those from rows that were given with their sums."""
        check_links(found, self._of_links)
        return [link[:-1] for link in found]


def _stacked(vectors: list[Columns], dim: int) -> Float32Array:
    """Return vectors, each a row and bytes, shape (n, dim)."""
    blobs = [blob for _, blob in vectors]
    if not {bytes}.issuperset(map(type, blobs)) or not {4 * dim}.issuperset(map(len, blobs)):
        raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {DAMAGED}")
    return np.frombuffer(b"".join(blobs), dtype="<f4").reshape(len(blobs), dim)


def nonce_of_change(on: SqlSession, _codec: RowCodec, wanted: NonceOfChange) -> int | None:
    """Return the nonce of a change; None if the log has no such change."""
    found = on.fetch(_NONCE, (wanted.agent_id, wanted.seq))
    return integers(found[0])[0] if found else None


def has_removed_since(on: SqlSession, _codec: RowCodec, wanted: HasRemovedSince) -> bool:
    """Return whether content may have been deleted or overwritten after a change."""
    agent_id, seq = wanted.agent_id, wanted.seq
    return not reaches_back(on, agent_id, seq) or bool(on.value(_REMOVES_CONTENT, (agent_id, seq)))


def sealed_rows(on: SqlSession, _codec: RowCodec, wanted: SealedRows) -> list[int]:
    """Return the rows of an agent's sealed entries, in any state."""
    return integers([row for (row,) in on.fetch(_SEALED, (wanted.agent_id,))])


SNAPSHOT_READS: Final[Mapping[type, Reading]] = {
    HasRemovedSince: Reading(has_removed_since, one_moment=True),
    NonceOfChange: Reading(nonce_of_change),
    SealedRows: Reading(sealed_rows),
}
"""The reads of a store that keeps snapshots of indexes."""
