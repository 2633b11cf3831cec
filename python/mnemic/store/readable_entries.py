"""Entries of stored rows, without those whose seal is broken, shared by stores."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeAlias

from mnemic.arrays import Float32Array
from mnemic.errors import SealBrokenError
from mnemic.model import Expression, MemoryEntry
from mnemic.model.rows import Record
from mnemic.store.filter_sql import NarrowingCondition
from mnemic.store.row_codec import EncodedRow, RowCodec, key_of
from mnemic.store.sealing_codec import log_broken
from mnemic.store.selection import Decide, by_filter
from mnemic.store.values import StoredEntry

Rows: TypeAlias = Sequence[tuple[Any, ...]]
"""Rows that begin with their numbers."""


class EntryList(NamedTuple):
    """A list of entries, ordered and cut.

    Attributes:
        narrow: Condition of the rows, which holds for every match.
        expression: Filter that decides, unless the condition is exact.
        order: Terms of ORDER BY.
        limit: Maximum number of entries.
        offset: Number of first entries to skip.
    """

    narrow: NarrowingCondition
    expression: Expression
    order: str
    limit: int
    offset: int = 0


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


def first_readable(
    wanted: EntryList,
    read: Callable[[EntryList], Rows],
    entries_by_row: Callable[[Rows], Mapping[int, MemoryEntry]],
) -> list[MemoryEntry]:
    """Return the entries of a list; those whose seal is broken take no other's place in it.

    Each attempt reads twice as many rows, so that a list of broken ones takes as long as they do.
    A row is opened, or logged, once.
    """
    limit = wanted.limit
    seen: set[int] = set()
    found: dict[int, MemoryEntry] = {}
    while True:
        rows = read(wanted)
        found |= entries_by_row([row for row in rows if row[0] not in seen])
        entries = [found[row[0]] for row in rows if row[0] in found]
        if len(entries) >= limit or len(rows) < wanted.limit:
            return entries[:limit]
        seen.update(row[0] for row in rows)
        wanted = wanted._replace(limit=2 * wanted.limit)


def decision(
    codec: RowCodec, expression: Expression, reading: Callable[[str], AbstractContextManager[None]]
) -> Decide:
    """Return the decision of a filter over stored rows; those that cannot be opened are out.

    Args:
        codec: Codec of the entries.
        expression: The filter.
        reading: Turns errors of reading a value, which it names, into the store's.
    """
    passes = by_filter(expression)

    def decide(rows: list[Record]) -> Sequence[bool]:
        with reading("a memory"):
            plain = codec.records(rows)
            found = passes(plain)
        if len(plain) == len(rows):
            return found
        verdicts = dict(zip((row for row, *_ in plain), found, strict=True))
        return [verdicts.get(row, False) for row, *_ in rows]

    return decide


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
