"""Sealed memories in PostgreSQL: its log, connections, rows that are held, searches, policies."""

import logging
import threading

import msgspec
import numpy as np
import pytest

from mnemic import Encryption, Memory
from mnemic.errors import SchemaVersionError, StoreError, WrongKeyError
from mnemic.model.filter import parse_filter
from mnemic.model.timestamps import to_microseconds
from mnemic.store.operations import (
    ActiveRows,
    AddEmbeddings,
    EntriesByRow,
    Nearest,
    RowsWithoutVectors,
    VectorsOfRow,
)
from mnemic.store.postgres import connections
from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.schema import migrate
from mnemic.store.postgres.session import Connection, Session, prepare
from mnemic.store.postgres.target import target_of
from tests.store.contract import AGENT, EVERYONE, MODEL, added, embedded, one, rows_of, rows_since
from tests.store.sealing.places import SECRET, VECTOR, ServerPlace, secret, updated
from tests.store.sealing.test_rotation import rotate
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import numbered
from tests.support.keys import KEY, OTHER_KEY
from tests.support.postgres_server import SERVER
from tests.support.secret_forms import shown
from tests.support.threads import run_together


@pytest.fixture
def place():
    made = ServerPlace(None)
    yield made
    made.drop()


@pytest.fixture
def store(place):
    return place.open()


def test_sealed_vectors_that_come_later_are_missed_no_more(store):
    added(store, "a", [numbered(1, sensitive=True)])
    rows = rows_of(store)
    assert store.read(RowsWithoutVectors("a", MODEL)) == [rows[1]]
    vectors = np.array([VECTOR, VECTOR], np.float32)
    store.write(AddEmbeddings("a", "m", {rows[1]: "memory 1"}, [vectors])).result()
    assert store.read(RowsWithoutVectors("a", MODEL)) == []


@pytest.mark.parametrize("is_sealed", [True, False])
def test_the_server_log_quotes_no_content_of_a_sealed_memory_that_it_refuses(place, is_sealed):
    store = place.open(KEY if is_sealed else None)
    added(store, "a", [numbered(1)])
    place.run("ALTER TABLE agent_memory_entries ADD CONSTRAINT few CHECK (version < 2) NOT VALID")
    added(store, "a", [secret(2)])
    if SERVER.is_given:
        pytest.skip("the log is another server's")
    log = SERVER._folder / "log"
    begin = log.stat().st_size
    with pytest.raises(StoreError, match="23514"):
        updated(store, 2, content="she has porphyria", importance=0.75)
    logged = log.read_bytes()[begin:]
    assert b"agent_memory_entries" in logged
    told = shown(logged, [SECRET, "she has porphyria"])
    assert told == ([] if is_sealed else [SECRET, "she has porphyria"])


@pytest.fixture
def two(store, place):
    """Return a store of two sealed memories of one user, and one that is not."""
    added(place.open(None), "a", [embedded(3, (1, 0))])
    added(store, "a", [secret(1, (1, 0)), secret(2, (0, 1), content="Another secret")])
    return store


def test_a_vector_in_plain_text_beside_a_sealed_memory_is_not_read(two, place):
    rows = rows_of(two)
    values = "('a', ?, 'm', false, 1, 0, '[0.25, 0.25]')"
    place.run(f"INSERT INTO agent_memory_embeddings VALUES {values}", rows[1])  # noqa: S608
    for since in (None, 0):
        assert [0.25, 0.25] not in rows_since(two, since).vectors.tolist()
    assert two.read(VectorsOfRow("a", rows[1], "m")).tolist() == [[1, 0]]


def test_a_write_reads_keys_in_its_transaction_alone(store, monkeypatch):
    store.check_key("a")
    read, reads = [], Connections.read

    def noted(*given, **options):
        read.append(given)
        return reads(*given, **options)

    monkeypatch.setattr(Connections, "read", noted)
    for number in range(1, 5):
        added(store, "a", [secret(number)])
    assert updated(store, 1, importance=0.75).last.importance == 0.75
    assert read == []


def test_as_many_reads_as_there_are_connections_may_all_need_keys(store, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE", 5.0)
    added(store, "a", [secret(1)])
    everybody = threading.Barrier(connections.MAX_CONNECTIONS)

    def reading():
        def work(_):
            everybody.wait(30)  # each has a connection now
            return store._codec.keyring.refreshed("a").stored

        found.append(store._read("a", work))

    found = []
    run_together(*[reading] * connections.MAX_CONNECTIONS)
    assert [len(keys) for keys in found] == [1] * connections.MAX_CONNECTIONS


def test_a_way_back_to_tables_without_keys_is_refused_while_there_are_any(store, place):
    added(store, "a", [secret(1)])
    with Connection.connect(place.url) as connection:
        prepare(connection)
        with pytest.raises(SchemaVersionError, match="memories are sealed"):
            migrate(Session(connection, POSTGRES), 2)
    assert one(store, AGENT, 1).content == f"{SECRET} 1"


def test_a_memory_rotates_its_key_during_writes(place):
    options = {"embedder": WordEmbedder(dimensions=8)}
    first = Memory(place.url, "a", encryption=Encryption(KEY, encrypt_all=True), **options)
    second = Memory(
        place.other_url,
        "a",
        encryption=Encryption(KEY, previous=[OTHER_KEY], encrypt_all=True),
        **options,
    )
    first.add_many([f"note {number}" for number in range(50)])
    with first, second:
        numbers = iter(range(50, 90))

        def writing():
            for number in numbers:
                second.add(f"note {number}")

        sealed = []
        run_together(writing, lambda: sealed.append(first.rotate_key(OTHER_KEY)))
        assert sealed[0] >= 50
        found = {entry.content for entry in first.list(limit=1000)}
        assert found == {f"note {number}" for number in range(90)}
        assert len(second.search("note", limit=100).hits) == 90
        assert first.verify().ok
        with pytest.raises(WrongKeyError):
            Memory(place.url, "a", encryption=Encryption(KEY), **options)
        assert first.forget_agent() == 90
        first.add("note 1")
        assert first.count() == 1


def test_rows_that_are_held_sealed_under_a_former_key_are_read_again(two, caplog):
    rows_since(two, None)
    rows = list(rows_of(two).values())
    rotate(two)
    two._codec.keyring.refreshed("a")
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert len(two.read(EntriesByRow(EVERYONE, rows, NOON))) == 3
    assert caplog.text == ""
    held = two._database.cached["a"].of(rows)
    assert len(held) == 3
    assert two._under_former_keys("a", held) == []


def nearest(store, filters=None, *, is_exact=True):
    expression = None if filters is None else parse_filter(filters)
    vectors = np.array([VECTOR], np.float32)
    wanted = Nearest(EVERYONE, expression, vectors, MODEL, 5, to_microseconds(NOON))
    return store.read(msgspec.structs.replace(wanted, is_exact=is_exact))


def test_the_database_selects_nothing_where_it_cannot_compare_sealed_vectors(two, place):
    assert nearest(two) is None
    assert nearest(two, is_exact=False) is None
    plain = place.open(None)
    selected = nearest(plain)
    assert [record[0] for record in selected.batch.records] == [rows_of(two)[3]]
    updated(two, 1, importance=1.0)
    updated(two, 2, importance=1.0)
    selected = nearest(two, {"importance": {"lt": 0.9}})
    assert [record[0] for record in selected.batch.records] == [rows_of(two)[3]]


def test_rows_of_a_scope_come_with_the_vectors_of_sealed_ones(two):
    selected = two.read(ActiveRows(EVERYONE, MODEL))
    rows = rows_of(two)
    assert set(selected.batch.embedded) == set(rows.values())
    entries = selected.entries(EVERYONE, list(rows.values()), NOON)
    assert entries[rows[1]].content == f"{SECRET} 1"


@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
def test_a_search_in_the_database_finds_what_one_in_memory_finds(place, search_type):
    texts = [f"note {number} of pears and {'plums' * (number % 3)}" for number in range(40)]
    answers = []
    for search_in in ("memory", "database"):
        with Memory(
            place.url,
            "a",
            embedder=WordEmbedder(dimensions=8),
            encryption=Encryption(KEY, detect=lambda text: "plums" in text),
            search_in=search_in,
        ) as memory:
            if search_in == "memory":
                memory.add_many(texts)
            found = memory.search("pears and plums", search_type=search_type, limit=20)
            answers.append([(hit.id, hit.score) for hit in found])
    assert answers[0] == answers[1]
    assert len(answers[0]) == 20


def test_rows_are_held_sealed(two):
    rows_since(two, None)
    held = two._database.cached["a"]
    data = b"".join(held._rows.values())
    assert set(rows_of(two).values()) == held._rows.keys()
    assert shown(data, [SECRET]) == []


def test_under_policies_sealed_memories_are_stored_read_and_searched():
    url = SERVER.new_guarded_database()
    for agent in ("ann", "bob"):
        with Memory(
            url, agent, embedder=WordEmbedder(dimensions=8), encryption=Encryption(KEY)
        ) as memory:
            memory.add_many(
                [{"content": f"{agent} sails boat {at}", "sensitive": True} for at in range(40)]
            )
            assert memory.search("boat 7", limit=1).hits[0].content == f"{agent} sails boat 7"
            memory.update(memory.list(limit=1)[0].id, content=f"{agent} sails no more")
            assert memory.verify().ok
    named = Connections(target_of(url))
    for table in ("keys", "sealed_vectors"):
        sql = f"SELECT DISTINCT agent_id FROM mnemic.agent_memory_{table}"  # noqa: S608 - constants
        assert named.read(["ann"], lambda on, at=sql: on.fetch(at)) == [("ann",)]
        assert len(named.read(None, lambda on, at=sql: on.fetch(at))) == 2
    named.close()
    with Memory(url, "ann", embedder=None) as memory:
        assert memory.count() == 0
        assert memory.stats().sealed_entries == 40
    SERVER.drop(url)
