"""Promises of every store: records, isolation of users, durability, threads, closing."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import pytest
from msgspec.structs import astuple

from mnemic.errors import EntryNotFoundError, ReadOnlyError, StoreClosedError, StoreFileError
from mnemic.model import LinkType, LongTermMemoryStats, MemoryEntryUpdate, MemoryType, Scope
from mnemic.model.distinct import distinct_query
from mnemic.model.filter import EVERY_ENTRY, Criteria, parse_filter
from mnemic.store import LogPosition, Store, open_store
from mnemic.store.operations import (
    AccessesSince,
    ActiveRows,
    Add,
    AddEmbeddings,
    AddLinks,
    AddShadowVectors,
    BuildVectorIndex,
    ChangedRows,
    CountToEmbed,
    Delete,
    DistinctValues,
    DropShadowVectors,
    EndRotation,
    EntriesById,
    EntriesByRow,
    EntryCount,
    EntryPage,
    ForgetAgent,
    HasRemovedSince,
    Link,
    Links,
    Nearest,
    NeedVectors,
    NonceOfChange,
    PositionAndRevision,
    Purge,
    Read,
    Reseal,
    Restore,
    RowsSince,
    RowsToEmbed,
    RowsWithoutVectors,
    ScopeStatistics,
    SealedRows,
    SealedUnderOtherKeys,
    SetExpiry,
    SoftDelete,
    StoredAmount,
    StoredEntries,
    Successors,
    SwitchModel,
    Unlink,
    Update,
    Users,
    VectorsById,
    VectorsOfRow,
    Write,
)
from mnemic.store.values import StoredLink
from tests.store.contract import (
    AGENT,
    ALICE,
    BOB,
    EVERYONE,
    EVERYTHING,
    MODEL,
    added,
    adding,
    contents_of,
    counted,
    embedded,
    entries_by_id,
    erases,
    exported,
    gathered,
    link_of,
    linked,
    model_of,
    one,
    revision_of,
    rows_of,
    seq_of,
    settled,
    state_of,
    used_by_user,
    used_bytes,
)
from tests.support.clock import HOUR, NOON
from tests.support.entries import numbered, only, uid
from tests.support.operations import replace_operation
from tests.support.threads import run_together

VECTOR = np.array([[1, 0]], dtype=np.float32)
INSIDE = [
    ALICE,
    EVERYONE,
    Scope("a", "alice", "p"),
    Scope("a", "alice", None, "s"),
    Scope("a", "alice", "p", "s"),
    Scope("a", None, "p", "s", all_users=True),
]
OUTSIDE = [
    AGENT,
    BOB,
    Scope("b"),
    Scope("b", "alice"),
    Scope("b", all_users=True),
    Scope("a", "alice", "q"),
    Scope("a", "alice", "p", "t"),
    Scope("a", None, "q", all_users=True),
    Scope("A", "alice"),
    Scope("a", "Alice"),
    Scope("a", "alice' OR '1'='1"),
    Scope("a", "%"),
]


SESSIONS = distinct_query("session_id", None, 9, 0)
ROWS = range(1, 100)
READS = {
    "by id": lambda scope: EntriesById(scope, [uid(1)], NOON),
    "deleted by id": lambda scope: EntriesById(scope, [uid(3)], NOON, include_deleted=True),
    "by row": lambda scope: EntriesByRow(scope, ROWS, NOON),
    "page": lambda scope: EntryPage(scope, EVERYTHING, NOON, 9),
    "page with deleted": lambda scope: EntryPage(scope, EVERYTHING, NOON, 9, include_deleted=True),
    "distinct": lambda scope: DistinctValues(scope, EVERYTHING, SESSIONS, NOON),
    "count": lambda scope: EntryCount(scope, NOON),
    "amount": lambda scope: StoredAmount(scope, "entries"),
    "statistics": lambda scope: ScopeStatistics(scope, NOON),
    "links": lambda scope: Links(scope, NOON, uid(1)),
    "all links": lambda scope: Links(scope, NOON, include_deleted=True),
    "stored": lambda scope: StoredEntries(scope, 0, 9, now=NOON, include_deleted=True, model="m"),
}
changing = partial(MemoryEntryUpdate.applied_to, MemoryEntryUpdate(content="changed"), now=NOON)
SELECTING = {
    "forget": partial(SoftDelete, now=NOON),
    "delete": Delete,
    "expire": partial(SetExpiry, expires_at=NOON + HOUR, now=NOON),
    "update": partial(Update, change=changing, embedded=("m", VECTOR), now=NOON),
}
CRITERIA = {
    "one": only(1),
    "two": Criteria([uid(1), uid(2)]),
    "some": Criteria(expression=parse_filter({"content": {"contains": "o"}})),
    "all": EVERY_ENTRY,
}
WRITES = {
    f"{name} {some}": partial(write, criteria=criteria)
    for name, write in SELECTING.items()
    for some, criteria in CRITERIA.items()
} | {
    "restore": lambda scope: Restore(scope, only(3), oldest=NOON, now=NOON),
    "purge": lambda scope: Purge(scope, NOON + HOUR),
    "link": lambda scope: Link(scope, link_of(1, 2, LinkType.REFINES), NOON),
    "unlink": lambda scope: Unlink(scope, uid(1), uid(2), None),
}


def scoped(make, store, scope):
    """Read or write what one of these makes for a scope."""
    wanted = make(scope)
    return store.write(wanted) if isinstance(wanted, Write) else store.read(wanted)


SCOPED = {name: partial(scoped, make) for name, make in (READS | WRITES).items()}
"""A call of every operation that takes a scope, each of which finds something inside it."""


def feed(store, agent):
    batch = store.read(RowsSince(agent, MODEL, None))
    return batch.records


def needing(store, agent):
    own = store.marked(numbered(1, agent_id=agent, user_id="alice"))
    return store.read(NeedVectors(agent, [own], "m", "replace"))


def accessed(store, agent):
    return store.read(AccessesSince(agent, 0)).position


def touching(store, agent):
    store.touch(agent, [1], NOON)
    store.write_accesses().result()


def noting(store, agent):
    before = store.accesses.has(agent, [1])
    store.touch(agent, [1], NOON)
    has_pending_accesses = (
        store.accesses.has(agent, [1]),
        store.accesses.has("none", [1]),
    )
    store.write_accesses().result()
    return before, has_pending_accesses, store.accesses.has(agent, [1])


def pending(store, agent):
    store.touch(agent, [1, 1], NOON)
    found = [store.accesses.of(of, [1, 2]) for of in (agent, "none")]
    store.write_accesses().result()
    return found, store.accesses.of(agent, [1, 2])


def vectors_by_id(store, agent):
    found = store.read(VectorsById(agent, {("alice", uid(1)), ("alice", uid(2))}, "m"))
    return {
        name: (state.version, None if state.vectors is None else state.vectors.tolist())
        for name, state in found.items()
    }


def vectors(store, agent):
    return store.read(VectorsOfRow(agent, rows_of(store).get(1, 1), "m")).tolist()


OTHER = "other", VECTOR.shape[1]


def adding_shadow_vectors(store, agent):
    row = rows_of(store).get(2, 1)
    entry = numbered(2, agent_id=agent, user_id="alice")
    return store.write(AddShadowVectors(agent, "other", {row: entry}, {row: VECTOR}))


AGENT_READS = {
    "used_bytes": used_bytes,
    "used_by_user": lambda store, agent: used_by_user(store, agent, "alice"),
    "users": lambda store, agent: store.read(
        Users(agent, now=NOON, limit=9, offset=0, prefix=None)
    ),
    "stored_agent_id": lambda store, agent: store.stored_agent_id(agent),
    "embedding_model": model_of,
    "contents": lambda store, agent: contents_of(store, agent, list(rows_of(store).values())),
    "vectors": vectors,
    "vectors_of": vectors_by_id,
    "position": lambda store, agent: store.position(agent),
    "known_position": lambda store, agent: store.known_position(agent),
    "latest_position": lambda store, agent: store.latest_position(agent),
    "changed_rows_since": lambda store, agent: store.read(ChangedRows(agent, 0)),
    "rows_since": feed,
    "need_vectors": needing,
    "accesses_since": accessed,
    "to_embed": lambda store, agent: store.read(CountToEmbed(agent, OTHER)),
    "rows_to_embed": lambda store, agent: store.read(RowsToEmbed(agent, OTHER, 0, 9)),
}
AGENT_WRITES = {
    "add": lambda store, agent: adding(store, agent, [numbered(9, agent_id=agent)]),
    "add replacing": lambda store, agent: adding(
        store, agent, [numbered(1, agent_id=agent, user_id="alice")], on_conflict="replace"
    ),
    "add_embeddings": lambda store, agent: store.write(
        AddEmbeddings(agent, "m", {rows_of(store).get(2, 1): "memory 2"}, [VECTOR])
    ),
    "touch": touching,
    "has_pending_accesses": noting,
    "pending_accesses": pending,
    "add_shadow_vectors": adding_shadow_vectors,
    "drop_shadow_vectors": lambda store, agent: store.write(DropShadowVectors(agent, "other")),
    "switch_model": lambda store, agent: store.write(
        SwitchModel(agent, OTHER, list(rows_of(store, agent).values()))
    ),
    "add_links": lambda store, agent: store.write(
        AddLinks(Scope(agent, all_users=True), [StoredLink(link_of(2, 1), "alice")])
    ),
}


METHODS = {
    **{name: lambda store, call=call: call(store, ALICE) for name, call in SCOPED.items()},
    **{name: lambda store, call=call: call(store, "a") for name, call in AGENT_WRITES.items()},
    **{name: lambda store, call=call: call(store, "a") for name, call in AGENT_READS.items()},
    "successors": lambda store: store.read(Successors(ALICE, [1], now=NOON)),
    "revision": lambda store: revision_of(store, ALICE),
    "position_and_revision": lambda store: store.read(PositionAndRevision(ALICE)),
    "add some embeddings": lambda store: store.write(AddEmbeddings("a", "m", {1: "x"}, [VECTOR])),
    "add nothing": lambda store: store.write(Add("a", [], now=NOON)),
    "add no embeddings": lambda store: store.write(AddEmbeddings("a", "m", {}, [])),
    "get nothing": lambda store: entries_by_id(store, ALICE, [], now=NOON),
    "write_accesses": lambda store: store.write_accesses(),
    "erase": lambda store: store.erase(),
    "backup": lambda store: store.backup("never made"),
    "verify": lambda store: store.verify(),
}
"""A call of every operation, and of every method but `close`."""


def filled(store, agent="a"):
    """Store two linked memories of alice's, and one that is forgotten."""
    own = {"agent_id": agent, "user_id": "alice", "project_id": "p", "session_id": "s"}
    texts = {"content": f"of {agent}"} if agent != "a" else {}
    made = [embedded(1, **own, **texts), numbered(2, **own, **texts), numbered(3, **own, **texts)]
    added(store, agent, made)
    alice = Scope(agent, "alice")
    linked(store, 1, 2, scope=alice)
    store.write(SoftDelete(alice, only(3), NOON)).result()
    row = rows_of(store, agent)[1]
    store.write(AddShadowVectors(agent, "other", {row: made[0]}, {row: VECTOR})).result()


def answered(call, store, scope):
    """Return whether a call found anything."""
    try:
        found = settled(call(store, scope))
    except EntryNotFoundError:
        return False
    return any(astuple(found)) if isinstance(found, LongTermMemoryStats) else bool(found)


def test_every_field_comes_back_as_it_was_stored(store):
    full = numbered(
        1,
        user_id="alice",
        project_id="p",
        session_id="s",
        type=MemoryType.PROCEDURAL,
        type_name="tuple",
        role="user",
        speaker="Alice",
        message_id="m-1",
        position=7,
        importance=0.1,
        tags=["b", "a", "ø"],
        metadata={"n": 2**53, "x": -0.5, "list": [1, None, True, {"é": "\u2028"}]},
        updated_at=NOON + timedelta(microseconds=1),
        last_accessed_at=NOON + timedelta(days=1),
        access_count=3,
        expires_at=NOON + timedelta(days=2),
        category="c",
        scope="global",
        version=2,
        supersedes=uid(9),
        sensitive=True,
        content="Zürich 東京 🙂\r\n\ttabs",
    )
    full = store.marked(full)  # as encrypted, by a store with a key
    added(store, "a", [full], is_import=True)
    read = one(store, ALICE, 1)
    assert read == full
    assert (read.access_count, read.last_accessed_at) == (3, NOON + timedelta(days=1))


def test_times_keep_their_microseconds_from_year_1_to_year_9999(store):
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    added(store, "a", [numbered(1, created_at=first), numbered(2, created_at=last)])
    assert one(store, AGENT, 1).created_at == first
    assert one(store, AGENT, 2).created_at == last


def test_ten_megabytes_of_content_come_back(store):
    content = "0123456789" * (1024 * 1024)
    added(store, "a", [numbered(1, content=content)])
    assert one(store, AGENT, 1).content == content


def test_metadata_keep_the_difference_between_whole_numbers_and_others(store):
    added(store, "a", [numbered(1, metadata={"whole": 1, "broken": 1.0, "truth": True})])
    metadata = one(store, AGENT, 1).metadata
    kinds = {name: type(value) for name, value in metadata.items()}
    assert kinds == {"whole": int, "broken": float, "truth": bool}


def kinds_of(base):
    """Return the kinds of operations below a base."""
    below = base.__subclasses__()
    return {kind for one in below for kind in kinds_of(one)} if below else {base}


def test_no_operation_is_left_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = set()
    store = open_store(":memory:")

    def noted(own, wanted, **options):
        asked.add(type(wanted))
        return own(wanted, **options)

    replace_operation(monkeypatch, store, (Read, Write), noted)
    for call in METHODS.values():
        filled(store)
        settled(call(store))
        store.write(Delete(EVERYONE)).result()
    store.close()
    # tests/store/test_vector_search.py, tests/store/sealing, tests/store/test_snapshots.py
    apart = {Nearest, ActiveRows, RowsWithoutVectors, BuildVectorIndex, ForgetAgent}
    apart |= {SealedUnderOtherKeys, Reseal, EndRotation}
    apart |= {SealedRows, NonceOfChange, HasRemovedSince}
    assert kinds_of(Read) | kinds_of(Write) == asked | apart


def test_no_method_of_the_protocol_is_left_out():
    named = {name for name in dir(Store) if not name.startswith("_")}
    # These have no scope; test_snapshots.py shows whose changes a listener hears.
    unscoped = {"close", "executor", "watch", "stale_since", "read", "write"}
    # What is held is tested in test_reads.py; a store that is closed holds nothing.
    assert named - METHODS.keys() == unscoped | {
        "cached_bytes",
        "release",
        # tests/store/sealing
        *("marked", "check_key", "begin_rotation"),
        *("snapshot_folder", "locked_snapshots"),  # tests/store/test_snapshots.py
    }


@pytest.mark.parametrize("name", SCOPED)
def test_inside_its_scope_every_method_finds_an_entry(store, name):
    for scope in INSIDE:
        filled(store)
        assert answered(SCOPED[name], store, scope), scope
        store.write(Delete(EVERYONE)).result()


@pytest.mark.parametrize("name", SCOPED)
def test_outside_its_scope_an_entry_is_like_one_that_does_not_exist(store, name):
    filled(store)
    before = state_of(store)
    for scope in OUTSIDE:
        assert not answered(SCOPED[name], store, scope), scope
    assert state_of(store) == before
    assert seq_of(store, "b") == 0


@pytest.mark.parametrize("name", SCOPED)
def test_of_two_agents_with_the_same_ids_each_has_its_own(store, name):
    filled(store)
    filled(store, "b")
    before = state_of(store), state_of(store, "b")
    found = settled(SCOPED[name](store, Scope("b", "alice")))
    assert "memory " not in repr(found)
    assert state_of(store) == before[0]
    assert (state_of(store, "b") == before[1]) == (name in READS)


@pytest.mark.parametrize("name", AGENT_READS)
def test_an_agent_learns_nothing_of_another(store, name):
    call = AGENT_READS[name]
    nothing = settled(call(store, "b"))
    filled(store)
    assert settled(call(store, "b")) == nothing
    assert settled(call(store, "a")) != nothing


@pytest.mark.parametrize("name", AGENT_WRITES)
@pytest.mark.parametrize("other_has_the_ids", [True, False])
def test_an_agent_changes_nothing_of_another(store, name, other_has_the_ids):
    filled(store)
    if other_has_the_ids:
        filled(store, "b")
    call, before = AGENT_WRITES[name], state_of(store)
    settled(call(store, "b"))
    assert state_of(store) == before
    settled(call(store, "a"))
    assert state_of(store) != before


@pytest.mark.parametrize("name", WRITES | AGENT_WRITES)
def test_what_was_written_is_seen_by_another_opening_at_once(stores, name):
    writer, reader = stores
    filled(writer)
    before = state_of(reader)
    settled(METHODS[name](writer))
    assert state_of(reader) == state_of(writer) != before


def test_two_openings_take_turns_in_one_numbering(stores):
    for number in range(1, 7):
        added(stores[number % 2], "a", [numbered(number)])
    assert [seq_of(store) for store in stores] == [6, 6]
    assert stores[0].read(ChangedRows("a", 3)) == stores[1].read(ChangedRows("a", 3))


def test_what_was_written_is_there_when_it_is_opened_again(opening):
    first = opening()
    filled(first)
    before = state_of(first)
    first.close()
    assert state_of(opening()) == before


@pytest.mark.parametrize("name", WRITES | AGENT_WRITES)
def test_a_store_opened_for_reading_alone_refuses_every_write(opening, name):
    filled(opening())
    store = opening(read_only=True)
    before = state_of(store)
    with pytest.raises(ReadOnlyError):
        METHODS[name](store)
    assert state_of(store) == before


@pytest.mark.parametrize(
    "name",
    [
        "erase",
        "write_accesses",
        "add no embeddings",
        "add nothing",
    ],
)
def test_a_store_opened_for_reading_alone_refuses_writes_of_nothing_too(opening, name):
    opening()
    with pytest.raises(ReadOnlyError):
        METHODS[name](opening(read_only=True))


@pytest.mark.parametrize("name", READS | AGENT_READS)
def test_a_store_opened_for_reading_alone_answers_every_read(opening, name):
    writer = opening()
    filled(writer)
    store = opening(read_only=True)
    assert settled(METHODS[name](store)) == settled(METHODS[name](writer))


def test_a_write_with_nothing_to_write_changes_nothing(store):
    filled(store)
    before = state_of(store)
    assert added(store, "a", []) == ([], [], [], [], None, {}, (), ())
    store.write(AddEmbeddings("a", "m", {}, [])).result()
    assert store.write(AddLinks(Scope("a", all_users=True), [])).result() == 0
    store.touch("a", [], NOON)
    store.write_accesses().result()
    assert store.write(Purge(EVERYONE, NOON)).result() == []
    assert state_of(store) == before


def test_a_write_that_raises_changes_nothing(store):
    def fails(_old):
        raise ZeroDivisionError

    filled(store)
    before = state_of(store)
    with pytest.raises(ZeroDivisionError):
        store.write(Update(ALICE, only(1), change=fails, now=NOON)).result()
    assert state_of(store) == before


def test_a_backup_has_everything_and_goes_nowhere_else(opening):
    store = opening()
    filled(store)
    store.backup(opening.place("copy"))
    copy = opening("copy")
    assert state_of(copy) == state_of(store)
    store.write(Delete(EVERYONE)).result()
    assert counted(copy, ALICE) == 2


def test_a_backup_is_of_one_moment_while_others_write(opening):
    store, writer = opening(), opening()
    added(store, "a", [numbered(at, content="x" * 1000) for at in range(500)])

    def write():
        for at in range(500, 700):
            added(writer, "a", [numbered(at)])

    thread = threading.Thread(target=write)
    thread.start()
    store.backup(opening.place("copy"))
    thread.join()
    stored = exported(opening("copy"), limit=1000)
    assert [one.entry.id.int for one in stored] == list(range(len(stored)))
    assert seq_of(opening("copy")) == len(stored) >= 500
    assert counted(store, AGENT) == 700


def test_a_backup_overwrites_nothing(opening):
    store = opening()
    store.backup(opening.place("copy"))
    filled(store)
    with pytest.raises(StoreFileError):
        store.backup(opening.place("copy"))
    assert exported(opening("copy")) == []


def test_what_was_deleted_is_erased_and_the_rest_is_kept(store):
    filled(store)
    store.write(Delete(ALICE, only(1))).result()
    before = state_of(store)
    assert store.erase().result() is erases(store)
    assert state_of(store) == before


@pytest.mark.parametrize(
    "name",
    METHODS,
)
def test_after_closing_every_method_says_so(store, name):
    store.close()
    with pytest.raises(StoreClosedError, match="closed"):
        METHODS[name](store)


def test_closing_again_is_harmless(store):
    filled(store)
    store.close()
    store.close()


def test_closing_finishes_the_writes_that_were_handed_in(opening):
    async def hand_in_and_close():
        store = opening()
        adds = [adding(store, "a", [numbered(at)]) for at in range(20)]
        store.touch("a", [1], NOON)
        store.close()
        assert all(future.done() for future in adds)

    asyncio.run(hand_in_and_close())
    store = opening()
    assert counted(store, AGENT) == 20
    assert one(store, AGENT, 0).access_count == 1


def test_closing_one_opening_leaves_the_other_open(stores):
    filled(stores[0])
    stores[0].close()
    assert counted(stores[1], ALICE) == 2
    added(stores[1], "a", [numbered(4)])


def test_event_loops_and_plain_threads_use_one_store_at_once(store):
    async def work(first):
        futures = [adding(store, "a", [numbered(first + at)]) for at in range(25)]
        await gathered(futures)

    def loop(first):
        asyncio.run(work(first))

    def plain(first):
        for at in range(25):
            added(store, "a", [numbered(first + at)])

    targets = enumerate([loop, loop, plain, plain], start=1)
    run_together(*[partial(target, 1000 * at) for at, target in targets])
    assert counted(store, AGENT) == 100
    assert store.position("a") == LogPosition(100, 0)
