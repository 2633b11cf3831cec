"""Damaged exports are refused with the line and the reason."""

import io
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import ExportFormatError, InvalidArgumentError, InvalidEntryError
from mnemic.repository import export, export_format
from mnemic.repository.export_format import ExportedLink, ExportedMemory, ExportFooter
from tests.support.exports import (
    END,
    HEADER,
    JSON,
    LINK,
    ONE,
    OWNED,
    PROFILE,
    SAMPLE,
    TWO,
    lines_of,
    memory,
    of_text,
    records,
    same,
    written,
)
from tests.support.tiers import examples


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


@examples(1500)
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


VALUES = st.one_of(
    JSON, st.integers(), st.sampled_from([float("nan"), float("inf"), "\ud800", "\0", 10**4000])
)


@PROFILE
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_give_a_typed_error(data, after_header):
    assert not assert_right_or_refused(HEADER.encode() * after_header + data)


@examples(1000)
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
        (HEADER.replace(": 3", ": 5"), 1, "version 5, and this mnemic reads up to 4: upgrade mne"),
        (HEADER.replace(": 3", ": 0"), 1, "version must be from 1 to 4, got 0"),
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
        (lines_of(embedding=""), 2, "embedding must have the shape"),
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
    monkeypatch.setattr(export, "MAX_LINE_BYTES", 1000)
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
    writer = export.ExportWriter(io.BytesIO().write, "a")
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
