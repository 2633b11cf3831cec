"""The sealer: what it opens, what it refuses, keyed hashes, and the check of a key."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemic.crypto import MasterKey, Sealer, new_salt
from mnemic.errors import SealBrokenError, StoreCorruptError, StoreError, WrongKeyError
from mnemic.store.row_codec import fingerprints
from tests.support.keys import (
    AGENT,
    ENTRY,
    KEY,
    OTHER_ENTRY,
    OTHER_KEY,
    SALT,
    sealer,
    shows,
    told,
)

ENTRIES = st.binary(min_size=16, max_size=16)
NAMES = st.text(max_size=30)
PLAIN = b"The ferry leaves at ten past every hour."


def refused(sealed, entry=ENTRY, field="entry", model="", by=None):
    with pytest.raises(SealBrokenError) as caught:
        (by or sealer()).open(sealed, entry, field, model)
    return caught.value


@given(st.binary(max_size=2_000), ENTRIES, NAMES, NAMES)
def test_what_was_sealed_opens_as_it_was(plain, entry, field, model):
    sealed = sealer().seal(plain, entry, field, model)
    assert sealer().open(sealed, entry, field, model) == plain


@given(st.lists(st.tuples(st.binary(max_size=50), ENTRIES), max_size=20))
def test_many_are_sealed_and_opened_as_one_is(given):
    plain, entries = [text for text, _ in given], [entry for _, entry in given]
    sealed = sealer().seal_many(plain, entries, "entry")
    assert [sealer().open(*one, "entry") for one in zip(sealed, entries, strict=True)] == plain


def test_one_text_is_sealed_to_different_bytes_each_time():
    assert len({sealer().seal(PLAIN, ENTRY, "entry") for _ in range(100)}) == 100


# What is refused


@pytest.mark.parametrize("plain", [b"", PLAIN])
def test_a_sealed_field_cut_off_or_extended_is_refused(plain):
    sealed = sealer().seal(plain, ENTRY, "entry")
    for length in range(len(sealed)):
        refused(sealed[:length])
        refused(sealed[length + 1 :])
    refused(sealed + b"\0")
    refused(sealed + sealed)


@pytest.mark.requirement("C145")
def test_a_field_moved_elsewhere_is_refused():
    sealed = sealer().seal(PLAIN, ENTRY, "embedding", "minilm")
    refused(sealed, entry=OTHER_ENTRY, field="embedding", model="minilm")
    refused(sealed, field="entry", model="minilm")
    refused(sealed, field="embedding", model="other")
    refused(sealed, field="embedding")
    refused(sealed, field="embeddingm", model="inilm")
    refused(sealed, field="embedding", model="minilm", by=sealer(agent="other"))
    refused(sealed, field="embedding", model="minilm", by=sealer(salt=new_salt()))


def test_parts_of_two_fields_do_not_join():
    one, other = (sealer().seal(PLAIN, ENTRY, "entry") for _ in range(2))
    for at in (20, 21, 40, len(one) - 16):
        refused(one[:at] + other[at:])


@pytest.mark.requirement("R105")
def test_each_agent_and_each_salt_has_a_key_of_its_own():
    master = MasterKey(KEY)
    uses = [(use, agent) for use in ("seal", "fingerprint") for agent in ("a", "b", "ab", "")]
    keys = {master.derive(*use, salt) for use in uses for salt in (SALT, bytes(32))}
    assert len(keys) == 2 * len(uses)
    assert {len(key) for key in keys} == {32}


def test_the_error_names_the_memory_and_nothing_of_its_content():
    error = refused(sealer().seal(PLAIN, OTHER_ENTRY, "entry"))
    assert error.entry_id == UUID(bytes=ENTRY)
    assert str(UUID(bytes=ENTRY)) in str(error)
    assert "ferry" not in told(error)
    assert not shows(told(error))
    assert isinstance(error, StoreCorruptError)
    assert isinstance(error, ValueError)
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - of this test
    assert (str(copied), copied.entry_id) == (str(error), error.entry_id)


def test_a_field_of_another_key_says_so():
    other = sealer(OTHER_KEY)
    error = refused(other.seal(PLAIN, ENTRY, "entry"))
    assert f"sealed under key {other.key_id.hex()}, not {sealer().key_id.hex()}" in str(error)


@pytest.mark.parametrize("entry", [b"", bytes(15), bytes(17)])
def test_ids_of_another_length_are_refused(entry):
    with pytest.raises(ValueError, match="16 bytes"):
        sealer().seal(PLAIN, entry, "entry")
    with pytest.raises(ValueError, match="16 bytes"):
        sealer().open(sealer().seal(PLAIN, ENTRY, "entry"), entry, "entry")


def test_lists_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="zip"):
        sealer().seal_many([PLAIN], [ENTRY, ENTRY], "entry")


def test_one_sealer_serves_many_threads():
    one = sealer()

    def work(number):
        entry, plain = number.to_bytes(16, "big"), b"%d" % number * 50
        sealed = one.seal(plain, entry, "entry")
        assert one.open(sealed, entry, "entry") == plain
        assert len(one.fingerprints(["tea"])[0]) == 16
        return sealed[9:21]

    with ThreadPoolExecutor(8) as pool:
        made = [*pool.map(work, range(5_000))]
    assert len(set(made)) == 5_000


# Keyed hashes


@pytest.mark.requirement("C188")
def test_fingerprints_are_equal_for_equivalent_texts_of_one_agent_alone():
    one, again, other = sealer(), sealer(), sealer(agent="other")
    texts = ["Tea, please", "  tea, PLEASE!", "coffee"]
    tea, same, coffee = one.fingerprints(texts)
    assert tea == same != coffee
    assert again.fingerprints(texts) == [tea, same, coffee]
    assert {len(tea), len(coffee)} == {16} == {len(each) for each in fingerprints(texts)}
    strangers = [other, sealer(OTHER_KEY), sealer(salt=new_salt())]
    assert not {tea, coffee} & {each for one in strangers for each in one.fingerprints(texts)}
    assert not {tea, coffee} & {*fingerprints(texts)}
    assert one.fingerprints([]) == []


@pytest.mark.requirement("C188")
def test_idempotency_keys_are_hashed_under_the_same_key_apart_from_contents():
    one = sealer()
    assert one.keyed("order 17") == sealer().keyed("order 17") != one.keyed("order 18")
    assert len(one.keyed("order 17")) == 16
    assert one.keyed("tea") != one.fingerprints(["tea"])[0]
    assert one.keyed("tea") != sealer(agent="other").keyed("tea")


# The check of a key


@pytest.mark.requirement("C179")
def test_a_wrong_key_is_told_with_both_ids_and_what_to_do():
    one, other = sealer(), sealer(OTHER_KEY)
    with pytest.raises(WrongKeyError) as caught:
        other.verify_check(one.check_value())
    error = caught.value
    assert (error.agent_id, error.stored, error.given) == (AGENT, one.key_name, other.key_name)
    for part in (repr(AGENT), error.stored, error.given, "open them with the former key"):
        assert part in str(error)
    assert isinstance(error, StoreError)
    assert isinstance(error, PermissionError)
    assert not shows(told(error))
    assert not shows(told(error), OTHER_KEY)
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - of this test
    assert (str(copied), vars(copied)) == (str(error), vars(error))


@pytest.mark.parametrize("value", [None, "", b"", bytes(60)])
def test_a_damaged_check_value_is_no_wrong_key(value):
    with pytest.raises(SealBrokenError, match="agent 'agent': the check value") as caught:
        sealer().verify_check(value)
    assert caught.value.entry_id is None


def test_a_check_value_of_another_agent_or_salt_is_refused():
    for other in (sealer(agent="other"), sealer(salt=new_salt())):
        with pytest.raises(SealBrokenError, match="belong to another agent"):
            sealer().verify_check(other.check_value())


def test_a_check_value_is_no_field_and_a_field_no_check_value():
    refused(sealer().check_value(), entry=bytes(16))
    with pytest.raises(SealBrokenError):
        sealer().verify_check(sealer().seal(b"mnemic", bytes(16), "entry"))


# Salts, and what a sealer shows


def test_salts_are_random_and_of_one_length():
    assert len({new_salt() for _ in range(1_000)}) == 1_000
    for salt in (b"", bytes(31), bytes(33)):
        with pytest.raises(ValueError, match="a salt has 32 bytes"):
            Sealer(MasterKey(KEY), AGENT, salt)


def test_a_sealer_shows_no_key_and_is_neither_pickled_nor_copied():
    one = sealer()
    assert repr(one) == f"Sealer(agent_id='agent', key_name='{one.key_name}')"
    derived = [MasterKey(KEY).derive(use, AGENT, SALT) for use in ("seal", "fingerprint")]
    for key in (KEY, *derived):
        assert not shows(f"{one!r} {one!s} {vars(one)!r}", key)
    for refuse in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled or copied") as caught:
            refuse(one)
        assert not shows(told(caught.value))
