"""What SQLite writes in statements that PostgreSQL writes differently."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final, cast

from mnemic._core import column_sum
from mnemic.arrays import Float32Array
from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, Scope
from mnemic.model.rows import Record
from mnemic.store.row_codec import RowCodec
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.dialect import PlainVector
from mnemic.store.sql.lists import Rows
from mnemic.store.sql.new_rows import AddOptions, NewRow, vector_blobs
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.sqlite.change_log import CheckedRows, advance, has_vectors, write_changes
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, MASK, check, check_links_of, entries_of
from mnemic.store.sqlite.damage import DAMAGED, plain_records, reading_stored
from mnemic.store.sqlite.new_rows import (
    insert_entries,
    insert_vectors,
    new_rows,
    overwrite_vectors,
    sums_of,
)
from mnemic.store.sqlite.sealed_rows import opened_vectors, under_other_keys, write_sealed
from mnemic.store.sqlite.shadow_vectors import (
    lacks_shadow_vectors,
    shadow_vectors,
    switch_vectors,
    write_shadow_vectors,
)
from mnemic.store.sqlite.sql import BY_ROW, IS_OWN, USER_KEY, among, integers
from mnemic.store.sqlite.vectors import readable_vectors, replace_vectors, seal_vectors, vectors
from mnemic.store.values import OwnedId

if TYPE_CHECKING:
    from mnemic.store.sqlite.hardening import GuardedConnection


class SqliteDialect:
    """See `Dialect`."""

    row = CHECKED_COLUMNS
    by_row = BY_ROW
    user_key = USER_KEY
    is_own_zero = f"{IS_OWN} AND v.embedding = zeroblob(length(v.embedding))"
    insert_link = (
        "INSERT INTO agent_memory_links (from_row, to_row, type, strength, created_at) "
        "VALUES (?2, ?3, ?4, ?5, ?6) ON CONFLICT (from_row, to_row, type)"
    )
    sealed_content = "CAST(content AS BLOB)"  # its texts need not be UTF-8
    entries_of_wall = (
        "FROM agent_memory_entries AS entry INDEXED BY agent_memory_entries_by_user "
        "WHERE entry.agent_id = wall.agent_id AND entry.user_id IS nullif(wall.user_key, '')"
    )
    keyed_row = CHECKED_COLUMNS
    damaged = DAMAGED
    refuses_ids = True
    # Where a constraint fails, the write ends: SQLite need not be able to undo one row alone.
    update = "UPDATE OR FAIL"
    sum_columns: tuple[str, ...] = ("row_sum", "vector_sum")

    def among(self, column: str = "row") -> str:
        """Return the condition that a column is one of the numbers of a list, which is bound."""
        return f"{column} IN (SELECT value FROM json_each(?))"

    def owned(self, table: str, agent_id: str) -> Condition:
        """Return a condition that always holds: a row's number leads to no other agent's."""
        del table, agent_id
        return "true", []

    def reading_stored(self, what: str) -> AbstractContextManager[None]:
        """Convert errors of decoding stored values to StoreCorruptError."""
        return reading_stored(what)

    def entries(self, codec: RowCodec, rows: Sequence[Columns], scope: Scope) -> list[MemoryEntry]:
        """Return entries, checked to be in the scope; a damaged index may lead to others."""
        entries = entries_of(codec, list(rows))
        if not all(map(scope.has, entries)):
            raise StoreCorruptError(f"an index leads to a memory outside {scope}; {DAMAGED}")
        return entries

    def check_links(self, session: SqlSession, rows: Sequence[int]) -> None:
        """Compare the links from rows with their checksums."""
        check_links_of(_own(session), rows)

    def among_ids(self, column: str = "id") -> str:
        """Return the condition that a column is one of a list of UUIDs, which is bound."""
        return f"{column} IN (SELECT unhex(value, '-') FROM json_each(?))"

    def under_other_keys(self, agent_id: str, key_id: bytes, after: int = 0) -> Condition:
        """Return the SELECT of the rows of an agent that are sealed under other keys."""
        return under_other_keys(agent_id, key_id, after)

    def opened_vectors(
        self, session: SqlSession, codec: SealingRowCodec, agent_id: str, stored: list[Columns]
    ) -> list[PlainVector]:
        """Return the own vectors of sealed rows in plain text, after a look at their checksums."""
        return opened_vectors(_own(session), codec, agent_id, stored)

    def write_sealed(
        self,
        session: SqlSession,
        agent_id: str,  # noqa: ARG002 # pyright: ignore[reportUnusedParameter] - see `owned`
        rows: Sequence[int],
        vectors: Sequence[Columns],
    ) -> None:
        """Write sealed vectors over those of their rows; delete shadow vectors."""
        write_sealed(_own(session), rows, vectors)

    def in_order(self, columns: str, where: str, order: str) -> str:
        """Return the statement that reads columns of the entries of a condition, in an order.

        Their keys alone are sorted, in memory, and never their texts. Without the limit, SQLite
        would leave out the order of a subquery.
        """
        keys = f"SELECT row AS wanted FROM agent_memory_entries WHERE {where} ORDER BY {order}"
        return (
            f"SELECT {columns} FROM ({keys} LIMIT -1) "
            f"CROSS JOIN agent_memory_entries {BY_ROW} ON row = wanted"
        )

    def among_rows(self, rows: Sequence[int], column: str = "row") -> Condition:
        """Return the condition that a column is one of these, in a form that is fast for a few."""
        return among(rows, column)

    def owned_ids(self, wanted: Collection[OwnedId]) -> Condition:
        """Return rows of users and ids; the planner would read all rows of an agent first."""
        # Texts of both: to read arrays within an array takes as long again as the rows.
        rows = "SELECT substr(value, 33) AS wanted_user, unhex(substr(value, 1, 32)) AS wanted_id"
        named = [f"{entry_id.hex}{user_id or ''}" for user_id, entry_id in wanted]
        return f"({rows} FROM json_each(?)) CROSS JOIN", [named]

    def vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        agent_id: str,
        rows: Sequence[int],
        model: str,
    ) -> dict[int, Float32Array]:
        """Return the vectors of rows, compared with their checksums."""
        return vectors(_own(session), codec, agent_id, rows, model)

    def readable_vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        agent_id: str,
        rows: Sequence[Columns],
        model: str,
    ) -> dict[int, Float32Array]:
        """Return the same, without those of sealed rows that break, which are logged."""
        return readable_vectors(_own(session), codec, agent_id, list(rows), model)

    def bound(self, columns: Columns, names: Sequence[str]) -> Columns:
        """Return the same: the columns of a codec are those of the file."""
        del names
        return columns

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
        plain = None if embedded is None else (embedded[0], vector_blobs(embedded[1]))
        replace_vectors(_own(session), codec, row[0], entry, plain, drops_shadows=drops_shadows)

    def seal_vectors(
        self, session: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry
    ) -> None:
        """Seal the vectors of a row that is sealed now; those of other models are deleted."""
        seal_vectors(_own(session), codec, row, entry)

    def by_index(self, name: str) -> str:
        """Return the hint to read by an index of this name."""
        return f"INDEXED BY agent_memory_entries_by_{name}"

    def is_true(self, column: str) -> str:
        """Return the condition that a flag is set, as partial indexes have it."""
        return f"{column} <> 0"

    def records(self, codec: RowCodec, rows: list[Columns]) -> list[Record]:
        """Return rows in plain text, compared with their checksums."""
        check(rows)
        return plain_records(codec, rows)

    def lacks_vector(self, agent_id: str, model: str) -> Condition:
        """Return the condition of rows without any vector of a model."""
        del agent_id
        lacks = (
            "NOT EXISTS (SELECT 1 FROM agent_memory_embeddings AS v "
            "WHERE v.entry_row = row AND v.model = ? AND v.part = 0)"
        )
        return lacks, [model]

    def fetch_numbered(
        self, session: SqlSession, select: Condition, number: int
    ) -> tuple[list[Columns], Sequence[int]]:
        """Return the rows of a statement; new rows are numbered as they are inserted."""
        del number
        return session.fetch_checked(*select), ()

    def adding(
        self, session: SqlSession, rows: Sequence[NewRow], rules: AddOptions
    ) -> AbstractContextManager[None]:
        """Do nothing: no statement crosses a network."""
        del session, rows, rules
        return nullcontext()

    def mark_deleted(
        self, session: SqlSession, agent_id: str, which: Rows, time: int
    ) -> list[Columns]:
        """Mark rows as deleted that are not; NULL counts as 0 in their sums, which grow alike."""
        where, values, hint = which
        on, more = _own(session), column_sum("forgotten_at", time)
        on.summed_rows.settle_rows(on)
        sql = (
            f"UPDATE {ENTRIES} {hint} SET forgotten_at = ?, row_sum = (row_sum + ?) & {MASK} "
            f"WHERE {where} RETURNING row, id, user_id, row_sum, vector_sum, link_sum, status"
        )
        marked = on.fetch(sql, (time, more, *values))
        summed = [(row, *sums) for row, _, _, *sums in marked if sums[0] is not None]
        after = [(*sums, time) for sums in summed]
        before = [(row, (own - more) & MASK, *others, None) for row, own, *others in summed]
        on.summed_rows.rewrite(agent_id, before, after)
        return [columns[:3] for columns in marked]

    new_rows = staticmethod(new_rows)
    insert_entries = staticmethod(insert_entries)
    sums_of = staticmethod(sums_of)
    overwrite_vectors = staticmethod(overwrite_vectors)
    insert_vectors = staticmethod(insert_vectors)
    integers = staticmethod(integers)
    advance = staticmethod(advance)
    write_changes = staticmethod(write_changes)
    has_vectors = staticmethod(has_vectors)
    row_reader = staticmethod(CheckedRows)
    lacks_shadow_vectors = staticmethod(lacks_shadow_vectors)
    shadow_vectors = staticmethod(shadow_vectors)
    write_shadow_vectors = staticmethod(write_shadow_vectors)
    switch_vectors = staticmethod(switch_vectors)


def _own(session: SqlSession) -> "GuardedConnection":
    return cast("GuardedConnection", session)


SQLITE: Final = SqliteDialect()
