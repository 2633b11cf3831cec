"""What every store promises, shown on each that exists."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest

from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingModelMismatchError,
    InvalidEntryError,
    StoreClosedError,
)
from mnemic.model import MemoryEntry, MemoryStatus, MemoryType, NewEntry, Scope
from mnemic.store import SqliteStore, changes, reads
from mnemic.store.changes import KEPT_CHANGES
from mnemic.waiting import drive

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
AGENT = Scope("a")
ALICE = Scope("a", "alice")


@pytest.fixture(params=["file", "memory"])
def store(request, tmp_path):
    opened = SqliteStore(":memory:" if request.param == "memory" else tmp_path / "a.db")
    yield opened
    drive(opened.close())


def entry(number, **fields):
    given = {"agent_id": "a", "content": f"memory {number}", "created_at": NOON, **fields}
    return MemoryEntry(id=UUID(int=number), **given)


def embedded(number, vector=(1, 0), model="m", **fields):
    return entry(number, **fields).with_embedding(np.array(vector, dtype=np.float32), model)


def one(store, scope, entry_id):
    return drive(store.get(scope, [entry_id], now=NOON)).get(entry_id)


def adding(store, agent, entries, **rules):
    return store.add(agent, [NewEntry(entry) for entry in entries], now=NOON, **rules)


def added(store, agent, entries, **rules):
    return drive(adding(store, agent, entries, **rules))


def counted(store, scope):
    return drive(store.count(scope, now=NOON))


def seq_of(store, agent):
    return drive(store.position(agent)).seq


def rows_since(store, seq, agent="a", dim=2):
    return drive(store.rows_since(agent, "m", dim, seq))


def test_every_field_comes_back_as_it_was_stored(store):
    full = entry(
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
        supersedes=UUID(int=9),
        sensitive=True,
        is_encrypted=True,
        content="Zürich 東京 🙂\r\n\ttabs",
    )
    added(store, "a", [full], is_import=True)
    assert one(store, ALICE, full.id) == full


def test_times_keep_their_microseconds_from_year_1_to_year_9999(store):
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    added(store, "a", [entry(1, created_at=first), entry(2, created_at=last)])
    assert one(store, AGENT, UUID(int=1)).created_at == first
    assert one(store, AGENT, UUID(int=2)).created_at == last


def test_ten_megabytes_of_content_come_back(store):
    content = "0123456789" * (1024 * 1024)
    added(store, "a", [entry(1, content=content)])
    assert one(store, AGENT, UUID(int=1)).content == content


@pytest.mark.parametrize(
    "scope",
    [
        Scope("b"),
        Scope("a"),
        Scope("a", "bob"),
        Scope("b", "alice"),
        Scope("a", "alice", "q"),
        Scope("a", "alice", "p", "t"),
        Scope("A", "alice"),
        Scope("a", "alice' OR '1'='1"),
        Scope("a", "%"),
    ],
)
def test_outside_its_scope_an_entry_is_like_one_that_does_not_exist(store, scope):
    stored = entry(1, user_id="alice", project_id="p", session_id="s")
    added(store, "a", [stored])
    added(store, "b", [entry(2, agent_id="b")])
    assert one(store, scope, stored.id) is None
    assert 1 not in drive(store.get_rows(scope, [1, 2], now=NOON))
    assert drive(store.forget(scope, stored.id, NOON)) is False
    assert counted(store, scope) == (scope == Scope("b"))
    assert one(store, ALICE, stored.id) == stored


@pytest.mark.parametrize(
    "scope",
    [
        Scope("a", "alice"),
        Scope("a", "alice", "p"),
        Scope("a", "alice", None, "s"),
        Scope("a", "alice", "p", "s"),
    ],
)
def test_inside_its_scope_an_entry_is_found_by_id_row_and_count(store, scope):
    stored = entry(1, user_id="alice", project_id="p", session_id="s")
    added(store, "a", [stored])
    assert one(store, scope, stored.id) == stored
    assert drive(store.get_rows(scope, [1, 99], now=NOON)) == {1: stored}
    assert counted(store, scope) == 1


def test_two_agents_may_use_the_same_id(store):
    added(store, "a", [entry(1)])
    added(store, "b", [entry(1, agent_id="b", content="b's own")])
    assert one(store, Scope("b"), UUID(int=1)).content == "b's own"


def test_an_id_stored_twice_is_refused_and_the_whole_call_with_it(store):
    added(store, "a", [entry(1)])
    with pytest.raises(DuplicateEntryError, match=f"{UUID(int=1)} is already stored for agent 'a'"):
        added(store, "a", [entry(2), entry(1, content="else", user_id="alice"), entry(3)])
    with pytest.raises(DuplicateEntryError):
        added(store, "a", [entry(4), entry(4)])
    assert counted(store, AGENT) == 1
    assert seq_of(store, "a") == 1


def test_a_forgotten_entry_is_not_found_and_keeps_its_id(store):
    added(store, "a", [entry(1), entry(2)])
    assert drive(store.forget(AGENT, UUID(int=1), NOON)) is True
    assert one(store, AGENT, UUID(int=1)) is None
    assert drive(store.get_rows(AGENT, [1, 2], now=NOON)).keys() == {2}
    assert counted(store, AGENT) == 1
    with pytest.raises(DuplicateEntryError):
        added(store, "a", [entry(1)])


def test_forgetting_again_is_true_and_changes_nothing(store):
    added(store, "a", [entry(1)])
    drive(store.forget(AGENT, UUID(int=1), NOON))
    seq = seq_of(store, "a")
    assert drive(store.forget(AGENT, UUID(int=1), NOON + timedelta(days=1))) is True
    assert seq_of(store, "a") == seq


def test_archived_and_superseded_entries_are_not_found(store):
    states = [MemoryStatus.ARCHIVED, MemoryStatus.SUPERSEDED, MemoryStatus.ACTIVE]
    added(store, "a", [embedded(at, status=status) for at, status in enumerate(states)])
    assert counted(store, AGENT) == 1
    assert [facts.row for facts in rows_since(store, None).facts] == [3]


def test_changes_are_numbered_per_agent_without_gaps(store):
    added(store, "a", [entry(1), entry(2)])
    added(store, "b", [entry(1, agent_id="b")])
    drive(store.forget(AGENT, UUID(int=2), NOON))
    assert seq_of(store, "a") == 3
    assert seq_of(store, "b") == 1
    assert seq_of(store, "nobody") == 0


def test_everything_since_the_beginning_is_what_lives_and_has_a_vector(store):
    added(store, "a", [embedded(1, (1, 2), user_id="u"), embedded(2), entry(3)])
    added(store, "b", [embedded(4, agent_id="b")])
    drive(store.forget(AGENT, UUID(int=2), NOON))
    batch = rows_since(store, None)
    assert (batch.since, batch.seq) == (None, 4)
    assert [(facts.row, facts.user_id, facts.id) for facts in batch.facts] == [
        (1, "u", UUID(int=1).bytes)
    ]
    assert batch.vectors.tolist() == [[1, 2]]
    assert batch.vectors.dtype == np.float32
    assert batch.unembedded == [3]


@pytest.mark.parametrize("agents", [1, 9])
def test_everything_may_be_taken_in_parts(store, monkeypatch, agents):
    monkeypatch.setattr(changes, "_PART", 2)
    for number in range(agents):
        name = "a" if number == 0 else f"b{number}"
        entries = [embedded(at, (at + 1, number), agent_id=name) for at in range(5)]
        added(store, name, [*entries, entry(5, agent_id=name)])
    parts = []
    reading = store.rows_since("a", "m", 2, None, lambda *part: parts.append(part))
    batch = drive(reading)
    assert batch.vectors.shape == (0, 2)
    assert [len(rows) for rows, _ in parts] == [2, 2, 1]
    rows = np.concatenate([rows for rows, _ in parts])
    assert [facts.row for facts in batch.facts] == rows.tolist() == [1, 2, 3, 4, 5]
    assert np.concatenate([part for _, part in parts]).tolist() == [[at + 1, 0] for at in range(5)]
    assert batch.unembedded == [6]


def test_changes_since_a_number_are_only_those_after_it(store):
    added(store, "a", [embedded(1), embedded(2)])
    added(store, "a", [embedded(3, (5, 6))])
    drive(store.forget(AGENT, UUID(int=1), NOON))
    batch = rows_since(store, 2)
    assert (batch.since, batch.seq) == (2, 4)
    assert [facts.row for facts in batch.facts] == [3]
    assert batch.vectors.tolist() == [[5, 6]]
    assert batch.gone == [1]
    assert rows_since(store, 4).facts == []


def test_a_reader_behind_the_kept_changes_or_ahead_of_them_gets_everything(store):
    end = -(-KEPT_CHANGES // 1024) * 1024
    with store._connections.writing() as connection:
        connection.execute(
            "INSERT INTO agent_memory_agents (agent_id, seq) VALUES ('a', ?)", (end - 2,)
        )
    added(store, "a", [embedded(1)])
    added(store, "a", [embedded(2)])
    assert seq_of(store, "a") == end
    assert rows_since(store, end - KEPT_CHANGES - 1).since is None
    assert rows_since(store, end - KEPT_CHANGES).since == end - KEPT_CHANGES
    assert rows_since(store, end + 1).since is None


def test_adding_returns_the_change_that_a_reader_would_be_given(store):
    added(store, "a", [embedded(1)])
    entries = [embedded(2, (3, 4), user_id="u"), entry(3), embedded(4)]
    returned = added(store, "a", entries).batch
    read = rows_since(store, 1)
    for field in ("since", "seq", "facts", "gone", "unembedded"):
        assert getattr(returned, field) == getattr(read, field)
    assert returned.vectors.tolist() == read.vectors.tolist() == [[3, 4], [1, 0]]


def test_vectors_come_later_for_rows_that_lack_them(store):
    added(store, "a", [entry(1), entry(2), embedded(3)])
    vectors = np.array([[1, 2], [3, 4], [9, 9]], dtype=np.float32)
    contents = {1: "memory 1", 77: "of nobody", 3: "memory 3"}
    drive(store.add_embeddings("a", "m", contents, vectors))
    batch = rows_since(store, None)
    rows = [facts.row for facts in batch.facts]
    assert dict(zip(rows, batch.vectors.tolist(), strict=True)) == {1: [1, 2], 3: [1, 0]}
    assert batch.unembedded == [2]
    assert drive(store.contents("a", [1, 2, 77])) == {1: "memory 1", 2: "memory 2"}
    assert drive(store.contents("b", [1, 2])) == {}


def test_an_agent_has_vectors_of_one_model(store):
    assert drive(store.embedding_model("a")) is None
    added(store, "a", [entry(1)])
    assert drive(store.embedding_model("a")) is None
    added(store, "a", [embedded(2)])
    assert drive(store.embedding_model("a")) == ("m", 2)
    for other in (embedded(3, model="n"), embedded(3, (1, 2, 3))):
        with pytest.raises(
            EmbeddingModelMismatchError, match="agent 'a' has vectors of 'm' with 2"
        ):
            added(store, "a", [other])
    with pytest.raises(EmbeddingModelMismatchError, match="several models"):
        added(store, "b", [embedded(3), embedded(4, model="n")])
    added(store, "b", [embedded(3, model="n", agent_id="b")])
    assert counted(store, AGENT) == 2


def test_an_embedding_without_its_models_name_is_refused(store):
    nameless = entry(1, embedding=[1.0, 2.0])
    with pytest.raises(InvalidEntryError, match="without its embedding_model"):
        added(store, "a", [nameless])


def test_after_closing_every_call_says_so_and_closing_again_is_harmless(store):
    drive(store.close())
    drive(store.close())
    calls = (
        lambda: adding(store, "a", [entry(1)]),
        lambda: store.get(AGENT, [UUID(int=1)], now=NOON),
        lambda: store.count(AGENT, now=NOON),
        lambda: store.forget(AGENT, UUID(int=1), NOON),
        lambda: store.rows_since("a", "m", 2, None),
    )
    for call in calls:
        with pytest.raises(StoreClosedError, match="closed"):
            drive(call())


def test_event_loops_and_plain_threads_use_one_store_at_once(store):
    async def work(first):
        await asyncio.gather(*(adding(store, "a", [entry(first + at)]) for at in range(25)))
        return await store.count(AGENT, now=NOON)

    def loop(first):
        asyncio.run(work(first))

    def plain(first):
        for at in range(25):
            added(store, "a", [entry(first + at)])

    threads = [
        threading.Thread(target=target, args=(1000 * at,))
        for at, target in enumerate([loop, loop, plain, plain], start=1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counted(store, AGENT) == 100
    assert seq_of(store, "a") == 100


def test_a_plain_call_inside_a_running_event_loop_works_too(store):
    async def inside():
        added(store, "a", [entry(1)])
        return await store.count(AGENT, now=NOON)

    assert asyncio.run(inside()) == 1


def test_no_statement_reads_more_rows_than_it_needs(store):
    plans = []

    def explain(cursor, sql, values):
        if sql.startswith(("SELECT", "UPDATE")):
            explained = cursor.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            plans.append((sql, " | ".join(step[-1] for step in explained)))
        return True

    added(store, "a", [embedded(1), entry(2)])
    with store._connections.reading() as connection:
        for call in (
            lambda: reads.entries_of_ids(
                connection, ALICE, [UUID(int=1)], 0, include_forgotten=False
            ),
            lambda: reads.entries_of_ids(
                connection, ALICE, [UUID(int=1)], 0, include_forgotten=True
            ),
            lambda: reads.entries_of_rows(connection, AGENT, [1, 2], 0),
            lambda: reads.contents(connection, "a", [1, 2]),
            lambda: changes.rows_since(connection, "a", ("m", 2), 1),
            lambda: changes.rows_since(connection, "a", ("m", 2), None),
        ):
            connection.exec_trace = explain
            call()
            connection.exec_trace = None
    assert len(plans) == 11
    for sql, plan in plans:
        if sql in {changes._ALL_VECTORS, changes._LAST_VECTOR}:
            continue
        reads_all = sql == changes._ALL_FACTS
        assert "(rowid=?)" in plan or "(agent_id=?" in plan, plan
        assert ("entries_by_" in plan) == reads_all, plan
        assert "TEMP B-TREE" not in plan, plan
