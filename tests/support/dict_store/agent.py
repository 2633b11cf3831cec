"""What a store of dicts keeps of one agent: dicts by the number of a row."""

import copy
from collections import Counter
from itertools import compress

import msgspec
import numpy as np

from mnemic._core import matches
from mnemic.model import MemoryLink, Scope
from mnemic.model.filter import All
from mnemic.store.changes import Change, last_dropped, totals_by_user
from mnemic.store.row_codec import RowCodec
from mnemic.store.rules import check_model, check_unambiguous
from mnemic.store.values import NO_QUOTAS, LinkedRows, check_quota, check_user_quota

CODEC = RowCodec()
EVERY = All(())


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

    def user(self, user_id):
        return Scope(self.name, user_id)

    def within(self, scope, is_wanted=is_any, *, ids=None):
        """Return the entries of a scope, or those with some ids, by row, ascending."""
        found = sorted(self.entries.items())
        found = {row: one for row, one in found if scope.has(one) and is_wanted(one)}
        if ids is not None:
            found = {row: one for row, one in found.items() if one.id in ids}
            check_unambiguous(scope, [one.id.bytes for one in found.values()])
        return found

    def one(self, scope, entry_id, is_wanted=is_any):
        """Return row and entry of an id; None for both without one."""
        found = self.within(scope, is_wanted, ids={entry_id})
        return next(iter(found.items()), (None, None))

    def passing(self, expression, found):
        """Return those of entries that match a filter; None is any."""
        passed = matches(EVERY if expression is None else expression, self.records(found))
        return dict(compress(found.items(), passed))

    def selected(self, scope, criteria, is_wanted=is_any):
        """Return the selected entries of a scope that are wanted, by row."""
        found = self.within(scope, ids=criteria.ids)
        wanted = {row: entry for row, entry in found.items() if is_wanted(entry)}
        return self.passing(criteria.expression, wanted)

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

    def drop_links(self, is_dropped):
        """Drop links whose ends and type a condition holds for; return their number."""
        return len([self.links.pop(place) for place in [*self.links] if is_dropped(*place)])

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
        self.drop_links(lambda source, target, _: source in rows or target in rows)
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
        self.seq += len(changes)
        self.log.update(enumerate(changes, first))
        self.pruned = last_dropped(first, self.seq) or self.pruned
        self.log = {at: change for at, change in self.log.items() if at > self.pruned}
        return self.seq

    def since(self, seq):
        """Return the changes after one; None if some were dropped."""
        is_known = seq is not None and self.pruned <= seq <= self.seq
        return [change for at, change in self.log.items() if at > seq] if is_known else None
