"""The verbs of recall: by mode, time and links, contradictions, and salience."""

from collections.abc import Collection
from datetime import datetime
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
from mnemic.model.recall import CONTRADICTION_CONFIDENCE
from mnemic.model.time_range import TimeRange
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
        since: datetime | str | None = None,
        until: datetime | str | None = None,
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
        """Return memories by similarity and salience, or by how recent, salient or used they are.

        What is recalled counts as accessed.

        Args:
            query: What to look for, at most 10,000 characters; only mode "relevant" needs one. In
                mode "temporal" it is a topic: only memories similar to it are returned.
            mode: Which come first: "relevant", "recent" (last access), "important" (salience),
                "frequent" (number of accesses), or "temporal" (creation, newest first; the score is
                the salience).
            limit: Maximum number of results, 1 to 1,000.
            since: Only memories created then or later, in every mode; a text is read as ISO 8601,
                in UTC.
            until: Only memories created before.
            type: Only of this type, or of a kind such as "episodic".
            min_salience: Minimum salience, 0 to 1.
            include_archived: Whether to include archived memories.
            include_superseded: Whether to include superseded memories.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            InvalidArgumentError: If an argument is out of range, or relevant recall has no query.
            FilterError: If `since` or `until` is not a time.
            DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
            EmbedderRequiredError: If a query is compared by meaning without an embedder.
            EmbeddingError: If the embedder fails.
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
        """Return the memories reached by links from one, without itself.

        The score is the largest product of the strengths of the links on a path. Order: score, then
        fewest links, then newest, then smallest id. What is returned counts as accessed.

        Args:
            id: Id of the first memory.
            types: Only links of these types; None follows all.
            direction: "out" from it, "in" to it, or "both".
            depth: Maximum number of links on a path, 1 to 3.
            limit: Maximum number of results, 1 to 1,000.
            include_archived: Whether to include archived memories.
            include_superseded: Whether to include superseded memories.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            EntryNotFoundError: If the scope has no such memory.
            InvalidArgumentError: If an argument is out of range.
            DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
        """
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
        """Return memories that a text contradicts, the surest first.

        See `mnemic.compat.AsyncMemoryRetriever.find_contradictions`; the judge knows English alone.

        Args:
            content: A statement.
            limit: Maximum number of results, 1 to 1,000.
            min_confidence: Judgements with a lower confidence are omitted, 0 to 1.
            timeout: As for `search`.
            on_timeout: As for `search`.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._contradictions(
            scope,
            content,
            limit,
            min_confidence=min_confidence,
            timeout=timeout,
            on_timeout=on_timeout,
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
        """Return the parts of a memory's current salience.

        Args:
            id: Id of the memory.
            query: The query of the relevance; without one, and for a memory without a vector, the
                default relevance is used.
            weights: Weights of the parts; the defaults of `SalienceWeights` unless given.
            options: The scales; the defaults of `SalienceOptions` unless given.
            user_id: The user; None is the memories without a user.
            session_id: Only if it is of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            EntryNotFoundError: If the scope has no such memory.
            AmbiguousIdError: If several users have one of this id, and all are included.
        """
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
        """Raise a memory's importance by the boost of a reason, to at most 1; return the memory.

        Args:
            id: Id of the memory.
            reason: Such as "explicit_user_confirmation"; its boost is that of
                `SalienceOptions.boosts`.
            options: Other boosts.
            user_id: The user; None is the memories without a user.
            session_id: Only if it is of this session.
            all_users: Whether to include all users; not if a user is bound.

        Raises:
            EntryNotFoundError: If the scope has no such memory.
            AmbiguousIdError: If several users have one of this id, and all are included.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._services.recall_engine.reinforce(
            scope, required_uuid(id), reason, options
        )
