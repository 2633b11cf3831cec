import io
from uuid import uuid4

import pytest

from mnemic.errors import EntryNotFoundError, InvalidArgumentError, LinkAcrossUsersError
from mnemic.memory import Memory
from mnemic.model import LinkType, MemoryLink, MemoryStatus
from tests.support.clock import HOUR, NOON, Clock
from tests.support.doors import run
from tests.support.earlier_links import links_between_users
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry


@pytest.mark.requirement("C161", "C147")
def test_storing_what_supersedes_marks_the_old_and_links_to_it():
    async def scenario(memory):
        old = entry("lives in Oslo", user_id="u")
        await memory.store(old)
        new = entry("lives in Bergen", user_id="u", supersedes=old.id, created_at=NOON + HOUR)
        await memory.store(new)
        assert await memory.retrieve(old.id, user_id="u") is None
        found = await memory.search_semantic("lives in Oslo", min_similarity=0, user_id="u")
        assert [hit.entry for hit in found] == [new]
        kept = await memory.retrieve(old.id, user_id="u", include_forgotten=True)
        assert (kept.status, kept.updated_at) == (MemoryStatus.SUPERSEDED, NOON + HOUR)
        edge = MemoryLink(new.id, old.id, LinkType.SUPERSEDES, 1.0, NOON + HOUR)
        assert await memory.links(new.id, user_id="u") == [edge]
        assert await memory.links(old.id, user_id="u", direction="in") == [edge]
        assert await memory.links(old.id, user_id="u", direction="out") == []

    run(scenario)


@pytest.mark.parametrize("owner", ["bob", None])
def test_only_a_memory_of_the_same_user_can_be_superseded(owner):
    async def scenario(memory):
        foreign = entry("hers", user_id=owner)
        await memory.store(foreign)
        for unknown in (foreign.id, uuid4()):
            with pytest.raises(EntryNotFoundError, match="there is no such memory for agent"):
                await memory.store(entry("x", user_id="alice", supersedes=unknown))
        assert await memory.retrieve(foreign.id, user_id=owner) == foreign
        assert await memory.count(all_users=True) == 1

    run(scenario)


def test_links_have_directions_types_and_an_order():
    clock = Clock()

    async def scenario(memory):
        one, two, three = entry("one"), entry("two"), entry("three")
        await memory.store_batch([one, two, three])
        made = []
        for from_entry, to_entry, kind in (
            (one, two, "refines"),
            (one, two, LinkType.CONTRADICTS),
            (three, one, "related"),
        ):
            clock.now += HOUR
            made.append(await memory.link(from_entry.id, str(to_entry.id), kind, 0.5))
        assert [link.created_at for link in made] == [NOON + HOUR * at for at in (1, 2, 3)]
        assert await memory.links(one.id) == made
        assert await memory.links(one.id, direction="out") == made[:2]
        assert await memory.links(one.id, direction="in") == made[2:]
        assert await memory.links(one.id, types=["refines", "related"]) == [made[0], made[2]]
        assert await memory.links(one.id, types=[]) == []
        assert await memory.unlink(one.id, two.id, "refines") == 1
        assert await memory.unlink(one.id, two.id) == 1
        assert await memory.unlink(one.id, two.id) == 0
        assert await memory.links(one.id) == made[2:]

    run(scenario, clock=clock)


def test_links_end_at_scopes_and_at_what_is_gone():
    clock = Clock()

    async def scenario(memory):
        mine, hers = entry("mine", user_id="a"), entry("hers", user_id="b")
        brief = entry("brief", user_id="a", expires_at=NOON + HOUR)
        gone, deleted = entry("gone", user_id="a"), entry("deleted", user_id="a")
        await memory.store_batch([mine, hers, brief, gone, deleted])
        for other in (brief, gone, deleted):
            await memory.link(mine.id, other.id, user_id="a")
        for ends in ((mine, hers), (hers, mine)):
            with pytest.raises(EntryNotFoundError, match="user 'a'"):
                await memory.link(ends[0].id, ends[1].id, user_id="a")
        with links_between_users():
            across = await memory.link(mine.id, hers.id, all_users=True)
        assert len(await memory.links(mine.id, user_id="a")) == 3
        await memory.forget(gone.id, user_id="a")
        await memory.forget(deleted.id, permanent=True, user_id="a")
        clock.now += HOUR
        assert await memory.links(mine.id, user_id="a") == []
        assert await memory.links(mine.id, all_users=True) == [across]
        assert await memory.links(mine.id, user_id="b") == []
        assert await memory.unlink(mine.id, hers.id, user_id="a") == 0
        await memory.restore(gone.id, user_id="a")
        assert [link.to_id for link in await memory.links(mine.id, user_id="a")] == [gone.id]

    run(scenario, clock=clock)


def test_links_take_the_whole_scope_at_every_door():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        mine, hers = memory.add("mine", user_id="a"), memory.add("hers", user_id="b")
        with pytest.raises(LinkAcrossUsersError):
            memory.link(mine.id, hers.id, all_users=True)
        with links_between_users():
            across = memory.link(mine.id, hers.id, all_users=True)
        assert memory.links(mine.id, all_users=True) == [across]
        assert memory.links(mine.id, user_id="a") == []
        view = memory.scoped(user_id="a")
        for call in (view.link, view.unlink):
            with pytest.raises(InvalidArgumentError, match="not widened to all users"):
                call(mine.id, hers.id, all_users=True)
        exported = io.StringIO()
        memory.export(exported, all_users=True)
        assert '"kind":"link"' not in exported.getvalue().replace(" ", "")
        assert memory.unlink(mine.id, hers.id, all_users=True) == 1

        here, elsewhere = memory.scoped(project_id="p"), memory.scoped(project_id="q")
        one, two = here.add("one"), here.add("two")
        for view in (elsewhere, memory.scoped(session_id="s")):
            with pytest.raises(EntryNotFoundError):
                view.link(one.id, two.id)
        with pytest.raises(EntryNotFoundError):
            memory.link(one.id, two.id, session_id="s")
        made = here.link(one.id, two.id)
        assert here.links(two.id) == [made]
        assert elsewhere.links(two.id) == []
        assert elsewhere.unlink(one.id, two.id) == 0


def test_the_link_of_a_supersession_stays():
    async def scenario(memory):
        old = entry("old")
        new = entry("new", supersedes=old.id)
        await memory.store_batch([old, new])
        with pytest.raises(InvalidArgumentError, match="supersedes="):
            await memory.unlink(new.id, old.id, "supersedes")
        assert await memory.unlink(new.id, old.id) == 0
        assert len(await memory.links(new.id)) == 1

    run(scenario)
