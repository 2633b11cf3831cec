"""Recall over links."""

from uuid import uuid4

import pytest

from mnemic.errors import (
    EntryNotFoundError,
    InvalidArgumentError,
)
from mnemic.model import (
    LinkType,
    MemoryEntryUpdate,
    MemoryStatus,
)
from tests.support.clock import DAY, HOUR, NOON, Clock
from tests.support.entries import uid
from tests.support.recall import asked, mine, opened, recalling, run, scores, texts

# Linked recall


class Net:
    """Memories named by letters, linked as a test says: "a-b" at 0.5, "a-c" at 1."""

    def __init__(self, memory, names, **fields):
        self.memory = memory
        self.of = {
            name: mine(name, **{"created_at": NOON - at * HOUR, **fields})
            for at, name in enumerate(names)
        }

    async def stored(self, links):
        await self.memory.store_batch(list(self.of.values()))
        for ends, *how in links:
            await self.linked(ends, *how)
        return self

    async def linked(self, ends, strength=1.0, kind="related"):
        one, other = ends
        await self.memory.link(self.of[one].id, self.of[other].id, kind, strength, user_id="u")

    async def found(self, retriever, start, **named):
        """Return what both ways to follow links give: over living memories and over all."""
        given = {"user_id": "u", **named}
        index = await retriever.recall_linked(self.of[start].id, **given)
        store = await retriever.recall_linked(self.of[start].id, **given, include_archived=True)
        shown = [
            [(each.memory.content, round(each.score, 9), each.match_reason) for each in result]
            for result in (index, store)
        ]
        assert shown[0] == shown[1]
        assert index.total_matches == store.total_matches
        return texts(index)


@pytest.mark.requirement("C071")
@recalling()
async def test_links_are_followed_out_in_or_both_ways(memory, retriever):
    net = await Net(memory, "abc").stored([("ab",), ("ca",)])
    assert await net.found(retriever, "a") == ["b"]
    assert await net.found(retriever, "a", direction="out") == ["b"]
    assert await net.found(retriever, "a", direction="in") == ["c"]
    assert await net.found(retriever, "a", direction="both") == ["b", "c"]
    for wrong in ("up", None, "OUT"):
        with pytest.raises(InvalidArgumentError, match="direction"):
            await net.found(retriever, "a", direction=wrong)


@pytest.mark.requirement("C071")
@recalling()
async def test_up_to_three_links_are_followed(memory, retriever):
    net = await Net(memory, "abcde").stored([("ab", 0.9), ("bc", 0.5), ("cd", 0.5), ("de",)])
    assert await net.found(retriever, "a") == ["b"]
    assert await net.found(retriever, "a", depth=2) == ["b", "c"]
    assert await net.found(retriever, "a", depth=3) == ["b", "c", "d"]
    found = await retriever.recall_linked(net.of["a"].id, user_id="u", depth=3)
    assert scores(found) == pytest.approx([0.9, 0.45, 0.225])
    for wrong in (0, 4, -1, True, 1.0, None, "2"):
        with pytest.raises(InvalidArgumentError, match="depth"):
            await net.found(retriever, "a", depth=wrong)


@pytest.mark.requirement("C071")
@recalling()
async def test_a_long_strong_path_beats_a_short_weak_one(memory, retriever):
    net = await Net(memory, "abc").stored(
        [("ac", 0.5, "refines"), ("ab", 0.9, "related"), ("bc", 0.8, "derived_from")]
    )
    found = await retriever.recall_linked(net.of["a"].id, user_id="u", depth=2)
    assert scores(found) == pytest.approx([0.9, 0.72])
    assert found[1].match_reason == "Linked via Related, DerivedFrom"
    found = await retriever.recall_linked(net.of["a"].id, user_id="u")
    assert [(each.score, each.match_reason) for each in found] == [
        (0.9, "Linked via Related"),
        (0.5, "Linked via Refines"),
    ]


@pytest.mark.requirement("C071")
@recalling()
async def test_of_equal_paths_the_shorter_one_counts(memory, retriever):
    net = await Net(memory, "abc").stored([("ab",), ("bc",), ("ac", 1.0, "refines")])
    assert await net.found(retriever, "a", depth=2) == ["b", "c"]
    found = await retriever.recall_linked(net.of["a"].id, user_id="u", depth=2)
    assert found[1].match_reason == "Linked via Refines"


@pytest.mark.requirement("C071")
@recalling()
async def test_cycles_end_and_the_start_is_not_found(memory, retriever):
    links = [("ab", 0.5), ("bc", 0.5), ("ca", 1.0), ("cb", 1.0), ("ba", 1.0)]
    net = await Net(memory, "abc").stored(links)
    for depth in (2, 3):
        for direction in ("out", "in", "both"):
            found = await net.found(retriever, "a", depth=depth, direction=direction)
            assert sorted(found) == ["b", "c"]


@pytest.mark.requirement("C071", "C164")
@recalling()
async def test_linked_memories_come_by_strength_hops_age_and_id(memory, retriever):
    net = Net(memory, "abcdefg")
    net.of["f"] = mine("f", id=uid(2), created_at=NOON - 9 * DAY)
    net.of["g"] = mine("g", id=uid(1), created_at=NOON - 9 * DAY)
    net.of["e"] = mine("e", created_at=NOON + HOUR)
    await net.stored([("ag", 0.5), ("af", 0.5), ("ad", 0.5), ("ac", 0.9), ("ab", 1.0), ("be", 0.5)])
    assert await net.found(retriever, "a", depth=2) == ["b", "c", "d", "g", "f", "e"]
    assert await net.found(retriever, "a", depth=2, limit=4) == ["b", "c", "d", "g"]


@pytest.mark.requirement("C071", "R231")
@recalling()
async def test_only_links_of_the_wanted_types_are_followed(memory, retriever):
    net = await Net(memory, "abcd").stored(
        [("ab", 0.9, "related"), ("ac", 0.8, "contradicts"), ("cd", 0.5, "related")]
    )
    assert await net.found(retriever, "a", link_types=["related"], depth=3) == ["b"]
    both = ["related", LinkType.CONTRADICTS]
    assert await net.found(retriever, "a", link_types=both, depth=3) == ["b", "c", "d"]
    for everything in (None, [], ()):
        found = await net.found(retriever, "a", link_types=everything, depth=3)
        assert found == ["b", "c", "d"]
    for wrong in (["friend"], "related", [None]):
        with pytest.raises(InvalidArgumentError):
            await net.found(retriever, "a", link_types=wrong)


@pytest.mark.requirement("C071")
@recalling()
async def test_of_two_links_to_one_memory_the_stronger_counts(memory, retriever):
    net = await Net(memory, "ab").stored([("ab", 0.3, "related"), ("ab", 0.6, "refines")])
    assert await net.found(retriever, "a") == ["b"]
    (hit,) = await retriever.recall_linked(net.of["a"].id, user_id="u")
    assert (hit.score, hit.match_reason) == (0.6, "Linked via Refines")


@recalling()
async def test_a_link_without_strength_still_leads_somewhere(memory, retriever):
    net = await Net(memory, "abc").stored([("ab", 0.0), ("bc", 1.0)])
    assert await net.found(retriever, "a", depth=2) == ["b", "c"]


@pytest.mark.requirement("C071")
def test_a_start_that_the_user_has_not_is_not_found():
    clock = Clock()

    async def scenario(memory, retriever):
        brief, gone = mine("brief", expires_at=NOON + HOUR), mine("gone")
        await memory.store_batch([brief, gone])
        await memory.forget(gone.id, user_id="u")
        for options in ({}, {"include_archived": True}):
            for unknown in (uuid4(), gone.id, str(gone.id)):
                with pytest.raises(EntryNotFoundError, match="agent 'aide', user 'u'"):
                    await retriever.recall_linked(unknown, user_id="u", **options)
            assert not await retriever.recall_linked(brief.id, user_id="u", **options)
        clock.now += HOUR
        for options in ({}, {"include_archived": True}):
            with pytest.raises(EntryNotFoundError):
                await retriever.recall_linked(brief.id, user_id="u", **options)
        for wrong in (None, "x", 3):
            with pytest.raises(InvalidArgumentError):
                await retriever.recall_linked(wrong, user_id="u")

    run(scenario, clock=clock)


@pytest.mark.requirement("C071")
def test_what_expired_or_was_forgotten_is_neither_found_nor_walked_through():
    clock = Clock()

    async def scenario(memory, retriever):
        net = Net(memory, "abcde")
        net.of["b"] = mine("b", expires_at=NOON + HOUR)
        await net.stored([("ab", 0.9), ("bc", 0.9), ("ad", 0.8), ("de", 0.9)])
        assert await net.found(retriever, "a", depth=2) == ["b", "c", "d", "e"]
        clock.now += HOUR
        assert await net.found(retriever, "a", depth=2) == ["d", "e"]
        await memory.forget(net.of["d"].id, user_id="u")
        assert await net.found(retriever, "a", depth=2) == []
        await memory.restore(net.of["d"].id, user_id="u")
        assert await net.found(retriever, "a", depth=2) == ["d", "e"]
        assert await net.found(retriever, "e", depth=2, direction="in") == ["d", "a"]
        await memory.forget(net.of["d"].id, user_id="u", permanent=True)
        assert await net.found(retriever, "a", depth=2) == []
        assert await net.found(retriever, "e", depth=2, direction="in") == []

    run(scenario, clock=clock)


@pytest.mark.requirement("C071")
@recalling()
async def test_the_start_keeps_its_links_when_it_is_restored(memory, retriever):
    net = await Net(memory, "abc").stored([("ab", 0.5), ("ca", 0.4)])
    await memory.forget(net.of["a"].id, user_id="u")
    assert await net.found(retriever, "c") == []
    await memory.restore(net.of["a"].id, user_id="u")
    assert await net.found(retriever, "a", direction="both") == ["b", "c"]
    assert await net.found(retriever, "c", depth=2) == ["a", "b"]


@pytest.mark.requirement("C064")
@recalling()
async def test_what_is_filtered_out_is_not_walked_through(memory, retriever):
    net = Net(memory, "abcd")
    net.of["b"] = mine("b", type="event", project_id="p")
    await net.stored([("ab",), ("bc",), ("ad", 0.5)])
    assert await net.found(retriever, "a", depth=2, type_filter="fact") == ["d"]
    assert await net.found(retriever, "a", depth=2, project_id="p") == ["b"]
    assert await net.found(retriever, "a", depth=2, type_filter="episodic") == ["b"]


@pytest.mark.requirement("C064", "C071")
@recalling()
async def test_archived_memories_are_walked_through_when_they_are_asked_for(memory, retriever):
    net = await Net(memory, "abc").stored([("ab", 0.5), ("bc", 0.5)])
    await memory.update(
        net.of["b"].id, MemoryEntryUpdate(status=MemoryStatus.ARCHIVED), user_id="u"
    )
    start = net.of["a"].id
    assert not await retriever.recall_linked(start, user_id="u", depth=2)
    superseded = {"include_superseded": True}
    assert not await retriever.recall_linked(start, user_id="u", depth=2, **superseded)
    archived = {"include_archived": True}
    found = await retriever.recall_linked(start, user_id="u", depth=2, **archived)
    assert texts(found) == ["b", "c"]
    behind = await retriever.recall_linked(net.of["b"].id, user_id="u", **archived)
    assert texts(behind) == ["c"]


@pytest.mark.requirement("C147", "C161")
@recalling()
async def test_what_superseded_it_leads_from_the_new_to_the_old(memory, retriever):
    old = mine("old")
    new = mine("new", supersedes=old.id, created_at=NOON + HOUR)
    await memory.store(old)
    await memory.store(new)
    assert not await retriever.recall_linked(new.id, user_id="u", direction="both")
    every = {"user_id": "u", "include_superseded": True}
    found = await retriever.recall_linked(new.id, ["supersedes"], **every)
    assert [(each.memory.content, each.match_reason) for each in found] == [
        ("old", "Linked via Supersedes")
    ]
    assert not await retriever.recall_linked(new.id, direction="in", **every)
    found = await retriever.recall_linked(old.id, direction="in", **every)
    assert texts(found) == ["new"]
    assert not await retriever.recall_linked(old.id, **every)


def test_links_that_another_memory_on_the_file_changes_are_followed(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as one, opened(path) as two:
        a, b, c = (one.add(text, user_id="u") for text in "abc")

        def seen(memory, start=a, **named):
            found = asked(memory, "recall_linked", start.id, user_id="u", depth=2, **named)
            return [(each.memory.content, each.score) for each in found]

        for memory in (one, two):
            assert seen(memory) == []
        two.link(a.id, b.id, strength=0.5, user_id="u")
        assert seen(one) == seen(two) == [("b", 0.5)]
        one.link(b.id, c.id, strength=0.5, user_id="u")
        assert seen(two) == seen(one) == [("b", 0.5), ("c", 0.25)]
        two.link(a.id, b.id, strength=1.0, user_id="u")
        assert seen(one) == [("b", 1.0), ("c", 0.5)]
        assert seen(one, c, direction="in") == [("b", 0.5), ("a", 0.5)]
        one.unlink(a.id, b.id, user_id="u")
        assert seen(two) == seen(one) == []
        two.link(a.id, c.id, user_id="u")
        one.delete(c.id, user_id="u")
        assert seen(two) == []
        two.restore(c.id, user_id="u")
        assert seen(one) == [("c", 1.0)]
    with opened(path) as again, opened(path, embedder=None) as bare:
        assert seen(again) == seen(bare) == [("c", 1.0)]
