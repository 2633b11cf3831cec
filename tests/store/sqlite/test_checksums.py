"""Checksums of rows, vectors and links, sealed ones too, and what a verification tells."""

import shutil
from uuid import UUID

import numpy as np
import pytest

from mnemic.errors import ReadOnlyError, SealBrokenError, StoreCorruptError
from mnemic.store.sqlite.opening import migrate
from tests.store.contract import AGENT, one, paged
from tests.store.sealing.places import SECRET, FilePlace, problems, sealed_and_plain
from tests.support.doors import opened
from tests.support.embedders import WordEmbedder
from tests.support.paths import FIXTURES
from tests.support.sealing import run

ALICE = {"user_id": "alice"}


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.db"
    with opened(made) as memory:
        first = memory.add("Likes tea", tags=["t"], metadata={"n": 1}, **ALICE, id=UUID(int=1))
        second = memory.add("Lives in Oslo", **ALICE, id=UUID(int=2), idempotency_key="k")
        memory.add("Has a dog", **ALICE, id=UUID(int=3))
        memory.link(first.id, second.id, **ALICE)
    return made


def test_memories_without_vectors_get_their_sums_with_them(tmp_path):
    path = tmp_path / "a.db"
    with opened(path, embedder=None) as memory:
        memory.add_many(["Likes tea", "Lives in Oslo"])
        assert memory.verify().ok
    with opened(path) as memory:
        assert memory.search("tea", limit=1)[0].content == "Likes tea"
        report = memory.verify()
        assert (report.ok, report.vectors) == (True, 2)


CELLS = {
    "content": "Likes cat",
    "metadata": '{"n":2}',
    "tags": '["u"]',
    "user_id": "bob",
    "id": UUID(int=9).bytes,
    "importance": 0.75,
    "created_at": 5,
    "updated_at": 5,
    "expires_at": 2**50,
    "forgotten_at": 5,
    "status": 1,
    "memory_type": 3,
    "speaker": "Eve",
    "version": 2,
    "is_sensitive": 1,
    "type_name": "int",
    "idempotency_key": "other",
    "fingerprint": b"0" * 16,
    "row_sum": 5,
    "vector_sum": 5,
    "link_sum": 5,
}


@pytest.mark.parametrize("column", CELLS)
def test_a_changed_cell_is_refused_at_opening_and_named_by_verify(path, column):
    sql = f"UPDATE agent_memory_entries SET {column} = ? WHERE row = 1"  # noqa: S608 - constants
    run(path, sql, CELLS[column])
    with pytest.raises(StoreCorruptError, match=r"restore a backup .*-wal"):
        opened(path)
    with opened(path, embedder=None) as memory:
        report = memory.verify()
    assert not report.ok
    assert "agent" in str(report.problems)


@pytest.mark.parametrize("column", ["content", "metadata", "user_id", "importance", "speaker"])
def test_a_changed_cell_is_refused_where_the_memory_is_read(path, column):
    sql = f"UPDATE agent_memory_entries SET {column} = ? WHERE row = 1"  # noqa: S608 - constants
    run(path, sql, CELLS[column])
    with opened(path, embedder=None) as memory:
        user = "bob" if column == "user_id" else "alice"
        with pytest.raises(StoreCorruptError, match=r"memory .*0001 in row 1 is not as it was st"):
            memory.get(UUID(int=1), user_id=user)
        with pytest.raises(StoreCorruptError):
            memory.list(user_id=user)
        with pytest.raises(StoreCorruptError):
            memory.update(UUID(int=1), importance=0.9, user_id=user)
        assert memory.get(UUID(int=2), **ALICE).content == "Lives in Oslo"


def test_a_damaged_memory_stays_damaged_whatever_is_done_with_it(path):
    run(path, "UPDATE agent_memory_entries SET content = 'Likes cat' WHERE row = 1")
    with opened(path, embedder=None) as memory:
        memory.delete(UUID(int=1), **ALICE)
        memory.restore(UUID(int=1), **ALICE)
        memory.link(UUID(int=1), UUID(int=3), **ALICE)
        memory.verify(repair=True)
        with pytest.raises(StoreCorruptError):
            memory.get(UUID(int=1), **ALICE)
        (problem,) = memory.verify().problems
        assert (problem.row, problem.id) == (1, UUID(int=1))


def test_a_vector_with_one_changed_bit_is_refused(path):
    vector = bytearray(run(path, "SELECT embedding FROM agent_memory_embeddings")[0][0])
    vector[5] ^= 1
    assert np.isfinite(np.frombuffer(bytes(vector), "<f4")).all()
    run(path, "UPDATE agent_memory_embeddings SET embedding = ? WHERE entry_row = 1", bytes(vector))
    with pytest.raises(StoreCorruptError, match="vectors of row 1"):
        opened(path)
    with opened(path, embedder=None) as memory:
        (problem,) = memory.verify().problems
        assert problem.id == UUID(int=1)


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_memories_of_an_earlier_version_get_sums_when_they_are_repaired(tmp_path, version):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / f"store_v{version}.db", path)
    with opened(path, agent_id="aide", embedder=WordEmbedder(dimensions=8)) as memory:
        before = memory.verify()
        assert before.ok
        assert before.without_sums == before.memories == 3
        assert memory.verify(repair=True).checksums_added == 3
        after = memory.verify()
        assert (after.ok, after.without_sums) == (True, 0)
    run(path, "UPDATE agent_memory_entries SET content = 'x' WHERE row = 1")
    with pytest.raises(StoreCorruptError):
        opened(path, agent_id="aide", embedder=WordEmbedder(dimensions=8))


def test_a_memory_of_an_earlier_version_gets_its_sums_when_it_is_rewritten(path):
    migrate(str(path), 5)
    with opened(path) as memory:
        assert memory.verify().without_sums == 3
        memory.update(UUID(int=1), importance=0.9, **ALICE)
        memory.update(UUID(int=2), content="Lives in Rome", **ALICE)
        memory.delete(UUID(int=3), **ALICE)
        report = memory.verify()
        assert (report.ok, report.without_sums) == (True, 1)
        memory.delete(UUID(int=2), permanent=True, **ALICE)
        memory.delete(UUID(int=3), permanent=True, **ALICE)
        assert memory.verify().ok


__all__ = ["path"]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM agent_memory_entries WHERE row = 2",
        "DELETE FROM agent_memory_embeddings WHERE entry_row = 2",
        "DELETE FROM agent_memory_links",
        "UPDATE agent_memory_entries SET row = 7 WHERE row = 3",
        "UPDATE agent_memory_embeddings SET entry_row = 9 WHERE entry_row = 2",
        "UPDATE agent_memory_embeddings SET model = 'other' WHERE entry_row = 2",
        "UPDATE agent_memory_links SET strength = 0.25",
        "UPDATE agent_memory_links SET to_row = 3",
        "UPDATE agent_memory_agents SET rows_sum = rows_sum + 1",
        "UPDATE agent_memory_agents SET summed_rows = 2",
        "UPDATE agent_memory_agents SET used_bytes = 5",
    ],
)
def test_lost_and_changed_rows_vectors_and_links_show(path, damage):
    run(path, damage)
    if "used_bytes" not in damage:
        with pytest.raises(StoreCorruptError):
            opened(path)
    with opened(path, embedder=None) as memory:
        assert not memory.verify().ok


def test_repair_takes_what_is_left_for_all_there_is_after_saying_what_is_missing(path):
    run(path, "DELETE FROM agent_memory_entries WHERE row = 3")
    run(path, "DELETE FROM agent_memory_embeddings WHERE entry_row = 3")
    with opened(path, embedder=None) as memory:
        report = memory.verify(repair=True)
        assert not report.ok
        assert report.repaired_agents == ("default",)
        assert [problem.what for problem in report.problems[-2:]] == [
            "has 22 bytes of content, and 31 were counted",
            "has 22 bytes of content of user 'alice', and 31 were counted",
        ]
        assert memory.verify().problems == ()
    with opened(path) as memory:
        assert memory.count(**ALICE) == 2


def test_an_index_that_leads_elsewhere_is_found(path):
    content = path.read_bytes()
    key = UUID(int=2).bytes
    places = [at for at in range(len(content)) if content.startswith(key, at)]
    found = 0
    for place in places:
        path.write_bytes(content[:place] + UUID(int=8).bytes + content[place + 16 :])
        with opened(path, embedder=None, read_only=True) as memory:
            is_found = not memory.verify().ok
        if is_found:
            with pytest.raises(StoreCorruptError, match="restore a backup"):
                opened(path, embedder=WordEmbedder())
        found += is_found
    assert found >= 3  # the row and two indexes; changes only tell what to read again


def test_verify_tells_how_far_it_is_and_needs_writing_for_repair_alone(path):
    told = []
    with opened(path, read_only=True, embedder=None) as memory:
        assert memory.verify(progress=told.append).ok
        with pytest.raises(ReadOnlyError):
            memory.verify(repair=True)
    assert told == [3]


@pytest.fixture
def place(tmp_path):
    made = FilePlace(tmp_path)
    sealed_and_plain(made)
    yield made
    made.drop()


@pytest.mark.requirement("C145", "C179")
@pytest.mark.parametrize("right_sums", [False, True], ids=["wrong sums", "right sums"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", bytes(15) + b"\x09"),
        ("project_id", "other"),
        ("session_id", "other"),
        ("importance", 0.25),
        ("fingerprint", bytes(16)),
    ],
)
def test_other_columns_changed_are_noticed_by_their_checksum(place, name, value, right_sums):
    """With right sums, those that are not sealed are what they seem, and show nothing of others."""
    place.put(name, value, 1)
    if right_sums:
        place.make_sums_right()
    store, number = place.open(), 9 if name == "id" else 1
    if right_sums and name != "id":
        assert one(store, AGENT, number).content == f"{SECRET} 1"
        return
    with pytest.raises(SealBrokenError):
        one(store, AGENT, number)
    assert paged(store) == [2, 3, 4]


def test_a_vector_missing_of_a_sealed_entry_is_noticed(place):
    place.run("DELETE FROM agent_memory_embeddings WHERE entry_row = 1")
    assert problems(place.open())
