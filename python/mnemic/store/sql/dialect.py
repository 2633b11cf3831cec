"""What differs between the statements of the stores."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, Scope
from mnemic.store.changes import Change
from mnemic.store.quota import NO_QUOTAS, Quotas
from mnemic.store.row_codec import RowCodec
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import Model, OwnedId

PlainVector: TypeAlias = tuple[str, int, int, bytes]
"""A sealed row's vector in plain text: its model, chunk, row and bytes."""


class Dialect(Protocol):
    """How a database writes what others write differently.

    Attributes:
        row: The columns of a row that `entries` reads: its number first, then those of the codec.
        by_row: Hint, behind a table's name, to reach rows by their numbers.
        user_key: The user of a row in its unique index; no user is an empty text.
        is_own_zero: Condition of vectors, `v`, of the agent's own model that stand for none.
        insert_link: INSERT of a link (agent, from, to, type, strength, time), up to what is done
            if there is one.
        is_sealed: Condition of sealed rows, as in the index of them.
        entries_of_wall: FROM and WHERE of the entries, `entry`, of the user of a row, `wall`.
        sealed_content: The content of a sealed row, which is read for its codec.
        keyed_row: The columns of `row`, and behind those of the codec what it made of the keys.
        by_id: Hint, behind a table's name, to reach rows by their ids.
        by_agent: The same, to reach an agent's rows in their order.
        damaged: What an error for stored values that cannot be says beside what is wrong.
    """

    row: str
    by_row: str
    user_key: str
    is_own_zero: str
    insert_link: str
    is_sealed: str
    entries_of_wall: str
    sealed_content: str
    keyed_row: str
    by_id: str
    by_agent: str
    damaged: str

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

    def log_changes(
        self,
        session: SqlSession,
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

    def among_rows(self, rows: Sequence[int]) -> Condition:
        """Return the condition that a row is one of these, in a form that is fast for a few."""
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
