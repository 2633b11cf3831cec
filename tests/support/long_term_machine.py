"""The doors of one place beside their naive twin, driven by hypothesis."""

import asyncio
import tempfile
from contextlib import contextmanager
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
)

from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import MnemicError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.memory import Memory
from mnemic.model import (
    MemoryFilter,
)
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.long_term_strategies import (
    EVERYBODY,
    OWN,
    blueprints,
)
from tests.support.long_term_twin import SUPERSEDES, RefusedError, StoreTwin, Who
from tests.support.places import Places

AGENTS = {"first": "aide", "second": "aide", "other": "other", "front": "aide"}
USERS = (None, "alice", "bob")
HANDLES = ("first", "second", "other")
"""The doors that are AsyncLongTermMemory; "front" is Memory."""


class SmallLicense(DocumentedLicenses, frozen=True):
    """A license with a quota that a few short texts fill."""

    bytes_allowed: int | None = None

    @property
    def storage_limit(self):
        return self.bytes_allowed


class Failing(WordEmbedder):
    """Fails while it is told to."""

    is_failing = False

    def embed(self, texts):
        if self.is_failing:
            raise RuntimeError("no model today")
        return super().embed(texts)


class DoorsMachine(RuleBasedStateMachine):
    """The doors of one place and their twin, opened, closed and called."""

    kind = "sqlite"

    @initialize(plans=st.lists(blueprints, min_size=3, max_size=6))
    def start(self, plans):
        self.now = NOON
        self.directory = tempfile.TemporaryDirectory()
        self.places = Places(self.kind, self.directory.name)
        self.url = self.places.new()
        self.runner = asyncio.Runner()
        self.twin = StoreTwin(lambda: self.now, WordEmbedder().embed)
        self.ids = [UUID(int=number) for number in range(1, 7)]
        self.doors, self.embedders, self.tiers, self.quotas = {}, {}, {}, {}
        self.listings = []
        self.steps = 0
        self.uncounted = set()
        """Doors that may not have written all accesses yet."""
        for door in AGENTS:
            self.open(door, LicenseTier.ENTERPRISE)
        for plan in plans:
            self.store("first", plan, "keep")

    def teardown(self):
        if not hasattr(self, "doors"):
            return
        for door in list(self.doors):
            self.close(door)
        self.runner.close()
        self.places.close()
        self.directory.cleanup()

    # Doors

    def open(self, door, tier, spare=0):
        embedder = Failing()
        given = {"agent_id": AGENTS[door], "embedder": embedder, "clock": lambda: self.now}
        limit = (
            None if tier == LicenseTier.ENTERPRISE else self.twin.bytes_used(AGENTS[door]) + spare
        )
        given |= {"license": SmallLicense(tier, limit), **self.places.options}
        self.quotas[door] = limit
        if door == "front":
            memory = Memory(self.url, **given)
        else:
            memory = AsyncLongTermMemory(self.url, **given)
        self.doors[door], self.embedders[door], self.tiers[door] = memory, embedder, tier

    def close(self, door):
        memory = self.doors.pop(door)
        self.uncounted.discard(door)
        if door == "front":
            memory.close()
        else:
            self.runner.run(memory.close())

    def ask(self, door, verb, *args, **given):
        answer = getattr(self.doors[door], verb)(*args, **given)
        return answer if door == "front" else self.runner.run(answer)

    def agree(self, real, expected):
        """Call both, the real one first; return both answers, or None twice if both refuse."""
        answer = error = None
        try:
            answer = real()
        except MnemicError as raised:
            error = raised
        kinds = ()
        try:
            wanted = expected(answer)
        except RefusedError as refused:
            wanted, kinds = None, refused.kinds
        if error is not None and not isinstance(error, kinds):
            raise error
        assert error is not None or not kinds, f"{answer!r} and none of {kinds}"
        return answer, wanted

    @contextmanager
    def failing(self, door):
        self.embedders[door].is_failing = True
        yield
        self.embedders[door].is_failing = False

    def who(self, door, scope, project=None):
        if scope == EVERYBODY:
            return Who(AGENTS[door], all_users=True)
        return Who(AGENTS[door], scope, project=project)

    def everything(self):
        return [row.entry for row in self.twin.rows.values()]

    def quota(self, door):
        return self.quotas[door]

    def aim(self, door, index, scope, *, among=None):
        """Return a scope and an id, mostly of a memory that is there."""
        everything = self.twin.entries(Who(AGENTS[door], all_users=True))
        chosen = [one.id for one in everything if among is None or among(one)]
        ids = [*chosen, *self.ids[:2]]
        entry_id = ids[index % len(ids)]
        if scope == OWN:
            entry = self.twin.one(Who(AGENTS[door], all_users=True), entry_id)
            scope = None if entry is None else entry.user_id
        return scope, entry_id

    def pick(self, index):
        return self.ids[index % len(self.ids)]

    def new_id(self):
        self.ids.append(UUID(int=1000 + len(self.ids) * 7919 % 1009))
        return self.ids[-1]

    # Accesses: counted at once by the door that saw them, later by the others

    def count_accesses(self, *, but=None):
        """Have the doors write what they know of accesses; `but` has to show them by itself."""
        for door in sorted(self.uncounted - {but}):
            if door == "front":
                self.ask(door, "list", limit=1)
            else:
                self.ask(door, "search_by_filter", {}, all_users=True)
        self.uncounted &= {but}

    def touched(self, door, who, ids):
        self.twin.touch(who, ids)
        self.uncounted.add(door)


class Listing:
    """A list that is read page by page while other things happen."""

    where, given, limit, include_forgotten = None, None, 100, False

    def __init__(self, machine, door, scope):
        self.machine, self.door, self.scope = machine, door, scope
        self.who = machine.who(door, scope)
        self.cursor, self.seen, self.last = None, [], None
        self.stayed = set()

    def matching(self):
        given = self.given or {}
        include = self.include_forgotten or given.get("include_forgotten", False)
        return self.machine.twin.select(self.who, self.where, given, include_forgotten=include)

    def left(self):
        """Return what follows the last entry seen, in order."""
        chosen = self.matching()
        entries = sorted(chosen, key=place)
        return [one for one in entries if self.last is None or place(one) > self.last]

    def note_what_stays(self):
        self.stayed &= {entry.id for entry in self.matching()}

    def turn(self):
        self.machine.count_accesses(but=self.door)
        asked = self.where
        if self.given is not None:
            asked = MemoryFilter(filters=self.where, limit=1, offset=5, **self.given)
        page = self.machine.ask(
            self.door,
            "list",
            limit=self.limit,
            cursor=self.cursor,
            filters=asked,
            include_forgotten=self.include_forgotten,
            **scope_arguments(self.scope),
        )
        assert list(page) == list(page.entries)
        assert len(page) == len(page.entries) <= self.limit
        expected = self.left()[: self.limit]
        self.machine.check_entries(list(page), expected, with_accesses=True)
        self.seen += [entry.id for entry in page]
        self.last = place(page.entries[-1]) if page.entries else self.last
        self.cursor = page.cursor
        if self.cursor is None:
            assert len(self.seen) == len(set(self.seen))
            assert self.stayed <= set(self.seen)


def own_id(entry_id, user):
    """Return an id of this user alone, unlike promises/test_non_interference."""
    return UUID(int=entry_id.int + 100_000 * USERS.index(user))


def place(entry):
    """Return where an entry stands in a list: newest first, then smallest id."""
    return (NOON - entry.created_at, entry.id.bytes)


def scope_arguments(scope):
    return {"all_users": True} if scope == EVERYBODY else {"user_id": scope}


def named(fields):
    """Return the fields of an update that name something, as no tags are no change."""
    tags = {"add_tags", "remove_tags"}
    return {name: value for name, value in fields.items() if value or name not in tags}


def one_or_none(entry):
    return [] if entry is None else [entry]


def plain(entries, with_accesses):
    """Return entries to be compared; what one door knows of accesses another may not know yet."""
    assert all(entry.embedding is None for entry in entries)
    if with_accesses:
        return entries
    return [
        msgspec.structs.replace(entry, access_count=0, last_accessed_at=None) for entry in entries
    ]


def link_facts(link):
    return (link.from_id, link.to_id, int(link.type), link.strength, link.created_at)


def without_open_time(link):
    """Leave out when a memory was linked to the one it replaces: no document says."""
    return (*link[:4], NOON) if link[2] == SUPERSEDES else link


def stats_facts(stats):
    facts = {
        name: getattr(stats, name)
        for name in (
            *("active_entries", "forgotten_entries", "storage_bytes_used", "storage_bytes_limit"),
            *("entries_by_type", "oldest_entry", "newest_entry"),
            *("archived_entries", "superseded_entries", "expired_entries"),
        )
    }
    return facts | {"top_tags": [(usage.tag, usage.count) for usage in stats.top_tags]}
