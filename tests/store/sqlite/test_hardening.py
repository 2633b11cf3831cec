"""Nothing in a file runs, and no statement runs without end."""

import apsw
import pytest

from mnemic.errors import StoreCorruptError
from mnemic.memory import Memory
from mnemic.store.sqlite import hardening
from tests.store.sqlite.test_schema_check import HAND_OVER, changed


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.db"
    with Memory(made) as memory:
        memory.add("Likes tea", user_id="alice", tags=["t"])
    return made


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
        for lent in (connections.writing, connections.reading, connections.copying):
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
