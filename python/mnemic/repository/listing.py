"""Lists by filter: from the index where it is current, otherwise from the store."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from mnemic.index import ListRequest
from mnemic.model import Expression, MemoryEntry, MemoryFilter, MemorySortOrder, Scope
from mnemic.model.filter import has_tests, references
from mnemic.model.timestamps import to_microseconds
from mnemic.repository.accesses import AccessCounter, show_accesses
from mnemic.repository.index_set import IndexSet
from mnemic.store import LogPosition, PageCursor, Store
from mnemic.sync_bridge import run_blocking

MAX_ROUNDS = 4
"""How often a list is read while concurrent writes change it."""


class Lister:
    """Lists memories of one agent.

    The index holds what filters test, and decides 100,000 memories while a store reads a few
    hundred. Only the memories of the list are read from the store. A list of all memories, newest
    first, is left to the store, which has them in that order (`python -m benches.listing`).

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        indexes: That of active memories lists.
        accesses: Writes accesses before the store lists.
    """

    def __init__(
        self, store: Store, agent_id: str, indexes: IndexSet, accesses: AccessCounter
    ) -> None:
        self._store = store
        self._agent_id = agent_id
        self._active = indexes.active
        self._accesses = accesses

    async def matching(
        self, scope: Scope, expression: Expression, page: MemoryFilter, *, now: datetime
    ) -> list[MemoryEntry]:
        """Return the memories of a scope that match a filter; see `Store.matching`."""
        wanted = ListRequest(
            scope=scope,
            now=to_microseconds(now),
            filters=expression,
            order=page.list_order,
            offset=page.offset,
            limit=page.limit,
        )
        return await self._list(
            wanted,
            now,
            lambda: self._store.matching(scope, expression, page, now=now),
            include_deleted=page.include_forgotten,
        )

    async def page(
        self,
        scope: Scope,
        expression: Expression,
        after: PageCursor | None,
        limit: int,
        *,
        now: datetime,
        include_deleted: bool,
    ) -> list[MemoryEntry]:
        """Return the matching memories after a cursor, newest first; see `Store.page`."""
        wanted = ListRequest(
            scope=scope,
            now=to_microseconds(now),
            filters=expression,
            after=None if after is None else _place(scope, after),
            limit=limit,
        )
        return await self._list(
            wanted,
            now,
            lambda: self._store.page(
                scope, expression, after, limit, now=now, include_deleted=include_deleted
            ),
            include_deleted=include_deleted,
        )

    async def _list(
        self,
        wanted: ListRequest,
        now: datetime,
        from_store: Callable[[], list[MemoryEntry]],
        *,
        include_deleted: bool,
    ) -> list[MemoryEntry]:
        if self.can_list(wanted, include_deleted=include_deleted):
            entries = await run_blocking(lambda: self.listed(wanted, now), self._store)
            if entries is not None:
                return entries
        await self._accesses.write()
        # Filters may look at every memory of the agent.
        return await run_blocking(from_store, self._store)

    def can_list(self, wanted: ListRequest, *, include_deleted: bool) -> bool:
        """Return whether the index lists all that the store would, and is not slower."""
        if self._active.index.seq is None or include_deleted:
            return False
        is_in_store_order = wanted.order is MemorySortOrder.CREATED_DESCENDING
        if is_in_store_order and not has_tests(wanted.filters):
            return False
        return not references(wanted.filters, "status")

    def listed(self, wanted: ListRequest, now: datetime) -> list[MemoryEntry] | None:
        """Return the memories of a list as of one moment; None if the store has to list them.

        The store lists if the index lacks changes, or if writes go on for several rounds.

        Args:
            wanted: The list; one that `can_list` allows.
            now: Time of the request.
        """
        with suppress(MemoryError):  # the store needs less
            for _ in range(MAX_ROUNDS):
                position = self._active.current_position()
                if position is None:
                    return None
                entries = self._read(wanted, now)
                if entries is not None and self._position() == position:
                    return entries
        return None

    def _read(self, wanted: ListRequest, now: datetime) -> list[MemoryEntry] | None:
        """Return the memories that the index lists; None if one is gone."""
        accesses = self._active.index.listed(wanted)
        rows = [row for row, *_ in accesses]
        entries = self._store.get_rows(wanted.scope, rows, now=now)
        if len(entries) < len(rows):
            return None
        show_accesses(entries, accesses)
        return [entries[row] for row in rows]

    def _position(self) -> LogPosition:
        return self._store.position(self._agent_id)


def _place(scope: Scope, cursor: PageCursor) -> tuple[int, bytes, str | None]:
    user_id = cursor.user_id if scope.all_users else scope.user_id
    return to_microseconds(cursor.created_at), cursor.id.bytes, user_id
