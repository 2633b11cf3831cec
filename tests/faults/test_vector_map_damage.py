"""Damaged, foreign and hostile files of vector maps: a typed error, or the right answers."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest

from mnemic import VectorMap, errors
from tests.support.file_formats import VECTOR_MAP, kept_map
from tests.support.processes import ENVIRONMENT
from tests.support.vector_files import (
    answers,
    checksum,
    directory_of,
    map_of,
    sealed,
    sections_of,
)

HUGE = [0, 1, 2**31, 2**32, 2**62, 2**63 - 1, 2**63, 2**64 - 1]

# Each damaged copy is a file of its own: a file that is mapped must not be written to.
DAMAGING = """
import os, sys
from mnemic import VectorMap, errors
from tests.support.vector_files import answers

folder, kind = sys.argv[1:]
file, vectors = open(f"{folder}/map", "rb").read(), VectorMap.load(f"{folder}/map")
right, outcomes = answers(vectors), {"refused": 0, "later": 0, "right": 0}
path = f"{folder}/damaged"
for at in range(len(file)):
    damaged = bytearray(file)
    if kind == "cut":
        del damaged[at:]
    else:
        damaged[at] ^= 1 << at % 8 if kind == "bit" else 0xff
    with open(path, "wb") as target:
        target.write(damaged)
    loaded = None
    try:
        loaded = VectorMap.load(path)
        assert answers(loaded) == right, at
        assert loaded.label == vectors.label, at
        outcomes["right"] += 1
    except (errors.VectorFileDamagedError, errors.VectorFileError):
        outcomes["refused" if loaded is None else "later"] += 1
    os.unlink(path)
print(outcomes)
"""


def outcomes(folder, kind):
    command = [sys.executable, "-c", DAMAGING, str(folder), kind]
    done = subprocess.run(
        command, env=ENVIRONMENT, check=False, timeout=250, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return dict(eval(done.stdout))  # noqa: S307 - of this very test


@pytest.mark.parametrize("kind", ["bit", "byte"])
def test_every_damaged_byte_is_refused_or_read_by_nobody(kind, tmp_path):
    map_of(17, 3).save(tmp_path / "map", label=b"a label")
    found = outcomes(tmp_path, kind)
    parts = directory_of((tmp_path / "map").read_bytes())
    checked = sum(each["section"][1] for each in parts["segments"])
    assert found["later"] > 17 * 64  # codes and vectors
    assert checked <= found["later"] + found["refused"] < checked + 1000
    assert found["right"] > 3000  # between the sections


def test_a_file_that_was_cut_off_anywhere_is_refused(tmp_path):
    map_of(17, 3).save(tmp_path / "map", label=b"a label")
    found = outcomes(tmp_path, "cut")
    assert found["later"] == found["right"] == 0


def test_damage_is_told_by_every_later_call_that_reads_rows_and_is_gone_with_them(tmp_path):
    path = tmp_path / "map"
    map_of(300, 16).save(path)
    content = bytearray(path.read_bytes())
    first, size, _ = directory_of(content)["segments"][0]["section"]
    content[first + size - 5] ^= 1  # in a vector of the last rows
    path.write_bytes(content)
    vectors = VectorMap.load(path)
    ids, query = vectors.ids(), np.ones(16)
    calls = {
        "all": lambda: vectors.get(ids),
        "search": lambda: vectors.search(query, k=300),
        "batch": lambda: vectors.search([query, query], k=3),
        "count": lambda: vectors.count(query, min_score=0.0),
        "range": lambda: vectors.range_search(query, min_score=0.0),
        "copy": vectors.__reduce__,
        "one": lambda: vectors.get(int(ids[0])),
    }
    for call in calls.values():
        with pytest.raises(errors.VectorFileDamagedError):
            call()
    assert len(vectors) == len(vectors.ids()) == 300
    rows = np.random.default_rng(3).standard_normal((300, 16))
    vectors.upsert(ids, rows)
    vectors.flush()
    sound = VectorMap.from_rows(ids, rows)
    assert answers(vectors) == answers(sound)


def test_files_of_another_kind_or_version_are_refused(tmp_path):
    path = tmp_path / "map"
    map_of(17, 3).save(path)
    file = path.read_bytes()
    directory = directory_of(file)
    others = {
        "magic": sealed(sections_of(file), directory, tmp_path, magic=b"mnemicxx"),
        "older": sealed(sections_of(file), directory, tmp_path, version=0),
        "newer": sealed(sections_of(file), directory, tmp_path, version=3),
        "nothing": b"",
        "zeros": bytes(100_000),
        "database": b"SQLite format 3\0" + bytes(100_000),
        "text": b"text " * 10_000,
    }
    for content in others.values():
        path.write_bytes(content)
        with pytest.raises(errors.VectorFileDamagedError):
            VectorMap.load(path)
    path.write_bytes(sealed(sections_of(file), directory, tmp_path))
    assert path.read_bytes() == file


def test_a_damaged_file_of_the_earlier_form_is_refused_or_answers_as_it_did(tmp_path):
    kept, path = VECTOR_MAP.read_bytes(), tmp_path / "map"
    wanted, refused = answers(kept_map()), 0
    for at in range(0, len(kept), 101):
        damaged = bytearray(kept)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        try:
            found = VectorMap.load(path)
        except errors.VectorFileDamagedError:
            refused += 1
        else:
            assert answers(found) == wanted, at
    assert refused > 60, "ids and vectors are a third of it"


READING = """
import sys
import numpy as np
from mnemic import VectorMap, errors

for path in sys.argv[1:]:
    try:
        vectors = VectorMap.load(path)
    except errors.MnemicError:
        continue
    ids, queries = vectors.ids(), np.ones((8, vectors.dim))
    for call in (
        lambda: vectors.search(queries[0], k=5),
        lambda: vectors.search(queries, k=5, threads=2),
        lambda: vectors.search(queries, k=5, combine="max"),
        lambda: vectors.count(queries, min_score=0.0),
        lambda: vectors.range_search(queries, min_score=-1e300),
        lambda: vectors.get(ids),
        lambda: vectors.save(path + ".again"),
        lambda: vectors.upsert(np.arange(300), np.ones((300, vectors.dim))),
        lambda: vectors.remove(ids[::2]),
        vectors.flush,
        lambda: vectors.search(queries[0], k=5),
    ):
        try:
            call()
        except errors.MnemicError:
            pass
"""


def read(paths):
    """Load and use files in a process of little memory, which no error may end."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
    done = subprocess.run(
        [sys.executable, "-c", limit + READING, *map(str, paths)],
        env={**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    assert "panicked" not in done.stderr


def changed(directory, **values):
    return {**directory, **values}


def with_segment(directory, **values):
    (segment,) = directory["segments"]
    return {**directory, "segments": [{**segment, **values}]}


def test_sound_checksums_over_absurd_numbers_end_in_typed_errors(tmp_path):
    map_of(20, 3).save(tmp_path / "map", label=b"label")
    file = (tmp_path / "map").read_bytes()
    given, sections = directory_of(file), sections_of(file)
    (segment,) = given["segments"]
    first, size, total = segment["section"]
    hostile = [b"", b"\xff" * 50, b"\0" * 50, changed(given, segments=given["segments"] * 2)]
    for number in HUGE:
        hostile += [
            changed(given, dim=number),
            changed(given, metric=number),
            changed(given, segment_count=number),
            changed(given, label=[number, 5, 0]),
            changed(given, label=[first, number, 0]),
            changed(given, basis=(number, [number, number, 0])),
            with_segment(given, rows=number),
            with_segment(given, section=[number, size, total]),
            with_segment(given, section=[first, number, total]),
            with_segment(given, sum_count=number),
            with_segment(given, sketch=[number, 2048, 0]),
        ]
    hostile += [changed(given, dim=dim) for dim in (2, 16, 17, 32_768, 32_769)]
    hostile += [with_segment(given, section=[first + by, size, total]) for by in (1, 8, 63, 64)]
    paths = []
    for at, directory in enumerate(hostile):
        paths.append(tmp_path / f"hostile-{at}")
        paths[-1].write_bytes(sealed(sections, directory, tmp_path))
    read(paths)


def damaged(path, places):
    content = bytearray(path.read_bytes())
    for at in places:
        content[at] = 0
    path.write_bytes(content)


@pytest.mark.parametrize("part", ["codes", "vectors"])
def test_neither_compaction_nor_a_new_file_hides_damage(part, tmp_path):
    path = tmp_path / "map"
    map_of(300, 16).save(path)
    first, size, _ = directory_of(path.read_bytes())["segments"][0]["section"]
    end = first + size
    of_part = {"codes": range(first, end - 300 * 64 - 2432), "vectors": range(end - 64, end)}
    damaged(path, of_part[part])
    held = []  # where a row of zeros lies in memory is chance
    for count in range(1, 20):
        vectors = VectorMap.load(path)
        held.append((vectors, bytes(64 * count)))
        with pytest.raises(errors.VectorFileDamagedError):
            vectors.save(tmp_path / "other")
        vectors = VectorMap.load(path)
        vectors.remove(vectors.ids()[1:200:2])
        vectors.flush()
        held.append(vectors)
        with pytest.raises(errors.VectorFileDamagedError):
            vectors.search(np.ones(16), k=300)
    assert [each.name for each in tmp_path.iterdir()] == ["map"]


def test_sketches_without_their_basis_are_refused(tmp_path):
    path = tmp_path / "map"
    map_of(8100, 256).save(path)
    file = path.read_bytes()
    given, sections = directory_of(file), sections_of(file)
    place = len(sections)
    sections += bytes(8112 * 64 + 64_832)
    sketch = [place, len(sections) - place, checksum(sections[place:], tmp_path)]
    path.write_bytes(sealed(sections, with_segment(given, sketch=sketch), tmp_path))
    read([path])
    with pytest.raises(errors.VectorFileDamagedError):
        VectorMap.load(path)


def test_segments_that_share_bytes_or_are_short_are_refused_before_memory_is_taken(tmp_path):
    path = tmp_path / "map"
    map_of(8192, 1).save(path)
    file = path.read_bytes()
    given, sections = directory_of(file), sections_of(file)
    segments = [{**given["segments"][0], "vector_sums": [0] * 128}] * 10_000
    path.write_bytes(sealed(sections, changed(given, segments=segments), tmp_path))
    read([path])
    map_of(20, 1).save(path)
    file = path.read_bytes()
    given, sections = directory_of(file), sections_of(file)
    path.write_bytes(sealed(sections, changed(given, segments=given["segments"] * 2), tmp_path))
    with pytest.raises(errors.VectorFileDamagedError):
        VectorMap.load(path)


@pytest.mark.parametrize("dim", [0, 32_769, 2**64 - 1])
def test_a_dimension_that_no_map_has_is_damage(dim, tmp_path):
    path = tmp_path / "map"
    map_of(20, 3).save(path)
    file = path.read_bytes()
    path.write_bytes(sealed(sections_of(file), changed(directory_of(file), dim=dim), tmp_path))
    with pytest.raises(errors.VectorFileDamagedError):
        VectorMap.load(path)


def test_a_row_with_the_id_of_empty_places_is_refused(tmp_path):
    map_of(20, 3).save(tmp_path / "map")
    file = (tmp_path / "map").read_bytes()
    given, sections = directory_of(file), sections_of(file)
    first, size, _ = given["segments"][0]["section"]
    ids = slice(first + size - 20 * 64 - 192, first + size - 20 * 64)

    def load_with(number):
        sections[ids.start : ids.start + 8] = struct.pack("<q", number)
        changes = {"id_sum": checksum(sections[ids], tmp_path)}
        path = tmp_path / str(number)
        path.write_bytes(sealed(sections, with_segment(given, **changes), tmp_path))
        return VectorMap.load(path)

    assert -3 in load_with(-3).ids()
    with pytest.raises(errors.VectorFileDamagedError, match="id -1"):
        load_with(-1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="of POSIX")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    read([tmp_path / "pipe"])


@pytest.mark.parametrize("fill", [0x00, 0x7F, 0xFF])
def test_sound_checksums_over_wild_codes_and_vectors_end_in_no_crash(fill, tmp_path):
    map_of(20, 3).save(tmp_path / "map")
    file = (tmp_path / "map").read_bytes()
    given, sections = directory_of(file), sections_of(file)
    first, size, _ = given["segments"][0]["section"]
    codes, vectors = (first, size - 20 * 64 - 192), (first + size - 20 * 64, 20 * 64)
    paths = [tmp_path / "codes", tmp_path / "vectors"]
    for path, (start, length), name in zip(
        paths, (codes, vectors), ("codes", "vectors"), strict=True
    ):
        wild = bytearray(sections)
        wild[start : start + length] = bytes([fill]) * length
        total = checksum(wild[start : start + length], tmp_path)
        sums = {"section": [first, size, total]} if name == "codes" else {"vector_sums": [total]}
        path.write_bytes(sealed(wild, with_segment(given, **sums), tmp_path))
    read(paths)
