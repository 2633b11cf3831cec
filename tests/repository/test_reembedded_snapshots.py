"""Snapshots of indexes after a re-embedding: none of an earlier state of the vectors is used."""

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.index import faiss_source
from mnemic.index.choice import FaissIndex
from mnemic.repository.index_snapshots import IndexSnapshots
from mnemic.vectors import FaissOptions
from tests.repository.test_index_snapshots import saved
from tests.repository.test_reembedding import Embedder, Turned

pytestmark = [
    pytest.mark.requirement("R339", "C094"),
    pytest.mark.usefixtures("small_snapshots"),
]

OWN = np.ones(64, np.float32)


def best(memory, text):
    (hit,) = memory.search(text, search_type="semantic", limit=1)
    return hit.content, pytest.approx(hit.components["similarity"], abs=1e-6)


def filled(path, **options):
    """Store memories of which one has a vector of its own, and save a snapshot of the index."""
    with Memory(path, embedder=Embedder(), **options) as memory:
        memory.add_many([f"tea number{at}" for at in range(40)])
        memory.add(MemoryEntry("its own", embedding=OWN))
        saved(memory)


@pytest.mark.parametrize("is_closed_between", [True, False])
def test_a_snapshot_of_before_two_changes_of_the_model_gives_no_old_vector(
    tmp_path, is_closed_between
):
    path = tmp_path / "a.db"
    filled(path)
    with Memory(path, embedder=Embedder()) as memory:
        assert best(memory, "its own")[1] != 1.0
        memory.reembed(Turned())
        memory.drop_vectors()
        if not is_closed_between:
            memory.reembed(Embedder())
    if is_closed_between:
        with Memory(path, embedder=Embedder(), reembed=True) as memory:
            memory.reembed()
    for _ in range(2):
        with Memory(path, embedder=Embedder()) as memory:
            assert best(memory, "its own") == ("its own", 1.0)
            assert best(memory, "tea number7") == ("tea number7", 1.0)
            saved(memory)


def test_an_index_of_the_new_vectors_is_saved_and_loaded(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    filled(path)
    with Memory(path, embedder=Embedder()) as memory:
        memory.reembed(Turned())
        saved(memory)
    loaded, restored = [], IndexSnapshots.restored
    monkeypatch.setattr(
        IndexSnapshots, "restored", lambda self: loaded.append(restored(self)) or loaded[-1]
    )
    with Memory(path, embedder=Turned()) as memory:
        assert best(memory, "tea number7") == ("tea number7", 1.0)
    assert loaded[0] is not None


def test_an_opening_that_slept_through_two_changes_of_the_model_reads_all_vectors_again(tmp_path):
    path = tmp_path / "a.db"
    filled(path)
    with Memory(path, embedder=Embedder()) as sleeper:
        assert best(sleeper, "its own")[1] != 1.0
        with Memory(path, embedder=Embedder()) as memory:
            memory.reembed(Turned())
            memory.drop_vectors()
            memory.reembed(Embedder())
        assert best(sleeper, "its own") == ("its own", 1.0)
        assert best(sleeper, "tea number7") == ("tea number7", 1.0)


def test_no_approximate_index_of_the_old_vectors_is_used(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    monkeypatch.setattr(faiss_source, "MIN_ANEW_SECONDS", 0.0)
    monkeypatch.setattr(faiss_source, "ANEW_SHARE", 0.0)
    options = {"index": FaissOptions(links=8, build_depth=40, search_depth=400), "exact_limit": 5}
    path = tmp_path / "a.db"
    filled(path, **options)
    with Memory(path, embedder=Embedder(), **options) as memory:
        memory.index.wait()
        memory.reembed(Turned())
        assert memory.index.wait()
        assert best(memory, "its own") == ("its own", 1.0)
        assert memory.index.audit(k=3).recall == 1.0
        saved(memory)
        memory.drop_vectors()
        memory.reembed(Embedder())
    numbers, add = [], FaissIndex.add

    def counted(self, vectors):
        numbers.append(len(vectors))
        add(self, vectors)

    monkeypatch.setattr(FaissIndex, "add", counted)
    with Memory(path, embedder=Embedder(), **options) as memory:
        assert memory.index.wait()
        assert sum(numbers) == 41  # reread, and not from the file of before both changes
        assert best(memory, "its own") == ("its own", 1.0)
        assert memory.index.audit(k=3).recall == 1.0
