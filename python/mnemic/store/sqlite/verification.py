"""Reads a whole file and compares everything with its checksums."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

import apsw

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import (
    KeyUnavailableError,
    SealBrokenError,
    StoreCorruptError,
    WrongKeyError,
)
from mnemic.model import VerifyProblem, VerifyReport
from mnemic.reporting.progress import Report, silent
from mnemic.store.row_codec import ENCRYPTED, RowCodec, sealed_ids, uuid_of, vector_of
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    NO_SUMS,
    SUM_COLUMNS,
    Sums,
    added,
    check,
    check_links,
    check_vectors,
    damaged,
    entries_of,
)
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.sealed_rows import VectorOpener
from mnemic.store.sqlite.shadow_vectors import check_shadow_vectors
from mnemic.store.sqlite.sql import BY_ROW, MARK, Columns, fetch

PAGE = 1000
MAX_PROBLEMS = 1000
"""Maximum number of reported problems; a file with more is lost."""

_AGENT_ID = RECORD_COLUMNS.index("agent_id")
_ENTRY_ID = RECORD_COLUMNS.index("id")
_USER_ID = RECORD_COLUMNS.index("user_id")
_CONTENT = RECORD_COLUMNS.index("content")
_STATUS = RECORD_COLUMNS.index("status")
_FORGOTTEN_AT = RECORD_COLUMNS.index("forgotten_at")
_ROWS = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
    "WHERE row > ? ORDER BY row LIMIT ?"
)
_VECTORS = (
    "SELECT entry_row, embedding, model FROM agent_memory_embeddings "
    "WHERE entry_row BETWEEN ? AND ? ORDER BY entry_row, model, part"
)
_LINKS = (
    "SELECT from_row, to_row, type, strength, created_at FROM agent_memory_links "
    "WHERE from_row BETWEEN ? AND ?"
)
_AGENTS = "SELECT agent_id, used_bytes, summed_rows, rows_sum FROM agent_memory_agents"
_USERS = "SELECT agent_id, user_key, used_bytes FROM agent_memory_walls"
_WITHOUT_SUMS = (
    f"SELECT row FROM agent_memory_entries {BY_ROW} "
    "WHERE row_sum IS NULL AND row > ? ORDER BY row LIMIT ?"
)
_PLACED = f"SELECT {SUM_COLUMNS} FROM agent_memory_entries WHERE agent_id = ?"
_SET = (
    "UPDATE agent_memory_agents SET used_bytes = ?, summed_rows = ?, rows_sum = ? "
    "WHERE agent_id = ?"
)
_OWN_USERS = "SELECT user_key, used_bytes FROM agent_memory_walls WHERE agent_id = ?"
_OWN_SIZES = (
    "SELECT ifnull(user_id, ''), sum({size}) FROM agent_memory_entries "
    "WHERE agent_id = ? GROUP BY 1"
)
_SET_USER = (
    "INSERT INTO agent_memory_walls (agent_id, user_key, revision, used_bytes) VALUES (?, ?, 0, ?) "
    "ON CONFLICT DO UPDATE SET used_bytes = excluded.used_bytes"
)


class _Agent(NamedTuple):
    """Totals of an agent's memories."""

    sums: Sums = NO_SUMS
    size: int = 0


_User: TypeAlias = tuple[str, str]
"""An agent and a user of it; "" is no user."""


class Verification:
    """One pass through a file, on a connection in one read transaction.

    Args:
        connection: The connection.
        codec: Codec of the entries.
        report: Called periodically with the number of memories so far.

    Attributes:
        broken: The error of the first sealed memory that does not open.
    """

    def __init__(
        self, connection: GuardedConnection, codec: RowCodec, report: Report = silent
    ) -> None:
        self._connection = connection
        self._codec = codec
        self._report = report
        self.broken: SealBrokenError | None = None
        self._problems: list[VerifyProblem] = []
        self._agents: dict[str, _Agent] = {}
        self._user_sizes: Counter[_User] = Counter()
        self._memories = self._vectors = self._links = self._without_sums = 0

    def report(self, log_problem: str | None) -> VerifyReport:
        """Read the file; return the result.

        Args:
            log_problem: Description of damage to the log, or None.
        """
        if log_problem is not None:
            self._add_problem(log_problem)
        self._check_with_sqlite()
        for page in self._pages():
            self._check_page(page)
            self._memories += len(page)
            self._report(self._memories, None)
        self._guarded(self._check_agents)
        self._guarded(self._check_users)
        return VerifyReport(
            self._memories,
            self._vectors,
            self._links,
            self._without_sums,
            tuple(self._problems[:MAX_PROBLEMS]),
        )

    def _check_with_sqlite(self) -> None:
        for pragma in ("integrity_check", "foreign_key_check"):
            found = fetch(self._connection, f"PRAGMA {pragma}", ())
            for row in found[:MAX_PROBLEMS]:
                if row != ("ok",):
                    self._add_problem(f"SQLite's {pragma}: {' '.join(map(str, row))}")

    def _pages(self) -> Iterator[list[Columns]]:
        row = 0
        while True:
            page = self._read(_ROWS, row, PAGE)
            if not page:
                return
            yield page
            row = page[-1][0]

    def _read(self, sql: str, *values: int) -> list[Columns]:
        """Return the rows of a statement; none, and a problem, if they cannot be read."""
        found: list[Columns] = []
        self._guarded(lambda: found.extend(fetch(self._connection, sql, values)))
        return found

    def _check_page(self, page: list[Columns]) -> None:
        first, last = page[0][0], page[-1][0]
        self._without_sums += sum(row[-3] is None for row in page)
        for row in page:
            self._guarded(partial(self._count, row), row)
        known = self._intact_rows(page)
        vectors = self._read(_VECTORS, first, last)
        links = self._read(_LINKS, first, last)
        self._vectors += len(vectors)
        self._links += len(links)
        self._check_vectors(vectors, known)
        self._check_links(links, known)

    def _count(self, row: Columns) -> None:
        agent_id = row[_AGENT_ID]
        known = self._agents.get(agent_id, _Agent())
        size = self._codec.stored_content_size(row[_CONTENT])
        sums = known.sums.plus(added([(row[0], *row[-3:], row[_STATUS], row[_FORGOTTEN_AT])]))
        self._agents[agent_id] = _Agent(sums, known.size + size)
        self._user_sizes[agent_id, row[_USER_ID] or ""] += size

    def _intact_rows(self, page: list[Columns]) -> dict[int, Columns]:
        """Return the rows of a page by number; report the damaged ones."""
        plain = [row for row in page if not row[ENCRYPTED]]
        try:
            check(page)
            entries_of(self._codec, plain)
        except StoreCorruptError:
            for row in page:
                self._guarded(partial(check, [row]), row)
            for row in plain:
                self._guarded(partial(entries_of, self._codec, [row]), row)
        for row in page:
            if row[ENCRYPTED]:
                self._if_opened(partial(entries_of, self._codec, [row]), row)
        return {row[0]: row for row in page}

    def _if_opened(self, work: Callable[[], object], row: Columns) -> None:
        """Run a part of the pass that opens a row, unless it is sealed and its key is not given."""
        if self._codec.seals or not row[ENCRYPTED]:
            with suppress(WrongKeyError, KeyUnavailableError):  # of another agent
                self._guarded(work, row)

    def _check_vectors(self, found: list[Columns], rows: dict[int, Columns]) -> None:
        vectors = {row: list(of_row) for row, of_row in groupby(found, itemgetter(0))}
        for number, row in rows.items():
            of_row, others = _apart(vectors.get(number, []))
            if of_row or row[-2]:
                self._guarded(partial(_check_vectors_of, row, of_row), row)
                self._if_opened(partial(_open_vectors_of, self._codec, row, of_row), row)
            if others and row[ENCRYPTED]:
                self._if_opened(partial(_open_shadow_vectors_of, self._codec, row, others), row)
            elif others:
                self._guarded(partial(check_shadow_vectors, number, others), row)

    def _check_links(self, found: list[Columns], rows: dict[int, Columns]) -> None:
        links: dict[int, list[Columns]] = {}
        for link in found:
            links.setdefault(link[0], []).append(link)
        for number, row in rows.items():
            of_row = links.get(number, [])
            if row[-3] is not None and (of_row or row[-1]):
                known = {number: row[-1] or 0}
                self._guarded(partial(check_links, of_row, known), row)

    def _check_agents(self) -> None:
        known = {row[0]: row[1:] for row in fetch(self._connection, _AGENTS, ())}
        for agent_id in sorted(known.keys() | self._agents.keys(), key=repr):
            size, *sums = known.get(agent_id, (0, 0, 0))
            found = self._agents.get(agent_id, _Agent())
            if (sums[0], sums[1]) != found.sums:
                what = (
                    f"should have {sums[0]} memories with checksums, and has {found.sums.rows}: "
                    "some were lost, changed or added"
                )
                self._add_problem(what, agent_id)
            if size != found.size:
                self._add_problem(
                    f"has {found.size} bytes of content, and {size} were counted", agent_id
                )

    def _check_users(self) -> None:
        known = {row[:2]: row[2] for row in fetch(self._connection, _USERS, ())}
        found = self._user_sizes
        for agent_id, user_key in sorted(known.keys() | found.keys(), key=repr):
            counted, size = known.get((agent_id, user_key), 0), found[agent_id, user_key]
            if counted != size:
                whose = f"of user {user_key!r}" if user_key else "without a user"
                self._add_problem(
                    f"has {size} bytes of content {whose}, and {counted} were counted", agent_id
                )

    def _guarded(self, work: Callable[[], object], row: Columns | None = None) -> None:
        """Run a part of the pass; report its error as a problem."""
        try:
            with reading_stored("a memory"):
                work()
        except (StoreCorruptError, apsw.Error) as error:
            if isinstance(error, SealBrokenError) and self.broken is None:
                self.broken = error
            if row is None:
                self._add_problem(str(error))
            else:
                self._add_problem(str(error), *_named(row))

    def _add_problem(
        self,
        what: str,
        agent_id: str | None = None,
        row: int | None = None,
        entry_id: UUID | None = None,
    ) -> None:
        problem = VerifyProblem(what, agent_id, row, entry_id)
        if len(self._problems) < MAX_PROBLEMS and problem not in self._problems[-1:]:
            self._problems.append(problem)


def _named(row: Columns) -> tuple[str | None, int, UUID | None]:
    number, agent_id, entry_id = row[0], row[_AGENT_ID], row[_ENTRY_ID]
    try:
        found = uuid_of(entry_id)
    except ValueError:
        found = None
    return agent_id if isinstance(agent_id, str) else None, number, found


def _apart(vectors: list[Columns]) -> tuple[list[Columns], list[Columns]]:
    """Return the vectors of the agent's own model, and those of others."""
    others = [vector for vector in vectors if str(vector[2]).startswith(MARK)]
    return [vector for vector in vectors if vector not in others] if others else vectors, others


def _check_vectors_of(row: Columns, vectors: list[Columns]) -> None:
    """Compare the vectors of a row with their checksum."""
    if row[-3] is None:
        return
    model = vectors[0][2] if vectors else ""
    try:
        blobs = [found[:2] for found in vectors]
        check_vectors(model, blobs, check([row]).vectors, is_all=True)
    except StoreCorruptError:
        if row[ENCRYPTED]:
            raise damaged(row) from None
        raise


def _open_vectors_of(codec: RowCodec, row: Columns, vectors: list[Columns]) -> None:
    model = vectors[0][2] if vectors else ""
    blobs = [found[:2] for found in vectors]
    opener = VectorOpener(codec, row[_AGENT_ID], model, sealed_ids([row]))
    for _, blob in opener.opened(blobs):
        vector_of(blob)


def _open_shadow_vectors_of(codec: RowCodec, row: Columns, vectors: list[Columns]) -> None:
    for model, of_model in groupby(vectors, itemgetter(2)):
        named = [(number, blob, model[len(MARK) :]) for number, blob, _ in of_model]
        _open_vectors_of(codec, row, named)


def rows_without_sums(connection: GuardedConnection, after: int) -> list[int]:
    """Return the next rows without checksums."""
    return [row for (row,) in fetch(connection, _WITHOUT_SUMS, (after, PAGE))]


def add_missing_checksums(connection: GuardedConnection, codec: RowCodec, rows: list[int]) -> int:
    """Add checksums to those of these rows that can be read; return to how many."""
    checksums_added = 0
    for row in rows:
        where = f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} WHERE row = ?"
        found = fetch(connection, where, (row,))
        try:
            if codec.seals or not any(row[ENCRYPTED] for row in found):
                entries_of(codec, found)
            checksums_added += connection.summed_rows.add_missing(connection, [row])
        except StoreCorruptError:  # which the report has named
            continue
    return checksums_added


def repair_agents(connection: GuardedConnection, codec: RowCodec) -> list[str]:
    """Correct wrong numbers, sums and bytes of memories of agents; return the agents' ids."""
    connection.summed_rows.settle(connection)  # what earlier writes of its transaction left
    repaired = []
    for agent_id, *known in fetch(connection, _AGENTS, ()):
        sizes = dict(_pairs(connection, _OWN_SIZES.format(size=codec.content_size_sql), agent_id))
        found = (sum(sizes.values()), *added(fetch(connection, _PLACED, (agent_id,))))
        is_right = tuple(known) == found
        if not is_right:
            connection.execute(_SET, (*found, agent_id))
        if _repair_users(connection, agent_id, sizes) or not is_right:
            repaired.append(agent_id)
    return repaired


def _repair_users(connection: GuardedConnection, agent_id: str, sizes: dict[str, int]) -> bool:
    """Correct the bytes of an agent's users; return whether any were wrong."""
    known = dict(_pairs(connection, _OWN_USERS, agent_id))
    wrong = [
        user_key
        for user_key in known.keys() | sizes.keys()
        if known.get(user_key, 0) != sizes.get(user_key, 0)
    ]
    for user_key in wrong:
        connection.execute(_SET_USER, (agent_id, user_key, sizes.get(user_key, 0)))
    return bool(wrong)


def _pairs(connection: GuardedConnection, sql: str, agent_id: str) -> list[tuple[Any, Any]]:
    return [(first, second) for first, second in fetch(connection, sql, (agent_id,))]
