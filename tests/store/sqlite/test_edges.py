"""Defects found by reading the embedded store and its index."""

import io
import signal
import threading
import time
from datetime import timedelta

import apsw
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import EmbeddingError, StoreError
from mnemic.index.native import MAX_PENDING, NativeIndex
from mnemic.model import Scope
from mnemic.model.new_entry import NewEntry
from mnemic.repository.agent_index import IndexSettings
from mnemic.repository.index_sync import IndexSync
from mnemic.repository.vector_model import VectorModel
from mnemic.store.group_commit import Writer
from mnemic.store.operations import Add, RowsSince, ScopeStatistics
from mnemic.store.sqlite import wal
from mnemic.store.sqlite.file import FileTransactions
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import entries_by_id
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import entry
from tests.support.operations import replace_operation
from tests.support.rows import batch, record, rows_found
from tests.support.waiting import until

AGENT = Scope("aide", all_users=True)


# Isolation of users.


def test_an_import_into_one_users_view_writes_no_links_between_anothers_memories():
    with Memory(":memory:", "aide", embedder=WordEmbedder(8)) as memory:
        first = memory.add("the first of alice", user_id="alice")
        second = memory.add("the second of alice", user_id="alice")
        alice = memory.scoped(user_id="alice")
        alice.link(first.id, second.id)
        text = io.StringIO()
        alice.export(text)
        alice.unlink(first.id, second.id)
        lines = text.getvalue().replace('"memories":2', '"memories":0').splitlines(keepends=True)
        only_links = "".join(line for line in lines if '"kind":"memory"' not in line)
        assert '"kind":"link"' in only_links
        for nobodys in (only_links, only_links.replace(',"user_id":"alice"', "")):
            assert memory.scoped(user_id="bob").import_(io.StringIO(nobodys)).links == 0
        assert alice.links(first.id) == []


# Accesses are never written again after one failure to begin.


def test_accesses_are_written_again_after_a_transaction_that_could_not_begin(tmp_path):
    path = str(tmp_path / "a.db")
    store = SqliteStore(path)
    stored = store.write(Add("aide", [NewEntry(entry("one"))], now=NOON)).result()
    other = apsw.Connection(path)
    other.execute("BEGIN IMMEDIATE")
    store._connections.writer.set_busy_timeout(1)
    store.touch("aide", stored.rows, NOON)
    time.sleep(1.3)  # the writing thread tried, and was refused
    other.execute("ROLLBACK")
    other.close()
    store.touch("aide", stored.rows, NOON)
    store.close()
    store = SqliteStore(path)
    kept = entries_by_id(store, AGENT, stored.ids, now=NOON)[stored.ids[0]]
    store.close()
    assert kept.access_count >= 1


# What was touched is seen though its batch is on its way to the disk.


# The index.


def test_early_batches_are_bounded_by_their_rows():
    index = NativeIndex(2)
    index.apply(batch())
    kept = 0
    for number in range(20):
        since = 10 + 1000 * number  # number 1 to 10 never comes
        some = [record(row) for row in range(since, since + 1000)]
        kept += 1000 if index.apply(batch(some, since=since, seq=since + 1000)) else 0
    assert kept <= 10_000


def test_deletions_that_nobody_searches_after_do_not_gather_for_good():
    index = NativeIndex(2)
    index.apply(batch(seq=0))
    for number in range(2000):
        index.apply(batch(since=number, seq=number + 1, removed=[number]))
    assert len(index._pending) <= 256


def test_many_rows_that_expire_together_are_left_out_by_every_search_at_its_own_time():
    index = NativeIndex(2)
    everybody, count = Scope("a", all_users=True), 20_000
    expiring = [record(row, expires_at=100) for row in range(count)]
    index.apply(batch([*expiring, record(count), record(count + 1, expires_at=200)]))
    left = [count, count + 1]
    assert sorted(rows_found(index, everybody, now=150)) == left
    assert len(rows_found(index, everybody, count + 2, now=99)) == count + 2  # an earlier clock
    assert sorted(rows_found(index, everybody, now=150)) == left
    assert rows_found(index, everybody, now=250) == [count]


def test_an_entry_that_is_changed_often_is_kept_once():
    index = NativeIndex(2)
    index.apply(batch(seq=0))
    for number in range(3000):
        one = record(1, content=f"state {number}", expires_at=100 + number)
        index.apply(batch([one], since=number, seq=number + 1))
        assert index._pending_rows <= MAX_PENDING
    assert len(index) == 1
    scope = Scope("a")
    assert rows_found(index, scope, now=3098) == [1]
    assert rows_found(index, scope, now=3099) == []


# Index sync.


def test_texts_that_lack_a_vector_may_come_while_others_look_for_them():
    class Failing(WordEmbedder):
        def embed(self, texts):
            raise EmbeddingError(f"out of order for {texts}")

    store = SqliteStore(":memory:")
    embedder = ValidatedEmbedder(Failing(8))
    sync = IndexSync(store, "aide", VectorModel(store, "aide", embedder), IndexSettings())

    def stored(content):
        return store.write(Add("aide", [NewEntry(entry(content))], now=NOON)).result().batch

    class Raced(dict):
        def get(self, *arguments):
            assert sync.index.apply(stored("of another thread"))
            assert len(sync.index.summary().unembedded) > 3
            return super().get(*arguments)

    for content in ("one", "two", "three"):
        assert sync.index.apply(stored(content))
    missing = sync.own.model.missing
    missing.retries = Raced(none={})
    assert len(missing.due(sync.index.summary().unembedded)) == 3
    assert len(sync.index.summary().unembedded) == 6
    store.close()


def test_a_search_does_not_fail_because_the_backlog_cannot_be_written(tmp_path):
    class Embedder(WordEmbedder):
        is_broken = False

        def embed(self, texts):
            if self.is_broken:
                raise EmbeddingError("out of order")
            return super().embed(texts)

    path = str(tmp_path / "a.db")
    embedder = Embedder(8)
    with Memory(path, "aide", embedder=embedder) as memory:
        memory.add("the cat sleeps")
        embedder.is_broken = True
        memory.add_many(["the dog barks"], on_embed_error="pending")
        embedder.is_broken = False
        memory._repository._store._connections.writer.set_busy_timeout(1)
        other = apsw.Connection(path)
        other.execute("BEGIN IMMEDIATE")
        found = memory.search("the cat sleeps", search_type="semantic")
        assert [hit.entry.content for hit in found] == ["the cat sleeps"]
        other.execute("ROLLBACK")
        other.close()


# Connections and schema.


def interrupted(store):
    """Begin to read, and be interrupted between BEGIN and what would end it."""
    with store._connections.reading() as connection:
        connection.execute("BEGIN")
        raise KeyboardInterrupt


def test_a_read_that_was_interrupted_leaves_no_old_state_to_the_next(tmp_path):
    store = SqliteStore(str(tmp_path / "a.db"))
    store.write(Add("aide", [NewEntry(entry("one"))], now=NOON)).result()
    with pytest.raises(KeyboardInterrupt):
        interrupted(store)
    assert store.position("aide").seq == 1
    store.write(Add("aide", [NewEntry(entry("two"))], now=NOON)).result()
    assert store.position("aide").seq == 2
    assert store.read(ScopeStatistics(Scope("aide", all_users=True), now=NOON)).active_entries == 2
    store.close()


# The writer.


def test_two_threads_that_leave_jobs_at_one_moment_wake_the_writing_thread(tmp_path):
    connections = FileTransactions(str(tmp_path / "a.db"))
    writer = Writer(connections)
    time.sleep(0.1)  # it sleeps now, without a time to wake at
    done = threading.Event()

    class Raced:
        lock, is_first = threading.Lock(), True

        def __enter__(self):
            self.lock.acquire()

        def __exit__(self, *_):
            self.lock.release()
            if self.is_first:  # the other comes in before this one looks whether it is the first
                self.is_first = False
                thread.start()
                thread.join()

    thread = threading.Thread(target=writer.submit_delayed, args=(lambda _on: None,))
    writer._lock = Raced()
    writer.submit_delayed(lambda _on: done.set())
    assert done.wait(5)
    writer.close()
    connections.close()


def test_a_store_closed_in_the_midst_of_its_own_write_lets_go_of_the_file(tmp_path):
    path = tmp_path / "a.db"
    store = SqliteStore(str(path))

    def close(_connection):
        store.close()  # as a signal handler does

    store._submit(None, close).result()
    store.close()
    until(lambda: not (tmp_path / "a.db-wal").exists())


@pytest.mark.timeout(20)
def test_a_signal_handler_that_writes_while_the_log_is_emptied_gets_an_error(tmp_path, monkeypatch):
    outcomes = []
    with Memory(tmp_path / "a.db", "aide", embedder=WordEmbedder(8)) as memory:
        first = memory.add("one")

        def write(*_):
            with pytest.raises(StoreError):
                memory.add("two")
            outcomes.append("refused")

        def interrupted(page, offset):
            if not outcomes:
                signal.raise_signal(signal.SIGUSR1)
            return zeroed(page, offset)

        zeroed = wal.zeroed
        monkeypatch.setattr(wal, "zeroed", interrupted)
        before = signal.signal(signal.SIGUSR1, write)
        try:
            assert memory.delete(first.id, permanent=True).erased
        finally:
            signal.signal(signal.SIGUSR1, before)
    assert outcomes == ["refused"]


@pytest.mark.timeout(20)
def test_a_signal_handler_that_reads_a_memory_only_store_in_a_write_gets_an_error():
    store = SqliteStore(":memory:")

    def read(_connection):
        with pytest.raises(StoreError):
            store.position("aide")  # as a signal handler does
        return "refused"

    assert store._submit(None, read).result() == "refused"
    store.close()


# Retries, and a clock that several threads read.


def test_searches_whose_clocks_differ_see_what_lives_then_and_load_nothing(monkeypatch):
    times = [0.0]

    def clock():
        return NOON + timedelta(seconds=times[0])

    with Memory(":memory:", "aide", embedder=WordEmbedder(8), clock=clock) as memory:
        memory.add(MemoryEntry("one", expires_at=NOON + timedelta(seconds=10)))
        memory.add("two")
        assert len(memory.search("one two")) == 2
        loaded = []

        def recorded(read, wanted, **options):
            loaded.append(wanted)
            return read(wanted, **options)

        replace_operation(monkeypatch, memory._repository._store, RowsSince, recorded)
        for seconds, found in [(20.0, ["two"]), (9.9, ["one", "two"]), (10.0, ["two"])]:
            times[:] = [seconds]
            assert sorted(hit.content for hit in memory.search("one two")) == found
        assert loaded == []
