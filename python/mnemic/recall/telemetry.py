"""Log lines and metrics of recall."""

import logging
from datetime import datetime

from mnemic.observability.telemetry import SHOWN_QUERY
from mnemic.reporting.description import hidden
from mnemic.reporting.logs import logger
from mnemic.repository import ServiceTelemetry

_log = logger("mnemic.recall")


class RecallTelemetry(ServiceTelemetry):
    """Emits log lines and metrics of one agent's recalls; queries only if permitted."""

    def recalled(
        self,
        mode: str,
        query: str,
        count: int,
        milliseconds: float,
        *,
        is_sensitive: bool = False,
    ) -> None:
        """Log and measure a recall by a query; a sensitive query is never shown."""
        self._meter.recalled(mode, milliseconds, count)
        if _log.isEnabledFor(logging.INFO):
            shows = self._shows_queries and not is_sensitive
            _log.info(
                "[MEM:RETRIEVE] Recalled %d memories in %s mode for query '%s' in %.1fms",
                count,
                mode,
                query[:SHOWN_QUERY] if shows else hidden(query),
                milliseconds,
            )

    def recalled_temporal(
        self, count: int, start: datetime | None, end: datetime | None, milliseconds: float
    ) -> None:
        """Log and measure a recall by a time range."""
        self._meter.recalled("Temporal", milliseconds, count)
        _log.info(
            "[MEM:RETRIEVE] Temporal recall found %d memories from %s to %s",
            count,
            "the begin" if start is None else start.isoformat(),
            "now" if end is None else end.isoformat(),
        )
