"""Migrations: up on opening, down on request, one process at a time."""

from typing import Final

from mnemic.errors import SchemaVersionError, StoreFileError
from mnemic.store.postgres.row_security import naming
from mnemic.store.postgres.schema import MIGRATIONS
from mnemic.store.postgres.session import Session

_LOCK: Final = 0x6D6E656D6963
"""Number of the advisory lock: "mnemic"."""

_VERSIONS: Final = """
CREATE SCHEMA IF NOT EXISTS mnemic;
CREATE TABLE IF NOT EXISTS mnemic.schema_migrations (
    number     text COLLATE "C" PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);
"""


def version(session: Session) -> int:
    """Return the number of migrations that the database has.

    Raises:
        SchemaVersionError: If it has migrations that this version of mnemic does not know.
    """
    if session.value("SELECT to_regclass('mnemic.schema_migrations') IS NULL"):
        return 0
    found = [name for (name,) in session.fetch("SELECT number FROM mnemic.schema_migrations")]
    known = [migration.number for migration in MIGRATIONS]
    if sorted(found) != known[: len(found)]:
        unknown = sorted(set(found) - set(known)) or sorted(set(known) - set(found))
        raise SchemaVersionError(
            f"the tables in schema mnemic are of another version ({', '.join(unknown)}); this "
            f"mnemic knows {known[-1]}; open them with the version that wrote them, or a newer one"
        )
    return len(found)


def lock_migrations(session: Session) -> None:
    """Let no other process change tables until the transaction ends."""
    session.run("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


def migrate(session: Session, target: int | None = None) -> None:
    """Bring the tables to a version, each step in a transaction of its own.

    Args:
        session: A connection in no transaction.
        target: Number of migrations that the database is to have; None is all.

    Raises:
        StoreFileError: If the database is not in UTF-8.
        SchemaVersionError: If it has migrations that this version of mnemic does not know.
    """
    _check_encoding(session)
    wanted = len(MIGRATIONS) if target is None else target
    # Look first: a role that may write the tables need not have the right to change them.
    while version(session) != wanted:
        _step(session, wanted)


def try_migration(session: Session, target: int) -> None:
    """Take the steps to a version in one transaction, and undo them.

    Raises:
        SchemaVersionError: If they cannot be taken.
    """
    _check_encoding(session)
    with session.connection.transaction(force_rollback=True):
        _begin(session)
        while (present := version(session)) != target:
            _move(session, present, target)


def _check_encoding(session: Session) -> None:
    encoding = session.connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreFileError(
            f"the database is in {encoding}, which cannot hold every text; make another one: "
            "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )


def _step(session: Session, target: int) -> None:
    """Take one step towards a version, unless another process has taken it."""
    with session.transaction():
        _begin(session)
        _move(session, version(session), target)


def _begin(session: Session) -> None:
    session.script(f"SET LOCAL search_path = {session.pgvector}")  # for its types
    lock_migrations(session)
    session.script(_VERSIONS)


def _move(session: Session, present: int, target: int) -> None:
    if present < target:
        _up(session, present)
    elif present > target:
        _down(session, present - 1)


def _up(session: Session, at: int) -> None:
    session.script(MIGRATIONS[at].up)
    session.run(
        "INSERT INTO mnemic.schema_migrations (number) VALUES (%s)", (MIGRATIONS[at].number,)
    )


def _down(session: Session, at: int) -> None:
    _check_way_back(session, at)
    session.script(MIGRATIONS[at].down)
    session.run("DELETE FROM mnemic.schema_migrations WHERE number = %s", (MIGRATIONS[at].number,))


def _check_way_back(session: Session, at: int) -> None:
    """Raise SchemaVersionError if a step cannot be undone without a loss."""
    obstacle = MIGRATIONS[at].obstacle
    if obstacle is None:
        return
    session.fetch(naming(session.connection, None))  # where policies hide every agent's rows
    for (reason,) in session.fetch(obstacle):
        raise SchemaVersionError(f"the tables cannot go back to an older version: {reason}")


def check_readable(session: Session) -> None:
    """Check that the tables can be read as they are.

    Raises:
        StoreFileError: If the database is not in UTF-8.
        SchemaVersionError: If they are not there, or of another version.
    """
    _check_encoding(session)
    present = version(session)
    if present != len(MIGRATIONS):
        raise SchemaVersionError(
            f"the database has {present} of {len(MIGRATIONS)} migrations of mnemic; open it once "
            "for writing to bring its tables up to date"
        )
