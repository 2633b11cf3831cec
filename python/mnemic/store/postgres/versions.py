"""Versions of the tables of a database, changed on request."""

from mnemic.model.results import SchemaVersions
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.migrating import migrate, try_migration, version
from mnemic.store.postgres.postgres_errors import with_typed_errors
from mnemic.store.postgres.schema import MIGRATIONS
from mnemic.store.postgres.session import Connection, Session, prepare
from mnemic.store.postgres.target import target_of
from mnemic.store.sql.versions import checked_version


def migrate_database(url: str, wanted: int | None, *, dry_run: bool) -> SchemaVersions:
    """Bring the tables of a database to a version; see `mnemic.store.migrate`."""
    target, newest = target_of(url), len(MIGRATIONS)
    number = checked_version(wanted, newest)

    def run() -> SchemaVersions:
        with Connection.connect(target.conninfo, autocommit=True) as connection:
            prepare(connection)
            session = Session(connection, POSTGRES)
            found = version(session)
            (try_migration if dry_run else migrate)(session, number)
        return SchemaVersions(found, number, newest)

    return with_typed_errors(run, target.shown)
