"""Writes whose connection is lost at the commit, before its answer or before the commit itself."""

from uuid import UUID

import pytest

from mnemic import Memory
from mnemic.errors import DuplicateEntryError, OutcomeUnknownError
from tests.support.cutting_proxy import Proxy
from tests.support.embedders import WordEmbedder

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


def test_a_memory_without_a_key_is_stored_or_not_and_the_caller_told_that_it_is_unknown(
    memory, witness, proxy, lose_commit
):
    is_stored = lose_commit()
    with pytest.raises(OutcomeUnknownError, match="look before writing it again"):
        memory.add("an apple")
    assert proxy.cuts == 1
    assert found(witness) == ["an apple"] * is_stored
    hits = memory.search("apple", search_type="keyword")
    assert [hit.content for hit in hits] == found(witness)
    memory.add("bread")
    assert sorted(found(witness)) == ["an apple"] * is_stored + ["bread"]


def test_many_memories_are_stored_all_or_none(memory, witness, lose_commit):
    number = 60 * lose_commit()
    with pytest.raises(OutcomeUnknownError):
        memory.add_many([f"memory {at}" for at in range(60)])
    assert witness.count() == memory.count() == number
    assert len(memory.search("memory", limit=100)) == number


def test_a_memory_with_a_key_is_stored_once_however_often_it_is_written(
    memory, witness, proxy, lose_commit
):
    lose_commit()
    stored = repeated(lambda: memory.add("an apple", idempotency_key="k"))
    assert proxy.cuts == 1
    assert memory.add("an apple", idempotency_key="k").id == stored.id
    assert [entry.id for entry in witness.list()] == [stored.id]


def test_a_memory_with_an_id_is_stored_once_however_often_it_is_written(
    memory, witness, proxy, lose_commit
):
    lose_commit()
    stored = repeated(lambda: memory.add("an apple", id=ID, on_conflict="skip"))
    assert proxy.cuts == 1
    assert stored.id == ID
    with pytest.raises(DuplicateEntryError):
        memory.add("an apple", id=ID)
    assert found(witness) == ["an apple"]


def repeated(write):
    """Write, and once more if the caller is told to: with an id or a key that is safe."""
    try:
        return write()
    except OutcomeUnknownError:
        return write()


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


def test_a_read_whose_connection_is_lost_is_answered_by_another_one(memory, proxy):
    memory.add_many([f"memory {at}" for at in range(7)])
    proxy.cut_after("SELECT 7")
    assert len(memory.list()) == 7
    assert proxy.cuts == 1
