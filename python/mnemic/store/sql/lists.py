"""The lists and counts of the stores in SQL."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from mnemic.model import Expression, MemoryEntry
from mnemic.model.rows import Record
from mnemic.store.readable_entries import Rows
from mnemic.store.row_codec import RowCodec
from mnemic.store.selection import Decide, by_filter
from mnemic.store.sql.filters import NarrowingCondition


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
