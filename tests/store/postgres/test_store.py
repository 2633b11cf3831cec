"""What the store in PostgreSQL does alone, its tables' steps, its plans, and its files."""

import re

import numpy as np
import psycopg
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import (
    InvalidEntryError,
    SchemaVersionError,
    StoreUnavailableError,
)
from mnemic.model import Scope
from mnemic.model.new_entry import NewEntry
from mnemic.store import open_store
from mnemic.store.operations import Add, RowsSince, VectorsOfRow
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.schema import MIGRATIONS, migrate, version
from mnemic.store.postgres.session import Connection, Session, prepare
from tests.store.contract import count_of
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.entries import numbered
from tests.support.paths import ROOT
from tests.support.places import Places
from tests.support.threads import run_together

URLS = (
    "postgresql://me:hunter2@127.0.0.1:1/none?connect_timeout=1",
    "postgresql://127.0.0.1:1/none?user=me&password=hunter2&connect_timeout=1",
)


@pytest.mark.parametrize("url", URLS)
def test_a_server_that_is_not_there_is_named_without_the_password(url):
    with pytest.raises(StoreUnavailableError, match=":1/none") as raised:
        Memory(url, embedder=None)
    assert "hunter2" not in f"{raised.value!r} {raised.value}"
    assert raised.value.__cause__ is None


def test_reprs_have_no_password(database):
    secret = database.replace("mnemic@", "mnemic:hunter2@")  # the server trusts its socket
    with Memory(secret, embedder=None) as memory:
        memory.add("apple")
        assert "hunter2" not in f"{memory!r} {memory.stats()!r}"


@pytest.mark.parametrize("number", [1, 40])
def test_vectors_longer_than_pgvector_has_are_refused_and_nothing_is_written(database, number):
    store = open_store(database)
    vector = np.ones(16_001, dtype=np.float32)
    new = [NewEntry(numbered(at).with_embedding(vector, "m")) for at in range(number)]
    with pytest.raises(InvalidEntryError, match="16,000"):
        store.write(Add("a", new, now=NOON)).result()
    assert count_of(store, Scope("a"), now=NOON) == 0
    store.close()


def test_vectors_come_back_bit_for_bit_however_they_were_written(database):
    store = open_store(database)
    draw = np.random.default_rng(5)
    for first, number in ((0, 3), (100, 50)):  # by statements, and by a COPY
        vectors = draw.standard_normal((number, 7)).astype(np.float32) * np.float32(1e-5)
        new = [
            NewEntry(numbered(first + at).with_embedding(vector, "m"))
            for at, vector in enumerate(vectors)
        ]
        rows = store.write(Add("a", new, now=NOON)).result().rows
        found = [store.read(VectorsOfRow("a", row, "m"))[0] for row in rows]
        assert np.stack(found).tobytes() == vectors.tobytes()
    loaded = store.read(RowsSince("a", ("m", 7), None))
    assert loaded.vectors[-50:].tobytes() == vectors.tobytes()
    store.close()


def test_listeners_hear_of_writes_by_another_spelling_of_the_url(database):
    class Listener:
        heard = ()

        def hear(self, changed):
            self.heard = (*self.heard, *changed)

    listener, other = Listener(), database.replace("postgresql://", "postgres://")
    store, writer = open_store(database), open_store(f"{other}&application_name=other")
    store.watch(listener.hear)
    writer.write(Add("a", [NewEntry(numbered(1))], now=NOON)).result()
    assert listener.heard == (("a", None),)
    store.close()
    writer.close()


@pytest.fixture(params=["postgres", "postgres-policies"])
def places(request):
    with Places(request.param) as empty:
        yield empty


@pytest.fixture
def statements(monkeypatch):
    """Return the statements that are run from now on."""
    found, fetch = {}, Session.fetch

    def noting(self, sql, values=()):
        found[sql] = None
        return fetch(self, sql, values)

    monkeypatch.setattr(Session, "fetch", noting)
    return found


def generic_plan(connection, sql):
    """Return the lines of the plan that a prepared statement gets for all values."""
    parts = sql.replace("?", "%s").replace("%%", "%").replace("pgvector.", "public.").split("%s")
    numbered = "".join(f"{part}${at}" for at, part in enumerate(parts[:-1], 1)) + parts[-1]
    return [line for (line,) in connection.execute(f"EXPLAIN (GENERIC_PLAN) {numbered}").fetchall()]


def test_missing_vectors_are_looked_up_row_by_row(places, statements):
    """A join may compare each row with every other, for one page of a filling."""
    url = places.new()
    memory = places.opened(url=url, embedder=WordEmbedder(dimensions=8))
    first = memory.add_many([f"tea number{at}" for at in range(20)])[0]
    memory.add_many([MemoryEntry("tea again", id=first.id)], on_conflict="replace")
    memory.search("tea number1")
    statements.clear()
    memory.reembed(WordEmbedder(dimensions=8, model="other"))
    memory.close()
    with Memory(url, embedder=None, **places.options) as reader:
        reader.add("without a vector")
    places.opened(url=url, embedder=WordEmbedder(dimensions=8, model="other")).search("without")
    looking = [sql for sql in statements if "LIMIT 1) IS NULL" in sql]
    assert len(looking) > 1
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('mnemic.agents', '*', false)")
        for sql in looking:
            plan = generic_plan(connection, sql)
            assert any("SubPlan" in line for line in plan)
            assert not [line for line in plan if "Join" in line or "Nested Loop" in line]


DELETED = "xylophone"
PAGE = (ROOT / "docs" / "run" / "postgresql.md").read_text()


def documented():
    """Return the statements that the page tells an operator to run."""
    (block,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    return [one.strip() for one in block.split(";") if one.strip()]


def files_with(server, text, folder="base"):
    """Return the files of the server's tables that have a text."""
    paths = (server._data / folder).rglob("*")
    return [path for path in paths if path.is_file() and text.encode() in path.read_bytes()]


def test_a_deletion_for_good_says_that_the_store_cannot_know_and_what_to_do(database):
    with Memory(database, embedder=WordEmbedder()) as memory:
        one = memory.add("an apple", user_id="ann")
        assert memory.delete(one.id, user_id="ann").erased is False  # it can be restored
        for deleted in (
            memory.delete(one.id, permanent=True, user_id="ann"),
            memory.delete_all(permanent=True, user_id="ann"),
            memory.purge(user_id="ann"),
        ):
            assert deleted.erased is None
            assert "VACUUM FULL" in deleted.hint
            assert deleted.to_dict()["erased"] is None
        assert memory.erase_pending() is None


@pytest.mark.requirement("C210")
def test_the_documented_loop_ends(database):
    with Memory(database, embedder=None) as memory:
        memory.add("an apple", user_id="ana")
        page = (ROOT / "docs" / "run" / "gdpr.md").read_text()
        (loop,) = re.findall(r"```python\n(import time\n.*?)```", page, re.DOTALL)
        deleted = memory.delete_all(user_id="ana", permanent=True)
        names = {"memory": memory, "deleted": deleted}
        exec(loop, names)  # noqa: S102 - the page's
        assert names["deleted"].erased is None


def test_after_the_documented_statements_no_table_has_what_was_deleted(server):
    url = server.new_database()
    with Memory(url, embedder=WordEmbedder()) as memory:
        texts = [f"{DELETED}{at % 7} is the word" for at in range(300)]
        memory.add_many(texts, user_id="ann")
        kept = memory.add("an apple", user_id="bob")
        with psycopg.connect(url, autocommit=True) as operator:
            operator.execute("ANALYZE")
            operator.execute("CHECKPOINT")
            assert files_with(server, DELETED)
            memory.delete_all(user_id="ann", permanent=True)
            operator.execute("VACUUM")
            operator.execute("CHECKPOINT")
            assert files_with(server, DELETED)  # statistics, and pages that are not used again yet
            for statement in documented():
                operator.execute(statement)
        assert files_with(server, DELETED) == []
        assert [entry.id for entry in memory.list(user_id="bob")] == [kept.id]
        assert memory.search("apple", user_id="bob")
        assert memory.verify().ok


TABLES = "SELECT count(*) FROM pg_class WHERE relnamespace = 'mnemic'::regnamespace"


@pytest.fixture
def session(empty_database):
    with Connection.connect(empty_database) as connection:
        prepare(connection)
        yield Session(connection, POSTGRES)


def test_each_step_goes_up_and_down_and_up_again(session):
    sizes = []
    for target in (1, 2, 3, 2, 1, 2, 3, 0, len(MIGRATIONS)):
        migrate(session, target)
        assert version(session) == target
        sizes.append(session.value(TABLES))
    assert sizes[0] == sizes[4] < sizes[1] == sizes[3] == sizes[5]
    assert sizes[1] < sizes[2] == sizes[6] == sizes[8]


def test_the_numbers_are_those_of_the_documents(session):
    migrate(session)
    found = session.fetch("SELECT number FROM mnemic.schema_migrations ORDER BY number")
    assert [name for (name,) in found][:2] == ["20260204_001", "20260204_002"]


def test_several_openings_at_once_migrate_once(empty_database):
    run_together(*[lambda: open_store(empty_database).close()] * 6)
    open_store(empty_database, read_only=True).close()


def test_a_migration_that_fails_leaves_nothing(session, monkeypatch):
    migrate(session, 1)
    broken = MIGRATIONS[1]._replace(up=MIGRATIONS[1].up + "SELECT 1 / 0;")
    monkeypatch.setattr("mnemic.store.postgres.schema.MIGRATIONS", (MIGRATIONS[0], broken))
    before = session.value(TABLES)
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(session, 2)
    assert version(session) == 1
    assert session.value(TABLES) == before


def test_tables_of_a_newer_version_are_left_alone(session, empty_database):
    migrate(session)
    session.run("INSERT INTO mnemic.schema_migrations (number) VALUES ('20990101_001')")
    with pytest.raises(SchemaVersionError, match="20990101_001"):
        open_store(empty_database)


def test_read_only_a_database_without_tables_is_refused(empty_database):
    with pytest.raises(SchemaVersionError, match="for writing"):
        open_store(empty_database, read_only=True)
