"""The verbs of recall: by mode, time and links, contradictions, and salience."""

from collections.abc import Collection
from datetime import date
from uuid import UUID

from mnemic.model import (
    Direction,
    LinkType,
    MemoryEntry,
    MemoryKind,
    MemoryRecallResult,
    MemoryType,
    OnTimeout,
    RecallMode,
    RecallOptions,
    ReinforcementReason,
    SalienceBreakdown,
    SalienceOptions,
    SalienceWeights,
)
from mnemic.model.recall import CONTRADICTION_CONFIDENCE, TimeRange
from mnemic.model.time_zones import naive_times_in
from mnemic.repository import required_uuid
from mnemic.verbs.base import ScopedBase


class AsyncRecallVerbs(ScopedBase):
    """Recalls memories by mode, time and links, and computes and raises their salience."""

    async def recall(
        self,
        query: str = "",
        *,
        mode: RecallMode | str = RecallMode.RELEVANT,
        limit: int = 10,
        since: date | str | None = None,
        until: date | str | None = None,
        type: MemoryType | MemoryKind | str | None = None,  # noqa: A002 - the field's name
        min_salience: float = 0.0,
        include_archived: bool = False,
        include_superseded: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRecallResult:
        """Return memories by salience, likeness, time or use (`mnemic.compat.MemoryRetriever`).

        Args:
            mode: "relevant", which needs a query; "recent" (last access), "important" (salience),
                "frequent" (accesses), or "temporal" (newest first, of those similar to a query).
            type: Only of this type, or of a kind such as "episodic".
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        options = RecallOptions(
            user_id=scope.user_id,
            max_results=limit,
            type_filter=type,
            min_salience=min_salience,
            mode=RecallMode.parse(mode),
            include_archived=include_archived,
            include_superseded=include_superseded,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        with naive_times_in(self.time_zone):
            times = TimeRange.parse(since, until)
        return await self._services.recall_engine.recall(scope, query, options, times)

    async def linked(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        types: Collection[LinkType | str] | None = None,
        direction: Direction = "out",
        depth: int = 1,
        limit: int = 100,
        include_archived: bool = False,
        include_superseded: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRecallResult:
        """Return memories that links lead to (`mnemic.compat.MemoryRetriever.recall_linked`)."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        options = RecallOptions(
            user_id=scope.user_id,
            max_results=limit,
            include_archived=include_archived,
            include_superseded=include_superseded,
            timeout=timeout,
            on_timeout=on_timeout,
        )
        return await self._services.recall_engine.linked(
            scope, required_uuid(id), types, options, direction=direction, depth=depth
        )

    async def contradictions(
        self,
        content: str,
        *,
        limit: int = 10,
        min_confidence: float = CONTRADICTION_CONFIDENCE,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryRecallResult:
        """Return what a text contradicts (`mnemic.compat.MemoryRetriever.find_contradictions`)."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        options = RecallOptions(
            user_id=scope.user_id, max_results=limit, timeout=timeout, on_timeout=on_timeout
        )
        return await self._services.recall_engine.contradictions(
            scope, content, options, min_confidence=min_confidence
        )

    async def salience(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        *,
        query: str | None = None,
        weights: SalienceWeights | None = None,
        options: SalienceOptions | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> SalienceBreakdown:
        """Return the parts of a memory's salience (`mnemic.compat.MemoryRetriever.salience`)."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._services.recall_engine.salience(
            scope, required_uuid(id), query, weights, options
        )

    async def reinforce(
        self,
        id: UUID | str,  # noqa: A002 - the field's name everywhere
        reason: ReinforcementReason | str,
        *,
        options: SalienceOptions | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> MemoryEntry:
        """Raise a memory's importance for a reason (`mnemic.compat.MemoryRetriever.reinforce`)."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._services.recall_engine.reinforce(
            scope, required_uuid(id), reason, options
        )
