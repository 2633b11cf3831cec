"""The lists and counts of the SQLite store."""

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol

from mnemic.model import Expression, MemoryEntry, MemoryFilter, Scope
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.results import PageCursor
from mnemic.model.timestamps import to_microseconds
from mnemic.store.row_codec import RowCodec
from mnemic.store.sqlite import reads
from mnemic.store.sqlite.hardening import GuardedConnection


class SqliteLists(Protocol):
    """Lists and counts entries by filter; see `Lists`."""

    _codec: RowCodec

    def _reading(self, deadline: float | None = None) -> AbstractContextManager[GuardedConnection]:
        """Lend a connection that reads."""
        ...

    def matching(
        self,
        scope: Scope,
        expression: Expression,
        page: MemoryFilter,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries of a scope for which a filter's tree is true, ordered and cut."""
        with self._reading(deadline) as connection:
            time = to_microseconds(now)
            return reads.entries_matching(
                connection, self._codec, scope, expression, page, now=time
            )

    def page(
        self,
        scope: Scope,
        expression: Expression,
        after: PageCursor | None,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool = False,
        offset: int = 0,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the next entries of a scope for which a filter's tree is true, newest first."""
        with self._reading(deadline) as connection:
            return reads.entries_after(
                connection,
                self._codec,
                scope,
                expression,
                after,
                limit=limit,
                offset=offset,
                now=to_microseconds(now),
                include_deleted=include_deleted,
            )

    def count(
        self,
        scope: Scope,
        expression: Expression | None = None,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> int:
        """Return the number of entries of a scope for which a filter's tree is true."""
        with self._reading(deadline) as connection:
            return reads.count(connection, self._codec, scope, expression, to_microseconds(now))

    def distinct(
        self,
        scope: Scope,
        expression: Expression,
        wanted: DistinctQuery,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[DistinctValue]:
        """Return the distinct values of a field in the entries for which a tree is true."""
        with self._reading(deadline) as connection:
            time = to_microseconds(now)
            return reads.distinct(connection, self._codec, scope, expression, wanted, now=time)
