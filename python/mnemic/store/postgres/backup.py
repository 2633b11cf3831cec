"""Copies all memories, as of one moment, into another database."""

from typing import Final

from mnemic.errors import StoreFileError
from mnemic.reporting.progress import Report
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.migrating import migrate
from mnemic.store.postgres.postgres_errors import with_typed_errors
from mnemic.store.postgres.session import Connection, Session, prepare
from mnemic.store.postgres.target import Target

_TABLES: Final = (
    "agent_memory_agents",
    "agent_memory_walls",
    "agent_memory_keys",
    "agent_memory_entries",
    "agent_memory_embeddings",
    "agent_memory_sealed_vectors",
    "agent_memory_links",
    "agent_memory_changes",
)
"""The tables, each after those that it refers to."""

_SIZE: Final = (
    "SELECT coalesce(sum(pg_table_size(inhrelid)), 0)::bigint FROM pg_inherits "
    "WHERE inhparent::regclass::text LIKE 'mnemic.agent_memory%%'"
)


def backup_to(source: Session, target: Target, report: Report) -> None:
    """Copy the tables; a copy that fails leaves nothing behind.

    Args:
        source: In a transaction that reads one state.
        target: A database without mnemic's tables.
        report: Called with the bytes copied so far and about how many there are.

    Raises:
        StoreFileError: If the database has mnemic's tables already.
    """
    with_typed_errors(lambda: _copy_to(source, target, report), target.shown)


def _copy_to(source: Session, target: Target, report: Report) -> None:
    with Connection.connect(target.conninfo) as connection:  # one transaction
        prepare(connection, autocommit=False)
        copy = Session(connection, POSTGRES)
        if not copy.value("SELECT to_regnamespace('mnemic') IS NULL"):
            raise StoreFileError(
                f"{target.shown}: the database has a schema mnemic already; a backup goes "
                "into one without"
            )
        migrate(copy)
        _copy_tables(source, copy, report)


def _copy_tables(source: Session, copy: Session, report: Report) -> None:
    expected, copied = int(source.value(_SIZE)), 0
    for table in _TABLES:
        with copy.incoming(f"COPY mnemic.{table} FROM STDIN (FORMAT BINARY)") as rows:
            for part in source.outgoing(
                f"COPY (SELECT * FROM mnemic.{table}) TO STDOUT (FORMAT BINARY)"
            ):
                rows.write(part)
                copied += len(part)
                report(copied, max(expected, copied))
    last = source.value("SELECT last_value FROM mnemic.agent_memory_rows")
    copy.fetch("SELECT setval('mnemic.agent_memory_rows', %s)", (last,))
