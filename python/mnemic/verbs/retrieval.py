"""The verbs of retrieval: structured queries, suggested and expanded queries, statistics."""

from typing import Unpack

import mnemic  # noqa: TC001 - annotations name its classes
from mnemic.model import (
    ExpandedQuery,
    MemoryQuery,
    MemoryRetrievalResult,
    OnTimeout,
    RetrievalStats,
    Suggestions,
    validation,
)
from mnemic.model.deadline import TimeLimit
from mnemic.model.query import RetrieveFields, query_of
from mnemic.verbs.base import ScopedBase


class AsyncRetrievalVerbs(ScopedBase):
    """Answers queries by weighted relevance, and suggests and expands queries."""

    async def retrieve(
        self,
        query: MemoryQuery | str,
        *,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
        **fields: "Unpack[RetrieveFields]",
    ) -> MemoryRetrievalResult:
        """Return the memories that answer a query (`mnemic.compat.RetrievalService.retrieve`)."""
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        asked = _asked(self, query, fields)
        return await self._services.retrieval_engine.retrieve(scope, asked, time_limit)

    async def retrieve_to_context(
        self,
        query: MemoryQuery | str,
        window: "mnemic.compat.ContextWindow",
        *,
        include_sensitive: bool = False,
        timeout: float | None = None,
        on_timeout: OnTimeout = "raise",
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
        **fields: "Unpack[RetrieveFields]",
    ) -> int:
        """Add answers to a window (`mnemic.compat.RetrievalService.retrieve_to_context`)."""
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        asked = _asked(self, query, fields)
        return await self._services.retrieval_engine.to_context(
            scope, asked, window, include_sensitive=include_sensitive, time_limit=time_limit
        )

    async def suggest(
        self,
        conversation: str,
        *,
        limit: int = 10,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> Suggestions:
        """Return queries for a conversation (`mnemic.compat.RetrievalService.suggest_queries`).

        Args:
            conversation: Its recent text; the last 10,000 characters are used.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        from mnemic.retrieval import CorpusSuggester  # noqa: PLC0415 - loaded where it is used

        engine = self._services.retrieval_engine
        return await engine.suggest(CorpusSuggester(), scope, conversation, limit)

    async def expand(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> ExpandedQuery:
        """Return a query with related terms (`mnemic.compat.RetrievalService.expand_query`)."""
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        return await self._services.retrieval_engine.expand(scope, validation.query(query))


class AsyncRetrievalStats(ScopedBase):
    """Counts retrievals; for the memory itself, as the counts cover all users."""

    async def retrieval_stats(self) -> RetrievalStats:
        """Return statistics of `retrieve` since opening, over all users and views."""
        return self._services.retrieval_engine.stats()


def _asked(view: ScopedBase, query: object, fields: RetrieveFields) -> MemoryQuery:
    """Return the query of a view's call, in its time zone."""
    by_words = view.repository.embedder is None
    return query_of(query, fields, by_words=by_words, time_zone=view.time_zone)
