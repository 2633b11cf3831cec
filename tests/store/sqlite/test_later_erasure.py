import asyncio
import time
from uuid import UUID

import apsw
import pytest

from mnemic.errors import StoreClosedError
from mnemic.memory import Memory
from mnemic.store.sqlite.store import SqliteStore
from mnemic.store.sqlite.wal import RETRY_SECONDS, Checkpoints


def secret(number):
    return f"confidential~{number:04d}~"


def left(folder, numbers):
    """Return those of these secrets that are in any file of a folder."""
    data = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [number for number in numbers if secret(number).encode() in data]


def is_soon(condition, seconds=20):
    """Return whether a condition comes true within some seconds."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def filled(memory, numbers):
    memory.add_many([{"content": secret(n), "id": UUID(int=n)} for n in numbers])


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as opened:
        filled(opened, range(30))
        yield opened


@pytest.fixture
def erasures(monkeypatch):
    """Return the times of erasures."""
    times = []
    erase = Checkpoints.erase

    def noted(self):
        times.append(time.monotonic())
        return erase(self)

    monkeypatch.setattr(Checkpoints, "erase", noted)
    return times


@pytest.mark.parametrize("new", [[], ["another"]])
def test_what_others_take_the_place_of_is_in_no_file_a_moment_later(memory, tmp_path, new):
    memory.add_many(new, instead_of=[UUID(int=7)])
    assert memory.count() == 29 + len(new)
    assert is_soon(lambda: left(tmp_path, [7]) == [])
    assert left(tmp_path, range(30)) == [n for n in range(30) if n != 7]


def test_many_deletions_are_erased_at_once_and_later_ones_again(memory, tmp_path, erasures):
    begun = time.monotonic()
    for n in range(20):
        memory.add_many([], instead_of=[UUID(int=n)])
    taken = time.monotonic() - begun
    assert is_soon(lambda: left(tmp_path, range(20)) == [])
    assert 1 <= len(erasures) <= 2 + 2 * taken
    memory.add_many([], instead_of=[UUID(int=20)])
    assert is_soon(lambda: left(tmp_path, [20]) == [])


def test_awaited_deletions_are_erased_at_once_too(memory, tmp_path, erasures):
    async def scenario():
        for n in range(20):
            await memory.aio.add_many([f"new {n}"], instead_of=[UUID(int=n)])

    begun = time.monotonic()
    asyncio.run(scenario())
    taken = time.monotonic() - begun
    assert is_soon(lambda: left(tmp_path, range(20)) == [])
    assert 1 <= len(erasures) <= 2 + 2 * taken


def test_closing_does_not_leave_the_bytes_to_those_who_have_the_file_open(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as other:
        filled(other, range(3))
        with Memory(tmp_path / "a.db", embedder=None) as memory:
            snapshots = tmp_path / "a.db-index"
            snapshots.mkdir(mode=0o700)
            (snapshots / "old").write_text(secret(1))
            memory.add_many([], instead_of=[UUID(int=1)])
        assert left(tmp_path, range(3)) == [0, 2]
        assert other.count() == 2


def test_waiting_for_it_is_possible(memory, tmp_path):
    memory.add_many([], instead_of=[UUID(int=7)])
    assert memory.erase_pending()
    assert left(tmp_path, [7]) == []


def test_a_reader_holds_it_up_until_a_later_write(memory, tmp_path, erasures):
    reader = apsw.Connection(str(tmp_path / "a.db"))
    reader.execute("BEGIN; SELECT count(*) FROM agent_memory_entries").fetchall()
    memory.add_many([], instead_of=[UUID(int=7)])
    assert is_soon(lambda: erasures)
    assert left(tmp_path, [7]) == [7]
    reader.close()
    time.sleep(RETRY_SECONDS)
    memory.add("another")
    assert is_soon(lambda: left(tmp_path, [7]) == [])


def test_a_closed_store_refuses_it(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    store.close()
    with pytest.raises(StoreClosedError):
        store.erase(soon=True)


def test_a_memory_without_a_file_has_nothing_to_erase():
    with Memory(":memory:", embedder=None) as memory:
        filled(memory, range(3))
        memory.add_many([], instead_of=[UUID(int=1)])
        assert memory.count() == 2
