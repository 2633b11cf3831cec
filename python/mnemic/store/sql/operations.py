"""What carries out each operation in the stores in SQL."""

from collections.abc import Mapping
from typing import Final

from mnemic.store.operations import (
    AccessesSince,
    AgentFacts,
    ChangedRows,
    DistinctValues,
    EntriesById,
    EntriesByRow,
    EntryCount,
    EntryPage,
    LinkEnds,
    LinksOf,
    LinksWithin,
    PositionAndRevision,
    ScopeStatistics,
    StoredCount,
    StoredEntries,
    Successors,
    UsedBytes,
    Users,
    VectorsById,
    VectorsOfRow,
)
from mnemic.store.sql import accesses, change_log, links, lists, reads, usage
from mnemic.store.sql.opened import Reading

READS: Final[Mapping[type, Reading]] = {
    AccessesSince: Reading(accesses.accesses_since, one_moment=True),
    AgentFacts: Reading(change_log.agent_facts),
    ChangedRows: Reading(change_log.changed_rows, one_moment=True),
    DistinctValues: Reading(lists.distinct),
    EntriesById: Reading(reads.entries_by_id),
    EntriesByRow: Reading(reads.entries_by_row),
    EntryCount: Reading(lists.entry_count),
    EntryPage: Reading(lists.entry_page),
    LinkEnds: Reading(links.link_ends, one_moment=True),
    LinksOf: Reading(links.links_of, one_moment=True),
    LinksWithin: Reading(links.links_within, one_moment=True),
    PositionAndRevision: Reading(change_log.position_and_revision),
    ScopeStatistics: Reading(usage.statistics, one_moment=True),
    StoredCount: Reading(usage.stored_count),
    StoredEntries: Reading(reads.stored_entries, one_moment=True),
    Successors: Reading(links.successors, one_moment=True),
    UsedBytes: Reading(usage.used),
    Users: Reading(usage.users),
    VectorsById: Reading(reads.vectors_by_id, one_moment=True),
    VectorsOfRow: Reading(reads.vectors_of_row),
}
