"""Log lines, events and metrics of retrieval."""

import logging
from datetime import timedelta

from mnemic.model import ExpandedQuery, MemoryRetrievalResult
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from mnemic.observability.telemetry import shortened
from mnemic.reporting.description import hidden
from mnemic.reporting.logs import logger
from mnemic.repository import Repository

FILTER_ONLY = "[filter-only]"

_log = logger("mnemic.retrieval")


class RetrievalTelemetry:
    """Emits log lines, events and metrics of one agent's retrieval; queries only if permitted.

    Args:
        repository: The agent's memories, their listeners of events, their meter and their clock.
        logs_queries: Whether queries may be shown, if the memories' contents may.
    """

    def __init__(self, repository: Repository, *, logs_queries: bool) -> None:
        self._agent_id = repository.agent_id
        self._events = repository.events
        self._meter = repository.meter
        self._now = repository.now
        self._logs_queries = logs_queries and repository.logs_content

    def opened(self) -> None:
        """Log that retrieval is ready."""
        _log.info("Memory retrieval service initialized for agent %s", self._agent_id)

    def hit_cache(self) -> None:
        """Log a cache hit."""
        _log.debug("Cache hit for retrieval query, returning cached results")

    async def retrieved(self, result: MemoryRetrievalResult, milliseconds: float) -> None:
        """Log, publish and measure a completed query."""
        count = len(result.results)
        self._meter.retrieval(milliseconds, count, from_cache=result.from_cache)
        if not count:
            _log.warning("Retrieval returned no results for query '%s'", self._line(result))
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "Retrieved %d/%d memories for query '%s' in %.1fms",
                count,
                result.total_matches,
                self._line(result),
                milliseconds,
            )
        if self._events.has_listeners(MemoryRetrievalCompletedEvent):
            event = MemoryRetrievalCompletedEvent(
                agent_id=self._agent_id,
                query=self._event_query(result.original_query),
                result_count=count,
                total_matches=result.total_matches,
                from_cache=result.from_cache,
                retrieval_time=timedelta(milliseconds=milliseconds),
                timestamp=self._now(),
            )
            await self._events.publish(event)

    async def expanded(self, expansion: ExpandedQuery, *, is_used: bool) -> None:
        """Log and publish an expansion, used or not."""
        if not is_used:
            _log.warning(
                "Query expansion confidence low (%.2f), using original query", expansion.confidence
            )
        elif _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "Expanded query '%s' to '%s' (+%d terms)",
                self._shown(expansion.original),
                self._shown(expansion.expanded),
                len(expansion.added_terms),
            )
        if self._events.has_listeners(QueryExpandedEvent):
            event = QueryExpandedEvent(
                agent_id=self._agent_id,
                original_query=self._event_query(expansion.original),
                expanded_query=self._event_query(expansion.expanded),
                terms_added=len(expansion.added_terms),
                confidence=expansion.confidence,
                timestamp=self._now(),
            )
            await self._events.publish(event)

    def expansion_failed(self, error: Exception) -> None:
        """Log a failed expansion without the error's text, which may contain the query."""
        _log.warning("Query expansion failed (%s), using original query", type(error).__name__)

    def suggestion_failed(self, error: Exception) -> None:
        """Log a failed suggestion without the error's text, which may contain the conversation."""
        _log.warning("Suggesting queries failed (%s), none is suggested", type(error).__name__)

    async def augmented(self, query: str | None, items: int, tokens: int) -> None:
        """Log and publish memories added to a context window."""
        self._meter.augmented()
        _log.debug("Augmented context with %d retrieved memories (%d tokens)", items, tokens)
        if self._events.has_listeners(ContextAugmentedEvent):
            event = ContextAugmentedEvent(
                agent_id=self._agent_id,
                query=FILTER_ONLY if query is None else self._event_query(query),
                items_added=items,
                tokens_added=tokens,
                timestamp=self._now(),
            )
            await self._events.publish(event)

    def _line(self, result: MemoryRetrievalResult) -> str:
        return self._shown(result.original_query)

    def _shown(self, query: str) -> str:
        return shortened(query) if self._logs_queries else hidden(query)

    def _event_query(self, query: str) -> str | None:
        return shortened(query) if self._logs_queries else None
