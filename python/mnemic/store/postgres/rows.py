"""What PostgreSQL does otherwise in storing and loading rows: arrays, COPY, and pipelines."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from mnemic.crypto.envelope import OVERHEAD
from mnemic.errors import StoreCorruptError
from mnemic.model.rows import Link, Record, State
from mnemic.store.changes import Change, UserTotals
from mnemic.store.new_rows import AddOptions, NewRow, NewVectors, Overwrite
from mnemic.store.postgres.session import COPIED, Columns, Insertion, Session
from mnemic.store.postgres.stored import (
    CHANGED,
    EMBEDDINGS,
    MORE,
    ROW,
    SEALED_VECTORS,
    bound,
    records_of,
)
from mnemic.store.postgres.vectors import Vectors, plain_vectors, sealed_vectors, upsert_vectors
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec, sealed_ids, uuid_of
from mnemic.store.sql.change_log import AGENTS, CHANGES, USERS
from mnemic.store.sql.conditions import ENTRIES, visible
from mnemic.store.sql.dialect import Advanced
from mnemic.store.sql.session import Condition, SqlSession
from mnemic.store.values import LogPosition, Model

_ENTRIES: Final = Insertion.into(ENTRIES, f"{ROW}, {', '.join(MORE)}")
_NUMBERS: Final = "SELECT nextval('mnemic.agent_memory_rows') FROM generate_series(1, ?)"
_CREATED_AT: Final = COLUMN_NAMES.index("created_at")
_ADVANCE: Final = (
    f"INSERT INTO {AGENTS} AS agent (agent_id, seq, used_bytes, model, dimensions, time_zone) "
    "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (agent_id) DO UPDATE SET "
    "seq = agent.seq + excluded.seq, used_bytes = agent.used_bytes + excluded.used_bytes, "
    "model = coalesce(agent.model, excluded.model), "
    "dimensions = coalesce(agent.dimensions, excluded.dimensions), "
    "time_zone = coalesce(agent.time_zone, excluded.time_zone) "
    "RETURNING seq, accesses, used_bytes, model, dimensions"
)
_ADVANCE_USERS: Final = (
    f"INSERT INTO {USERS} AS wall (agent_id, user_key, revision, used_bytes) "
    "SELECT %s, * FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) "
    "ON CONFLICT (agent_id, user_key) DO UPDATE SET "
    "revision = wall.revision + excluded.revision, "
    "used_bytes = wall.used_bytes + excluded.used_bytes RETURNING user_key, used_bytes"
)
_INSERT_CHANGES: Final = (
    f"INSERT INTO {CHANGES} (agent_id, seq, entry_row, entry_id, kind, user_id) "
    "SELECT %s, * FROM unnest(%s::bigint[], %s::bigint[], %s::uuid[], %s::text[], %s::text[])"
)
_HAS_VECTORS: Final = (
    f"SELECT EXISTS (SELECT 1 FROM {EMBEDDINGS} WHERE agent_id = %s AND model = %s "
    "AND NOT is_companion AND pgvector.vector_dims(embedding) = %s) "
    f"OR EXISTS (SELECT 1 FROM {SEALED_VECTORS} WHERE agent_id = %s AND model = %s "
    f"AND octet_length(sealed) = 4 * %s + {OVERHEAD})"
)


def adding(
    session: SqlSession, rows: Sequence[NewRow], rules: AddOptions
) -> AbstractContextManager[None]:
    """Return a pipeline, in which neither COPY nor the batches of a filter run."""
    on = cast("Session", session)
    is_copied = max(len(rows), sum(len(new.vectors) for new in rows)) >= COPIED
    if rules.wanted.instead_of is not None or (on.can_copy and is_copied):
        return nullcontext()
    return on.pipeline()


def fetch_numbered(
    session: SqlSession, select: Condition, number: int
) -> tuple[list[Columns], Sequence[int]]:
    """Return the rows of a statement, and numbers for new rows, in one round trip of a pipeline."""
    found, numbers = cast("Session", session).fetch_each(select, (_NUMBERS, (number,)))
    return found, sorted([row for (row,) in numbers])


def insert_entries(
    session: SqlSession,
    agent_id: str,
    rows: Sequence[NewRow],
    model: Model | None,
    numbers: Sequence[int],
) -> Sequence[int]:
    """Insert entries of an agent with their vectors, as the rows of these numbers."""
    on = cast("Session", session)
    numbered = list(zip(numbers, rows, strict=True))
    values = [(row, *bound(new.columns), *new.more) for row, new in numbered]
    on.insert(_ENTRIES, values)
    vectors = [
        NewVectors(row, new.columns[_CREATED_AT], new.stored_vectors) for row, new in numbered
    ]
    upsert_vectors(on, agent_id, model, vectors)
    return numbers


def overwrite_vectors(
    session: SqlSession, agent_id: str, model: Model | None, overwrites: Sequence[Overwrite]
) -> None:
    """Write the vectors of entries over those of the rows whose places they take."""
    outdated = [each for each in overwrites if not each.keeps_vectors]
    shadowed = [each for each in overwrites if each.changes_content or each.entry.hides_content]
    sealed = [each for each in outdated if each.old.is_sealed]
    for table, gone in (
        (f"{EMBEDDINGS} WHERE is_companion", shadowed),
        (f"{EMBEDDINGS} WHERE NOT is_companion", outdated),
        (f"{SEALED_VECTORS} WHERE true", sealed),
    ):
        if gone:
            sql = f"DELETE FROM {table} AND agent_id = ? AND entry_row = ANY(?)"
            session.run(sql, (agent_id, [each.old.row for each in gone]))
    new = [NewVectors(each.old.row, each.time, each.new.stored_vectors) for each in outdated]
    upsert_vectors(cast("Session", session), agent_id, model, new)


def advance(
    session: SqlSession,
    agent_id: str,
    users: Sequence[UserTotals],
    model: Model | None,
    time_zone: str | None,
) -> Advanced:
    """Add changes to the rows of an agent and of its users, in one round trip of a pipeline."""
    on = cast("Session", session)
    names, steps, sizes = map(list, zip(*users, strict=True))
    by_user = agent_id, [name or "" for name in names], steps, sizes
    in_all = agent_id, sum(steps), sum(sizes), *(model or (None, None)), time_zone
    of_users, ((seq, accesses, used_bytes, *known),) = on.fetch_each(
        (_ADVANCE_USERS, by_user), (_ADVANCE, in_all)
    )
    on.positions[agent_id] = LogPosition(seq, accesses)
    return Advanced(seq, used_bytes, known, dict(of_users))


def write_changes(
    session: SqlSession, agent_id: str, first: int, changes: Sequence[Change]
) -> None:
    """Insert changes into an agent's log, numbered from `first`."""
    columns: tuple[list[Any], ...] = tuple(map(list, zip(*changes, strict=True)))
    rows, ids, kinds, user_ids, _ = columns
    numbers = list(range(first, first + len(changes)))
    bound_ids = [uuid_of(entry_id) for entry_id in ids]
    session.run(_INSERT_CHANGES, (agent_id, numbers, rows, bound_ids, kinds, user_ids))


def has_vectors(session: SqlSession, agent_id: str, model: Sequence[Any]) -> bool:
    """Return whether an agent has vectors of a model, given by its name and its dimension."""
    return bool(session.value(_HAS_VECTORS, (agent_id, *model, agent_id, *model)))


# A COPY in binary format: a signature with flags, the rows, and a mark of two bytes. Each row has
# its number of columns in two bytes, and before each column its size in four; a vector begins with
# its dimension and two bytes without a meaning.
_COPY_HEADER: Final = 19
_COPY_END: Final = 2


class StoredRows:
    """Reads rows and their vectors; see `RowReader`.

    Args:
        session: At one moment.
        codec: Codec of the entries.
        agent_id: The agent.
        model: Model of the vectors.
    """

    def __init__(
        self, session: SqlSession, codec: RowCodec, agent_id: str, model: Model | None
    ) -> None:
        self._session = cast("Session", session)
        self._codec = codec
        self._agent_id = agent_id
        self._model = model
        self._has_rows = False
        self._sealed: dict[int, bytes] = {}

    def records(self, rows: list[Columns]) -> list[Record]:
        """Return further rows, in plain text."""
        records = records_of(self._codec, rows)
        self._has_rows = self._has_rows or bool(records)
        self._sealed |= sealed_ids(records)
        return records

    def check_complete(self, state: State) -> None:
        """Do nothing: the server has checksums of its pages."""
        del state

    def vectors(self, rows: Sequence[int]) -> tuple[list[int], NDArray[np.float32] | None]:
        """Return all vectors of rows that were given; zeros for a row with a broken one."""
        if self._model is None or not rows:
            return [], None
        # Zeros of sealed rows too.
        found = plain_vectors(self._session, self._agent_id, rows, self._model[0])
        if self._sealed:
            found |= self._sealed_vectors(self._model, self._sealed)
        return _joined(found, self._model) if found else ([], None)

    def _sealed_vectors(self, model: Model, sealed: Mapping[int, bytes]) -> dict[int, Vectors]:
        name, dimensions = model
        return sealed_vectors(
            self._session, self._codec, self._agent_id, sealed, name, dimensions=dimensions
        )

    def all_vectors(
        self, selected: Condition, size: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield the vectors of all rows of a condition in batches."""
        if self._model is None or not self._has_rows:
            return
        yield from self._plain_batches(selected, self._model, size)
        yield from self._sealed_batches(self._model, size)

    def _plain_batches(
        self, selected: Condition, model: Model, size: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield the vectors in plain text of the rows of a condition."""
        (where, values), (name, dim) = selected, model
        sql = (
            f"SELECT entry_row, embedding FROM {EMBEDDINGS} AS v "
            f"JOIN {ENTRIES} AS e USING (agent_id) "
            f"WHERE {where} AND {visible(self._codec)} "
            "AND (NOT is_encrypted OR pgvector.vector_norm(embedding) = 0) "
            "AND e.row = v.entry_row AND model = %s AND NOT is_companion ORDER BY entry_row, part"
        )
        data = self._session.copied(sql, (*values, name))
        row = np.dtype(
            {
                "names": ["row", "dim", "vector"],
                "formats": [">i8", ">i2", (">f4", dim)],
                "offsets": [6, 18, 22],
            }
        )
        length = len(data) - _COPY_HEADER - _COPY_END
        table = np.frombuffer(data, row, count=length // row.itemsize, offset=_COPY_HEADER)
        if length % row.itemsize or not (table["dim"] == dim).all():
            raise StoreCorruptError(f"a stored vector has not {dim} dimensions; {CHANGED}")
        rows = table["row"].astype(np.int64)
        begin = 0
        while begin < len(rows):
            last = rows[min(begin + size, len(rows)) - 1]
            end = int(np.searchsorted(rows, last, "right"))  # with all chunks of the last row
            yield rows[begin:end], table["vector"][begin:end].astype(np.float32)
            begin = end

    def _sealed_batches(
        self, model: Model, size: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield the vectors of sealed rows, in plain text; zeros for broken ones."""
        rows = sorted(self._sealed)
        for first in range(0, len(rows), size):
            part = {row: self._sealed[row] for row in rows[first : first + size]}
            found = self._sealed_vectors(model, part)
            if found:
                numbers, vectors = _joined(found, model)
                yield np.array(numbers, dtype=np.int64), vectors

    def links(self, found: list[Columns]) -> list[Link]:
        """Return links."""
        return [link[:-1] for link in found]


def _joined(found: Mapping[int, Vectors], model: Model) -> tuple[list[int], NDArray[np.float32]]:
    """Return vectors, each with its row."""
    vectors = [vector for own in found.values() for vector in own]
    if not {model[1]}.issuperset(vector.size for vector in vectors):
        raise StoreCorruptError(f"a stored vector has not {model[1]} dimensions; {CHANGED}")
    return [row for row, own in found.items() for _ in own], np.stack(vectors)
