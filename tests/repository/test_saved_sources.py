"""Approximate indexes beside the file: opened, or built from the snapshot of the memories."""

import logging
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.index import choice, faiss_source
from mnemic.index.choice import FaissIndex
from mnemic.index.saved_index import read_index
from mnemic.repository import index_snapshots
from mnemic.repository.index_snapshots import IndexSnapshots
from mnemic.store.operations import RowsSince, VectorsById
from mnemic.store.sqlite.store import SqliteStore
from mnemic.vectors import FaissOptions
from tests.index.test_saved_index import write_product_codes
from tests.repository.test_index_snapshots import entry, saved
from tests.support.embedders import WordEmbedder
from tests.support.failing_embedders import FailingEmbedder
from tests.support.operations import replace_operation_of_all
from tests.support.processes import ENVIRONMENT
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("small_snapshots")

KINDS = {
    "hnsw": FaissOptions(links=8, build_depth=40, search_depth=400),
    "flat": FaissOptions("flat"),
}
PATIENCE = 60


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """Build indexes anew as soon as they are due."""
    monkeypatch.setattr(faiss_source, "MIN_ANEW_SECONDS", 0.0)
    monkeypatch.setattr(faiss_source, "ANEW_SHARE", 0.0)


@pytest.fixture
def added(monkeypatch):
    """The numbers of vectors that were added to indexes of FAISS."""
    numbers, add = [], FaissIndex.add

    def counted(self, vectors):
        numbers.append(len(vectors))
        add(self, vectors)

    monkeypatch.setattr(FaissIndex, "add", counted)
    return numbers


@pytest.fixture
def never_read(monkeypatch):
    """Refuse to read all rows of the store from now on."""

    def checked(read, store, wanted, **named):
        assert wanted.seq is not None, "all rows were read"
        return read(store, wanted, **named)

    return lambda: replace_operation_of_all(monkeypatch, SqliteStore, RowsSince, checked)


def opened(path, kind="hnsw", **options):
    chosen = {"index": KINDS[kind], "exact_limit": 0, "track_access": False}
    embedder = WordEmbedder(dimensions=16)
    return Memory(path, **{"embedder": embedder, **chosen, **options})


def filled(memory, count=300, *, sensitive=False):
    draw = random.Random(0)  # noqa: S311 - no secret
    for user in ("ann", "bob"):
        entries = [entry(number, draw) | {"sensitive": False} for number in range(count)]
        if sensitive:
            entries[7]["sensitive"] = True
        memory.add_many(entries, user_id=user)
    return memory


def built(memory):
    """Return the memory with all vectors in its approximate index."""
    memory.search("begin", user_id="ann")
    assert memory.index.wait(timeout=PATIENCE)
    return memory


def saved_source(memory):
    """Save a memory's indexes, both of the same change."""
    built(memory)
    saved(memory)
    snapshots = memory.repository._indexes.active.own.model.snapshots
    until(lambda: saved(memory) and not snapshots._lacks_source)
    return memory


def files(memory):
    folder = Path(memory.repository._store.snapshot_folder)
    found = [*folder.glob("*.index"), *folder.glob("*.faiss")] if folder.exists() else []
    return sorted(found, key=lambda path: path.suffix)


def source_file(path):
    (found,) = Path(f"{path}-index").glob("*.faiss")
    return found


def answers(memory):
    found = {}
    for query in ("bale", "ding fon", "What did Bob say of nest rest"):
        for kind in ("hybrid", "semantic"):
            hits = memory.search(query, user_id="ann", limit=10, search_type=kind)
            assert hits.approximate
            found[query, kind] = [(hit.id, hit.score) for hit in hits]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_an_opened_index_answers_as_the_saved_one_without_being_built(
    tmp_path, kind, added, never_read
):
    path = tmp_path / "a.db"
    with opened(path, kind) as memory:
        wanted = answers(saved_source(filled(memory)))
    assert sum(added) > 0
    added.clear()
    never_read()
    with opened(path, kind) as memory:
        assert answers(built(memory)) == wanted
        assert memory.index.info().indexed == 600
    assert not added


def test_changes_after_the_file_was_saved_are_in_the_opened_index(tmp_path, added, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        filled(memory)
        gone = memory.add("bale bale bale", user_id="ann")
        saved_source(memory)
        monkeypatch.setattr(index_snapshots, "MIN_ROWS", 10**9)  # no further one is saved
        memory.delete(gone.id, user_id="ann")
        kept = memory.add("gure gure gure", user_id="ann")
    added.clear()
    with opened(path) as memory:
        built(memory)
        hits = memory.search("gure gure", user_id="ann", search_type="semantic", limit=3)
        assert hits.approximate
        assert kept.id in [hit.id for hit in hits]
        hits = memory.search("bale bale", user_id="ann", search_type="semantic", limit=50)
        assert gone.id not in [hit.id for hit in hits]
    assert sum(added) == 1


def damaged(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut_off(path):
    os.truncate(path, path.stat().st_size // 2)


def of_a_kind_that_is_gone(path):
    write_product_codes(str(path), read_index(str(path), KINDS["hnsw"], 16).label)


@pytest.mark.parametrize("spoil", [damaged, cut_off, of_a_kind_that_is_gone, Path.unlink])
def test_an_index_whose_file_is_of_no_use_is_built_from_the_snapshot(
    tmp_path, spoil, added, caplog, never_read
):
    caplog.set_level(logging.INFO, "mnemic")
    path = tmp_path / "a.db"
    with opened(path) as memory:
        wanted = answers(saved_source(filled(memory)))
    spoil(source_file(path))
    never_read()
    added.clear()
    with opened(path) as memory:
        assert answers(built(memory)) == wanted
    assert sum(added) >= 600
    assert ("is not used" in caplog.text) == (spoil is not Path.unlink)


def test_an_index_of_another_state_is_built_from_the_snapshot(tmp_path, added, caplog, never_read):
    caplog.set_level(logging.INFO, "mnemic")
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved_source(filled(memory))
        older = source_file(path).read_bytes()
        memory.add("bale ding", user_id="ann")
        wanted = answers(saved_source(memory))
    source_file(path).write_bytes(older)
    never_read()
    added.clear()
    with opened(path) as memory:
        assert answers(built(memory)) == wanted
    assert sum(added) >= 601
    assert "another state of the index" in caplog.text


def test_an_index_of_other_options_is_built_anew(tmp_path, added):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved_source(filled(memory))
    added.clear()
    with opened(path, "flat") as memory:
        assert built(memory).index.info().kind == "flat"
    assert sum(added) >= 600


def vectors_of(memory, entry_ids):
    found = memory.repository._store.read(
        VectorsById(
            "default",
            {("ann", each) for each in entry_ids},
            memory.repository._indexes.active.own.model.known[0],
        )
    )
    return [each.vectors for each in found.values() if each.vectors is not None]


def bytes_of(vector, kind):
    """Return the bytes of a vector as an index of FAISS has them."""
    wide = vector.astype(np.float64)
    unit = (wide / np.linalg.norm(wide)).astype(np.float32)
    return unit.astype(np.float16 if kind == "hnsw" else np.float32).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_sensitive_or_removed_is_in_the_file(tmp_path, kind):
    path = tmp_path / "a.db"
    with opened(path, kind) as memory:
        filled(memory)
        secret = memory.add("kale kale nure", user_id="ann", sensitive=True)
        gone = memory.add("fing fing mest", user_id="ann")
        plain = memory.add("sale sale lon", user_id="ann")
        vectors = [vectors_of(memory, [each.id]) for each in (secret, gone, plain)]
        built(memory)
        memory.delete(gone.id, user_id="ann", permanent=True)
        saved_source(memory)
        content = source_file(path).read_bytes()
    is_in = [bytes_of(found[0][0], kind) in content for found in vectors]
    assert is_in == [False, False, True]
    with opened(path, kind) as memory:  # the sensitive one comes from the store
        hits = built(memory).search("kale nure", user_id="ann", search_type="semantic", limit=3)
        assert hits.approximate
        assert secret.id in [hit.id for hit in hits]


def is_saved(sync):
    """Save the indexes as they are, without embedding anything; return whether both were saved."""
    snapshot, snapshots = sync.own.native.snapshot(), sync.own.model.snapshots
    if snapshot.source is None:
        return False
    try:
        return snapshots.save(snapshot, sync.accesses.written) and not snapshots._lacks_source
    finally:
        snapshot.source.release()


@pytest.mark.parametrize("kind", KINDS)
def test_no_vector_of_a_text_that_was_overwritten_is_in_the_file(tmp_path, kind):
    path, embedder = tmp_path / "a.db", FailingEmbedder(16)
    with opened(path, kind, embedder=embedder) as memory:
        changed = filled(memory).add("fing fing mest", user_id="ann")
        old = bytes_of(vectors_of(memory, [changed.id])[0][0], kind)
        built(memory)
        embedder.is_down = True
        memory.update(changed.id, content="kale nure", user_id="ann", on_embed_error="pending")
        sync = memory.repository._indexes.active
        sync.apply_changes()
        assert len(sync.own.unembedded()) == 1
        until(lambda: is_saved(sync))
        assert old not in source_file(path).read_bytes()


def test_an_older_index_goes_when_the_snapshot_is_saved_without_one(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        plain = filled(memory).add("fing fing mest", user_id="ann")
        saved_source(memory)
        monkeypatch.setattr(faiss_source, "MIN_ANEW_SECONDS", 10**6)
        changed = MemoryEntry("fing fing mest", id=plain.id, user_id="ann", sensitive=True)
        memory.add_many([changed], user_id="ann", on_conflict="replace")
        built(memory)
        saved(memory)
        assert [file.suffix for file in files(memory)] == [".index"]


def test_an_index_that_cannot_be_built_from_the_snapshot_is_not_awaited(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved_source(filled(memory))
    source_file(path).unlink()

    def failing(_snapshot):
        yield from ()
        raise MemoryError

    monkeypatch.setattr(index_snapshots, "_parts", failing)
    with opened(path) as memory:
        assert memory.search("bale", user_id="ann", search_type="semantic")
        begun = time.monotonic()
        memory.index.wait(timeout=PATIENCE)
        assert time.monotonic() - begun < PATIENCE / 2
        assert not memory.index.info().proposes


def test_a_permanent_deletion_removes_the_file_before_it_is_erased(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        gone = filled(memory).add("fing fing mest", user_id="ann")
        saved_source(memory)
        monkeypatch.setattr(index_snapshots, "MIN_ROWS", 10**9)
        assert memory.delete(gone.id, user_id="ann", permanent=True).erased
        assert not files(memory)


def test_an_index_with_a_removed_vector_is_not_made_anew_too_often(tmp_path, monkeypatch):
    monkeypatch.setattr(faiss_source, "MIN_ANEW_SECONDS", 10**6)
    with opened(tmp_path / "a.db") as memory:
        gone = filled(memory).add("fing fing mest", user_id="ann")
        built(memory)
        memory.delete(gone.id, user_id="ann", permanent=True)
        built(memory)
        saved(memory)
        assert [path.suffix for path in files(memory)] == [".index"]


def test_a_search_is_exact_while_the_file_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved_source(filled(memory))
    read = faiss_source.read_index

    def slow(*given, **named):
        time.sleep(1.0)
        return read(*given, **named)

    monkeypatch.setattr(faiss_source, "read_index", slow)
    with opened(path) as memory:
        begun = time.monotonic()
        hits = memory.search("bale", user_id="ann", search_type="semantic")
        assert time.monotonic() - begun < 0.9
        assert not hits.approximate
        info = memory.index.info()
        assert (info.proposes, info.waiting) == (False, 600)
        added = memory.add("bale gure", user_id="ann")
        assert memory.index.wait(timeout=PATIENCE)
        hits = memory.search("bale gure", user_id="ann", search_type="semantic")
        assert hits.approximate
        assert hits[0].id == added.id


def test_closing_ends_the_reading_of_a_file(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        saved_source(filled(memory))
    pieces = []
    verified = faiss_source.read_index.__globals__["_verified"]

    def slow(file, is_stopped):
        while not is_stopped():
            pieces.append(0)
            time.sleep(0.01)
        return verified(file, is_stopped)

    monkeypatch.setitem(faiss_source.read_index.__globals__, "_verified", slow)
    with opened(path) as memory:
        memory.search("bale", user_id="ann")
        assert memory.index.info().waiting
    assert source_file(path).exists()


def test_an_automatic_index_is_opened_from_its_file_once_it_is_large(tmp_path, added, monkeypatch):
    monkeypatch.setattr(choice, "AUTO_LIMIT", 100)
    path = tmp_path / "a.db"
    with opened(path, index="auto") as memory:
        filled(memory).search("begin", user_id="ann")
        until(lambda: memory.index.info().kind == "hnsw")
        wanted = answers(saved_source(memory))
    added.clear()
    with opened(path, index="auto") as memory:
        assert answers(built(memory)) == wanted
    assert not added
    monkeypatch.setattr(choice, "AUTO_LIMIT", 10_000)
    with opened(path, index="auto") as memory:
        assert not memory.search("bale", user_id="ann", search_type="semantic").approximate


def test_indexes_are_saved_in_the_background_once_they_are_built(tmp_path):
    with opened(tmp_path / "a.db") as memory:
        built(filled(memory))
        until(lambda: memory.search("bale", user_id="ann") and len(files(memory)) == 2)


WRITER = """
import sys
from tests.repository.test_saved_sources import filled, opened, saved_source
from mnemic.index import faiss_source
from mnemic.repository import index_snapshots
for name, value in (("MIN_ROWS", 1), ("MIN_CHANGES", 1), ("CHECK_SECONDS", 0.0)):
    setattr(index_snapshots, name, value)
faiss_source.MIN_ANEW_SECONDS = faiss_source.ANEW_SHARE = 0.0
with opened(sys.argv[1]) as memory:
    filled(memory)
    print("begun", flush=True)
    for number in range(1_000_000):
        memory.add(f"bale gure {number}", user_id="ann")
        saved_source(memory)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_process_killed_while_it_saves_leaves_answers_as_they_are(tmp_path, seed):
    path = tmp_path / "a.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
        assert writer.stdout.readline() == b"begun\n"
        time.sleep(0.3 + random.Random(seed).random())  # noqa: S311 - no secret
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    with opened(path, index="exact") as memory:
        wanted = memory.search("bale gure", user_id="ann", search_type="semantic", limit=10)
    with opened(path) as memory:
        found = built(memory).search("bale gure", user_id="ann", search_type="semantic", limit=10)
        assert found.approximate
        assert [hit.score for hit in found] == [hit.score for hit in wanted]


def test_two_processes_save_and_open_the_same_file(tmp_path):
    path = tmp_path / "a.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, env=ENVIRONMENT)
    try:
        assert writer.stdout.readline() == b"begun\n"
        for _ in range(5):
            with opened(path) as memory:
                built(memory)
                found = memory.search("bale gure", user_id="ann", search_type="semantic")
                assert len(found) == 10
    finally:
        writer.kill()
        writer.wait()
        writer.stdout.close()


def test_a_snapshot_of_an_exact_memory_serves_an_approximate_one(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    with opened(path, index="exact") as memory:
        filled(memory).search("bale", user_id="ann")
        saved(memory)
    restored, sizes = IndexSnapshots.restored, []

    def counted(self):
        found = restored(self)
        sizes.append(0 if found is None else len(found.core))
        return found

    monkeypatch.setattr(IndexSnapshots, "restored", counted)
    with opened(path) as memory:
        assert answers(built(memory))
    assert sizes[0] == 600


def test_a_memory_that_keeps_no_snapshots_reads_and_writes_none(tmp_path, added):
    path = tmp_path / "a.db"
    with opened(path, snapshots=False) as memory:
        wanted = answers(built(filled(memory)))
        assert not files(memory)
    with opened(path) as memory:
        saved_source(memory)
        kept = [(file, file.read_bytes()) for file in files(memory)]
    added.clear()
    with opened(path, snapshots=False) as memory:
        memory.add("bale ding", user_id="bob")
        assert answers(built(memory)) == wanted
    assert sum(added) >= 600
    assert [(file, file.read_bytes()) for file, _ in kept] == kept
