import asyncio
import random
import re
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import uuid4

import apsw
import msgspec
import numpy as np
import pytest

from mnemic.memory import Memory
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import Add, Delete, Purge, Update
from mnemic.store.sqlite import wal
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import count_of

NOW = datetime(2024, 1, 1, tzinfo=UTC)
EVERYONE = Scope("a", all_users=True)
WORDS = ("content", "tag", "metadata", "speaker", "end", "vector")
ANY_WORD = re.compile(rb"(?:content|tag|metadata|speaker|end|vector)~\d{8}~")


def word(kind, number):
    """Return a text that is nowhere else in a file."""
    return f"{kind}~{number:08d}~"


def entry(number, size=100, **changes):
    vector = np.frombuffer(f"{word('vector', number):<32}".encode(), dtype="<f4")
    fields = {
        "id": uuid4(),
        "agent_id": "a",
        "created_at": NOW,
        "content": word("content", number) + "x" * size + word("end", number),
        "tags": (word("tag", number),),
        "metadata": {"key": word("metadata", number)},
        "speaker": word("speaker", number),
        "embedding": vector,
        "embedding_model": "m",
    }
    return MemoryEntry(**fields | changes)


def add(store, entries):
    store.write(Add("a", [NewEntry(entry) for entry in entries], now=NOW)).result()


def changing(number, size):
    """Return the change to another entry's texts, and the vector that comes with it."""
    new = entry(number, size)

    def change(old):
        return msgspec.structs.replace(
            old, content=new.content, tags=new.tags, metadata=new.metadata
        )

    return change, ("m", new.embedding[np.newaxis])


def update(store, entry_id, number, size):
    return update_all(store, Criteria([entry_id]), number, size)


def update_all(store, criteria, number, size):
    change, embedded = changing(number, size)
    return store.write(Update(EVERYONE, criteria, change=change, now=NOW, embedded=embedded))


def left(folder, numbers, kinds=WORDS):
    """Return those words of these numbers that are in any file of a folder."""
    data = b"".join(path.read_bytes() for path in folder.iterdir())
    found = {text.decode() for text in ANY_WORD.findall(data)}
    return sorted(found & {word(kind, number) for number in numbers for kind in kinds})


@pytest.fixture
def store(tmp_path):
    opened = SqliteStore(tmp_path / "a.db")
    yield opened
    opened.close()


@pytest.mark.parametrize("size", [10, 2000, 100_000])
@pytest.mark.parametrize(
    "way",
    [
        *("delete", "delete_all", "delete_all by ids and filter", "purge"),
        *("update", "update_all", "replace"),
    ],
)
def test_what_is_deleted_is_in_no_file_any_more(store, tmp_path, size, way):
    kept = entry(1, size)
    is_update = way.startswith("update")
    gone = entry(2, size, user_id="u", forgotten_at=None if is_update else NOW)
    add(store, [kept, gone, entry(3, size)])
    chosen = Criteria([gone.id], parse_filter({"content": {"contains": "content"}}))
    assert len(left(tmp_path, [1, 2])) == 12
    if way == "delete":
        assert store.write(Delete(EVERYONE, Criteria([gone.id]))).result()
    elif way == "delete_all":
        assert store.write(Delete(Scope("a", user_id="u"))).result() == [gone.id]
    elif way == "delete_all by ids and filter":
        assert store.write(Delete(EVERYONE, chosen)).result() == [gone.id]
    elif way == "update_all":
        assert len(update_all(store, chosen, 4, size).result()) == 1
    elif way == "purge":
        assert store.write(Purge(EVERYONE, NOW + timedelta(days=1))).result() == [gone.id]
    elif way == "replace":
        new = NewEntry(entry(4, size, id=gone.id, user_id="u"))
        store.write(Add("a", [new], now=NOW, on_conflict="replace")).result()
        assert len(left(tmp_path, [4])) == 6
    else:
        assert update(store, gone.id, 4, size).result()
    assert left(tmp_path, [2]) != []
    assert store.erase().result()
    kinds = ("content", "tag", "metadata", "end", "vector")
    assert left(tmp_path, [2], kinds if is_update else (*kinds, "speaker")) == []
    assert len(left(tmp_path, [1, 3])) == 12


@pytest.mark.parametrize("sizes", [(10, 50), (10, 200, 400), (10, 200, 800, 3000, 9000)])
def test_nothing_of_thousands_of_deleted_and_changed_entries_is_left(store, tmp_path, sizes):
    chosen, living, dead, number = random.Random(3), {}, [], 0  # noqa: S311 - a fixed choice

    async def at_once(calls):
        assert all(await asyncio.gather(*(asyncio.wrap_future(call()) for call in calls)))

    for _ in range(40):
        added = [entry(number + i, chosen.choice(sizes)) for i in range(50)]
        add(store, added)
        living |= {new.id: number + i for i, new in enumerate(added)}
        number += 50
        calls = []
        for entry_id in chosen.sample(list(living), 40):
            dead.append(living.pop(entry_id))
            way = chosen.random()
            if way < 0.4:
                calls.append(partial(store.write, Delete(EVERYONE, Criteria([entry_id]))))
            elif way < 0.7:
                new = NewEntry(entry(number, chosen.choice(sizes), id=entry_id))
                wanted = Add("a", [new], NOW, on_conflict="replace")
                calls.append(partial(store.write, wanted))
                living[entry_id] = number
                number += 1
            else:
                calls.append(partial(update, store, entry_id, number, chosen.choice(sizes)))
                living[entry_id] = number
                number += 1
        asyncio.run(at_once(calls))
    assert store.erase().result()
    # A speaker stays when an entry is updated.
    assert left(tmp_path, dead, ("content", "tag", "metadata", "end", "vector")) == []
    assert len(left(tmp_path, living.values(), ("content", "end"))) == 2 * len(living)
    with store._connections.reading() as connection:
        assert connection.pragma("integrity_check") == "ok"


def test_one_who_reads_keeps_the_bytes_until_a_later_write(store, tmp_path, monkeypatch):
    monkeypatch.setattr(wal, "RETRY_SECONDS", 0.0)
    add(store, [entry(1), entry(2)])
    reader = apsw.Connection(str(tmp_path / "a.db"))
    reader.execute("BEGIN; SELECT count(*) FROM agent_memory_entries").fetchall()
    store.write(Delete(EVERYONE)).result()
    assert not store.erase().result()
    assert left(tmp_path, [1, 2]) != []
    add(store, [entry(3)])
    assert left(tmp_path, [1, 2]) != []
    reader.execute("COMMIT")
    reader.close()
    add(store, [entry(4)])
    assert left(tmp_path, [1, 2]) == []
    assert len(left(tmp_path, [3, 4])) == 12
    assert store.erase().result()


def test_whoever_closes_last_takes_the_bytes_away(store, tmp_path):
    other = SqliteStore(tmp_path / "a.db")
    add(store, [entry(1)])
    with other._connections.reading() as connection:
        connection.execute("BEGIN; SELECT count(*) FROM agent_memory_entries").fetchall()
        store.write(Delete(EVERYONE)).result()
        assert not store.erase().result()
        store.close()
        assert left(tmp_path, [1]) != []
        connection.execute("COMMIT")
    other.close()
    assert left(tmp_path, [1]) == []


def test_one_who_reads_does_not_hold_up_the_writer_for_long(store, tmp_path):
    add(store, [entry(1)])
    reader = apsw.Connection(str(tmp_path / "a.db"))
    reader.execute("BEGIN; SELECT count(*) FROM agent_memory_entries").fetchall()
    add(store, [entry(2)])
    erased = []
    thread = threading.Thread(target=lambda: erased.append(store.erase().result()))
    thread.start()
    add(store, [entry(3)])
    thread.join(5)
    assert erased == [False]
    reader.close()


def test_a_long_log_is_copied_after_a_commit_and_not_before(store, tmp_path, monkeypatch):
    monkeypatch.setattr(wal, "COPY_PAGES", 50)
    size = (tmp_path / "a.db").stat().st_size
    add(store, [entry(1)])
    assert (tmp_path / "a.db").stat().st_size == size
    add(store, [entry(2, 300_000)])
    assert (tmp_path / "a.db").stat().st_size > size + 300_000


def test_only_the_space_between_a_pages_list_and_its_cells_is_zeroed():
    page = bytearray(b"\xff" * 512)
    page[0], page[3:5], page[5:7] = 13, (2).to_bytes(2, "big"), (400).to_bytes(2, "big")
    zeroed = wal.zeroed(bytes(page), 512)
    assert zeroed == bytes(page[:12]) + bytes(388) + bytes(page[400:])
    first = bytes(100) + bytes(page[:412])
    assert wal.zeroed(first, 0) == first[:112] + bytes(288) + first[400:]


@pytest.mark.parametrize("kind", [0, 1, 3, 255])
def test_a_page_of_another_kind_stays_as_it_is(kind):
    page = bytes([kind]) + b"\xff" * 511
    assert wal.zeroed(page, 512) == page


def test_a_file_whose_pages_may_be_of_unknown_kinds_is_left_alone_and_not_called_erased(tmp_path):
    path = tmp_path / "a.db"
    SqliteStore(path).close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = DELETE; PRAGMA auto_vacuum = FULL; VACUUM").fetchall()
    connection.close()
    store = SqliteStore(path)
    assert not store.erase().result()
    store.close()


def test_a_disk_that_fails_as_the_log_is_copied_loses_nothing(tmp_path, monkeypatch):
    store = SqliteStore(tmp_path / "a.db")
    add(store, [entry(1)])

    def failing(*_):
        raise apsw.IOError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(wal._File, "xWrite", failing)
        assert not store.erase().result()
        store.close()
    again = SqliteStore(tmp_path / "a.db")
    assert count_of(again, Scope("a", all_users=True), now=NOW) == 1
    assert again.erase().result()
    again.close()


def test_the_log_is_on_disk_without_what_was_erased_when_erasing_returns(tmp_path, monkeypatch):
    calls = []
    for name in ("xTruncate", "xSync"):
        real = getattr(wal._Log, name)

        def recorded(self, argument, name=name, real=real):
            calls.append(name)
            real(self, argument)

        monkeypatch.setattr(wal._Log, name, recorded)
    store = SqliteStore(tmp_path / "a.db")
    add(store, [entry(1)])
    store.write(Delete(EVERYONE)).result()
    calls.clear()
    assert store.erase().result()
    assert calls[-2:] == ["xTruncate", "xSync"]
    store.close()


def test_erasing_can_be_waited_for_and_a_repeated_deletion_tells_the_state_of_the_bytes(tmp_path):
    with Memory(tmp_path / "a.db", embedder=None) as memory:
        memory.add(word("content", 1), user_id="u")
        reader = apsw.Connection(str(tmp_path / "a.db"))
        reader.execute("BEGIN; SELECT count(*) FROM agent_memory_entries").fetchall()
        deleted = memory.delete_all(user_id="u", permanent=True)
        assert (deleted, deleted.erased) == (1, False)
        again = memory.delete_all(user_id="u", permanent=True)
        assert (again, again.erased) == (0, False)
        assert not memory.erase_pending()
        assert left(tmp_path, [1]) != []
        reader.execute("COMMIT")
        reader.close()
        assert memory.delete_all(user_id="u", permanent=True).erased
        assert memory.erase_pending()
        assert left(tmp_path, [1]) == []
        assert not memory.delete_all(user_id="u").erased
