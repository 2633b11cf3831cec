"""Sealed memories in PostgreSQL: what its tables and its log show, and what its changes cost."""

import logging
import subprocess
import sys
import threading
from base64 import b64encode

import msgspec
import numpy as np
import psycopg
import pytest

from mnemic import Encryption, Memory
from mnemic.errors import (
    DuplicateEntryError,
    InvalidArgumentError,
    KeyUnavailableError,
    SchemaVersionError,
    SealBrokenError,
    StoreError,
    WrongKeyError,
)
from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.model.timestamps import to_microseconds
from mnemic.store import open_store
from mnemic.store.operations import (
    ActiveRows,
    Add,
    AddEmbeddings,
    Delete,
    DeleteAll,
    EndRotation,
    EntriesByRow,
    EntryPage,
    ForgetAgent,
    Nearest,
    Reseal,
    RowsWithoutVectors,
    ScopeStatistics,
    SetExpiry,
    StoredEntries,
    Update,
    UpdateAll,
    VectorsById,
    VectorsOfRow,
)
from mnemic.store.postgres import connections
from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.migrating import migrate
from mnemic.store.postgres.session import Connection, Session, prepare
from mnemic.store.postgres.target import target_of
from tests.store.contract import (
    AGENT,
    ALICE,
    EVERYONE,
    MODEL,
    added,
    contents_of,
    counted,
    embedded,
    entries_by_id,
    living_numbers,
    model_of,
    one,
    row_of,
    rows_of,
    rows_since,
    used_bytes,
)
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import numbered, uid
from tests.support.keys import KEY, OTHER_KEY, forms_of
from tests.support.postgres_server import SERVER
from tests.support.processes import ENVIRONMENT
from tests.support.threads import run_together

VECTOR = (0.123456789, -0.987654321)
SECRETS = {
    "content": "Her diagnosis is porphyria",
    "speaker": "Doctor Quillfeather",
    "role": "haematologist",
    "category": "bloodwork",
    "scope": "clinic-of-zurich",
    "source": "letter-from-zurich.pdf",
    "message_id": "message-of-quillfeather",
}
TEXTS = (
    *SECRETS.values(),
    "porphyrin-tag",
    "porphyrin-key",
    "porphyrin-value",
    "idempotent-zurich",
)


@pytest.fixture
def opening(database):
    """Return what opens the database, with a key unless told otherwise."""
    opened = []

    def opens(key=KEY, url=database, **options):
        encryption = None if key is None else Encryption(key, **options)
        opened.append(open_store(url, encryption=encryption))
        return opened[-1]

    opens.url = database
    yield opens
    for store in opened:
        store.close()


@pytest.fixture
def store(opening):
    return opening()


def secret(number, vector=VECTOR, **fields):
    given = {
        "tags": ("porphyrin-tag",),
        "metadata": {"porphyrin-key": "porphyrin-value"},
        "sensitive": True,
        **SECRETS,
    }
    return embedded(number, vector, **{**given, **fields})


def run(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        return [connection.execute(statement).rowcount for statement in statements]


def tables_of(connection):
    sql = (
        "SELECT oid::regclass::text FROM pg_class "
        "WHERE relnamespace = 'mnemic'::regnamespace AND relkind IN ('r', 'p') AND NOT "
        "relispartition ORDER BY 1"
    )
    return [name for (name,) in connection.execute(sql).fetchall()]


def bytes_of(url):
    """Return all that the tables have, as the server sends it: texts, bytes and vectors."""
    with psycopg.connect(url, autocommit=True) as connection:
        found = []
        for table in tables_of(connection):
            sql = f"COPY (SELECT * FROM {table}) TO STDOUT (FORMAT BINARY)"  # noqa: S608
            with connection.cursor() as cursor, cursor.copy(sql) as rows:
                found += [bytes(part) for part in rows]
    return b"".join(found)


def in_base64(text):
    """Return how a text would look within a longer one in Base64, wherever it began."""
    for before in range(3):
        encoded = b64encode(bytes(before) + text + bytes(3))
        yield encoded[4 * bool(before) : -8]


def forms(texts, vectors=(VECTOR,)):
    for text in texts:
        yield from (text.encode(), *in_base64(text.encode()))
    for vector in vectors:
        for order in ("<f4", ">f4"):
            yield np.array(vector, order).tobytes()


def shown(data, texts=TEXTS, vectors=(VECTOR,)):
    """Return the forms of secrets that are found in bytes."""
    return {form for form in forms(texts, vectors) if form in data}


def update(store, number, scope=AGENT, **fields):
    changes = MemoryEntryUpdate(**fields)

    def changed(old):
        return store.marked(changes.applied_to(old, NOON))

    return store.write(Update(scope, uid(number), change=changed, now=NOON)).result()


def nearest(store, filters=None, *, is_exact=True):
    expression = None if filters is None else parse_filter(filters)
    vectors = np.array([VECTOR], np.float32)
    wanted = Nearest(EVERYONE, expression, vectors, MODEL, 5, to_microseconds(NOON))
    return store.read(msgspec.structs.replace(wanted, is_exact=is_exact))


def indexed(store, **options):
    return rows_since(store, None, **options)


# What the tables show


def test_nothing_of_a_sealed_memory_lies_in_any_table(opening):
    added(opening(), "a", [secret(1)], ["idempotent-zurich"])
    assert shown(bytes_of(opening.url)) == set()


def test_the_same_memory_shows_all_of_it_where_it_is_not_sealed(opening):
    added(opening(None), "a", [secret(1)], ["idempotent-zurich"])
    found = shown(bytes_of(opening.url))
    assert {text.encode() for text in TEXTS} <= found
    assert np.array(VECTOR, ">f4").tobytes() in found


def test_many_sealed_memories_at_once_show_nothing(opening):
    store = opening()
    added(store, "a", [secret(number) for number in range(1, 101)])
    assert shown(bytes_of(opening.url)) == set()
    assert indexed(store).vectors.tolist() == [pytest.approx(VECTOR)] * 100


@pytest.mark.parametrize("way", ["update", "content", "all", "replace"])
def test_a_memory_that_becomes_sensitive_leaves_nothing_in_the_tables(opening, way):
    plain, store = opening(None), opening(detect=lambda text: "sealed" in text)
    added(plain, "a", [secret(1, sensitive=False)], ["idempotent-zurich"])
    entry = one(plain, AGENT, 1)
    vectors = np.array([[0.5, 0.25]], np.float32)
    plain.add_shadow_vectors("a", "other", rows_and(plain, entry), {rows_of(plain)[1]: vectors})
    if way == "update":
        assert update(store, 1, metadata={"sensitive": True}).is_encrypted
    elif way == "content":
        assert update(store, 1, content="now sealed").is_encrypted
    elif way == "all":
        add_tag = MemoryEntryUpdate(add_tags=["sealed"])
        found = store.write(
            UpdateAll(
                AGENT,
                given(1),
                change=lambda old: store.marked(add_tag.applied_to(old, NOON)),
                now=NOON,
            )
        )
        assert len(found.result()) == 1
    else:
        stored = added(store, "a", [secret(1)], on_conflict="replace")
        assert stored.replaced[0].is_sealed_now
    assert shown(bytes_of(opening.url), vectors=(VECTOR, (0.5, 0.25))) == set()
    assert plain.drop_shadow_vectors("a", None).result() == 0
    assert store.verify().ok


def given(number):
    return Criteria(ids=[uid(number)])


def rows_and(store, *entries):
    rows = rows_of(store)
    return {rows[entry.id.int]: entry for entry in entries}


def test_vectors_that_come_later_are_sealed(opening):
    store = opening()
    added(store, "a", [numbered(1, sensitive=True)])
    rows = rows_of(store)
    assert store.read(RowsWithoutVectors("a", MODEL)) == [rows[1]]
    vectors = np.array([VECTOR, VECTOR], np.float32)
    store.write(AddEmbeddings("a", "m", {rows[1]: "memory 1"}, [vectors])).result()
    assert shown(bytes_of(opening.url)) == set()
    assert store.read(VectorsOfRow("a", rows[1], "m")).tolist() == vectors.tolist()
    assert store.read(RowsWithoutVectors("a", MODEL)) == []
    assert model_of(store, "a") == MODEL


def test_no_table_has_a_master_key(store, opening):
    added(store, "a", [secret(1)])
    data = bytes_of(opening.url)
    assert KEY not in data
    assert not any(form.encode() in data for form in forms_of(KEY))


@pytest.mark.parametrize("is_sealed", [True, False])
def test_the_server_log_quotes_no_content_of_a_sealed_memory_that_it_refuses(opening, is_sealed):
    store = opening(KEY if is_sealed else None)
    added(store, "a", [numbered(1)])
    run(
        opening.url,
        "ALTER TABLE mnemic.agent_memory_entries ADD CONSTRAINT few CHECK (version < 2) NOT VALID",
    )
    added(store, "a", [secret(2)])
    if SERVER.is_given:
        pytest.skip("the log is another server's")
    log = SERVER._folder / "log"
    begin = log.stat().st_size
    with pytest.raises(StoreError, match="23514"):
        update(store, 2, content="she has porphyria", importance=0.75)
    logged = log.read_bytes()[begin:]
    assert b"agent_memory_entries" in logged
    told = shown(logged, (*TEXTS, "she has porphyria"))
    assert told == set() if is_sealed else b"she has porphyria" in told


# Changes in the database


@pytest.fixture
def two(store, opening):
    """Return a store of two sealed memories of one user, and one that is not."""
    added(opening(None), "a", [embedded(3, (1, 0))])
    added(store, "a", [secret(1, (1, 0)), secret(2, (0, 1), content="Another secret")])
    return store


TAMPERED = {
    "a letter": (
        "UPDATE {entries} SET content = "
        "overlay(content placing CASE WHEN substr(content, 60, 1) = 'A' THEN 'B' ELSE 'A' END "
        "FROM 60) WHERE id = '{first}'"
    ),
    "cut off": "UPDATE {entries} SET content = left(content, 40) WHERE id = '{first}'",
    "no Base64": "UPDATE {entries} SET content = 'ä' || content WHERE id = '{first}'",
    "moved": (
        "UPDATE {entries} SET content = (SELECT content FROM {entries} WHERE id = '{second}') "
        "WHERE id = '{first}'"
    ),
    "time": "UPDATE {entries} SET created_at = created_at - 1 WHERE id = '{first}'",
    "mark": "UPDATE {entries} SET is_sensitive = NOT is_sensitive WHERE id = '{first}'",
    "user": "UPDATE {entries} SET user_id = 'alice' WHERE id = '{first}'",
}


def tamper(url, statement):
    names = {
        "entries": "mnemic.agent_memory_entries",
        "vectors": "mnemic.agent_memory_sealed_vectors",
    }
    assert run(url, statement.format(first=uid(1), second=uid(2), **names)) == [1]


@pytest.mark.parametrize("change", TAMPERED)
def test_a_changed_memory_costs_itself_alone(two, opening, change, caplog):
    rows = rows_of(two)
    tamper(opening.url, TAMPERED[change])
    scope = ALICE if change == "user" else AGENT
    with pytest.raises(SealBrokenError) as raised:
        entries_by_id(two, scope, [uid(1)], now=NOON)
    assert raised.value.entry_id == uid(1)
    with caplog.at_level(logging.ERROR):
        assert set(two.read(EntriesByRow(EVERYONE, list(rows.values()), now=NOON))) == {
            rows[2],
            rows[3],
        }
        assert {record[0] for record in indexed(two).records} == {rows[2], rows[3]}
    assert f"Failed to decrypt memory entry {uid(1)}" in caplog.text
    listed = two.read(EntryPage(EVERYONE, parse_filter(None), now=NOON, limit=10))
    assert {entry.id.int for entry in listed} == {2, 3}
    assert len(two.read(EntryPage(EVERYONE, parse_filter(None), now=NOON, limit=2))) == 2
    stored = two.read(StoredEntries(EVERYONE, 0, 1, now=NOON, include_deleted=True, model="m"))
    assert len(stored) == 1
    assert counted(two, EVERYONE) == 2
    assert contents_of(two, "a", list(rows.values())).keys() == {rows[2], rows[3]}
    stats = two.read(ScopeStatistics(EVERYONE, now=NOON))
    assert (stats.sealed_entries, stats.unreadable_entries) == (2, 1)
    with pytest.raises(SealBrokenError) as raised:
        two.verify()
    assert raised.value.report.memories == 3
    assert {problem.id for problem in raised.value.report.problems} - {None} == {uid(1)}
    assert not shown(caplog.text.encode() + str(raised.value).encode())


def test_a_sealed_memory_that_lost_its_mark_shows_what_the_tables_show(two, opening):
    tamper(opening.url, "UPDATE {entries} SET is_encrypted = false WHERE id = '{first}'")
    entry = one(two, AGENT, 1)
    assert not entry.is_encrypted
    assert shown(entry.content.encode()) == set()
    assert rows_since(two, None).embedded == [rows_of(two)[3], rows_of(two)[2]]


TAMPERED_VECTORS = {
    "a byte": (
        "UPDATE {vectors} SET sealed = set_byte(sealed, 30, get_byte(sealed, 30) # 1) "
        "WHERE entry_row = {row}"
    ),
    "cut off": "UPDATE {vectors} SET sealed = substr(sealed, 1, 20) WHERE entry_row = {row}",
    "moved": (
        "UPDATE {vectors} SET sealed = (SELECT sealed FROM {vectors} WHERE entry_row = {other}) "
        "WHERE entry_row = {row}"
    ),
}


@pytest.mark.parametrize("change", TAMPERED_VECTORS)
def test_a_changed_vector_is_similar_to_nothing(two, opening, change, caplog):
    rows = rows_of(two)
    tamper(
        opening.url,
        TAMPERED_VECTORS[change].replace("{row}", str(rows[1])).replace("{other}", str(rows[2])),
    )
    expected = {rows[1]: [0, 0], rows[2]: [0, 1], rows[3]: [1, 0]}
    with caplog.at_level(logging.ERROR):
        for since in (None, 0):
            batch = rows_since(two, since)
            found = dict(zip(batch.embedded, batch.vectors.tolist(), strict=True))
            assert found == expected
    assert f"Failed to decrypt memory entry {uid(1)}" in caplog.text
    with pytest.raises(SealBrokenError):
        two.read(VectorsOfRow("a", rows[1], "m"))
    assert two.read(VectorsOfRow("a", rows[2], "m")).tolist() == [[0, 1]]
    with pytest.raises(SealBrokenError) as raised:
        two.verify()
    assert [problem.id for problem in raised.value.report.problems] == [uid(1)]


def test_a_vector_in_plain_text_beside_a_sealed_memory_is_not_read(two, opening):
    rows = rows_of(two)
    run(
        opening.url,
        "INSERT INTO mnemic.agent_memory_embeddings "  # noqa: S608
        f"VALUES ('a', {rows[1]}, 'm', false, 1, 0, '[0.25, 0.25]')",
    )
    for since in (None, 0):
        assert [0.25, 0.25] not in rows_since(two, since).vectors.tolist()
    assert two.read(VectorsOfRow("a", rows[1], "m")).tolist() == [[1, 0]]


# Without the key, and with another


def test_without_a_key_sealed_memories_are_not_there(two, opening):
    rows, plain = rows_of(two), opening(None)
    assert counted(plain, EVERYONE) == 1
    assert entries_by_id(plain, EVERYONE, [uid(1), uid(3)], now=NOON).keys() == {uid(3)}
    assert plain.read(EntriesByRow(EVERYONE, list(rows.values()), now=NOON)).keys() == {rows[3]}
    assert row_of(plain, AGENT, uid(1), now=NOON) is None
    assert plain.read(VectorsOfRow("a", rows[1], "m")).size == 0
    assert plain.read(VectorsById("a", [(None, uid(1))], "m")) == {}
    for since in (None, 0):
        batch = rows_since(plain, since)
        assert {record[0] for record in batch.records} == {rows[3]}
        assert set(batch.embedded) == {rows[3]}
    assert plain.read(RowsWithoutVectors("a", ("other", 2))) == [rows[3]]
    assert contents_of(plain, "a", list(rows.values())).keys() == {rows[3]}
    assert (
        len(plain.read(StoredEntries(EVERYONE, 0, 9, now=NOON, include_deleted=True, model="m")))
        == 1
    )
    stats, known = (
        plain.read(ScopeStatistics(EVERYONE, now=NOON)),
        two.read(ScopeStatistics(EVERYONE, now=NOON)),
    )
    assert (stats.active_entries, stats.sealed_entries, stats.unreadable_entries) == (1, 2, 2)
    assert stats.storage_bytes_used == known.storage_bytes_used
    assert plain.verify().ok


def test_without_a_key_sealed_memories_change_only_by_being_deleted(two, opening):
    plain = opening(None)
    assert update(plain, 1, importance=0.75) is None
    assert plain.write(SetExpiry(AGENT, [uid(1)], NOON, now=NOON)).result() == 0
    tagged = parse_filter({"importance": {"gte": 0}})
    assert (
        len(plain.write(DeleteAll(AGENT, given(3)._replace(ids=None, expression=tagged))).result())
        == 1
    )
    assert counted(two, EVERYONE) == 2
    assert plain.write(Delete(AGENT, uid(1))).result() == [uid(1)]
    assert len(plain.write(DeleteAll(AGENT)).result()) == 1
    assert run(opening.url, "SELECT * FROM mnemic.agent_memory_sealed_vectors") == [0]


def test_without_a_key_a_sensitive_memory_of_an_agent_with_one_is_refused(store, opening):
    added(store, "a", [secret(1)])
    plain = opening(None)
    with pytest.raises(KeyUnavailableError, match="seals its sensitive memories"):
        added(plain, "a", [secret(2)])
    added(plain, "a", [numbered(3)])
    added(plain, "b", [numbered(1, agent_id="b", sensitive=True)])


def test_without_a_key_the_id_of_a_sealed_memory_stays_taken(store, opening):
    added(store, "a", [secret(1)])
    plain = opening(None)
    with pytest.raises(DuplicateEntryError):
        added(plain, "a", [numbered(1)])
    with pytest.raises(KeyUnavailableError):
        added(plain, "a", [numbered(1)], on_conflict="replace")


def test_another_key_is_refused_when_the_agent_is_opened(store, opening):
    store.check_key("a")
    added(store, "a", [secret(1)])
    other = opening(OTHER_KEY)
    with pytest.raises(WrongKeyError):
        other.check_key("a")
    other.check_key("b")
    assert other.verify().ok


def test_stores_of_one_process_with_and_without_a_key_keep_apart(store, opening):
    plain = opening(None)
    added(store, "a", [embedded(9)])

    def keyed():
        for number in range(1, 30):
            added(store, "a", [secret(number + 100)])

    refused = []

    def keyless():
        for number in range(1, 30):
            try:
                added(plain, "a", [secret(number + 200)])
            except KeyUnavailableError:
                refused.append(number)

    run_together(keyed, keyless)
    assert len(refused) == 29
    assert shown(bytes_of(opening.url)) == set()
    indexed(store)
    rows = rows_of(store)
    assert plain.read(EntriesByRow(EVERYONE, list(rows.values()), now=NOON)).keys() == {rows[9]}
    assert len(store.read(EntriesByRow(EVERYONE, list(rows.values()), now=NOON))) == 30


CHILD = """
import sys
from mnemic import Encryption, Memory
url, key = sys.argv[1:]
encryption = Encryption(bytes.fromhex(key)) if key else None
with Memory(url, "a", embedder=None, encryption=encryption) as memory:
    print(memory.count(), sorted(entry.content for entry in memory.list()))
    if key:
        memory.add("written by the child", sensitive=True)
"""


def test_processes_with_the_key_share_sealed_memories(opening):
    with Memory(opening.url, "a", embedder=None, encryption=Encryption(KEY)) as memory:
        memory.add("sealed by the parent", sensitive=True)
        memory.add("plain")
        told = [child(opening.url, key) for key in ("", KEY.hex())]
        assert told == ["1 ['plain']", "2 ['plain', 'sealed by the parent']"]
        found = memory.search("child", search_type="keyword")
        assert [hit.entry.content for hit in found] == ["written by the child"]
    assert shown(bytes_of(opening.url), ("by the parent", "by the child"), ()) == set()


def child(url, key):
    command = [sys.executable, "-c", CHILD, url, key]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=True, timeout=60)
    return done.stdout.decode().strip()


# Keys


def test_a_write_reads_keys_in_its_transaction_alone(store, monkeypatch):
    store.check_key("a")
    read = []
    reads = Connections.read
    monkeypatch.setattr(
        Connections,
        "read",
        lambda *given, **options: read.append(given) or reads(*given, **options),
    )
    for number in range(1, 5):
        added(store, "a", [secret(number)])
    assert update(store, 1, importance=0.75).importance == 0.75
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


def test_a_key_that_was_destroyed_is_replaced_by_the_next_write_and_opens_nothing_old(
    store, opening
):
    added(store, "a", [secret(1), numbered(2), numbered(3)])
    writes = {
        2: lambda: added(store, "a", [secret(2)], on_conflict="replace"),
        3: lambda: update(store, 3, metadata={"sensitive": True}),
        4: lambda: added(store, "a", [secret(4)]),
    }
    for number, write in writes.items():
        assert run(opening.url, "DELETE FROM mnemic.agent_memory_keys") == [1]
        write()
        assert one(store, AGENT, number).is_encrypted
    for broken in (lambda: one(store, AGENT, 1), lambda: update(store, 1, importance=0.75)):
        with pytest.raises(SealBrokenError):
            broken()


def test_processes_that_open_a_new_agent_at_once_make_one_key(opening):
    stores = [opening(url=f"{opening.url}&application_name={name}") for name in "xyz"]
    run_together(*[lambda store=store: store.check_key("a") for store in stores])
    assert run(opening.url, "SELECT * FROM mnemic.agent_memory_keys") == [1]
    for number, store in enumerate(stores, start=1):
        added(store, "a", [secret(number)])
    assert all(counted(store, AGENT) == 3 for store in stores)
    assert all(one(store, AGENT, number) for store in stores for number in (1, 2, 3))


def test_a_way_back_to_tables_without_keys_is_refused_while_there_are_any(opening):
    store = opening()
    added(store, "a", [secret(1)])
    with Connection.connect(opening.url) as connection:
        prepare(connection)
        with pytest.raises(SchemaVersionError, match="memories are sealed"):
            migrate(Session(connection, POSTGRES), 2)
    assert one(store, AGENT, 1).content == SECRETS["content"]


# Rotation


def both_keys(newer=OTHER_KEY, older=KEY, **options):
    return Encryption(newer, previous=[older], **options)


def rotated(store, limit=2):
    """Seal everything under the newest key; return how many entries that was."""
    number = after = 0
    while True:
        sealed, last = store.write(Reseal("a", after, limit)).result()
        if not last:
            return number
        number, after = number + sealed, last


@pytest.fixture
def five(store, opening):
    """Return a store of four sealed memories, the last with two vectors, and one that is not."""
    added(opening(None), "a", [embedded(5)])
    added(store, "a", [secret(1), secret(2), secret(3)], ["k", None, None])
    new = NewEntry(secret(4), None, (np.array((0.5, 0.5), np.float32),))
    marked = new._replace(entry=store.marked(new.entry))
    store.write(Add("a", [marked], now=NOON)).result()
    return store


def test_rotation_seals_everything_anew_and_changes_nothing_else(five, opening):
    before, seq, used = shown_of(five), five.position("a").seq, used_bytes(five, "a")
    five.begin_rotation("a", both_keys())
    assert five.sealed_under_other_keys("a") == 4
    assert not five.write(EndRotation("a")).result()
    assert shown_of(five) == before
    assert rotated(five) == 4
    assert five.sealed_under_other_keys("a") == 0
    assert five.write(EndRotation("a")).result()
    assert (shown_of(five), five.position("a").seq, used_bytes(five, "a")) == (before, seq, used)
    assert five.verify().ok
    newer = opening(OTHER_KEY)
    newer.check_key("a")
    assert shown_of(newer) == before
    with pytest.raises(WrongKeyError):
        opening().check_key("a")
    assert shown(bytes_of(opening.url), TEXTS) == set()
    again = added(newer, "a", [newer.marked(secret(9))], ["k"])
    assert again.ids == [uid(1)]


def shown_of(store):
    """Return all that a store tells of its entries, with keys and vectors."""
    stored = store.read(StoredEntries(EVERYONE, 0, 99, now=NOON, include_deleted=True, model="m"))
    batch = rows_since(store, None)
    return (
        [
            (one.row, one.entry, one.key, np.stack(one.more).tolist() if one.more else [])
            for one in stored
        ],
        [one.entry.embedding.tolist() for one in stored],
        sorted(zip(batch.embedded, batch.vectors.tolist(), strict=True)),
    )


def test_processes_with_both_keys_go_on_while_one_rotates(five, opening):
    other = opening(KEY, url=f"{opening.url}&application_name=other")
    other._codec.keyring.encryption = Encryption(KEY, previous=[OTHER_KEY])
    other.check_key("a")
    indexed(other)
    rows = rows_of(other)
    five.begin_rotation("a", both_keys())
    added(other, "a", [secret(6)])
    update(other, 1, importance=0.75)
    assert rotated(five) == 4  # of the one that was updated, the vectors
    assert five.write(EndRotation("a")).result()
    added(other, "a", [secret(7)])
    update(other, 2, importance=0.75)
    assert len(other.read(EntriesByRow(EVERYONE, list(rows.values()), now=NOON))) == 5
    assert counted(other, EVERYONE) == counted(five, EVERYONE) == 7
    assert five.sealed_under_other_keys("a") == 0
    assert five.verify().ok


def test_rows_that_are_held_sealed_under_a_former_key_are_read_again(five, caplog):
    indexed(five)
    rows = list(rows_of(five).values())
    five.begin_rotation("a", both_keys())
    rotated(five)
    assert five.write(EndRotation("a")).result()
    five._codec.keyring.refreshed("a")
    with caplog.at_level(logging.ERROR):
        for _ in range(2):
            assert len(five.read(EntriesByRow(EVERYONE, rows, NOON))) == 5
    assert caplog.text == ""
    held = five._database.cached.of("a").of(rows)
    assert len(held) == 5
    assert five._under_former_keys("a", held) == []


def test_a_process_without_the_new_key_is_told_so(five, opening):
    other = opening(KEY, url=f"{opening.url}&application_name=other")
    other.check_key("a")
    five.begin_rotation("a", both_keys())
    rotated(five)
    assert five.write(EndRotation("a")).result()
    for refused in (
        lambda: added(other, "a", [secret(6)]),
        lambda: update(other, 1, importance=0.75),
        lambda: one(other, AGENT, 1),
        lambda: indexed(other),
    ):
        with pytest.raises(WrongKeyError):
            refused()


def test_an_entry_that_does_not_open_keeps_the_former_key(five, opening, caplog):
    tamper(opening.url, TAMPERED["a letter"])
    five.begin_rotation("a", both_keys())
    with caplog.at_level(logging.ERROR):
        assert rotated(five) == 3
    assert f"Failed to decrypt memory entry {uid(1)}" in caplog.text
    assert not five.write(EndRotation("a")).result()
    assert five.sealed_under_other_keys("a") == 1
    assert five.write(Delete(AGENT, uid(1))).result() == [uid(1)]
    assert five.write(EndRotation("a")).result()


def test_a_vector_under_a_former_key_counts_and_is_sealed_anew(five, opening):
    row = rows_of(five)[4]
    older = five._codec.keyring.keys("a").current
    five.begin_rotation("a", both_keys())
    rotated(five)
    blob = older.seal(np.array(VECTOR, "<f4").tobytes(), uid(4).bytes, "embedding 0", "m")
    with psycopg.connect(opening.url, autocommit=True) as connection:
        connection.execute(
            "UPDATE mnemic.agent_memory_sealed_vectors SET sealed = %s "
            "WHERE entry_row = %s AND part = 0",
            (blob, row),
        )
    assert five.sealed_under_other_keys("a") == 1
    assert not five.write(EndRotation("a")).result()
    assert rotated(five) == 1
    assert five.write(EndRotation("a")).result()
    assert five.read(VectorsOfRow("a", row, "m"))[0].tolist() == pytest.approx(VECTOR)


def test_a_memory_rotates_its_key_during_writes(opening):
    options = {"embedder": WordEmbedder(dimensions=8)}
    first = Memory(opening.url, "a", encryption=Encryption(KEY, encrypt_all=True), **options)
    second = Memory(
        f"{opening.url}&application_name=other",
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
            Memory(opening.url, "a", encryption=Encryption(KEY), **options)
        assert first.forget_agent() == 90
        first.add("note 1")
        assert first.count() == 1


def test_another_process_seals_under_a_new_key_after_a_forgotten_agent(opening):
    sealing = {"encryption": Encryption(KEY), "embedder": None}
    first = Memory(opening.url, "a", **sealing)
    second = Memory(f"{opening.url}&application_name=other", "a", **sealing)
    with first, second:
        for turn in range(4):
            second.add("an old secret", sensitive=True)
            first.forget_agent()
            note = {"content": f"a new secret {turn}", "sensitive": True}
            added = second.add_many([note])[0] if turn % 2 else second.add(**note)
            assert added.is_encrypted
            assert first.get(added.id).content == f"a new secret {turn}"
            assert second.verify().ok
    ((number,),) = run_all(opening.url, "SELECT count(*) FROM mnemic.agent_memory_keys")
    assert number == 1


def test_what_is_forgotten_of_an_agent_opens_never_again(five, opening):
    added(opening(None), "b", [numbered(1, agent_id="b")])
    before = run_all(opening.url, "SELECT * FROM mnemic.agent_memory_keys")
    assert len(five.write(ForgetAgent("a")).result()) == 5
    added(five, "a", [secret(1)])
    after = run_all(opening.url, "SELECT * FROM mnemic.agent_memory_keys")
    assert len(before) == len(after) == 1
    assert before[0][4] != after[0][4]  # the salt
    assert before[0][4] not in bytes_of(opening.url)
    assert counted(five, EVERYONE) == 1
    assert counted(five, Scope("b")) == 1


def run_all(url, statement):
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(statement).fetchall()


def test_a_rotation_needs_encryption(opening):
    for call in (
        lambda store: store.begin_rotation("a", Encryption(KEY)),
        lambda store: store.sealed_under_other_keys("a"),
        lambda store: store.write(Reseal("a", 0, 10)).result(),
        lambda store: store.write(EndRotation("a")).result(),
    ):
        with pytest.raises(InvalidArgumentError, match="without encryption"):
            call(opening(None))


# Searches


def test_the_database_selects_nothing_where_it_cannot_compare_sealed_vectors(two, opening):
    assert nearest(two) is None
    assert nearest(two, is_exact=False) is None
    plain = opening(None)
    selected = nearest(plain)
    assert [record[0] for record in selected.batch.records] == [rows_of(two)[3]]
    update(two, 1, importance=1.0)
    update(two, 2, importance=1.0)
    selected = nearest(two, {"importance": {"lt": 0.9}})
    assert [record[0] for record in selected.batch.records] == [rows_of(two)[3]]


def test_rows_of_a_scope_come_with_the_vectors_of_sealed_ones(two):
    selected = two.read(ActiveRows(EVERYONE, MODEL))
    rows = rows_of(two)
    assert set(selected.batch.embedded) == set(rows.values())
    entries = selected.entries(EVERYONE, list(rows.values()), NOON)
    assert entries[rows[1]].content == SECRETS["content"]


@pytest.mark.parametrize("search_type", ["semantic", "keyword", "hybrid"])
def test_a_search_in_the_database_finds_what_one_in_memory_finds(opening, search_type):
    texts = [f"note {number} of pears and {'plums' * (number % 3)}" for number in range(40)]
    answers = []
    for place in ("memory", "database"):
        with Memory(
            opening.url,
            "a",
            embedder=WordEmbedder(dimensions=8),
            encryption=Encryption(KEY, detect=lambda text: "plums" in text),
            search_in=place,
        ) as memory:
            if place == "memory":
                memory.add_many(texts)
            found = memory.search("pears and plums", search_type=search_type, limit=20)
            answers.append([(hit.id, hit.score) for hit in found])
    assert answers[0] == answers[1]
    assert len(answers[0]) == 20


def test_sealed_rows_are_followed_on_request_although_nothing_changed_them(opening):
    store = opening(encrypt_all=True)
    added(opening(None), "a", [embedded(1), numbered(2, sensitive=True)])
    added(store, "a", [store.marked(embedded(3))])
    batch = rows_since(store, store.position("a").seq, with_sensitive=True)
    assert living_numbers(batch) == {2, 3}


def test_rows_are_held_sealed(two):
    indexed(two)
    held = two._database.cached.of("a")
    data = b"".join(held._rows.values())
    assert set(rows_of(two).values()) == held._rows.keys()
    assert shown(data) == set()


# Copies, and policies


def test_a_backup_has_keys_and_sealed_vectors(two, opening):
    url = SERVER.new_database(has_tables=False)
    two.backup(url)
    copy = opening(url=url)
    copy.check_key("a")
    batch, rows = indexed(copy), rows_of(copy)
    assert one(copy, AGENT, 1).content == SECRETS["content"]
    assert dict(zip(batch.embedded, batch.vectors.tolist(), strict=True)) == {
        rows[1]: [1, 0],
        rows[2]: [0, 1],
        rows[3]: [1, 0],
    }
    copy.close()
    SERVER.drop(url)


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


def test_an_idempotency_key_finds_what_was_sealed_since(opening):
    store = opening(detect=lambda text: "sealed" in text)
    stored = added(store, "a", [numbered(1)], ["k"])
    update(store, 1, add_tags=["sealed"])
    again = added(store, "a", [numbered(2, content="memory 1")], ["k"])
    assert again.ids == stored.ids
    assert again.is_new == [False]


def test_an_import_over_a_sealed_memory_keeps_its_time_and_opens(opening):
    store = opening()
    added(store, "a", [secret(1)], ["k"])
    new = store.marked(secret(1, content="Imported"))
    stored = store.write(Add("a", [NewEntry(new)], now=NOON, on_conflict="replace")).result()
    assert not stored.replaced[0].is_sealed_now
    assert one(store, AGENT, 1).content == "Imported"
    assert [
        one.key
        for one in store.read(
            StoredEntries(Scope("a"), 0, 9, now=NOON, include_deleted=True, model="m")
        )
    ] == ["k"]
    assert store.verify().ok
