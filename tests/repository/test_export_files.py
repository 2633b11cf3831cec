"""Files of an export: a path, a text file or a pipe, written whole and read twice."""

import gzip
import io
import os
import stat
import tempfile
import threading
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from mnemic import new_files
from mnemic._core import NewFile
from mnemic.errors import ExportFormatError, InvalidArgumentError, StoreFileError, StoreFullError
from mnemic.memory import Memory
from mnemic.repository.export import read_export, write_export
from mnemic.repository.export_format import ExportFooter
from tests.support.clock import NOON
from tests.support.exports import HEADER, SAMPLE, memory, of_text, records
from tests.support.paths import names_in
from tests.support.small_disks import small_disk


def test_a_byte_order_mark_crlf_and_blank_lines_at_the_end_are_tolerated(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + SAMPLE.replace(b"\n", b"\r\n") + b"\r\n \t\n\n")
    expected = [record for _, record in records(io.BytesIO(SAMPLE))]
    assert [record for _, record in records(path)] == expected
    with path.open(encoding="utf-8") as text:
        assert [record for _, record in records(text)] == expected


def write_one(target, **options):
    with write_export(target, agent_id="a", exported_at=NOON, **options) as export:
        export.write_memory(memory())
        assert export.written == ExportFooter(1, 0)


def _write_and_fail(target, **options):
    with write_export(target, agent_id="a", exported_at=NOON, **options) as export:
        export.write_memory(memory())
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_anonymous", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_path_appears_only_when_its_export_is_complete(
    tmp_path, monkeypatch, is_anonymous, overwrite
):
    if not is_anonymous:
        monkeypatch.setattr(
            new_files, "NewFile", lambda *name, **how: NewFile(*name, **{**how, "named": True})
        )
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("files without names need Linux")
    path = tmp_path / "e.jsonl"
    if overwrite:
        path.write_text("old")
    with write_export(path, agent_id="a", exported_at=NOON, overwrite=overwrite) as export:
        export.write_memory(memory())
        hidden = [entry for entry in tmp_path.iterdir() if entry != path]
        assert [entry.name[0] for entry in hidden] == ([] if is_anonymous else ["."])
        assert all(stat.S_IMODE(entry.stat().st_mode) == 0o600 for entry in hidden)
        assert not overwrite or path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(records(path)) == 3


def test_an_export_that_fails_leaves_no_file_and_keeps_the_old_one(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        _write_and_fail(path, overwrite=True)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_text() == "old"


@pytest.mark.parametrize("length", [20, 200, 5000, 60_000])
@pytest.mark.parametrize("free", [0, 1, 3, 20])
def test_an_export_to_a_full_disk_raises_one_typed_error_and_leaves_nothing(length, free):
    with (
        Memory(":memory:", embedder=None) as memory,
        small_disk(1024 * 1024) as disk,
    ):
        memory.add_many([f"{number} " + "x" * length for number in range(400_000 // length)])
        disk.fill(free * 4096)
        before = names_in(disk.folder)
        with pytest.raises(StoreFullError, match="disk is full or failing"):
            memory.export(disk.folder / "all.jsonl")
        assert names_in(disk.folder) == before


def test_no_export_takes_the_place_of_a_database(tmp_path):
    path = tmp_path / "agent.db"
    with Memory(path, embedder=None) as memory:
        memory.add("kept")
        with pytest.raises(InvalidArgumentError, match="is a database and is not overwritten"):
            memory.export(path, overwrite=True)
        memory.add("kept too")
    with Memory(path, embedder=None) as memory:
        assert memory.count() == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("number", [1, 1000])
def test_an_export_to_an_open_file_on_a_full_disk_raises_the_typed_error(number):
    with Memory(":memory:", embedder=None) as memory:
        memory.add_many([f"note {at}" for at in range(number)])
        file = open("/dev/full", "w", encoding="utf-8")  # noqa: SIM115, PTH123 - closing fails
        with pytest.raises(StoreFullError, match="/dev/full"):
            memory.export(file)
        with suppress(OSError):
            file.close()


def test_an_existing_file_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text("old")
    with pytest.raises(InvalidArgumentError, match=r"exists; choose another .* overwrite=True"):
        write_one(path)
    assert path.read_text() == "old"
    write_one(path, overwrite=True)
    assert len(records(path)) == 3


def test_only_a_regular_file_is_overwritten(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("folder", "link"):
        with pytest.raises(InvalidArgumentError, match="is not a regular file"):
            write_one(tmp_path / name, overwrite=True)


def test_a_text_file_is_written_as_it_is_and_lacks_its_footer_after_a_failure():
    text = io.StringIO()
    with pytest.raises(KeyboardInterrupt):
        _write_and_fail(text)
    with pytest.raises(ExportFormatError, match="line 3: the file ends without its last line"):
        of_text(text.getvalue())


def test_what_is_no_utf8_text_file_is_refused(tmp_path):
    path = tmp_path / "e.jsonl"
    for target in (3, io.BytesIO()):
        with pytest.raises(InvalidArgumentError, match="target is"):
            write_one(target)
    with (
        path.open("w", encoding="latin-1") as latin,
        pytest.raises(InvalidArgumentError, match="opened as latin-1; open it with encoding="),
    ):
        write_one(latin)
    with path.open(encoding="utf-16") as wide, pytest.raises(InvalidArgumentError, match="utf-16"):
        records(wide)
    with pytest.raises(InvalidArgumentError, match="neither a path nor an open file: 3"):
        records(3)
    with pytest.raises(StoreFileError, match="it does not exist"):
        records(tmp_path / "none.jsonl")


def test_text_that_is_not_utf8_is_refused(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(HEADER.encode() + b'{"kind": "memory", "content": "\xff"}\n')
    with pytest.raises(ExportFormatError, match="line 2: the line is not UTF-8"):
        records(path)
    with (
        path.open(encoding="utf-8") as text,
        pytest.raises(ExportFormatError, match="this or a later line is not UTF-8"),
    ):
        records(text)


def test_a_path_and_a_text_file_can_be_read_twice(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_bytes(SAMPLE)
    text = io.StringIO("before\n" + SAMPLE.decode())
    text.readline()
    with path.open(encoding="utf-8") as opened:
        for source in (path, opened, text):
            with read_export(source) as export:
                first = list(export)
                assert len(first) == 5
                assert list(export) == first
        assert not opened.closed


def test_a_pipe_can_be_read_twice_by_way_of_a_file_that_has_no_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    out, into = os.pipe()

    def feed():
        with open(into, "wb") as pipe:  # noqa: PTH123 - a descriptor is no path
            pipe.write(SAMPLE)

    feeder = threading.Thread(target=feed)
    feeder.start()
    with open(out, encoding="utf-8") as pipe, read_export(pipe) as export:  # noqa: PTH123 - the same
        feeder.join()
        assert list(tmp_path.iterdir()) == []
        assert len(list(export)) == len(list(export)) == 5


def test_a_compressed_export_is_read_and_written_through_gzip(tmp_path):
    path = tmp_path / "e.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as text:
        write_one(text)
    for mode in ("rb", "rt"):
        with gzip.open(path, mode, encoding="utf-8" if mode == "rt" else None) as file:
            assert len(records(file)) == 3


def test_a_path_is_written_with_mode_0600_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "e.jsonl"
    write_one(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["e.jsonl"]  # noqa: PTH208 - names are compared
    assert len(records(str(path))) == 3


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "e.jsonl"
    with (
        pytest.raises(InvalidArgumentError, match="exists"),
        write_export(path, agent_id="a", exported_at=NOON),
    ):
        path.write_text("another's")
    assert path.read_text() == "another's"
    assert list(tmp_path.iterdir()) == [path]


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(count):
        path = tmp_path / f"{count}.jsonl"
        tracemalloc.start()
        with write_export(path, agent_id="a", exported_at=NOON) as export:
            for number in range(count):
                export.write_memory(memory(number, content="x" * 1000))
        with read_export(path) as export:
            assert sum(1 for _ in export) == count + 2
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(4000) < peak(200) + 100_000
