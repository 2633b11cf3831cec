"""The events of a memory, to subscribe to with `memory.events.subscribe(kind, listener)`.

Each is a frozen record. `Events` describes subscription, order and failing listeners.
"""

from mnemic.observability.events import (
    CircuitChangedEvent,
    ContextAugmentedEvent,
    Events,
    HypothesesRetrievedEvent,
    Listener,
    MemoryForgottenEvent,
    MemoryQuotaWarningEvent,
    MemoryRepeatedEvent,
    MemoryRetrievalCompletedEvent,
    MemoryRetrievedEvent,
    MemorySearchCompletedEvent,
    MemoryStoredEvent,
    MemoryUpdatedEvent,
    QueryExpandedEvent,
    RetrievalPolicyCompletedEvent,
    RetrievalPolicyFailedEvent,
)

__all__ = [
    "CircuitChangedEvent",
    "ContextAugmentedEvent",
    "Events",
    "HypothesesRetrievedEvent",
    "Listener",
    "MemoryForgottenEvent",
    "MemoryQuotaWarningEvent",
    "MemoryRepeatedEvent",
    "MemoryRetrievalCompletedEvent",
    "MemoryRetrievedEvent",
    "MemorySearchCompletedEvent",
    "MemoryStoredEvent",
    "MemoryUpdatedEvent",
    "QueryExpandedEvent",
    "RetrievalPolicyCompletedEvent",
    "RetrievalPolicyFailedEvent",
]
