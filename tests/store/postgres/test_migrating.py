"""Migrations: up, down, together, and refused where the tables are of another version."""

import psycopg
import pytest

from mnemic.errors import SchemaVersionError
from mnemic.store import open_store
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.schema import MIGRATIONS, migrate, version
from mnemic.store.postgres.session import Connection, Session, prepare
from tests.support.threads import run_together

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
