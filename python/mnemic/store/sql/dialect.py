"""What differs between the statements of the stores."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, Scope
from mnemic.model.new_entry import NewEntry
from mnemic.model.rows import Link, Record, State
from mnemic.store.changes import Change, UserTotals
from mnemic.store.new_rows import AddOptions, NewRow, NewVectors
from mnemic.store.operations import AddShadowVectors
from mnemic.store.row_codec import RowCodec
from mnemic.store.sealing_codec import SealingRowCodec
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import Model, OwnedId

if TYPE_CHECKING:
    from mnemic.arrays import Int64Array
    from mnemic.store.new_rows import Overwrite
    from mnemic.store.sql.lists import Rows

PlainVector: TypeAlias = tuple[str, int, int, bytes]
"""A sealed row's vector in plain text: its model, chunk, row and bytes."""

VectorsOfRows: TypeAlias = dict[int, Float32Array]
"""The vectors of rows, each of shape (chunks, dimensions); rows without any are missing."""


class Dialect(Struct, frozen=True, kw_only=True, eq=False):
    """How a database writes what others write differently.

    What is stored and cannot be is a StoreCorruptError, and a sealed one that cannot be opened a
    SealBrokenError. Functions that are given a session run in its transaction or read.
    """

    row: str
    """The columns of a row that `entries` reads: its number first, then those of the codec."""

    keyed_row: str
    """The columns of `row`, and behind those of the codec what it made of the keys."""

    by_row: str
    """Hint, behind a table's name, to reach rows by their numbers."""

    by_index: Callable[[str], str]
    """Hint, behind the table of entries, to read by an index of this name."""

    user_key: str
    """The user of a row in its unique index; no user is an empty text."""

    is_own_zero: str
    """Condition of vectors, `v`, of the agent's own model that stand for none."""

    sealed_content: str
    """The content of a sealed row, which is read for its codec."""

    entries_of_wall: str
    """FROM and WHERE of the entries, `entry`, of the user of a row, `wall`."""

    insert_link: str
    """INSERT of a link (agent, from, to, type, strength, time), up to what is done if there is
    one."""

    update: str
    """UPDATE of many rows, none of which may meet a constraint."""

    sum_columns: tuple[str, ...]
    """The columns of `sums_of`."""

    refuses_ids: bool
    """Whether `insert_entries` finds an id in use; otherwise they are looked up."""

    damaged: str
    """What an error for stored values that cannot be says beside what is wrong."""

    is_true: Callable[[str], str]
    """Condition that a flag is set, as partial indexes have it."""

    among: Callable[[str], str]
    """Condition that a column is one of the numbers of a list, which is bound."""

    among_ids: Callable[[str], str]
    """Condition that a column is one of a list of UUIDs, which is bound."""

    among_rows: Callable[[Sequence[int], str], Condition]
    """Condition that a column is one of these numbers, in a form that is fast for a few."""

    owned: Callable[[str, str], Condition]
    """Condition that rows of links or vectors, given by their table's name in the statement, are an
    agent's. In SQLite the number of a row is unique in all of the file, and they have no agent."""

    owned_ids: Callable[[Collection[OwnedId]], Condition]
    """Rows of wanted_user, "" for none, and wanted_id, up to a join of them in order."""

    lacks_vector: Callable[[str, str], Condition]
    """Condition of rows of an agent's entries without any vector of a model."""

    under_other_keys: Callable[[str, bytes, int], Condition]
    """SELECT of the rows of an agent of which something is sealed under other keys than this one,
    and that come after a row."""

    in_order: Callable[[str, str, str], str]
    """Statement that reads columns of the entries of a condition, in an order."""

    bound: Callable[[Columns, Sequence[str]], Columns]
    """Columns of a codec, given with their names, as they are bound."""

    integers: Callable[[Sequence[Any]], list[int]]
    """Stored integers, which in a damaged file may be anything."""

    reading_stored: Callable[[str], AbstractContextManager[None]]
    """Converts errors of decoding stored values to StoreCorruptError, without quoting them; the
    name of the value for the message is such as "a link"."""

    entries: Callable[[RowCodec, Sequence[Columns], Scope], list[MemoryEntry]]
    """The entries of rows, each the columns of `row`, which must all be of a scope."""

    records: Callable[[RowCodec, list[Columns]], list[Record]]
    """Rows, each the columns of `keyed_row`, in plain text, without those that the codec cannot
    open."""

    check_links: Callable[[SqlSession, Sequence[int]], None]
    """Compares the links from rows with their checksums, where the database has such sums."""

    vectors: Callable[[SqlSession, RowCodec, str, Sequence[int], str], VectorsOfRows]
    """The vectors by a model of an agent's rows that the codec can read."""

    readable_vectors: Callable[[SqlSession, RowCodec, str, Sequence[Columns], str], VectorsOfRows]
    """The same of rows, each the columns of `keyed_row`, without sealed ones that break, which are
    logged."""

    new_rows: Callable[[RowCodec, Sequence[NewEntry], str | None], list[NewRow]]
    """Entries as they are stored, with their vectors, which are of a model."""

    adding: Callable[[SqlSession, Sequence[NewRow], AddOptions], AbstractContextManager[None]]
    """What entries are stored within: a pipeline, if all of it can run in one."""

    fetch_numbered: Callable[[SqlSession, Condition, int], tuple[list[Columns], Sequence[int]]]
    """The rows of a statement, and so many numbers for new rows, ascending; none where the database
    numbers rows as they are inserted."""

    insert_entries: Callable[
        [SqlSession, str, Sequence[NewRow], Model | None, Sequence[int]], Sequence[int]
    ]
    """Inserts entries of an agent with their vectors, by a model, as rows with the numbers of
    `fetch_numbered`; returns the numbers of the rows. An id that is in use is a
    DuplicateEntryError if the database `refuses_ids`."""

    sums_of: Callable[[SqlSession, str, "Sequence[Overwrite]"], Sequence[Columns]]
    """The checksums of rows that the statement sets which writes entries over them."""

    mark_deleted: "Callable[[SqlSession, str, Rows, int], list[Columns]]"
    """Marks rows of an agent as deleted at a time that are not; returns number, id and user of
    each."""

    overwrite_vectors: Callable[[SqlSession, str, Model | None, "Sequence[Overwrite]"], None]
    """Writes the vectors of entries over those of the rows whose places they take. Shadow vectors
    go with the content, or with what may be seen of it."""

    insert_vectors: Callable[[SqlSession, str, Model, Sequence[NewVectors]], None]
    """Inserts the vectors of an agent's rows that have none of the model."""

    delete_vectors: Callable[[SqlSession, str, Columns], None]
    """Deletes the vectors of a row, the columns of `row`, by its agent's own model."""

    delete_shadow_vectors: Callable[[SqlSession, str, Columns], None]
    """Deletes the vectors of a row by other models."""

    seal_vectors: Callable[[SqlSession, RowCodec, Columns, MemoryEntry], None]
    """Seals the vectors of a row, the columns of `keyed_row` as they were, whose entry is sealed
    now; those of other models are deleted."""

    opened_vectors: Callable[[SqlSession, SealingRowCodec, str, list[Columns]], list[PlainVector]]
    """The sealed vectors of an agent's rows, each the columns of `row`, in plain text."""

    write_sealed: Callable[[SqlSession, str, Sequence[int], Sequence[Columns]], None]
    """Writes the sealed vectors of an agent's rows, each with its row, model and chunk, over
    theirs. Vectors of the rows that were not opened are deleted."""

    advance: Callable[[SqlSession, str, Sequence[UserTotals], Model | None, str | None], "Advanced"]
    """Adds what is given to each user's row, and altogether to the agent's; records a model and a
    time zone unless the agent has them."""

    write_changes: Callable[[SqlSession, str, int, Sequence[Change]], None]
    """Inserts changes into an agent's log, numbered from the first one's number."""

    has_vectors: Callable[[SqlSession, str, Sequence[Any]], bool]
    """Whether an agent has vectors of a model, given by its name and its dimension."""

    row_reader: "Callable[[SqlSession, RowCodec, str, Model | None], RowReader]"
    """Reads rows of an agent, and vectors of a model unless that is None."""

    lacks_shadow_vectors: Callable[[Model], Condition]
    """Condition of entries, `e`, without shadow vectors of a model."""

    shadow_vectors: Callable[[str, str | None], Sequence[Condition]]
    """FROM and WHERE of an agent's shadow vectors of a model, or of all, in each table."""

    write_shadow_vectors: Callable[
        [SqlSession, RowCodec, AddShadowVectors, Mapping[int, MemoryEntry]], None
    ]
    """Writes shadow vectors of rows, with their stored entries, over those of the model."""

    switch_vectors: Callable[[SqlSession, str, Model, Collection[int]], None]
    """Makes own vectors of an agent shadow vectors, and those of a model its own. Skipped rows may
    have none."""


class Advanced(NamedTuple):
    """What the row of an agent says after changes.

    Attributes:
        seq: Number of the last change.
        used_bytes: Bytes of the agent's contents.
        model: Name and dimension of the model of its vectors; None before any.
        of_users: Bytes of the contents of users, "" for none, where that costs no further read.
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
