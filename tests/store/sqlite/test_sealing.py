"""Sealed entries in a file: written, read, changed, damaged, and seen with another key or none."""

from base64 import b64decode
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from mnemic.errors import (
    EntryNotFoundError,
    KeyUnavailableError,
    SealBrokenError,
    StoreCorruptError,
    WrongKeyError,
)
from mnemic.model import MemoryEntryUpdate, MemoryFilter, Scope, distinct
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import (
    Add,
    AddEmbeddings,
    Delete,
    DeleteAll,
    DistinctValues,
    EntriesByRow,
    LinksOf,
    Purge,
    ScopeStatistics,
    SetExpiry,
    SoftDelete,
    Successors,
    Update,
    UpdateAll,
    Users,
    VectorsById,
    VectorsOfRow,
)
from mnemic.store.row_codec import PlainRowCodec, UsedKey
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    EVERYTHING,
    MODEL,
    added,
    changed,
    contents_of,
    count_of,
    embedded,
    embedded_numbers,
    exported,
    forgotten,
    linked,
    living_numbers,
    matched,
    matching,
    one,
    paged,
    row_of,
    rows_of,
    rows_since,
    seq_of,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, uid
from tests.support.keys import KEY, OTHER_KEY
from tests.support.sealing import (
    column,
    encryption,
    make_sums_right,
    opened_field,
    put,
    put_field,
    run,
)
from tests.support.secret_forms import left_in

SECRET = "zqsecret"  # noqa: S105 - no password
LOG = "Failed to decrypt memory entry"


@pytest.fixture
def opening(path):
    """Return what opens the file, with a key unless told otherwise."""
    stores = []

    def opens(key=KEY, **options):
        sealing = None if key is None else encryption(key, **options)
        stores.append(SqliteStore(path, encryption=sealing))
        return stores[-1]

    yield opens
    for store in stores:
        store.close()


@pytest.fixture
def store(opening):
    return opening()


def secret(number, vector=(3, 4), **fields):
    """Return a sensitive entry with a vector."""
    given = {"content": f"{SECRET} {number}", "sensitive": True, "tags": [SECRET], **fields}
    return embedded(number, vector, **given)


def filled(store):
    """Store two sensitive entries, one of alice's, and a plain one of each."""
    added(store, "a", [secret(1), embedded(2), secret(3, user_id="alice")], ["k1", "k2", "k3"])
    added(store, "a", [numbered(4, user_id="alice")])


def is_sealed(path, number, agent="a"):
    return column(path, "is_encrypted", number, agent) == 1


# What is stored


@pytest.mark.requirement("R117", "R126", "R004", "R105", "C188")
def test_a_sensitive_entry_is_stored_sealed_and_read_as_it_was(store, path):
    made = secret(1, metadata={"who": SECRET}, category=SECRET, source=SECRET, speaker=SECRET)
    stored = added(store, "a", [made, numbered(2)], [f"{SECRET}-key", None])
    assert stored.is_new == [True, True]
    assert one(store, AGENT, 1) == store.marked(made)
    assert one(store, AGENT, 1).is_encrypted
    assert [is_sealed(path, 1), is_sealed(path, 2)] == [True, False]
    for name in ("metadata", "tags", "speaker", "category", "source", "role", "scope"):
        assert column(path, name, 1) is None
    (plain,) = PlainRowCodec().rows([(made, UsedKey(f"{SECRET}-key"))])
    for name, open_value in zip(
        ("fingerprint", "idempotency_key", "key_fingerprint"), plain.more, strict=True
    ):
        assert column(path, name, 1) not in (open_value, str(open_value).encode())
    assert left_in(path.parent, [SECRET], [made.embedding]) == {}
    assert column(path, "content", 2) == b"memory 2"


@pytest.mark.requirement("R106", "C087")
def test_vectors_of_sealed_entries_are_sealed_one_by_one(store, path):
    parts = [np.array([1, 2], np.float32), np.array([3, 4], np.float32)]
    new = NewEntry(store.marked(secret(1, parts[0])), None, parts[1:])
    store.write(Add("a", [new], now=NOON)).result()
    blobs = [blob for (blob,) in run(path, "SELECT embedding FROM agent_memory_embeddings")]
    assert len(blobs) == 2
    for blob, part in zip(blobs, parts, strict=True):
        assert part.tobytes() not in blob
    assert store.read(VectorsOfRow("a", rows_of(store)[1], "m")).tolist() == [[1, 2], [3, 4]]
    assert rows_since(store, None).vectors.tolist() == [[1, 2], [3, 4]]


def test_sealed_entries_are_listed_filtered_and_counted_like_others(store):
    filled(store)
    assert paged(store) == [1, 2, 3, 4]
    assert matched(store, where={"tags": {"contains": SECRET}}) == [1, 3]
    assert matched(store, where={"content": {"contains": "memory"}}) == [2, 4]
    assert count_of(store, ALICE, now=NOON) == 2
    query = distinct.distinct_query("tags", None, 9, 0)
    assert [
        (each.value, each.count)
        for each in store.read(DistinctValues(EVERYONE, EVERYTHING, query, now=NOON))
    ] == [(SECRET, 2)]
    assert contents_of(store, "a", list(rows_of(store).values())).keys() == set(
        rows_of(store).values()
    )
    assert [stored.key for stored in exported(store)] == ["k1", "k2", "k3", None]
    stats = store.read(ScopeStatistics(EVERYONE, now=NOON))
    assert (stats.active_entries, stats.sealed_entries, stats.unreadable_entries) == (4, 2, 0)
    assert [(tag.tag, tag.count) for tag in stats.top_tags] == [(SECRET, 2)]


def test_figures_of_sealed_entries_are_of_the_scope(store):
    filled(store)
    assert store.read(ScopeStatistics(ALICE, now=NOON)).sealed_entries == 1
    assert store.read(ScopeStatistics(BOB, now=NOON)).sealed_entries == 0
    forgotten(store, 3, scope=ALICE)
    assert store.read(ScopeStatistics(ALICE, now=NOON)).sealed_entries == 1
    assert store.read(ScopeStatistics(Scope("b", all_users=True), now=NOON)).sealed_entries == 0


def test_what_one_opening_seals_another_reads_and_reopening_too(opening):
    first, second = opening(), opening()
    filled(first)
    assert paged(second) == paged(first) == [1, 2, 3, 4]
    added(second, "a", [secret(5)])
    assert one(first, AGENT, 5).content == f"{SECRET} 5"
    first.close()
    second.close()
    assert paged(opening()) == [1, 2, 3, 4, 5]


@pytest.mark.requirement("R105", "C179")
def test_each_agent_has_a_key_of_its_own_however_many_openings_make_it(opening, path):
    stores = [opening() for _ in range(4)]
    for number, store in enumerate(stores):
        for agent in ("a", "b"):
            added(store, agent, [secret(number + 1, agent_id=agent)])
    keys = run(path, "SELECT agent_id, salt, check_value FROM agent_memory_keys ORDER BY agent_id")
    assert [agent for agent, *_ in keys] == ["a", "b"]
    assert keys[0][1] != keys[1][1]
    for agent in ("a", "b"):
        assert paged(stores[0], Scope(agent, all_users=True)) == [1, 2, 3, 4]


# Retries and duplicates


@pytest.mark.parametrize("sealed_first", [True, False])
def test_a_retry_finds_the_entry_whether_or_not_it_is_sealed(opening, sealed_first):
    """As one does after the options of encryption have changed."""
    first, second = opening(encrypt_all=sealed_first), opening(encrypt_all=not sealed_first)
    assert added(first, "a", [numbered(1)], ["k"]).is_new == [True]
    again = added(second, "a", [numbered(2, content="memory 1")], ["k"])
    assert (again.ids, again.is_new) == ([uid(1)], [False])
    with pytest.raises(Exception, match="used for another content"):
        added(second, "a", [numbered(3, content="other")], ["k"])


def test_a_retry_finds_the_entry_that_was_sealed_meanwhile(opening, path):
    store = opening()
    added(store, "a", [numbered(1)], ["k"])
    sealed_by_update(store, 1)
    assert is_sealed(path, 1)
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    assert exported(store)[0].key == "k"
    changed(store, 1, content="new")
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(1)]
    store.write(Delete(AGENT, uid(1))).result()
    assert added(store, "a", [numbered(2, content="memory 1")], ["k"]).ids == [uid(2)]


@pytest.mark.parametrize("way", ["skip", "merge"])
def test_a_sensitive_text_finds_its_sealed_duplicate(store, way, path):
    added(store, "a", [secret(1, importance=0.1)])
    again = secret(2, content=f"{SECRET.upper()}  1", importance=0.9, tags=["new"])
    assert added(store, "a", [again], on_duplicate=way).ids == [uid(1)]
    assert one(store, AGENT, 1).tags == ((SECRET, "new") if way == "merge" else (SECRET,))
    assert is_sealed(path, 1)
    others = [
        secret(3, content=f"{SECRET} 1", user_id="bob"),
        secret(4, content=f"{SECRET} 1", agent_id="b"),
    ]
    assert added(store, "a", others[:1], on_duplicate=way).is_new == [True]
    assert added(store, "b", others[1:], on_duplicate=way).is_new == [True]


def test_replacing_never_takes_the_seal_off_silently(store, path):
    added(store, "a", [secret(1)], ["k"])
    result = added(store, "a", [secret(1, content="zqother")], on_conflict="replace")
    assert result.replaced[0].is_sealed_now is False
    assert is_sealed(path, 1)
    assert one(store, AGENT, 1).content == "zqother"
    assert added(store, "a", [secret(2, content=f"{SECRET} 1")], ["k"]).ids == [uid(1)]
    added(store, "a", [numbered(3)], ["l"])
    result = added(store, "a", [secret(3, content="memory 3")], on_conflict="replace")
    assert result.replaced[0].is_sealed_now is True
    assert is_sealed(path, 3)
    assert added(store, "a", [numbered(4, content="memory 3")], ["l"]).ids == [uid(3)]


def test_a_replacement_that_is_not_sensitive_leaves_nothing_of_the_sealed_one(store, path):
    """It takes everything again, the mark too."""
    added(store, "a", [secret(1)], ["k"])
    added(store, "a", [numbered(1, content="not marked")], on_conflict="replace")
    found = one(store, AGENT, 1)
    assert (found.content, found.sensitive, found.is_encrypted) == ("not marked", False, False)
    assert not is_sealed(path, 1)
    assert store.read(VectorsOfRow("a", rows_of(store)[1], "m")).size == 0
    assert added(store, "a", [secret(2, content=f"{SECRET} 1")], ["k"]).ids == [uid(1)]
    assert store.verify().ok


# Sealed by an update


def sealed_by_update(store, number, scope=AGENT, **fields):
    """Make an entry sensitive, as the repository does."""
    update = MemoryEntryUpdate(metadata={"sensitive": True}, **fields)
    return store.write(
        Update(
            scope,
            uid(number),
            change=lambda old: store.marked(update.applied_to(old, NOON)),
            now=NOON,
        )
    ).result()


@pytest.mark.requirement("R078", "C087")
def test_an_update_seals_everything_that_was_plain(store, path):
    made = embedded(1, (5, 6), content=SECRET, tags=[SECRET], category=SECRET, source=SECRET)
    new = NewEntry(made, SECRET, [np.array([7, 8], np.float32)])
    store.write(Add("a", [new, NewEntry(embedded(2))], now=NOON)).result()
    row = rows_of(store)[1]
    other = np.array([[9, 10, 11]], np.float32)
    assert store.add_shadow_vectors("a", "other", {row: made}, {row: other}).result() == 1
    assert left_in(path.parent, [SECRET]) != {}
    entry = sealed_by_update(store, 1)
    assert (entry.is_encrypted, entry.sensitive, entry.version) == (True, True, 2)
    assert store.read(VectorsOfRow("a", row, "m")).tolist() == [[5, 6], [7, 8]]
    assert store.rows_to_embed("a", ("other", 3), 0, 9)[0] == row
    assert store.erase().result()
    floats = [np.array(part, "<f4").tobytes() for part in ((5, 6), (7, 8), (9, 10, 11))]
    for data in map(Path.read_bytes, path.parent.iterdir()):
        assert not any(part in data for part in floats)
    assert left_in(path.parent, [SECRET]) == {}
    assert one(store, AGENT, 1).content == SECRET
    assert store.verify().ok


def test_a_seal_is_never_undone(store, path):
    added(store, "a", [secret(1, metadata={"sensitive": True}), secret(2)])
    changed(store, 1, replace_metadata={"sensitive": False}, content="harmless")
    changed(store, 2, content="harmless", remove_tags=[SECRET])
    for number in (1, 2):
        assert is_sealed(path, number)
        assert one(store, AGENT, number).is_encrypted
        assert one(store, AGENT, number).sensitive
        assert one(store, AGENT, number).content == "harmless"
    assert [stored.entry.is_encrypted for stored in exported(store)] == [True, True]


@pytest.mark.parametrize("content", ["a longer content than before", "x"])
def test_a_sealed_entry_is_updated_like_another(store, content, path):
    filled(store)
    since = seq_of(store)
    vectors = ("m", np.array([[6, 7]], np.float32))
    entry = changed(store, 1, content=content, importance=1.0, embedded=vectors)
    assert one(store, AGENT, 1) == entry
    assert (entry.content, entry.version, entry.tags) == (content, 2, (SECRET,))
    batch = rows_since(store, since, model=MODEL)
    assert (living_numbers(batch), embedded_numbers(batch)) == ({1}, {1})
    assert batch.vectors.tolist() == [[6, 7]]
    store.write(SetExpiry(AGENT, [uid(1)], NOON + HOUR, now=NOON)).result()
    store.touch("a", [rows_of(store)[1]], NOON)
    store.write_accesses().result()
    assert one(store, AGENT, 1).access_count == 1
    assert left_in(path.parent, [SECRET, content] if len(content) > 1 else [SECRET]) == {}
    assert store.verify().ok


# Another key, and none


@pytest.mark.requirement("C179")
def test_a_wrong_key_is_refused_at_opening_and_changes_nothing(opening, path):
    filled(opening())
    wrong = opening(OTHER_KEY)
    before = path.read_bytes()
    with pytest.raises(WrongKeyError) as raised:
        wrong.check_key("a")
    assert raised.value.agent_id == "a"
    with pytest.raises(WrongKeyError):
        added(wrong, "a", [secret(9)])
    assert path.read_bytes() == before
    opening(OTHER_KEY, previous=[KEY]).check_key("a")


@pytest.mark.requirement("R107", "C179")
def test_without_a_key_sealed_entries_are_invisible_and_counted(opening):
    filled(opening())
    blind = opening(None)
    blind.check_key("a")
    assert paged(blind) == [2, 4]
    assert count_of(blind, EVERYONE, now=NOON) == 2
    assert one(blind, AGENT, 1) is None
    assert one(blind, AGENT, 1, include_deleted=True) is None
    rows = list(rows_of(opening()).values())
    assert len(rows) == 4
    assert {
        entry.id.int for entry in blind.read(EntriesByRow(EVERYONE, rows, now=NOON)).values()
    } == {2, 4}
    assert len(contents_of(blind, "a", rows)) == 2
    assert [stored.entry.id.int for stored in exported(blind, model="m")] == [2, 4]
    assert matched(blind, where={"content": {"contains": "e"}}) == [2, 4]
    assert row_of(blind, AGENT, uid(1), now=NOON) is None
    assert living_numbers(rows_since(blind, None)) == {2, 4}
    assert embedded_numbers(rows_since(blind, 0)) == {2}
    assert blind.read(VectorsOfRow("a", rows[0], "m")).size == 0
    assert blind.read(VectorsById("a", {(None, uid(1)), (None, uid(2))}, "m")).keys() == {
        (None, uid(2))
    }
    stats = blind.read(ScopeStatistics(EVERYONE, now=NOON))
    assert (stats.active_entries, stats.sealed_entries, stats.unreadable_entries) == (2, 2, 2)
    assert (
        stats.storage_bytes_used
        == opening().read(ScopeStatistics(EVERYONE, now=NOON)).storage_bytes_used
    )
    assert [user.active_entries for user in users_of(blind)] == [
        user.active_entries for user in users_of(opening())
    ]


def users_of(store):
    return store.read(Users("a", now=NOON, limit=9, offset=0, prefix=None))


@pytest.mark.requirement("R107")
def test_without_a_key_sealed_entries_are_not_changed(opening, path):
    store = opening()
    filled(store)
    before = path.read_bytes(), exported(store, model="m")
    blind = opening(None)
    assert changed(blind, 1, importance=1.0) is None
    assert changed(blind, 1, content="other") is None
    assert blind.write(SetExpiry(AGENT, [uid(1)], NOON, now=NOON)).result() == 0
    touched = blind.write(
        UpdateAll(
            EVERYONE,
            Criteria([uid(1), uid(3)]),
            change=lambda old: MemoryEntryUpdate(importance=1).applied_to(old, NOON),
            now=NOON,
        )
    )
    assert touched.result() == []
    rows = rows_of(store)
    blind.write(AddEmbeddings("a", "m", {rows[1]: f"{SECRET} 1"}, [np.eye(2, dtype="f4")])).result()
    assert [stored[:3] for stored in exported(store, model="m")] == [
        stored[:3] for stored in before[1]
    ]
    assert store.verify().ok


def test_without_a_key_a_sealed_entry_is_not_stored_over(opening):
    store = opening()
    filled(store)
    blind = opening(None)
    with pytest.raises(KeyUnavailableError):
        added(blind, "a", [numbered(1)], on_conflict="replace")
    assert one(store, AGENT, 1).content == f"{SECRET} 1"
    with pytest.raises(Exception, match="already stored"):
        added(blind, "a", [numbered(1)])
    assert store.verify().ok


@pytest.mark.parametrize(
    "way", ["delete", "delete_all by ids", "delete_all", "delete_all of alice", "soft", "purge"]
)
def test_without_a_key_sealed_entries_can_be_deleted(opening, way):
    store = opening()
    filled(store)
    blind = opening(None)
    if way == "delete":
        assert blind.write(Delete(AGENT, uid(1))).result() == [uid(1)]
    elif way == "delete_all by ids":
        found = blind.write(DeleteAll(EVERYONE, Criteria([uid(1), uid(3)]))).result()
        assert sorted(found) == [uid(1), uid(3)]
    elif way == "delete_all":
        assert len(blind.write(DeleteAll(EVERYONE)).result()) == 4
    elif way == "delete_all of alice":
        assert len(blind.write(DeleteAll(ALICE)).result()) == 2
    else:
        assert blind.write(SoftDelete(AGENT, uid(1), NOON)).result() is True
        assert one(store, AGENT, 1) is None
        if way == "purge":
            assert blind.write(Purge(EVERYONE, NOON + HOUR)).result() == [uid(1)]
    left = {"delete": [2, 3, 4], "delete_all by ids": [2, 4], "delete_all": []}
    left |= {"delete_all of alice": [1, 2]}
    assert paged(store) == left.get(way, [2, 3, 4])
    assert store.verify().ok
    assert opening(None).verify().ok


@pytest.mark.requirement("C179")
def test_without_a_key_nothing_sensitive_is_stored_for_an_agent_that_has_one(opening):
    filled(opening())
    blind = opening(None)
    before = paged(blind)
    with pytest.raises(KeyUnavailableError, match=r"encryption=Encryption\(key=...\)") as raised:
        added(blind, "a", [numbered(8), secret(9)])
    assert SECRET not in str(raised.value)
    assert paged(blind) == before
    added(blind, "a", [numbered(8)])
    added(blind, "b", [numbered(9, sensitive=True, agent_id="b")])
    assert one(blind, Scope("b"), 9).is_encrypted is False
    assert blind.verify().ok


def test_a_key_given_later_seals_what_comes_and_leaves_what_is_there(opening, path):
    plain = opening(None)
    added(plain, "a", [secret(1)])
    store = opening()
    added(store, "a", [secret(2)])
    assert [is_sealed(path, number) for number in (1, 2)] == [False, True]
    assert paged(store) == [1, 2]
    with pytest.raises(KeyUnavailableError):
        added(plain, "a", [secret(3)])
    assert paged(plain) == [1]


def test_an_entry_that_says_it_is_encrypted_is_not_stored_without_a_key(opening):
    with pytest.raises(KeyUnavailableError):
        added(opening(None), "a", [numbered(1, is_encrypted=True)])


# Damage

TAMPERINGS = {
    "another entry's content": lambda path: put(path, "content", column(path, "content", 2), 1),
    "another user's content": lambda path: put(path, "content", column(path, "content", 3), 1),
    "another agent's content": lambda path: put(
        path, "content", column(path, "content", 1, "b"), 1
    ),
    "no content": lambda path: put(path, "content", b"", 1),
    "no Base64": lambda path: put(path, "content", b"plain text", 1),
    "no UTF-8": lambda path: put(path, "content", b"\xff\xfe", 1),
    "cut off": lambda path: put_field(path, opened_field(path, 1)[:-1], 1),
    "a bit of the text": lambda path: put_field(path, flipped(opened_field(path, 1), 40), 1),
    "a bit of the tag": lambda path: put_field(path, flipped(opened_field(path, 1), -1), 1),
    "another user": lambda path: put(path, "user_id", "mallory", 1),
    "alice's": lambda path: put(path, "user_id", "alice", 1),
    "not sealed": lambda path: put(path, "is_encrypted", 0, 1),
    "not sensitive": lambda path: put(path, "is_sensitive", 0, 1),
    "older": lambda path: put(path, "created_at", 1, 1),
    "another agent": lambda path: put(path, "agent_id", "b2", 1),
}
"""What somebody who can write the file, and has no key, may do to entry 1."""


def flipped(data, place, bit=0):
    changed_data = bytearray(data)
    changed_data[place] ^= 1 << bit
    return bytes(changed_data)


def sealed_file(path):
    """Make a file of three sealed entries of agent a, a plain one, and a sealed one of agent b."""
    store = SqliteStore(path, encryption=encryption())
    entries = [secret(1), secret(2), secret(3, user_id="alice"), embedded(4)]
    added(store, "a", entries, ["k", None, None, None])
    linked(store, 1, 2)
    added(store, "b", [secret(1, agent_id="b", content="of b")])
    store.close()


ALL_TAMPERINGS = pytest.mark.parametrize(
    "tampered",
    [
        pytest.param((name, is_right), id=f"{name}, {'right' if is_right else 'wrong'} sums")
        for name in TAMPERINGS
        for is_right in (False, True)
        # Without its mark a row is one in plain text: damaged, or with a right sum some Base64.
        if name not in {"another agent", "not sealed"}
    ],
    indirect=True,
)
OTHERS = {2, 3, 4}
"""The entries of agent a that nobody tampered with."""


@pytest.fixture
def tampered(request, path, opening):
    """Return a file of which entry 1 was tampered with, opened, and the scope of the entry now."""
    tampering, has_right_sums = request.param
    sealed_file(path)
    TAMPERINGS[tampering](path)
    if has_right_sums:
        make_sums_right(path)
    store = opening()
    store.check_key("a")
    scopes = {"another user": Scope("a", "mallory"), "alice's": ALICE}
    return store, scopes.get(tampering, AGENT)


@pytest.mark.requirement("C145", "C179", "R081")
@ALL_TAMPERINGS
def test_a_record_that_was_tampered_with_is_never_returned(tampered):
    store, scope = tampered
    for options in ({}, {"include_deleted": True}):
        with pytest.raises(SealBrokenError) as raised:
            one(store, scope, 1, **options)
        assert raised.value.entry_id == uid(1)
        assert SECRET not in str(raised.value)
    assert one(store, AGENT, 2).content == f"{SECRET} 2"


@pytest.mark.requirement("C145", "C179", "R097", "C105")
@ALL_TAMPERINGS
def test_it_is_left_out_of_lists_and_counts_by_filters_and_logged(tampered, caplog):
    store, _ = tampered
    assert set(paged(store)) == OTHERS
    assert set(paged(store, where={"content": {"contains": "e"}})) == OTHERS
    assert matched(store, where={"tags": {"contains": SECRET}}) == [2, 3]
    assert matched(store, limit=2) == [2, 3]
    assert count_of(store, EVERYONE, parse_filter({"content": {"contains": "e"}}), now=NOON) == 3
    check_log(caplog)


@pytest.mark.requirement("C145", "C179", "R097", "C105")
@ALL_TAMPERINGS
def test_it_is_left_out_of_what_an_index_reads_and_logged(tampered, caplog):
    store, _ = tampered
    for since in (None, 0):
        batch = rows_since(store, since)
        assert living_numbers(batch) == embedded_numbers(batch) == OTHERS
        assert sorted(batch.vectors.tolist()) == [[1, 0], [3, 4], [3, 4]]
    check_log(caplog)


@pytest.mark.requirement("C145", "C179", "R097", "C105")
@ALL_TAMPERINGS
def test_it_is_left_out_of_reads_of_many_rows_and_logged(tampered, path, caplog):
    store, _ = tampered
    rows = [row for (row,) in run(path, "SELECT row FROM agent_memory_entries")]
    found = store.read(EntriesByRow(EVERYONE, rows, now=NOON))
    assert {entry.id.int for entry in found.values()} == OTHERS
    assert len(contents_of(store, "a", rows)) == 3
    check_log(caplog)


@pytest.mark.requirement("C145", "C179", "R097", "C105")
@ALL_TAMPERINGS
def test_it_is_left_out_of_exports_and_logged(tampered, caplog):
    store, _ = tampered
    for model in (None, "m"):
        assert {stored.entry.id.int for stored in exported(store, model=model)} == OTHERS
    check_log(caplog)


@pytest.mark.requirement("C105")
@ALL_TAMPERINGS
def test_it_is_counted_as_unreadable_and_others_are_stored_beside_it(tampered):
    store, _ = tampered
    sealed = store.read(ScopeStatistics(EVERYONE, now=NOON)).sealed_entries
    assert store.read(ScopeStatistics(EVERYONE, now=NOON)).unreadable_entries == 1
    added(store, "a", [secret(5), embedded(6)])
    added(store, "a", [secret(7)], on_conflict="replace")
    changed(store, 2, importance=0.9)
    assert paged(store, where={"importance": {"gt": 0.8}}) == [2]
    stats = store.read(ScopeStatistics(EVERYONE, now=NOON))
    assert (stats.unreadable_entries, stats.sealed_entries - sealed) == (1, 2)
    assert one(store, AGENT, 5).content == f"{SECRET} 5"


@pytest.mark.requirement("C145", "C179")
@ALL_TAMPERINGS
def test_a_verification_finishes_and_names_it(tampered):
    store, _ = tampered
    with pytest.raises(SealBrokenError) as raised:
        store.verify()
    assert raised.value.entry_id == uid(1)
    report = raised.value.report
    assert (report.memories, report.vectors, report.links) == (5, 5, 1)
    assert {problem.id for problem in report.problems} - {None} == {uid(1)}
    assert SECRET not in repr(report)


def problems(store):
    """Return what a verification found, whether or not it raised an error."""
    try:
        return store.verify().problems
    except SealBrokenError as error:
        return error.report.problems


def check_log(caplog):
    """Check that entry 1 was logged as what does not open, and nothing else."""
    assert caplog.records
    for record in caplog.records:
        assert record.levelname == "ERROR"
        assert record.getMessage().startswith(f"{LOG} {uid(1)}: ")
        assert SECRET not in record.getMessage()


@pytest.mark.requirement("C145", "C179")
def test_a_record_given_to_another_agent_does_not_open(path, opening):
    """Its sums are right, so that only what is sealed can tell."""
    sealed_file(path)
    TAMPERINGS["another agent"](path)
    make_sums_right(path)
    store = opening()
    store.check_key("b2")
    with pytest.raises(SealBrokenError):
        one(store, Scope("b2"), 1)
    assert paged(store, Scope("b2", all_users=True)) == []
    assert set(paged(store)) == OTHERS
    with pytest.raises(SealBrokenError):
        store.verify()


@pytest.mark.requirement("C145", "C179")
def test_a_plain_record_that_is_marked_as_sealed_does_not_open(path, opening):
    sealed_file(path)
    put(path, "is_encrypted", 1, 4)
    make_sums_right(path)
    store = opening()
    with pytest.raises(SealBrokenError) as raised:
        one(store, AGENT, 4)
    assert raised.value.entry_id == uid(4)
    assert paged(store) == [1, 2, 3]


def test_a_damaged_vector_is_left_out_of_an_export_and_its_memory_is_not(path, opening, caplog):
    sealed_file(path)
    run(path, "UPDATE agent_memory_embeddings SET embedding = zeroblob(45) WHERE entry_row = 1")
    assert living_numbers(rows_since(opening(), None)) == {1, 2, 3, 4}
    stored = {each.entry.id.int: each.entry for each in exported(opening(), model="m")}
    assert sorted(stored) == [1, 2, 3, 4]
    assert [stored[number].embedding is None for number in (1, 2, 4)] == [True, False, False]
    assert "Failed to decrypt memory entry" in caplog.text


@pytest.mark.requirement("C145", "C179")
def test_a_record_that_lost_its_mark_and_its_sum_is_damaged(path, opening):
    sealed_file(path)
    TAMPERINGS["not sealed"](path)
    with pytest.raises(StoreCorruptError):
        one(opening(), AGENT, 1)
    make_sums_right(path)
    stored = one(opening(), AGENT, 1)
    assert not stored.is_encrypted
    assert b64decode(stored.content) == opened_field(path, 1)


@pytest.mark.requirement("C145", "C179")
def test_every_byte_of_a_sealed_record_flipped_in_turn_is_noticed(path, opening):
    store = SqliteStore(path, encryption=encryption())
    added(store, "a", [numbered(1, content="x", sensitive=True), numbered(2)])
    store.close()
    field, stored = opened_field(path, 1), column(path, "content", 1)
    store = opening()
    variants = [flipped(stored, at, at % 8) for at in range(len(stored))]
    for content in variants:
        put(path, "content", content, 1)
        assert_broken(store)
    for at in range(len(field)):
        put_field(path, flipped(field, at, at % 8), 1)
        make_sums_right(path)
        assert_broken(store)
    put(path, "content", stored, 1)
    make_sums_right(path)
    assert one(store, AGENT, 1).content == "x"
    assert store.verify().ok


def assert_broken(store):
    with pytest.raises(SealBrokenError):
        one(store, AGENT, 1)
    assert paged(store) == [2]
    assert living_numbers(rows_since(store, None)) == {2}


@pytest.mark.requirement("C145", "C179")
@pytest.mark.parametrize("right_sums", [False, True], ids=["wrong sums", "right sums"])
@pytest.mark.parametrize("name", ["id", "project_id", "session_id", "importance", "fingerprint"])
def test_other_columns_changed_are_noticed_by_their_checksum(path, opening, name, right_sums):
    """With right sums, those that are not sealed are what they seem, and show nothing of others."""
    sealed_file(path)
    values = {"id": bytes(15) + b"\x09", "importance": 0.25, "fingerprint": bytes(16)}
    number = 9 if name == "id" else 1
    put(path, name, values.get(name, "other"), 1) if name != "id" else run(
        path, "UPDATE agent_memory_entries SET id = ? WHERE row = 1", values["id"]
    )
    if right_sums:
        make_sums_right(path)
    store = opening()
    if right_sums and name != "id":
        assert one(store, AGENT, number).content == f"{SECRET} 1"
        return
    with pytest.raises(SealBrokenError):
        one(store, AGENT, number)
    assert paged(store) == [2, 3, 4]


@pytest.mark.requirement("C145", "C179")
@pytest.mark.parametrize("right_sums", [False, True], ids=["wrong sums", "right sums"])
@pytest.mark.parametrize("damage", ["flipped", "another's", "plain", "cut off", "empty"])
def test_a_damaged_vector_leaves_its_entry_to_be_found_by_words(
    path, opening, damage, right_sums, caplog
):
    sealed_file(path)
    rows = [row for (row,) in run(path, "SELECT row FROM agent_memory_entries ORDER BY row")]
    blobs = dict(run(path, "SELECT entry_row, embedding FROM agent_memory_embeddings"))
    own = blobs[rows[0]]
    value = {
        "flipped": flipped(own, 30),
        "another's": blobs[rows[1]],
        "plain": np.array([3, 4], "<f4").tobytes(),
        "cut off": own[:-1],
        "empty": b"",
    }[damage]
    run(
        path,
        "UPDATE agent_memory_embeddings SET embedding = ? WHERE entry_row = ?",
        value,
        rows[0],
    )
    if right_sums:
        make_sums_right(path)
    store = opening()
    batch = rows_since(store, None)
    assert living_numbers(batch) == {1, 2, 3, 4}
    own_vectors = dict(zip(batch.embedded, batch.vectors.tolist(), strict=True))
    assert own_vectors.get(rows[0], [0, 0]) == [0, 0]
    assert [own_vectors[row] for row in rows[1:4]] == [[3, 4], [3, 4], [1, 0]]
    assert one(store, AGENT, 1).content == f"{SECRET} 1"
    assert any(f"{LOG} {uid(1)}: " in record.getMessage() for record in caplog.records)
    with pytest.raises(StoreCorruptError):
        store.read(VectorsOfRow("a", rows[0], "m"))
    with pytest.raises(SealBrokenError) as raised:
        store.verify()
    assert raised.value.entry_id == uid(1)
    assert raised.value.report.memories == 5
    assert paged(store) == [1, 2, 3, 4]


def test_a_vector_missing_of_a_sealed_entry_is_noticed(path, opening):
    sealed_file(path)
    run(path, "DELETE FROM agent_memory_embeddings WHERE entry_row = 1")
    store = opening()
    assert problems(store)


@pytest.mark.parametrize("name", ["salt", "check_value", "key_id", "name"])
def test_damage_to_what_is_stored_of_a_key_is_noticed_at_opening(path, opening, name):
    sealed_file(path)
    ((value,),) = run(path, f"SELECT {name} FROM agent_memory_keys WHERE agent_id = 'a'")  # noqa: S608
    other = "other" if name == "name" else flipped(value, 0)
    run(path, f"UPDATE agent_memory_keys SET {name} = ? WHERE agent_id = 'a'", other)  # noqa: S608
    store = opening()
    if name == "name":  # which is for key providers alone
        store.check_key("a")
        return
    with pytest.raises((SealBrokenError, WrongKeyError)) as raised:
        store.check_key("a")
    assert "'a'" in str(raised.value)
    store.check_key("b")
    assert one(store, Scope("b"), 1).content == "of b"


def test_a_key_given_to_another_agent_is_noticed(path, opening):
    sealed_file(path)
    values = run(
        path, "SELECT key_id, name, salt, check_value FROM agent_memory_keys WHERE agent_id = 'b'"
    )[0]
    run(
        path,
        "UPDATE agent_memory_keys SET key_id = ?, name = ?, salt = ?, check_value = ? "
        "WHERE agent_id = 'a'",
        *values,
    )
    with pytest.raises(SealBrokenError, match="another agent"):
        opening().check_key("a")


def test_a_lost_key_row_is_no_new_key_that_opens_nothing(path, opening):
    """The entries are unreadable then, and named; nothing of them is lost by that."""
    sealed_file(path)
    run(path, "DELETE FROM agent_memory_keys WHERE agent_id = 'a'")
    store = opening()
    store.check_key("a")
    assert paged(store) == [4]
    assert store.read(ScopeStatistics(EVERYONE, now=NOON)).unreadable_entries == 3
    with pytest.raises(SealBrokenError):
        one(store, AGENT, 1)
    assert column(path, "content", 1) != b""


def test_broken_entries_can_be_deleted(path, opening):
    sealed_file(path)
    TAMPERINGS["a bit of the text"](path)
    store = opening()
    assert store.write(Delete(AGENT, uid(1))).result() == [uid(1)]
    assert store.verify().ok
    assert paged(store) == [2, 3, 4]


@pytest.mark.parametrize("way", ["update", "replace", "update_all", "merge", "expiry", "soft"])
def test_a_write_to_a_broken_entry_is_an_error_or_leaves_it_as_it_is(path, opening, way):
    """It never makes damaged bytes look right."""
    sealed_file(path)
    TAMPERINGS["a bit of the text"](path)
    before = column(path, "content", 1)
    store = opening()
    update, same = MemoryEntryUpdate(importance=0.9), secret(7, content=f"{SECRET} 1")
    calls = {
        "update": lambda: changed(store, 1, importance=0.9),
        "replace": lambda: added(store, "a", [secret(1, content="new")], on_conflict="replace"),
        "update_all": lambda: store.write(
            UpdateAll(
                EVERYONE,
                Criteria([uid(1), uid(2)]),
                change=lambda old: update.applied_to(old, NOON),
                now=NOON,
            )
        ).result(),
        "merge": lambda: added(store, "a", [same], on_duplicate="merge"),
        "expiry": lambda: store.write(SetExpiry(AGENT, [uid(1)], NOON + HOUR, now=NOON)).result(),
        "soft": lambda: store.write(SoftDelete(AGENT, uid(1), NOON)).result(),
    }
    with suppress(SealBrokenError):
        calls[way]()
    assert column(path, "content", 1) == before
    with pytest.raises(SealBrokenError):
        store.verify()
    assert paged(store)[:3] == [2, 3, 4]


# Agents under other keys


def test_an_agent_under_another_key_disturbs_nobody(path, opening, caplog):
    mine = opening()
    filled(mine)
    others = opening(OTHER_KEY)
    added(others, "b", [secret(1, agent_id="b"), numbered(2, agent_id="b")])
    for store, agent in ((mine, "a"), (others, "b")):
        store.check_key(agent)
        assert len(paged(store, Scope(agent, all_users=True))) == (4 if agent == "a" else 2)
        assert store.verify().ok
        assert store.erase().result()
        assert set(rows_of(store, agent)) == ({1, 2, 3, 4} if agent == "a" else {1, 2})
    assert caplog.records == []
    blob = opened_field(path, 1, "b")
    put_field(path, flipped(blob, 40), 1, "b")
    assert problems(mine)
    assert len(paged(mine)) == 4


def test_a_backup_has_the_keys_and_nothing_plain(opening, tmp_path):
    store = opening()
    filled(store)
    (tmp_path / "copies").mkdir()
    target = tmp_path / "copies" / "b.db"
    store.backup(target)
    assert left_in(target.parent, [SECRET]) == {}
    copy = SqliteStore(target, encryption=encryption())
    assert paged(copy) == [1, 2, 3, 4]
    assert one(copy, AGENT, 1).content == f"{SECRET} 1"
    copy.close()
    wrong = SqliteStore(target, encryption=encryption(OTHER_KEY))
    with pytest.raises(WrongKeyError):
        wrong.check_key("a")
    wrong.close()


def test_a_store_that_is_only_read_opens_what_is_sealed_and_makes_no_key(opening, path):
    plain = opening(None)
    added(plain, "b", [numbered(1, agent_id="b")])
    filled(opening())
    before = run(path, "SELECT count(*) FROM agent_memory_keys")
    reader = SqliteStore(path, encryption=encryption(), read_only=True)
    for agent in ("a", "b"):
        reader.check_key(agent)
    assert paged(reader) == [1, 2, 3, 4]
    assert run(path, "SELECT count(*) FROM agent_memory_keys") == before
    reader.close()
    wrong = SqliteStore(path, encryption=encryption(OTHER_KEY), read_only=True)
    with pytest.raises(WrongKeyError):
        wrong.check_key("a")
    wrong.close()


def test_a_superseded_and_a_linked_sealed_entry_are_as_others(store):
    added(store, "a", [secret(1), secret(2)])
    added(store, "a", [secret(3, supersedes=uid(1))])
    assert paged(store) == [2, 3]
    linked(store, 2, 3)
    assert [link.to_id for link in store.read(LinksOf(AGENT, uid(2), "from", None, now=NOON))] == [
        uid(3)
    ]
    row = rows_of(store)[1]
    assert [entry.id for entry in store.read(Successors(AGENT, [row], now=NOON)).values()] == [
        uid(3)
    ]
    with pytest.raises(EntryNotFoundError):
        added(store, "a", [secret(5, supersedes=uid(99))])
    assert matching(store, EVERYONE, EVERYTHING, MemoryFilter(include_forgotten=True), now=NOON)


def test_the_files_of_a_sealed_store_belong_to_their_owner_alone(store, path):
    filled(store)
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
