"""Selection of stored rows by a filter, shared by stores.

A store narrows: it yields the rows of a condition that holds for every match, in the order of the
list. The core then decides each row, so that no store has a truth table of its own.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, islice
from typing import Final, TypeAlias

from mnemic._core import RECORD_COLUMNS, matches
from mnemic.model import Expression
from mnemic.model.rows import Record

Decide: TypeAlias = Callable[[list[Record]], Sequence[bool]]
"""Returns whether each record of a batch is selected, in their order."""

FIRST_BATCH: Final = 64
"""Records of the first batch; each next batch is twice as large, because a short list ends early.
"""

MAX_BATCH: Final = 512
MAX_CHARACTERS: Final = 4_000_000
"""Characters of the texts of a batch, except for its last record."""

_CONTENT, _TAGS, _METADATA = map(RECORD_COLUMNS.index, ("content", "tags", "metadata"))


def by_filter(expression: Expression) -> Decide:
    """Return the decision of the core by a filter."""
    return lambda records: matches(expression, records)


def selected(
    records: Iterable[Record], decide: Decide, *, limit: int, offset: int = 0
) -> list[Record]:
    """Return the records that are selected, in their order.

    Only the selected records and one batch are held at a time, and no record is read after the last
    one that is needed and the rest of its batch.

    Args:
        records: Rows of a store, in the order of the list.
        decide: Decides a batch.
        limit: Maximum number of records.
        offset: Number of first selected records to skip.
    """
    passing = (record for batch in batches(records) for record in compress(batch, decide(batch)))
    return list(islice(passing, offset, min(offset + limit, sys.maxsize)))


def batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Yield records in batches that are small in number and in text."""
    batch: list[Record] = []
    size, characters = FIRST_BATCH, 0
    for record in records:
        batch.append(record)
        characters += _characters(record)
        if len(batch) == size or characters >= MAX_CHARACTERS:
            yield batch
            batch, size, characters = [], min(2 * size, MAX_BATCH), 0
    if batch:
        yield batch


def _characters(record: Record) -> int:
    try:
        content, tags, metadata = record[_CONTENT], record[_TAGS], record[_METADATA]
        return len(content or "") + len(tags or "") + len(metadata or "")
    except TypeError:  # a damaged value, which the decision refuses
        return 0
