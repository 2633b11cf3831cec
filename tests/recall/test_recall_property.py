"""Recalls of random memories, in every mode and over links, compared with a naive twin."""

from datetime import timedelta
from random import Random
from uuid import UUID

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec.structs import replace

from mnemic.errors import EntryNotFoundError
from mnemic.model import LinkType, MemoryEntryUpdate, MemoryRetrieverOptions, MemoryStatus
from tests.support.clock import DAY, NOON, Clock
from tests.support.earlier_links import links_between_users
from tests.support.entries import entry
from tests.support.recall import NamedSimilarities, run
from tests.support.recall_twin import linked as twins_linked
from tests.support.recall_twin import recalled
from tests.support.tiers import examples

pytestmark = pytest.mark.requirement("C060", "C062", "C064", "C074", "C138")

PROFILE = examples(60, least=40)
UNTRACKED = MemoryRetrieverOptions(track_access=False)
EMBEDDER = NamedSimilarities()

AGES = [0.0, 0.5, 3.0, 3.0, 11.0, 90.0]
COSINES = [-0.5, 0.0, 0.29, 0.31, 0.6, 0.6, 0.95]


def memories(seed, count, living=2):
    """Return memories that often tie; the last access may be missing, or older than the creation.

    The larger `living`, the more of them are alike in user, project and status.
    """
    random = Random(seed)  # noqa: S311 - repeatable, not secret

    def mostly(usual, *others):
        return usual if random.randrange(living + 1) else random.choice(others)

    drawn = []
    for number in range(count):
        read = random.choice([None, *AGES])
        drawn.append(
            entry(
                f"m{number} ~{random.choice(COSINES)}",
                id=UUID(int=random.randrange(10) * 1000 + number),
                created_at=NOON - random.choice([*AGES, -5.0]) * DAY,
                last_accessed_at=None if read is None else NOON - read * DAY,
                access_count=random.choice([0, 0, 1, 7, 100, 5000]),
                importance=random.choice([0.0, 0.37, 0.37, 0.83, 1.0]),
                type=mostly("fact", "event", "insight", "procedural"),
                status=mostly("active", "archived", "superseded"),
                project_id=mostly("p", None, "q"),
                user_id=mostly("u", "v", None),
                expires_at=mostly(None, NOON, NOON + DAY),
            )
        )
    return drawn


SEEDS = st.integers(0, 10_000)
COUNTS = st.sampled_from([1, 4, 12, 25])
WHOSE = st.sampled_from(
    [
        *[{"user_id": "u"}] * 7,
        {"user_id": "v"},
        {"user_id": None},
        *[{"user_id": None, "all_users": True}] * 3,
    ]
)
EVERYTHING = {"include_archived": True, "include_superseded": True}
FILTERS = st.sampled_from(
    [
        *[{}] * 3,
        *({"type_filter": kind} for kind in ("fact", "semantic", "episodic", "procedural")),
        *({"min_salience": floor} for floor in (0.21, 0.43, 0.67)),
        *({"project_id": project} for project in ("p", "q", "r")),
        {"project_scope": "strict"},
        {"project_scope": "strict", "project_id": "p"},
        {"include_archived": True},
        {"include_superseded": True},
        EVERYTHING,
        {**EVERYTHING, "min_salience": 0.43},
        {**EVERYTHING, "type_filter": "semantic", "project_id": "p"},
        {"include_archived": True, "type_filter": "event", "min_salience": 0.21},
    ]
)


def cosine_of(memory):
    return float(memory.content.split("~")[1])


def shown(result):
    return [scored.memory.content for scored in result]


def agrees(result, expected, limit):
    """Fail unless a result is the head of what the twin found."""
    assert shown(result) == [memory.content for memory, *_ in expected[:limit]]
    assert result.total_matches == len(expected)
    scores = [scored.score for scored in result]
    assert scores == pytest.approx([score for _, score, *_ in expected[:limit]], abs=1e-6)
    event("nothing" if not expected else "cut" if limit < len(expected) else "all")


@PROFILE
@given(
    seed=SEEDS,
    count=COUNTS,
    whose=WHOSE,
    filters=FILTERS,
    limit=st.integers(1, 16),
    days=st.sampled_from(AGES),
)
@pytest.mark.requirement(
    *("C059", "C069", "C070", "R223", "R240", "R241", "R242", "R243", "R244"),
    *("R250", "R251", "R252", "R253", "R254", "R255"),
    *("R256", "R257", "R268", "R269", "R270", "R271", "R275", "R276", "R277"),
)
def test_every_mode_agrees_with_the_twin(*, seed, count, whose, filters, limit, days):
    clock, stored = Clock(), memories(seed, count)

    async def scenario(memory, retriever):
        await memory.store_batch(stored)
        clock.now += days / 9 * DAY
        asked, now = {**whose, **filters}, clock.now
        for mode in ("relevant", "recent", "important", "frequent"):
            result = await retriever.recall("q", **asked, mode=mode, max_results=limit)
            agrees(result, recalled(stored, mode, asked, now, cosine_of), limit)
        start, end = NOON - 11 * DAY, NOON - DAY / 2
        between = [each for each in stored if start <= each.created_at <= end]
        named = dict(asked)
        result = await retriever.recall_temporal(start, end, **named, limit=limit)
        agrees(result, recalled(between, "newest", asked, now, cosine_of), limit)
        topical = [each for each in between if each.created_at < end and cosine_of(each) >= 0.3]
        result = await retriever.recall_temporal(
            start, end, "q", **named, limit=limit, half_open=True
        )
        agrees(result, recalled(topical, "newest", asked, now, cosine_of), limit)
        kind, user = named.pop("type_filter", "fact"), named.pop("user_id")
        result = await retriever.recall_by_type(kind, user, limit, **named)
        of_type = {**asked, "type_filter": kind}
        agrees(result, recalled(stored, "important", of_type, now, cosine_of), limit)

    run(scenario, options=UNTRACKED, clock=clock, embedder=EMBEDDER)


@PROFILE
@given(
    seed=SEEDS,
    count=COUNTS,
    whose=WHOSE,
    turns=st.lists(
        st.tuples(st.sampled_from(["relevant", "recent", "important", "frequent"]), FILTERS),
        min_size=2,
        max_size=5,
    ),
    limit=st.integers(1, 5),
)
def test_what_was_recalled_before_counts_in_the_next_recall(seed, count, whose, turns, limit):
    clock, stored = Clock(), memories(seed, count)

    async def scenario(memory, retriever):
        await memory.store_batch(stored)
        known = {each.id: each for each in stored}
        for mode, filters in turns:
            clock.now += timedelta(hours=7)
            asked = {**whose, **filters}
            expected = recalled(known.values(), mode, asked, clock.now, cosine_of)
            result = await retriever.recall("q", **asked, mode=mode, max_results=limit)
            agrees(result, expected, limit)
            for each, _ in expected[:limit]:
                count = each.access_count + 1
                known[each.id] = replace(each, access_count=count, last_accessed_at=clock.now)
            before = [each.memory.access_count for each in result]
            assert before == [each.access_count for each, _ in expected[:limit]]

    run(scenario, clock=clock, embedder=EMBEDDER)


def links(seed, memories, count):
    """Return links: from, to, kind, strength; not two alike."""
    random = Random(seed)  # noqa: S311 - as above
    drawn = {}
    for _ in range(count):
        one, other = random.choice(memories).id, random.choice(memories).id
        kind = random.choice(list(NAMES))
        if one != other:
            drawn[one, other, kind] = random.choice([0.0, 0.25, 0.5, 0.5, 0.7, 1.0])
    return drawn


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["forget", "restore", "delete", "archive", "activate", "unlink"]),
        st.integers(0, 29),
    ),
    max_size=6,
)


class Net:
    """Memories and links as a plain program keeps them, beside the ones that are stored."""

    def __init__(self, memory, stored, drawn):
        self.memory = memory
        self.present = {each.id: each for each in stored}
        self.forgotten = {}
        usual = (MemoryStatus.ACTIVE, "u", None)
        places = {each.id: (each.status, each.user_id, each.expires_at) != usual for each in stored}
        self.order = sorted(places, key=places.get)  # the first ones can be found, as a rule
        self.links = dict(drawn)

    def at(self, number):
        return self.order[number % len(self.order)]

    async def store(self):
        await self.memory.store_batch(list(self.present.values()))
        for (one, other, kind), strength in list(self.links.items()):
            try:
                with links_between_users():
                    await self.memory.link(one, other, kind, strength, all_users=True)
            except EntryNotFoundError:
                del self.links[one, other, kind]
                assert {one, other} & {  # only what is no more can have no links
                    each.id
                    for each in self.present.values()
                    if each.expires_at == NOON or each.status is not MemoryStatus.ACTIVE
                }

    async def change(self, what, number):
        at, everyone = self.at(number), {"all_users": True}
        there = self.present.get(at)
        if what == "unlink" and self.links:
            ends = sorted(self.links)[number % len(self.links)]
            if self.present.keys() >= set(ends[:2]):
                assert await self.memory.unlink(*ends, **everyone) == 1
                del self.links[ends]
        elif what == "delete" and at in {**self.present, **self.forgotten}:
            assert await self.memory.forget(at, permanent=True, **everyone)
            self.present.pop(at, None)
            self.forgotten.pop(at, None)
            self.links = {ends: how for ends, how in self.links.items() if at not in ends[:2]}
        elif what == "restore" and at in self.forgotten:
            await self.memory.restore(at, **everyone)
            self.present[at] = self.forgotten.pop(at)
        elif there is None or there.expires_at == NOON:
            return
        elif what == "forget":
            if await self.memory.forget(at, **everyone):
                self.forgotten[at] = self.present.pop(at)
        elif what in {"archive", "activate"} and there.status is not MemoryStatus.SUPERSEDED:
            status = "archived" if what == "archive" else "active"
            update = MemoryEntryUpdate(status=status)
            scope = self.memory.scope.narrowed(all_users=True)
            self.present[at] = await self.memory.repository.updater.update(scope, at, update)

    def twin(self, number, asked):
        start = self.present.get(self.at(number))
        if start is None:
            return None
        links = [
            (one, other, kind, strength)
            for (one, other, kind), strength in self.links.items()
            if one in self.present and other in self.present
        ]
        return twins_linked(self.present.values(), links, start, asked, NOON)


ASKED = st.fixed_dictionaries(
    {
        "depth": st.integers(1, 3),
        "direction": st.sampled_from(["out", "in", "both"]),
        "kinds": st.sampled_from(
            [None, None, set(), {LinkType.RELATED}, {LinkType.REFINES, LinkType.CONTRADICTS}]
        ),
    }
)


@PROFILE
@given(
    seed=SEEDS,
    count=st.sampled_from([2, 6, 12]),
    linked=st.sampled_from([3, 15, 15, 40]),
    changes=CHANGES,
    whose=WHOSE,
    filters=FILTERS,
    asked=ASKED,
    limit=st.sampled_from([1, 2, 4, 100]),
)
@pytest.mark.requirement("C069", "C071", "C164", "R231", "R280")
def test_links_lead_where_all_paths_of_the_twin_lead(
    *, seed, count, linked, changes, whose, filters, asked, limit
):
    stored = memories(seed, count, living=9)
    drawn = links(seed, stored, linked)

    async def scenario(memory, retriever):
        net = Net(memory, stored, drawn)
        await net.store()
        await compare_all(retriever, net)
        for change in changes:
            await net.change(*change)
            await compare_all(retriever, net)

    async def compare_all(retriever, net):
        for start in range(min(count, 3)):
            await compare(retriever, net, start)

    async def compare(retriever, net, start):
        named = {**whose, **filters, **asked}
        expected = net.twin(start, named)
        kinds = named.pop("kinds")
        wanted = retriever.recall_linked(net.at(start), kinds, **named, limit=limit)
        if expected is None:
            event("no start")
            with pytest.raises(EntryNotFoundError):
                await wanted
            return
        result = await wanted
        agrees(result, expected, limit)
        for scored, (_, strength, paths) in zip(result, expected, strict=False):
            assert scored.score == strength
            assert scored.match_reason in {
                f"Linked via {', '.join(NAMES[kind] for kind in path)}" for path in paths
            }

    run(scenario, options=UNTRACKED, embedder=EMBEDDER)


NAMES = {
    LinkType.RELATED: "Related",
    LinkType.CONTRADICTS: "Contradicts",
    LinkType.REFINES: "Refines",
    LinkType.DERIVED_FROM: "DerivedFrom",
}
