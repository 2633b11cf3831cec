"""What storing entries takes and gives: encoded rows, options, results."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemic.model import MemoryEntry, NewEntry, OnConflict, OnDuplicate
from mnemic.store.quota import NO_QUOTAS, Quotas
from mnemic.store.row_codec import Columns, RowCodec
from mnemic.store.values import Model, Replaced


class NewRow(NamedTuple):
    """An entry to store, in the form of the statements.

    Attributes:
        entry: The entry.
        size: Bytes of its content that count in the quota.
        columns: Its columns, in the order of a codec.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        vectors: One for each chunk.
        sums: Checksums of its columns and of its vectors, in a store that keeps some.
    """

    entry: MemoryEntry
    size: int
    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
    vectors: Sequence[NDArray[np.float32]]
    sums: tuple[int | None, int | None] = (None, None)


def encoded(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    vectors: Sequence[Sequence[NDArray[np.float32]]],
) -> list[NewRow]:
    """Return entries as a codec stores them, with the vectors of each."""
    fingerprints = codec.fingerprints([new.entry.content for new in entries])
    return [
        NewRow(
            new.entry,
            codec.content_size(new.entry),
            codec.encode(new.entry),
            (fingerprint, new.key, None if new.key is None else fingerprint),
            parts,
        )
        for new, fingerprint, parts in zip(entries, fingerprints, vectors, strict=True)
    ]


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
    """

    codec: RowCodec
    now: int
    model: Model | None = None
    quotas: Quotas = NO_QUOTAS
    on_duplicate: OnDuplicate = "keep"
    is_import: bool = False
    on_conflict: OnConflict = "raise"


class Replacement(NamedTuple):
    """An entry that was stored over another one.

    Attributes:
        shown: The entry, as the store returns it.
        columns: Its columns, as they are stored.
        is_anew: Whether an index must not keep anything of the old one; see `changes`.
    """

    shown: Replaced
    columns: Columns
    is_anew: bool


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
        evicted: Ids of the entries that were deleted to make room.
    """

    seq: int
    steps: int
    outcomes: list[Outcome]
    changed: list[int]
    evicted: Sequence[bytes] = ()
