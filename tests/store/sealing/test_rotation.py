"""Keys of agents that are rotated: all is sealed anew, beside openings with both keys and one."""

import logging

import numpy as np
import pytest

from mnemic.crypto import Encryption
from mnemic.errors import InvalidArgumentError, WrongKeyError
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import (
    Add,
    Delete,
    EndRotation,
    EntriesByRow,
    Reseal,
    SealedUnderOtherKeys,
    VectorsOfRow,
)
from tests.store.contract import (
    AGENT,
    EVERYONE,
    added,
    count_of,
    embedded,
    exported,
    one,
    rows_of,
    rows_since,
    seq_of,
    used_bytes,
)
from tests.store.sealing.places import LOG, VECTOR, flipped, secret, updated
from tests.support.clock import NOON
from tests.support.entries import only, uid
from tests.support.keys import KEY, OTHER_KEY


@pytest.fixture
def five(store, place):
    """Return a store of four sealed entries, the last with two vectors, and one that is not."""
    added(place.open(None), "a", [embedded(5)])
    added(store, "a", [secret(1), secret(2), secret(3)], ["k", None, None])
    new = NewEntry(store.marked(secret(4)), None, (np.array((0.5, 0.5), np.float32),))
    store.write(Add("a", [new], now=NOON)).result()
    return store


@pytest.fixture
def other(place):
    """Return another opening, with the former key."""
    opened = place.open(url=place.other_url)
    opened.check_key("a")
    return opened


def begin_rotation(store):
    store.begin_rotation("a", Encryption(OTHER_KEY, previous=[KEY]))


def resealed(store, limit=2):
    """Seal everything under the newest key; return how many entries that was."""
    number = after = 0
    while True:
        sealed, last = store.write(Reseal("a", after, limit)).result()
        if not last:
            return number
        number, after = number + sealed, last


def rotate(store):
    begin_rotation(store)
    number = resealed(store)
    assert store.write(EndRotation("a")).result()
    return number


def shown_of(store):
    """Return all that a store tells of its entries, with keys and vectors."""
    stored, batch = exported(store, model="m"), rows_since(store, None)
    return (
        [(kept.row, kept.entry, kept.key, np.array(kept.more).tolist()) for kept in stored],
        [kept.entry.embedding.tolist() for kept in stored],
        sorted(zip(batch.embedded, batch.vectors.tolist(), strict=True)),
    )


def test_rotation_seals_everything_anew_and_changes_nothing_else(five, place):
    before = shown_of(five), seq_of(five), used_bytes(five, "a")
    begin_rotation(five)
    assert five.read(SealedUnderOtherKeys("a")) == 4
    assert not five.write(EndRotation("a")).result()
    assert shown_of(five) == before[0]
    assert resealed(five) == 4
    assert five.read(SealedUnderOtherKeys("a")) == 0
    assert five.write(EndRotation("a")).result()
    assert (shown_of(five), seq_of(five), used_bytes(five, "a")) == before
    assert five.verify().ok
    newer = place.open(OTHER_KEY)
    newer.check_key("a")
    assert shown_of(newer) == before[0]
    with pytest.raises(WrongKeyError):
        place.open().check_key("a")
    assert place.shows() == []
    assert added(newer, "a", [secret(9, content="zqsecret 1")], ["k"]).ids == [uid(1)]


def test_a_rotation_ends_though_an_entry_has_a_vector_of_zeros(store):
    added(store, "a", [secret(1, (0, 0)), secret(2)])
    begin_rotation(store)
    assert resealed(store) == 2
    assert store.read(SealedUnderOtherKeys("a")) == 0
    assert store.write(EndRotation("a")).result()


def test_openings_with_both_keys_go_on_while_one_rotates(five, other):
    other._codec.keyring.encryption = Encryption(KEY, previous=[OTHER_KEY])
    rows_since(other, None)
    rows = list(rows_of(other).values())
    begin_rotation(five)
    added(other, "a", [secret(6)])
    updated(other, 1, importance=0.75)
    assert resealed(five) == 4  # of the one that was updated, the vectors
    assert five.write(EndRotation("a")).result()
    added(other, "a", [secret(7)])
    updated(other, 2, importance=0.75)
    assert len(other.read(EntriesByRow(EVERYONE, rows, NOON))) == 5
    assert count_of(other, EVERYONE) == count_of(five, EVERYONE) == 7
    assert five.read(SealedUnderOtherKeys("a")) == 0
    assert five.verify().ok


def test_an_opening_without_the_new_key_is_told_so(five, other):
    rotate(five)
    for refused in (
        lambda: added(other, "a", [secret(6)]),
        lambda: updated(other, 1, importance=0.75),
        lambda: one(other, AGENT, 1),
        lambda: rows_since(other, None),
    ):
        with pytest.raises(WrongKeyError):
            refused()


def test_an_entry_that_does_not_open_keeps_the_former_key(five, place, caplog):
    place.put_field(flipped(place.field(1), 40), 1)
    begin_rotation(five)
    with caplog.at_level(logging.ERROR):
        assert resealed(five) == 3
    assert f"{LOG} {uid(1)}" in caplog.text
    assert not five.write(EndRotation("a")).result()
    assert five.read(SealedUnderOtherKeys("a")) == 1
    assert five.write(Delete(AGENT, only(1))).result() == [uid(1)]
    assert five.write(EndRotation("a")).result()


def test_a_vector_under_a_former_key_counts_and_is_sealed_anew(five, place):
    row = rows_of(five)[4]
    older = five._codec.keyring.keys("a").current
    begin_rotation(five)
    resealed(five)
    blob = older.seal(np.array(VECTOR, "<f4").tobytes(), uid(4).bytes, "embedding 0", "m")
    table, column = place.of_vectors
    place.run(f"UPDATE {table} SET {column} = ? WHERE entry_row = ? AND part = 0", blob, row)  # noqa: S608
    place.make_sums_right()
    assert five.read(SealedUnderOtherKeys("a")) == 1
    assert not five.write(EndRotation("a")).result()
    assert resealed(five) == 1
    assert five.write(EndRotation("a")).result()
    kept = five.read(VectorsOfRow("a", row, "m"))
    assert kept[0].tolist() == pytest.approx(VECTOR)


def test_a_rotation_needs_encryption(place):
    store = place.open(None)
    for call in (
        lambda: begin_rotation(store),
        lambda: store.read(SealedUnderOtherKeys("a")),
        lambda: store.write(Reseal("a", 0, 10)).result(),
        lambda: store.write(EndRotation("a")).result(),
    ):
        with pytest.raises(InvalidArgumentError, match="without encryption"):
            call()
