"""Service: the steps that retrieval, recall, policies and turns go through alike.

`begin` checks the license and looks at the clock, `_found` and `_find` find, and note what is
returned, `_count` counts accesses, `_hinted` completes the marks: in this order, as far as a
service has them. What it finds goes on with its `Marks`, which its result gets as a whole; its
telemetry emits that.
"""

import time
from collections.abc import Awaitable, Mapping, Sequence
from datetime import timedelta
from typing import Any, ClassVar, Protocol, cast

from mnemic.licensing import SEARCHING_BY_MEANING, STORING, Need
from mnemic.model import MemoryEntry, Scope
from mnemic.model.marks import Marks
from mnemic.model.search import Search
from mnemic.observability.telemetry import Telemetry
from mnemic.reporting.description import must_be
from mnemic.repository.found import Find, SearchOutcome
from mnemic.repository.repository import Repository


class ServiceTelemetry(Telemetry):
    """Emits log lines, events and metrics of a service; queries only if permitted.

    Args:
        repository: The agent's memories, their listeners of events, their meter and their clock.
        logs_queries: Whether queries may be shown, if the memories' contents may.
    """

    def __init__(self, repository: Repository, *, logs_queries: bool = True) -> None:
        super().__init__(
            repository.agent_id,
            repository.events,
            repository.now,
            repository.shared.telemetry.meter,
            shows_queries=logs_queries and repository.shared.settings.log_content,
        )


class Service:
    """What finds one agent's memories for a program.

    Args:
        repository: The agent's memories; an attribute too.
        track_access: Whether returned memories count as accessed, if the memory tracks accesses.
        access_interval: How long after an access that counts no further one does.
    """

    _needs: ClassVar[tuple[Need, ...]] = (STORING,)
    _by_meaning: ClassVar[tuple[Need, ...]] = (SEARCHING_BY_MEANING,)
    """Licensed features of every call, and of searches that compare vectors."""

    def __init__(
        self,
        repository: Repository,
        *,
        track_access: bool = False,
        access_interval: timedelta | None = None,
    ) -> None:
        self.repository = repository
        self._track_access = track_access
        self._access_interval = access_interval

    def begin(self, *, by_meaning: bool = False) -> float:
        """Check the license of a call; return when it began, for `milliseconds_since`."""
        self.repository.shared.limits.require(
            *self._needs, *(self._by_meaning if by_meaning else ())
        )
        return time.perf_counter()

    def _find(self, scope: Scope, search: Search, **options: Any) -> SearchOutcome:
        """Return the best memories of a scope, in the caller's thread; see `Finder.find`."""
        return self.repository.finder.find(scope, search, *self._by_meaning, **options)

    def _found(
        self, scope: Scope, search: Search, find: Find | None = None
    ) -> Awaitable[SearchOutcome]:
        """Return what `_find`, or another function, finds; see `Finder.found`."""
        return self.repository.finder.found(scope, search, find or self._find)

    def _count(self, returned: Mapping[int, MemoryEntry], rows: Sequence[int]) -> None:
        """Count an access of returned memories, which are not deleted.

        Accesses are written later, so a failing write fails no call.

        Args:
            returned: Memories by row.
            rows: The rows of those to count.
        """
        if not self._track_access:
            return
        accesses, interval = self.repository.shared.accesses, self._access_interval
        if interval:
            accesses.record_spaced({row: returned[row].last_accessed_at for row in rows}, interval)
        else:
            accesses.record(rows)

    async def _hinted(self, marks: Marks, call: str, scope: Scope) -> Marks:
        """Return the marks of an empty answer, with what its call may have missed."""
        return marks._replace(
            hint=await self.repository.shared.user_hints.of(call, scope) or marks.hint
        )


class Searchable(Protocol):
    """A memory, scoped or not, as services take it."""

    @property
    def repository(self) -> Repository:
        """Its repository."""
        ...

    @property
    def scope(self) -> Scope:
        """Its scope."""
        ...

    @property
    def time_zone(self) -> str:
        """The name of its time zone."""
        ...


def checked_memory(memory: object) -> Searchable:
    """Return a valid memory for a service."""
    of = getattr(memory, "repository", None), getattr(memory, "scope", None)
    if not (isinstance(of[0], Repository) and isinstance(of[1], Scope)):
        raise must_be(
            "memory", "a Memory, an AsyncMemory, an AsyncLongTermMemory or a view of one", memory
        )
    return cast("Searchable", memory)
