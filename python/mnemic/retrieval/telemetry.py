"""Log lines, events and metrics of retrieval."""

import logging
from datetime import timedelta

from mnemic.model import ExpandedQuery, MemoryRetrievalResult
from mnemic.observability.events import (
    ContextAugmentedEvent,
    MemoryRetrievalCompletedEvent,
    QueryExpandedEvent,
)
from mnemic.reporting.logs import logger
from mnemic.repository import ServiceTelemetry

FILTER_ONLY = "[filter-only]"

_log = logger("mnemic.retrieval")


class RetrievalTelemetry(ServiceTelemetry):
    """Emits log lines, events and metrics of one agent's retrieval; queries only if permitted."""

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
            shown = self._in_line(result.original_query)
            _log.warning("Retrieval returned no results for query '%s'", shown)
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "Retrieved %d/%d memories for query '%s' in %.1fms",
                count,
                result.total_matches,
                self._in_line(result.original_query),
                milliseconds,
            )
        await self._publish(
            MemoryRetrievalCompletedEvent,
            query=self._in_event(result.original_query),
            result_count=count,
            total_matches=result.total_matches,
            from_cache=result.from_cache,
            retrieval_time=timedelta(milliseconds=milliseconds),
        )

    async def expanded(self, expansion: ExpandedQuery, *, is_used: bool) -> None:
        """Log and publish an expansion, used or not."""
        if not is_used:
            _log.warning(
                "Query expansion confidence low (%.2f), using original query", expansion.confidence
            )
        elif _log.isEnabledFor(logging.DEBUG):
            _log.debug(
                "Expanded query '%s' to '%s' (+%d terms)",
                self._in_line(expansion.original),
                self._in_line(expansion.expanded),
                len(expansion.added_terms),
            )
        await self._publish(
            QueryExpandedEvent,
            original_query=self._in_event(expansion.original),
            expanded_query=self._in_event(expansion.expanded),
            terms_added=len(expansion.added_terms),
            confidence=expansion.confidence,
        )

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
        await self._publish(
            ContextAugmentedEvent,
            query=FILTER_ONLY if query is None else self._in_event(query),
            items_added=items,
            tokens_added=tokens,
        )
