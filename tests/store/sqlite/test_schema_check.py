"""Only mnemic's own tables are opened, nothing in a file runs, and nothing without end."""

import shutil
import time

import apsw
import pytest

from mnemic.errors import StoreCorruptError, StoreFileError
from mnemic.memory import Memory
from mnemic.store.sqlite import hardening, schema_check
from mnemic.store.sqlite.opening import migrate
from mnemic.store.sqlite.schema import DIGEST, MIGRATIONS
from tests.support.paths import FIXTURES

HAND_OVER = """
CREATE TRIGGER theft AFTER INSERT ON agent_memory_entries WHEN new.user_id = 'alice' BEGIN
    INSERT INTO agent_memory_entries SELECT new.row + 1000, agent_id, randomblob(16), 'mallory',
        project_id, session_id, memory_type, status, importance, created_at, updated_at,
        last_accessed_at, access_count, forgotten_at, expires_at, role, speaker, message_id,
        position, category, scope, version, supersedes, is_sensitive, is_encrypted, type_name, tags,
        metadata, content, idempotency_key, key_fingerprint, fingerprint, access_seq
    FROM agent_memory_entries WHERE row = new.row;
END
"""
ENDLESS = """
CREATE TRIGGER endless AFTER INSERT ON agent_memory_entries BEGIN
    INSERT INTO agent_memory_agents (agent_id, seq) WITH RECURSIVE n(v) AS
        (SELECT 1 UNION ALL SELECT v + 1 FROM n) SELECT 'x', count(*) FROM n;
END
"""


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.db"
    with Memory(made) as memory:
        memory.add("Likes tea", user_id="alice", tags=["t"])
    return made


def changed(path, *statements):
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    try:
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def in_schema(of, new, name):
    """Return statements that change the text of one thing's definition."""
    return (
        "PRAGMA writable_schema = ON",
        f"UPDATE sqlite_schema SET sql = replace(sql, '{of}', '{new}') WHERE name = '{name}'",  # noqa: S608
    )


@pytest.mark.parametrize(
    ("statements", "named"),
    [
        ((HAND_OVER,), "trigger 'theft' on 'agent_memory_entries'"),
        ((ENDLESS,), "trigger 'endless'"),
        (("CREATE VIEW v AS SELECT * FROM agent_memory_entries",), "view 'v'"),
        (("CREATE TABLE notes (a)",), "table 'notes'"),
        (("CREATE INDEX i ON agent_memory_entries (content)",), "index 'i'"),
        (("DROP INDEX agent_memory_entries_by_user",), "agent_memory_entries_by_user"),
        (
            ("ALTER TABLE agent_memory_entries ADD COLUMN g TEXT AS (upper(content))",),
            "table 'agent_memory_entries' is not defined as it should be",
        ),
        (
            in_schema("strength   REAL NOT NULL", "strength REAL CHECK(1)", "agent_memory_links"),
            "table 'agent_memory_links' is not defined",
        ),
        (in_schema("STRICT", "", "agent_memory_entries"), "table 'agent_memory_entries' is not"),
        (
            ("CREATE VIRTUAL TABLE f USING fts5(content)",),
            "table 'f",
        ),
    ],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_schema_that_is_not_ours_is_refused_by_name(path, statements, named, read_only):
    changed(path, *statements)
    content = path.read_bytes()
    with pytest.raises(StoreFileError, match=named) as raised:
        Memory(path, read_only=read_only)
    assert "restore a backup" in str(raised.value)
    assert path.read_bytes() == content


ONES = "+".join(["1"] * 100)
WIDE = ", ".join(f"c{column} AS ({ONES})" for column in range(1900))
NARROW = ", ".join(f"c{column} AS (1+1+1+1+1+1+1)" for column in range(90))
GROWING = ", ".join(f"g{column} AS (g{column - 1} || g{column - 1})" for column in range(1, 99))


@pytest.mark.parametrize(
    ("columns", "number"),
    [
        (f"x, {WIDE}", 60),
        (f"x, {NARROW}", 7000),
        (f"g0, {GROWING}", 7000),
        (f"y AS ({ONES}), x", 60_000),
        (f"x, {'CHECK (x), ' * 400} CHECK (x)", 10_000),
    ],
    ids=["wide", "narrow", "growing", "many", "checks"],
)
@pytest.mark.parametrize("read_only", [False, True])
def test_a_schema_without_end_is_refused_before_all_of_it_is_parsed(
    path, columns, number, read_only
):
    connection = apsw.Connection(str(path))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON; BEGIN")
    connection.executemany(
        "INSERT INTO sqlite_schema VALUES ('table', ?1, ?1, 3, ?2)",
        ((f"t{at}", f"CREATE TABLE t{at} ({columns})") for at in range(number)),
    )
    connection.execute("COMMIT")
    connection.close()
    content, started = path.read_bytes(), time.process_time()
    with pytest.raises((StoreFileError, StoreCorruptError)):
        Memory(path, embedder=None, read_only=read_only)
    assert time.process_time() - started < 1.5
    assert path.read_bytes() == content


def test_an_index_that_lies_where_a_table_does_is_refused(path):
    changed(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema "
        "WHERE name = 'agent_memory_links') WHERE name = 'agent_memory_changes'",
    )
    with pytest.raises(StoreFileError, match="begins at page"):
        Memory(path)


def test_the_digest_is_that_of_the_schema_which_the_migrations_make():
    made = schema_check.made_schema(len(MIGRATIONS))
    assert schema_check.digest_of(made.items) == DIGEST
    for item in made.items:
        assert schema_check.digest_of(made.items - {item}) != DIGEST
        other = (*item[:3], f"{item[3]} ")
        assert schema_check.digest_of(made.items - {item} | {other}) != DIGEST


def test_a_file_of_this_version_is_known_by_the_digest_alone(path, monkeypatch):
    monkeypatch.delattr(schema_check, "made_schema")
    with Memory(path) as memory:
        assert memory.count(user_id="alice") == 1


def test_what_analyze_leaves_is_sqlites_own(path):
    changed(path, "ANALYZE")
    with Memory(path) as memory:
        assert memory.count(user_id="alice") == 1


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_of_an_earlier_version_is_held_against_that_versions_schema(tmp_path, version):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / f"store_v{version}.db", path)
    changed(path, "CREATE TRIGGER t AFTER INSERT ON agent_memory_links BEGIN SELECT 1; END")
    with pytest.raises(StoreFileError, match="trigger 't' on 'agent_memory_links'"):
        Memory(path, "aide")
    changed(path, "DROP TRIGGER t", f"PRAGMA user_version = {version - 1}")
    with pytest.raises(StoreFileError, match=r"it has|not defined"):
        Memory(path, "aide")


def test_a_file_that_went_down_and_up_again_is_ours(path):
    for version in range(1, len(MIGRATIONS)):
        migrate(str(path), version)
        with Memory(path) as memory:
            assert memory.count(user_id="alice") == 1


def test_nothing_that_is_in_a_file_runs_where_the_check_was_passed(path):
    """Triggers and views stay off even if a file changes after it was opened."""
    with Memory(path) as memory:
        changed(path, HAND_OVER)
        memory.add("Lives in Oslo", user_id="alice")
        assert memory.count(user_id="mallory") == 0
        assert memory.count(user_id="alice") == 2


def test_a_connection_trusts_no_schema_stays_defensive_and_plans_by_no_value(path):
    with Memory(path) as memory:
        connections = memory._repository._store._connections
        for lent in (connections._held, connections.reading, connections.copying):
            with lent() as connection:
                for switch, value in (
                    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
                    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
                    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
                    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
                    (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),
                ):
                    assert connection.config(switch, -1) == value
                assert connection.pragma("cell_size_check") == 1


ENDLESS_QUERY = "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n) SELECT v FROM n"


def test_a_statement_without_end_is_ended_whether_it_reads_or_writes(path, monkeypatch):
    monkeypatch.setattr(hardening, "FREE_STEPS", 3_000_000)
    with Memory(path) as memory:
        connections = memory._repository._store._connections
        endless = pytest.raises(StoreCorruptError, match="more work than its size")
        with endless, connections.reading() as connection:
            connection.execute(f"SELECT count(*) FROM ({ENDLESS_QUERY})").get  # noqa: B018, S608
        with connections.reading() as connection:  # each loan has its own measure
            assert connection.execute("SELECT 1").get == 1
        writer = memory._repository._store._writer
        counting = f"SELECT count(*) FROM ({ENDLESS_QUERY})"  # noqa: S608
        future = writer.write(lambda on: on.execute(counting).get)
        assert isinstance(future.exception().__cause__, apsw.InterruptError)
        memory.add("Still writable", user_id="alice")
        assert memory.count(user_id="alice") == 2


def test_work_is_bounded_by_the_size_of_the_file(path, monkeypatch):
    monkeypatch.setattr(hardening, "FREE_STEPS", 0)
    with Memory(path) as memory, memory._repository._store._connections.copying() as connection:
        size = path.stat().st_size + path.with_name("a.db-wal").stat().st_size
        allowed = hardening.STEPS_PER_BYTE * size
        few, many = allowed // 20, allowed // 3  # a row takes some ten steps
        sql = f"SELECT count(*) FROM ({ENDLESS_QUERY} LIMIT ?)"  # noqa: S608
        assert connection.execute(sql, (few,)).get == few
        connection.renew()
        with pytest.raises(apsw.InterruptError):
            connection.execute(sql, (many,)).get  # noqa: B018
