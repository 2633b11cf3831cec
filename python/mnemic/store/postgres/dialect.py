"""What PostgreSQL writes in statements that SQLite writes differently."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, cast

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, Scope
from mnemic.model.rows import Record
from mnemic.model.timestamps import to_microseconds
from mnemic.store.postgres.rows import (
    StoredRows,
    adding,
    advance,
    fetch_numbered,
    has_vectors,
    insert_entries,
    overwrite_vectors,
    write_changes,
)
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.stored import (
    CHANGED,
    HAS_NO_VECTOR,
    ROW,
    USER_KEY,
    bound,
    entries_of,
    reading_stored,
    records_of,
)
from mnemic.store.postgres.vectors import (
    IS_OWN_ZERO,
    delete_own_vectors,
    delete_shadow_vectors,
    lacks_shadow_vectors,
    opened_vectors,
    own_vectors,
    readable_vectors,
    seal_vectors,
    shadow_vectors,
    switch_vectors,
    under_other_keys,
    upsert_vectors,
    write_sealed,
    write_shadow_vectors,
)
from mnemic.store.row_codec import ENCRYPTED, RowCodec, sealed_ids
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.dialect import PlainVector
from mnemic.store.sql.lists import Rows
from mnemic.store.sql.new_rows import NewVectors, as_stored, encoded
from mnemic.store.sql.replacing import Overwrite
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import Model, OwnedId


class PostgresDialect:
    """See `Dialect`."""

    row = ROW
    by_row = ""
    user_key = USER_KEY
    is_own_zero = IS_OWN_ZERO
    insert_link = (
        "INSERT INTO mnemic.agent_memory_links "
        "(agent_id, from_row, to_row, type, strength, created_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (agent_id, from_row, to_row, type)"
    )
    sealed_content = "content"
    entries_of_wall = (
        "FROM mnemic.agent_memory_entries AS entry WHERE entry.agent_id = wall.agent_id "
        "AND coalesce(entry.user_id, '') = wall.user_key"
    )
    keyed_row = f"{ROW}, fingerprint, idempotency_key, key_fingerprint"
    damaged = CHANGED
    refuses_ids = False  # an error would end the transaction
    update = "UPDATE"
    sum_columns: tuple[str, ...] = ()

    def among(self, column: str = "row") -> str:
        """Return the condition that a column is one of the numbers of a list, which is bound."""
        return f"{column} = ANY(?)"

    def owned(self, table: str, agent_id: str) -> Condition:
        """Return the condition that rows of links or vectors are an agent's."""
        return f"{table}.agent_id = ?", [agent_id]

    def reading_stored(self, what: str) -> AbstractContextManager[None]:
        """Convert errors of decoding stored values to StoreCorruptError."""
        return reading_stored(what)

    def entries(self, codec: RowCodec, rows: Sequence[Columns], scope: Scope) -> list[MemoryEntry]:
        """Return the entries of rows, all of a scope."""
        return entries_of(codec, rows, scope)

    def check_links(self, session: SqlSession, rows: Sequence[int]) -> None:
        """Do nothing: the server has checksums of its pages."""
        del session, rows

    def among_ids(self, column: str = "id") -> str:
        """Return the condition that a column is one of a list of UUIDs, which is bound."""
        return f"{column} = ANY(?)"

    def under_other_keys(self, agent_id: str, key_id: bytes, after: int = 0) -> Condition:
        """Return the SELECT of an agent's rows that, or a vector of which, other keys seal."""
        return under_other_keys(agent_id, key_id, after)

    def opened_vectors(
        self, session: SqlSession, codec: SealingRowCodec, agent_id: str, stored: list[Columns]
    ) -> list[PlainVector]:
        """Return all sealed vectors of stored rows in plain text."""
        return opened_vectors(_own(session), codec, agent_id, sealed_ids(stored))

    def write_sealed(
        self,
        session: SqlSession,
        agent_id: str,
        rows: Sequence[int],  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - all were opened
        vectors: Sequence[Columns],
    ) -> None:
        """Write sealed vectors over those of their rows."""
        write_sealed(_own(session), agent_id, vectors)

    def in_order(self, columns: str, where: str, order: str) -> str:
        """Return the statement that reads columns of the entries of a condition, in an order."""
        return f"SELECT {columns} FROM mnemic.agent_memory_entries WHERE {where} ORDER BY {order}"

    def among_rows(self, rows: Sequence[int], column: str = "row") -> Condition:
        """Return the condition that a column is one of these."""
        return self.among(column), [[int(row) for row in rows]]

    def owned_ids(self, wanted: Collection[OwnedId]) -> Condition:
        """Return rows of users and ids."""
        users, ids = [user_id or "" for user_id, _ in wanted], [each for _, each in wanted]
        rows = "unnest(CAST(? AS text[]), CAST(? AS uuid[])) AS wanted (wanted_user, wanted_id)"
        return f"{rows} JOIN", [users, ids]

    def vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        agent_id: str,
        rows: Sequence[int],
        model: str,
    ) -> dict[int, Float32Array]:
        """Return the vectors of rows."""
        return own_vectors(_own(session), codec, agent_id, rows, model)

    def readable_vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        agent_id: str,
        rows: Sequence[Columns],
        model: str,
    ) -> dict[int, Float32Array]:
        """Return the same, without those of sealed rows that break, which are logged."""
        return readable_vectors(_own(session), codec, agent_id, rows, model)

    def bound(self, columns: Columns, names: Sequence[str]) -> Columns:
        """Return columns of a codec as they are bound: ids as UUIDs, flags as booleans, texts."""
        return bound(columns, names)

    def replace_vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        row: Columns,
        entry: MemoryEntry,
        embedded: tuple[str, Float32Array] | None,
        *,
        drops_shadows: bool,
    ) -> None:
        """Delete the vectors of a row that was written; store new ones, if any are given."""
        on, agent_id = _own(session), entry.agent_id
        delete_own_vectors(on, agent_id, row[0], is_sealed=row[ENCRYPTED])
        if drops_shadows:
            delete_shadow_vectors(on, agent_id, row[0])
        if embedded is not None:
            name, parts = embedded
            time = to_microseconds(entry.updated_at)
            new = NewVectors(row[0], time, as_stored(codec, entry, name, parts))
            upsert_vectors(on, agent_id, (name, parts.shape[1]), [new])

    def seal_vectors(
        self, session: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry
    ) -> None:
        """Seal the vectors of a row that is sealed now; those of other models are deleted."""
        seal_vectors(_own(session), codec, row[0], entry)

    def by_index(self, name: str) -> str:
        """Return nothing: no statement of PostgreSQL names an index."""
        del name
        return ""

    def is_true(self, column: str) -> str:
        """Return the condition that a flag is set."""
        return column

    def integers(self, values: Sequence[Any]) -> list[int]:
        """Return stored integers, which are of their column's type."""
        return list(values)

    def records(self, codec: RowCodec, rows: list[Columns]) -> list[Record]:
        """Return rows in plain text."""
        return records_of(codec, rows)

    def lacks_vector(self, agent_id: str, model: str) -> Condition:
        """Return the condition of rows without any vector of a model."""
        return HAS_NO_VECTOR, [agent_id, model, agent_id, model]

    def insert_vectors(
        self, session: SqlSession, agent_id: str, model: Model, rows: Sequence[NewVectors]
    ) -> None:
        """Insert the vectors of rows that have none of the model."""
        upsert_vectors(_own(session), agent_id, model, rows)

    def sums_of(
        self, session: SqlSession, agent_id: str, overwrites: Sequence[Overwrite]
    ) -> Sequence[Columns]:
        """Return none: the server has checksums of its pages."""
        del session, agent_id
        return [()] * len(overwrites)

    def mark_deleted(
        self, session: SqlSession, agent_id: str, which: Rows, time: int
    ) -> list[Columns]:
        """Mark rows as deleted that are not; return number, id and user of each."""
        del agent_id
        sql = f"UPDATE {ENTRIES} SET forgotten_at = ? WHERE {which.where}"
        return session.fetch(f"{sql} RETURNING row, id, user_id", (time, *which.values))

    new_rows = staticmethod(encoded)
    adding = staticmethod(adding)
    fetch_numbered = staticmethod(fetch_numbered)
    insert_entries = staticmethod(insert_entries)
    overwrite_vectors = staticmethod(overwrite_vectors)
    advance = staticmethod(advance)
    write_changes = staticmethod(write_changes)
    has_vectors = staticmethod(has_vectors)
    row_reader = staticmethod(StoredRows)
    lacks_shadow_vectors = staticmethod(lacks_shadow_vectors)
    shadow_vectors = staticmethod(shadow_vectors)
    write_shadow_vectors = staticmethod(write_shadow_vectors)
    switch_vectors = staticmethod(switch_vectors)


def _own(session: SqlSession) -> Session:
    return cast("Session", session)


POSTGRES: Final = PostgresDialect()
