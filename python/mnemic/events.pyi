from mnemic.observability.events import CircuitChangedEvent as CircuitChangedEvent
from mnemic.observability.events import ContextAugmentedEvent as ContextAugmentedEvent
from mnemic.observability.events import Events as Events
from mnemic.observability.events import HypothesesRetrievedEvent as HypothesesRetrievedEvent
from mnemic.observability.events import Listener as Listener
from mnemic.observability.events import MemoryForgottenEvent as MemoryForgottenEvent
from mnemic.observability.events import MemoryQuotaWarningEvent as MemoryQuotaWarningEvent
from mnemic.observability.events import MemoryRepeatedEvent as MemoryRepeatedEvent
from mnemic.observability.events import (
    MemoryRetrievalCompletedEvent as MemoryRetrievalCompletedEvent,
)
from mnemic.observability.events import MemoryRetrievedEvent as MemoryRetrievedEvent
from mnemic.observability.events import MemorySearchCompletedEvent as MemorySearchCompletedEvent
from mnemic.observability.events import MemoryStoredEvent as MemoryStoredEvent
from mnemic.observability.events import MemoryUpdatedEvent as MemoryUpdatedEvent
from mnemic.observability.events import QueryExpandedEvent as QueryExpandedEvent
from mnemic.observability.events import (
    RetrievalPolicyCompletedEvent as RetrievalPolicyCompletedEvent,
)
from mnemic.observability.events import RetrievalPolicyFailedEvent as RetrievalPolicyFailedEvent
