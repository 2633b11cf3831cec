"""What a store of dicts keeps of one agent: dicts by the number of a row."""

import copy
from collections import Counter
from datetime import UTC, datetime

import msgspec
import numpy as np

from mnemic._core import matches
from mnemic.model import LinkType, MemoryLink, MemoryStatus, Scope
from mnemic.model.filter import EVERY_ENTRY
from mnemic.model.timestamps import from_microseconds
from mnemic.store.adding import Adding
from mnemic.store.changes import Change, last_dropped, totals_by_user
from mnemic.store.eviction import Eviction
from mnemic.store.new_rows import Outcome, StoredRow, WrittenRows, overwrite
from mnemic.store.row_codec import RowCodec, UsedKey, fingerprint, next_version
from mnemic.store.rules import (
    check_model,
    check_unambiguous,
    id_in_use,
    single,
    superseded_version,
)
from mnemic.store.values import NO_QUOTAS, LinkedRows, check_quota, check_user_quota

CODEC = RowCodec()
START = datetime.min.replace(tzinfo=UTC)


def size_of(entry):
    return len(entry.content.encode())


def is_any(_entry):
    return True


class Agent:
    """The entries of an agent, by row, and what belongs to them.

    Attributes:
        vectors: The name of the agent's model, and the vectors.
        shadows: Vectors of other models, by row and model.
        accessed: The number of the last write of accesses that an entry had.
        links: Strength and time, by the rows of the ends and the type.
        log: Changes by their numbers.
    """

    def __init__(self, name, numbers):
        self.name, self.numbers = name, numbers
        self.everyone = Scope(name, all_users=True)
        self.entries, self.keys, self.vectors, self.shadows = {}, {}, {}, {}
        self.accessed, self.links, self.log = {}, {}, {}
        self.seq = self.pruned = self.accesses = 0
        self.revisions, self.sizes = Counter(), Counter()
        self.model = self.time_zone = None

    def copied(self):
        made = copy.copy(self)
        dicts = {name: own for name, own in vars(self).items() if isinstance(own, dict)}
        vars(made).update({name: own.copy() for name, own in dicts.items()})
        return made

    def within(self, scope, is_wanted=is_any):
        """Return the entries of a scope by row, ascending."""
        found = sorted(self.entries.items())
        return {row: entry for row, entry in found if scope.has(entry) and is_wanted(entry)}

    def by_ids(self, scope, ids, is_wanted=is_any):
        ids = set(ids)
        found = self.within(scope, lambda entry: entry.id in ids and is_wanted(entry))
        check_unambiguous(scope, [entry.id.bytes for entry in found.values()])
        return found

    def one(self, scope, entry_id, is_wanted=is_any):
        """Return row and entry of an id; None for both without one."""
        found = self.within(scope, lambda entry: entry.id == entry_id and is_wanted(entry))
        return single(list(found.items()), scope, entry_id) or (None, None)

    def selected(self, scope, criteria=EVERY_ENTRY, is_wanted=is_any):
        ids, expression = criteria
        found = self.within(scope) if ids is None else self.by_ids(scope, ids)
        found = {row: entry for row, entry in found.items() if is_wanted(entry)}
        return found if expression is None else self.passing(expression, found)

    def passing(self, expression, found):
        passed = matches(expression, self.records(found))
        pairs = zip(found.items(), passed, strict=True)
        return dict(pair for pair, passes in pairs if passes)

    def records(self, rows):
        return [(row, *CODEC.encode(self.entries[row])) for row in rows]

    def used(self, scope):
        """Return the bytes of the contents of an agent or a user, as of the last logged change."""
        return self.sizes.total() if scope.all_users else self.sizes[scope.user_id]

    def vectors_of(self, row, model):
        """Return the vectors of a row; None without any of a model."""
        name, vectors = self.vectors.get(row, (None, None))
        return vectors if name == model and row in self.entries else None

    def model_in_use(self):
        own = [self.vectors[row] for row in self.vectors.keys() & self.entries.keys()]
        return self.model if self.model in [(name, one.shape[1]) for name, one in own] else None

    def check_model(self, model):
        known = self.model_in_use()
        if known is not None and model is not None:
            check_model(self.name, known, model)

    def has_zeros(self, row):
        return row in self.vectors and not self.vectors[row][1][0].any()

    def linked(self, scope, is_there):
        """Return the links both of whose ends are there, in their order."""
        ends = self.within(scope, is_there)
        found = [
            LinkedRows(
                *(source, target, ends[source].user_id),
                MemoryLink(ends[source].id, ends[target].id, kind, *link),
            )
            for (source, target, kind), link in self.links.items()
            if {source, target} <= ends.keys()
        ]
        return sorted(found, key=lambda one: one.place)

    def put_link(self, source, target, kind, strength, created_at):
        """Write a link; one that is there keeps its time, which is returned."""
        _, time = self.links.get((source, target, kind), (None, created_at))
        self.links[source, target, kind] = strength, time
        return time

    def put_vectors(self, row, model, vectors):
        self.vectors.pop(row, None)
        if vectors is not None and len(vectors):
            self.vectors[row] = model, np.array(vectors, dtype=np.float32)

    def drop_shadows(self, row, model=None):
        """Drop shadow vectors, of a model or of all; return of how many."""
        own = [place for place in self.shadows if place[0] == row and model in (None, place[1])]
        return len([self.shadows.pop(place) for place in own])

    def change(self, row, kind, size=0, **fields):
        """Give an entry other fields; return the change."""
        entry = self.entries[row] = msgspec.structs.replace(self.entries[row], **fields)
        return Change(row, entry.id.bytes, kind, entry.user_id, size)

    def access(self, row, number, time):
        """Count accesses of a row, if it is there."""
        if row in self.entries:
            old = self.entries[row]
            last = max(time, old.last_accessed_at or time)
            count = min(number + old.access_count, 2**63 - 1)
            self.entries[row] = old.with_accesses(last, count)
            self.accessed[row] = self.accesses

    def remove(self, rows):
        """Delete entries with their links; return the changes."""
        changes = [self.change(row, "delete", -size_of(self.entries[row])) for row in rows]
        for row in rows:
            del self.entries[row]
            self.drop_shadows(row)
        self.links = {at: link for at, link in self.links.items() if not {*at[:2]} & {*rows}}
        return changes

    def logged(self, changes, model=None, quotas=NO_QUOTAS):
        """Log changes; return the number of the last one."""
        self.check_model(model)
        users = totals_by_user(changes) if changes else []
        for user_id, steps, size in users:
            check_user_quota(quotas.user, user_id, self.sizes[user_id], size)
            self.revisions[user_id] += steps
            self.sizes[user_id] += size
        added = sum(user.size for user in users)
        check_quota(quotas.agent, self.sizes.total() - added, added)
        self.model, first = model or self.model, self.seq + 1
        for self.seq, change in enumerate(changes, first):
            self.log[self.seq] = change
        dropped = last_dropped(first, self.seq)
        if dropped is not None:
            self.pruned = dropped
            self.log = {at: change for at, change in self.log.items() if at > dropped}
        return self.seq

    def since(self, seq):
        """Return the changes after one; None if some were dropped."""
        is_known = seq is not None and self.pruned <= seq <= self.seq
        return [change for at, change in self.log.items() if at > seq] if is_known else None

    def user(self, user_id):
        return Scope(self.name, user_id)


class DictEviction(Eviction):
    """Chooses among an agent's entries; see `Eviction`."""

    def __init__(self, agent, write):
        super().__init__(write)
        self.agent, self.now = agent, from_microseconds(write.now)

    def used_bytes(self, scope):
        return self.agent.used(scope)

    def number_of(self, scope):
        return len(self.agent.within(scope))

    def least_importance(self, user_id, rows):  # noqa: ARG002 - a row has one user
        return min((self.agent.entries[row].importance for row in rows), default=None)

    def candidates(self, user_id, kept, least, number):
        def may_go(entry):
            is_minor = entry.importance < 1 and least is not None and entry.importance <= least
            return is_minor or not entry.is_present(self.now)

        found = self.agent.within(self.agent.user(user_id), may_go).items()
        free = sorted(pair for pair in found if pair[0] not in kept)
        return [(row, size_of(entry)) for row, entry in sorted(free, key=self._order)][:number]

    def _order(self, pair):
        _, entry = pair
        is_present = entry.is_present(self.now)
        ended_at = START if is_present else entry.forgotten_at or entry.expires_at
        is_other = entry.status is not MemoryStatus.SUPERSEDED
        used_at = entry.last_accessed_at or entry.created_at
        last = entry.importance, entry.access_count, used_at, entry.created_at, entry.id
        return is_present, ended_at, is_other, *last

    def remove(self, rows):
        return self.agent.remove(rows)


class DictAdding(Adding):
    """Stores entries in dicts; see `Adding`."""

    def __init__(self, agent, rules):
        super().__init__(rules)
        self.agent = agent

    def with_key(self, new):
        for row, entry in self.agent.within(self.agent.user(new.entry.user_id)).items():
            used = self.agent.keys.get(row)
            if used is not None and used.key == new.given_key:
                yield row, entry.id, used

    def with_id(self, new):
        row, entry = self.agent.one(self.agent.user(new.entry.user_id), new.entry.id)
        if entry is None:
            return None
        (stored,) = CODEC.rows([(entry, self.agent.keys.get(row))])
        return StoredRow(row, *stored, size_of(entry))

    def with_text(self, new):
        text, now = fingerprint(new.entry.content), self.rules.wanted.now
        found = self.agent.within(
            self.agent.user(new.entry.user_id),
            lambda one: one.is_active(now) and fingerprint(one.content) == text,
        )
        first = min(found, key=lambda row: (found[row].created_at, row), default=None)
        return None if first is None else ((first,), found[first])

    def insert(self, new):
        if self.with_id(new) is not None:
            raise id_in_use(new.entry)
        row = next(self.agent.numbers)
        self._put(row, new.entry, new.more)
        self.agent.put_vectors(row, new.entry.embedding_model, new.vectors)
        outcome = Outcome(row, new.entry.id.bytes, is_new=True)
        return WrittenRows([outcome], [self.agent.change(row, "add", new.size)])

    def replace(self, new, old):
        agent, row = self.agent, old.row
        done = overwrite(CODEC, new, old, old.successor, self.rules.now)
        self._put(row, done.entry, done.more)
        if not done.keeps_vectors:
            agent.put_vectors(row, new.entry.embedding_model, new.vectors)
        if done.changes_content or done.entry.hides_content:
            agent.drop_shadows(row)
        agent.links = {at: link for at, link in agent.links.items() if at[0] != row}
        return done

    def _put(self, row, entry, more):
        self.agent.entries[row] = entry.without_embedding()
        if more[1] is not None:
            self.agent.keys[row] = UsedKey(*more[1:])

    def merge(self, found, entry):
        ((row, *_), _) = found
        self.agent.entries[row] = entry
        return 0

    def supersede(self, entry, row, at):
        agent, time = self.agent, from_microseconds(at)
        target, old = agent.one(agent.user(entry.user_id), entry.supersedes)
        if old is None:
            return None
        agent.put_link(row, target, LinkType.SUPERSEDES, 1.0, time)
        version, updated_at = superseded_version(old.status, old.version), max(old.updated_at, time)
        fields = {"status": MemoryStatus.SUPERSEDED, "updated_at": updated_at, "version": version}
        return agent.change(target, "supersede", **fields)

    def end_supersession(self, row):
        agent, changes = self.agent, []
        for place in sorted(at for at in agent.links if at[1:] == (row, LinkType.SUPERSEDES)):
            del agent.links[place]
            old = agent.entries[place[0]]
            version, time = next_version(old.version), max(old.updated_at, self.rules.wanted.now)
            fields = {"supersedes": None, "updated_at": time, "version": version}
            changes.append(agent.change(place[0], "update", **fields))
        return changes

    def remove_others(self, which, kept):
        return self.agent.remove([row for row in self.agent.selected(*which) if row not in kept])

    def evict(self, write):
        return DictEviction(self.agent, write).changes()

    def log(self, changes, model):
        wanted = self.rules.wanted
        self.agent.time_zone = self.agent.time_zone or wanted.time_zone
        return self.agent.logged(changes, model, wanted.quotas)
