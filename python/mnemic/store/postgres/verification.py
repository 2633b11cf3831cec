"""Reads all memories of a database and compares what was counted with what is there."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final

from mnemic._core import RECORD_COLUMNS
from mnemic.errors import (
    KeyUnavailableError,
    SealBrokenError,
    StoreCorruptError,
    WrongKeyError,
)
from mnemic.model import Scope, VerifyProblem, VerifyReport
from mnemic.reporting.progress import Report
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import EMBEDDINGS, ROW, SEALED_VECTORS
from mnemic.store.postgres.stored import entries_of
from mnemic.store.postgres.vectors import opened
from mnemic.store.row_codec import ENCRYPTED, RowCodec, sealed_ids
from mnemic.store.sql.conditions import ENTRIES, LINKS

_PAGE = 1000
_SEALED: Final = (
    f"SELECT entry_row, model, sealed FROM {SEALED_VECTORS} WHERE agent_id = %s "
    "AND entry_row = ANY(%s) ORDER BY entry_row, model, part"
)
_AGENT, _USER, _CONTENT = map(RECORD_COLUMNS.index, ("agent_id", "user_id", "content"))


class Verification:
    """One pass over a database, as of one moment.

    The server has checksums of its own pages; this pass decodes every memory and counts bytes.

    Args:
        session: In a transaction that reads one state.
        codec: Codec of the entries.
        report: Called periodically with the number of memories so far.

    Attributes:
        broken: The error of the first sealed memory that does not open.
    """

    def __init__(self, session: Session, codec: RowCodec, report: Report) -> None:
        self._session = session
        self._codec = codec
        self._report = report
        self.broken: SealBrokenError | None = None
        self._problems: list[VerifyProblem] = []
        self._memories = 0

    def report(self) -> VerifyReport:
        """Read the database; return the result."""
        known = "SELECT agent_id, used_bytes FROM mnemic.agent_memory_agents ORDER BY agent_id"
        for agent_id, used in self._session.fetch(known):
            self._check_agent(agent_id, used)
        return VerifyReport(
            self._memories,
            sum(
                int(self._session.value(f"SELECT count(*) FROM {table}"))
                for table in (EMBEDDINGS, SEALED_VECTORS)
            ),
            int(self._session.value(f"SELECT count(*) FROM {LINKS}")),
            0,
            tuple(self._problems),
        )

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
        found = self._session.fetch(_SEALED, (agent_id, list(sealed)))
        for (number, model), parts in groupby(found, itemgetter(0, 1)):
            place, blobs = (agent_id, sealed[number]), [blob for *_, blob in parts]
            self._guarded(partial(opened, self._codec, place, model, blobs), rows[number])

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
                self.broken = self.broken or error
                entry_id = error.entry_id
            problem = VerifyProblem(str(error), row[_AGENT], row[0], entry_id)
            if problem not in self._problems[-1:]:
                self._problems.append(problem)

    def _check_users(self, agent_id: str, sizes: Counter[str]) -> None:
        sql = "SELECT user_key, used_bytes FROM mnemic.agent_memory_walls WHERE agent_id = %s"
        known: dict[str, int] = dict(self._session.fetch(sql, (agent_id,)))
        for user in sorted(known.keys() | sizes.keys()):
            if known.get(user, 0) != sizes[user]:
                whose = f"of user {user!r}" if user else "without a user"
                what = (
                    f"has {sizes[user]} bytes of content {whose}, and {known.get(user, 0)} were "
                    "counted"
                )
                self._problems.append(VerifyProblem(what, agent_id, None, None))


def repair(session: Session, codec: RowCodec) -> list[str]:
    """Correct the counted bytes of agents and users; return the agents' ids."""
    size = codec.content_size_sql
    wrong = session.fetch(
        "UPDATE mnemic.agent_memory_walls AS wall SET used_bytes = found.size FROM ("
        "SELECT w.agent_id, w.user_key, coalesce((SELECT sum("
        f"{size}) FROM {ENTRIES} AS e WHERE e.agent_id = w.agent_id "
        "AND coalesce(e.user_id, '') = w.user_key), 0)::bigint AS size "
        "FROM mnemic.agent_memory_walls AS w) AS found WHERE found.agent_id = wall.agent_id "
        "AND found.user_key = wall.user_key AND found.size <> wall.used_bytes "
        "RETURNING wall.agent_id"
    )
    wrong += session.fetch(
        "UPDATE mnemic.agent_memory_agents AS agent SET used_bytes = found.size FROM ("
        f"SELECT a.agent_id, coalesce((SELECT sum({size}) FROM {ENTRIES} AS e "
        "WHERE e.agent_id = a.agent_id), 0)::bigint AS size "
        "FROM mnemic.agent_memory_agents AS a) AS found WHERE found.agent_id = agent.agent_id "
        "AND found.size <> agent.used_bytes RETURNING agent.agent_id"
    )
    return sorted({agent_id for (agent_id,) in wrong})
