"""The events of a memory, to subscribe to with `memory.events.subscribe(kind, listener)`.

Each is a frozen record. `Events` describes subscription, order and failing listeners.
"""

from mnemic.observability.events import (
    ContextAugmentedEvent,
    Events,
    Listener,
    MemoryForgottenEvent,
    MemoryQuotaWarningEvent,
    MemoryRetrievalCompletedEvent,
    MemoryRetrievedEvent,
    MemorySearchCompletedEvent,
    MemoryStoredEvent,
    MemoryUpdatedEvent,
    QueryExpandedEvent,
)

__all__ = [
    "ContextAugmentedEvent",
    "Events",
    "Listener",
    "MemoryForgottenEvent",
    "MemoryQuotaWarningEvent",
    "MemoryRetrievalCompletedEvent",
    "MemoryRetrievedEvent",
    "MemorySearchCompletedEvent",
    "MemoryStoredEvent",
    "MemoryUpdatedEvent",
    "QueryExpandedEvent",
]
