"""What takes in a whole database: looking it through, copying it, and changing its tables.

The server has checksums of its own pages; a verification decodes every memory and counts bytes.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Final

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import (
    KeyUnavailableError,
    SealBrokenError,
    StoreCorruptError,
    StoreFileError,
    WrongKeyError,
)
from mnemic.model import Scope, VerifyProblem, VerifyReport
from mnemic.model.results import SchemaVersions
from mnemic.reporting.progress import Report
from mnemic.store.postgres.connections import connected
from mnemic.store.postgres.postgres_errors import with_typed_errors
from mnemic.store.postgres.schema import NEWEST, migrate, version
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.stored import EMBEDDINGS, ROW, SEALED_VECTORS, entries_of
from mnemic.store.postgres.target import Target, target_of
from mnemic.store.postgres.vectors import opened, sealed_parts
from mnemic.store.row_codec import ENCRYPTED, RowCodec, sealed_ids
from mnemic.store.sql.change_log import AGENTS, USERS
from mnemic.store.sql.conditions import ENTRIES, LINKS
from mnemic.store.sql.versions import checked_version

_PAGE = 1000
_COUNTS: Final = "SELECT " + ", ".join(
    f"(SELECT count(*) FROM {table})" for table in (EMBEDDINGS, SEALED_VECTORS, LINKS)
)
_AGENT, _USER, _CONTENT = map(RECORD_COLUMNS.index, ("agent_id", "user_id", "content"))


class Verification:
    """One pass over a database, as of one moment.

    Args:
        session: In a transaction that reads one state.
        codec: Codec of the entries.
        report: Called periodically with the number of memories so far.
    """

    def __init__(self, session: Session, codec: RowCodec, report: Report) -> None:
        self._session = session
        self._codec = codec
        self._report = report
        self._broken: SealBrokenError | None = None
        self._problems: list[VerifyProblem] = []
        self._memories = 0

    def result(self) -> tuple[VerifyReport, SealBrokenError | None]:
        """Read the database; return what was found, and the error of the first broken seal."""
        for agent_id, used in self._session.fetch(
            f"SELECT agent_id, used_bytes FROM {AGENTS} ORDER BY agent_id"
        ):
            self._check_agent(agent_id, used)
        ((plain, sealed, links),) = self._session.fetch(_COUNTS)
        problems = tuple(self._problems)
        return VerifyReport(self._memories, plain + sealed, links, 0, problems), self._broken

    def _check_agent(self, agent_id: str, used: int) -> None:
        sizes: Counter[str] = Counter()
        scope = Scope(agent_id, all_users=True)
        sql = f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = %s ORDER BY row"
        for page in self._session.batches(sql, (agent_id,), _PAGE):
            for row in page:
                sizes[row[_USER] or ""] += self._codec.stored_content_size(row[_CONTENT])
                self._guarded(partial(entries_of, self._codec, [row], scope), row)
            self._check_vectors(agent_id, page)
            self._memories += len(page)
            self._report(self._memories, None)
        if sizes.total() != used:
            what = f"has {sizes.total()} bytes of content, and {used} were counted"
            self._problems.append(VerifyProblem(what, agent_id, None, None))
        self._check_users(agent_id, sizes)

    def _check_vectors(self, agent_id: str, page: list[Columns]) -> None:
        """Open the vectors of the sealed rows of a page."""
        sealed = sealed_ids(page) if self._codec.seals else {}
        if not sealed:
            return
        rows = {row[0]: row for row in page}
        for row, model, blobs in sealed_parts(self._session, agent_id, sealed):
            place = agent_id, sealed[row]
            self._guarded(partial(opened, self._codec, place, model, blobs), rows[row])

    def _guarded(self, work: Callable[[], object], row: Columns) -> None:
        """Run a part of the pass over a row, unless its key is not given; report its error."""
        if row[ENCRYPTED] and not self._codec.seals:
            return
        try:
            work()
        except (WrongKeyError, KeyUnavailableError):  # of another agent
            return
        except StoreCorruptError as error:
            entry_id = None
            if isinstance(error, SealBrokenError):
                self._broken = self._broken or error
                entry_id = error.entry_id
            problem = VerifyProblem(str(error), row[_AGENT], row[0], entry_id)
            if problem not in self._problems[-1:]:
                self._problems.append(problem)

    def _check_users(self, agent_id: str, sizes: Counter[str]) -> None:
        sql = f"SELECT user_key, used_bytes FROM {USERS} WHERE agent_id = %s"
        known: dict[str, int] = dict(self._session.fetch(sql, (agent_id,)))
        for user in sorted(known.keys() | sizes.keys()):
            if known.get(user, 0) != sizes[user]:
                whose = f"of user {user!r}" if user else "without a user"
                what = (
                    f"has {sizes[user]} bytes of content {whose}, and {known.get(user, 0)} were "
                    "counted"
                )
                self._problems.append(VerifyProblem(what, agent_id, None, None))


_RECOUNT: Final = (
    "UPDATE {table} AS total SET used_bytes = found.size FROM {table} AS old CROSS JOIN LATERAL ("
    f"SELECT coalesce(sum({{size}}), 0)::bigint AS size FROM {ENTRIES} AS e "
    "WHERE e.agent_id = old.agent_id {is_own}) AS found WHERE old.ctid = total.ctid "
    "AND found.size <> total.used_bytes RETURNING total.agent_id"
)


def recount(session: Session, codec: RowCodec) -> list[str]:
    """Correct the counted bytes of agents and users; return the agents' ids."""
    wrong: set[str] = set()
    for table, is_own in (USERS, "AND coalesce(e.user_id, '') = old.user_key"), (AGENTS, ""):
        sql = _RECOUNT.format(table=table, size=codec.content_size_sql, is_own=is_own)
        wrong.update(agent_id for (agent_id,) in session.fetch(sql))
    return sorted(wrong)


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
