"""Ids are unique within agent and user: what another user has is never told, nor ever mistaken."""

import asyncio
import io
import json
import logging
from uuid import UUID

import pytest

from mnemic.compat import ContextWindow
from mnemic.compat.long_term import AsyncLongTermMemory
from mnemic.errors import AmbiguousIdError, DuplicateEntryError
from mnemic.model import MemoryEntry, MemoryEntryUpdate, MemoryFilter, MemoryQuery, MemorySortOrder
from mnemic.observability.events import MemoryStoredEvent
from mnemic.recall import MemoryRetriever
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder

ONE, TWO = UUID(int=1), UUID(int=2)
USERS = ("zoe", "alice", None)


@pytest.fixture
def opened(places):
    """Return what opens a memory in another empty place."""

    def opens(**options):
        return places.opened(embedder=WordEmbedder(), clock=lambda: NOON, **options)

    return opens


def shared(memory, users=USERS, entry_id=ONE, text="tea"):
    """Let users store a memory under the same id at the same time, alike but for its tags."""
    for user_id in users:
        memory.add(text, id=entry_id, user_id=user_id, tags=[str(user_id)])


def owners(found):
    return [getattr(each, "entry", None) or getattr(each, "memory", None) or each for each in found]


def users_of(found):
    return [entry.user_id for entry in owners(found)]


# What another user has is not told


def storing(memory):
    """Return the answer, the events and the log lines of storing with an id."""
    events, lines = [], []
    memory.events.subscribe(MemoryStoredEvent, events.append)
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logger = logging.getLogger("mnemic")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        answer = memory.add("my own", id=ONE, user_id="alice")
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    return answer, [(event.entry_id, event.content_length) for event in events], lines


def test_an_id_that_another_user_has_is_stored_as_if_nobody_had_it(opened):
    told = []
    for others in ((), ("bob", None)):
        with opened() as memory:
            shared(memory, others)
            told.append(storing(memory))
            assert memory.get(ONE, user_id="alice").content == "my own"
            with pytest.raises(DuplicateEntryError, match="user 'alice'"):
                memory.add("again", id=ONE, user_id="alice")
            assert [memory.get(ONE, user_id=user).content for user in others] == ["tea"] * len(
                others
            )
    assert told[0] == told[1]


def test_an_export_of_all_users_brings_each_users_links_back_to_their_own(opened, tmp_path):
    path = tmp_path / "all.jsonl"
    with opened() as memory:
        for user_id in ("alice", "bob"):
            for number in (1, 2):
                memory.add(f"{user_id} {number}", id=UUID(int=number), user_id=user_id)
        memory.link(ONE, TWO, user_id="alice", strength=0.25)
        memory.export(path, all_users=True)
    with opened() as memory:
        result = memory.import_(path)
        assert (result.stored, result.links) == (4, 1)
        assert [link.strength for link in memory.links(ONE, user_id="alice")] == [0.25]
        assert memory.links(ONE, user_id="bob") == []


def test_links_of_an_earlier_export_are_those_of_the_memories_they_lead_from(opened):
    lines = [
        {"format": "mnemic", "version": 2, "agent_id": "a", "exported_at": "2026-05-01T12:00:00Z"},
        *(
            {
                "kind": "memory",
                "id": str(UUID(int=number)),
                "agent_id": "a",
                "content": f"memory {number}",
                "created_at": "2026-05-01T12:00:00Z",
                "user_id": "alice",
            }
            for number in (1, 2)
        ),
        {
            "kind": "link",
            "from_id": str(ONE),
            "to_id": str(TWO),
            "type": "related",
            "strength": 0.5,
            "created_at": "2026-05-01T12:00:00Z",
        },
        {"kind": "end", "memories": 2, "links": 1},
    ]
    export = "".join(json.dumps(line) + "\n" for line in lines).encode()
    with opened() as memory:
        for number in (1, 2):
            shared(memory, ("bob", None), UUID(int=number))
        assert memory.import_(io.BytesIO(export)).links == 1
        assert len(memory.links(ONE, user_id="alice")) == 1
        assert memory.links(ONE, user_id="bob") == memory.links(ONE) == []


def test_the_nearest_to_a_memory_are_found_by_its_own_vectors(opened):
    with opened() as memory:
        memory.add("tea tea tea", id=ONE, user_id="alice")
        memory.add("ferry ferry ferry", id=ONE, user_id="bob")
        for user_id in ("alice", "bob"):
            memory.add("tea", id=UUID(int=3), user_id=user_id)
            memory.add("ferry", id=UUID(int=4), user_id=user_id)
        assert memory.similar(ONE, user_id="alice", limit=1)[0].content == "tea"
        assert memory.similar(ONE, user_id="bob", limit=1)[0].content == "ferry"


# Calls for all users


@pytest.mark.parametrize("order", [USERS, USERS[::-1], ("alice", None, "zoe")])
@pytest.mark.parametrize("search_type", ["hybrid", "semantic", "keyword"])
def test_a_search_for_all_users_has_every_memory_of_an_id_in_one_order(opened, order, search_type):
    with opened() as memory:
        shared(memory, order)
        for limit in (3, 2, 1):
            found = memory.search("tea", search_type=search_type, limit=limit, all_users=True)
            assert users_of(found) == [None, "alice", "zoe"][:limit]
            assert [hit.entry.tags for hit in found] == [("None",), ("alice",), ("zoe",)][:limit]


@pytest.mark.parametrize("sort_by", [None, *MemorySortOrder])
def test_a_retrieval_for_all_users_has_every_memory_of_an_id(opened, sort_by):
    with opened() as memory:
        shared(memory)
        memory.delete(ONE, user_id="zoe")
        for limit in (1, 2, 3):
            for use_cache in (True, True, False):
                query = MemoryQuery(
                    query="tea",
                    limit=limit,
                    with_total=True,
                    sort_by=sort_by,
                    use_cache=use_cache,
                )
                result = memory.retrieve(query, all_users=True)
                assert users_of(result.results) == [None, "alice"][:limit]
                assert result.total_matches == 2


@pytest.mark.parametrize("mode", ["relevant", "recent", "important", "frequent"])
@pytest.mark.parametrize("include_superseded", [False, True])
def test_a_recall_for_all_users_has_every_memory_of_an_id(opened, mode, include_superseded):
    with opened() as memory:
        shared(memory)
        memory.add("more tea", id=TWO, user_id="zoe", supersedes=ONE)
        given = {"mode": mode, "include_superseded": include_superseded, "all_users": True}
        recalled = {(each.memory.user_id, each.memory.id) for each in memory.recall("tea", **given)}
        expected = {(None, ONE), ("alice", ONE), ("zoe", TWO)}
        assert recalled == expected | ({("zoe", ONE)} if include_superseded else set())


def test_contradictions_for_all_users_are_those_of_each_memory_of_an_id(opened):
    with opened() as memory:
        for user_id in ("zoe", "alice"):
            memory.add("I like tea", id=ONE, user_id=user_id)
            memory.add("I like tea a lot", id=TWO, user_id=user_id)
        memory.link(ONE, TWO, "contradicts", user_id="alice")
        found = memory.contradictions("I do not like tea", all_users=True)
        assert len({(each.memory.user_id, each.memory.id) for each in found}) == len(found)
        assert {each.memory.user_id for each in found} == {"zoe", "alice"}


def test_links_for_all_users_lead_to_the_memories_they_were_made_to(opened):
    with opened() as memory:
        for user_id in ("zoe", "alice"):
            for number in (1, 2):
                memory.add(f"of {user_id}", id=UUID(int=number), user_id=user_id)
        memory.add("start", id=UUID(int=9), user_id="alice")
        memory.link(UUID(int=9), ONE, user_id="alice", strength=0.5)
        memory.link(ONE, TWO, user_id="alice", strength=0.5)
        retriever = MemoryRetriever(memory)
        for options in ({}, {"include_archived": True}):
            given = {"user_id": None, "all_users": True, "depth": 2, **options}
            found = retriever.recall_linked(UUID(int=9), **given)
            assert [(each.memory.id, each.memory.content) for each in found] == [
                (ONE, "of alice"),
                (TWO, "of alice"),
            ]


def test_a_context_window_takes_every_memory_of_an_id_once(opened):
    window = ContextWindow(max_tokens=1000)
    with opened() as memory:
        for user_id in ("zoe", "alice"):
            memory.add(f"tea for {user_id}", id=ONE, user_id=user_id)
        query = MemoryQuery(query="tea")
        assert memory.retrieve_to_context(query, window, all_users=True) == 2
        assert memory.retrieve_to_context(query, window, all_users=True) == 0
        assert {item.content for item in window.items()} == {"tea for zoe", "tea for alice"}
        assert str(ONE) in {item.source_ref for item in window.items()}


async def with_long_term(places, scenario):
    given = {"embedder": WordEmbedder(), "clock": lambda: NOON, **places.options}
    async with AsyncLongTermMemory(places.new(), agent_id="a", **given) as memory:
        for user_id in USERS:
            entry = MemoryEntry(
                id=ONE, agent_id="a", content="tea", created_at=NOON, user_id=user_id
            )
            await memory.store(entry)
        return await scenario(memory)


AMBIGUOUS = {
    "retrieve": lambda memory: memory.retrieve(ONE, all_users=True),
    "retrieve forgotten": lambda memory: memory.retrieve(
        ONE, include_forgotten=True, all_users=True
    ),
    "retrieve several": lambda memory: memory.retrieve_batch([TWO, ONE], all_users=True),
    "forget": lambda memory: memory.forget(ONE, all_users=True),
    "delete": lambda memory: memory.forget(ONE, permanent=True, all_users=True),
    "links": lambda memory: memory.links(ONE, all_users=True),
    "touch": lambda memory: memory.touch([ONE], all_users=True),
    "touch with an expiry": lambda memory: memory.touch(
        [TWO, ONE], all_users=True, expires_at="never"
    ),
    "update": lambda memory: memory.update(
        ONE, MemoryEntryUpdate(importance=0.9), if_version=7, all_users=True
    ),
}


@pytest.mark.parametrize("call", AMBIGUOUS)
def test_an_id_of_several_users_names_no_memory_for_all_users(places, call):
    async def scenario(memory):
        with pytest.raises(AmbiguousIdError, match="name the user_id"):
            await AMBIGUOUS[call](memory)
        assert await memory.count(all_users=True) == 3

    asyncio.run(with_long_term(places, scenario))


def test_what_is_near_to_an_id_of_several_users_is_not_told_for_all_users(opened):
    with opened() as memory:
        shared(memory)
        with pytest.raises(AmbiguousIdError, match="name the user_id"):
            memory.similar(ONE, all_users=True)
        memory.delete(ONE, user_id="zoe")
        memory.delete(ONE, user_id="alice")
        memory.add("tea", id=TWO, user_id="zoe")
        assert users_of(memory.similar(ONE, all_users=True)) == ["zoe"]


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_pages_of_a_list_for_all_users_have_every_memory_of_an_id_once(places, limit):
    async def scenario(memory):
        seen, cursor = [], None
        while True:
            page = await memory.list(limit=limit, cursor=cursor, all_users=True)
            seen += users_of(page.entries)
            cursor = page.cursor
            if cursor is None:
                return seen

    assert asyncio.run(with_long_term(places, scenario)) == [None, "alice", "zoe"]


@pytest.mark.parametrize("sort_by", MemorySortOrder)
def test_a_filter_for_all_users_finds_every_memory_of_an_id_in_one_order(places, sort_by):
    async def scenario(memory):
        pages = []
        for offset in range(3):
            wanted = MemoryFilter(sort_by=sort_by, limit=1, offset=offset)
            pages += await memory.search_by_filter(wanted, all_users=True)
        return users_of(pages)

    assert asyncio.run(with_long_term(places, scenario)) == [None, "alice", "zoe"]
