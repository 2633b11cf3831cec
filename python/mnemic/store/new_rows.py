"""What storing entries takes and gives: encoded rows, options, results."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from mnemic.arrays import Float32Array
from mnemic.model import MemoryEntry, OnConflict, OnDuplicate
from mnemic.model.new_entry import NewEntry
from mnemic.store.quota import NO_QUOTAS, Quotas
from mnemic.store.row_codec import COLUMN_NAMES, Columns, RowCodec, UsedKey
from mnemic.store.values import Model, ReplacedEntry, Selection, StoredKey

_CONTENT: Final = COLUMN_NAMES.index("content")
_ACCESSES: Final = frozenset({"last_accessed_at", "access_count"})


class NewRow(NamedTuple):
    """An entry to store, in the form of the statements.

    Attributes:
        entry: The entry.
        size: Bytes of its content that count in the quota.
        columns: Its columns, in the order of a codec.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        vectors: One for each chunk.
        stored_vectors: The same, as they are stored.
        sums: Checksums of its columns and of its vectors, in a store that keeps some.
        given_key: Its idempotency key, as it was given.
        other_keys: The forms in which an entry that was sealed later, or was not sealed, has the
            key.
        plain: The columns in plain text.
    """

    entry: MemoryEntry
    size: int
    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
    vectors: Sequence[Float32Array]
    stored_vectors: Sequence[Float32Array | bytes]
    sums: tuple[int | None, int | None] = (None, None)
    given_key: str = ""
    other_keys: Sequence[str] = ()
    plain: Columns = ()

    @property
    def given(self) -> NewEntry:
        """The entry with its key, as it was given."""
        return NewEntry(self.entry, None if self.more[1] is None else self.given_key)

    @property
    def shown_key(self) -> str | None:
        """The given key for a message; None for an entry whose texts are hidden."""
        return None if self.entry.hides_content else self.given_key


def encoded(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    vectors: Sequence[Sequence[Float32Array]],
    model: str | None,
) -> list[NewRow]:
    """Return entries as a codec stores them, with the vectors of each, which are of a model."""
    stored = codec.rows(
        [(new.entry, None if new.key is None else UsedKey(new.key)) for new in entries]
    )
    return [
        NewRow(
            new.entry,
            codec.stored_content_size(row.columns[_CONTENT]),
            row.columns,
            row.more,
            parts,
            _sealed(codec, new.entry, model, parts),
            given_key=new.key or "",
            other_keys=() if new.key is None else codec.other_keys(new.entry, new.key),
            plain=row.plain,
        )
        for new, row, parts in zip(entries, stored, vectors, strict=True)
    ]


def _sealed(
    codec: RowCodec, entry: MemoryEntry, model: str | None, parts: Sequence[Float32Array]
) -> Sequence[Float32Array | bytes]:
    if model is None or not entry.is_encrypted:
        return parts
    return [codec.seal_vector(entry, model, part, each) for part, each in enumerate(parts)]


class AddOptions(NamedTuple):
    """Options of storing entries.

    Attributes:
        codec: Codec of the entries.
        now: Microseconds since 1970 in UTC.
        model: Model of the given vectors; None if there are none.
        quotas: Maximum bytes of content of the agent and of each user.
        on_duplicate: Treatment of a text that the user already has.
        is_import: Whether a superseded entry may be missing.
        on_conflict: Treatment of an id that the user already has.
        key: The agent's key that sealed entries; None if none can be sealed.
        time_zone: Name of the agent's time zone, unless it has one.
        instead_of: The entries that those given take the place of; None is none.
    """

    codec: RowCodec
    now: int
    model: Model | None = None
    quotas: Quotas = NO_QUOTAS
    on_duplicate: OnDuplicate = "keep"
    is_import: bool = False
    on_conflict: OnConflict = "raise"
    key: StoredKey | None = None
    time_zone: str | None = None
    instead_of: Selection | None = None

    def keeps(self, new: NewRow, old: Columns) -> bool:
        """Return whether a stored entry stays as it is, given its columns in plain text."""
        if self.on_conflict == "skip" or self.instead_of is None or new.vectors:
            return self.on_conflict == "skip"
        return _stated(new.plain) == _stated(old)


def _stated(columns: Columns) -> Columns:
    """Return the columns of an entry but its accesses."""
    return tuple(
        column for name, column in zip(COLUMN_NAMES, columns, strict=True) if name not in _ACCESSES
    )


class Replacement(NamedTuple):
    """An entry that was stored over another one.

    Attributes:
        shown: The entry, as the store returns it.
        columns: Its columns, as they are stored.
        clears_index: Whether an index must not keep anything of the old one; see `changes`.
    """

    shown: ReplacedEntry
    columns: Columns
    clears_index: bool


class Outcome(NamedTuple):
    """Result for one entry: its row and id, or those of the existing entry it repeats.

    Attributes:
        row: The row.
        entry_id: The id.
        is_new: Whether the row is new.
        replacement: The entry, if it took the place of the row's earlier one.
    """

    row: int
    entry_id: bytes
    is_new: bool
    replacement: Replacement | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the entry was stored, in a new row or over another entry."""
        return self.is_new or self.replacement is not None


class AddedRows(NamedTuple):
    """Results for the entries of one call, in their order.

    Attributes:
        seq: Number of the agent's last change.
        steps: Number of changes.
        outcomes: One for each entry.
        changed: Other existing rows that changed.
        evicted: Ids of the entries that were deleted to make space.
        removed: Ids of those that were deleted because others took their place.
    """

    seq: int
    steps: int
    outcomes: list[Outcome]
    changed: list[int]
    evicted: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()
