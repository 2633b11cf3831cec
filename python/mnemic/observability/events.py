"""What happens to memories, told to whoever listens."""

import logging
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from mnemic.description import failure, quoted
from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryType
from mnemic.sync_bridge import awaited

_log = logging.getLogger(__name__)


class MemoryStoredEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A memory was stored (R071).

    Attributes:
        agent_id: Whose it is.
        entry_id: Its id.
        type: Its type.
        importance: From 0 to 1.
        content_length: Characters (C099).
        was_encrypted: Whether its content was sealed.
        embedding_time_ms: What embedding took; of a batch, an equal share; 0 for a given vector.
        timestamp: When it was stored.
    """

    agent_id: str
    entry_id: UUID
    type: MemoryType
    importance: float
    content_length: int
    was_encrypted: bool
    embedding_time_ms: float
    timestamp: datetime


class MemoryRetrievedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A memory was retrieved by its id (R072)."""

    agent_id: str
    entry_id: UUID
    type: MemoryType
    was_decrypted: bool
    timestamp: datetime


class MemoryUpdatedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A memory was changed (C098).

    Attributes:
        agent_id: Whose it is.
        entry_id: Its id.
        type: Its type after the change.
        content_changed: Whether a new content was named.
        timestamp: When it was changed.
    """

    agent_id: str
    entry_id: UUID
    type: MemoryType
    content_changed: bool
    timestamp: datetime


class MemoryForgottenEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A memory was forgotten, or deleted for good (R073)."""

    agent_id: str
    entry_id: UUID
    permanent: bool
    timestamp: datetime


class MemorySearchCompletedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A search was answered.

    Attributes:
        agent_id: Whose memories were searched.
        query: What was looked for, cut to 50 characters; None unless queries may be shown
            (`log_content`), and for memories similar to a sensitive one.
        search_type: "semantic", "hybrid", "keyword", "similar", "recent" or "important".
        result_count: How many memories were found.
        search_time_ms: What the search took, embedding included.
        timestamp: When it was answered.
    """

    agent_id: str
    query: str | None
    search_type: str = "semantic"
    result_count: int
    search_time_ms: float
    timestamp: datetime


class MemoryQuotaWarningEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's contents passed 80, 90 or 95 % of what they may take (R075, C086)."""

    agent_id: str
    current_usage: int
    limit: int
    percent_used: float
    timestamp: datetime


class MemoryRetrievalCompletedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A query of the retrieval service was answered (R177).

    Attributes:
        agent_id: Whose memories were searched.
        query: What was looked for, cut to 50 characters, "" without a query; None unless queries
            may be shown (`log_content`).
        result_count: How many memories were returned.
        total_matches: How many there are.
        from_cache: Whether the answer was known.
        retrieval_time: What it took.
        timestamp: When it was answered.
    """

    agent_id: str
    query: str | None
    result_count: int
    total_matches: int
    from_cache: bool
    retrieval_time: timedelta
    timestamp: datetime


class ContextAugmentedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Memories were added to a context window (R178).

    Attributes:
        agent_id: Whose memories.
        query: What was looked for, cut to 50 characters, "[filter-only]" without a query; None
            unless queries may be shown.
        items_added: How many memories.
        tokens_added: How many tokens they take, as the window counts (C018).
        timestamp: When they were added.
    """

    agent_id: str
    query: str | None
    items_added: int
    tokens_added: int
    timestamp: datetime


class QueryExpandedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A query was expanded, or would have been with more confidence (R179, C023).

    Attributes:
        agent_id: Whose memories are searched.
        original_query: As it was asked, cut to 50 characters; None unless queries may be shown.
        expanded_query: With the terms added, cut as well; None as above.
        terms_added: How many.
        confidence: From 0 to 1.
        timestamp: When it was expanded.
    """

    agent_id: str
    original_query: str | None
    expanded_query: str | None
    terms_added: int
    confidence: float
    timestamp: datetime


_KINDS: tuple[type[Any], ...] = (
    MemoryStoredEvent,
    MemoryRetrievedEvent,
    MemoryUpdatedEvent,
    MemoryForgottenEvent,
    MemorySearchCompletedEvent,
    MemoryQuotaWarningEvent,
    MemoryRetrievalCompletedEvent,
    ContextAugmentedEvent,
    QueryExpandedEvent,
)

Event = TypeVar("Event", bound=msgspec.Struct)
Listener = Callable[[Event], Awaitable[object] | object]


class Events:
    """Tells listeners what happened, one after the other in the order they came.

    A listener may be a function or a coroutine function; it is called before the operation's call
    returns, and delays it. One that fails is logged and changes nothing. Safe to use from many
    threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: dict[type[Any], tuple[Listener[Any], ...]] = {}

    def subscribe(self, kind: type[Event], listener: Listener[Event]) -> Callable[[], None]:
        """Call a listener with every event of a kind from now on.

        Returns:
            A function that ends it; harmless if repeated.

        Raises:
            InvalidArgumentError: If the kind is no event of this module, or the listener cannot be
                called.
        """
        if kind not in _KINDS:
            known = ", ".join(sorted(each.__name__ for each in _KINDS))
            raise InvalidArgumentError(f"kind must be one of {known}, got {_name_of(kind)}")
        if not callable(listener):
            raise InvalidArgumentError(f"listener must be a function, got {quoted(listener)}")
        with self._lock:
            self._listeners[kind] = (*self._listeners.get(kind, ()), listener)

        def unsubscribe() -> None:
            with self._lock:
                left = list(self._listeners.get(kind, ()))
                if listener in left:
                    left.remove(listener)
                self._listeners[kind] = tuple(left)

        return unsubscribe

    def has_listeners(self, kind: type[msgspec.Struct]) -> bool:
        """Return whether anybody listens, so that events nobody hears need not be made."""
        return bool(self._listeners.get(kind))

    async def publish(self, event: msgspec.Struct) -> None:
        """Tell an event to its listeners."""
        for listener in self._listeners.get(type(event), ()):
            try:
                outcome = listener(event)
                if isinstance(outcome, Awaitable):  # inspect takes 12 ms to import
                    await awaited(outcome)
            except Exception as error:  # noqa: BLE001 - the operation has happened
                # Its message and its traceback may quote what the listener looked up.
                _log.error("A listener of %s failed: %s", type(event).__name__, failure(error))


def _name_of(kind: object) -> str:
    return kind.__name__ if isinstance(kind, type) else quoted(kind)
