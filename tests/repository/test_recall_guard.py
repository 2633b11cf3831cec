"""`on_recalled`: recalled text that is stored again."""

import asyncio
import pickle
from uuid import uuid4

import pytest

from mnemic import CheckedEntry, Memory, MemoryEntry
from mnemic.compat import AsyncLongTermMemory
from mnemic.errors import InvalidArgumentError, InvalidEntryError, RecalledTextError
from mnemic.events import MemoryRepeatedEvent
from mnemic.hyde import HydeConfig, HydeEngine
from mnemic.model import MemoryQuery
from mnemic.policy import RetrievalPolicy, RetrievalRequest
from mnemic.repository import recall_guard
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.threads import run_together

OSLO = "lives in Oslo with two cats"
NUTS = "allergic to peanuts and walnuts"


def opened(on_recalled, **options):
    return Memory(":memory:", embedder=WordEmbedder(), on_recalled=on_recalled, **options)


@pytest.fixture
def refusing():
    with opened("refuse") as memory:
        yield memory


@pytest.fixture
def flagging():
    with opened("flag") as memory:
        yield memory


def returned(memory, text=OSLO, **scope):
    """Store a memory, and have it returned by a search."""
    entry = memory.add(text, **scope)
    assert entry.id in [hit.entry.id for hit in memory.search(text, **scope)]
    return entry


def test_recalled_text_is_stored_by_default():
    with Memory(":memory:", embedder=WordEmbedder()) as memory:
        returned(memory)
        stored = memory.add(OSLO)
        assert type(stored) is MemoryEntry
        assert memory.count() == 2


def test_recalled_text_is_refused_with_the_memory_that_it_repeats(refusing):
    entry = returned(refusing)
    with pytest.raises(RecalledTextError, match=str(entry.id)) as refused:
        refusing.add(f"  {OSLO.upper()}!")
    assert (refused.value.memory_id, refused.value.place) == (entry.id, None)
    assert "Oslo" not in str(refused.value)
    assert isinstance(refused.value, InvalidEntryError)
    assert refusing.count() == 1
    again = pickle.loads(pickle.dumps(refused.value))  # noqa: S301 - our own bytes
    assert (str(again), again.memory_id) == (str(refused.value), entry.id)


def test_recalled_text_is_flagged_in_the_result_and_by_an_event(flagging):
    entry, heard = returned(flagging), []
    flagging.events.subscribe(MemoryRepeatedEvent, heard.append)
    stored = flagging.add(OSLO)
    assert isinstance(stored, CheckedEntry)
    assert (stored.repeats, stored.contradictions) == (entry.id, ())
    assert f"repeats='{entry.id}'" in repr(stored)
    assert [(event.entry_id, event.repeats) for event in heard] == [(stored.id, entry.id)]
    assert flagging.count() == 2
    assert type(flagging.get(stored.id)) is MemoryEntry


def test_text_that_was_stored_but_not_returned_may_be_stored_again(refusing):
    refusing.add(OSLO)
    assert refusing.add(OSLO)


def test_a_new_text_is_neither_flagged_nor_refused(refusing, flagging):
    for memory in (refusing, flagging):
        returned(memory)
        assert type(memory.add(NUTS)) is MemoryEntry


def test_a_rendered_context_is_refused(refusing):
    refusing.add_many([OSLO, NUTS, "prefers metric units for distances"])
    block = refusing.context("which cats, peanuts and units?")
    assert len(block.hits) == 3
    with pytest.raises(RecalledTextError):
        refusing.add(str(block))


def service_retrieve(memory):
    memory.retrieve(MemoryQuery.semantic(OSLO))


def retrieve_twice(memory):
    service_retrieve(memory)
    memory.repository.finder._guard._windows.clear()
    assert memory.retrieve(MemoryQuery.semantic(OSLO)).from_cache


def linked(memory):
    first = memory.add("another one")
    memory.link(first.id, memory.list(filters={"content": OSLO}).entries[0].id, "related")
    memory.linked(first.id)


def policy(memory):
    payload = RetrievalPolicy(memory).run(RetrievalRequest(OSLO, None, "session"))
    assert OSLO in payload.prompt


class Repeating:
    """A language model that gives one hypothesis."""

    model = "repeating"

    def complete(self, _prompt, **_):
        return OSLO


def hyde(memory):
    with (
        HydeEngine(memory, memory.embedder, Repeating(), HydeConfig(min_similarity=0)) as engine,
        engine.turn(OSLO, []) as turn,
    ):
        turn.retrieve()
        assert OSLO in turn.system_prompt("Be kind.")


WAYS = {
    "search": lambda memory: memory.search("Oslo"),
    "keyword": lambda memory: memory.search("Oslo", search_type="keyword"),
    "similar": lambda memory: memory.similar(memory.add(f"{OSLO} and a dog").id),
    "recall": lambda memory: memory.recall("Oslo"),
    "recall recent": lambda memory: memory.recall("", mode="recent"),
    "recent": lambda memory: memory.recent(),
    "important": lambda memory: memory.important(),
    "context": lambda memory: memory.context("Oslo"),
    "retrieve": service_retrieve,
    "retrieve from the cache": retrieve_twice,
    "linked": linked,
    "policy": policy,
    "hyde": hyde,
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_returning_memories_counts(refusing, way):
    refusing.add(OSLO)
    WAYS[way](refusing)
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)


def test_a_check_for_contradictions_returns_nothing_to_the_program(refusing):
    refusing.add(OSLO)
    assert refusing.add(OSLO, check="contradictions")


def test_a_flagged_memory_may_contradict_others(flagging):
    entry = returned(flagging, "she is allergic to peanuts")
    flagging.add("she is not allergic to peanuts")
    stored = flagging.add("she is allergic to peanuts", check="contradictions")
    assert stored.repeats == entry.id
    assert stored.contradictions


def test_users_do_not_meet(refusing, flagging):
    for memory in (refusing, flagging):
        returned(memory, user_id="ann")
        for user_id in ("bob", None):
            assert type(memory.add(OSLO, user_id=user_id)) is MemoryEntry
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO, user_id="ann")


def test_what_a_search_of_all_users_returned_counts_for_each_user_alone(flagging):
    hers = flagging.add(OSLO, user_id="ann")
    his = flagging.add(OSLO, user_id="bob")
    assert len(flagging.search(OSLO, all_users=True)) == 2
    assert flagging.add(OSLO, user_id="ann").repeats == hers.id
    assert flagging.add(OSLO, user_id="bob").repeats == his.id
    assert type(flagging.add(OSLO, user_id="eve")) is MemoryEntry


def test_agents_do_not_meet(tmp_path):
    path = tmp_path / "a.db"
    options = {"embedder": WordEmbedder(), "on_recalled": "refuse"}
    with Memory(path, "one", **options) as one, Memory(path, "two", **options) as two:
        returned(one)
        assert two.add(OSLO)


def test_sessions_and_projects_of_a_user_are_no_scopes(refusing):
    returned(refusing.scoped(project_id="p"), user_id="ann", session_id="s")
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO, user_id="ann", session_id="t")


def test_returned_memories_are_forgotten_after_a_time(refusing):
    moment = [0.0]
    refusing.repository.finder._guard._clock = lambda: moment[0]
    returned(refusing)
    moment[0] += recall_guard.SECONDS
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)
    moment[0] += 0.1
    assert refusing.add(OSLO)


def test_being_returned_again_renews_the_time(refusing):
    moment = [0.0]
    refusing.repository.finder._guard._clock = lambda: moment[0]
    returned(refusing)
    moment[0] += recall_guard.SECONDS
    refusing.search(OSLO)
    moment[0] += recall_guard.SECONDS
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)


def test_the_last_results_of_a_user_are_remembered(refusing, monkeypatch):
    monkeypatch.setattr(recall_guard, "MAX_RESULTS", 2)
    contents = ["alpha alpha", "beta beta", "gamma gamma"]
    refusing.add_many(contents)
    for content in contents:
        refusing.search(content, limit=1)
    assert refusing.add(contents[0])
    for content in contents[1:]:
        with pytest.raises(RecalledTextError):
            refusing.add(content)


def test_the_last_users_are_remembered(refusing, monkeypatch):
    monkeypatch.setattr(recall_guard, "MAX_USERS", 2)
    for user_id in ("ann", "bob", "eve"):
        returned(refusing, user_id=user_id)
    assert refusing.add(OSLO, user_id="ann")
    for user_id in ("bob", "eve"):
        with pytest.raises(RecalledTextError):
            refusing.add(OSLO, user_id=user_id)


def test_nothing_of_a_text_is_kept(refusing):
    returned(refusing)
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)
    (window,) = refusing.repository.finder._guard._windows.values()
    kept = repr((window.results, window.digests, vars(window.texts)))
    assert window.digests
    assert "oslo" not in kept.lower()


def test_a_memory_that_is_gone_is_not_named(refusing):
    entry = returned(refusing)
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)
    refusing.delete(entry.id)
    assert refusing.add(OSLO)


def test_the_former_text_of_a_memory_counts_as_long_as_it_is_there(refusing):
    entry = returned(refusing)
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)
    refusing.update(entry.id, content="lives in Rome now, without any cat")
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO)
    refusing.search("Rome")
    with pytest.raises(RecalledTextError):
        refusing.add("lives in Rome now, without any cat")


def test_a_memory_may_repeat_the_one_that_it_supersedes_or_replaces(refusing):
    entry = returned(refusing)
    assert (
        refusing.add_many([MemoryEntry(OSLO, id=entry.id)], on_conflict="replace")[0].version == 2
    )
    assert refusing.add_many([MemoryEntry(OSLO, id=entry.id)], on_conflict="skip")[0].id == entry.id
    assert refusing.add(OSLO, supersedes=entry.id)


def test_a_retry_with_the_key_of_the_recalled_memory_gives_that_memory(refusing):
    entry = refusing.add(OSLO, idempotency_key="k")
    refusing.search(OSLO)
    assert refusing.add(OSLO, idempotency_key="k").id == entry.id
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO, idempotency_key="another")


@pytest.mark.parametrize("on_duplicate", ["skip", "merge"])
def test_a_duplicate_that_is_not_stored_is_not_refused(refusing, flagging, on_duplicate):
    for memory in (refusing, flagging):
        entry = returned(memory)
        stored = memory.add(OSLO, on_duplicate=on_duplicate)
        assert stored.id == entry.id
        assert type(stored) is MemoryEntry


def test_a_text_that_on_duplicate_does_not_skip_is_refused(refusing):
    returned(refusing, "lives in Oslo, with two cats")
    with pytest.raises(RecalledTextError):
        refusing.add(OSLO, on_duplicate="skip")


def test_a_list_is_refused_as_a_whole_with_the_place(refusing):
    entry = returned(refusing)
    with pytest.raises(RecalledTextError, match="memory 1 of the list") as refused:
        refusing.add_many([NUTS, OSLO, "tea"])
    assert (refused.value.memory_id, refused.value.place) == (entry.id, 1)
    assert refusing.count() == 1


def test_those_of_a_list_are_flagged_that_repeat_others(flagging):
    entry = returned(flagging)
    stored = flagging.add_many([NUTS, OSLO, NUTS])
    assert [getattr(each, "repeats", None) for each in stored] == [None, entry.id, None]


def test_an_import_repeats_whatever_it_holds(refusing, tmp_path):
    returned(refusing)
    with Memory(":memory:", embedder=WordEmbedder()) as other:
        other.add(OSLO)
        other.export(tmp_path / "a.jsonl")
    assert refusing.import_(tmp_path / "a.jsonl").stored == 1


def test_the_documented_door_refuses():
    async def run():
        options = {"embedder": WordEmbedder(), "on_recalled": "refuse"}
        async with AsyncLongTermMemory(":memory:", **options) as memory:
            await memory.store(record())
            await memory.search_semantic("Oslo", min_similarity=0.0)
            with pytest.raises(RecalledTextError):
                await memory.store(record())

    asyncio.run(run())


def record():
    return MemoryEntry(id=uuid4(), agent_id="default", content=OSLO, created_at=NOON)


def test_threads_that_search_and_add_at_once_disturb_none(flagging):
    flagging.add_many([f"{OSLO} number {number}" for number in range(20)])

    def work(number):
        for at in range(20):
            text = f"{OSLO} number {(number + at) % 20}"
            assert flagging.search(text, limit=1)
            assert flagging.add(text).repeats

    run_together(*(lambda number=number: work(number) for number in range(4)))


def test_a_wrong_treatment_is_refused():
    with pytest.raises(InvalidArgumentError, match="on_recalled must be one of store, flag"):
        opened("raise")
