"""The plain row codec: every field of every memory comes back, and nothing else passes for one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.errors import InvalidEntryError, KeyUnavailableError
from mnemic.model import MemoryEntry, MemoryStatus, MemoryType
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.model.fields import CHANGED, Kind
from mnemic.store.row_codec import (
    CHANGED_FIELDS,
    COLUMN_NAMES,
    FIELDS,
    UNREADABLE,
    LostContentError,
    RowCodec,
    UsedKey,
    changed_columns,
    check_size,
    text_of,
    uuid_of,
    vector_of,
    with_changed,
)
from tests.support.clock import NOON
from tests.support.entries import entry
from tests.support.exports import PROFILE, everything

CODEC = RowCodec()
TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc"))).map(str.strip).filter(bool)
TIMES = st.datetimes(timezones=st.just(UTC))
WHOLES = st.integers(0, 2**63 - 1)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
VALUES = {
    Kind.CONTENT: TEXTS.filter(lambda text: not text.isspace()),
    Kind.NAME: NAMES,
    Kind.TYPE_NAME: st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1),
    Kind.UUID: st.uuids(),
    Kind.TIME: TIMES,
    Kind.WHOLE: WHOLES,
    Kind.FRACTION: st.floats(0, 1),
    Kind.FLAG: st.booleans(),
    Kind.TYPE: st.sampled_from(MemoryType),
    Kind.STATUS: st.sampled_from(MemoryStatus),
    Kind.TAGS: st.lists(NAMES, max_size=4),
    Kind.METADATA: st.dictionaries(NAMES, JSON, max_size=4),
}


def values_of(field):
    values = VALUES[field.kind]
    if field.minimum:
        values = st.integers(field.minimum, 2**63 - 1)
    return st.none() | values if field.is_optional else values


ENTRIES = st.fixed_dictionaries(
    {field.name: values_of(field) for field in FIELDS if field.is_required},
    optional={field.name: values_of(field) for field in FIELDS if not field.is_required},
).map(lambda fields: MemoryEntry(**fields))


@PROFILE
@given(ENTRIES)
def test_every_field_comes_back(made):
    columns = CODEC.encode(made)
    read = CODEC.decode(columns)
    assert [getattr(read, field.name) for field in FIELDS] == [
        getattr(made, field.name) for field in FIELDS
    ]
    assert [type(getattr(read, field.name)) for field in FIELDS] == [
        type(getattr(made, field.name)) for field in FIELDS
    ]
    assert CODEC.encode(read) == columns
    assert {type(value) for value in columns} <= {int, float, str, bytes, type(None)}
    assert len(columns) == len(COLUMN_NAMES)


def test_an_entry_with_every_field_comes_back():
    made = everything()
    read = CODEC.decode(CODEC.encode(made))
    stored = [field.name for field in MEMORY_FIELDS if field.column is not None]
    assert [getattr(read, name) for name in stored] == [getattr(made, name) for name in stored]
    assert (read.embedding, read.embedding_model) == (None, None)
    differing = [field.name for field in FIELDS if getattr(made, field.name) == field.default]
    assert differing == []


@pytest.mark.parametrize("value", [b"x", "no", -1, 1.5, 2**70, None, (), "\0", b"", "[1]", '{"a'])
@pytest.mark.parametrize("at", range(len(FIELDS)), ids=COLUMN_NAMES)
def test_a_value_of_a_wrong_type_is_an_error_or_a_memory_that_could_be(at, value):
    columns = list(CODEC.encode(everything()))
    columns[at] = value
    try:
        read = CODEC.decode(columns)
    except UNREADABLE:
        return
    name = FIELDS[at].name
    checked = MemoryEntry(**{**ALL_FIELDS, name: getattr(read, name)})
    assert getattr(checked, name) == getattr(read, name)


ALL_FIELDS = {field.name: getattr(everything(), field.name) for field in FIELDS}

WRONG = {
    Kind.CONTENT: [b"bytes", 1, None, "x\0"],
    Kind.NAME: [b"bytes", 1, 1.5, "x\0"],
    Kind.TYPE_NAME: [b"bytes", 1, None, "x\0"],
    Kind.UUID: ["text of 16 chars", b"short", 7],
    Kind.TIME: ["2026", 1.5, b"x", 2**62, -(2**62)],
    Kind.WHOLE: ["1", 1.5, -1, b"1"],
    Kind.FRACTION: ["0.5", 1.5, -0.1, float("nan"), None],
    Kind.FLAG: [2, "1", None],
    Kind.TYPE: [7, -1, "fact", None],
    Kind.STATUS: [3, -1, "active", None],
    Kind.TAGS: ["{}", "[1]", "[", b"\xff", 1],
    Kind.METADATA: ["[]", "{", b"\xff", 1, '{"a": 1e999}', '{"a": 12345678901234567890}'],
}


@pytest.mark.parametrize("field", FIELDS, ids=COLUMN_NAMES)
def test_each_reader_rejects_values_of_a_wrong_type(field):
    columns = list(CODEC.encode(everything()))
    for wrong in WRONG[field.kind]:
        columns[FIELDS.index(field)] = wrong
        with pytest.raises(UNREADABLE):
            CODEC.decode(columns)


def test_a_content_that_lost_a_part_names_its_entry():
    made = entry("a text")
    columns = list(CODEC.encode(made))
    columns[COLUMN_NAMES.index("content")] = "a\0\0\0\0t"
    with pytest.raises(LostContentError, match=str(made.id)) as raised:
        CODEC.decode(columns)
    assert raised.value.entry_id == made.id


def test_an_update_writes_the_changed_columns_and_no_others():
    before, after = entry("before"), everything()
    merged = with_changed(before, after)
    for field in FIELDS:
        source = after if field.has(CHANGED) else before
        if field.name not in {"version", "sensitive", "is_encrypted"}:
            assert getattr(merged, field.name) == getattr(source, field.name), field.name
    assert merged.version == before.version + 1
    assert merged.sensitive
    assert merged.is_encrypted
    stored = dict(zip(COLUMN_NAMES, CODEC.encode(merged), strict=True))
    written = changed_columns(CODEC.encode(merged))
    assert written == tuple(stored[field.column] for field in CHANGED_FIELDS)
    assert not {"agent_id", "id", "created_at"} & {field.column for field in CHANGED_FIELDS}


@pytest.mark.parametrize("name", ["sensitive", "is_encrypted"])
def test_an_entry_that_became_sensitive_or_sealed_stays_so(name):
    plain, marked = entry("a"), entry("a", **{name: True})
    for before, after in ((plain, marked), (marked, plain), (marked, marked)):
        assert getattr(with_changed(before, after), name) is True
    assert getattr(with_changed(plain, plain), name) is False


def test_a_size_counts_the_bytes_of_the_content():
    assert CODEC.stored_content_size("für 5 €") == 10
    assert CODEC.stored_content_size(b"sealed") == 6
    assert [CODEC.stored_content_size(wrong) for wrong in (None, 3, 1.5)] == [0, 0, 0]


def test_equivalent_texts_have_one_fingerprint():
    rows = CODEC.rows([(entry(text), None) for text in ("Tea  time", "tea time", "tea")])
    one, two, three = (row.more[0] for row in rows)
    assert one == two != three
    assert len(one) == 16
    assert [row.more[1:] for row in rows] == [(None, None)] * 3


def test_an_idempotency_key_comes_back_with_the_fingerprint_of_its_content():
    (row,) = CODEC.rows([(entry("tea"), UsedKey("k"))])
    assert CODEC.used_key(row) == UsedKey("k", row.more[0])
    (later,) = CODEC.rows([(entry("coffee"), CODEC.used_key(row))])
    assert later.more[1:] == row.more[1:]
    assert later.more[0] != row.more[0]
    assert CODEC.used_key(CODEC.rows([(entry("tea"), None)])[0]) is None


def test_a_codec_without_a_key_shows_no_sealed_row_and_marks_none():
    made = entry("tea")
    sealed = (1, *CODEC.encode(entry("tea", is_encrypted=True)))
    plain = (2, *CODEC.encode(made))
    assert CODEC.records([sealed, plain]) == [plain]
    assert CODEC.marked(made) is made
    with pytest.raises(KeyUnavailableError, match=r"encryption=Encryption\(key=...\)"):
        CODEC.marked(entry("tea", is_encrypted=True))


def test_stored_tags_are_read_alone():
    assert CODEC.decode_tags(None) == ()
    assert CODEC.decode_tags('["a","é"]') == ("a", "é")
    for wrong in (b"[]", 3, "{}", '["\\u0000"', "[1]"):
        with pytest.raises(UNREADABLE):
            CODEC.decode_tags(wrong)


def test_the_index_reads_the_rows_as_they_are():
    rows = [(1, *CODEC.encode(entry()))]
    assert CODEC.records(rows) == rows


def test_what_is_too_large_together_is_refused():
    large = entry("x" * 6_000_000, metadata={"a": "y" * 5_000_000})
    for check in (check_size, CODEC.encode):
        with pytest.raises(InvalidEntryError, match="together are larger than 10 MB"):
            check(large)
    check_size(entry())


def test_ids_keys_and_vectors_are_checked():
    assert uuid_of(bytes(16)).int == 0
    assert text_of(None) is None
    assert text_of("k") == "k"
    assert vector_of(bytes(8)).tolist() == [0, 0]
    for read, wrong in (
        (uuid_of, b"short"),
        (uuid_of, "x" * 16),
        (text_of, 3),
        (text_of, "a\0"),
        (vector_of, b""),
        (vector_of, b"123"),
        (vector_of, "1234"),
        (vector_of, b"\x00\x00\x80\x7f"),
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - of several messages
            read(wrong)


def test_a_time_that_did_not_change_is_one_object():
    read = CODEC.decode(CODEC.encode(entry()))
    assert read.updated_at is read.created_at == NOON
    later = entry(updated_at=NOON + timedelta(seconds=1))
    assert CODEC.decode(CODEC.encode(later)).updated_at == datetime(
        2026, 5, 1, 12, 0, 1, tzinfo=UTC
    )
