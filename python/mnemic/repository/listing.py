"""Lists and numbers by filter: from the index where it is current, otherwise from the store."""

import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime
from time import perf_counter
from typing import Any, Final, TypeVar

from mnemic.errors import FilterError
from mnemic.index import ListRequest
from mnemic.model import (
    Expression,
    MemoryEntry,
    MemoryFilter,
    MemoryPage,
    MemorySortOrder,
    Scope,
    validation,
)
from mnemic.model.distinct import DistinctQuery, DistinctValue
from mnemic.model.filter import All, has_tests, parse_filter, references
from mnemic.model.results import PageCursor
from mnemic.model.timestamps import to_microseconds
from mnemic.model.validation import flag
from mnemic.reporting.description import must_be
from mnemic.repository.accesses import show_accesses
from mnemic.repository.arguments import decoded_cursor, encoded_cursor, unlimited
from mnemic.repository.parts import Part, Shared
from mnemic.store import LogPosition
from mnemic.store.operations import DistinctValues, EntryCount, EntryPage
from mnemic.threads.sync_bridge import run_blocking

Answer = TypeVar("Answer")

MAX_SKIPPED: Final = 512
"""Up to so many memories of a list of all, newest first, the store skips as fast as the index."""

LOADING_SECONDS: Final = 15e-6
"""Loading of one memory into the index (`python -m benches.opening`)."""

LEAST_LOADED: Final = 1_000
"""Fewer memories count as so many: the store lists them as fast."""

MAX_ROUNDS = 4
"""How often a list is read while concurrent writes change it."""


class Lister(Part):
    """Lists memories of one agent.

    The index holds what filters test, and decides 100,000 memories while a store reads a few
    hundred. Only the memories of the list are read from the store. A list of all memories, newest
    first, is left to the store, which has them in that order.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._store_seconds = 0.0
        self._loading_seconds = 0.0

    async def matching(
        self, scope: Scope, filters: MemoryFilter | Mapping[str, Any]
    ) -> list[MemoryEntry]:
        """Return the memories of a scope that match a filter, in its order."""
        self._limits.require_storing()
        if not isinstance(filters, MemoryFilter | Mapping):
            raise must_be("filter", "a MemoryFilter or a dict", filters, error=FilterError)
        page = filters if isinstance(filters, MemoryFilter) else MemoryFilter(filters=filters)
        now, expression = self._now(), parse_filter(page)
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
            lambda: self._store.read(
                EntryPage(
                    scope,
                    expression,
                    now,
                    page.limit,
                    page.list_order,
                    page.offset,
                    include_deleted=page.include_forgotten,
                )
            ),
            include_deleted=page.include_forgotten,
        )

    async def page(
        self,
        scope: Scope,
        *,
        limit: int,
        cursor: str | None,
        filters: MemoryFilter | Mapping[str, Any] | None,
        include_deleted: bool,
        offset: int = 0,
    ) -> MemoryPage:
        """Return the memories of a scope after a cursor, newest first."""
        self._limits.require_storing()
        after = None if cursor is None else decoded_cursor(cursor)
        if isinstance(filters, MemoryFilter):
            include_deleted = include_deleted or filters.include_forgotten
        now = self._now()
        wanted = ListRequest(
            scope=scope,
            now=to_microseconds(now),
            filters=parse_filter(filters),
            after=None if after is None else _place(scope, after),
            offset=validation.whole("offset", offset),
            limit=validation.limit("limit", limit) + 1,
        )
        entries = await self._list(
            wanted,
            now,
            lambda: self._store.read(
                EntryPage(
                    scope,
                    wanted.filters,
                    now,
                    wanted.limit,
                    offset=wanted.offset,
                    after=after,
                    include_deleted=include_deleted,
                )
            ),
            include_deleted=flag("include_forgotten", include_deleted),
        )
        shown = tuple(entries[:limit])
        if not shown and after is None and not offset:
            return MemoryPage((), None, await self._user_hints.of("list", scope))
        has_more = len(entries) > limit
        return MemoryPage(shown, encoded_cursor(scope, shown[-1]) if has_more else None)

    async def in_any_state(self, scope: Scope, expression: Expression) -> list[MemoryEntry]:
        """Return the memories of a scope that match, deleted and expired ones too, newest first."""
        self._limits.require_storing()
        now = self._now()
        return await run_blocking(
            lambda: self._store.read(
                EntryPage(scope, expression, now, sys.maxsize, include_deleted=True)
            ),
            self._store,
        )

    async def count(
        self, scope: Scope, filters: MemoryFilter | Mapping[str, Any] | None = None
    ) -> int:
        """Return the number of memories of a scope that match a filter; see `EntryCount`."""
        self._limits.require_storing()
        now, expression = self._now(), _of_all_matches(filters)
        wanted = ListRequest(scope=scope, now=to_microseconds(now), filters=expression, limit=0)
        counted = await self._answer(
            wanted,
            lambda: self._active.index.counted(wanted),
            lambda: self._store.read(EntryCount(scope, now, expression)),
        )
        if not counted:
            await self._user_hints.of("count", scope)
        return counted

    async def distinct(
        self,
        scope: Scope,
        query: DistinctQuery,
        filters: MemoryFilter | Mapping[str, Any] | None,
    ) -> list[DistinctValue]:
        """Return the distinct values of a field in the matching memories; see `DistinctValues`."""
        self._limits.require_storing()
        now, expression = self._now(), _of_all_matches(filters)
        wanted = ListRequest(
            scope=scope,
            now=to_microseconds(now),
            filters=expression,
            offset=query.offset,
            limit=query.limit,
        )
        values = await self._answer(
            wanted,
            lambda: query.values(self._active.index.distinct(wanted, query.field, query.prefix)),
            lambda: self._store.read(DistinctValues(scope, expression, query, now)),
        )
        if not values:
            await self._user_hints.of("distinct", scope)
        return values

    async def _answer(
        self,
        wanted: ListRequest,
        from_index: Callable[[], Answer],
        from_store: Callable[[], Answer],
    ) -> Answer:
        """Return the answer of the index if it is current; otherwise that of the store."""
        if self.can_decide(wanted):
            found = await run_blocking(lambda: self._if_current(from_index), self._store)
            if found is not None:
                return found
        await self._accesses.write()
        return await run_blocking(
            (lambda: self._timed(from_store)) if _is_of_active(wanted) else from_store, self._store
        )

    def _timed(self, from_store: Callable[[], Answer]) -> Answer:
        """Return the store's answer; load the index once its answers have taken as long as that.

        Whatever follows, both together take at most twice as long as the better way alone
        (Karlin et al., Competitive Snoopy Caching, 1988: the ski rental).
        """
        started = perf_counter()
        answer = from_store()
        if not self._active.is_loaded:
            self._store_seconds += perf_counter() - started
            if self._store_seconds > self._loading_seconds:
                count = self._store.read(EntryCount(self._everyone, self._now()))
                self._loading_seconds = LOADING_SECONDS * max(count, LEAST_LOADED)
                if self._store_seconds > self._loading_seconds:
                    self._store_seconds = 0.0  # a load that fails is not repeated at once
                    self._active.load()
        return answer

    def _if_current(self, from_index: Callable[[], Answer]) -> Answer | None:
        with suppress(MemoryError):  # the store needs less
            return None if self._active.current_position() is None else from_index()
        return None

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
        is_rival = _is_faster(wanted, include_deleted=include_deleted)
        return await run_blocking(
            (lambda: self._timed(from_store)) if is_rival else from_store, self._store
        )

    def can_list(self, wanted: ListRequest, *, include_deleted: bool) -> bool:
        """Return whether the index lists all that the store would, and is not slower."""
        return self._active.is_loaded and _is_faster(wanted, include_deleted=include_deleted)

    def can_decide(self, wanted: ListRequest) -> bool:
        """Return whether the index has all memories that a filter tests, if it is current."""
        return self._active.is_loaded and _is_of_active(wanted)

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
                entries = self._read(wanted, now, position)
                if entries is not None and self._store.position(self._agent_id) == position:
                    return entries
        return None

    def _read(
        self, wanted: ListRequest, now: datetime, position: LogPosition
    ) -> list[MemoryEntry] | None:
        """Return the memories that the index lists; None if one is gone."""
        accesses = self._active.index.listed(wanted)
        rows = [row for row, *_ in accesses]
        entries = self._cache.get_rows(wanted.scope, rows, now, position)
        if len(entries) < len(rows):
            return None
        show_accesses(entries, accesses)
        return [entries[row] for row in rows]


def _of_all_matches(filters: MemoryFilter | Mapping[str, Any] | None) -> Expression:
    """Return the expression of a filter for all of its matches that a search can find."""
    if isinstance(filters, MemoryFilter) and filters.include_forgotten:
        raise FilterError(
            "include_forgotten=True goes with lists; deleted memories are counted by stats alone"
        )
    return All(()) if filters is None else unlimited(filters)


def _is_faster(wanted: ListRequest, *, include_deleted: bool) -> bool:
    """Return whether an index lists all that the store would, and is not slower."""
    is_in_store_order = wanted.order is MemorySortOrder.CREATED_DESCENDING
    is_head = wanted.offset <= MAX_SKIPPED
    if include_deleted or (is_in_store_order and is_head and not has_tests(wanted.filters)):
        return False
    return _is_of_active(wanted)


def _is_of_active(wanted: ListRequest) -> bool:
    """Return whether all memories that a filter tests are in the index of active ones."""
    return not references(wanted.filters, "status")


def _place(scope: Scope, cursor: PageCursor) -> tuple[int, bytes, str | None]:
    user_id = cursor.user_id if scope.all_users else scope.user_id
    return to_microseconds(cursor.created_at), cursor.id.bytes, user_id
