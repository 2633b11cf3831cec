"""The least that is a store: dicts in memory, which carry out the operations of the contract.

It knows nothing of SQL, files and keys. It shows that the contract can be met by what it says.
"""

import copy
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby, islice
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import numpy as np

from mnemic import model as kinds
from mnemic._core import distinct_values, matches
from mnemic.errors import (
    AmbiguousIdError,
    DuplicateEntryError,
    EmbeddingModelMismatchError,
    EntryNotFoundError,
    InvalidEntryError,
    LinkAcrossUsersError,
    StoreClosedError,
    StoreFileError,
)
from mnemic.model import LinkType, MemoryEntry, MemoryEntryUpdate, MemoryStatus, Scope
from mnemic.model.agent_id import stored_spelling
from mnemic.model.deadline import check_deadline
from mnemic.model.filter import All, references
from mnemic.model.rows import RowBatch, State
from mnemic.model.scope import not_found
from mnemic.model.timestamps import to_microseconds
from mnemic.store import operations as ops
from mnemic.store import values
from mnemic.store.changes import COMMITTED, Change, last_dropped, totals_by_user
from mnemic.store.futures import failed, succeeded
from mnemic.store.quota import NO_QUOTAS, check_entries, check_quota, check_user_quota, limit_of
from mnemic.store.row_codec import (
    RowCodec,
    UsedKey,
    check_size,
    fingerprint,
    next_version,
    with_changed,
)
from tests.support.entries import to_row
from tests.support.filter_twin import ordered

CODEC = RowCodec()
ACCESSES = {"access_count": 0, "last_accessed_at": None}
STATES = {
    State.ACTIVE: lambda one: one.forgotten_at is None and one.status is MemoryStatus.ACTIVE,
    State.INACTIVE: lambda one: one.forgotten_at is None and one.status is not MemoryStatus.ACTIVE,
    State.DELETED: lambda one: one.forgotten_at is not None,
}


class ReadLink(NamedTuple):
    """A link with the rows of its ends and their user."""

    from_row: int
    to_row: int
    user_id: str | None
    link: Any

    @property
    def place(self):
        link = self.link
        return link.created_at, link.from_id, link.to_id, link.type, self.user_id or ""


class Kept(NamedTuple):
    """An entry as it is kept, without embedding; its vectors have the agent's model."""

    row: int
    entry: MemoryEntry
    key: UsedKey | None = None
    vectors: Any = None
    shadows: dict[str, Any] = {}  # noqa: RUF012 - never changed in place
    accessed: int = 0

    @property
    def size(self):
        return len(self.entry.content.encode())

    @property
    def record(self):
        return (self.row, *to_row(self.entry))

    @property
    def has_zeros(self):
        return self.vectors is not None and not self.vectors[0].any()

    def of(self, **fields):
        """Return it with other fields of its entry."""
        return self._replace(entry=msgspec.structs.replace(self.entry, **fields))

    def change(self, kind, size=0):
        return Change(self.row, self.entry.id.bytes, kind, self.entry.user_id, size)


class Agent:
    """All that is kept of one agent."""

    def __init__(self, name):
        self.name = name
        self.rows, self.links, self.log = {}, {}, []
        self.revisions = Counter()
        self.seq = self.pruned = self.accesses = 0
        self.model = self.time_zone = None

    def copied(self):
        made = copy.copy(self)
        made.rows, made.links, made.log = dict(self.rows), dict(self.links), list(self.log)
        made.revisions = Counter(self.revisions)
        return made

    def put(self, kept):
        self.rows[kept.row] = kept
        return kept

    def within(self, scope, is_wanted=lambda _: True):
        found = (kept for _, kept in sorted(self.rows.items()))
        return [kept for kept in found if scope.has(kept.entry) and is_wanted(kept.entry)]

    def by_ids(self, scope, ids, is_wanted=lambda _: True):
        wanted = set(ids)
        found = self.within(scope, lambda one: one.id in wanted and is_wanted(one))
        often = sorted(one for one, n in Counter(k.entry.id for k in found).items() if n > 1)
        if often:
            raise AmbiguousIdError(
                f"several users of agent {scope.agent_id!r} have a memory with id {often[0]}; "
                "name the user_id"
            )
        return found

    def one(self, scope, entry_id, is_wanted=lambda _: True):
        return next(iter(self.by_ids(scope, [entry_id], is_wanted)), None)

    def of_user(self, user_id, entry_id):
        return self.one(Scope(self.name, user_id), entry_id)

    def selected(self, scope, criteria, is_wanted=lambda _: True):
        ids, expression = criteria
        found = self.within(scope) if ids is None else self.by_ids(scope, ids)
        found = [kept for kept in found if is_wanted(kept.entry)]
        return found if expression is None else _passing(expression, found)

    def used(self, scope):
        return sum(kept.size for kept in self.within(scope))

    def model_in_use(self):
        return self.model if any(k.vectors is not None for k in self.rows.values()) else None

    def vectors(self, row, model):
        kept = self.rows.get(row)
        is_of_model = kept is not None and self.model is not None and self.model[0] == model
        return kept.vectors if is_of_model else None

    def remove(self, some):
        """Delete entries with their links; return the changes."""
        gone = {kept.row: self.rows.pop(kept.row) for kept in some}
        self.links = {key: own for key, own in self.links.items() if not gone.keys() & {*key[:2]}}
        return [kept.change("delete", -kept.size) for kept in some]

    def logged(self, changes, model=None, quotas=NO_QUOTAS):
        """Log changes; return the last number."""
        if not changes:
            return self.seq
        for user_id, _, size in totals_by_user(changes):
            own = Scope(self.name, user_id)
            check_user_quota(quotas.user, user_id, self.used(own) - size, size)
            limit = limit_of(quotas.entry_limits.user_entries, user_id)
            self._check_entries(changes, limit, own)
        everyone, size = Scope(self.name, all_users=True), sum(change.size for change in changes)
        self._check_entries(changes, quotas.entry_limits.entries, everyone)
        check_quota(quotas.agent, self.used(everyone) - size, size)
        self.model = model or self.model
        first = self.seq + 1
        for self.seq, change in enumerate(changes, first):
            self.log.append((self.seq, change))
            self.revisions[change.user_id] += 1
        dropped = last_dropped(first, self.seq)
        if dropped is not None:
            self.pruned = dropped
            self.log = [pair for pair in self.log if pair[0] > dropped]
        return self.seq

    def _check_entries(self, changes, limit, scope):
        new = [change for change in changes if change.kind == "add"]
        number = len([one for one in new if scope.all_users or one.user_id == scope.user_id])
        if limit is not None and number:
            check_entries(limit, scope, len(self.within(scope)) - number, number)

    def check(self, model):
        """Raise an error if there are vectors of another model."""
        known = self.model_in_use()
        _check_model(self.name, known, model)

    def since(self, seq):
        """Return the changes after one; None if some were dropped."""
        is_known = seq is not None and self.pruned <= seq <= self.seq
        return [change for at, change in self.log if at > seq] if is_known else None

    def read_links(self, is_there):
        """Return the links both of whose ends are there, in their order."""
        ends = self.rows
        found = [
            ReadLink(
                source,
                target,
                ends[source].entry.user_id,
                kinds.MemoryLink(ends[source].entry.id, ends[target].entry.id, kind, *link),
            )
            for (source, target, kind), link in self.links.items()
            if is_there(ends[source].entry) and is_there(ends[target].entry)
        ]
        return sorted(found, key=attrgetter("place"))

    def supersede(self, entry, row, at):
        """Mark what an entry supersedes; return the changes."""
        old = self.of_user(entry.user_id, entry.supersedes)
        if old is None:
            return []
        was = old.entry
        is_first = was.status is not MemoryStatus.SUPERSEDED
        version = next_version(was.version) if is_first else was.version
        status, time = MemoryStatus.SUPERSEDED, max(was.updated_at, at)
        self.put(old.of(status=status, updated_at=time, version=version))
        place = row, old.row, LinkType.SUPERSEDES
        self.links[place] = 1.0, self.links.get(place, (1.0, at))[1]
        return [old.change("supersede")]

    def end_supersession(self, row, at):
        """Let no entry supersede a row any more; return the changes."""
        places = [place for place in self.links if place[1:] == (row, LinkType.SUPERSEDES)]
        changes = []
        for place in sorted(places):
            del self.links[place]
            old = self.rows[place[0]]
            time = max(old.entry.updated_at, at)
            version = next_version(old.entry.version)
            self.put(old.of(supersedes=None, updated_at=time, version=version))
            changes.append(old.change("update"))
        return changes


def _check_model(name, known, model):
    if None not in (known, model) and known != model:
        raise EmbeddingModelMismatchError(
            f"agent {name!r} has vectors of {known[0]!r} with {known[1]} dimensions, not of "
            f"{model}: reembed"
        )


def _passing(expression, found):
    passed = matches(expression, [kept.record for kept in found])
    return [kept for kept, passes in zip(found, passed, strict=True) if passes]


def _listed(agent, wanted, expression, *, include_deleted=False):
    has_status = references(expression, "status")
    found = agent.within(
        wanted.scope,
        lambda one: (
            (include_deleted or one.is_present(wanted.now))
            and (has_status or one.status is MemoryStatus.ACTIVE)
        ),
    )
    return _passing(expression, found)


def _is_shown(wanted):
    return lambda one: wanted.include_deleted or one.is_active(wanted.now)


def entries_by_id(agent, wanted):
    found = agent.by_ids(wanted.scope, wanted.ids, _is_shown(wanted))
    return {kept.entry.id: values.EntryRow(kept.row, kept.entry) for kept in found}


def entries_by_row(agent, wanted):
    rows = set(wanted.rows)
    found = agent.within(wanted.scope, _is_shown(wanted))
    return {kept.row: kept.entry for kept in found if kept.row in rows}


def successors(agent, wanted):
    newer = {
        source
        for source, target, kind in agent.links
        if kind is LinkType.SUPERSEDES and target in set(wanted.rows)
    }
    found = agent.within(wanted.scope)
    return {k.row: k.entry for k in found if k.row in newer and k.entry.is_present(wanted.now)}


def stored_entries(agent, wanted):
    found = [
        kept
        for kept in agent.within(wanted.scope)
        if kept.row > wanted.after and (wanted.include_deleted or kept.entry.is_present(wanted.now))
    ]
    stored = []
    for row, entry, used, *_ in found[: wanted.limit]:
        vectors = None if wanted.model is None else agent.vectors(row, wanted.model)
        shown = entry if vectors is None else entry.with_embedding(vectors[0], wanted.model)
        more = () if vectors is None else tuple(vectors[1:])
        stored.append(values.StoredEntry(row, shown, used and used.key, more))
    return stored


def vectors_of_row(agent, wanted):
    found = agent.vectors(wanted.row, wanted.model)
    return np.empty((0, 0), np.float32) if found is None else found


def vectors_by_id(agent, wanted):
    found = {named: agent.of_user(*named) for named in wanted.entries}
    return {
        named: values.EntryVectors(
            kept.entry.version,
            to_microseconds(kept.entry.updated_at),
            agent.vectors(kept.row, wanted.model),
        )
        for named, kept in found.items()
        if kept is not None
    }


def entry_page(agent, wanted):
    found = _listed(agent, wanted, wanted.expression, include_deleted=wanted.include_deleted)
    entries = sorted((kept.entry for kept in found), key=lambda entry: entry.user_id or "")
    entries = ordered(entries, wanted.order.name)
    if wanted.after is not None:
        place = _place(wanted.after)
        entries = [entry for entry in entries if _place(entry) > place]
    return entries[wanted.offset : wanted.offset + wanted.limit]


def _place(one):
    return -to_microseconds(one.created_at), one.id, one.user_id or ""


def entry_count(agent, wanted):
    expression = All(()) if wanted.expression is None else wanted.expression
    return len(_listed(agent, wanted, expression))


def distinct(agent, wanted):
    query = wanted.query
    found = [kept.record for kept in _listed(agent, wanted, query.narrowed(wanted.expression))]
    page = query.prefix, query.offset, query.limit
    return query.values(distinct_values(All(()), [found], query.field, *page))


def _links_at(agent, wanted, row):
    scope, now = wanted.scope, wanted.now
    sides = {"in": (1,), "out": (0,), "both": (0, 1)}[wanted.direction]
    return [
        read
        for read in agent.read_links(lambda one: scope.has(one) and one.is_present(now))
        if row in [read[side] for side in sides]
        and (wanted.kinds is None or read.link.type in wanted.kinds)
    ]


def links_of(agent, wanted):
    own = agent.one(wanted.scope, wanted.entry_id, lambda one: one.is_present(wanted.now))
    return [] if own is None else [read.link for read in _links_at(agent, wanted, own.row)]


def link_ends(agent, wanted):
    return [
        values.LinkEnd(
            read.to_row if read.from_row == wanted.row else read.from_row,
            read.link.type,
            read.link.strength,
        )
        for read in _links_at(agent, wanted, wanted.row)
    ]


def links_within(agent, wanted):
    def is_there(entry):
        is_shown = wanted.include_deleted or entry.is_present(wanted.now)
        return wanted.scope.has(entry) and is_shown

    return [values.StoredLink(read.link, read.user_id) for read in agent.read_links(is_there)]


def users(agent, wanted):
    by_user = {}
    for kept in agent.rows.values():
        by_user.setdefault(kept.entry.user_id, []).append(kept)
    found = [
        kinds.UserUsage(
            user_id,
            sum(kept.entry.is_active(wanted.now) for kept in own),
            sum(kept.size for kept in own),
        )
        for user_id, own in sorted(by_user.items(), key=lambda pair: pair[0] or "")
        if (user_id or "").startswith(wanted.prefix or "")
    ]
    return found[wanted.offset : wanted.offset + wanted.limit]


def statistics(agent, wanted):
    found = agent.within(wanted.scope)
    entries = [kept.entry for kept in found]
    active = [entry for entry in entries if entry.is_active(wanted.now)]
    present = Counter(entry.status for entry in entries if entry.is_present(wanted.now))
    forgotten = sum(entry.forgotten_at is not None for entry in entries)
    tags = Counter(tag for entry in active for tag in set(entry.tags))
    top = sorted(tags.items(), key=lambda pair: (-pair[1], pair[0]))[:10]
    times = [entry.created_at for entry in active]
    return kinds.LongTermMemoryStats(
        active_entries=len(active),
        archived_entries=present[MemoryStatus.ARCHIVED],
        superseded_entries=present[MemoryStatus.SUPERSEDED],
        forgotten_entries=forgotten,
        expired_entries=len(entries) - forgotten - present.total(),
        storage_bytes_used=sum(kept.size for kept in found),
        entries_by_type=dict(Counter(entry.type for entry in active)),
        top_tags=tuple(kinds.TagUsage(*pair) for pair in top),
        oldest_entry=min(times, default=None),
        newest_entry=max(times, default=None),
    )


def position_and_revision(agent, wanted):
    scope, stands = wanted.scope, values.LogPosition(agent.seq, agent.accesses)
    return stands, agent.seq if scope.all_users else agent.revisions[scope.user_id]


def changed_rows(agent, wanted):
    changes = agent.since(wanted.seq)
    return None if changes is None else sorted({change.row for change in changes})


def accesses_since(agent, wanted):
    since = wanted.accesses if wanted.accesses <= agent.accesses else 0
    found = [kept for kept in agent.rows.values() if kept.accessed > since]
    rows = [(k.row, to_microseconds(k.entry.last_accessed_at), k.entry.access_count) for k in found]
    return values.AccessedRows(values.LogPosition(agent.seq, agent.accesses), rows)


def needs_vectors(agent, wanted):
    needed = []
    for entry in wanted.entries:
        old = agent.of_user(entry.user_id, entry.id)
        is_other = (
            old is not None
            and wanted.on_conflict != "skip"
            and (
                agent.vectors(old.row, wanted.model) is None
                or old.has_zeros
                or old.entry.content != entry.content
            )
        )
        needed.append(old is None or is_other)
    return needed


def _to_embed(agent):
    found = agent.within(Scope(agent.name, all_users=True))
    return [kept for kept in found if kept.entry.forgotten_at is None and not kept.has_zeros]


def _lacking(agent, model):
    name, dimensions = model
    found = ((kept, kept.shadows.get(name)) for kept in _to_embed(agent))
    return [kept.row for kept, own in found if own is None or own.shape[1] != dimensions]


def rows_to_embed(agent, wanted):
    later = (row for row in _lacking(agent, wanted.model) if row > wanted.after)
    return list(islice(later, wanted.limit))


class Adding:
    """Stores entries, one after the other."""

    def __init__(self, agent, wanted, new_row):
        self.agent, self.wanted, self.new_row = agent, wanted, new_row
        self.rows, self.is_new, self.replaced, self.changes = [], [], {}, []
        self.clears = False

    def result(self):
        agent, wanted = self.agent, self.wanted
        for new in wanted.entries:
            if new.entry.agent_id != agent.name:
                raise InvalidEntryError(f"{new.entry.id} is another agent's")
            check_size(new.entry)
        models = {_model_of(new) for new in wanted.entries if new.entry.embedding is not None}
        if len(models) > 1:
            raise EmbeddingModelMismatchError(
                f"one call brings vectors of several models: {models}"
            )
        model = next(iter(models), None)
        has_vectors, known, before = False, agent.model_in_use(), agent.seq
        for at, new in enumerate(wanted.entries):
            row, is_new = self._store(at, new)
            self.rows.append(row)
            self.is_new.append(is_new)
            has_vectors |= new.entry.embedding is not None and (is_new or at in self.replaced)
        if has_vectors:
            _check_model(agent.name, known, model)
        removed = []
        if wanted.instead_of is not None:
            found = agent.selected(*wanted.instead_of)
            removed = agent.remove([kept for kept in found if kept.row not in self.rows])
        agent.logged([*self.changes, *removed], model if has_vectors else None, wanted.quotas)
        if self.changes or removed:
            agent.time_zone = agent.time_zone or wanted.time_zone
        new_rows = [row for row, is_new in zip(self.rows, self.is_new, strict=True) if is_new]
        stored = {*new_rows, *(self.rows[at] for at in self.replaced)}
        others = [one.row for one in self.changes if one.row not in stored]
        others += [one.row for one in self.changes if one.kind == "supersede" and one.row in stored]
        batch = None
        has_repeated = len({change.row for change in self.changes}) < len(self.changes)
        if self.changes and not (others or removed or self.clears or has_repeated):
            batch = self._batch(rows_since(agent, model, before), new_rows)
        return values.WriteResult(
            [agent.rows[row].entry.id for row in self.rows],
            self.rows,
            self.is_new,
            others,
            batch,
            self.replaced,
            (),
            tuple(UUID(bytes=one.entry_id) for one in removed),
        )

    @staticmethod
    def _batch(batch, new_rows):
        """Return what a reader is given, without what an index cannot have of new rows."""
        known = {
            name: [row for row in getattr(batch, name) if row not in new_rows]
            for name in ("removed", "linked")
        }
        return msgspec.structs.replace(batch, **known)

    def _store(self, at, new):
        """Store an entry; return its row, and whether that is new."""
        agent, wanted, entry = self.agent, self.wanted, new.entry.without_embedding()
        own = agent.within(Scope(agent.name, entry.user_id))
        for kept in own:
            if new.key is not None and kept.key is not None and kept.key.key == new.key:
                if kept.key.fingerprint != fingerprint(entry.content):
                    raise DuplicateEntryError(f"{new.key!r} was used for another content")
                return kept.row, False
        old = agent.of_user(entry.user_id, entry.id)
        if wanted.on_conflict != "raise" and old is not None:
            if not self._keeps(new, old):
                self._store_over(at, new, old)
            return old.row, False
        if wanted.on_duplicate != "keep" and entry.content:
            print_ = fingerprint(entry.content)
            twins = [k for k in own if k.entry.is_active(wanted.now)]
            twins = [k for k in twins if fingerprint(k.entry.content) == print_]
            if twins:
                return self._repeat(min(twins, key=lambda k: (k.entry.created_at, k.row)), entry)
        if old is not None:
            raise DuplicateEntryError(
                f"a memory with id {entry.id} is already stored for agent {agent.name!r}, "
                f"user {entry.user_id!r}"
            )
        key = None if new.key is None else UsedKey(new.key, fingerprint(entry.content))
        kept = agent.put(Kept(self.new_row(), entry, key, _vectors(new)))
        self.changes.append(kept.change("add", kept.size))
        self._supersede(kept, entry.created_at)
        return kept.row, True

    def _keeps(self, new, old):
        if self.wanted.on_conflict == "skip" or self.wanted.instead_of is None:
            return self.wanted.on_conflict == "skip"
        given = Kept(0, new.entry.without_embedding())
        return (
            new.entry.embedding is None and given.of(**ACCESSES).entry == old.of(**ACCESSES).entry
        )

    def _repeat(self, old, entry):
        before = old.entry
        change = MemoryEntryUpdate(
            importance=max(before.importance, entry.importance),
            add_tags=entry.tags,
            metadata=entry.metadata,
        )
        after = change.applied_to(before, self.wanted.now)
        names = "importance", "tags", "metadata"
        is_other = any(getattr(after, name) != getattr(before, name) for name in names)
        if self.wanted.on_duplicate == "merge" and is_other:
            self.agent.put(old._replace(entry=with_changed(before, after)))
            self.changes.append(old.change("update"))
        return old.row, False

    def _store_over(self, at, new, old):
        agent, before, now = self.agent, old.entry, self.wanted.now
        if before.status is MemoryStatus.SUPERSEDED:
            self.changes += agent.end_supersession(old.row, now)
        given = new.entry.embedding is not None
        kept = old._replace(entry=new.entry.without_embedding()).of(
            created_at=before.created_at,
            updated_at=max(now, before.created_at),
            version=next_version(before.version),
        )
        is_other = kept.entry.content != before.content
        if new.key is not None:
            kept = kept._replace(key=UsedKey(new.key, fingerprint(kept.entry.content)))
        if given or is_other:
            kept = kept._replace(vectors=_vectors(new))
        if is_other or kept.entry.hides_content:
            kept = kept._replace(shadows={})
        agent.put(kept)
        agent.links = {place: own for place, own in agent.links.items() if place[0] != old.row}
        was_active = STATES[State.ACTIVE](before)
        clears = before.access_count or not (is_other or (was_active and not given))
        self.clears |= bool(clears)
        kind = "replace" if clears or given else "update"
        self.changes.insert(0, kept.change(kind, kept.size - old.size))
        self.replaced[at] = values.ReplacedEntry(_shown(kept.entry, new), is_other)
        self._supersede(kept, kept.entry.updated_at)

    def _supersede(self, kept, at):
        entry = kept.entry
        if entry.supersedes is None:
            return
        changes = self.agent.supersede(entry, kept.row, at)
        if not (changes or self.wanted.is_import):
            raise EntryNotFoundError(f"{entry.id} supersedes {entry.supersedes}, which is missing")
        self.changes += changes


def _model_of(new):
    if new.entry.embedding_model is None:
        raise InvalidEntryError("an entry has an embedding without its embedding_model")
    return new.entry.embedding_model, new.entry.embedding.size


def _vectors(new):
    given = new.entry.embedding
    return None if given is None else np.stack([given, *new.more]).astype(np.float32)


def _shown(entry, new):
    if new.entry.embedding is None:
        return entry
    return entry.with_embedding(new.entry.embedding, new.entry.embedding_model)


def add_embeddings(agent, wanted):
    changes, model = [], None
    for (row, content), vectors in zip(wanted.contents.items(), wanted.vectors, strict=True):
        kept = agent.rows.get(row)
        if kept is None or kept.entry.content != content:
            continue
        if kept.vectors is None or agent.model[0] != wanted.model:
            model = wanted.model, vectors.shape[1]
            agent.check(model)
            agent.put(kept._replace(vectors=np.array(vectors)))
            changes.append(kept.change("embed"))
    agent.logged(changes, model)


def add_shadow_vectors(agent, wanted):
    number = 0
    for row, entry in wanted.entries.items():
        kept = agent.rows.get(row)
        if kept is not None and kept.entry.content == entry.content:
            agent.put(kept._replace(shadows={**kept.shadows, wanted.model: wanted.vectors[row]}))
            number += 1
    return number


def drop_shadow_vectors(agent, wanted):
    number = 0
    for kept in list(agent.rows.values()):
        left = {n: v for n, v in kept.shadows.items() if wanted.model not in (None, n)}
        number += len(kept.shadows) - len(left)
        agent.put(kept._replace(shadows=left))
    return number


def switch_model(agent, wanted):
    name, dimensions = wanted.model
    lacking = set(_lacking(agent, wanted.model))
    if len(lacking - set(wanted.skipped)) > wanted.max_missing:
        return False
    for kept in list(agent.rows.values()):
        entry, shadows = kept.entry, dict(kept.shadows)
        new = shadows.pop(name, None)
        if kept.vectors is not None:
            shadows.pop(agent.model[0], None)
            if not (entry.sensitive or kept.has_zeros):
                shadows[agent.model[0]] = kept.vectors
        if kept.has_zeros:
            new = np.zeros((1, dimensions), np.float32)
        is_new = new is not None and new.shape[1] == dimensions
        agent.put(kept._replace(vectors=new if is_new else None, shadows=shadows))
    firsts = {}
    for row in sorted(agent.rows):
        firsts.setdefault(agent.rows[row].entry.user_id, agent.rows[row])
    agent.logged([kept.change("switch") for kept in firsts.values()], wanted.model)
    return True


def _marked(agent, found, time, kind):
    """Mark entries as deleted at a time, or as there; return their ids."""
    agent.logged([agent.put(kept.of(forgotten_at=time)).change(kind) for kept in found])
    return [kept.entry.id for kept in found]


def soft_delete(agent, wanted):
    kept = agent.one(wanted.scope, wanted.entry_id)
    if kept is None:
        return None
    return kept.entry.forgotten_at is None and bool(_marked(agent, [kept], wanted.now, "forget"))


def soft_delete_all(agent, wanted):
    found = agent.selected(wanted.scope, wanted.criteria, lambda one: one.forgotten_at is None)
    return _marked(agent, found, wanted.now, "forget")


def restore(agent, wanted):
    def is_due(entry):
        is_late = entry.forgotten_at is not None and entry.forgotten_at >= wanted.oldest
        return is_late and (entry.expires_at is None or entry.expires_at > wanted.now)

    kept = agent.one(wanted.scope, wanted.entry_id, is_due)
    return kept is not None and bool(_marked(agent, [kept], None, "restore"))


def _deleted(agent, found):
    agent.logged(agent.remove(found))
    return [kept.entry.id for kept in found]


def delete(agent, wanted):
    kept = agent.one(wanted.scope, wanted.entry_id)
    return [] if kept is None else _deleted(agent, [kept])


def purge(agent, wanted):
    ids = []
    for field, ended in (("forgotten_at", None), ("expires_at", wanted.expired)):
        found = [(getattr(kept.entry, field), kept) for kept in agent.within(wanted.scope)]
        due = [kept for at, kept in found if at is not None and _is_due(at, wanted.oldest, ended)]
        ids += _deleted(agent, due)
    return ids


def _is_due(at, oldest, ended):
    return at < oldest or (ended is not None and at <= ended)


def _changed(agent, kept, wanted):
    """Change an entry; return its change, and the model of its new vectors."""
    after = kept._replace(entry=with_changed(kept.entry, wanted.change(kept.entry)))
    check_size(after.entry)
    replaces, model = getattr(wanted, "replace_vectors", False), None
    is_other = after.entry.content != kept.entry.content
    if is_other or replaces:
        name, vectors = wanted.embedded or (None, None)
        if vectors is not None:
            model = name, vectors.shape[1]
            agent.check(model)
        after = after._replace(vectors=vectors)
    if is_other or (replaces and after.entry.hides_content):
        after = after._replace(shadows={})
    agent.put(after)
    return after.change("replace" if replaces else "update", after.size - kept.size), model


def _may_change(wanted, entry):
    is_there = entry.is_present(wanted.now) and entry.status is not MemoryStatus.SUPERSEDED
    return is_there and (wanted.include_archived or entry.status is MemoryStatus.ACTIVE)


def update(agent, wanted):
    kept = agent.one(wanted.scope, wanted.entry_id, lambda entry: _may_change(wanted, entry))
    if kept is None:
        return None
    change, model = _changed(agent, kept, wanted)
    agent.logged([change], model, wanted.quotas)
    return agent.rows[kept.row].entry


def update_all(agent, wanted):
    found = agent.selected(wanted.scope, wanted.criteria, lambda entry: _may_change(wanted, entry))
    done = [_changed(agent, kept, wanted) for kept in found]
    models = [model for _, model in done if model is not None]
    agent.logged([change for change, _ in done], models[-1] if models else None, wanted.quotas)
    entries = [agent.rows[kept.row].entry for kept in found]
    return values.UpdatedEntries([values.UpdatedEntry(entry.id, entry.type) for entry in entries])


def set_expiry(agent, wanted):
    found = agent.by_ids(wanted.scope, wanted.ids, lambda one: one.is_active(wanted.now))
    found = [kept for kept in found if kept.entry.expires_at != wanted.expires_at]
    agent.logged([agent.put(k.of(expires_at=wanted.expires_at)).change("update") for k in found])
    return len(found)


def link(agent, wanted):
    new, scope, ends = wanted.link, wanted.scope, []
    for entry_id in (new.from_id, new.to_id):
        end = agent.one(scope, entry_id, lambda one: one.is_present(wanted.now))
        if end is None:
            raise not_found(entry_id, scope)
        ends.append(end)
    source, target = ends
    if source.entry.user_id != target.entry.user_id:
        raise LinkAcrossUsersError("the two memories are not of the same user")
    place = source.row, target.row, new.type
    created_at = agent.links.get(place, (0, new.created_at))[1]
    agent.links[place] = new.strength, created_at
    agent.logged([source.change("link")])
    return msgspec.structs.replace(new, created_at=created_at)


def unlink(agent, wanted):
    source, target = (agent.one(wanted.scope, one) for one in (wanted.from_id, wanted.to_id))
    if source is None or target is None:
        return 0
    kinds = set(LinkType if wanted.kind is None else [wanted.kind]) - {LinkType.SUPERSEDES}
    found = [place for place in agent.links if place[:2] == (source.row, target.row)]
    found = [place for place in found if place[2] in kinds]
    for place in found:
        del agent.links[place]
    if found:
        agent.logged([source.change("link")])
    return len(found)


def add_links(agent, wanted):
    changes, scope = [], wanted.scope
    for new, user_id in wanted.links:
        if not scope.all_users and scope.user_id != user_id:
            continue
        own = Scope(scope.agent_id, user_id, scope.project_id, scope.session_id)
        source, target = agent.one(own, new.from_id), agent.one(own, new.to_id)
        if source is None or target is None:
            continue
        place = source.row, target.row, new.type
        is_false = new.type is LinkType.SUPERSEDES and source.entry.supersedes != new.to_id
        if place not in agent.links and not is_false:
            agent.links[place] = new.strength, new.created_at
            changes.append(source.change("link"))
    agent.logged(changes)
    return len(changes)


def rows_since(agent, model, seq, sink=None, *, state=State.ACTIVE, with_sensitive=False):
    agent.check(model)
    changes = agent.since(seq)
    is_in_state = STATES[state]
    if changes is None or (model is not None and any(one.kind == "switch" for one in changes)):
        found = [k for _, k in sorted(agent.rows.items()) if is_in_state(k.entry)]
        records = [kept.record for kept in found]
        rows, vectors = _vectors_of(found, model)
        leading = {kept.row for kept in found} if state is State.ACTIVE else set()
        links = _links(agent, leading, agent.rows if state is State.ACTIVE else ())
        if sink is not None:
            sink.add_records(records)
            if vectors is not None:
                sink.add_vectors(np.array(rows, np.int64), vectors)
            records, rows, vectors = [], [], None
        return RowBatch(None, agent.seq, records, rows, vectors, [], links=links)
    touched = {change.row for change in changes}
    if with_sensitive:
        touched |= {kept.row for kept in agent.rows.values() if kept.entry.sensitive}
    found = [agent.rows[row] for row in sorted(touched & agent.rows.keys())]
    current = [kept for kept in found if is_in_state(kept.entry)]
    rows = {kept.row for kept in current}
    removed = touched - rows | {one.row for one in changes if one.kind == "replace"}
    embedded, vectors = _vectors_of(current, model)
    others = touched - rows if state is State.ACTIVE else set()
    return RowBatch(
        since=seq,
        seq=agent.seq,
        records=[kept.record for kept in current],
        embedded=embedded,
        vectors=vectors,
        removed=sorted(removed),
        linked=[kept.row for kept in found],
        links=_links(agent, rows, others),
    )


def _vectors_of(found, model):
    """Return the vectors of entries, each with its row; None without any."""
    own = [kept for kept in found if model is not None and kept.vectors is not None]
    rows = [kept.row for kept in own for _ in kept.vectors]
    return rows, np.concatenate([kept.vectors for kept in own]) if own else None


def _links(agent, rows, superseding):
    """Return the links from rows, and of others those of supersession."""
    return [
        (source, target, int(kind), strength)
        for (source, target, kind), (strength, _) in agent.links.items()
        if source in rows or (source in superseding and kind is LinkType.SUPERSEDES)
    ]


READS = {
    ops.AccessesSince: accesses_since,
    ops.AgentFacts: lambda agent, _: values.StoredAgent(agent.model_in_use(), agent.time_zone),
    ops.ChangedRows: changed_rows,
    ops.CountToEmbed: lambda agent, wanted: values.ReembeddingProgress(
        len(_lacking(agent, wanted.model)), len(_to_embed(agent))
    ),
    ops.DistinctValues: distinct,
    ops.EntriesById: entries_by_id,
    ops.EntriesByRow: entries_by_row,
    ops.EntryCount: entry_count,
    ops.EntryPage: entry_page,
    ops.LinkEnds: link_ends,
    ops.LinksOf: links_of,
    ops.LinksWithin: links_within,
    ops.NeedVectors: needs_vectors,
    ops.PositionAndRevision: position_and_revision,
    ops.RowsToEmbed: rows_to_embed,
    ops.ScopeStatistics: statistics,
    ops.StoredCount: lambda agent, wanted: len(agent.within(wanted.scope)),
    ops.StoredEntries: stored_entries,
    ops.Successors: successors,
    ops.UsedBytes: lambda agent, wanted: agent.used(
        Scope(agent.name, wanted.scope.user_id, all_users=wanted.scope.all_users)
    ),
    ops.Users: users,
    ops.VectorsById: vectors_by_id,
    ops.VectorsOfRow: vectors_of_row,
}
WRITES = {
    ops.AddEmbeddings: add_embeddings,
    ops.AddLinks: add_links,
    ops.AddShadowVectors: add_shadow_vectors,
    ops.Delete: delete,
    ops.DeleteAll: lambda agent, wanted: _deleted(
        agent, agent.selected(wanted.scope, wanted.criteria)
    ),
    ops.DropShadowVectors: drop_shadow_vectors,
    ops.ForgetAgent: lambda agent, _: _deleted(agent, list(agent.rows.values())),
    ops.Link: link,
    ops.Purge: purge,
    ops.Restore: restore,
    ops.SetExpiry: set_expiry,
    ops.SoftDelete: soft_delete,
    ops.SoftDeleteAll: soft_delete_all,
    ops.SwitchModel: switch_model,
    ops.Unlink: unlink,
    ops.Update: update,
    ops.UpdateAll: update_all,
}


class DictStore:
    """See `Store`; it lasts until it is closed, and seals, verifies and copies nothing."""

    path = "a dict"
    is_remote = searches_vectors = False
    snapshot_folder = None

    def __init__(self):
        self._agents, self._pending, self._last_row = {}, {}, 0
        self._lock, self._is_closed = threading.RLock(), False
        self._executor = ThreadPoolExecutor(4)

    def _agent(self, name):
        """Return what is kept of an agent, or of one without anything."""
        if self._is_closed:
            raise StoreClosedError("the store was closed")
        return self._agents.get(name) or Agent(name)

    def _new_row(self):
        self._last_row += 1
        return self._last_row

    def read(self, wanted, *, deadline=None):
        with self._lock:
            agent = self._agent(wanted.agent_id)
            check_deadline(deadline)
            return READS[type(wanted)](agent, wanted)

    def write(self, wanted):
        with self._lock:
            agent = self._agent(wanted.agent_id).copied()
            if wanted.runs_after_accesses:
                self._write_accesses()
                agent = self._agent(wanted.agent_id).copied()
            before = agent.seq
            try:
                if isinstance(wanted, ops.Add):
                    result = Adding(agent, wanted, self._new_row).result()
                else:
                    result = WRITES[type(wanted)](agent, wanted)
            except Exception as error:  # noqa: BLE001 - any is the write's result
                return failed(error)
            self._agents[agent.name] = agent
            changed = {(agent.name, one.user_id) for at, one in agent.log if at > before}
        if changed:
            COMMITTED.notify(self, changed)
        return succeeded(result)

    def rows_since(self, agent_id, model, seq, sink=None, *, deadline=None, **options):
        with self._lock:
            agent = self._agent(agent_id)
            if agent.since(seq) is not None:
                check_deadline(deadline)
            return rows_since(agent, model, seq, sink, **options)

    def position(self, agent_id):
        agent = self._agent(agent_id)
        return values.LogPosition(agent.seq, agent.accesses)

    known_position = position

    def latest_position(self, agent_id, *, deadline=None):
        check_deadline(deadline)
        return self.position(agent_id)

    def stale_since(self, *_):
        return None

    def watch(self, listener):
        COMMITTED.add(self, listener)

    def touch(self, agent_id, rows, now):
        self._agent(agent_id)
        with self._lock:
            for row in rows:
                number, last = self._pending.get((agent_id, row), (0, now))
                self._pending[agent_id, row] = number + 1, max(last, now)

    def has_pending_accesses(self, agent_id, rows):
        return bool(self.pending_accesses(agent_id, rows))

    def pending_accesses(self, agent_id, rows):
        found = {row: self._pending.get((agent_id, row)) for row in rows}
        return {r: (own[0], to_microseconds(own[1])) for r, own in found.items() if own}

    def write_accesses(self):
        self._agent("")
        with self._lock:
            self._write_accesses()
        return succeeded(None)

    def _write_accesses(self):
        pending, self._pending = sorted(self._pending.items()), {}
        for name, accesses in groupby(pending, lambda pair: pair[0][0]):
            if name not in self._agents:
                continue
            agent = self._agents[name] = self._agents[name].copied()
            agent.accesses += 1
            for (_, row), (number, last) in accesses:
                kept = agent.rows.get(row)
                if kept is not None:
                    time = max(last, kept.entry.last_accessed_at or last)
                    count = min(number + kept.entry.access_count, 2**63 - 1)
                    new = kept.of(access_count=count, last_accessed_at=time)
                    agent.put(new._replace(accessed=agent.accesses))

    def stored_agent_id(self, agent_id):
        self._agent(agent_id)
        return stored_spelling(agent_id, list(self._agents))

    def marked(self, entry):
        return CODEC.marked(entry)

    def check_key(self, agent_id):
        self._agent(agent_id)

    def cached_bytes(self, _):
        return 0

    def release(self, _):
        pass

    def create_vector_index(self, agent_id):
        self._agent(agent_id)
        return False

    def locked_snapshots(self, **_):
        raise StoreFileError("a dict keeps no snapshots of indexes")

    def backup(self, target, **_):
        self._agent("")
        raise StoreFileError(f"a dict is not copied to {target}")

    def verify(self, **_):
        """Check that links lead to entries, and that changes are numbered without gaps."""
        self._agent("")
        agents = self._agents.values()
        for agent in agents:
            assert {end for place in agent.links for end in place[:2]} <= agent.rows.keys()
            assert [at for at, _ in agent.log] == [*range(agent.pruned + 1, agent.seq + 1)]
        rows, links = (
            sum(map(len, each)) for each in ([a.rows for a in agents], [a.links for a in agents])
        )
        return kinds.VerifyReport(rows, 0, links, 0)

    def erase(self, *, soon=False):
        self._agent("")
        return succeeded(not soon)

    @property
    def executor(self):
        self._agent("")
        return self._executor

    def close(self):
        self._is_closed = True
        self._executor.shutdown(wait=False)
