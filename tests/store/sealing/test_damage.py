"""What somebody who has no key may do to stored memories, and that each costs itself alone."""

from base64 import b64decode
from contextlib import suppress

import numpy as np
import pytest

from mnemic.errors import SealBrokenError, StoreCorruptError
from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.store.operations import (
    Delete,
    EntriesByRow,
    SetExpiry,
    SoftDelete,
    StoredEntries,
    Update,
    VectorsOfRow,
)
from tests.store.contract import (
    AGENT,
    ALICE,
    EVERYONE,
    added,
    changed,
    contents_of,
    count_of,
    embedded,
    embedded_numbers,
    exported,
    living_numbers,
    matched,
    one,
    paged,
    rows_since,
)
from tests.store.sealing.places import (
    LOG,
    SECRET,
    VECTOR,
    everyone,
    flipped,
    problems,
    sealed_and_plain,
    secret,
    statistics,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import only, uid

TAMPERINGS = {
    "another entry's content": lambda place: place.put("content", place.column("content", 2), 1),
    "no UTF-8": lambda place: place.run(
        "UPDATE agent_memory_entries SET content = CAST(x'fffe' AS TEXT) WHERE row = 1"
    ),
    "a bit of the text": lambda place: place.put_field(flipped(place.field(1), 40), 1),
    "another user": lambda place: place.put("user_id", "mallory", 1),
    "alice's": lambda place: place.put("user_id", "alice", 1),
    "not sensitive": lambda place: place.put("is_sensitive", value=False, number=1),
    "older": lambda place: place.put("created_at", 1, 1),
}
"""What happens to entry 1; that no other field opens is shown of the codec."""
SCOPES = {"another user": Scope("a", "mallory"), "alice's": ALICE}
OTHERS = {2, 3, 4}
"""The entries of agent a that nobody tampers with."""
RIGHT_SUMS = pytest.mark.parametrize("right_sums", [False, True], ids=["wrong sums", "right sums"])


def tampered(place, tamper, *, right_sums):
    """Return a store that is opened after somebody has tampered with it."""
    if right_sums and not place.has_sums:
        pytest.skip("has no sums")
    sealed_and_plain(place)
    tamper(place)
    if right_sums:
        place.make_sums_right()
    store = place.open()
    store.check_key("a")
    return store


def rows_in(place):
    return [row for (row,) in place.run("SELECT row FROM agent_memory_entries ORDER BY row")]


@pytest.mark.requirement("C145", "C179", "R081", "R097", "C105")
@RIGHT_SUMS
@pytest.mark.parametrize("name", TAMPERINGS)
def test_an_entry_that_was_tampered_with_costs_itself_alone(place, name, right_sums, caplog):
    if name == "no UTF-8" and not place.has_sums:
        pytest.skip("a server stores UTF-8 alone")
    store = tampered(place, TAMPERINGS[name], right_sums=right_sums)
    check_it_is_never_returned(store, SCOPES.get(name, AGENT))
    check_lists_leave_it_out(store)
    check_an_index_reads_all_others(store)
    check_reads_of_many_leave_it_out(store, rows_in(place))
    check_log(caplog)
    check_verification_names_it(store)
    check_others_are_stored_beside_it(store)


def check_it_is_never_returned(store, scope):
    for options in ({}, {"include_deleted": True}):
        with pytest.raises(SealBrokenError) as raised:
            one(store, scope, 1, **options)
        assert raised.value.entry_id == uid(1)
        assert SECRET not in str(raised.value)
    assert one(store, AGENT, 2).content == f"{SECRET} 2"


def check_lists_leave_it_out(store):
    with_e = {"content": {"contains": "e"}}
    assert set(paged(store)) == set(paged(store, where=with_e)) == OTHERS
    assert matched(store, where={"tags": {"contains": SECRET}}) == [2, 3]
    assert matched(store, limit=2) == [2, 3]
    assert paged(store, limit=3) == [2, 3, 4]
    assert count_of(store, EVERYONE, parse_filter(with_e)) == 3


def check_an_index_reads_all_others(store):
    for since in (None, 0):
        batch = rows_since(store, since)
        assert living_numbers(batch) == embedded_numbers(batch) == OTHERS
        assert sorted(batch.vectors.tolist()) == [pytest.approx(VECTOR), [1, 0], [3, 4]]


def check_reads_of_many_leave_it_out(store, rows):
    found = store.read(EntriesByRow(EVERYONE, rows, NOON))
    assert {entry.id.int for entry in found.values()} == OTHERS
    assert len(contents_of(store, "a", rows)) == 3
    for model in (None, "m"):
        assert {stored.entry.id.int for stored in exported(store, model=model)} == OTHERS
    wanted = StoredEntries(EVERYONE, 0, 1, now=NOON, include_deleted=True, model="m")
    assert len(store.read(wanted)) == 1


def check_log(caplog):
    """Check that entry 1 was logged as what does not open, and nothing else."""
    assert caplog.records
    for record in caplog.records:
        assert record.levelname == "ERROR"
        assert record.getMessage().startswith(f"{LOG} {uid(1)}: ")
        assert SECRET not in record.getMessage()


def check_verification_names_it(store):
    with pytest.raises(SealBrokenError) as raised:
        store.verify()
    report = raised.value.report
    assert raised.value.entry_id == uid(1)
    assert (report.memories, report.vectors, report.links) == (5, 5, 1)
    assert {problem.id for problem in report.problems} - {None} == {uid(1)}
    assert SECRET not in repr(report) + str(raised.value)


def check_others_are_stored_beside_it(store):
    sealed = statistics(store).sealed_entries
    assert statistics(store).unreadable_entries == 1
    added(store, "a", [secret(5), embedded(6)])
    added(store, "a", [secret(7)], on_conflict="replace")
    changed(store, 2, importance=0.9)
    assert paged(store, where={"importance": {"gt": 0.8}}) == [2]
    stats = statistics(store)
    assert (stats.unreadable_entries, stats.sealed_entries - sealed) == (1, 2)
    assert one(store, AGENT, 5).content == f"{SECRET} 5"


@pytest.mark.requirement("C145", "C179")
def test_an_entry_given_to_another_agent_does_not_open(place):
    if not place.has_sums:
        pytest.skip("a server's keys of tables hold an entry at its agent")
    store = tampered(place, lambda place: place.put("agent_id", "b2", 1), right_sums=True)
    store.check_key("b2")
    with pytest.raises(SealBrokenError):
        one(store, Scope("b2"), 1)
    assert paged(store, everyone("b2")) == []
    assert set(paged(store)) == OTHERS
    with pytest.raises(SealBrokenError):
        store.verify()


@pytest.mark.requirement("C145", "C179")
def test_a_plain_entry_that_is_marked_as_sealed_does_not_open(place):
    sealed_and_plain(place)
    place.put("is_encrypted", value=True, number=4)
    place.make_sums_right()
    store = place.open()
    with pytest.raises(SealBrokenError) as raised:
        one(store, AGENT, 4)
    assert raised.value.entry_id == uid(4)
    assert paged(store) == [1, 2, 3]


@pytest.mark.requirement("C145", "C179")
def test_a_sealed_entry_that_lost_its_mark_is_damaged_or_shows_what_the_tables_show(place):
    sealed_and_plain(place)
    place.put("is_encrypted", value=False, number=1)
    if place.has_sums:
        with pytest.raises(StoreCorruptError):
            one(place.open(), AGENT, 1)
        place.make_sums_right()
    entry = one(place.open(), AGENT, 1)
    assert not entry.is_encrypted
    assert b64decode(entry.content) == place.field(1)
    if place.has_sums:
        with pytest.raises(StoreCorruptError, match="dimensions"):  # a sealed vector is longer
            rows_since(place.open(), None)
    else:
        assert embedded_numbers(rows_since(place.open(), None)) == OTHERS


VECTORS = {
    "flipped": lambda own, _: flipped(own, 30),
    "another's": lambda _, others: others,
    "plain": lambda *_: np.array(VECTOR, "<f4").tobytes(),
    "cut off": lambda own, _: own[:-1],
    "empty": lambda *_: b"",
}


@pytest.mark.requirement("C145", "C179")
@RIGHT_SUMS
@pytest.mark.parametrize("damage", VECTORS)
def test_a_damaged_vector_leaves_its_entry_to_be_found_by_words(place, damage, right_sums, caplog):
    def tamper(place):
        (row, own), (_, others), *_ = place.vectors()
        place.put_vector(VECTORS[damage](own, others), row)

    store = tampered(place, tamper, right_sums=right_sums)
    rows = rows_in(place)
    for since in (None, 0):
        batch = rows_since(store, since)
        assert living_numbers(batch) == {1, 2, 3, 4}
        found = dict(zip(batch.embedded, batch.vectors.tolist(), strict=True))
        assert found.pop(rows[0], [0, 0]) == [0, 0]
        assert found == {rows[1]: [3, 4], rows[2]: pytest.approx(VECTOR), rows[3]: [1, 0]}
    stored = {each.entry.id.int: each.entry.embedding for each in exported(store, model="m")}
    assert {number: vector is None for number, vector in stored.items()} == {
        1: True,
        **dict.fromkeys(OTHERS, False),
    }
    assert one(store, AGENT, 1).content == f"{SECRET} 1"
    assert any(f"{LOG} {uid(1)}: " in record.getMessage() for record in caplog.records)
    with pytest.raises(StoreCorruptError):
        store.read(VectorsOfRow("a", rows[0], "m"))
    assert store.read(VectorsOfRow("a", rows[1], "m")).tolist() == [[3, 4]]
    with pytest.raises(SealBrokenError) as raised:
        store.verify()
    assert raised.value.entry_id == uid(1)
    assert raised.value.report.memories == 5
    assert {problem.id for problem in raised.value.report.problems} - {None} == {uid(1)}
    assert paged(store) == [1, 2, 3, 4]


def test_broken_entries_can_be_deleted(place):
    store = tampered(place, TAMPERINGS["a bit of the text"], right_sums=False)
    assert store.write(Delete(AGENT, only(1))).result() == [uid(1)]
    assert store.verify().ok
    assert paged(store) == [2, 3, 4]


def raised(entry):
    return MemoryEntryUpdate(importance=0.9).applied_to(entry, NOON)


WRITES = {
    "update": lambda store: changed(store, 1, importance=0.9),
    "replace": lambda store: added(store, "a", [secret(1, content="new")], on_conflict="replace"),
    "update_all": lambda store: store.write(
        Update(EVERYONE, Criteria([uid(1), uid(2)]), change=raised, now=NOON)
    ).result(),
    "merge": lambda store: added(
        store, "a", [secret(7, content=f"{SECRET} 1")], on_duplicate="merge"
    ),
    "expiry": lambda store: store.write(SetExpiry(AGENT, only(1), NOON + HOUR, now=NOON)).result(),
    "soft": lambda store: store.write(SoftDelete(AGENT, only(1), NOON)).result(),
}


@pytest.mark.parametrize("way", WRITES)
def test_a_write_to_a_broken_entry_is_an_error_or_leaves_it_as_it_is(place, way):
    """It never makes damaged bytes look right."""
    store = tampered(place, TAMPERINGS["a bit of the text"], right_sums=False)
    before = place.column("content", 1)
    with suppress(SealBrokenError):
        WRITES[way](store)
    assert place.column("content", 1) == before
    assert uid(1) in {problem.id for problem in problems(store)}
    with pytest.raises(SealBrokenError):
        store.verify()
    assert paged(store)[:3] == [2, 3, 4]
