"""The part of the contract of stores that lists and counts entries."""

from datetime import datetime
from typing import Protocol

from mnemic.model import Expression, MemoryEntry, MemoryFilter, Scope
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.results import PageCursor


class Lists(Protocol):
    """Reads over the entries of a scope that match a filter; see `Store` for the promises."""

    def matching(
        self,
        scope: Scope,
        expression: Expression,
        page: MemoryFilter,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[MemoryEntry]:
        """Return the entries of a scope that match a filter, as of one moment.

        A store may narrow to a superset of the matches; `mnemic.store.selection` lets the core
        decide the rest.

        Args:
            scope: The scope.
            expression: Parsed filter, from `mnemic.model.parse_filter`.
            page: Gives order, limit, offset and `include_forgotten`; expired entries count as
                deleted. Archived and superseded entries are omitted unless the filter tests the
                status.
            now: The time.
            deadline: See above.

        Returns:
            Entries without their embeddings, in a total order. Ties: newest first, then smallest
            id, then user by name, no user before all others.
        """
        ...

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
        """Return the entries after a cursor in the list of all that `matching` would return.

        Args:
            scope: The scope.
            expression: Parsed filter.
            after: The last entry of the page before; None begins.
            limit: Maximum number of entries.
            now: The time.
            include_deleted: Also return deleted and expired entries.
            offset: Number of entries to skip after the cursor.
            deadline: See above.

        Returns:
            At most `limit` entries, newest first, then smallest id, then user; from the beginning
            if the cursor is None.
        """
        ...

    def count(
        self,
        scope: Scope,
        expression: Expression | None = None,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> int:
        """Return the number of entries that `matching` would return without a limit.

        Args:
            scope: The scope.
            expression: Parsed filter; None is any entry that a search can find.
            now: The time.
            deadline: See above.
        """
        ...

    def distinct(
        self,
        scope: Scope,
        expression: Expression,
        wanted: DistinctQuery,
        *,
        now: datetime,
        deadline: float | None = None,
    ) -> list[DistinctValue]:
        """Return the distinct values of a field in the entries that `matching` would return.

        Each has the number of its entries. Missing values are left out; an entry counts once for
        each of its tags. Values ascend: booleans, numbers, texts by code points, lists, dicts.
        """
        ...
