"""How a store of dicts stores entries, and makes room for them."""

from datetime import UTC, datetime

from mnemic.errors import StorageQuotaExceededError
from mnemic.model import LinkType, MemoryStatus
from mnemic.model.timestamps import from_microseconds
from mnemic.store.adding import Adding
from mnemic.store.new_rows import Outcome, StoredRow, WrittenRows, overwrite
from mnemic.store.row_codec import UsedKey, fingerprint, next_version
from mnemic.store.rules import id_in_use, superseded_version
from mnemic.store.values import NO_ENTRY_LIMITS, limit_of
from tests.support.dict_store.agent import CODEC, size_of

START = datetime.min.replace(tzinfo=UTC)


def evicted(agent, write):
    """Delete what makes room for a write, user after user; return the changes."""
    of_agent, of_user, limits = write.quotas
    if limits == NO_ENTRY_LIMITS:
        return []
    grown = {}
    for change in write.changes:
        size, number = grown.get(change.user_id, (0, 0))
        grown[change.user_id] = size + change.size, number + (change.kind == "add")

    def exceeded(scope, added, most):
        stored = agent.used(scope), len(agent.within(scope)) - added[1]
        return [
            0 if limit is None else max(0, min(before + more - limit, more))
            for before, more, limit in zip(stored, added, most, strict=True)
        ]

    def check(excess):
        if excess[1] > 0 or (excess[0] > 0 and limits.evicts):
            raise StorageQuotaExceededError(0, 0, None)

    total = [sum(column) for column in zip(*grown.values(), strict=True)] or [0, 0]
    short = exceeded(agent.everyone, total, (of_agent and of_agent[0], limits.entries))
    gone = []
    for user_id, added in grown.items():
        most = limit_of(of_user, user_id), limit_of(limits.user_entries, user_id)
        own, freed = exceeded(agent.user(user_id), added, most), [0, 0]
        needed = [max(lack, min(pair)) for lack, *pair in zip(own, short, added, strict=True)]
        for row in candidates(agent, write, user_id) if limits.evicts else ():
            size = size_of(agent.entries[row])
            if freed[1] < needed[1] or (freed[0] < needed[0] and size):
                gone.append(row)
                freed = [freed[0] + size, freed[1] + 1]
        check([lack - free for lack, free in zip(own, freed, strict=True)])
        short = [max(0, lack - free) for lack, free in zip(short, freed, strict=True)]
    check(short)
    return agent.remove(gone)


def candidates(agent, write, user_id):
    """Return the rows of a user that may go for a write, in their order."""
    now, changes = from_microseconds(write.now), write.changes
    grown = [one.row for one in changes if one.kind == "add" or one.size > 0]
    own = [agent.entries[row] for row in grown if agent.entries[row].user_id == user_id]
    least = min((entry.importance for entry in own), default=-1)

    def may_go(entry):
        return not entry.is_present(now) or entry.importance <= min(least, 0.999)

    def order(row):
        entry = found[row]
        is_present = entry.is_present(now)
        ended_at = START if is_present else entry.forgotten_at or entry.expires_at
        is_other = entry.status is not MemoryStatus.SUPERSEDED
        used_at = entry.last_accessed_at or entry.created_at
        last = entry.importance, entry.access_count, used_at, entry.created_at, entry.id
        return is_present, ended_at, is_other, *last

    found = agent.within(agent.user(user_id), may_go)
    return sorted(found.keys() - {*write.kept, *(one.row for one in changes)}, key=order)


class DictAdding(Adding):
    """Stores entries in dicts; see `Adding`."""

    def with_key(self, new):
        for row, entry in self.on.within(self.on.user(new.entry.user_id)).items():
            used = self.on.keys.get(row)
            if used is not None and used.key == new.given_key:
                yield row, entry.id, used

    def with_id(self, new):
        row, entry = self.on.one(self.on.user(new.entry.user_id), new.entry.id)
        if row is None:
            return None
        (stored,) = CODEC.rows([(entry, self.on.keys.get(row))])
        return StoredRow(row, *stored, size_of(entry))

    def with_text(self, new):
        text, now = fingerprint(new.entry.content), self.rules.wanted.now
        found = self.on.within(
            self.on.user(new.entry.user_id),
            lambda one: one.is_active(now) and fingerprint(one.content) == text,
        )
        first = min(found, key=lambda row: (found[row].created_at, row), default=None)
        return None if first is None else ((first,), found[first])

    def insert(self, new):
        if self.with_id(new) is not None:
            raise id_in_use(new.entry)
        row = next(self.on.numbers)
        self._put(row, new.entry, new.more)
        self.on.put_vectors(row, new.entry.embedding_model, new.vectors)
        outcome = Outcome(row, new.entry.id.bytes, is_new=True)
        return WrittenRows([outcome], [self.on.change(row, "add", new.size)])

    def replace(self, new, old):
        done = overwrite(CODEC, new, old, old.successor, self.rules.now)
        self._put(old.row, done.entry, done.more)
        if not done.keeps_vectors:
            self.on.put_vectors(old.row, new.entry.embedding_model, new.vectors)
        if done.changes_content or done.entry.hides_content:
            self.on.drop_shadows(old.row)
        self.on.drop_links(lambda source, *_: source == old.row)
        return done

    def _put(self, row, entry, more):
        self.on.entries[row] = entry.without_embedding()
        if more[1] is not None:
            self.on.keys[row] = UsedKey(*more[1:])

    def merge(self, found, entry):
        ((row, *_), _) = found
        self.on.entries[row] = entry
        return 0

    def supersede(self, entry, row, at):
        target, old = self.on.one(self.on.user(entry.user_id), entry.supersedes)
        if old is None:
            return None
        self.on.put_link(row, target, LinkType.SUPERSEDES, 1.0, from_microseconds(at))
        version, status = superseded_version(old.status, old.version), MemoryStatus.SUPERSEDED
        return self._revised(target, "supersede", at, version=version, status=status)

    def end_supersession(self, row):
        newer = sorted(at[0] for at in self.on.links if at[1:] == (row, LinkType.SUPERSEDES))
        self.on.drop_links(lambda *at: at[1:] == (row, LinkType.SUPERSEDES))
        entries, now = self.on.entries, self.rules.now
        versions = {source: next_version(entries[source].version) for source in newer}
        return [
            self._revised(source, "update", now, version=version, supersedes=None)
            for source, version in versions.items()
        ]

    def _revised(self, row, kind, at, **fields):
        time = max(self.on.entries[row].updated_at, from_microseconds(at))
        return self.on.change(row, kind, updated_at=time, **fields)

    def remove_others(self, which, kept):
        return self.on.remove([row for row in self.on.selected(*which) if row not in kept])

    def evict(self, write):
        return evicted(self.on, write)

    def log(self, changes, model):
        wanted = self.rules.wanted
        self.on.time_zone = self.on.time_zone or wanted.time_zone
        return self.on.logged(changes, model, wanted.quotas)
