"""Exports: what is written is read back exactly, and nothing else is read without a complaint."""

import gzip
import io
import json
import os
import pickle
import stat
import threading
import tracemalloc
from datetime import UTC, timedelta
from uuid import UUID

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemic.errors import ExportFormatError, InvalidArgumentError, InvalidEntryError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, MemoryType
from mnemic.repository import export_format
from mnemic.repository.export_format import (
    MAX_LINE_BYTES,
    ExportedLink,
    ExportedMemory,
    ExportFooter,
    ExportHeader,
    read_export,
    write_export,
)
from tests.support.clock import NOON
from tests.support.entries import numbered
from tests.support.paths import FIXTURES

ONE, TWO = UUID(int=1), UUID(int=2)
PROFILE = settings(max_examples=200, deadline=None, derandomize=True)


def memory(number=1, **fields):
    return numbered(number, **{"content": "Lives in Oslo", **fields})


def everything():
    """Return a memory whose every field differs from its default."""
    return memory(
        content="Trinkt Tee 🫖 — \t\x01 “gern”\n",
        created_at=NOON + timedelta(microseconds=123456),
        user_id="u",
        project_id="p",
        session_id="s",
        type=MemoryType.PREFERENCE,
        type_name="Note",
        role="user",
        speaker="Ann",
        message_id="m-1",
        position=3,
        importance=0.1 + 0.2,
        tags=("b", "a", "b"),
        metadata={"n": 2**53, "f": 2.0, "deep": [{"none": None, "yes": True}], "": "é"},
        embedding=np.array([0.0, -0.0, 1e-45, 3.4028235e38, 0.1], np.float32),
        embedding_model="model/1",
        updated_at=NOON + timedelta(days=1),
        last_accessed_at=NOON + timedelta(days=2),
        access_count=2**63 - 1,
        status=MemoryStatus.SUPERSEDED,
        forgotten_at=NOON + timedelta(days=3),
        expires_at=NOON + timedelta(days=4),
        category="c",
        scope="x",
        version=7,
        supersedes=TWO,
        sensitive=True,
        is_encrypted=True,
    )


def further():
    """Return the vectors of two further parts of that memory."""
    first = everything().embedding
    return [first[::-1] * np.float32(0.5), -first]


LINK = MemoryLink(ONE, TWO, LinkType.REFINES, 0.7, NOON)
OWNED = ExportedLink(LINK, "u")


def written(memories=(), links=(), agent_id="a"):
    text = io.StringIO()
    with write_export(text, agent_id=agent_id, exported_at=NOON) as export:
        for one in memories:
            export.write_memory(*one)
        for link in links:
            export.write_link(*link)
    return text.getvalue()


def records(source):
    with read_export(source) as export:
        return list(export)


def of_text(text):
    return records(io.BytesIO(text.encode("utf-8", "surrogatepass")))


def same(one, other):
    """Say whether two memories agree in every field, the embedding bit for bit."""
    vectors = [
        None if entry.embedding is None else (entry.embedding.dtype, entry.embedding.tobytes())
        for entry in (one, other)
    ]
    kinds = [repr((entry, entry.metadata)) for entry in (one, other)]  # tells 1 from 1.0 and True
    models = [entry.embedding_model for entry in (one, other)]
    return one == other and all(len(set(pair)) == 1 for pair in (vectors, kinds, models))


def lines_of(**fields):
    """Return an export of one memory line with these fields changed."""
    line = {"kind": "memory", "id": str(ONE), "agent_id": "a", "content": "c"}
    line |= {"created_at": "2026-05-01T12:00:00Z", **fields}
    return HEADER + json.dumps({k: v for k, v in line.items() if v is not ...}) + "\n" + END


HEADER = (
    '{"format": "mnemic", "version": 3, "agent_id": "a", "exported_at": "2026-05-01T12:00:00Z"}\n'
)
END = '{"kind": "end", "memories": 1, "links": 0}\n'


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


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
CONTENTS = TEXTS.filter(lambda text: text and not text.isspace())
TIMES = st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0))
FRACTIONS = st.floats(0, 1)
COUNTS = st.integers(0, 2**63 - 1)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
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


# Damage


def _sample():
    return written([(everything(), "key-1"), (memory(2), None)], [OWNED]).encode()


SAMPLE = _sample()


def assert_right_or_refused(data):
    """Check that reading gives records that can be written again, or a typed error."""
    try:
        read = [record for _, record in records(io.BytesIO(data))]
    except ExportFormatError as error:
        assert str(error).startswith(f"line {error.line}: ")  # noqa: PT017 - either outcome will do
        assert 1 <= error.line <= data.count(b"\n") + 2  # noqa: PT017 - the same
        assert len(str(error)) < 600  # noqa: PT017 - the same
        assert str(error).isprintable()  # noqa: PT017 - the same
        return False
    header, *rest, footer = read
    memories = [record for record in rest if isinstance(record, ExportedMemory)]
    links = [record for record in rest if isinstance(record, ExportedLink)]
    assert footer == ExportFooter(len(memories), len(links))
    again = [record for _, record in of_text(written(memories, links, header.agent_id))]
    pairs = zip(memories, again[1:], strict=False)
    assert all(same(one.entry, other.entry) for one, other in pairs)
    return True


def test_a_file_cut_off_anywhere_is_refused():
    whole = len(SAMPLE.rstrip())
    for length in range(whole):
        assert not assert_right_or_refused(SAMPLE[:length])
    assert assert_right_or_refused(SAMPLE[:whole])


def test_a_file_that_lacks_any_line_or_has_it_twice_is_refused():
    lines = SAMPLE.splitlines(keepends=True)
    for at in range(len(lines)):
        assert not assert_right_or_refused(b"".join(lines[:at] + lines[at + 1 :]))
        assert not assert_right_or_refused(b"".join(lines[:at] + lines[at : at + 1] + lines[at:]))


PIECES = (
    *(
        b'"',
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
    ),
    *(b"null", b"true", b"NaN", b"-1", b"1e999", b"9" * 5000, b"\\ud800", b"\\udc00", b"\\u0000"),
    *(b"[" * 2000, b'{"a":' * 2000, b'"kind":"end",', b'"embedding":"AAAA",', b"\xef\xbb\xbf"),
)


@settings(PROFILE, max_examples=1500)
@given(st.lists(
    st.tuples(
        st.integers(0, len(SAMPLE)), st.integers(0, 12),
        st.sampled_from(PIECES) | st.binary(max_size=3)
    ), min_size=1, max_size=3,
))  # fmt: skip
def test_a_mutated_file_gives_right_records_or_a_typed_error(changes):
    data = SAMPLE
    for at, cut, piece in changes:
        data = data[:at] + piece + data[at + cut :]
    assert_right_or_refused(data)


@PROFILE
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_give_a_typed_error(data, after_header):
    assert not assert_right_or_refused(HEADER.encode() * after_header + data)


VALUES = st.one_of(
    JSON, st.integers(), st.sampled_from([float("nan"), float("inf"), "\ud800", "\0", 10**4000])
)


@settings(PROFILE, max_examples=1000)
@given(st.sampled_from([*export_format._MemoryLine.__struct_fields__, "kind", "unknown"]), VALUES)
def test_any_value_in_any_field_gives_a_right_record_or_a_typed_error(field, value):
    assert_right_or_refused(lines_of(**{field: value}).encode())


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "found nothing; an export begins with its header"),
        (
            "hello\n",
            1,
            r"found a line of 6 bytes that is no header; an export begins with \{\"format\"",
        ),
        ('{"format": "other", "version": 1}\n', 1, "an export begins with"),
        (HEADER.replace(": 3", ": 4"), 1, "version 4, and this mnemic reads up to 3: upgrade mne"),
        (HEADER.replace(": 3", ": 0"), 1, "version must be from 1 to 3, got 0"),
        (HEADER.replace('"a"', '""'), 1, "agent_id cannot be empty"),
        (HEADER.replace("}", ', "x": 1}'), 1, "unknown field `x`"),
        (HEADER.replace('"2026', '"last 2026'), 1, r"Invalid RFC3339 .* at `\$.exported_at`"),
        (HEADER, 2, "the file ends without its last line.*it was cut off; export again"),
        (HEADER + "\n\n", 2, "the line is blank; wanted a memory, a link or the last line"),
        (HEADER + "{nonsense}\n", 2, r"not JSON: JSON is malformed.*\(byte 1\)$"),
        (HEADER + '{"kind": "mem', 2, "not JSON.*the file stops here, so it may have been cut off"),
        (HEADER + "[1]\n", 2, "Expected `object`, got `array`"),
        (HEADER + HEADER, 2, "Object missing required field `kind`; the kinds are memory, link"),
        (lines_of(kind="thought"), 2, "Invalid value 'thought'.*the kinds are memory, link and en"),
        (lines_of(id=...), 2, "Object missing required field `id`"),
        (lines_of(id="x"), 2, r"Invalid UUID - at `\$.id`"),
        (lines_of(mood="x"), 2, "Object contains unknown field `mood`"),
        (lines_of(content=3), 2, r"Expected `str`, got `int` - at `\$.content`"),
        (lines_of(content=" "), 2, "content cannot be empty"),
        (lines_of(content="x" * (10 * 1024 * 1024 + 1)), 2, "content is larger than 10 MB"),
        (lines_of(importance=1.5), 2, "importance must be from 0 to 1, got 1.5"),
        (lines_of(importance=float("nan")), 2, "not JSON"),
        (lines_of(position=10**30), 2, "position must be at least 0, and at most 2"),
        (lines_of().replace('"c"', "9" * 5000), 2, r"Number out of range - at `\$.content`"),
        (lines_of(type="opinion"), 2, "type 'opinion' is unknown; it is one of fact"),
        (lines_of(type=3), 2, r"Expected `str`, got `int` - at `\$.type`"),
        (lines_of(status="lost"), 2, "status 'lost' is unknown; it is one of active"),
        (lines_of(agent_id="b"), 2, "a memory of agent 'b' in an export of agent 'a'"),
        (lines_of(metadata={"n": 2**53 + 1}), 2, r"metadata\['n'\] is beyond"),
        (lines_of(content="\ud800"), 2, r"\\ud800 is half of a character, which is not text"),
        (lines_of(content="\0"), 2, "content holds a NUL character at index 0"),
        (lines_of(embedding="AAAA"), 2, "embedding has 3 bytes; each number takes four"),
        (lines_of(embedding=""), 2, "embedding must have one axis, got shape"),
        (lines_of(embedding="AADAfw=="), 2, "embedding holds NaN or infinity"),
        (lines_of(embedding="no base64"), 2, r"Invalid base64 encoded string - at `\$.embedding`"),
        (lines_of(idempotency_key=""), 2, "idempotency_key cannot be empty"),
        (lines_of().replace(END, END.replace("1", "2")), 3, "holds 1 memories and 0 links, but en"),
        (lines_of() + lines_of(), 4, "found 91 bytes after the last line"),
        (HEADER.replace("}", ', "agent_id": "b"}'), 1, "key 'agent_id' stands twice in one object"),
        (lines_of().replace('"kind"', '"content": "d", "kind"', 1), 2, "key 'content' stands twic"),
        (
            lines_of().replace('"kind"', '"\\u0063ontent": "d", "kind"', 1),
            2,
            "key 'content' stands twice",
        ),
        (
            lines_of(metadata={"n": {"x": 0}}).replace('"x":', '"x": 1, "x":'),
            2,
            "key 'x' stands tw",
        ),
        (lines_of(metadata={"n": 0}).replace(": 0", ": " + "[" * 99_999), 2, "nested too deep"),
        (lines_of(metadata={"n": 0}).replace(": 0", ": 1e999"), 2, "Number out of range"),
        (lines_of(created_at="0001-01-01T00:00:00+14:00"), 2, "created_at lies outside the years"),
        (lines_of(created_at="12020-01-01T00:00:00Z"), 2, "Invalid RFC3339"),
    ],
)
def test_a_bad_line_is_named_with_what_was_found_and_what_was_wanted(text, line, message):
    with pytest.raises(ExportFormatError, match=message) as caught:
        of_text(text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"line {line}: ")


def test_one_key_in_two_objects_and_in_a_text_is_no_key_that_stands_twice():
    metadata = {"content": {"content": 1}, "list": [{"n": 1}, {"n": 2}], "\\": '"n": 1, "n": 2'}
    assert of_text(lines_of(metadata=metadata))[1][1].entry.metadata == metadata


def test_half_a_character_is_told_from_a_whole_pair():
    assert of_text(lines_of(content="😀"))[1][1].entry.content == "😀"  # json escapes it as a pair


def test_metadata_nested_too_deep_is_refused():
    deep = '{"a":' * 2000 + "1" + "}" * 2000
    text = lines_of().replace('"content"', f'"metadata": {deep}, "content"')
    with pytest.raises(ExportFormatError, match="nested too deep; metadata has at most 64 levels"):
        of_text(text)
    shallower = lines_of(metadata=json.loads('{"a":' * 70 + "1" + "}" * 70))
    with pytest.raises(ExportFormatError, match="nested deeper than 64 levels"):
        of_text(shallower)


def test_a_line_longer_than_the_limit_is_refused_without_reading_it_whole(monkeypatch):
    monkeypatch.setattr(export_format, "MAX_LINE_BYTES", 1000)
    assert len(of_text(lines_of(content="x" * 800))) == 3
    with pytest.raises(ExportFormatError, match="line 2: the line is longer than 1000 bytes"):
        of_text(lines_of(content="x" * 2000))
    with pytest.raises(InvalidArgumentError, match=r"takes 21\d\d bytes as JSON.*at most 1000"):
        written([(memory(content="x" * 2000), None)])


def test_a_memory_after_a_link_is_refused_by_reader_and_writer():
    header, link, end = written([], [OWNED]).splitlines(keepends=True)
    line = written([(memory(), None)]).splitlines(keepends=True)[1]
    with pytest.raises(ExportFormatError, match="line 3: a memory after a link"):
        of_text(header + link + line + end)
    writer = export_format.ExportWriter(io.BytesIO().write, "a")
    writer.write_link(LINK)
    with pytest.raises(InvalidArgumentError, match="before links"):
        writer.write_memory(memory())


def test_a_bad_link_is_refused():
    for old, new, message in (
        ('"refines"', '"likes"', "link type 'likes' is unknown; it is one of related"),
        (str(TWO), str(ONE), "cannot be linked to itself"),
        ("0.7", "7", "strength must be from 0 to 1, got 7"),
    ):
        with pytest.raises(ExportFormatError, match=f"line 2: .*{message}"):
            of_text(written([], [OWNED]).replace(old, new))


def test_the_writer_refuses_another_agents_memory_and_an_empty_key():
    with pytest.raises(InvalidArgumentError, match=r"is agent 'b'.s; this export is agent 'a'.s"):
        written([(memory(agent_id="b"), None)])
    with pytest.raises(InvalidEntryError, match="idempotency_key cannot be empty"):
        written([(memory(), "")])


def test_the_error_keeps_its_line_in_another_process():
    error = pickle.loads(pickle.dumps(ExportFormatError(7, "found \x1b")))  # noqa: S301 - our own
    assert (error.line, str(error)) == (7, r"line 7: 'found \x1b'")


def test_a_link_refuses_what_a_link_cannot_be():
    for fields in ((ONE, ONE, 0, 1, NOON), (ONE, TWO, 6, 1, NOON), (ONE, TWO, 0, 1.1, NOON)):
        with pytest.raises(InvalidEntryError):
            MemoryLink(*fields)
    link = MemoryLink(str(ONE), str(TWO), "Derived_From", 1, NOON.replace(tzinfo=None))
    assert link == MemoryLink(ONE, TWO, LinkType.DERIVED_FROM, 1.0, NOON)
    assert type(link.strength) is float


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
    monkeypatch.setattr(export_format.tempfile, "tempdir", str(tmp_path))
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
