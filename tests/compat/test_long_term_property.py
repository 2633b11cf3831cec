"""Any operations through several doors of one place give what a naive twin gives.

Two memories of one agent, one of another agent and the synchronous front door share a place; they
are closed and opened again at random, and the clock goes forward. The twin is in tests/support.
`MNEMIC_TESTS=torture` runs it for longer, and looks for the shortest run that fails.

Left out, because more than one answer is right: whose accesses are shown by `retrieve`, accesses
recorded but not yet written when a memory is forgotten, and unlinking memories that are not there.
"""

import pytest
from hypothesis import HealthCheck, Phase, assume
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule, run_state_machine_as_test

from mnemic.errors import EntryNotFoundError, LicenseRestrictionError
from mnemic.licensing import LicenseTier
from mnemic.model import MemoryEntry, MemoryEntryUpdate, MemoryFilter, MemorySortOrder, MemoryStatus
from tests.support.embedders import WordEmbedder
from tests.support.long_term_machine import (
    AGENTS,
    HANDLES,
    USERS,
    DoorsMachine,
    Listing,
    link_facts,
    named,
    one_or_none,
    own_id,
    plain,
    scope_arguments,
    stats_facts,
    without_open_time,
)
from tests.support.long_term_strategies import (
    EVERYBODY,
    OWN,
    QUERIES,
    aimed_scopes,
    blueprints,
    duplicate_ways,
    entry_fields,
    front_scopes,
    indexes,
    limits,
    scopes,
    some_options,
    spares,
    steps,
    tiers,
    types,
    update_fields,
    users,
    wheres,
)
from tests.support.long_term_twin import RefusedError, Who, Wish, digest
from tests.support.tiers import TIER, examples

IS_TORTURE = TIER == "torture"
PROFILE = examples(
    50,
    stateful_step_count=80 if IS_TORTURE else 40,
    phases=list(Phase) if IS_TORTURE else [Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


class LongTermMachine(DoorsMachine):
    """Drives the doors and the twin."""

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

    @rule(door=st.sampled_from(HANDLES), blueprint=blueprints, way=duplicate_ways)
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
        door=st.sampled_from(HANDLES),
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

    @rule(door=st.sampled_from(HANDLES), blueprint=blueprints, retries_forever=st.booleans())
    def store_while_embedding_fails(self, door, blueprint, retries_forever):
        agent = AGENTS[door]
        plan = {**blueprint, "vector_of": None}
        way = "pending" if retries_forever else "raise"
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
            lambda: self.ask(
                "front", "add", {"content": fields["content"], "id": entry_id, **given}
            ),
            lambda _: self.twin.store("aide", [Wish(entry)], quota=self.quota("front")),
        )
        assert answer in {None, entry}

    # Reading

    def check_entries(self, real, expected, *, with_accesses=False):
        assert plain(real, with_accesses) == plain(expected, with_accesses)

    @rule(
        door=st.sampled_from(HANDLES),
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
        door=st.sampled_from(HANDLES),
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
            real = self.doors["front"].scoped(project_id=project).get(entry_id, user_id=user)
        except EntryNotFoundError:
            real = None
        self.check_entries(one_or_none(real), one_or_none(expected))
        self.touched("front", who, [entry_id])

    @rule(
        door=st.sampled_from(HANDLES),
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
        view = self.doors["front"].scoped(project_id=project)
        real, expected = self.agree(
            lambda: view.search(query, search_type="semantic", user_id=user, limit=limit),
            lambda _: self.twin.search(
                self.who("front", user, project), query, limit, tier=self.tiers["front"]
            ),
        )
        self.check_entries([hit.entry for hit in real or []], [one for one, _ in expected or []])

    @rule(
        door=st.sampled_from(HANDLES),
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
            asked = MemoryFilter(filters=where, limit=limit, offset=offset, sort_by=sort, **given)
            expected = self.twin.filtered(
                who, where, given, limit=limit, offset=offset, sort=sort.name
            )
        real = self.ask(door, "search_by_filter", asked, **scope_arguments(scope))
        self.check_entries(real, expected, with_accesses=True)

    @rule(door=st.sampled_from(HANDLES), scope=scopes, limit=limits, kind=types)
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
        door=st.sampled_from(HANDLES),
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
        door=st.sampled_from(HANDLES),
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
        door=st.sampled_from(HANDLES),
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

    @rule(door=st.sampled_from(HANDLES), index=indexes, scope=aimed_scopes)
    def restore(self, door, index, scope):
        scope, entry_id = self.aim(door, index, scope, among=lambda one: one.is_forgotten)
        real = self.ask(door, "restore", entry_id, **scope_arguments(scope))
        assert real is self.twin.restore(self.who(door, scope), entry_id)

    @rule(door=st.sampled_from(HANDLES), index=indexes, step=steps)
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

    @rule(door=st.sampled_from(HANDLES), wanted=st.lists(indexes, max_size=4), scope=scopes)
    def touch(self, door, wanted, scope):
        who = self.who(door, scope)
        ids = list(dict.fromkeys(self.aim(door, index, scope)[1] for index in wanted))
        # Whether touching something outdated counts is open.
        entries = [self.twin.one(who, entry_id) for entry_id in ids]
        assume(all(one is None or one.status == MemoryStatus.ACTIVE for one in entries))
        assert self.ask(door, "touch", ids, **scope_arguments(scope)) is None
        self.touched(door, who, ids)

    @rule(
        door=st.sampled_from(HANDLES),
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
        door=st.sampled_from(HANDLES),
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
        door=st.sampled_from(HANDLES),
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
        door=st.sampled_from(HANDLES),
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

    @rule(door=st.sampled_from(tuple(AGENTS)), tier=tiers, spare=spares)
    def reopen(self, door, tier, spare):
        self.close(door)
        self.open(door, tier, spare)

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


LINK_NAMES = ("related", "derived_from", "contradicts", "supersedes", "reinforces", "refines")


class LongTermMachineInPostgres(LongTermMachine):
    """The same in a database."""

    kind = "postgres"


EXAMPLES = {LongTermMachine: 50, LongTermMachineInPostgres: 4}


@pytest.mark.requirement(
    *("C081", "C096", "R028", "R029", "R032", "R033", "R042", "R043", "R044", "R057"),
    *("R058", "R060", "R061", "R079", "R080", "R118", "R002", "C085", "C187", "R027"),
    *("R031", "R038", "R039", "R041", "R052", "R053", "R054", "R056"),
    *("R037", "R062", "R063", "R065", "R066", "R067"),
)
@pytest.mark.timeout(0 if IS_TORTURE else 300)
@pytest.mark.parametrize("machine", EXAMPLES, ids=lambda machine: machine.kind)
def test_any_operations_through_several_doors_give_what_the_twin_gives(machine):
    profile = examples(EXAMPLES[machine], PROFILE, least=1)
    run_state_machine_as_test(machine, settings=profile)
