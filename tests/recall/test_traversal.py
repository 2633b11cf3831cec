"""Recall over links."""

from uuid import uuid4

import pytest

from mnemic.errors import EntryNotFoundError, InvalidArgumentError
from tests.support.clock import HOUR, NOON, clock_of
from tests.support.recall import asked, mine, opened, recalling, texts

STATUSES = ["active", "archived", "superseded"]


@pytest.mark.requirement("C071")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        *(("direction", wrong) for wrong in ("up", None, "OUT")),
        *(("depth", wrong) for wrong in (0, 4, -1, True, 1.0, None, "2")),
        *(("link_types", wrong) for wrong in (["friend"], "related", [None])),
    ],
)
@recalling()
async def test_directions_depths_and_types_there_are_not_are_refused(
    memory, retriever, name, wrong
):
    one = mine("one")
    await memory.store(one)
    with pytest.raises(InvalidArgumentError, match=name.removeprefix("link_").removesuffix("s")):
        await retriever.recall_linked(one.id, user_id="u", **{name: wrong})


@pytest.mark.requirement("C071")
@recalling()
async def test_a_start_that_the_user_has_not_is_not_found(memory, retriever):
    brief, gone = mine("brief", expires_at=NOON + HOUR), mine("gone")
    await memory.store_batch([brief, gone])
    await memory.forget(gone.id, user_id="u")
    for options in ({}, {"include_archived": True}):
        for unknown in (uuid4(), gone.id, str(gone.id)):
            with pytest.raises(EntryNotFoundError, match="agent 'aide', user 'u'"):
                await retriever.recall_linked(unknown, user_id="u", **options)
        assert not await retriever.recall_linked(brief.id, user_id="u", **options)
    clock_of(memory).now += HOUR
    for options in ({}, {"include_archived": True}):
        with pytest.raises(EntryNotFoundError):
            await retriever.recall_linked(brief.id, user_id="u", **options)
    for wrong in (None, "x", 3):
        with pytest.raises(InvalidArgumentError):
            await retriever.recall_linked(wrong, user_id="u")


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


@pytest.mark.requirement("C071")
@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({}, ["active"]),
        ({"min_salience": 0.01}, ["active"]),
        ({"include_archived": True}, ["active", "archived"]),
        ({"include_superseded": True}, ["active", "superseded"]),
        ({"include_archived": True, "include_superseded": True}, STATUSES),
    ],
    ids=repr,
)
@recalling()
async def test_only_the_statuses_asked_for_are_found_and_lead_on(memory, retriever, options, found):
    start, behind = mine("start"), {}
    await memory.store(start)
    for status in STATUSES:
        entry, behind[status] = mine(status, status=status), mine(f"behind {status}")
        await memory.store_batch([entry, behind[status]])
        await memory.link(start.id, entry.id, user_id="u")
        await memory.link(entry.id, behind[status].id, user_id="u")
    linked = await retriever.recall_linked(start.id, user_id="u", depth=2, **options)
    assert sorted(texts(linked)) == sorted([*found, *(f"behind {each}" for each in found)])


def test_links_that_another_memory_on_the_file_changes_are_followed(path):
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
