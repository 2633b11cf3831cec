"""What takes in a whole database: looking it through, copying it, and changing its tables.

The server has checksums of its own pages; a verification decodes every memory and counts bytes.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from functools import partial
from typing import Final

from mnemic.errors import StoreFileError
from mnemic.model import Scope
from mnemic.model.results import SchemaVersions
from mnemic.reporting.progress import Report
from mnemic.store.postgres.connections import connected
from mnemic.store.postgres.postgres_errors import with_typed_errors
from mnemic.store.postgres.schema import NEWEST, migrate, version
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.stored import EMBEDDINGS, ROW, SEALED_VECTORS, entries_of
from mnemic.store.postgres.target import Target, target_of
from mnemic.store.postgres.vectors import opened, sealed_parts
from mnemic.store.row_codec import sealed_ids
from mnemic.store.rules import checked_version
from mnemic.store.sql.change_log import AGENTS
from mnemic.store.sql.conditions import ENTRIES, LINKS
from mnemic.store.sql.verification import AGENT_ID, PAGE, SqlVerification

_COUNTS: Final = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM {table})" for table in (EMBEDDINGS, SEALED_VECTORS, LINKS)
)


class Verification(SqlVerification):
    """One pass over a database, which has checksums of its own pages; see `SqlVerification`."""

    def _pages(self) -> Iterator[list[Columns]]:
        ((plain, sealed, self._links),) = self._on.fetch(_COUNTS)
        self._vectors = plain + sealed
        sql = f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = ? ORDER BY row"
        for (agent_id,) in self._on.fetch(f"SELECT agent_id FROM {AGENTS} ORDER BY agent_id"):
            yield from self._on.batches(sql, (agent_id,), PAGE)

    def _check_page(self, page: list[Columns]) -> None:
        agent_id, rows = page[0][AGENT_ID], {row[0]: row for row in page}
        scope = Scope(agent_id, all_users=True)
        for row in page:
            self._if_opened(partial(entries_of, self._codec, [row], scope), row)
        sealed = sealed_ids(page) if self._codec.seals else {}
        found = sealed_parts(self._on, agent_id, sealed) if sealed else ()
        for number, model, blobs in found:
            place = agent_id, sealed[number]
            self._if_opened(partial(opened, self._codec, place, model, blobs), rows[number])


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
    with connected(target) as copy, copy.connection.transaction():
        if not copy.value("SELECT to_regnamespace('mnemic') IS NULL"):
            raise StoreFileError(
                f"{target.shown}: the database has a schema mnemic already; a backup goes "
                "into one without"
            )
        migrate(copy)
        _copy_tables(source, copy, report)


def _copy_tables(source: Session, copy: Session, report: Report) -> None:
    expected, copied = int(source.value(_SIZE)), 0
    with source.connection.cursor() as stored, copy.connection.cursor() as copies:
        for table in _TABLES:
            read = f"COPY (SELECT * FROM mnemic.{table}) TO STDOUT (FORMAT BINARY)".encode()
            write = f"COPY mnemic.{table} FROM STDIN (FORMAT BINARY)".encode()
            with stored.copy(read) as parts, copies.copy(write) as rows:
                for part in parts:
                    rows.write(part)
                    copied += len(part)
                    report(copied, max(expected, copied))
    last = source.value("SELECT last_value FROM mnemic.agent_memory_rows")
    copy.fetch("SELECT setval('mnemic.agent_memory_rows', %s)", (last,))


def migrate_database(url: str, wanted: int | None, *, dry_run: bool) -> SchemaVersions:
    """Bring the tables of a database to a version; see `mnemic.store.migrate`."""
    target, number = target_of(url), checked_version(wanted, NEWEST)

    def run() -> SchemaVersions:
        with connected(target) as session:
            found = version(session)
            undone = session.connection.transaction(force_rollback=True)
            with undone if dry_run else nullcontext():
                migrate(session, number)
        return SchemaVersions(found, number, NEWEST)

    return with_typed_errors(run, target.shown)
