"""Encoded rows of active entries, cached in memory so that a search reads nothing from a server."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.stored import ROW
from mnemic.store.row_codec import COLUMN_NAMES
from mnemic.store.sql.conditions import ENTRIES, HAS_ACTIVE_STATUS
from mnemic.store.values import LogPosition
from mnemic.threads.locks import InnerLock

_SLOT: Final = 120
"""Bytes of a row beside its encoded columns: a place in a dict, and its number."""

_AT_SENSITIVE: Final = 1 + COLUMN_NAMES.index("is_sensitive")
_AT_ENCRYPTED: Final = 1 + COLUMN_NAMES.index("is_encrypted")

_TOUCHED: Final = (
    "SELECT entry_row FROM mnemic.agent_memory_changes WHERE agent_id = %s AND seq > %s "
    f"UNION SELECT row FROM {ENTRIES} WHERE agent_id = %s AND access_seq > %s"
)


class RowChanges(NamedTuple):
    """What changed since a position.

    Attributes:
        position: The position after it.
        touched: Rows that changed in any way.
        rows: Those of them that are cached, a number and columns each.
    """

    position: LogPosition
    touched: list[int]
    rows: list[Columns]


def row_changes(session: Session, agent_id: str, since: LogPosition) -> RowChanges | None:
    """Return what changed since a position; None if the log does not go back so far."""
    sql = "SELECT seq, accesses, pruned FROM mnemic.agent_memory_agents WHERE agent_id = %s"
    found = session.fetch(sql, (agent_id,))
    if not found or not found[0][2] <= since.seq <= found[0][0]:
        return None
    seq, accesses, _ = found[0]
    values = (agent_id, since.seq, agent_id, since.accesses)
    touched = [row for (row,) in session.fetch(_TOUCHED, values)]
    rows = cached_rows(session, agent_id, touched) if touched else []
    return RowChanges(LogPosition(seq, accesses), touched, rows)


def cached_rows(session: Session, agent_id: str, rows: Sequence[int]) -> list[Columns]:
    """Return those of these rows that are cached, as they are stored now."""
    sql = (
        f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = %s AND row = ANY(%s) AND {HAS_ACTIVE_STATUS}"
    )
    return session.fetch(sql, (agent_id, list(rows)))


class CachedRows:
    """The rows of one agent as of a position. Thread-safe.

    They are cached as the store encodes them: what is encrypted stays so. Sensitive rows that are
    not encrypted are left out.

    Args:
        position: Position of the agent when they were read.

    Attributes:
        nbytes: Bytes held, partly estimated.
    """

    def __init__(self, position: LogPosition) -> None:
        self.position = position
        self._lock = InnerLock()
        self._rows: dict[int, bytes] = {}
        self.nbytes = 0

    def put(self, rows: Iterable[Columns]) -> None:
        """Take in rows, a number and columns each."""
        for row in rows:
            self._drop(row[0])
            if row[_AT_ENCRYPTED] or not row[_AT_SENSITIVE]:
                cached = self._rows[row[0]] = msgspec.msgpack.encode(row)
                self.nbytes += sys.getsizeof(cached) + _SLOT

    def _drop(self, row: int) -> None:
        known = self._rows.pop(row, None)
        if known is not None:
            self.nbytes -= sys.getsizeof(known) + _SLOT

    def of(self, rows: Sequence[int]) -> list[Columns] | None:
        """Return columns with their numbers; None unless all of these rows are cached."""
        with self._lock:
            found = [self._rows.get(row) for row in rows]
        if None in found:
            return None
        return [msgspec.msgpack.decode(row, type=tuple) for row in found if row is not None]

    def catch_up(self, read: Callable[[LogPosition], RowChanges | None]) -> bool:
        """Take in what has changed since a position; return False if nobody knows any more."""
        with self._lock:
            found = read(self.position)
            if found is None:
                return False
            for row in found.touched:
                self._drop(row)
            self.put(found.rows)
            self.position = found.position
            return True
