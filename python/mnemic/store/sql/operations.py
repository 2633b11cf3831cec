"""What carries out each operation in the stores in SQL."""

from collections.abc import Mapping
from typing import Final

from mnemic.store.operations import (
    EntriesById,
    EntriesByRow,
    StoredEntries,
    Successors,
    VectorsById,
    VectorsOfRow,
)
from mnemic.store.sql import links, reads
from mnemic.store.sql.opened import Reading

READS: Final[Mapping[type, Reading]] = {
    EntriesById: Reading(reads.entries_by_id),
    EntriesByRow: Reading(reads.entries_by_row),
    StoredEntries: Reading(reads.stored_entries, one_moment=True),
    Successors: Reading(links.successors, one_moment=True),
    VectorsById: Reading(reads.vectors_by_id, one_moment=True),
    VectorsOfRow: Reading(reads.vectors_of_row),
}
