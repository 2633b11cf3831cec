"""Service: the steps that retrieval, recall, policies and turns go through alike.

License, search, accesses, hint: in this order, as far as a service has them. What it finds goes on
with its `Marks`, which its result gets as a whole.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, ClassVar

from mnemic.licensing import SEARCHING_BY_MEANING, STORING, Need
from mnemic.model import MemoryEntry, Scope
from mnemic.model.marks import Marks
from mnemic.model.search import Search
from mnemic.repository.found import SearchOutcome
from mnemic.repository.repository import Repository


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

    def _require(self, *, by_meaning: bool = False) -> None:
        """Check the license of a call."""
        self.repository.limits.require(*self._needs, *(self._by_meaning if by_meaning else ()))

    def _find(self, scope: Scope, search: Search, **options: Any) -> SearchOutcome:
        """Return the best memories of a scope, in the caller's thread; see `Repository.find`."""
        return self.repository.find(scope, search, *self._by_meaning, **options)

    def _count(self, returned: Iterable[tuple[int, MemoryEntry]]) -> None:
        """Count an access of returned memories, by row, except deleted ones.

        Accesses are written later, so a failing write fails no call.
        """
        if not self._track_access:
            return
        accessed = {
            row: entry.last_accessed_at for row, entry in returned if entry.forgotten_at is None
        }
        if self._access_interval:
            self.repository.accesses.record_spaced(accessed, self._access_interval)
        else:
            self.repository.accesses.record(list(accessed))

    async def _hinted(self, marks: Marks, call: str, scope: Scope) -> Marks:
        """Return the marks of an empty answer, with what its call may have missed."""
        return marks._replace(hint=await self.repository.user_hints.of(call, scope))
