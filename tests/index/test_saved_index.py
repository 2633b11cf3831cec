"""An approximate index in a file: what it holds, and that nothing damaged reaches the library."""

import os
import stat
import struct
import threading
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from mnemic.errors import StoreError, StoreFullError
from mnemic.index import faiss_source, saved_index
from mnemic.index.base import InitialVectors
from mnemic.index.choice import KINDS, FaissIndex, FaissOptions, faiss_library
from mnemic.index.faiss_source import FaissSource
from mnemic.index.saved_index import SavedIndex, SavedIndexError, read_index
from mnemic.new_files import new_file
from tests.support.paths import names_in
from tests.support.small_disks import small_disk

DIM = 16


def drawn(number, seed=0):
    return np.random.default_rng(seed).standard_normal((number, DIM)).astype(np.float32)


def options(kind):
    return FaissOptions(kind, links=8, build_depth=16)


def filled(kind="hnsw", number=500):
    source = FaissSource(DIM, options(kind))
    rows = np.sort(np.concatenate([np.arange(1, number + 1), [3, 3, 8]]))  # some have chunks
    source.add(rows, drawn(len(rows)))
    source.settle()
    return source


def save(source, path, label=b"", *, without=(), rebuild=False):
    held = source.hold()
    if held is None:
        return False
    try:
        write = held.writer(np.array(without, np.int64), rebuild=rebuild)
        return write is not None and write(path, label)
    finally:
        held.release()


def loaded_from(path, kind, label=b"", dropped=None):
    """Return a source with the index of a file alone."""
    reasons = [] if dropped is None else dropped
    source = FaissSource(DIM, options(kind), InitialVectors(path, label, 1, list, reasons.append))
    source.settle()
    return source


def answers(source):
    return [source.nearest(query[np.newaxis], 20, None).tolist() for query in drawn(20, seed=1)]


def raising(error):
    def fail(*_):
        raise error

    return fail


class _ProductCodes:
    """An index of product-quantized vectors, a kind that files had once."""

    def __init__(self, vectors):
        faiss = faiss_library()
        self._index = faiss.index_factory(DIM, "IVF4,PQ8x4", faiss.METRIC_INNER_PRODUCT)
        self._index.train(vectors)
        self._index.add(vectors)
        self.size = len(vectors)

    def write(self, output):
        faiss = faiss_library()
        faiss.write_index(self._index, faiss.PyCallbackIOWriter(output, 1 << 20))


def write_product_codes(path, label):
    """Write a file of an index of product-quantized vectors, as it was written once."""
    saved = SavedIndex(_ProductCodes(drawn(600)), np.arange(1, 601), label)
    header = saved_index._Header.of(FaissOptions("ivfpq"), DIM, saved.held.size, label)
    fields = msgspec.to_builtins(header) | {"trained": 100_000, "code_bytes": 8}
    with new_file(path, overwrite=True) as descriptor:
        saved_index._write(descriptor, msgspec.json.encode(fields), saved, lambda: False)


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "a.index")


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_index_answers_as_the_saved_one_did_and_takes_changes(kind, path):
    source = filled(kind)
    assert save(source, path, b"change 7\x00")
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    loaded = loaded_from(path, kind, b"change 7\x00")
    assert answers(loaded) == answers(source)
    assert loaded.state == source.state
    for each in (loaded, source):
        each.remove(np.arange(1, 51))
        each.add(np.array([1000]), drawn(1, seed=1))
        each.settle()
    assert answers(loaded) == answers(source)
    assert 1000 in answers(loaded)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_saved_while_changes_wait_or_without_vectors(kind, path, monkeypatch):
    assert not save(FaissSource(DIM, options(kind)), path)
    source = filled(kind)
    monkeypatch.setattr(threading.Thread, "start", raising(RuntimeError))
    source.remove(np.array([5]))
    assert not save(source, path)
    assert not Path(path).exists()


def bytes_of(vector, kind):
    """Return the bytes of a vector as an index has them."""
    unit = (vector / np.linalg.norm(vector.astype(np.float64))).astype(np.float32)
    return unit.astype(np.float16 if kind == "hnsw" else np.float32).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_removed_and_excluded_rows_are_in_no_file(kind, path):
    source, vectors = filled(kind), drawn(503)
    first, second = bytes_of(vectors[0], kind), bytes_of(vectors[1], kind)
    assert save(source, path)
    assert first in Path(path).read_bytes()
    assert not save(source, path, without=[2])
    source.remove(np.array([1]))
    source.settle()
    assert not save(source, path)
    assert save(source, path, without=[2, 9999], rebuild=True)
    content = Path(path).read_bytes()
    assert first not in content
    assert second not in content
    assert struct.pack("<q", 2) + struct.pack("<q", 3) not in content
    loaded = loaded_from(path, kind)
    assert loaded.state.indexed == 501
    found = [set(rows) for rows in answers(loaded)]
    assert not set.union(*found) & {1, 2}
    assert 2 in source.nearest(vectors[1:2], 5, None)  # it stays in the index itself


def test_searches_go_on_while_an_index_is_saved_and_changes_wait(path, monkeypatch):
    source, goes_on, begun = filled(), threading.Event(), threading.Event()
    write = FaissIndex.write

    def slow(*given):
        begun.set()
        goes_on.wait(60)
        write(*given)

    monkeypatch.setattr(FaissIndex, "write", slow)
    saving = threading.Thread(target=save, args=(source, path))
    saving.start()
    begun.wait(60)
    source.add(np.array([900]), drawn(1, seed=5))
    assert source.nearest(drawn(1, seed=5), 3, None)[0] == 900
    assert source.waiting == 1
    goes_on.set()
    saving.join()
    source.settle()
    assert source.waiting == 0
    loaded = loaded_from(path, "hnsw")
    assert loaded.state.indexed == 503


def test_a_closed_source_can_be_saved_and_a_retired_one_not(path):
    source = filled()
    source.close()
    assert save(source, path)
    source.retire()
    assert not save(source, path)


def test_saving_that_is_stopped_leaves_the_old_file(path, monkeypatch):
    assert save(filled(number=400), path, b"old")
    source = filled()
    monkeypatch.setattr(saved_index._Output, "_take", raising(saved_index._StoppedError))
    assert not save(source, path, b"new")
    assert read_index(path, options("hnsw"), DIM).label == b"old"
    assert [each.name for each in Path(path).parent.iterdir()] == ["a.index"]


def test_a_file_that_cannot_be_written_is_a_typed_error(tmp_path):
    with pytest.raises(StoreError):
        save(filled(), str(tmp_path / "missing" / "a.index"))


def refused(path, dim=DIM, wanted=None):
    with pytest.raises(SavedIndexError) as raised:
        read_index(str(path), options("hnsw") if wanted is None else wanted, dim)
    return str(raised.value)


@pytest.fixture
def never_read(monkeypatch):
    monkeypatch.setattr(FaissIndex, "read", raising(AssertionError("FAISS got damaged bytes")))


@pytest.mark.usefixtures("never_read")
def test_a_file_cut_off_at_any_length_is_refused(path):
    assert save(filled(number=8), path)
    content = Path(path).read_bytes()
    for length in range(len(content)):
        Path(path).write_bytes(content[:length])
        refused(path)
    Path(path).write_bytes(content + b"\x00")
    assert "bytes" in refused(path)


@pytest.mark.usefixtures("never_read")
def test_a_file_with_any_byte_changed_is_refused(path):
    assert save(filled(number=8), path)
    content = Path(path).read_bytes()
    with Path(path).open("r+b") as file:
        for at, byte in enumerate(content):
            os.pwrite(file.fileno(), bytes([byte ^ 0x41]), at)
            refused(path)
            os.pwrite(file.fileno(), bytes([byte]), at)


@pytest.mark.usefixtures("never_read")
@pytest.mark.parametrize(
    ("dim", "wanted", "told"),
    [
        (DIM + 1, options("hnsw"), "dim"),
        (DIM, options("flat"), "kind"),
        (DIM, options("hnsw")._replace(links=9), "links"),
        (DIM, options("hnsw")._replace(build_depth=17), "build_depth"),
    ],
)
def test_a_file_of_another_index_is_refused(path, dim, wanted, told):
    assert save(filled(), path)
    assert told in refused(path, dim, wanted)


@pytest.mark.usefixtures("never_read")
@pytest.mark.parametrize("wanted", KINDS)
def test_a_file_of_product_codes_is_refused_by_its_kind(path, wanted):
    write_product_codes(path, b"")
    assert refused(path, wanted=options(wanted)) == f"its kind is 'ivfpq', not '{wanted}'"


@pytest.mark.usefixtures("never_read")
def test_a_file_of_another_version_is_refused(path, monkeypatch):
    assert save(filled(), path)
    with monkeypatch.context() as patched:
        patched.setattr(saved_index, "VERSION", 2)
        assert "version 1, not 2" in refused(path)
    monkeypatch.setattr(saved_index.faiss_library(), "__version__", "0.0")
    assert "faiss" in refused(path)


def test_options_of_searches_may_differ(path):
    assert save(filled(), path)
    wanted = options("hnsw")._replace(search_depth=7, threads=2)
    assert read_index(path, wanted, DIM).held.size == 503


def test_what_is_no_file_of_this_user_is_refused(tmp_path, path, monkeypatch):
    assert "read" in refused(tmp_path / "missing")
    refused(tmp_path)
    (tmp_path / "text").write_text("hello")
    assert "no index" in refused(tmp_path / "text")
    os.mkfifo(tmp_path / "pipe")
    assert "no file" in refused(tmp_path / "pipe")
    assert save(filled(), path)
    (tmp_path / "link").symlink_to(path)
    refused(tmp_path / "link")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "another user" in refused(path)


def test_bytes_that_the_library_refuses_are_a_typed_error(path, monkeypatch):
    source = filled()
    monkeypatch.setattr(FaissIndex, "write", lambda _self, output: output(b"nothing of FAISS"))
    assert save(source, path)
    assert "FAISS cannot read" in refused(path)


def test_an_index_of_several_bulks_is_made_anew(path, monkeypatch):
    monkeypatch.setattr(faiss_source, "BULK", 64)
    source = filled()
    source.remove(np.arange(100, 200))
    source.settle()
    assert save(source, path, rebuild=True)
    assert read_index(path, options("hnsw"), DIM).held.size == 403


def test_small_changes_do_not_put_off_an_index_made_anew(monkeypatch):
    monkeypatch.setattr(faiss_source, "MIN_ANEW_SECONDS", 0.3)
    monkeypatch.setattr(faiss_source, "ANEW_SHARE", 0.0)
    source = filled()
    time.sleep(0.3)
    source.add(np.array([1000]), drawn(1))
    source.settle()
    held = source.hold()
    assert held.may_rebuild
    assert held.writer(np.array([1]), rebuild=True)
    assert not held.may_rebuild  # it was made just now
    held.release()


@pytest.mark.parametrize("free", [0, 1, 3])
def test_a_full_disk_is_a_typed_error_and_leaves_nothing(free):
    source = filled(number=2000)
    with small_disk(1024 * 1024) as disk:
        disk.fill(free * 4096)
        before = names_in(disk.folder)
        with pytest.raises(StoreFullError, match="disk is full or failing"):
            save(source, str(disk.folder / "a.index"))
        assert names_in(disk.folder) == before
