"""Writes whose connection is lost at the commit, before its answer or before the commit itself."""

from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest

from mnemic import Encryption, Memory, MemoryEntry
from mnemic.errors import DuplicateEntryError, OutcomeUnknownError
from mnemic.model import Scope
from mnemic.store.postgres import connections
from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.session import Connection, Session
from tests.store.contract import row_of
from tests.support.clock import NOON
from tests.support.cutting_proxy import Proxy
from tests.support.embedders import WordEmbedder
from tests.support.keys import KEY

ID = UUID(int=1)


@pytest.fixture
def proxy(database):
    with Proxy(database) as between:
        yield between


@pytest.fixture
def memory(proxy):
    with Memory(proxy.url, embedder=WordEmbedder()) as opened:
        yield opened


@pytest.fixture
def witness(database):
    """Return a memory that sees what the server has, by a way of its own."""
    with Memory(database, embedder=WordEmbedder()) as opened:
        yield opened


def found(witness):
    return [entry.content for entry in witness.list()]


@pytest.fixture(params=["after", "before"])
def lose_commit(request, proxy):
    """Return what has the next connection lost after a commit or before; it says if it is done."""

    def lose():
        if request.param == "after":
            proxy.cut_after_commit()
        else:
            proxy.cut_before_commit()
        return request.param == "after"

    return lose


def test_a_memory_is_stored_once_and_the_caller_sees_nothing_of_it(
    memory, witness, proxy, lose_commit
):
    lose_commit()
    stored = memory.add("an apple")
    assert proxy.cuts == 1
    assert [entry.id for entry in witness.list()] == [stored.id]
    hits = memory.search("apple", search_type="keyword")
    assert [hit.content for hit in hits] == ["an apple"]
    memory.add("bread")
    assert sorted(found(witness)) == ["an apple", "bread"]


def test_reads_that_write_accesses_first_have_their_answer(memory, proxy):
    one = memory.add("an apple")
    store = memory.repository._store
    store.touch("default", [row_of(store, Scope("default"), one.id, now=NOON)], NOON)
    proxy.cut_after("COMMIT")
    assert store.write_accesses().result() is None
    assert proxy.cuts == 1
    assert memory.get(one.id).access_count == 1


def test_an_opening_that_makes_a_key_is_no_concern_of_the_caller(proxy, lose_commit):
    lose_commit()
    sealing = Encryption(KEY, encrypt_all=True)
    with Memory(proxy.url, "eve", embedder=WordEmbedder(), encryption=sealing) as memory:
        assert proxy.cuts == 1
        one = memory.add("an apple")
    with Memory(proxy.url, "eve", embedder=WordEmbedder(), encryption=sealing) as memory:
        assert memory.get(one.id).content == "an apple"
        assert memory.verify().ok


def test_many_memories_are_stored_once(memory, witness, lose_commit):
    lose_commit()
    assert len(memory.add_many([f"memory {at}" for at in range(60)])) == 60
    assert witness.count() == memory.count() == 60
    assert len(memory.search("memory", limit=100)) == 60


def test_a_memory_with_a_key_or_an_id_is_stored_once(memory, witness, proxy, lose_commit):
    lose_commit()
    stored = memory.add("an apple", id=ID, idempotency_key="k")
    assert (stored.id, proxy.cuts) == (ID, 1)
    assert memory.add("an apple", idempotency_key="k").id == ID
    with pytest.raises(DuplicateEntryError):
        memory.add("an apple", id=ID)
    assert found(witness) == ["an apple"]


def test_a_memory_that_another_program_deleted_meanwhile_is_not_stored_again(
    memory, witness, proxy, monkeypatch
):
    proxy.cut_after_commit()
    wait = Connections._wait

    def delete():
        for entry in witness.list():
            witness.delete(entry.id, permanent=True)

    def delete_and_wait(connections, deadline):
        with ThreadPoolExecutor(1) as other:  # this thread is in the midst of a write
            other.submit(delete).result()
        wait(connections, deadline)

    monkeypatch.setattr(Connections, "_wait", delete_and_wait)
    memory.add("an apple")
    assert found(witness) == []


def test_a_server_that_stays_away_leaves_the_outcome_unknown(memory, proxy, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 0.001)
    proxy.cut_after_commit()
    with pytest.raises(OutcomeUnknownError, match="look before writing it again"):
        memory.add("an apple")


def test_a_replacement_is_made_once_or_not_at_all_and_the_caller_told_so(
    memory, witness, lose_commit
):
    memory.add("an apple", id=ID)
    is_made = lose_commit()
    with pytest.raises(OutcomeUnknownError, match="look before writing"):
        memory.add_many([MemoryEntry("bread", id=ID)], on_conflict="replace")
    assert found(witness) == (["bread"] if is_made else ["an apple"])


def test_an_update_is_made_once_or_not_at_all(memory, witness, lose_commit):
    one = memory.add("an apple", tags=["a"])
    is_made = lose_commit()
    with pytest.raises(OutcomeUnknownError):
        memory.update(one.id, add_tags=["b"])
    kept = witness.get(one.id)
    assert (set(kept.tags), kept.version) == (({"a", "b"}, 2) if is_made else ({"a"}, 1))
    assert memory.get(one.id).tags == kept.tags


def test_a_connection_that_is_lost_before_the_commit_is_no_concern_of_the_caller(
    memory, witness, proxy
):
    proxy.cut_after("INSERT 0 1")
    memory.add("an apple")
    assert proxy.cuts == 1
    assert found(witness) == ["an apple"]


def test_a_connection_that_is_lost_once_all_is_committed_has_nothing_written_again(
    memory, witness, proxy, monkeypatch
):
    renew = Connection.renew_statements

    def lose(connection):
        if connection.prepare_threshold is None:
            proxy.cut_after("BEGIN")
        renew(connection)

    monkeypatch.setattr(Connection, "renew_statements", lose)
    undo = Session.undo
    monkeypatch.setattr(Session, "run", undone_once(Session.run, undo))
    memory.add("an apple")
    assert proxy.cuts == 1
    assert found(witness) == ["an apple"]


def undone_once(run, undo):
    """Return `Session.run` that undoes a part of the transaction before it commits."""

    def runs(session, sql, *values):
        if sql == "COMMIT":
            session.savepoint()
            positions = session.positions
            undo(session)
            session.positions = positions
        return run(session, sql, *values)

    return runs


def test_a_read_whose_connection_is_lost_is_answered_by_another_one(memory, proxy):
    memory.add_many([f"memory {at}" for at in range(7)])
    proxy.cut_after("SELECT 7")
    assert len(memory.list()) == 7
    assert proxy.cuts == 1


def test_memories_that_one_call_stores_and_changes_are_stored_once(memory, witness, lose_commit):
    lose_commit()
    memory.add_many([{"content": "an apple", "id": ID}, {"content": "bread", "supersedes": ID}])
    assert witness.count() == 1
    other = UUID(int=2)
    lose_commit()
    twice = [{"content": "honey", "id": other}, {"content": "jam", "id": other}]
    memory.add_many(twice, on_conflict="replace")
    assert witness.get(other).version == 2
