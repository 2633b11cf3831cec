"""Any operations through several doors of one file give what a naive twin gives.

Two memories of one agent, one of another agent and the synchronous front door share a file; they
are closed and opened again at random, and the clock goes forward. The twin is in tests/support.
`MNEMIC_TORTURE=1` runs it for longer, and looks for the shortest run that fails.

Left out, because more than one answer is right: whose accesses are shown by `retrieve`, accesses
noted but not yet written when a memory is forgotten, and unlinking memories that are not there.
"""

import asyncio
import os
import tempfile
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from mnemic.errors import EntryNotFoundError, LicenseRestrictionError, MnemicError
from mnemic.licensing import DocumentedLicenses, LicenseTier
from mnemic.long_term import LongTermMemory
from mnemic.memory import Memory
from mnemic.model import (
    MemoryEntry,
    MemoryEntryUpdate,
    MemoryFilter,
    MemorySortOrder,
    MemoryStatus,
    MemoryType,
)
from tests.support.clock import DAY, NOON, SECOND
from tests.support.embedders import WordEmbedder
from tests.support.long_term_twin import SUPERSEDES, RefusedError, StoreTwin, Who, Wish, digest

# What is not built yet is not driven yet.

IS_TORTURE = bool(os.environ.get("MNEMIC_TORTURE"))
PROFILE = settings(
    max_examples=2000 if IS_TORTURE else 50,
    stateful_step_count=80 if IS_TORTURE else 40,
    deadline=None,
    derandomize=True,
    phases=list(Phase) if IS_TORTURE else [Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)

AGENTS = {"first": "aide", "second": "aide", "other": "other", "front": "aide"}
ROOMS = ("first", "second", "other")
"""The doors that are LongTermMemory; "front" is Memory."""

EVERYBODY = "everybody"
OWN = "own"


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


# Few values, so that they meet.

TEXTS = (
    *("tea at noon", "Tea at noon!", "tea", "green tea", "ferry", "ferry at noon", "café"),
    *("ferry ferry tea", "CAFE\u0301", "a green ferry carries tea and żółta herbata to the café"),
)
QUERIES = ("tea", "ferry noon", "green", "café tea", "nothing")
# At most two words: a sum of two products is the same in any order, so ties are the same too.

users = st.sampled_from([None, "alice", "bob"])
scopes = st.sampled_from([None, "alice", "bob", EVERYBODY])
"""Of calls that look for many."""
aimed_scopes = st.sampled_from([OWN] * 6 + [None, "alice", EVERYBODY])
"""Of calls that name a memory: mostly the one it is in."""
front_scopes = st.sampled_from([OWN, OWN, OWN, None, "alice"])
contents = st.sampled_from([*TEXTS, *TEXTS[:2] * 4])
indexes = st.integers(0, 30)
tag_lists = st.lists(st.sampled_from(["ui", "web", "Web", "red"]), max_size=3)
importances = st.sampled_from([0.0, 0.3, 0.5, 1.0])
types = st.sampled_from([MemoryType.FACT, MemoryType.EVENT, MemoryType.PREFERENCE])
metadata = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([None, 1, 1.5, "x"]))
tiers = st.sampled_from(
    [LicenseTier.ENTERPRISE, LicenseTier.TEAMS, LicenseTier.TEAMS, LicenseTier.WRITER_PRO]
)
rooms = st.sampled_from([2, 3, 5, 8, 10, 11, 12, 22, 60])
"""Bytes left when a limited door is opened; contents are of 3, 5, 9, 11, 12 and more."""
limits = st.sampled_from([1, 2, 3, 10, 1000])
ages = st.sampled_from([0 * DAY, 0 * DAY, timedelta(hours=1), DAY, 200 * DAY, -DAY])
lifetimes = st.sampled_from([None] * 6 + [-SECOND, 0 * DAY, SECOND, DAY, 89 * DAY, 100 * DAY])
steps = st.sampled_from(
    [SECOND, SECOND, timedelta(hours=1), DAY, 89 * DAY, 90 * DAY, 90 * DAY + SECOND / 10**6]
)
update_fields = st.fixed_dictionaries(
    {},
    optional={
        "content": contents,
        "importance": importances,
        "add_tags": tag_lists.map(tuple),
        "remove_tags": tag_lists.map(tuple),
        "type": types,
        "metadata": metadata,
    },
)
entry_fields = st.fixed_dictionaries(
    {
        "content": contents,
        "user_id": users,
        "type": types,
        "tags": tag_lists,
        "importance": importances,
        "metadata": metadata,
        "project_id": st.sampled_from([None, "p", "q"]),
        "session_id": st.sampled_from([None, "s"]),
        "status": st.sampled_from([MemoryStatus.ACTIVE] * 8 + [*MemoryStatus]),
    },
)
blueprints = st.fixed_dictionaries(
    {
        "fields": entry_fields,
        "index": st.none() | st.integers(0, 5),
        "age": ages,
        "lifetime": lifetimes,
        "supersedes": st.none() | st.none() | indexes,
        "key": st.sampled_from([None, None, "k", "l"]),
        "vector_of": st.sampled_from([None, None, None, *TEXTS[:3]]),
    }
)
duplicate_ways = st.sampled_from(["keep", "keep", "skip", "merge"])
tests = st.sampled_from(
    [
        {},
        {"type": "fact"},
        {"tags": {"contains": "web"}},
        {"tags": {"any": ["ui", "red"]}},
        {"importance": {"gte": 0.5}},
        {"metadata.a": 1},
        {"metadata.a": {"exists": False}},
        {"metadata.b": {"ne": "x"}},
        {"content": {"contains": "TEA"}},
        {"content": {"contains": "cafe\u0301"}},
        {"created_at": {"lt": "2026-05-01T12:00:00Z"}},
        {"updated_at": {"gt": "2026-05-01T12:00:00Z"}},
        {"status": "superseded"},
        {"status": {"nin": ["active"]}},
        {"access_count": {"gt": 0}},
        {"last_accessed_at": None},
        {"expires_at": {"exists": True}},
        {"project_id": "p", "session_id": "s"},
    ]
)
wheres = (
    tests
    | st.lists(tests, max_size=3).map(lambda parts: {"OR": parts})
    | st.lists(tests, max_size=3).map(lambda parts: {"AND": parts})
    | tests.map(lambda part: {"NOT": part})
)
options = st.fixed_dictionaries(
    {},
    optional={
        "types": st.lists(types, max_size=2),
        "tags": tag_lists,
        "any_tags": tag_lists,
        "min_importance": importances,
        "created_after": st.sampled_from([NOON, NOON - DAY, NOON + DAY]),
        "created_before": st.sampled_from([NOON, NOON + SECOND, NOON + 100 * DAY]),
        "content_contains": st.sampled_from(["tea", "ÉRRY", "CAFÉ", "żół"]),
        "include_forgotten": st.sampled_from([True]),
    },
)
some_options = st.none() | options


class LongTermMachine(RuleBasedStateMachine):
    """Drives the doors and the twin."""

    @initialize(plans=st.lists(blueprints, min_size=3, max_size=6))
    def start(self, plans):
        self.now = NOON
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name, "memory.db")
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
        self.directory.cleanup()

    # Doors

    def open(self, door, tier, room=0):
        embedder = Failing()
        given = {"agent_id": AGENTS[door], "embedder": embedder, "clock": lambda: self.now}
        limit = (
            None if tier == LicenseTier.ENTERPRISE else self.twin.bytes_used(AGENTS[door]) + room
        )
        given["license"] = SmallLicense(tier, limit)
        self.quotas[door] = limit
        if door == "front":
            memory = Memory(self.path, **given)
        else:
            memory = self.runner.run(LongTermMemory.open(self.path, **given))
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

    # Storing

    def entry(self, agent, blueprint, *, is_new=False):
        fields = dict(blueprint["fields"])
        if blueprint["lifetime"] is not None:
            fields["expires_at"] = self.now + blueprint["lifetime"]
        if blueprint["vector_of"] is not None:
            fields["embedding"] = WordEmbedder().embed([blueprint["vector_of"]])[0]
            fields["embedding_model"] = WordEmbedder().model
        index = blueprint["index"]
        entry_id = self.new_id() if is_new or index is None else self.pick(index)
        entry_id = own_id(entry_id, fields["user_id"])
        if blueprint["supersedes"] is not None:
            everything = self.twin.entries(Who(agent, fields["user_id"])) or self.everything()
            ids = [*(one.id for one in everything), *self.ids[:2]]
            old = ids[blueprint["supersedes"] % len(ids)]
            fields["supersedes"] = None if old == entry_id else old
        created_at = self.now - blueprint["age"]
        return MemoryEntry(id=entry_id, agent_id=agent, created_at=created_at, **fields)

    def key(self, entry, key):
        """Leave out a key whose content differs by case alone: whether it is another is open."""
        _, content = self.twin.keys.get((entry.agent_id, entry.user_id, key), (None, entry.content))
        is_open = content != entry.content and digest(content) == digest(entry.content)
        return None if is_open else key

    @rule(door=st.sampled_from(ROOMS), blueprint=blueprints, way=duplicate_ways)
    def store(self, door, blueprint, way):
        agent = AGENTS[door]
        entry = self.entry(agent, blueprint, is_new=way != "keep")
        key = self.key(entry, blueprint["key"]) if way == "keep" else None
        wish = Wish(entry, key, way)
        given = {"idempotency_key": key, "on_duplicate": way}
        answer, wanted = self.agree(
            lambda: self.ask(door, "store", entry, **given),
            lambda real: self.twin.store(agent, [wish], quota=self.quota(door), hint=[real])[0],
        )
        assert answer == wanted

    @rule(
        door=st.sampled_from(ROOMS),
        plans=st.lists(blueprints, max_size=4),
        way=duplicate_ways,
    )
    def store_batch(self, door, plans, way):
        agent = AGENTS[door]
        entries = [self.entry(agent, plan, is_new=way != "keep") for plan in plans]
        ids = [entry.id for entry in entries]
        assume(all(one.supersedes not in ids[at:] for at, one in enumerate(entries)))
        keys = [None] * len(entries)
        if way == "keep":
            keys = [
                self.key(entry, plan["key"]) for entry, plan in zip(entries, plans, strict=True)
            ]
            named = [(one.user_id, key) for one, key in zip(entries, keys, strict=True) if key]
            assume(len(named) == len(set(named)))
        wishes = [Wish(entry, key, way) for entry, key in zip(entries, keys, strict=True)]
        given = {"idempotency_keys": keys, "on_duplicate": way}
        answer, wanted = self.agree(
            lambda: self.ask(door, "store_batch", entries, **given),
            lambda real: self.twin.store(
                agent, wishes, quota=self.quota(door), hint=real or [None] * len(wishes)
            ),
        )
        assert answer == wanted

    @rule(door=st.sampled_from(ROOMS), blueprint=blueprints, is_patient=st.booleans())
    def store_while_embedding_fails(self, door, blueprint, is_patient):
        agent = AGENTS[door]
        plan = {**blueprint, "vector_of": None}
        way = "pending" if is_patient else "raise"
        entry = self.entry(agent, plan)
        given = {"on_embed_error": way}
        with self.failing(door):
            answer, wanted = self.agree(
                lambda: self.ask(door, "store", entry, **given),
                lambda _: self.twin.store(
                    agent,
                    [Wish(entry)],
                    quota=self.quota(door),
                    can_embed=False,
                    on_embed_error=way,
                )[0],
            )
        assert answer == wanted

    @rule(fields=entry_fields, index=st.none() | st.integers(0, 5))
    def front_add(self, fields, index):
        entry_id = self.new_id() if index is None else self.pick(index)
        entry_id = own_id(entry_id, fields["user_id"])
        given = {name: value for name, value in fields.items() if name not in {"content", "status"}}
        entry = MemoryEntry(
            id=entry_id, agent_id="aide", created_at=self.now, content=fields["content"], **given
        )
        answer, _ = self.agree(
            lambda: self.ask("front", "add", fields["content"], id=entry_id, **given),
            lambda _: self.twin.store("aide", [Wish(entry)], quota=self.quota("front")),
        )
        assert answer in {None, entry}

    # Reading

    def check_entries(self, real, expected, *, with_accesses=False):
        assert plain(real, with_accesses) == plain(expected, with_accesses)

    @rule(
        door=st.sampled_from(ROOMS),
        index=indexes,
        scope=aimed_scopes,
        include_forgotten=st.booleans(),
    )
    def retrieve(self, door, index, scope, include_forgotten):
        scope, entry_id = self.aim(door, index, scope)
        who = self.who(door, scope)
        given = {**scope_arguments(scope), "include_forgotten": include_forgotten}
        real = self.ask(door, "retrieve", entry_id, **given)
        expected = self.twin.retrieve(who, entry_id, include_forgotten=include_forgotten)
        self.check_entries(one_or_none(real), one_or_none(expected))
        self.touched(door, who, [entry_id])

    @rule(
        door=st.sampled_from(ROOMS),
        wanted=st.lists(indexes, max_size=5, unique=True),
        scope=scopes,
        include_forgotten=st.booleans(),
    )
    def retrieve_batch(self, door, wanted, scope, include_forgotten):
        who = self.who(door, scope)
        ids = list(dict.fromkeys(self.aim(door, index, scope)[1] for index in wanted))
        given = {**scope_arguments(scope), "include_forgotten": include_forgotten}
        real = self.ask(door, "retrieve_batch", ids, **given)
        expected = {
            entry_id: entry
            for entry_id in ids
            if (entry := self.twin.retrieve(who, entry_id, include_forgotten=include_forgotten))
        }
        assert real.keys() == expected.keys()
        self.check_entries([real[one] for one in expected], list(expected.values()))
        self.touched(door, who, ids)

    @rule(index=indexes, user=front_scopes, project=st.sampled_from([None, "p"]))
    def front_get(self, index, user, project):
        user, entry_id = self.aim("front", index, user)
        who = self.who("front", user, project)
        expected = self.twin.retrieve(who, entry_id)
        try:
            real = self.ask("front", "get", entry_id, user_id=user, project_id=project)
        except EntryNotFoundError:
            real = None
        self.check_entries(one_or_none(real), one_or_none(expected))
        self.touched("front", who, [entry_id])

    @rule(
        door=st.sampled_from(ROOMS),
        query=st.sampled_from(QUERIES),
        limit=limits,
        floor=st.sampled_from([0.0, 0.3, 0.6, 1.0]),
        scope=scopes,
    )
    def search_semantic(self, door, query, limit, floor, scope):
        who = self.who(door, scope)
        real, expected = self.agree(
            lambda: self.ask(
                door, "search_semantic", query, limit, floor, **scope_arguments(scope)
            ),
            lambda _: self.twin.search(who, query, limit, floor, self.tiers[door]),
        )
        self.check_hits(real or [], expected or [])

    def check_hits(self, real, expected):
        self.check_entries([hit.entry for hit in real], [entry for entry, _ in expected])
        assert [hit.rank for hit in real] == list(range(1, len(real) + 1))
        cosines = [cosine for _, cosine in expected]
        assert [hit.similarity for hit in real] == pytest.approx(cosines, abs=1e-7)

    @rule(
        query=st.sampled_from(QUERIES),
        limit=limits | st.just(0),
        user=users,
        project=st.sampled_from([None, "p"]),
    )
    def front_search(self, query, limit, user, project):
        given = {"user_id": user, "project_id": project, "limit": limit}
        real, expected = self.agree(
            lambda: self.ask("front", "search", query, search_type="semantic", **given),
            lambda _: self.twin.search(
                self.who("front", user, project), query, limit, tier=self.tiers["front"]
            ),
        )
        self.check_entries([hit.entry for hit in real or []], [one for one, _ in expected or []])

    @rule(
        door=st.sampled_from(ROOMS),
        scope=scopes,
        where=wheres,
        given=some_options,
        limit=limits,
        offset=st.sampled_from([0, 0, 1, 3]),
        sort=st.sampled_from(MemorySortOrder),
    )
    def search_by_filter(self, door, scope, where, given, *, limit, offset, sort):
        self.count_accesses(but=door)
        who = self.who(door, scope)
        if given is None:
            asked, expected = where, self.twin.filtered(who, where)
        else:
            asked = MemoryFilter(where=where, limit=limit, offset=offset, sort_by=sort, **given)
            expected = self.twin.filtered(
                who, where, given, limit=limit, offset=offset, sort=sort.name
            )
        real = self.ask(door, "search_by_filter", asked, **scope_arguments(scope))
        self.check_entries(real, expected, with_accesses=True)

    @rule(door=st.sampled_from(ROOMS), scope=scopes, limit=limits, kind=types)
    def get_by_name(self, door, scope, limit, kind):
        self.count_accesses(but=door)
        who, given = self.who(door, scope), {"limit": limit, **scope_arguments(scope)}
        for real, expected in (
            (
                self.ask(door, "get_recent", **given),
                self.twin.filtered(who, limit=limit, sort="ACCESSED_DESCENDING"),
            ),
            (
                self.ask(door, "get_important", **given),
                self.twin.filtered(who, limit=limit, sort="IMPORTANCE_DESCENDING"),
            ),
            (
                self.ask(door, "get_by_type", kind, **given),
                self.twin.filtered(who, {"type": kind}, limit=limit),
            ),
            (
                self.ask(door, "get_by_tag", "web", **given),
                self.twin.filtered(who, {"tags": {"contains": "web"}}, limit=limit),
            ),
        ):
            self.check_entries(real, expected, with_accesses=True)

    # Changing

    @rule(
        door=st.sampled_from(ROOMS),
        index=indexes,
        scope=aimed_scopes,
        fields=update_fields,
        can_embed=st.sampled_from([True, True, True, False]),
    )
    def update(self, door, index, scope, fields, can_embed):
        scope, entry_id = self.aim(door, index, scope)
        who = self.who(door, scope)
        old = self.twin.retrieve(who, entry_id)
        # Whether the embedder is asked at all when there is nothing new to embed is open.
        assume(can_embed or (old is not None and old.content != fields.get("content")))

        def real():
            change = MemoryEntryUpdate(**fields)
            return self.ask(door, "update", entry_id, change, **scope_arguments(scope))

        self.embedders[door].is_failing = not can_embed
        answer, wanted = self.agree(
            real,
            lambda _: self.twin.update(
                who, entry_id, quota=self.quota(door), can_embed=can_embed, **named(fields)
            ),
        )
        self.embedders[door].is_failing = False
        assert answer == wanted

    @rule(index=indexes, user=front_scopes, fields=update_fields)
    def front_update(self, index, user, fields):
        user, entry_id = self.aim("front", index, user)
        who = self.who("front", user)

        def expected(_real):
            quota = self.quota("front")
            if not self.twin.update(who, entry_id, quota=quota, **named(fields)):
                raise RefusedError(EntryNotFoundError)
            return self.twin.one(who, entry_id)

        real, wanted = self.agree(
            lambda: self.ask("front", "update", entry_id, user_id=user, **fields), expected
        )
        self.check_entries(one_or_none(real), one_or_none(wanted))

    @rule(
        door=st.sampled_from(ROOMS),
        index=indexes,
        scope=aimed_scopes,
        permanent=st.sampled_from([False, False, True]),
    )
    def forget(self, door, index, scope, permanent):
        scope, entry_id = self.aim(door, index, scope)
        who = self.who(door, scope)
        if not permanent:
            self.count_accesses()
        real = self.ask(door, "forget", entry_id, permanent, **scope_arguments(scope))
        assert real == self.twin.forget(who, entry_id, permanent=permanent)
        assert permanent or not getattr(real, "erased", False)

    @rule(index=indexes, user=front_scopes, permanent=st.sampled_from([False, False, True]))
    def front_delete(self, index, user, permanent):
        user, entry_id = self.aim("front", index, user)
        who = self.who("front", user)
        if not permanent:
            self.count_accesses()

        def expected(_real):
            if not self.twin.forget(who, entry_id, permanent=permanent):
                raise RefusedError(EntryNotFoundError)

        self.agree(
            lambda: self.ask("front", "delete", entry_id, user_id=user, permanent=permanent),
            expected,
        )

    @rule(
        door=st.sampled_from(ROOMS),
        user=users,
        permanent=st.booleans(),
        is_meant=st.sampled_from([True, False, False]),
    )
    def delete_all(self, door, user, permanent, is_meant):
        assume(is_meant)  # seldom, or nothing is ever there
        if not permanent:
            self.count_accesses()
        real = self.ask(door, "delete_all", user_id=user, permanent=permanent)
        assert real == self.twin.delete_all(self.who(door, user), permanent=permanent)

    @rule(door=st.sampled_from(ROOMS), index=indexes, scope=aimed_scopes)
    def restore(self, door, index, scope):
        scope, entry_id = self.aim(door, index, scope, among=lambda one: one.is_forgotten)
        real = self.ask(door, "restore", entry_id, **scope_arguments(scope))
        assert real is self.twin.restore(self.who(door, scope), entry_id)

    @rule(door=st.sampled_from(ROOMS), index=indexes, step=steps)
    def forget_wait_and_restore(self, door, index, step):
        self.forget(door, index, OWN, permanent=False)
        self.wait(step)
        self.restore(door, index, OWN)

    @precondition(lambda self: any(not self.twin.is_present(one) for one in self.everything()))
    @rule(door=st.sampled_from(tuple(AGENTS)), scope=scopes)
    def purge(self, door, scope):
        verb = "purge" if door == "front" else "purge_expired"
        real = self.ask(door, verb, **scope_arguments(scope))
        assert real == self.twin.purge(self.who(door, scope))

    # Accesses, links and lists

    @rule(door=st.sampled_from(ROOMS), wanted=st.lists(indexes, max_size=4), scope=scopes)
    def touch(self, door, wanted, scope):
        who = self.who(door, scope)
        ids = list(dict.fromkeys(self.aim(door, index, scope)[1] for index in wanted))
        # Whether touching something outdated counts is open.
        entries = [self.twin.one(who, entry_id) for entry_id in ids]
        assume(all(one is None or one.status == MemoryStatus.ACTIVE for one in entries))
        assert self.ask(door, "touch", ids, **scope_arguments(scope)) is None
        self.touched(door, who, ids)

    @rule(
        door=st.sampled_from(ROOMS),
        ends=st.tuples(indexes, indexes),
        kind=st.integers(0, 5),
        strength=st.sampled_from([0.0, 0.5, 1.0, 1.5]),
        scope=aimed_scopes,
    )
    def link(self, door, ends, kind, strength, scope):
        scope, from_id = self.aim(door, ends[0], scope)
        _, to_id = self.aim(door, ends[1], scope)
        real, expected = self.agree(
            lambda: self.ask(
                door, "link", from_id, to_id, LINK_NAMES[kind], strength, **scope_arguments(scope)
            ),
            lambda _: self.twin.link(self.who(door, scope), from_id, to_id, kind, strength),
        )
        assert expected is None or link_facts(real) == expected

    @rule(
        door=st.sampled_from(ROOMS),
        ends=st.tuples(indexes, indexes),
        kind=st.none() | st.integers(0, 5),
        scope=aimed_scopes,
    )
    def unlink(self, door, ends, kind, scope):
        linked = {end for link in self.twin.links for end in link[1:3]}
        scope, from_id = self.aim(door, ends[0], scope, among=lambda one: one.id in linked)
        _, to_id = self.aim(door, ends[1], scope, among=lambda one: one.id in linked)
        who = self.who(door, scope)
        seen = [self.twin.one(who, one) for one in (from_id, to_id)]
        assume(all(one is None or self.twin.is_present(one) for one in seen))
        name = None if kind is None else LINK_NAMES[kind]
        assume(kind != 3)  # links of that type are refused: they come from the field alone
        real = self.ask(door, "unlink", from_id, to_id, name, **scope_arguments(scope))
        assert real == self.twin.unlink(who, from_id, to_id, kind)

    @rule(
        door=st.sampled_from(ROOMS),
        index=indexes,
        direction=st.sampled_from(["both", "out", "in"]),
        kinds=st.none() | st.lists(st.integers(0, 5), max_size=3),
        scope=aimed_scopes,
    )
    def links(self, door, index, direction, kinds, scope):
        scope, entry_id = self.aim(door, index, scope)
        given = {"direction": direction, **scope_arguments(scope)}
        given["types"] = None if kinds is None else [LINK_NAMES[kind] for kind in kinds]
        real = self.ask(door, "links", entry_id, **given)
        facts = [link_facts(one) for one in real]
        assert facts == sorted(facts, key=lambda one: (one[4], one[0].bytes, one[1].bytes, one[2]))
        expected = self.twin.links_of(self.who(door, scope), entry_id, direction, kinds)
        assert sorted(map(without_open_time, facts)) == sorted(map(without_open_time, expected))

    @rule(
        door=st.sampled_from(ROOMS),
        scope=scopes,
        where=wheres,
        given=some_options,
        limit=st.sampled_from([1, 2, 3, 100]),
        include_forgotten=st.booleans(),
    )
    def start_list(self, door, scope, where, given, *, limit, include_forgotten):
        listing = Listing(self, door, scope)
        listing.where, listing.given, listing.limit = where, given, limit
        listing.include_forgotten = include_forgotten
        listing.stayed = {entry.id for entry in listing.matching()}
        listing.turn()
        if listing.cursor is not None:
            self.listings.append(listing)

    @precondition(lambda self: self.listings)
    @rule(index=indexes, is_to_the_end=st.booleans())
    def turn_pages(self, index, is_to_the_end):
        listing = self.listings[index % len(self.listings)]
        before = len(listing.seen)
        expected = listing.left() if is_to_the_end else None
        listing.turn()
        while is_to_the_end and listing.cursor is not None:
            listing.turn()
        if expected is not None:
            assert listing.seen[before:] == [entry.id for entry in expected]
        if listing.cursor is None:
            self.listings.remove(listing)

    # Time, doors, and what always holds

    @rule(step=steps)
    def wait(self, step):
        self.count_accesses()
        self.now += step

    @rule(door=st.sampled_from(tuple(AGENTS)), tier=tiers, room=rooms)
    def reopen(self, door, tier, room):
        self.close(door)
        self.open(door, tier, room)

    def doors_to_check(self):
        """Return half of the doors, the other half in the next step."""
        return list(self.doors)[self.steps % 2 :: 2]

    @invariant()
    def every_door_counts_the_same(self):
        self.steps += 1
        for door in self.doors_to_check():
            for scope in (EVERYBODY, *USERS):
                who, named = self.who(door, scope), scope_arguments(scope)
                assert self.ask(door, "count", **named) == self.twin.count(who)
                if door in self.uncounted:
                    continue  # stats would write the accesses that are to be written later
                stats = self.ask(door, "stats" if door == "front" else "get_stats", **named)
                assert stats_facts(stats) == self.twin.stats(who, self.quota(door))

    @invariant()
    def every_door_ranks_the_same(self):
        for door in self.doors_to_check():
            users_asked = USERS if door == "front" else [EVERYBODY]
            for user in users_asked:
                self.check_ranking(door, user)

    def check_ranking(self, door, user):
        expected = [
            entry.id for entry, _ in self.twin.search(self.who(door, user), "ferry tea", 1000)
        ]
        try:
            if door == "front":
                given = {"search_type": "semantic", "user_id": user, "limit": 1000}
                real = self.ask(door, "search", "ferry tea", **given)
            else:
                real = self.ask(door, "search_semantic", "ferry tea", 1000, 0, all_users=True)
        except LicenseRestrictionError:
            assert self.tiers[door] < LicenseTier.TEAMS
        else:
            assert self.tiers[door] >= LicenseTier.TEAMS
            assert [hit.entry.id for hit in real] == expected

    @precondition(lambda self: hasattr(self, "doors"))
    @invariant()
    def every_door_lists_the_same(self):
        for door in set(self.doors_to_check()) - {"front"} - self.uncounted:
            page = self.ask(door, "list", limit=1000, include_forgotten=True, all_users=True)
            who = Who(AGENTS[door], all_users=True)
            expected = self.twin.filtered(who, None, {"include_forgotten": True}, limit=1000)
            self.check_entries(list(page.entries), expected)
            assert page.cursor is None
        for listing in self.listings:
            listing.note_what_stays()


USERS = (None, "alice", "bob")
LINK_NAMES = ("related", "derived_from", "contradicts", "supersedes", "reinforces", "refines")


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
            asked = MemoryFilter(where=self.where, limit=1, offset=5, **self.given)
        page = self.machine.ask(
            self.door,
            "list",
            limit=self.limit,
            cursor=self.cursor,
            filter=asked,
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
    """Return an id of this user alone; those of promises/test_walls_property.py are shared."""
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


@pytest.mark.timeout(0 if IS_TORTURE else 300)
def test_any_operations_through_several_doors_give_what_the_twin_gives():
    run_state_machine_as_test(LongTermMachine, settings=PROFILE)
