import asyncio
import threading

import pytest
from listed import message, run, texts
from strands.memory.types import AddMessagesContext, MemoryStore, _has_method
from strands_mnemic import MnemicMemoryStore

from mnemic import AsyncMemory, Memory
from mnemic.errors import InvalidArgumentError, InvalidEntryError, MnemicError

BOTH = [message("I live in Oslo"), message("Noted", "assistant")]


@pytest.fixture
def store(tmp_path):
    opened = MnemicMemoryStore(tmp_path / "memory.db", name="notes")
    yield opened
    run(opened.memory.close())


def test_a_question_in_other_words_finds_what_was_added(store):
    for text in (
        "The user prefers dark mode",
        "The cat is called Miso",
        "Deploys go out on Friday",
    ):
        run(store.add(text))
    assert run(texts(store, "Which colours should the screen have?"))[0].endswith("dark mode")


def test_it_is_a_store_with_all_sinks_and_no_tools(store):
    assert MemoryStore in MnemicMemoryStore.__mro__
    has = [name for name in ("add", "add_messages", "initialize") if _has_method(store, name)]
    assert has == ["add", "add_messages", "initialize"]
    assert not _has_method(store, "get_tools")


def test_metadata_is_given_back_with_id_score_and_time(store):
    stored = run(store.add("Likes tea", {"source": {"page": 3}, "_id": "mine"}))
    (entry,) = run(store.search("tea"))
    assert entry.metadata.pop("_relevanceScore") > 0.1
    assert entry.metadata == {
        "source": {"page": 3},
        "_id": str(stored.id),
        "_createdAt": stored.created_at.isoformat(),
    }


def test_a_text_that_is_there_is_stored_once_with_the_metadata_of_both(store):
    first = run(store.add("Likes tea", {"a": 1, "b": 1}))
    again = run(store.add("  likes tea.\n", {"b": 2}))
    assert (again.id, again.metadata) == (first.id, {"a": 1, "b": 2})
    assert run(store.add("Likes C++")).id != run(store.add("Likes C")).id
    assert run(store.scoped.count()) == 3


def test_a_text_that_was_deleted_can_be_added_again(store):
    stored = run(store.add("Likes tea"))
    run(store.scoped.delete(stored.id))
    assert run(texts(store, "tea")) == []
    run(store.add("Likes tea"))
    assert run(texts(store, "tea")) == ["Likes tea"]


def test_messages_are_found_with_their_role_and_stored_once_for_each_number(store):
    for _ in range(2):
        run(store.add_messages(BOTH, AddMessagesContext([0, 2])))
    run(store.add_messages([message("I live in Oslo")], AddMessagesContext([5])))
    roles = [entry.metadata["_role"] for entry in run(store.search("Noted: Oslo"))]
    assert sorted(roles) == ["assistant", "user", "user"]


def test_numbers_count_until_the_next_agent_begins(store):
    for _ in range(3):
        run(store.initialize())
        run(store.add_messages([message("Yes")], AddMessagesContext([0])))
        run(store.add_messages([message("Yes")], AddMessagesContext([0])))
        run(store.add_messages([message("No")], AddMessagesContext([0])))
    assert sorted(run(texts(store, "yes or no"))) == ["No"] * 3 + ["Yes"] * 3


def test_numbers_of_two_processes_are_not_the_same(tmp_path):
    with Memory(tmp_path / "memory.db") as memory:
        for _ in range(2):
            store = MnemicMemoryStore(memory, name="notes")
            run(store.add_messages([message("Yes")], AddMessagesContext([0])))
        assert run(texts(store, "yes")) == ["Yes", "Yes"]


def test_a_message_with_a_tracking_id_is_stored_once_whatever_its_number(store):
    tracked = message("Yes", tracking_id="0b1f")
    for numbers in (None, [0], [7]):
        run(store.initialize())
        run(store.add_messages([tracked], numbers and AddMessagesContext(numbers)))
    run(store.add_messages([message("Yes", tracking_id="0b20")]))
    assert run(texts(store, "yes")) == ["Yes", "Yes"]


def test_messages_without_numbers_are_all_stored_and_those_without_text_are_skipped(store):
    image = {"image": {"format": "png", "source": {"bytes": b"0" * 12_000_000}}}
    both = {"role": "user", "content": [{"text": "Look"}, image, {"text": "at this"}]}
    use = {
        "role": "assistant",
        "content": [{"toolUse": {"name": "x", "toolUseId": "1", "input": {}}}],
    }
    run(store.add_messages([use, {"role": "user", "content": [image]}, message(" \n")]))
    assert run(store.scoped.count()) == 0
    run(store.add_messages([both, use, message("Yes")], AddMessagesContext()))
    run(store.add_messages([message("Yes")]))
    run(store.add_messages([]))
    assert sorted(run(texts(store, "look yes"))) == ["Look\nat this", "Yes", "Yes"]


def test_a_search_returns_as_many_as_it_or_the_store_says(tmp_path):
    with Memory(tmp_path / "memory.db") as memory:
        store = MnemicMemoryStore(memory, name="notes", max_search_results=4)
        run(store.add_messages([message(f"Note {at} of the garden") for at in range(20)]))
        assert len(run(texts(store, "garden"))) == 4
        assert len(run(texts(store, "garden", max_search_results=7))) == 7
        assert len(run(texts(store, "garden", max_search_results=10**9))) == 20
        for wrong in (0, -1):
            with pytest.raises(InvalidArgumentError, match="at least 1; got"):
                run(texts(store, "garden", max_search_results=wrong))
        assert len(run(texts(MnemicMemoryStore(memory, name="notes"), "garden"))) == 10
        strict = MnemicMemoryStore(memory.aio, name="notes", min_score="auto")
        assert run(texts(strict, "xyzzy")) == []


def test_a_question_without_words_finds_nothing_and_one_of_any_length_is_answered(store):
    run(store.add("Likes tea"))
    assert [run(texts(store, query)) for query in ("", " \n", "\0", "?!")] == [[]] * 4
    assert run(texts(store, "tea \ud800 " * 5_000)) == ["Likes tea"]


def test_what_no_file_can_hold_is_replaced_in_texts_and_else_refused(store):
    run(store.add_messages([message("nul\0here"), message("half \udc80 pair")]))
    assert sorted(run(texts(store, "half nul"))) == ["half \ufffd pair", "nul here"]
    for bad in ("", " \n", "\0"):
        with pytest.raises(InvalidEntryError):
            run(store.add(bad))
    with pytest.raises(InvalidEntryError):
        run(store.add("Odd", {"at": object()}))
    with pytest.raises(InvalidArgumentError, match="2 messages have 1 numbers"):
        run(store.add_messages(BOTH, AddMessagesContext([0])))
    assert run(store.scoped.count()) == 2


def test_a_store_that_is_not_writable_takes_nothing(tmp_path):
    store = MnemicMemoryStore(tmp_path / "memory.db", name="facts", writable=False)
    for adding in (store.add("Likes tea"), store.add_messages(BOTH)):
        with pytest.raises(InvalidArgumentError, match="facts: the store is not writable"):
            run(adding)
    assert run(store.scoped.count()) == 0


def test_what_is_wrong_shows_when_a_store_is_made_or_begins(tmp_path):
    for wrong in ({"name": " "}, {"name": "a", "max_search_results": 0}):
        with pytest.raises(InvalidArgumentError):
            MnemicMemoryStore(tmp_path / "memory.db", **wrong)

    async def begin():
        await MnemicMemoryStore(AsyncMemory(tmp_path), name="notes").initialize()

    with pytest.raises(MnemicError):
        run(begin())


def test_calls_come_from_many_tasks_and_event_loops_at_once(store):
    async def many(start):
        async def one(at):
            await store.add(f"Note {at}")
            return await texts(store, f"Note {at}", max_search_results=100)

        return await asyncio.gather(*(one(at) for at in range(start, start + 20)))

    answers = {}

    def work(start):
        answers[start] = run(many(start))

    threads = [threading.Thread(target=work, args=(start,)) for start in (0, 20, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [0, 20, 40]
    for start, lists in answers.items():
        assert all(f"Note {start + at}" in found for at, found in enumerate(lists))


def test_the_event_loop_turns_while_messages_are_stored_and_the_file_is_opened(tmp_path):
    async def both():
        store = MnemicMemoryStore(tmp_path / "memory.db", name="notes")
        many = [message(f"A long note {at} about rivers. " * 20) for at in range(300)]
        adding = asyncio.create_task(store.add_messages(many))
        turns = 0
        while not adding.done():
            await asyncio.sleep(0.005)
            turns += 1
        await adding
        await store.memory.close()
        return turns

    assert run(both()) > 20
