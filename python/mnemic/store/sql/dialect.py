"""What differs between the statements of the stores."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, Scope
from mnemic.model.new_entry import NewEntry
from mnemic.model.rows import Link, Record, State
from mnemic.store.changes import Change, UserTotals
from mnemic.store.operations import AddShadowVectors
from mnemic.store.row_codec import RowCodec
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sql.new_rows import AddOptions, NewRow, NewVectors
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import Model, OwnedId

PlainVector: TypeAlias = tuple[str, int, int, bytes]
"""A sealed row's vector in plain text: its model, chunk, row and bytes."""
if TYPE_CHECKING:
    from mnemic.arrays import Int64Array
    from mnemic.store.sql.lists import Rows
    from mnemic.store.sql.replacing import Overwrite


class Dialect(Protocol):
    """How a database writes what others write differently.

    Attributes:
        row: The columns of a row that `entries` reads: its number first, then those of the codec.
        by_row: Hint, behind a table's name, to reach rows by their numbers.
        user_key: The user of a row in its unique index; no user is an empty text.
        is_own_zero: Condition of vectors, `v`, of the agent's own model that stand for none.
        insert_link: INSERT of a link (agent, from, to, type, strength, time), up to what is done
            if there is one.
        entries_of_wall: FROM and WHERE of the entries, `entry`, of the user of a row, `wall`.
        sealed_content: The content of a sealed row, which is read for its codec.
        keyed_row: The columns of `row`, and behind those of the codec what it made of the keys.
        damaged: What an error for stored values that cannot be says beside what is wrong.
        refuses_ids: Whether `insert_entries` finds an id in use; otherwise they are looked up.
        update: UPDATE of many rows, none of which may meet a constraint.
        sum_columns: The columns of `sums_of`.
    """

    row: str
    by_row: str
    user_key: str
    is_own_zero: str
    insert_link: str
    entries_of_wall: str
    sealed_content: str
    keyed_row: str
    damaged: str
    refuses_ids: bool
    update: str
    sum_columns: tuple[str, ...]

    def among(self, column: str = "row") -> str:
        """Return the condition that a column is one of the numbers of a list, which is bound."""
        ...

    def owned(self, table: str, agent_id: str) -> Condition:
        """Return the condition that rows of links or vectors are an agent's.

        In SQLite the number of a row is unique in all of the file, and links and vectors have no
        agent.

        Args:
            table: Name of the table in the statement.
            agent_id: The agent.
        """
        ...

    def reading_stored(self, what: str) -> AbstractContextManager[None]:
        """Convert errors of decoding stored values to StoreCorruptError, without quoting them.

        Args:
            what: Name of the value for the message, such as "a link".
        """
        ...

    def entries(self, codec: RowCodec, rows: Sequence[Columns], scope: Scope) -> list[MemoryEntry]:
        """Return the entries of rows, each the columns of `row`, all of a scope.

        Raises:
            StoreCorruptError: If a row is damaged, or of another scope.
            SealBrokenError: If a sealed one cannot be opened.
        """
        ...

    def check_links(self, session: SqlSession, rows: Sequence[int]) -> None:
        """Compare the links from rows with their checksums, where the database has such sums.

        Raises:
            StoreCorruptError: If a link is damaged or lost.
        """
        ...

    def among_ids(self, column: str = "id") -> str:
        """Return the condition that a column is one of a list of UUIDs, which is bound."""
        ...

    def under_other_keys(self, agent_id: str, key_id: bytes, after: int = 0) -> Condition:
        """Return the SELECT of the rows of an agent of which something is sealed under other keys.

        Args:
            agent_id: The agent.
            key_id: The key that they are not sealed under.
            after: Only later rows.
        """
        ...

    def opened_vectors(
        self, session: SqlSession, codec: SealingRowCodec, agent_id: str, stored: list[Columns]
    ) -> list[PlainVector]:
        """Return the sealed vectors of stored rows, each the columns of `row`, in plain text.

        Raises:
            SealBrokenError: If one does not open, or a row is damaged.
        """
        ...

    def write_sealed(
        self,
        session: SqlSession,
        agent_id: str,
        rows: Sequence[int],
        vectors: Sequence[Columns],
    ) -> None:
        """Write the sealed vectors of rows, each with its row, model and chunk, over theirs.

        Vectors of the rows that were not opened are deleted.
        """
        ...

    def in_order(self, columns: str, where: str, order: str) -> str:
        """Return the statement that reads columns of the entries of a condition, in an order."""
        ...

    def among_rows(self, rows: Sequence[int], column: str = "row") -> Condition:
        """Return the condition that a column is one of these, in a form that is fast for a few."""
        ...

    def owned_ids(self, wanted: Collection[OwnedId]) -> Condition:
        """Return rows of wanted_user, "" for none, and wanted_id, up to a join of them in order."""
        ...

    def vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        agent_id: str,
        rows: Sequence[int],
        model: str,
    ) -> dict[int, Float32Array]:
        """Return the vectors of rows that the codec can read, each of shape (chunks, dimensions).

        Rows without any are missing.

        Raises:
            StoreCorruptError: If one is damaged.
            SealBrokenError: If a sealed one cannot be opened.
        """
        ...

    def readable_vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        agent_id: str,
        rows: Sequence[Columns],
        model: str,
    ) -> dict[int, Float32Array]:
        """Return the same of rows, each the columns of `keyed_row`, without sealed ones that break.

        These are logged.

        Raises:
            StoreCorruptError: If one that is not sealed is damaged or lost.
        """
        ...

    def bound(self, columns: Columns, names: Sequence[str]) -> Columns:
        """Return columns of a codec as they are bound."""
        ...

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
        """Delete the vectors of a row that was written; store new ones, if any are given.

        Args:
            session: In the transaction.
            codec: Codec of the entries.
            row: The row as it was, the columns of `keyed_row`.
            entry: Its entry as it is now.
            embedded: The new vectors and their model.
            drops_shadows: Whether vectors of other models go too.
        """
        ...

    def seal_vectors(
        self, session: SqlSession, codec: RowCodec, row: Columns, entry: MemoryEntry
    ) -> None:
        """Seal the vectors of a row that is sealed now; those of other models are deleted.

        Args:
            session: In the transaction.
            codec: Codec of the entries.
            row: The row as it was, the columns of `keyed_row`.
            entry: Its entry as it is now.
        """
        ...

    def by_index(self, name: str) -> str:
        """Return the hint, behind the table of entries, to read by an index of this name."""
        ...

    def is_true(self, column: str) -> str:
        """Return the condition that a flag is set, as partial indexes have it."""
        ...

    def integers(self, values: Sequence[Any]) -> list[int]:
        """Return stored integers.

        Raises:
            StoreCorruptError: If one is not an integer.
        """
        ...

    def advance(
        self,
        session: SqlSession,
        agent_id: str,
        users: Sequence[UserTotals],
        model: Model | None,
        time_zone: str | None,
        *,
        with_users: bool,
    ) -> "Advanced":
        """Add changes to the rows of an agent and of its users, in a transaction.

        Args:
            session: The connection.
            agent_id: The agent.
            users: What is added to each user's row, and altogether to the agent's.
            model: Recorded, unless the agent has a model.
            time_zone: Recorded, unless the agent has one.
            with_users: Whether the bytes of the users that are given more are wanted.
        """
        ...

    def write_changes(
        self, session: SqlSession, agent_id: str, first: int, changes: Sequence[Change]
    ) -> None:
        """Insert changes into an agent's log, numbered from `first`."""
        ...

    def has_vectors(self, session: SqlSession, agent_id: str, model: Sequence[Any]) -> bool:
        """Return whether an agent has vectors of a model, given by its name and its dimension."""
        ...

    def row_reader(
        self, session: SqlSession, codec: RowCodec, agent_id: str, model: Model | None
    ) -> "RowReader":
        """Return what reads rows of an agent, and vectors of a model unless that is None."""
        ...

    def records(self, codec: RowCodec, rows: list[Columns]) -> list[Record]:
        """Return rows, each the columns of `keyed_row`, in plain text.

        Those that the codec cannot open are left out.

        Raises:
            StoreCorruptError: If one is damaged.
        """
        ...

    def lacks_vector(self, agent_id: str, model: str) -> Condition:
        """Return the condition of rows of entries without any vector of a model."""
        ...

    def new_rows(
        self,
        codec: RowCodec,
        entries: Sequence[NewEntry],
        vectors: Sequence[Sequence[Float32Array]],
        model: str | None,
    ) -> list[NewRow]:
        """Return entries as they are stored, with the vectors of each, which are of a model."""
        ...

    def adding(
        self, session: SqlSession, rows: Sequence[NewRow], rules: AddOptions
    ) -> AbstractContextManager[None]:
        """Return what entries are stored within: a pipeline, if all of it can run in one."""
        ...

    def fetch_numbered(
        self, session: SqlSession, select: Condition, number: int
    ) -> tuple[list[Columns], Sequence[int]]:
        """Return the rows of a statement, and numbers for new rows, ascending.

        None where the database numbers rows as they are inserted.
        """
        ...

    def insert_entries(
        self,
        session: SqlSession,
        agent_id: str,
        rows: Sequence[NewRow],
        model: Model | None,
        numbers: Sequence[int],
    ) -> Sequence[int]:
        """Insert entries of an agent with their vectors; return the numbers of their rows.

        Args:
            session: In the transaction.
            agent_id: The agent.
            rows: The entries.
            model: Model of the vectors.
            numbers: Of `fetch_numbered`.

        Raises:
            DuplicateEntryError: If an id is in use, and `refuses_ids`.
        """
        ...

    def sums_of(
        self, session: SqlSession, agent_id: str, overwrites: "Sequence[Overwrite]"
    ) -> Sequence[Columns]:
        """Return the checksums of rows that the statement sets which writes entries over them."""
        ...

    def mark_deleted(
        self, session: SqlSession, agent_id: str, which: "Rows", time: int
    ) -> list[Columns]:
        """Mark rows of an agent as deleted that are not; return number, id and user of each."""
        ...

    def overwrite_vectors(
        self,
        session: SqlSession,
        agent_id: str,
        model: Model | None,
        overwrites: "Sequence[Overwrite]",
    ) -> None:
        """Write the vectors of entries over those of the rows whose places they take.

        Shadow vectors go with the content, or with what may be seen of it.
        """
        ...

    def insert_vectors(
        self, session: SqlSession, agent_id: str, model: Model, rows: Sequence[NewVectors]
    ) -> None:
        """Insert the vectors of rows that have none of the model."""
        ...

    def lacks_shadow_vectors(self, model: Model) -> Condition:
        """Return the condition of entries, `e`, without shadow vectors of a model."""
        ...

    def shadow_vectors(self, agent_id: str, model: str | None) -> Sequence[Condition]:
        """Return FROM and WHERE of the shadow vectors of a model, or of all, in each table."""
        ...

    def write_shadow_vectors(
        self,
        session: SqlSession,
        codec: RowCodec,
        wanted: AddShadowVectors,
        found: Mapping[int, MemoryEntry],
    ) -> None:
        """Write shadow vectors of rows, with their stored entries, over those of the model."""
        ...

    def switch_vectors(
        self, session: SqlSession, agent_id: str, model: Model, skipped: Collection[int]
    ) -> None:
        """Make own vectors shadow vectors, and those of a model the agent's own.

        Skipped rows may have none.
        """
        ...


class Advanced(NamedTuple):
    """What the row of an agent says after changes.

    Attributes:
        seq: Number of the last change.
        used_bytes: Bytes of the agent's contents.
        model: Name and dimension of the model of its vectors; None before any.
        of_users: Bytes of the contents of users, "" for none, where they are known.
    """

    seq: int
    used_bytes: int
    model: Sequence[Any]
    of_users: Mapping[str, int]


class RowReader(Protocol):
    """Reads rows of one agent and what belongs to them, for an index, at one moment.

    All that it reads is compared with the checksums that there are. Rows that the codec cannot open
    are left out.

    Raises:
        StoreCorruptError: If something is damaged or lost.
    """

    def records(self, rows: list[Columns]) -> list[Record]:
        """Return further rows, each the columns of `Dialect.row`, in plain text."""
        ...

    def check_complete(self, state: State) -> None:
        """Check that all of the agent's rows in a state were given."""
        ...

    def vectors(self, rows: Sequence[int]) -> "tuple[list[int], Float32Array | None]":
        """Return all vectors of rows that were given, each with its row; None for no vectors."""
        ...

    def all_vectors(
        self, selected: Condition, size: int
    ) -> "Iterable[tuple[Int64Array, Float32Array]]":
        """Yield the vectors of all rows that were given in batches, the chunks of a row together.

        Args:
            selected: The condition of the rows.
            size: Vectors of a batch, or some more.
        """
        ...

    def links(self, found: list[Columns]) -> list[Link]:
        """Return links: all that lead from rows that were given, and others.

        Args:
            found: The rows at both ends, type, strength and time of each.
        """
        ...
