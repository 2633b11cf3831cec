"""What the tests of the contract share: short ways to call a store, by the protocol alone."""

import asyncio
from concurrent.futures import Future
from datetime import datetime
from uuid import UUID

import msgspec
import numpy as np

from mnemic._core import RECORD_COLUMNS
from mnemic.model import LinkType, MemoryEntryUpdate, MemoryFilter, MemoryLink, Scope
from mnemic.model.filter import parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.records import NumberedEnum
from mnemic.store.operations import (
    BEFORE_EXPIRY,
    Add,
    AgentFacts,
    EntriesById,
    EntriesByRow,
    EntryCount,
    EntryPage,
    Link,
    Links,
    PositionAndRevision,
    RowsSince,
    RowsToEmbed,
    SoftDelete,
    StoredAmount,
    StoredEntries,
    Update,
)
from mnemic.store.values import NO_ENTRY_LIMITS, Quotas
from tests.support.clock import NOON
from tests.support.entries import numbered, only, uid

AGENT = Scope("a")
ALICE = Scope("a", "alice")
BOB = Scope("a", "bob")
EVERYONE = Scope("a", all_users=True)
EVERYTHING = parse_filter(None)
SHADOW_MODELS = ("other", 2), ("other", 3), ("third", 3)
"""Models whose shadow vectors tests store."""


def settled(answer):
    """Return a read's answer, or the result of a write once it is durable."""
    return answer.result(60) if isinstance(answer, Future) else answer


async def gathered(futures, **options):
    """Return the results of futures, awaited by one event loop."""
    return await asyncio.gather(*map(asyncio.wrap_future, futures), **options)


def numbers(found):
    """Return the numbers of ids or of entries."""
    return [one.int if isinstance(one, UUID) else one.id.int for one in found]


def embedded(number, vector=(1, 0), model="m", **fields):
    return numbered(number, **fields).with_embedding(np.array(vector, dtype=np.float32), model)


def link_of(from_number, to_number, kind=LinkType.RELATED, strength=0.5, created_at=NOON):
    return MemoryLink(uid(from_number), uid(to_number), kind, strength, created_at)


def adding(store, agent, entries, keys=None, now=NOON, **rules):
    """Hand in new entries; their quotas stand among the rules."""
    new = map(NewEntry, map(store.marked, entries), keys or [None] * len(entries))
    quotas = quotas_of(rules)
    return store.write(Add(agent, list(new), now, quotas, **rules))


def quotas_of(rules):
    """Take quotas out of the rules of a write."""
    limits = rules.pop("entry_limits", NO_ENTRY_LIMITS)
    return Quotas(rules.pop("quota", None), rules.pop("user_quota", None), limits)


def added(store, agent, entries, keys=None, **rules):
    return adding(store, agent, entries, keys, **rules).result()


def erases(store):
    """Return what a store says of deleted data: none is left, or None, as of a server's files."""
    return None if store.path.startswith("postgresql") else True


def entries_by_id(store, scope, ids, *, deadline=None, **options):
    """Return entries by id, without their rows."""
    found = store.read(EntriesById(scope, ids, **options), deadline=deadline)
    return {entry_id: entry for entry_id, (_, entry) in found.items()}


def row_of(store, scope, entry_id, now=NOON):
    """Return the row of an active entry, None if the scope has none."""
    found = store.read(EntriesById(scope, [entry_id], now))
    return found[entry_id].row if found else None


def contents_of(store, agent, rows, **options):
    """Return the contents of active entries by row."""
    wanted = EntriesByRow(Scope(agent, all_users=True), rows, BEFORE_EXPIRY)
    found = store.read(wanted, **options)
    return {row: entry.content for row, entry in found.items()}


def one(store, scope, number, now=NOON, **options):
    return entries_by_id(store, scope, [uid(number)], now=now, **options).get(uid(number))


def changed(
    store, number, scope=AGENT, *, now=NOON, embedded=None, quota=None, archived=False, **fields
):
    """Update an entry by the fields of a `MemoryEntryUpdate`."""
    update = MemoryEntryUpdate(**fields)
    wanted = Update(
        scope,
        only(number),
        change=lambda old: update.applied_to(old, now),
        now=now,
        embedded=embedded,
        quotas=Quotas(quota),
        include_archived=archived,
    )
    return store.write(wanted).result().last


def count_of(store, scope, expression=None, now=NOON, **options):
    """Return the number of entries of a scope that match."""
    return store.read(EntryCount(scope, now, expression), **options)


def counted(store, scope, now=NOON):
    return count_of(store, scope, now=now)


def used_bytes(store, agent):
    """Return the bytes of an agent's contents."""
    return store.read(StoredAmount(Scope(agent, all_users=True), "bytes"))


def used_by_user(store, agent, user):
    """Return the bytes of a user's contents."""
    return store.read(StoredAmount(Scope(agent, user), "bytes"))


def model_of(store, agent):
    """Return the model of an agent's vectors."""
    return store.read(AgentFacts(agent)).model


def revision_of(store, scope):
    """Return the revision of a scope's user."""
    return store.read(PositionAndRevision(scope))[1]


def matching(store, scope, expression, page, now=NOON, **options):
    """Return the entries that match, with the order, limit and offset of a filter."""
    asked = EntryPage(
        scope,
        expression,
        now,
        page.limit,
        page.list_order,
        page.offset,
        include_deleted=page.include_forgotten,
    )
    return store.read(asked, **options)


def paged(store, scope=EVERYONE, after=None, *, limit=100, now=NOON, where=None, **options):
    expression = parse_filter(where)
    wanted = EntryPage(scope, expression, now, limit, after=after, **options)
    return numbers(store.read(wanted))


def matched(store, scope=EVERYONE, where=None, now=NOON, **page):
    asked = MemoryFilter(**page)
    return numbers(matching(store, scope, parse_filter(where), asked, now))


def exported(store, scope=EVERYONE, *, row=0, limit=100, now=NOON, model=None, everything=True):
    """Return the stored entries, those that were forgotten included unless told otherwise."""
    return store.read(
        StoredEntries(scope, row, limit, now=now, include_deleted=everything, model=model)
    )


def rows_of(store, agent="a"):
    """Return the row of each entry by its number."""
    scope = Scope(agent, all_users=True)
    return {stored.entry.id.int: stored.row for stored in exported(store, scope)}


def seq_of(store, agent="a"):
    return store.position(agent).seq


def links_of(store, number, direction="both", *, kinds=None, scope=AGENT, now=NOON):
    found = store.read(Links(scope, now, uid(number), direction, kinds))
    return [read.link for read in found]


def all_links(store, scope=EVERYONE, now=NOON, *, everything=True):
    found = store.read(Links(scope, now, include_deleted=everything))
    return [each.link for each in found]


def linked(store, *ends, scope=AGENT, now=NOON, **fields):
    return store.write(Link(scope, link_of(*ends, **fields), now)).result()


MODEL = ("m", 2)


def rows_since(store, seq, agent="a", *, model=MODEL, sink=None, **options):
    deadline = options.pop("deadline", None)
    return store.read(RowsSince(agent, model, seq, sink, **options), deadline=deadline)


class Taken:
    """Takes everything in parts, and keeps them apart."""

    def __init__(self):
        self.restart()

    def restart(self):
        self.records, self.vectors, self.order = [], [], []

    def add_records(self, records):
        self.records.append(records)
        self.order.append("records")

    def add_vectors(self, rows, vectors):
        self.vectors.append((rows, vectors))
        self.order.append("vectors")


def records_of(batch):
    """Return a batch's records without the checksums that may follow them, and what they cover."""
    return [record[: len(RECORD_COLUMNS)] for record in batch.records]


_FIELDS = {"memory_type": "type", "is_sensitive": "sensitive"}


def record_of(row, entry):
    """Return the record by which an index is given an entry."""
    values = (getattr(entry, _FIELDS.get(name, name)) for name in RECORD_COLUMNS[1:])
    return (row, *map(_plain, values))


def _plain(value):
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, datetime):
        return to_microseconds(value)
    if isinstance(value, tuple | dict):
        return msgspec.json.encode(value).decode() if value else None
    return int(value) if isinstance(value, bool | NumberedEnum) else value


def vectors_in(batch):
    """Return the vectors of a batch as lists."""
    return [] if batch.vectors is None else batch.vectors.tolist()


def shown(batch):
    """Return what a batch says, as values that can be compared: rows by what is known of them."""
    records = {record[0]: record[1:] for record in records_of(batch)}
    embedded = dict(zip(batch.embedded, map(tuple, vectors_in(batch)), strict=True))
    assert len(records) == len(batch.records)
    assert len(embedded) == len(batch.embedded)
    assert embedded.keys() <= records.keys()
    return batch.since, batch.seq, records, embedded, set(batch.removed)


def living_numbers(batch):
    """Return the numbers of the entries whose records a batch brings."""
    return {UUID(bytes=record[2]).int for record in batch.records}


def embedded_numbers(batch):
    """Return the numbers of those of them that come with a vector."""
    number_of = {record[0]: UUID(bytes=record[2]).int for record in batch.records}
    return {number_of[row] for row in batch.embedded}


def state_of(store, agent="a"):
    """Return all that a store says of an agent, but for the accesses."""
    scope = Scope(agent, all_users=True)
    stored = exported(store, scope, model="m")
    vectors = [
        [vector.tolist() for vector in (one.entry.embedding, *one.more) if vector is not None]
        for one in stored
    ]
    counts = [one.entry.access_count for one in stored]
    others = [store.read(RowsToEmbed(agent, model, 0, 1000)) for model in SHADOW_MODELS]
    return (
        *([one[:3] for one in stored], vectors, counts, all_links(store, scope)),
        *(store.position(agent), used_bytes(store, agent), others),
    )


def forgotten(store, *entries_numbers, scope=AGENT, now=NOON):
    for number in entries_numbers:
        assert store.write(SoftDelete(scope, only(number), now)).result() == [uid(number)]
