"""The codec that seals: what is sealed comes back, and nothing else passes for it."""

import base64

import pytest
from hypothesis import given

from mnemic.crypto import Encryption
from mnemic.errors import KeyUnavailableError, SealBrokenError
from mnemic.model.entry import MEMORY_FIELDS
from mnemic.store.agent_keys import Keyring
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    COPIED_COLUMNS,
    FIELDS,
    SEALED_COLUMNS,
    RowCodec,
    UsedKey,
)
from mnemic.store.sealing_codec import SealingRowCodec
from tests.store.test_row_codec import ENTRIES
from tests.support.clock import NOON
from tests.support.entries import entry, numbered
from tests.support.exports import PROFILE, everything
from tests.support.keys import KEY
from tests.support.secret_forms import shown

PLAIN = RowCodec()


def codec(encryption=None, stored=None):
    """Return a codec whose keys are kept in a dict."""
    keys = {} if stored is None else stored

    def store(agent_id, key, *, allow_other_keys):
        if allow_other_keys or not keys.get(agent_id):
            keys.setdefault(agent_id, []).append(key)
        return keys[agent_id]

    given_or_not = Encryption(KEY, encrypt_all=True) if encryption is None else encryption
    made = SealingRowCodec(Keyring(given_or_not, lambda agent_id: keys.get(agent_id, ()), store))
    for agent_id in ("a", "b", "aide"):
        made.prepare(agent_id)
    return made


CODEC = codec()


def row_of(made, key=None, by=CODEC):
    (row,) = by.rows([(by.marked(made), key)])
    return row


@PROFILE
@given(ENTRIES)
def test_every_field_of_a_sealed_entry_comes_back(made):
    by = codec()
    by.prepare(made.agent_id)
    marked = by.marked(made)
    columns = row_of(made, by=by).columns
    back = by.decode(columns)
    names = [field.name for field in FIELDS]
    assert [getattr(back, name) for name in names] == [getattr(marked, name) for name in names]
    assert marked.is_encrypted
    assert {type(value) for value in columns} <= {int, float, str, bytes, type(None)}
    (record,) = by.records([(7, *columns)])
    assert record == (7, *PLAIN.encode(marked))


def test_all_but_what_scopes_and_filters_read_is_sealed():
    names = ("content", "speaker", "category", "source", "role", "scope", "message_id", "type_name")
    secrets = {name: f"zqsecret{name}" for name in names}
    made = everything(
        **secrets, agent_id="a", tags=["zqsecrettag"], metadata={"zqsecretname": "zqsecretvalue"}
    )
    columns = dict(zip(COLUMN_NAMES, row_of(made).columns, strict=True))
    plain = dict(zip(COLUMN_NAMES, PLAIN.encode(CODEC.marked(made)), strict=True))
    differing = {name for name in COLUMN_NAMES if columns[name] != plain[name]}
    assert differing == set(SEALED_COLUMNS)
    assert {name for name in SEALED_COLUMNS if columns[name]} == {"content"}
    field = base64.b64decode(columns["content"], validate=True)
    assert shown(columns["content"] + field + repr(columns).encode(), ["zqsecret"]) == []


def test_each_field_is_either_sealed_or_one_that_the_threat_model_names():
    plain = {field.column for field in MEMORY_FIELDS if field.column} - set(SEALED_COLUMNS)
    assert plain == {
        *("agent_id", "id", "user_id", "project_id", "session_id", "memory_type", "status"),
        *("created_at", "updated_at", "last_accessed_at", "expires_at", "forgotten_at"),
        *("access_count", "importance", "position", "version", "supersedes"),
        *("is_sensitive", "is_encrypted"),
    }
    assert set(COPIED_COLUMNS) <= plain


@pytest.mark.requirement("C188")
def test_fingerprints_and_keys_are_hashes_under_the_agents_key():
    made = numbered(1, content="Tea  time")
    row, plain = row_of(made, UsedKey("k")), PLAIN.rows([(made, UsedKey("k"))])[0]
    assert len(row.more[0]) == len(plain.more[0])
    assert len({*row.more, *plain.more}) == 5 - 1  # of each codec both fingerprints are one
    assert row_of(numbered(2, content="tea time")).more[0] == row.more[0]
    assert row_of(numbered(1, content="Tea  time", agent_id="b")).more[0] != row.more[0]
    assert row_of(made, by=codec()).more[0] != row.more[0]  # another salt
    assert CODEC.used_key(row) == UsedKey("k", plain.more[0])


# Which entries are sealed

SENSITIVE_METADATA = [True, 1, "true", "True", "TRUE", " true\n"]
OTHER_METADATA = [False, 0, "false", "", "yes", "1", None, 2, -1, 0.5, [True], {"sensitive": True}]


@pytest.mark.requirement("R078", "C088")
@pytest.mark.parametrize("value", SENSITIVE_METADATA)
def test_metadata_that_say_so_make_an_entry_sensitive(value):
    marked = codec(Encryption(KEY)).marked(numbered(1, metadata={"sensitive": value}))
    assert (marked.sensitive, marked.is_encrypted) == (True, True)
    assert marked.metadata == {"sensitive": value}


@pytest.mark.requirement("R078", "C080", "C088")
@pytest.mark.parametrize(
    "metadata",
    [*({"sensitive": value} for value in OTHER_METADATA), {"encrypted": True}, {"Sensitive": True}],
    ids=repr,
)
def test_other_metadata_do_not(metadata):
    made = numbered(1, metadata=metadata)
    assert codec(Encryption(KEY)).marked(made) is made


@pytest.mark.requirement("C144")
def test_all_are_sealed_where_that_is_wanted_and_only_sensitive_ones_are_marked_so():
    marked = CODEC.marked(numbered(1))
    assert (marked.sensitive, marked.is_encrypted) == (False, True)
    assert CODEC.marked(marked) is marked


@pytest.mark.requirement("R023", "C088")
@pytest.mark.parametrize(
    "fields",
    [
        {"content": "the zqsecret word"},
        {"tags": ["x", "zqsecret"]},
        {"metadata": {"a": "zqsecret"}},
        {"metadata": {"zqsecret": 1}},
        {"metadata": {"a": [1, {"b": ["zqsecret"]}]}},
    ],
    ids=repr,
)
def test_a_detector_looks_at_content_tags_and_metadata(fields):
    by = codec(Encryption(KEY, detect=lambda text: "zqsecret" in text))
    marked = by.marked(numbered(1, **fields))
    assert (marked.sensitive, marked.is_encrypted) == (True, True)
    plain = numbered(1, metadata={"a": [None, 1, 2.5, True, "other"]})
    assert by.marked(plain) is plain


# What is not as it was sealed


@pytest.mark.requirement("C145", "C179")
def test_a_row_with_any_byte_flipped_does_not_open():
    columns = list(row_of(numbered(1, content="x", user_id="u")).columns)
    at = COLUMN_NAMES.index("content")
    field = base64.b64decode(columns[at])
    for place in range(len(field)):
        for bit in range(8):
            flipped = bytearray(field)
            flipped[place] ^= 1 << bit
            columns[at] = base64.b64encode(flipped)
            with pytest.raises(SealBrokenError) as raised:
                CODEC.decode(columns)
            assert raised.value.entry_id == numbered(1).id
            assert CODEC.records([(1, *columns)]) == []


@pytest.mark.requirement("C145", "C179")
@pytest.mark.parametrize(
    "field",
    [b"", b"=", b"A", b"!!!!", b"\xff" * 8, "\N{SNOWMAN}", 7, 1.5, None, "a b c", b"A" * 48],
)
def test_what_is_no_sealed_field_does_not_open(field):
    columns = list(row_of(numbered(1)).columns)
    columns[COLUMN_NAMES.index("content")] = field
    with pytest.raises(SealBrokenError):
        CODEC.decode(columns)


@pytest.mark.requirement("C145", "C179")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("id", bytes(15) + b"\2"),
        ("agent_id", "b"),
        ("user_id", "bob"),
        ("user_id", None),
        ("user_id", ""),
        ("is_sensitive", 1),
        ("created_at", 1),
    ],
)
def test_a_field_belongs_to_its_entry_agent_user_mark_and_time(name, value):
    columns = list(row_of(numbered(1, user_id="alice")).columns)
    columns[COLUMN_NAMES.index(name)] = value
    with pytest.raises(SealBrokenError):
        CODEC.decode(columns)


def test_plain_columns_of_a_sealed_row_count_for_nothing():
    columns = list(row_of(numbered(1, tags=["own"], category="own")).columns)
    for name in ("tags", "metadata", "category", "speaker"):
        columns[COLUMN_NAMES.index(name)] = '["planted"]'
    back = CODEC.decode(columns)
    assert (back.tags, back.category, back.speaker, back.metadata) == (("own",), "own", None, {})


@pytest.mark.requirement("C145", "C179")
def test_a_vector_belongs_to_its_entry_model_and_chunk():
    made, other = CODEC.marked(numbered(1)), CODEC.marked(numbered(2))
    vector = bytes(range(16))
    sealed = CODEC.seal_vector(made, "m", 0, vector)
    place = ("a", made.id.bytes)
    assert vector not in sealed
    assert CODEC.open_vector(place, "m", 0, sealed) == vector
    for where in (
        (("a", other.id.bytes), "m", 0),
        (("b", made.id.bytes), "m", 0),
        (place, "n", 0),
        (place, "m", 1),
    ):
        with pytest.raises(SealBrokenError):
            CODEC.open_vector(*where, sealed)
    for wrong in (None, 3, "text", b"", vector, sealed[:-1]):
        with pytest.raises(SealBrokenError):
            CODEC.open_vector(place, "m", 0, wrong)
    plain = numbered(1)
    assert CODEC.seal_vector(plain, "m", 0, vector) is vector


# Keys


def test_without_a_key_of_its_agent_nothing_is_encoded():
    by = codec()
    by.keyring.forget("a")
    with pytest.raises(KeyUnavailableError):
        SealingRowCodec(Keyring(Encryption(KEY), lambda _: (), None)).rows(
            [(entry("x", is_encrypted=True, created_at=NOON), None)]
        )
