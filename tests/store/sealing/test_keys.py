"""Sealed entries beside other keys and none: what is refused, what is hidden, what is copied."""

import numpy as np
import pytest

from mnemic import Encryption, Memory
from mnemic.errors import DuplicateEntryError, KeyUnavailableError, SealBrokenError, WrongKeyError
from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.store.operations import (
    AddEmbeddings,
    Delete,
    EntriesByRow,
    ForgetAgent,
    Purge,
    SetExpiry,
    SoftDelete,
    Update,
    Users,
    VectorsById,
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
    embedded_numbers,
    exported,
    living_numbers,
    matched,
    numbers,
    one,
    paged,
    row_of,
    rows_of,
    rows_since,
)
from tests.store.sealing.places import (
    SECRET,
    everyone,
    filled,
    flipped,
    problems,
    secret,
    statistics,
    updated,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only, uid
from tests.support.keys import KEY, OTHER_KEY
from tests.support.threads import run_together


@pytest.mark.requirement("C179")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_wrong_key_is_refused_at_opening_and_changes_nothing(store, place, read_only):
    store.check_key("b")  # makes a key
    filled(store)
    wrong, before = place.open(OTHER_KEY, read_only=read_only), place.bytes()
    with pytest.raises(WrongKeyError) as raised:
        wrong.check_key("a")
    assert raised.value.agent_id == "a"
    if not read_only:
        with pytest.raises(WrongKeyError):
            added(wrong, "a", [secret(9)])
        assert wrong.verify().ok
    assert place.bytes() == before
    place.open(OTHER_KEY, previous=[KEY]).check_key("a")


def test_a_store_that_is_only_read_opens_what_is_sealed_and_makes_no_key(store, place):
    added(place.open(None), "b", [numbered(1, agent_id="b")])
    filled(store)
    before, reader = place.keys(), place.open(read_only=True)
    for agent in ("a", "b"):
        reader.check_key(agent)
    assert paged(reader) == [1, 2, 3, 4]
    assert place.keys() == before


def users_of(store):
    return [user.active_entries for user in store.read(Users("a", NOON, 9, 0, None))]


@pytest.mark.requirement("R107", "C179")
def test_without_a_key_sealed_entries_are_invisible_and_counted(store, place):
    filled(store)
    blind = place.open(None)
    blind.check_key("a")
    assert paged(blind) == [2, 4]
    assert count_of(blind, EVERYONE) == 2
    assert one(blind, AGENT, 1) is None
    assert one(blind, AGENT, 1, include_deleted=True) is None
    rows = list(rows_of(store).values())
    assert len(rows) == 4
    found = blind.read(EntriesByRow(EVERYONE, rows, NOON))
    assert sorted(numbers(found.values())) == [2, 4]
    assert len(contents_of(blind, "a", rows)) == 2
    assert [stored.entry.id.int for stored in exported(blind, model="m")] == [2, 4]
    assert matched(blind, where={"content": {"contains": "e"}}) == [2, 4]
    assert row_of(blind, AGENT, uid(1)) is None
    for since in (None, 0):
        batch = rows_since(blind, since)
        assert (living_numbers(batch), embedded_numbers(batch)) == ({2, 4}, {2})
    assert blind.read(VectorsOfRow("a", rows[0], "m")).size == 0
    wanted = {(None, uid(1)), (None, uid(2))}
    assert blind.read(VectorsById("a", wanted, "m")).keys() == {(None, uid(2))}
    stats, known = statistics(blind), statistics(store)
    assert (stats.active_entries, stats.sealed_entries, stats.unreadable_entries) == (2, 2, 2)
    assert stats.storage_bytes_used == known.storage_bytes_used
    assert users_of(blind) == users_of(store)
    assert blind.verify().ok


@pytest.mark.requirement("R107")
def test_without_a_key_sealed_entries_are_not_changed(store, place):
    filled(store)
    before, rows = [stored[:3] for stored in exported(store, model="m")], rows_of(store)
    blind, update = place.open(None), MemoryEntryUpdate(importance=1)
    assert changed(blind, 1, importance=1.0) is None
    assert changed(blind, 1, content="other") is None
    assert blind.write(SetExpiry(AGENT, only(1), NOON, now=NOON)).result() == 0
    both = Criteria([uid(1), uid(3)])
    wanted = Update(EVERYONE, both, change=lambda old: update.applied_to(old, NOON), now=NOON)
    assert blind.write(wanted).result() == []
    vectors = [np.eye(2, dtype="f4")]
    blind.write(AddEmbeddings("a", "m", {rows[1]: f"{SECRET} 1"}, vectors)).result()
    assert [stored[:3] for stored in exported(store, model="m")] == before
    assert store.verify().ok


def test_without_a_key_a_sealed_entry_is_not_stored_over(store, place):
    filled(store)
    blind = place.open(None)
    with pytest.raises(KeyUnavailableError):
        added(blind, "a", [numbered(1)], on_conflict="replace")
    with pytest.raises(DuplicateEntryError, match="already stored"):
        added(blind, "a", [numbered(1)])
    assert one(store, AGENT, 1).content == f"{SECRET} 1"
    assert store.verify().ok


ANY_IMPORTANCE = Criteria(expression=parse_filter({"importance": {"gte": 0}}))
DELETIONS = {
    "by id": (Delete(AGENT, only(1)), [2, 3, 4]),
    "by ids": (Delete(EVERYONE, Criteria([uid(1), uid(3)])), [2, 4]),
    "all": (Delete(EVERYONE), []),
    "all of alice": (Delete(ALICE), [1, 2]),
    "by a filter, which sees none": (Delete(EVERYONE, ANY_IMPORTANCE), [1, 3]),
}


@pytest.mark.parametrize("way", DELETIONS)
def test_without_a_key_sealed_entries_can_be_deleted(store, place, way):
    filled(store)
    wanted, left = DELETIONS[way]
    gone = place.open(None).write(wanted).result()
    assert sorted([*numbers_of(gone), *left]) == [1, 2, 3, 4]
    assert paged(store) == left
    assert len(place.vectors()) == len(set(left) & {1, 3}) + place.has_plain_vectors * (2 in left)
    assert store.verify().ok
    assert place.open(None).verify().ok


def numbers_of(ids):
    return [one.int for one in ids]


def test_without_a_key_a_sealed_entry_can_be_forgotten_and_purged(store, place):
    filled(store)
    blind = place.open(None)
    assert blind.write(SoftDelete(AGENT, only(1), NOON)).result() == [uid(1)]
    assert one(store, AGENT, 1) is None
    assert blind.write(Purge(EVERYONE, NOON + HOUR)).result() == [uid(1)]
    assert store.verify().ok


@pytest.mark.requirement("C179")
def test_without_a_key_nothing_sensitive_is_stored_for_an_agent_that_has_one(store, place):
    plain = place.open(None)
    added(plain, "a", [secret(7)])  # before there is a key
    filled(store)
    assert not place.column("is_encrypted", 7)
    before = paged(plain)
    with pytest.raises(KeyUnavailableError, match=r"encryption=Encryption\(key=...\)") as raised:
        added(plain, "a", [numbered(8), secret(9)])
    assert SECRET not in str(raised.value)
    assert paged(plain) == before == [2, 4, 7]
    added(plain, "a", [numbered(8)])
    added(plain, "b", [numbered(9, sensitive=True, agent_id="b")])
    assert one(plain, Scope("b"), 9).is_encrypted is False
    with pytest.raises(KeyUnavailableError):
        added(plain, "b", [numbered(1, is_encrypted=True)])
    assert plain.verify().ok


def test_stores_of_one_process_with_and_without_a_key_keep_apart(store, place):
    plain, refused = place.open(None), []
    added(store, "a", [numbered(9)])

    def keyed():
        for number in range(101, 130):
            added(store, "a", [secret(number)])

    def keyless():
        for number in range(201, 230):
            try:
                added(plain, "a", [secret(number)])
            except KeyUnavailableError:
                refused.append(number)

    run_together(keyed, keyless)
    assert len(refused) == 29
    assert place.shows() == []
    rows_since(store, None)
    rows = rows_of(store)
    wanted = EntriesByRow(EVERYONE, list(rows.values()), NOON)
    assert plain.read(wanted).keys() == {rows[9]}
    assert len(store.read(wanted)) == 30


def test_an_agent_under_another_key_disturbs_nobody(place, caplog):
    mine, others = place.open(), place.open(OTHER_KEY)
    filled(mine)
    added(others, "b", [secret(1, agent_id="b"), numbered(2, agent_id="b")])
    for store, agent, entries in ((mine, "a", {1, 2, 3, 4}), (others, "b", {1, 2})):
        store.check_key(agent)
        assert set(paged(store, everyone(agent))) == set(rows_of(store, agent)) == entries
        assert store.verify().ok
        store.erase().result()
    assert caplog.records == []
    place.put("content", "damaged", 1, "b")
    assert problems(mine if place.has_sums else others)
    assert len(paged(mine)) == 4


def test_a_backup_has_the_keys_and_nothing_plain(store, place):
    filled(store)
    store.backup(place.copy)
    assert place.shows() == []  # the folder has both
    copy = place.open(url=place.copy)
    copy.check_key("a")
    assert paged(copy) == [1, 2, 3, 4]
    assert one(copy, AGENT, 1).content == f"{SECRET} 1"
    assert rows_since(copy, None).vectors.tolist() == rows_since(store, None).vectors.tolist()
    with pytest.raises(WrongKeyError):
        place.open(OTHER_KEY, url=place.copy).check_key("a")
    copy.close()


# Keys that were damaged, destroyed or made anew


@pytest.mark.parametrize("name", ["salt", "check_value", "key_id", "name"])
def test_damage_to_what_is_stored_of_a_key_is_noticed_at_opening(place, name):
    first = place.open()
    added(first, "a", [secret(1)])
    added(first, "b", [secret(1, agent_id="b", content="of b")])
    ((value,),) = place.run(f"SELECT {name} FROM agent_memory_keys WHERE agent_id = 'a'")  # noqa: S608
    other = "other" if name == "name" else flipped(value, 0)
    place.run(f"UPDATE agent_memory_keys SET {name} = ? WHERE agent_id = 'a'", other)  # noqa: S608
    first.close()
    store = place.open()
    if name == "name":  # which is for key providers alone
        store.check_key("a")
        return
    with pytest.raises((SealBrokenError, WrongKeyError)) as raised:
        store.check_key("a")
    assert "'a'" in str(raised.value)
    store.check_key("b")
    assert one(store, Scope("b"), 1).content == "of b"


def test_a_key_given_to_another_agent_is_noticed(place):
    first = place.open()
    for agent in ("a", "b"):
        added(first, agent, [secret(1, agent_id=agent)])
    first.close()
    place.run("DELETE FROM agent_memory_keys WHERE agent_id = 'a'")
    place.run("UPDATE agent_memory_keys SET agent_id = 'a'")
    with pytest.raises(SealBrokenError, match="another agent"):
        place.open().check_key("a")


def test_a_lost_key_row_is_no_new_key_that_opens_nothing(store, place):
    """The entries are unreadable then, and named; nothing of them is lost by that."""
    filled(store)
    store.close()
    place.run("DELETE FROM agent_memory_keys")
    store = place.open()
    store.check_key("a")
    assert paged(store) == [2, 4]
    assert statistics(store).unreadable_entries == 2
    with pytest.raises(SealBrokenError):
        one(store, AGENT, 1)
    assert place.field(1)


def test_a_key_that_was_destroyed_is_replaced_by_the_next_write_and_opens_nothing_old(store, place):
    added(store, "a", [secret(1), numbered(2), numbered(3)])
    writes = {
        2: lambda: added(store, "a", [secret(2)], on_conflict="replace"),
        3: lambda: updated(store, 3, metadata={"sensitive": True}),
        4: lambda: added(store, "a", [secret(4)]),
    }
    for number, write in writes.items():
        place.run("DELETE FROM agent_memory_keys")
        write()
        assert one(store, AGENT, number).is_encrypted
    for broken in (lambda: one(store, AGENT, 1), lambda: updated(store, 1, importance=0.75)):
        with pytest.raises(SealBrokenError):
            broken()


def test_what_is_forgotten_of_an_agent_opens_never_again(store, place):
    added(place.open(None), "b", [numbered(1, agent_id="b")])
    filled(store)
    ((_, salt),) = place.keys()
    assert len(store.write(ForgetAgent("a")).result()) == 4
    added(store, "a", [secret(1)])
    ((_, other),) = place.keys()
    assert salt != other
    store.erase().result()
    assert salt not in place.bytes()
    assert [count_of(store, scope) for scope in (EVERYONE, Scope("b"))] == [1, 1]


def test_another_opening_seals_under_a_new_key_after_a_forgotten_agent(place):
    sealing = {"encryption": Encryption(KEY), "embedder": None}
    with Memory(place.url, "a", **sealing) as first, Memory(place.other_url, "a", **sealing) as two:
        for turn in range(4):
            two.add("an old secret", sensitive=True)
            first.forget_agent()
            note = {"content": f"a new secret {turn}", "sensitive": True}
            made = two.add_many([note])[0] if turn % 2 else two.add(**note)
            assert made.is_encrypted
            assert first.get(made.id).content == f"a new secret {turn}"
            assert two.verify().ok
    assert len(place.keys()) == 1
