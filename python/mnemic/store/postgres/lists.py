"""The lists and counts of the PostgreSQL store."""

import sys
from datetime import datetime

from mnemic._core import distinct_values
from mnemic.model import Expression, MemoryEntry, MemoryFilter, Scope
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.filter import All, references
from mnemic.model.results import PageCursor
from mnemic.model.timestamps import to_microseconds
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.selected_rows import listed, matching_rows, streamed
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import ENTRIES, IS_PRESENT, ROW, USER_KEY, visible_in
from mnemic.store.postgres.stored import readable_entries, reading_stored
from mnemic.store.row_codec import RowCodec
from mnemic.store.selection import batches
from mnemic.store.sql.filters import NarrowingCondition, narrowed, order_by
from mnemic.store.sql.lists import EntryList, first_readable
from mnemic.store.sql.session import Condition


class PostgresLists(OpenedDatabase):
    """Lists and counts entries by filter; see `Lists`."""

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
        narrow = _narrowed_list(
            self._codec, scope, expression, now, include_deleted=page.include_forgotten
        )
        order = f"{order_by(page.list_order)}, {USER_KEY}"
        wanted = EntryList(narrow, expression, order, page.limit, page.offset)
        return self._listed(scope, wanted, deadline)

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
        narrow = _narrowed_list(
            self._codec, scope, expression, now, include_deleted=include_deleted
        )
        if after is not None:
            # The cursor of a list of one user names none.
            user = (after.user_id if scope.all_users else scope.user_id) or ""
            time = to_microseconds(after.created_at)
            is_after = f"(-created_at, id, {USER_KEY}) > (%s, %s, %s) AND created_at <= %s"
            narrow = narrow._replace(
                sql=f"{narrow.sql} AND {is_after}",
                values=[*narrow.values, -time, after.id, user, time],
            )
        order = f"created_at DESC, id, {USER_KEY}"
        wanted = EntryList(narrow, expression, order, limit, offset)
        return self._listed(scope, wanted, deadline)

    def _listed(self, scope: Scope, wanted: EntryList, deadline: float | None) -> list[MemoryEntry]:
        def work(on: Session) -> list[MemoryEntry]:
            return first_readable(
                wanted,
                lambda wanted: listed(on, self._codec, wanted),
                lambda rows: readable_entries(self._codec, rows, scope),
            )

        return self._read(scope.agent_id, work, deadline=deadline, one_moment=True)

    def count(
        self,
        scope: Scope,
        expression: Expression | None = None,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> int:
        """Return the number of entries of a scope for which a filter's tree is true."""
        codec, every = self._codec, All(()) if expression is None else expression
        narrow = _narrowed_list(codec, scope, every, now, include_deleted=False)

        def work(on: Session) -> int:
            if not narrow.is_exact:
                return len(matching_rows(on, codec, every, (narrow.sql, narrow.values)))
            sql = f"SELECT count(*) FROM {ENTRIES} WHERE {narrow.sql} AND NOT is_encrypted"
            plain = int(on.value(sql, narrow.values))
            if not codec.seals:
                return plain
            sealed = f"{narrow.sql} AND is_encrypted"  # those that do not open do not count
            return plain + len(matching_rows(on, codec, every, (sealed, narrow.values)))

        return self._read(scope.agent_id, work, deadline=deadline, one_moment=True)

    def distinct(
        self,
        scope: Scope,
        expression: Expression,
        wanted: DistinctQuery,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[DistinctValue]:
        """Return the distinct values of a field in the entries for which a tree is true.

        The core counts them unless SQL decides exactly.
        """
        codec, expression = self._codec, wanted.narrowed(expression)
        narrow = _narrowed_list(codec, scope, expression, now, include_deleted=False)

        def work(on: Session) -> list[DistinctValue]:
            if narrow.is_exact and not has_sealed(on, codec, narrow[:2]):
                return _grouped(on, narrow, wanted)
            sql = f"SELECT {ROW} FROM {ENTRIES} WHERE {narrow.sql}"
            with reading_stored("a memory"):
                some = map(codec.records, batches(streamed(on, sql, narrow.values)))
                page = wanted.prefix, wanted.offset, min(wanted.limit, sys.maxsize)
                return wanted.values(distinct_values(expression, some, wanted.field, *page))

        return self._read(scope.agent_id, work, deadline=deadline, one_moment=True)


def _narrowed_list(
    codec: RowCodec, scope: Scope, expression: Expression, now: datetime, *, include_deleted: bool
) -> NarrowingCondition:
    """Return the condition of a list; without a test of the status only active entries match."""
    where, values = visible_in(scope, codec)
    if not include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(now)]
    if not references(expression, "status"):
        where = f"{where} AND status = 0"
    sql, bound, is_exact = narrowed(POSTGRES, expression, seals=codec.seals)
    return NarrowingCondition(f"{where} AND ({sql})", [*values, *bound], is_exact)


def has_sealed(session: Session, codec: RowCodec, where: Condition) -> bool:
    """Return whether a condition holds for sealed rows that a codec can read."""
    if not codec.seals:
        return False
    sql = f"SELECT EXISTS (SELECT FROM {ENTRIES} WHERE {where[0]} AND is_encrypted)"
    return bool(session.value(sql, where[1]))


def _grouped(
    session: Session, narrow: NarrowingCondition, wanted: DistinctQuery
) -> list[DistinctValue]:
    column = wanted.declared.column
    sql = (
        f"SELECT {column}, count(*) FROM {ENTRIES} WHERE {narrow.sql} "
        f"AND {column} IS NOT NULL GROUP BY {column} ORDER BY {column} LIMIT %s OFFSET %s"
    )
    cut = (min(wanted.limit, sys.maxsize), min(wanted.offset, sys.maxsize))
    with reading_stored("a memory"):
        return wanted.values([tuple(row) for row in session.fetch(sql, (*narrow.values, *cut))])
