"""Exports: what is written is read back exactly, and nothing else is read without a complaint."""

import gzip
import io
import json
import os
import stat
import threading
import tracemalloc
from datetime import UTC

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import ExportFormatError, InvalidArgumentError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, MemoryType
from mnemic.repository import export_files, export_format
from mnemic.repository.export_format import (
    MAX_LINE_BYTES,
    ExportedLink,
    ExportedMemory,
    ExportFooter,
    ExportHeader,
)
from mnemic.repository.export_reader import read_export
from mnemic.repository.export_writer import write_export
from tests.support.clock import NOON
from tests.support.exports import (
    HEADER,
    JSON,
    LINK,
    OWNED,
    PROFILE,
    SAMPLE,
    TEXTS,
    everything,
    lines_of,
    memory,
    of_text,
    records,
    same,
    written,
)
from tests.support.paths import FIXTURES


def further():
    """Return the vectors of two further parts of that memory."""
    first = everything().embedding
    return [first[::-1] * np.float32(0.5), -first]


# Round trips


def test_a_memory_with_every_field_set_comes_back_exactly_with_its_key():
    entry = everything()
    left = {"id", "agent_id", "content", "created_at", "metadata", "embedding"}
    for field in msgspec.structs.fields(MemoryEntry):
        assert field.name in left or getattr(entry, field.name) != field.default, field.name
    (_, header), (_, read), (_, footer) = of_text(written([(entry, "key-1")]))
    assert header == ExportHeader("a", NOON, 3)
    assert same(read.entry, entry)
    assert read.idempotency_key == "key-1"
    assert footer == ExportFooter(memories=1, links=0)


def test_fields_at_their_default_are_left_out():
    line = json.loads(written([(memory(), None)]).splitlines()[1])
    assert line == {
        "kind": "memory",
        "id": "00000000-0000-0000-0000-000000000001",
        "agent_id": "a",
        "content": "Lives in Oslo",
        "created_at": "2026-05-01T12:00:00Z",
    }


def test_a_line_knows_every_field_of_the_record():
    # A new field needs a new version of the format: a reader of version 1 refuses it by name.
    known = set(export_format._MemoryLine.__struct_fields__) - {
        "idempotency_key",
        "more_embeddings",
    }
    assert known == set(MemoryEntry.__struct_fields__)
    always = {"id", "agent_id", "content", "created_at", "updated_at", "embedding"}
    assert set(export_format._LEFT_OUT) == known - always
    plain = memory()
    assert all(getattr(plain, name) == value for name, value in export_format._LEFT_OUT.items())


def test_links_come_back_with_the_numbers_of_their_lines():
    read = of_text(written([(memory(), None)], [OWNED]))
    assert [number for number, _ in read] == [1, 2, 3, 4]
    assert read[2] == (3, OWNED)
    assert read[3] == (4, ExportFooter(1, 1))


def test_an_export_of_nothing_is_a_header_and_a_footer():
    assert [type(record) for _, record in of_text(written())] == [ExportHeader, ExportFooter]


def test_content_of_ten_megabytes_comes_back_when_every_byte_is_escaped():
    entry = memory(content="\x01" * (10 * 1024 * 1024))
    text = written([(entry, None)])
    assert 60 * 1024 * 1024 < len(text) < MAX_LINE_BYTES
    assert of_text(text)[1][1].entry == entry


def test_the_fixture_of_version_1_reads_as_it_was_written():
    read = [record for _, record in records(FIXTURES / "export_v1.jsonl")]
    assert read[0] == ExportHeader("a", NOON, 1)
    assert same(read[1].entry, everything())
    assert read[1].idempotency_key == "key-1"
    assert read[2] == ExportedMemory(memory(2, content="Allergic to peanuts"))
    assert read[3:] == [ExportedLink(LINK), ExportFooter(2, 1)]


def test_the_fixture_of_version_2_reads_as_it_was_written():
    read = [record for _, record in records(FIXTURES / "export_v2.jsonl")]
    assert read[0] == ExportHeader("a", NOON, 2)
    assert same(read[1].entry, everything())
    assert read[1].idempotency_key == "key-1"
    assert [vector.tobytes() for vector in read[1].more] == [part.tobytes() for part in further()]
    assert read[2] == ExportedMemory(memory(2, content="Allergic to peanuts"))
    assert read[3:] == [ExportedLink(LINK), ExportFooter(2, 1)]


def test_the_fixture_of_version_3_reads_as_it_was_written():
    read = [record for _, record in records(FIXTURES / "export_v3.jsonl")]
    assert read[0] == ExportHeader("a", NOON, 3)
    assert same(read[1].entry, everything())
    assert read[2] == ExportedMemory(memory(2, content="Allergic to peanuts", user_id="u"))
    assert read[3:] == [OWNED, ExportFooter(2, 1)]


def test_the_vectors_of_further_parts_come_back_bit_for_bit():
    (_, read) = of_text(written([(everything(), None, further())]))[1]
    assert [vector.tobytes() for vector in read.more] == [part.tobytes() for part in further()]
    assert not any(vector.flags.writeable for vector in read.more)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"more_embeddings": ["AACAPw=="]}, "more_embeddings stands without embedding"),
        ({"more_embeddings": ["AACAPwAAgD8="], "embedding": "AACAPw=="}, "vector of 2 numbers"),
        ({"more_embeddings": ["AACA"], "embedding": "AACAPw=="}, "3 bytes"),
        ({"more_embeddings": ["AADAfw=="], "embedding": "AACAPw=="}, "NaN"),
        ({"more_embeddings": "AACAPw==", "embedding": "AACAPw=="}, "array"),
    ],
)
def test_further_parts_that_make_no_sense_are_refused(fields, message):
    with pytest.raises(ExportFormatError, match=message):
        of_text(lines_of(embedding_model="m", **fields))


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
CONTENTS = TEXTS.filter(lambda text: text and not text.isspace())
TIMES = st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0))
FRACTIONS = st.floats(0, 1)
COUNTS = st.integers(0, 2**63 - 1)
VECTORS = st.lists(
    st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=9
).map(lambda numbers: np.array(numbers, np.float32))
ENTRIES = st.builds(
    MemoryEntry,
    id=st.uuids(),
    agent_id=st.just("a"),
    content=CONTENTS,
    created_at=TIMES,
    type=st.sampled_from(MemoryType),
    type_name=NAMES,
    importance=FRACTIONS,
    tags=st.lists(NAMES, max_size=3).map(tuple),
    metadata=st.dictionaries(TEXTS, JSON, max_size=3),
    embedding=st.none() | VECTORS,
    updated_at=TIMES,
    access_count=COUNTS,
    status=st.sampled_from(MemoryStatus),
    version=st.integers(1, 2**63 - 1),
    sensitive=st.booleans(),
    is_encrypted=st.booleans(),
    position=st.none() | COUNTS,
    supersedes=st.none() | st.uuids(),
    **{
        name: st.none() | NAMES
        for name in (
            *("user_id", "project_id", "session_id", "role", "speaker", "message_id"),
            *("embedding_model", "category", "scope"),
        )
    },
    **{name: st.none() | TIMES for name in ("last_accessed_at", "forgotten_at", "expires_at")},
)
LINKS = (
    st.tuples(st.uuids(), st.uuids(), st.sampled_from(LinkType), FRACTIONS, TIMES)
    .filter(lambda link: link[0] != link[1])
    .map(lambda link: MemoryLink(*link))
)
OWNED_LINKS = st.builds(ExportedLink, LINKS, st.none() | NAMES)  # fmt: skip


@PROFILE
@given(
    st.lists(st.tuples(ENTRIES, st.none() | NAMES), max_size=3), st.lists(OWNED_LINKS, max_size=3)
)
def test_whatever_is_written_is_read_back_exactly(memories, links):
    read = [record for _, record in of_text(written(memories, links))]
    assert read[-1] == ExportFooter(len(memories), len(links))
    for (entry, key), record in zip(memories, read[1:], strict=False):
        assert same(entry, record.entry)
        assert key == record.idempotency_key
    assert read[1 + len(memories) : -1] == links


# Files


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


def test_a_path_is_written_with_mode_0600_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "e.jsonl"
    write_one(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["e.jsonl"]  # noqa: PTH208 - names are compared
    assert len(records(str(path))) == 3


@pytest.mark.parametrize("is_anonymous", [True, False])
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_path_appears_only_when_its_export_is_complete(
    tmp_path, monkeypatch, is_anonymous, overwrite
):
    if not is_anonymous:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
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


def test_an_existing_file_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text("old")
    with pytest.raises(InvalidArgumentError, match=r"exists; choose another .* overwrite=True"):
        write_one(path)
    assert path.read_text() == "old"
    write_one(path, overwrite=True)
    assert len(records(path)) == 3


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "e.jsonl"
    with (
        pytest.raises(InvalidArgumentError, match="exists"),
        write_export(path, agent_id="a", exported_at=NOON),
    ):
        path.write_text("another's")
    assert path.read_text() == "another's"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_hard_links_is_written_too(tmp_path, monkeypatch):
    def refuse(*_, **_named):
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    write_one(tmp_path / "e.jsonl")
    assert len(records(tmp_path / "e.jsonl")) == 3
    assert len(list(tmp_path.iterdir())) == 1


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
    with pytest.raises(FileNotFoundError):
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
    monkeypatch.setattr(export_files.tempfile, "tempdir", str(tmp_path))
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
