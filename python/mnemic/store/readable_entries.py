"""Entries of stored rows, without those whose seal is broken, shared by stores."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mnemic.arrays import Float32Array
from mnemic.errors import SealBrokenError
from mnemic.model import MemoryEntry
from mnemic.store.row_codec import EncodedRow, RowCodec, key_of
from mnemic.store.sealing_codec import log_broken
from mnemic.store.values import StoredEntry

Rows: TypeAlias = Sequence[tuple[Any, ...]]
"""Rows that begin with their numbers."""


def readable(
    rows: Rows, entries_of: Callable[[Rows], Sequence[MemoryEntry]]
) -> dict[int, MemoryEntry]:
    """Return the entries of rows by row; those whose seal is broken are logged and left out."""
    try:
        entries = entries_of(rows)
    except SealBrokenError as error:
        if len(rows) > 1:
            found = [readable([row], entries_of) for row in rows]
            return {row: entry for one in found for row, entry in one.items()}
        log_broken(error)
        return {}
    return {row[0]: entry for row, entry in zip(rows, entries, strict=True)}


def with_vectors(
    codec: RowCodec,
    found: tuple[int, EncodedRow],
    entry: MemoryEntry,
    vectors: Sequence[Float32Array],
    model: str | None,
) -> StoredEntry:
    """Return the entry of a row with its idempotency key and the vectors of a model."""
    first, *more = vectors or (None,)
    if first is not None and model is not None:
        entry = entry.with_embedding(first, model)
    row, encoded = found
    used = codec.used_key(encoded)
    return StoredEntry(row, entry, key_of(used and used.key), tuple(more))
