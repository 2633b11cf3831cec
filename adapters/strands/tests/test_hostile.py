"""Two users, reopening, and a writer that is killed."""

import itertools
from pathlib import Path

import killed
import pytest
from listed import message, run, texts
from strands.memory.types import AddMessagesContext
from strands_mnemic import MnemicMemoryStore

from mnemic import Memory

USERS = [None, "", "a", "a/b", "b", "a%2Fb", "A", " a", "a\n", "a\0", "\u00e4", "a\u0308", "*"]
STORES = [name for name in USERS if name]
WRITER = """
import sys
sys.path[:0] = [sys.argv[2]]
from listed import message, run
from strands.memory.types import AddMessagesContext
from strands_mnemic import MnemicMemoryStore

async def write():
    store = MnemicMemoryStore(sys.argv[1], name="notes")
    for at in range(0, 10_000, 2):
        await store.add(f"Note {at} about the harbour")
        await store.add_messages([message(f"Note {at + 1}")], AddMessagesContext([at]))
        print(at + 1, flush=True)

run(write())
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "memory.db"


def test_every_store_and_user_has_memories_of_its_own_whatever_their_names(path):
    async def play(memory):
        stores = [
            MnemicMemoryStore(memory, name=name, user_id=user)
            for user, name in itertools.product(USERS, STORES)
        ]
        for at, store in enumerate(stores):
            await store.add(f"Secret number {at}")
            await store.add_messages([message("I keep a secret")], AddMessagesContext([0]))
        for at, store in enumerate(stores):
            told = await texts(store, "secret")
            assert sorted(told) == ["I keep a secret", f"Secret number {at}"]
        await stores[7].scoped.delete_all(permanent=True)
        left = [len(await texts(store, "secret")) for store in stores]
        assert left.pop(7) == 0
        assert set(left) == {2}

    with Memory(path) as memory:
        run(play(memory))


def test_what_others_store_and_delete_changes_no_answer(path):
    async def play(memory):
        mine = MnemicMemoryStore(memory, name="notes", user_id="alice")
        for at in range(30):
            await mine.add(f"I went to town {at} with Ana")
        alone = await mine.search("Where did I go with Ana?")
        for user, name in (("bob", "notes"), ("alice", "other"), (None, "notes")):
            other = MnemicMemoryStore(memory, name=name, user_id=user)
            for at in range(60):
                stored = await other.add(f"I went to town {at} with Ana, too")
            await other.scoped.delete(stored.id)
            await mine.scoped.delete_many([stored.id])
            assert await mine.search("Where did I go with Ana?") == alone
            assert all("too" in text for text in await texts(other, "Ana"))

    with Memory(path) as memory:
        run(play(memory))


def test_a_deletion_stays_after_reopening_and_after_a_retry(path):
    async def first():
        store = MnemicMemoryStore(path, name="notes")
        said = [message("My safe opens with tangerine"), message("Nice weather")]
        await store.add_messages(said, AddMessagesContext([0, 1]))
        (entry,) = await store.search("tangerine", {"max_search_results": 1})
        await store.scoped.delete(entry.metadata["_id"])
        await store.add_messages(said, AddMessagesContext([0, 1]))
        assert await texts(store, "tangerine") == ["Nice weather"]
        await store.memory.close()

    async def second():
        store = MnemicMemoryStore(path, name="notes")
        await store.initialize()
        assert await texts(store, "tangerine") == ["Nice weather"]
        await store.memory.close()

    run(first())
    run(second())


def test_what_was_acknowledged_is_there_after_a_writer_was_killed(path):
    for turn in range(3):
        last = int(killed.lines_of(WRITER, path, Path(__file__).parent, least=30)[-1])
        store = MnemicMemoryStore(path, name="notes")
        stored = [entry.content.split()[1] for entry in run(store.scoped.list(limit=1000))]
        assert {str(number) for number in range(last + 1)} <= set(stored)
        added = [number for number in stored if int(number) % 2 == 0]
        assert len(added) == len(set(added)), turn
        run(store.memory.close())
