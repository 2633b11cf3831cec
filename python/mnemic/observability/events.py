"""Events of memories and their listeners."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from mnemic.errors import InvalidArgumentError
from mnemic.model import MemoryType
from mnemic.records import Record
from mnemic.reporting.description import failure, must_be, quoted
from mnemic.reporting.logs import logger
from mnemic.threads.locks import Lock
from mnemic.threads.sync_bridge import awaited

_log = logger(__name__)


class _AgentEvent(Record, frozen=True, kw_only=True):
    """What happened to an agent's memories."""

    agent_id: str


class MemoryStoredEvent(_AgentEvent, frozen=True, kw_only=True):
    """A memory was stored.

    Attributes:
        agent_id: The agent.
        entry_id: The memory's id.
        type: The memory's type.
        importance: From 0 to 1.
        content_length: In characters.
        was_encrypted: Whether its content is encrypted.
        embedding_time: Duration of its embedding; an equal share of that of a batch; 0 for a given
            vector.
        timestamp: Time of storing.
    """

    entry_id: UUID
    type: MemoryType
    importance: float
    content_length: int
    was_encrypted: bool
    embedding_time: timedelta
    timestamp: datetime


class MemoryRetrievedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A memory was retrieved by its id.

    Attributes:
        agent_id: The agent.
        entry_id: The memory's id.
        type: Its type.
        was_decrypted: Whether its content is encrypted in the store.
        timestamp: Time of the retrieval.
    """

    entry_id: UUID
    type: MemoryType
    was_decrypted: bool
    timestamp: datetime


class MemoryRepeatedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A memory was stored that repeats one returned lately, with `on_recalled="flag"`.

    Attributes:
        agent_id: The agent.
        entry_id: The new memory's id.
        repeats: Id of the memory that it repeats, of the same user.
        timestamp: Time of storing.
    """

    entry_id: UUID
    repeats: UUID
    timestamp: datetime


class MemoryUpdatedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A memory was changed.

    Attributes:
        agent_id: The agent.
        entry_id: The memory's id.
        type: Its type after the change.
        content_changed: Whether the update has a content.
        timestamp: Time of the change.
    """

    entry_id: UUID
    type: MemoryType
    content_changed: bool
    timestamp: datetime


class MemoryForgottenEvent(_AgentEvent, frozen=True, kw_only=True):
    """A memory was deleted, permanently or not.

    Attributes:
        agent_id: The agent.
        entry_id: The memory's id.
        permanent: Whether it was deleted permanently.
        timestamp: Time of the deletion.
        evicted: Whether it was deleted to make space for another memory, by `when_full="evict"`.
    """

    entry_id: UUID
    permanent: bool
    timestamp: datetime
    evicted: bool = False


class MemorySearchCompletedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A search was completed.

    Attributes:
        agent_id: The agent.
        query: The query, cut to 50 characters; None unless queries may be shown (`log_content`),
            and for memories similar to a sensitive one.
        search_type: "semantic", "hybrid", "keyword", "similar", "recent" or "important".
        result_count: Number of results.
        search_time: Duration, embedding included.
        timestamp: Time of completion.
    """

    query: str | None
    search_type: str = "semantic"
    result_count: int
    search_time: timedelta
    timestamp: datetime


class MemoryQuotaWarningEvent(_AgentEvent, frozen=True, kw_only=True):
    """An agent's contents exceeded 80, 90 or 95 % of the quota.

    Attributes:
        agent_id: The agent.
        current_usage: Bytes of content stored.
        limit: Bytes allowed.
        percent_used: Stored ÷ allowed · 100.
        timestamp: Time of the write.
    """

    current_usage: int
    limit: int
    percent_used: float
    timestamp: datetime


class MemoryRetrievalCompletedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A query of the retrieval service was completed.

    Attributes:
        agent_id: The agent.
        query: The query, cut to 50 characters, "" without a query; None unless queries may be shown
            (`log_content`).
        result_count: Number of results.
        total_matches: Number of matches.
        from_cache: Whether the result came from the cache.
        retrieval_time: Duration.
        timestamp: Time of completion.
    """

    query: str | None
    result_count: int
    total_matches: int
    from_cache: bool
    retrieval_time: timedelta
    timestamp: datetime


class ContextAugmentedEvent(_AgentEvent, frozen=True, kw_only=True):
    """Memories were added to a context window.

    Attributes:
        agent_id: The agent.
        query: The query, cut to 50 characters, "[filter-only]" without a query; None unless queries
            may be shown.
        items_added: Number of memories.
        tokens_added: Number of their tokens, as the window counts.
        timestamp: Time of addition.
    """

    query: str | None
    items_added: int
    tokens_added: int
    timestamp: datetime


class QueryExpandedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A query was expanded, or the expansion was discarded for its low confidence.

    Attributes:
        agent_id: The agent.
        original_query: The given query, cut to 50 characters; None unless queries may be shown.
        expanded_query: With the added terms, cut as well; None as above.
        terms_added: Number of added terms.
        confidence: From 0 to 1.
        timestamp: Time of the expansion.
    """

    original_query: str | None
    expanded_query: str | None
    terms_added: int
    confidence: float
    timestamp: datetime


class RetrievalPolicyCompletedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A run of a retrieval policy has a result.

    Attributes:
        agent_id: The agent.
        query: The message, cut to 50 characters; None unless queries may be shown (`log_content`).
        result_count: Number of memories in the payload.
        tokens_used: Tokens of the prompt block.
        dedup_ratio: Duplicates ÷ candidates · 100; None without candidates, and from the cache.
        from_cache: Whether the payload is an earlier one of an identical request.
        degraded: Whether the embedder failed, so that the search was one by keywords.
        latency_ms: Duration.
        timestamp: Time of completion.
    """

    query: str | None
    result_count: int
    tokens_used: int
    dedup_ratio: float | None
    from_cache: bool
    degraded: bool
    latency_ms: float
    timestamp: datetime


class RetrievalPolicyFailedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A run of a retrieval policy has no result of its own.

    Attributes:
        agent_id: The agent.
        query: The message, cut to 50 characters; None unless queries may be shown (`log_content`).
        code: Code of the error, such as "TIMEOUT".
        fallback: What was returned in its place: "cache" is an earlier payload, "skip" and "empty"
            are none.
        age: Seconds since that payload was made; None without one.
        latency_ms: Duration.
        timestamp: Time of completion.
    """

    query: str | None
    code: str
    fallback: str
    age: float | None
    latency_ms: float
    timestamp: datetime


class CircuitChangedEvent(_AgentEvent, frozen=True, kw_only=True):
    """The circuit breaker of a retrieval policy has another state.

    Attributes:
        agent_id: The agent.
        before: State before: "closed", "open" or "half_open".
        after: State after.
        timestamp: Time at which the event is published, at the end of a run.
    """

    before: str
    after: str
    timestamp: datetime


class HypothesesRetrievedEvent(_AgentEvent, frozen=True, kw_only=True):
    """A turn of a HyDE engine ended; calls that get its kept result publish nothing.

    Attributes:
        agent_id: The agent.
        result_count: Number of memories.
        failed_stage: The stage that failed: "ready", "hypotheses", "embedding", "search",
            "expansion", "lineages" or "turn"; None if none did.
        partial: Whether there are memories though a stage failed.
        latency_ms: Duration.
        timestamp: Time of the end.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
    """

    result_count: int
    failed_stage: str | None
    partial: bool
    latency_ms: float
    timestamp: datetime
    stale_since: datetime | None = None


Event = TypeVar("Event", bound=msgspec.Struct)
Listener = Callable[[Event], Awaitable[object] | object]
"""A function or a coroutine function of one event."""


class Events:
    """Calls listeners for each event, one after the other in the order of subscription.

    A listener may be a function or a coroutine function; it is called before the operation's call
    returns, and delays it. A failing listener is logged and has no other effect. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: dict[type[Any], tuple[Listener[Any], ...]] = {}

    def subscribe(self, kind: type[Event], listener: Listener[Event]) -> Callable[[], None]:
        """Call a listener with every event of a kind from now on.

        Args:
            kind: The class of the events.
            listener: A function or a coroutine function of one event.

        Returns:
            A function that ends the subscription; repeated calls have no effect.

        Raises:
            InvalidArgumentError: If the kind is not an event of this module, or the listener is not
                callable.
        """
        kinds: list[type[Any]] = _AgentEvent.__subclasses__()
        if not isinstance(kind, type) or kind not in kinds:
            known = ", ".join(sorted(each.__name__ for each in kinds))
            raise InvalidArgumentError(f"kind must be one of {known}, got {_name_of(kind)}")
        if not callable(listener):
            raise must_be("listener", "a function", listener, show=quoted)
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
        """Return whether a kind has listeners, so that events without any need not be made.

        Args:
            kind: The class of the events.
        """
        return isinstance(kind, type) and bool(self._listeners.get(kind))

    async def publish(self, event: msgspec.Struct) -> None:
        """Call the listeners of an event.

        Args:
            event: The event.
        """
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
