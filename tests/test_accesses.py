import subprocess
import sys
import time
from datetime import timedelta
from uuid import uuid4

from scenarios import NOON, Clock, contents, entry, run
from word_embedder import WordEmbedder

from mnemic.memory import Memory
from mnemic.model import MemoryFilter, MemorySortOrder

HOUR = timedelta(hours=1)


def test_retrieving_counts_and_nothing_else_does():  # C090
    clock = Clock()

    async def scenario(memory):
        kept = entry("tea", tags=["t"])
        await memory.store(kept)
        clock.now += HOUR
        await memory.retrieve(kept.id)
        await memory.retrieve_batch([kept.id, uuid4()])
        await memory.search_by_filter({})
        await memory.search_semantic("tea")
        await memory.get_by_tag("t")
        await memory.list()
        await memory.get_stats()
        read = (await memory.get_recent())[0]
        assert (read.access_count, read.last_accessed_at) == (2, NOON + HOUR)
        assert read.updated_at == NOON

    run(scenario, clock=clock)


def test_the_most_recently_accessed_come_first_then_the_newest():  # R040, C091
    clock = Clock()

    async def scenario(memory):
        entries = [entry(text, created_at=NOON + HOUR * at) for at, text in enumerate("abcd")]
        await memory.store_batch(entries)
        for at in (0, 2, 0, 1):
            clock.now += HOUR
            await memory.retrieve(entries[at].id)
        assert contents(await memory.get_recent(3)) == ["b", "a", "c"]
        assert contents(await memory.get_recent()) == ["b", "a", "c", "d"]
        most = MemoryFilter(sort_by=MemorySortOrder.ACCESS_COUNT_DESCENDING)
        assert contents(await memory.search_by_filter(most)) == ["a", "c", "b", "d"]

    run(scenario, clock=clock)


def test_touching_counts_where_the_scope_has_the_memory():
    async def scenario(memory):
        mine, hers, gone = entry("m", user_id="a"), entry("h", user_id="b"), entry("g", user_id="a")
        await memory.store_batch([mine, hers, gone])
        await memory.forget(gone.id, user_id="a")
        await memory.touch([mine.id, str(mine.id), hers.id, gone.id, uuid4()], user_id="a")
        everything = MemoryFilter(include_forgotten=True)
        found = await memory.search_by_filter(everything, all_users=True)
        assert {one.content: one.access_count for one in found} == {"m": 1, "h": 0, "g": 0}

    run(scenario)


def test_what_is_not_found_is_not_counted():
    async def scenario(memory):
        kept = entry("m", user_id="a")
        await memory.store(kept)
        await memory.retrieve(kept.id, user_id="b")
        await memory.forget(kept.id, user_id="a")
        await memory.retrieve(kept.id, user_id="a", include_forgotten=True)
        everything = MemoryFilter(include_forgotten=True)
        assert (await memory.search_by_filter(everything, user_id="a"))[0].access_count == 0

    run(scenario)


def test_counting_can_be_turned_off():
    async def scenario(memory):
        kept = entry()
        await memory.store(kept)
        await memory.retrieve(kept.id)
        assert (await memory.get_recent())[0].access_count == 0

    run(scenario, track_access=False)


def test_accesses_are_no_changes_and_no_index_follows_them(tmp_path):  # C158
    path = tmp_path / "a.db"
    with Memory(path, embedder=WordEmbedder()) as one, Memory(path, embedder=WordEmbedder()) as two:
        kept = one.add("tea")
        two.get(kept.id)
        one.search("tea")
        index = one._repository._follower.index
        seq = index.seq
        for _ in range(3):
            two.get(kept.id)
        assert two.list().entries[0].access_count == 4
        one.search("tea")
        assert index.seq == seq
        assert one.get(kept.id).access_count == 4


def test_accesses_are_on_disk_within_about_a_second_and_at_the_latest_when_closed(tmp_path):
    path = tmp_path / "a.db"
    with Memory(path, embedder=None) as reader:
        with Memory(path, embedder=None) as memory:
            kept = memory.add("tea")
            memory.get(kept.id)
            deadline = time.monotonic() + 10
            while reader.list().entries[0].access_count == 0 and time.monotonic() < deadline:
                time.sleep(0.02)
            assert reader.list().entries[0].access_count == 1
            memory.get(kept.id)
        assert reader.list().entries[0].access_count == 2


def test_a_program_that_never_closes_writes_its_accesses_down_at_its_end(tmp_path):
    code = (
        "import sys\n"
        "from mnemic import Memory\n"
        "memory = Memory(sys.argv[1], embedder=None)\n"
        "memory.get(memory.add('tea').id)\n"
    )
    path = tmp_path / "a.db"
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, timeout=60)
    with Memory(path, embedder=None) as memory:
        assert memory.list().entries[0].access_count == 1
