"""Reads everything that a database holds, and compares it with what was counted."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import ClassVar, Final
from uuid import UUID

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import (
    KeyUnavailableError,
    SealBrokenError,
    StoreCorruptError,
    WrongKeyError,
)
from mnemic.model import VerifyProblem, VerifyReport
from mnemic.reporting.progress import Report
from mnemic.store.row_codec import ENCRYPTED, ENTRY_ID, RowCodec, uuid_of
from mnemic.store.sql.change_log import AGENTS, USERS
from mnemic.store.sql.conditions import ENTRIES
from mnemic.store.sql.session import Columns, SqlSession

PAGE: Final = 1000
MAX_PROBLEMS: Final = 1000
"""Maximum number of reported problems; a database with more is lost."""

AGENT_ID, _USER_ID, _CONTENT = map(RECORD_COLUMNS.index, ("agent_id", "user_id", "content"))

_WRONG_AGENTS: Final = (
    f"UPDATE {AGENTS} SET used_bytes = size FROM (SELECT agent_id AS owner, "
    "CAST(sum(size) AS bigint) AS size FROM ("
    f"SELECT agent_id, {{size}} AS size, 0 AS counted FROM {ENTRIES} "
    f"UNION ALL SELECT agent_id, 0, used_bytes FROM {AGENTS}) AS sizes "
    "GROUP BY agent_id HAVING sum(size) <> sum(counted)) AS found "
    "WHERE agent_id = owner RETURNING agent_id"
)
_WRONG_USERS: Final = (
    f"INSERT INTO {USERS} (agent_id, user_key, revision, used_bytes) "
    "SELECT agent_id, user_key, 0, CAST(sum(size) AS bigint) FROM ("
    "SELECT agent_id, coalesce(user_id, '') AS user_key, {size} AS size, 0 AS counted "
    f"FROM {ENTRIES} UNION ALL SELECT agent_id, user_key, 0, used_bytes FROM {USERS}) AS sizes "
    "GROUP BY agent_id, user_key HAVING sum(size) <> sum(counted) "
    "ON CONFLICT (agent_id, user_key) DO UPDATE SET used_bytes = excluded.used_bytes "
    "RETURNING agent_id"
)


class SqlVerification(ABC):
    """One pass over all entries.

    Args:
        on: At one moment.
        codec: Codec of the entries.
        report: Called periodically with the number of memories so far.
    """

    _errors: ClassVar[tuple[type[Exception], ...]] = (StoreCorruptError,)
    """What is a problem of what is stored, and ends no pass."""

    def __init__(self, on: SqlSession, codec: RowCodec, report: Report) -> None:
        self._on = on
        self._codec = codec
        self._report = report
        self._broken: SealBrokenError | None = None
        self._problems: list[VerifyProblem] = []
        self._sizes: Counter[tuple[str, str]] = Counter()
        self._memories = self._vectors = self._links = self._without_sums = 0

    def result(self) -> tuple[VerifyReport, SealBrokenError | None]:
        """Read everything; return what was found, and the error of the first broken seal."""
        for page in self._pages():
            for row in page:
                self._guarded(partial(self._count, row), row)
            self._check_page(page)
            self._memories += len(page)
            self._report(self._memories, None)
        self._guarded(self._check_agents)
        self._guarded(self._check_users)
        report = VerifyReport(
            self._memories,
            self._vectors,
            self._links,
            self._without_sums,
            tuple(self._problems),
        )
        return report, self._broken

    @abstractmethod
    def _pages(self) -> Iterator[list[Columns]]:
        """Yield all rows, each the columns of `Dialect.row`, in pages of an agent or of all."""

    @abstractmethod
    def _check_page(self, page: list[Columns]) -> None:
        """Decode rows and what belongs to them."""

    def _count(self, row: Columns) -> None:
        size = self._codec.stored_content_size(row[_CONTENT])
        self._sizes[row[AGENT_ID], row[_USER_ID] or ""] += size

    def _check_agents(self) -> None:
        known: dict[str, int] = dict(self._on.fetch(f"SELECT agent_id, used_bytes FROM {AGENTS}"))
        found: Counter[str] = Counter()
        for (agent_id, _), size in self._sizes.items():
            found[agent_id] += size
        for agent_id in sorted(known.keys() | found.keys(), key=repr):
            counted, size = known.get(agent_id, 0), found[agent_id]
            if counted != size:
                what = f"has {size} bytes of content, and {counted} were counted"
                self._add_problem(what, agent_id)

    def _check_users(self) -> None:
        users = self._on.fetch(f"SELECT agent_id, user_key, used_bytes FROM {USERS}")
        known = {(agent_id, user_key): counted for agent_id, user_key, counted in users}
        for agent_id, user_key in sorted(known.keys() | self._sizes.keys(), key=repr):
            counted, size = known.get((agent_id, user_key), 0), self._sizes[agent_id, user_key]
            if counted != size:
                whose = f"of user {user_key!r}" if user_key else "without a user"
                what = f"has {size} bytes of content {whose}, and {counted} were counted"
                self._add_problem(what, agent_id)

    def _if_opened(self, work: Callable[[], object], row: Columns) -> None:
        """Run a part of the pass that opens a row, unless it is sealed and its key is not given."""
        if self._codec.seals or not row[ENCRYPTED]:
            with suppress(WrongKeyError, KeyUnavailableError):  # of another agent
                self._guarded(work, row)

    def _guarded(self, work: Callable[[], object], row: Columns | None = None) -> None:
        """Run a part of the pass; report its error as a problem."""
        try:
            with self._on.dialect.reading_stored("a memory"):
                work()
        except self._errors as error:
            if isinstance(error, SealBrokenError) and self._broken is None:
                self._broken = error
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


def _named(row: Columns | None) -> tuple[str | None, int | None, UUID | None]:
    if row is None:
        return None, None, None
    number, agent_id, entry_id = row[0], row[AGENT_ID], row[ENTRY_ID]
    try:
        found = uuid_of(entry_id)
    except ValueError:
        found = None
    return agent_id if isinstance(agent_id, str) else None, number, found


def repaired_bytes(on: SqlSession, codec: RowCodec) -> set[str]:
    """Correct the counted bytes of agents and users; return the agents' ids."""
    statements = [sql.format(size=codec.content_size_sql) for sql in (_WRONG_USERS, _WRONG_AGENTS)]
    return {agent_id for sql in statements for (agent_id,) in on.fetch(sql)}
