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
from mnemic.model.text_query import RetrieveFields, query_of
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
        **fields: Unpack[RetrieveFields],
    ) -> MemoryRetrievalResult:
        """Return the memories that answer a query: weighted relevance, totals, cached answers.

        Args:
            query: A text, which is searched by meaning and keywords together; without an embedder
                by keywords. Or a `MemoryQuery`, which has its own fields.
            timeout: As for `search`; it holds for the expansion and all rankings. An expander that
                is not mnemic's own is not interrupted.
            on_timeout: As for `search`; a partial answer is not cached.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.
            **fields: With a text alone: `limit`, `filters`, `since`, `until`, `search_type`,
                `weights`, `expand`, `context`, `exclude_ids`, `min_score`, `recency`, `total`,
                `use_cache`, `cache_ttl` and `on_embed_error`; see docs/concepts/retrieval.md.

        Raises:
            InvalidArgumentError: If an argument is out of range, or given beside a `MemoryQuery`.
            FilterError: If the filter is invalid.
            DeadlineExceededError: If the timeout passes, unless `on_timeout` is "partial".
            EmbedderRequiredError: If it needs vectors and there is no embedder.
            EmbeddingError: If the embedder fails, and the query does not fall back to keywords.
            ExpanderError: If the expander is a function and returns no list of texts.
        """
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        asked = query_of(query, fields, by_words=self._repository.embedder is None)
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
        **fields: Unpack[RetrieveFields],
    ) -> int:
        """Add the answers to a query to a context window, as far as it has room.

        See `mnemic.compat.AsyncRetrievalService.retrieve_to_context`.

        Args:
            query: As for `retrieve`.
            window: The window.
            include_sensitive: Whether sensitive memories are added too.
            timeout: As for `retrieve`.
            on_timeout: As for `retrieve`; the results that are complete are added.
            user_id: The user; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.
            **fields: As for `retrieve`.

        Returns:
            Number of added items.

        Errors are those of `retrieve`.
        """
        time_limit = TimeLimit.after(timeout, on_timeout)
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        asked = query_of(query, fields, by_words=self._repository.embedder is None)
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
        """Return queries that fit a conversation: its key phrases that occur in the memories.

        Args:
            conversation: Recent text of the conversation; the last 10,000 characters are used.
            limit: Maximum number of queries, 1 to 1,000.
            user_id: The user whose memories give the phrases and their rarity; None is the memories
                without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The most promising first; empty for a conversation without text.

        Raises:
            InvalidArgumentError: If an argument is out of range.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        services = self._services
        return await services.retrieval_engine.suggest(
            services.suggester, scope, conversation, limit
        )

    async def expand(
        self,
        query: str,
        *,
        user_id: str | None = None,
        session_id: str | None = None,
        all_users: bool = False,
    ) -> ExpandedQuery:
        """Return a query with related terms, as `retrieve` with `expand=True` uses it.

        Args:
            query: The query, not empty, at most 10,000 characters.
            user_id: The user whose memories give the terms; None is the memories without a user.
            session_id: Only memories of this session.
            all_users: Whether to include all users; not if a user is bound.

        Returns:
            The query and its added terms; unchanged if the confidence is low, and if the expander
            fails, marked as `failed`.

        Raises:
            InvalidArgumentError: If the query is empty or too long.
            ExpanderError: If the expander is a function and returns no list of texts.
        """
        scope = self._scope.narrowed(user_id, session_id=session_id, all_users=all_users)
        MemoryQuery.semantic(validation.query(query))  # its checks hold here too
        return await self._services.retrieval_engine.expand(scope, query)


class AsyncRetrievalStats(ScopedBase):
    """Counts retrievals; for the memory itself, as the counts cover all users."""

    async def retrieval_stats(self) -> RetrievalStats:
        """Return statistics of `retrieve` since opening, over all users and views."""
        return self._services.retrieval_engine.stats()
