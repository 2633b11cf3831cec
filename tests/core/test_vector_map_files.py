"""Maps in files: what is loaded answers as what was saved, to the last bit."""

import copy
import errno
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic import VectorMap, errors
from tests.support.file_formats import LABEL, VECTOR_MAP, kept_map, kept_rows
from tests.support.processes import ENVIRONMENT
from tests.support.small_disks import small_disk
from tests.support.tiers import examples
from tests.support.vector_files import answers, map_of, rows_of


def pickled(one, number=None):
    return pickle.loads(pickle.dumps(one, number))  # noqa: S301 - our own


METRICS = ["cosine", "inner_product"]


def loaded(vectors, path):
    vectors.save(path)
    return VectorMap.load(path)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("dim", [1, 3, 16, 384])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 63, 64, 65, 300])
def test_a_loaded_map_answers_as_the_saved_one(count, dim, metric, tmp_path):
    vectors = map_of(count, dim, metric)
    assert answers(loaded(vectors, tmp_path / "map")) == answers(vectors)


def test_a_file_that_an_earlier_version_wrote_answers_as_it_did():
    vectors = VectorMap.load(VECTOR_MAP)
    assert vectors.label == LABEL
    assert answers(vectors) == answers(kept_map())
    hits = vectors.search(kept_rows(1, 20)[0], k=4)
    assert hits.ids.tolist() == [-32, 127, 25, 82]
    assert hits.scores.tolist() == [109.9365234375, 109.2626953125, 109.150390625, 79.501953125]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [8191, 8193, 17_000])
def test_maps_of_several_segments_do_too(count, metric, tmp_path):
    vectors = map_of(count, 8, metric)
    assert answers(loaded(vectors, tmp_path / "map")) == answers(vectors)


@pytest.mark.parametrize("dim", [128, 256])
def test_maps_that_are_scanned_by_nibbles_and_by_sketches_do_too(dim, tmp_path):
    rows = rows_of(17_000, 12) @ rows_of(12, dim, seed=1)  # they differ in few directions
    vectors = VectorMap(dim)
    vectors.replace(np.arange(len(rows)), rows)
    vectors.flush()
    vectors.upsert([3, 20_000], rows[:2])
    again = loaded(vectors, tmp_path / "map")
    assert answers(again) == answers(vectors)
    again.upsert(np.arange(16_000, 16_400), rows[:400])
    vectors.upsert(np.arange(16_000, 16_400), rows[:400])
    again.flush()
    assert answers(again) == answers(vectors)


def test_removed_and_overwritten_rows_are_not_in_the_file(tmp_path):
    vectors = map_of(3000, 5)
    fewer = VectorMap(5)
    vectors.remove(vectors.ids()[100:])
    vectors.upsert(vectors.ids()[:50], rows_of(50, 5, seed=9))
    fewer.upsert(vectors.ids(), vectors.get(vectors.ids()))
    again = loaded(vectors, tmp_path / "map")
    assert answers(again) == answers(vectors)
    fewer.save(tmp_path / "fewer")
    sizes = [(tmp_path / name).stat().st_size for name in ("map", "fewer")]
    assert abs(sizes[0] - sizes[1]) < 200  # checksums in the directory take 8 to 10 bytes each


@pytest.mark.parametrize("metric", METRICS)
@examples(40)
@given(st.data())
def test_maps_made_by_any_changes_answer_alike_after_a_file_and_after_a_pickle(
    metric, tmp_path_factory, data
):
    folder = tmp_path_factory.mktemp("map")
    dim = data.draw(st.sampled_from([1, 2, 17, 65]))
    vectors = VectorMap(dim, metric=metric)
    value = st.floats(-(2.0**60), 2.0**60, width=32)
    for _ in range(data.draw(st.integers(0, 4))):
        ids = data.draw(st.lists(st.integers(0, 60), max_size=40, unique=True))
        if data.draw(st.booleans()):
            vectors.remove(ids)
            continue
        row = st.lists(value, min_size=dim, max_size=dim)
        few = np.reshape(data.draw(st.lists(row, min_size=1, max_size=3)), (-1, dim))
        vectors.upsert(ids, few[np.arange(len(ids)) % len(few)])
    expected = answers(vectors)
    assert answers(loaded(vectors, folder / "map")) == expected
    assert answers(pickled(vectors)) == expected


@pytest.mark.parametrize("seed", range(4))
def test_a_loaded_map_can_be_changed_and_the_file_stays_as_it_was(seed, tmp_path):
    numbers = np.random.default_rng(seed)
    rows = dict(enumerate(rows_of(700, 24, seed)))
    path = tmp_path / "map"
    VectorMap.from_rows(list(rows), np.stack(list(rows.values())), "inner_product").save(path)
    before, vectors = path.read_bytes(), VectorMap.load(path)
    for turn in range(60):
        ids = numbers.choice(1200, size=numbers.integers(1, 80), replace=False)
        kind = numbers.integers(8)
        if kind < 3:
            assert vectors.remove(ids) == sum(rows.pop(at, None) is not None for at in ids.tolist())
        elif kind < 7:
            new = rows_of(len(ids), 24, seed=turn)
            vectors.upsert(ids, new)
            rows.update(zip(ids.tolist(), new, strict=True))
        elif turn > 30:
            new = rows_of(len(ids), 24, seed=turn)
            vectors.replace(ids, new)
            rows = dict(zip(ids.tolist(), new, strict=True))
        twin = VectorMap(24, metric="inner_product")
        twin.replace(sorted(rows), [rows[each] for each in sorted(rows)])
        assert answers(vectors, seed=turn) == answers(twin, seed=turn)
    assert path.read_bytes() == before


def test_a_map_can_be_saved_over_the_file_that_it_was_loaded_from(tmp_path):
    path = tmp_path / "map"
    map_of(300, 16).save(path, label=b"first")
    vectors, other = VectorMap.load(path), VectorMap.load(path)
    expected = answers(other)
    for turn in range(5):
        vectors.upsert([turn, 1000 + turn], rows_of(2, 16, seed=turn))
        vectors.save(path)
        assert answers(VectorMap.load(path)) == answers(vectors)
        assert VectorMap.load(path).label == b"first"
    assert answers(other) == expected  # it still has the file that it opened
    assert os.listdir(tmp_path) == ["map"]  # noqa: PTH208 - names alone


def test_a_file_can_be_removed_while_a_map_has_it_open(tmp_path):
    vectors = map_of(300, 16)
    again = loaded(vectors, tmp_path / "map")
    (tmp_path / "map").unlink()
    assert answers(again) == answers(vectors)


def test_the_label_is_kept_until_another_is_given(tmp_path):
    vectors, path = map_of(3, 2), tmp_path / "map"
    assert vectors.label == b""
    vectors.save(path, label=bytes(range(256)) * 100)
    assert vectors.label == b""
    again = VectorMap.load(path)
    assert again.label == bytes(range(256)) * 100
    again.save(path)
    assert VectorMap.load(path).label == again.label
    again.save(path, label=b"")
    assert VectorMap.load(path).label == b""
    with pytest.raises(TypeError):
        again.save(path, label="text")


@pytest.mark.skipif(os.name == "nt", reason="of POSIX")
def test_only_its_owner_may_read_a_file_even_where_an_older_one_was_open_to_all(tmp_path):
    path = tmp_path / "map"
    path.write_bytes(b"")
    path.chmod(0o666)
    previous = os.umask(0)
    try:
        map_of(3, 2).save(path)
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_paths_are_strings_and_paths_relative_ones_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = map_of(20, 3)
    for path in ("map", Path("map"), "./ñ 名", str(tmp_path / "other")):
        vectors.save(path)
        assert answers(VectorMap.load(path)) == answers(vectors)
    for wrong in (b"map", None, 3, 1.5, ["map"]):
        with pytest.raises(TypeError):
            vectors.save(wrong)
        with pytest.raises(TypeError):
            VectorMap.load(wrong)


def test_what_is_no_file_is_refused_and_nothing_is_left_behind(tmp_path):
    vectors = map_of(20, 3)
    (tmp_path / "folder").mkdir()
    for path in ("absent/map", "folder", "", ".", "map\0", "folder/../absent/x", "n" * 300):
        target = tmp_path / path if path else path
        with pytest.raises(errors.VectorFileError) as failed:
            vectors.save(target)
        assert isinstance(failed.value, OSError)
        with pytest.raises((errors.VectorFileError, errors.VectorFileDamagedError)):
            VectorMap.load(target)
    with pytest.raises(errors.VectorFileError, match="absent"):
        VectorMap.load(tmp_path / "absent")
    assert [each.name for each in tmp_path.rglob("*")] == ["folder"]


@pytest.mark.skipif(os.name == "nt", reason="numbers of POSIX")
def test_an_error_of_a_file_has_the_number_of_the_system(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    calls = {"load": VectorMap.load, "save": map_of(20, 3).save}
    expected = {
        ("load", "absent"): errno.ENOENT,
        ("load", "file/map"): errno.ENOTDIR,
        ("load", "n" * 300): errno.ENAMETOOLONG,
        ("load", "folder"): None,
        ("save", "absent/map"): errno.ENOENT,
        ("save", "file/map"): errno.ENOTDIR,
        ("save", "n" * 300): errno.ENAMETOOLONG,
        ("save", "folder"): errno.EISDIR,
        ("load", "map\0"): None,
    }
    for (call, path), number in expected.items():
        with pytest.raises(errors.VectorFileError) as failed:
            calls[call](tmp_path / path)
        assert failed.value.errno == number, (call, path)
        again = pickled(failed.value)
        assert (again.errno, str(again)) == (number, str(failed.value))


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may do anything")
def test_a_folder_without_rights_is_refused_and_keeps_its_file(tmp_path):
    path = tmp_path / "map"
    map_of(20, 3).save(path)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(errors.VectorFileError, match="unchanged") as failed:
            map_of(30, 3).save(path)
        assert failed.value.errno == errno.EACCES
        path.chmod(0)
        with pytest.raises(errors.VectorFileError) as failed:
            VectorMap.load(path)
        assert failed.value.errno == errno.EACCES
    finally:
        tmp_path.chmod(0o700)


def test_a_full_disk_is_refused_and_keeps_its_file():
    with small_disk("1m") as disk:
        path = disk.folder / "map"
        vectors = map_of(20, 3)
        vectors.save(path)
        for free in (0, 4096, 8192, 20_000, 100_000):
            disk.fill(free)
            with pytest.raises(errors.VectorFileError, match=r"unchanged") as failed:
                map_of(3000, 64).save(path)
            assert failed.value.errno == errno.ENOSPC
            assert answers(VectorMap.load(path)) == answers(vectors)
            disk.empty()
            assert [each.name for each in disk.folder.iterdir()] == ["map"]


@pytest.mark.parametrize("kernel", ["portable", "avx2"])
def test_files_are_the_same_whatever_instructions_a_cpu_has(kernel, tmp_path):
    program = (
        "import sys; from tests.support.vector_files import map_of\n"
        "for count, dim in [(300, 16), (8200, 3), (70, 384)]:\n"
        "    map_of(count, dim).save(f'{sys.argv[1]}/{dim}')"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {**ENVIRONMENT, "MNEMIC_KERNEL": kernel}
    done = subprocess.run(
        command, env=environment, check=False, timeout=60, capture_output=True, text=True
    )
    if "KernelUnavailableError" in done.stderr:
        pytest.skip("this CPU has no such kernel")
    assert done.returncode == 0, done.stderr
    for count, dim in [(300, 16), (8200, 3), (70, 384)]:
        map_of(count, dim).save(tmp_path / "own")
        assert (tmp_path / "own").read_bytes() == (tmp_path / str(dim)).read_bytes()


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("count", [0, 1, 300])
def test_pickles_and_copies_answer_as_the_map(count, metric, tmp_path):
    vectors = map_of(count, 24, metric)
    expected = answers(vectors)
    for each in (vectors, loaded(vectors, tmp_path / "map")):
        copies = [pickled(each, number) for number in range(2, 6)]
        copies += [copy.copy(each), copy.deepcopy(each), pickled(copies[0])]
        assert all(answers(one) == expected for one in copies)
        copies[0].upsert([5], rows_of(1, 24))
        assert answers(each) == expected


def test_unit_vectors_come_through_many_pickles_unchanged():
    numbers = np.random.default_rng(5)
    for dim in (2, 3, 100, 20_000):
        vectors = VectorMap(dim)
        vectors.upsert(range(20), numbers.standard_normal((20, dim)) ** 5)
        again = pickled(pickled(vectors))
        assert again.get(range(20)).tobytes() == vectors.get(range(20)).tobytes()


def test_from_rows_takes_the_dimension_of_the_rows():
    rows = rows_of(5, 3)
    vectors = VectorMap.from_rows(range(5), rows, metric="inner_product")
    assert (vectors.dim, vectors.metric, len(vectors)) == (3, "inner_product", 5)
    assert vectors.get(range(5)).tolist() == rows.tolist()
    assert VectorMap.from_rows([], np.empty((0, 7))).dim == 7
    for wrong in (rows[0], rows[None], 3.0):
        with pytest.raises(errors.ArrayTypeError):
            VectorMap.from_rows([1], wrong)
    with pytest.raises(errors.InvalidArgumentError):
        VectorMap.from_rows([-1], rows[:1])
    with pytest.raises(errors.InvalidArgumentError):
        VectorMap.from_rows([], np.empty((0, 0)))
    with pytest.raises(errors.DuplicateIdError):
        VectorMap.from_rows([1, 1], rows[:2])
    with pytest.raises(errors.CountMismatchError):
        VectorMap.from_rows([1], rows[:2])


def test_ids_are_ascending_and_an_array_of_their_own():
    vectors = VectorMap(1)
    vectors.upsert([5, -7, 2**63 - 1, 0, -(2**63)], np.ones((5, 1)))
    ids = vectors.ids()
    assert ids.dtype == np.int64
    assert ids.tolist() == [-(2**63), -7, 0, 5, 2**63 - 1]
    ids[:] = 0
    assert vectors.ids()[0] == -(2**63)
    vectors.remove([0])
    assert 0 not in vectors.ids()
    assert VectorMap(3).ids().shape == (0,)
