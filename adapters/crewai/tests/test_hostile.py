"""Two users of one file, deletions that stay, and a writer that is killed."""

import killed
import pytest
from crewai.memory.types import MemoryRecord
from crewai_mnemic import MnemicStorage

NORTH = [1.0, 0.0]
PRIVATE = "The code of the vault is 4711"


def record(content, scope="/x", **fields):
    return MemoryRecord(content=content, scope=scope, embedding=NORTH, **fields)


def all_answers(storage):
    """What a user can learn by any call."""
    info = storage.get_scope_info("/")
    return (
        [(each.id, each.content, score) for each, score in storage.search(NORTH, limit=100)],
        [each.model_dump() for each in storage.list_records()],
        storage.get_record("shared id"),
        info.model_dump(),
        (storage.list_scopes(), storage.list_categories(), storage.count()),
    )


@pytest.mark.parametrize("bound", [None, "bob"])
def test_what_one_user_does_changes_nothing_of_another(tmp_path, bound):
    path = tmp_path / "memories.db"
    bob = MnemicStorage(path, user_id=bound)
    bob.save([record("bob's own", id="shared id", categories=["b"])])
    before = all_answers(bob)
    alice = MnemicStorage(path, user_id="alice")
    alice.save([record(PRIVATE, "/x/alice", id="shared id", categories=["a"])])
    alice.save([record("more", id=str(at)) for at in range(20)])
    alice.touch_records(["shared id"])
    alice.update(record("changed", id="shared id", private=True))
    assert all_answers(bob) == before
    assert bob.delete(record_ids=["1", "2"]) == 0
    assert bob.delete(categories=["a"]) == 0
    assert alice.delete() == 21
    assert all_answers(bob) == before
    bob.reset()
    assert (alice.count(), bob.count()) == (0, 0)
    alice.close()
    bob.close()


@pytest.mark.parametrize("scope", ["/x' OR scope <> '", "%", "_", "/\\", "/x/../y", "*", "/X"])
def test_no_scope_reaches_another(tmp_path, scope):
    storage = MnemicStorage(tmp_path / "memories.db")
    storage.save([record(PRIVATE, "/x"), record("another", "/y")])
    assert storage.search(NORTH, scope_prefix=scope) == []
    assert storage.list_records(scope) == []
    assert storage.delete(scope_prefix=scope) == 0
    storage.reset(scope)
    assert storage.count() == 2
    storage.close()


@pytest.mark.parametrize("how", ["delete", "reset", "update"])
def test_what_is_deleted_is_gone_from_the_file_and_stays_so(tmp_path, how):
    path = tmp_path / "memories.db"
    storage = MnemicStorage(path)
    storage.save([record(PRIVATE, id="1"), record("kept", "/y", id="2")])
    {
        "delete": lambda: storage.delete(record_ids=["1"]),
        "reset": lambda: storage.reset("/x"),
        "update": lambda: storage.update(record("new", id="1")),
    }[how]()
    storage.close()
    again = MnemicStorage(path)
    assert PRIVATE not in str(all_answers(again))
    assert "kept" in str(all_answers(again))
    again.close()
    for file in tmp_path.iterdir():
        assert PRIVATE.encode() not in file.read_bytes()


WRITER = """
import sys
from crewai.memory.types import MemoryRecord
from crewai_mnemic import MnemicStorage
storage = MnemicStorage(sys.argv[1])
for at in range(100_000):
    storage.save([MemoryRecord(id=str(at), content=f"note {at}", embedding=[1.0, float(at)])])
    print(at, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path):
    path = tmp_path / "memories.db"
    last = int(killed.lines_of(WRITER, path, least=200)[-1])
    storage = MnemicStorage(path)
    stored = {each.content for each in storage.list_records(limit=100_000)}
    assert {f"note {at}" for at in range(last + 1)} <= stored
    assert len(storage.search([1.0, 0.0], limit=10_000)) == len(stored)
    storage.close()
