"""A naive model of one store: plain dicts, and for each operation the most obvious way.

It is what an AsyncLongTermMemory is compared with, and knows neither SQL nor the index. Where an
operation is refused for several reasons at once, any of their errors will do.
"""

from datetime import timedelta
from typing import NamedTuple

import msgspec
import numpy as np

from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingError,
    EntryNotFoundError,
    InvalidArgumentError,
    InvalidEntryError,
    LicenseRestrictionError,
    LinkAcrossUsersError,
    StorageQuotaExceededError,
)
from mnemic.licensing import LicenseTier
from mnemic.model import MemoryStatus, fingerprint_digests
from tests.support.filter_twin import folded, matches, ordered

RETENTION = timedelta(days=90)
ACTIVE, SUPERSEDED = MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED
SUPERSEDES = 3
"""The number of the link type that only storing writes."""


class RefusedError(Exception):
    """The operation is refused, with an error of one of these types."""

    def __init__(self, *kinds):
        super().__init__(*kinds)
        self.kinds = kinds


class Who(NamedTuple):
    """The scope of a call."""

    agent: str
    user: str | None = None
    all_users: bool = False
    project: str | None = None
    session: str | None = None

    def sees(self, entry):
        return (
            entry.agent_id == self.agent
            and (self.all_users or entry.user_id == self.user)
            and (self.project is None or entry.project_id == self.project)
            and (self.session is None or entry.session_id == self.session)
        )


class Row(NamedTuple):
    """An entry without its vector, and its vector of length one."""

    entry: object
    vector: object


class Wish(NamedTuple):
    """An entry to be stored, and how."""

    entry: object
    key: str | None = None
    on_duplicate: str = "keep"


class StoreTwin:
    """All agents of one file.

    Args:
        clock: Gives the time.
        embed: Turns a list of texts into vectors.
    """

    def __init__(self, clock, embed):
        self.clock = clock
        self.embed = embed
        self.rows = {}
        """(agent, id) to row"""
        self.links = {}
        """(agent, from, to, type number) to (strength, created_at)"""
        self.keys = {}
        """(agent, user, key) to (id, content)"""

    # What a scope has

    def entries(self, who):
        return [row.entry for row in self.rows.values() if who.sees(row.entry)]

    def is_present(self, entry):
        """Return whether it is neither forgotten nor expired, whatever its status."""
        return entry.forgotten_at is None and not self.is_expired(entry)

    def is_expired(self, entry):
        return entry.expires_at is not None and entry.expires_at <= self.clock()

    def is_active(self, entry):
        return self.is_present(entry) and entry.status == ACTIVE

    def living(self, who):
        return [entry for entry in self.entries(who) if self.is_active(entry)]

    def one(self, who, entry_id):
        return next((entry for entry in self.entries(who) if entry.id == entry_id), None)

    def count(self, who):
        return len(self.living(who))

    # Storing

    def store(self, agent, wishes, *, quota=None, can_embed=True, on_embed_error="raise", hint=()):
        """Store all or none; `hint` are the ids that settle which of equally old is the oldest."""
        before = dict(self.rows), dict(self.links), dict(self.keys)
        used = self.bytes_used(agent)
        refusals, ids, is_growing = [], [], False
        for number, wish in enumerate(wishes):
            known = len(self.rows)
            try:
                ids.append(self._store_one(agent, wish, hint[number : number + 1]))
            except RefusedError as refused:
                refusals += refused.kinds
            is_new = len(self.rows) > known
            is_growing |= is_new
            if (is_new or refusals) and not can_embed and on_embed_error == "raise":
                refusals.append(EmbeddingError)
        total = used + sum(len(wish.entry.content.encode()) for wish in wishes)
        after = total if refusals else self.bytes_used(agent)
        if quota is not None and after > quota and (is_growing or refusals):
            refusals.append(StorageQuotaExceededError)
        if refusals:
            self.rows, self.links, self.keys = before
            raise RefusedError(*refusals)
        return ids

    def _store_one(self, agent, wish, hint):
        entry = wish.entry
        if entry.agent_id != agent or entry.supersedes == entry.id:
            raise RefusedError(InvalidEntryError)
        key = (agent, entry.user_id, wish.key)
        if wish.key is not None and key in self.keys:
            entry_id, content = self.keys[key]
            if content != entry.content:
                raise RefusedError(DuplicateEntryError)
            return entry_id
        twins = self.duplicates(entry) if wish.on_duplicate != "keep" else []
        if twins:
            return self._settle_duplicate(wish, twins, hint)
        self._insert(entry)
        if wish.key is not None:
            self.keys[key] = (entry.id, entry.content)
        return entry.id

    def duplicates(self, entry):
        """Return the living entries that say the same, only the oldest of them."""
        who = Who(entry.agent_id, entry.user_id)
        same = [one for one in self.living(who) if digest(one.content) == digest(entry.content)]
        oldest = min((one.created_at for one in same), default=None)
        return [one for one in same if one.created_at == oldest]

    def _settle_duplicate(self, wish, twins, hint):
        chosen = next((one for one in twins if one.id in hint), twins[0])
        if wish.on_duplicate == "merge":
            new = wish.entry
            tags = (*chosen.tags, *dict.fromkeys(tag for tag in new.tags if tag not in chosen.tags))
            merged = {
                "tags": tags,
                "metadata": {**chosen.metadata, **new.metadata},
                "importance": max(chosen.importance, new.importance),
            }
            if any(getattr(chosen, field) != value for field, value in merged.items()):
                changed_at = max(self.clock(), chosen.created_at)
                self._change(chosen, **merged, updated_at=changed_at, version=chosen.version + 1)
        return chosen.id

    def _insert(self, entry):
        place = (entry.agent_id, entry.id)
        kinds = [DuplicateEntryError] if place in self.rows else []
        old = entry.supersedes and self.one(Who(entry.agent_id, entry.user_id), entry.supersedes)
        if entry.supersedes and not old:
            kinds.append(EntryNotFoundError)
        if kinds:
            raise RefusedError(*kinds)
        given = entry.embedding
        vector = self.embed([entry.content])[0] if given is None else given
        self.rows[place] = Row(bare(entry), unit(vector))
        if old:
            self._change(
                old,
                status=SUPERSEDED,
                updated_at=max(old.updated_at, entry.created_at),
                version=old.version + (old.status != SUPERSEDED),
            )
            self.links[(entry.agent_id, entry.id, old.id, SUPERSEDES)] = (1.0, entry.created_at)

    def _change(self, entry, **fields):
        place = (entry.agent_id, entry.id)
        row = self.rows[place]
        self.rows[place] = row._replace(entry=msgspec.structs.replace(row.entry, **fields))

    # Reading

    def retrieve(self, who, entry_id, *, include_forgotten=False):
        entry = self.one(who, entry_id)
        is_shown = entry is not None and (include_forgotten or self.is_active(entry))
        return entry if is_shown else None

    def touch(self, who, entry_ids):
        """Count one access each of the living ones."""
        for entry_id in entry_ids:
            entry = self.one(who, entry_id)
            if entry is not None and self.is_active(entry):
                last = max(entry.last_accessed_at or self.clock(), self.clock())
                count = entry.access_count + 1
                self._change(entry, access_count=count, last_accessed_at=last)

    def search(self, who, query, limit, floor=-1.0, tier=LicenseTier.ENTERPRISE):
        """Return (entry, cosine) pairs, best first."""
        if tier < LicenseTier.TEAMS:
            raise RefusedError(LicenseRestrictionError)
        asked = unit(self.embed([query])[0]).astype(np.float64)
        scored = [
            (entry, float(self.rows[(who.agent, entry.id)].vector.astype(np.float64) @ asked))
            for entry in ordered(self.living(who), "CREATED_DESCENDING")
        ]
        scored.sort(key=lambda pair: pair[1], reverse=True)  # stable
        return [pair for pair in scored if pair[1] >= floor][:limit]

    def select(self, who, where=None, options=None, *, include_forgotten=False):
        """Return the entries that match a filter, with the options of the query."""
        options = options or {}
        is_any = include_forgotten or options.get("include_forgotten", False)
        asks_status = names_status(where or {})
        return [
            entry
            for entry in self.entries(who)
            if (is_any or self.is_present(entry))
            and (asks_status or entry.status == ACTIVE)
            and matches(where or {}, entry)
            and all(_OPTIONS[name](entry, value) for name, value in options.items())
        ]

    def filtered(self, who, where=None, options=None, *, limit=100, offset=0, sort=None):
        chosen = self.select(who, where, options)
        return ordered(chosen, sort or "CREATED_DESCENDING")[offset : offset + limit]

    # Changing

    def update(self, who, entry_id, *, quota=None, can_embed=True, **fields):
        """Return whether there was something to update."""
        entry = self.one(who, entry_id)
        if entry is None or not self.is_active(entry):
            return False
        if not fields:
            return True
        content = fields.get("content", entry.content)
        growth = len(content.encode()) - len(entry.content.encode())
        kinds = []
        if quota is not None and growth > 0 and self.bytes_used(who.agent) + growth > quota:
            kinds.append(StorageQuotaExceededError)
        if content != entry.content and not can_embed:
            kinds.append(EmbeddingError)
        if kinds:
            raise RefusedError(*kinds)
        kept = [tag for tag in entry.tags if tag not in fields.get("remove_tags", ())]
        added = [tag for tag in dict.fromkeys(fields.get("add_tags", ())) if tag not in kept]
        self._change(
            entry,
            content=content,
            importance=fields.get("importance", entry.importance),
            type=fields.get("type", entry.type),
            tags=(*kept, *added),
            metadata={**entry.metadata, **fields.get("metadata", {})},
            updated_at=max(self.clock(), entry.created_at),
            version=entry.version + 1,
        )
        if content != entry.content:
            place = (entry.agent_id, entry.id)
            self.rows[place] = self.rows[place]._replace(vector=unit(self.embed([content])[0]))
        return True

    def forget(self, who, entry_id, *, permanent=False):
        """Return how many were there to forget, forgotten ones included."""
        entry = self.one(who, entry_id)
        if entry is None:
            return 0
        self._forget(entry, permanent=permanent)
        return 1

    def _forget(self, entry, *, permanent):
        if permanent:
            self._delete(entry)
        elif entry.forgotten_at is None:
            self._change(entry, forgotten_at=self.clock())

    def _delete(self, entry):
        agent = entry.agent_id
        del self.rows[(agent, entry.id)]
        self.links = {
            link: value
            for link, value in self.links.items()
            if link[0] != agent or entry.id not in link[1:3]
        }
        self.keys = {
            key: (entry_id, content)
            for key, (entry_id, content) in self.keys.items()
            if key[0] != agent or entry_id != entry.id
        }

    def delete_all(self, who, *, permanent=False):
        doomed = [one for one in self.entries(who) if permanent or one.forgotten_at is None]
        for entry in doomed:
            self._forget(entry, permanent=permanent)
        return len(doomed)

    def restore(self, who, entry_id):
        entry = self.one(who, entry_id)
        if entry is None or entry.forgotten_at is None or self.is_expired(entry):
            return False
        if self.clock() - entry.forgotten_at > RETENTION:
            return False
        self._change(entry, forgotten_at=None)
        return True

    def purge(self, who):
        limit = self.clock() - RETENTION
        doomed = [
            entry
            for entry in self.entries(who)
            if any(
                time is not None and time < limit for time in (entry.forgotten_at, entry.expires_at)
            )
        ]
        for entry in doomed:
            self._delete(entry)
        return len(doomed)

    # Links

    def link(self, who, from_id, to_id, kind, strength):
        """Return (from, to, type number, strength, created_at)."""
        kinds = []
        if from_id == to_id or kind == SUPERSEDES or not 0 <= strength <= 1:
            kinds.append(InvalidArgumentError)
        if not (self._is_there(who, from_id) and self._is_there(who, to_id)):
            kinds.append(EntryNotFoundError)
        elif self.one(who, from_id).user_id != self.one(who, to_id).user_id:
            kinds.append(LinkAcrossUsersError)
        if kinds:
            raise RefusedError(*kinds)
        place = (who.agent, from_id, to_id, int(kind))
        created_at = self.links[place][1] if place in self.links else self.clock()
        self.links[place] = (strength, created_at)
        return (from_id, to_id, int(kind), strength, created_at)

    def _is_there(self, who, entry_id):
        entry = self.one(who, entry_id)
        return entry is not None and self.is_present(entry)

    def unlink(self, who, from_id, to_id, kind=None):
        if not (self._is_there(who, from_id) and self._is_there(who, to_id)):
            return 0
        doomed = [
            link
            for link in self.links
            if link[:3] == (who.agent, from_id, to_id)
            and link[3] != SUPERSEDES
            and kind in {None, link[3]}
        ]
        for link in doomed:
            del self.links[link]
        return len(doomed)

    def links_of(self, who, entry_id, direction="both", kinds=None):
        """Return (from, to, type number, strength, created_at), in order."""
        if not self._is_there(who, entry_id):
            return []
        found = []
        for (agent, from_id, to_id, kind), (strength, created_at) in self.links.items():
            is_out = direction in {"both", "out"} and from_id == entry_id
            is_in = direction in {"both", "in"} and to_id == entry_id
            other = to_id if from_id == entry_id else from_id
            is_asked = kinds is None or kind in kinds
            if agent == who.agent and (is_out or is_in) and is_asked and self._is_there(who, other):
                found.append((from_id, to_id, kind, strength, created_at))
        return sorted(found, key=lambda link: (link[4], link[0].bytes, link[1].bytes, link[2]))

    # Numbers

    def bytes_used(self, agent):
        everything = self.entries(Who(agent, all_users=True))
        return sum(len(entry.content.encode()) for entry in everything)

    def stats(self, who, quota=None):
        everything = self.entries(who)
        active = [entry for entry in everything if self.is_active(entry)]
        statuses = [entry.status for entry in everything if self.is_present(entry)]
        in_bytes = sum(len(entry.content.encode()) for entry in everything)
        times = [entry.created_at for entry in active]
        tags = [tag for entry in active for tag in set(entry.tags)]
        types = [entry.type for entry in active]
        return {
            "active_entries": len(active),
            "archived_entries": statuses.count(MemoryStatus.ARCHIVED),
            "superseded_entries": statuses.count(MemoryStatus.SUPERSEDED),
            "forgotten_entries": sum(entry.forgotten_at is not None for entry in everything),
            "expired_entries": sum(
                entry.forgotten_at is None and self.is_expired(entry) for entry in everything
            ),
            "storage_bytes_used": in_bytes if quota is None else self.bytes_used(who.agent),
            "storage_bytes_limit": quota,
            "entries_by_type": {kind: types.count(kind) for kind in set(types)},
            "top_tags": sorted(
                ((tag, tags.count(tag)) for tag in set(tags)), key=lambda pair: (-pair[1], pair[0])
            )[:10],
            "oldest_entry": min(times, default=None),
            "newest_entry": max(times, default=None),
        }


def bare(entry):
    """Return an entry as it is read: without its vector."""
    return msgspec.structs.replace(entry, embedding=None, embedding_model=None)


def unit(vector):
    """Return a vector of length one in float32; without a direction it stays zero."""
    exact = np.asarray(vector, dtype=np.float64)
    length = np.sqrt(exact @ exact)
    return (exact / length if length else exact).astype(np.float32)


def digest(text):
    return fingerprint_digests([text])[0]


def names_status(where):
    """Return whether a filter asks for a status anywhere in it."""
    parts = [*where.get("AND", []), *where.get("OR", []), where.get("NOT", {})]
    return "status" in where or any(names_status(part) for part in parts if part)


_OPTIONS = {
    "types": lambda entry, types: entry.type in types,
    "tags": lambda entry, tags: all(tag in entry.tags for tag in tags),
    "any_tags": lambda entry, tags: any(tag in entry.tags for tag in tags),
    "min_importance": lambda entry, least: entry.importance >= least,
    "created_after": lambda entry, time: entry.created_at >= time,
    "created_before": lambda entry, time: entry.created_at < time,
    "content_contains": lambda entry, part: folded(part) in folded(entry.content),
    "include_forgotten": lambda _entry, _is_wanted: True,
}
