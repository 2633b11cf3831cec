"""What the parts of a repository share."""

from typing import NamedTuple

from mnemic.model import Scope
from mnemic.observability.telemetry import MemoryTelemetry
from mnemic.reporting.habits import NotPickled
from mnemic.repository.accesses import AccessCounter
from mnemic.repository.current_model import CurrentModel
from mnemic.repository.entry_cache import EntryCache
from mnemic.repository.index_set import IndexSet
from mnemic.repository.limits import Limits
from mnemic.repository.settings import Settings
from mnemic.repository.user_hints import UserHints
from mnemic.store import Store


class Shared(NamedTuple):
    """What one agent's parts share.

    Attributes:
        store: Where the memories are.
        agent_id: Whose memories.
        settings: The options of the memory; its embedder is that of `models`.
        time_zone: The name of its time zone, for calls that name none.
        indexes: Rank the memories, and follow the store.
        models: Model of the vectors; its embedder embeds texts.
        cache: Holds memories read lately.
        limits: Check the license and the quotas.
        accesses: Counts accesses, and writes them before a filter tests them.
        telemetry: Publishes and logs.
        user_hints: Say what a call without a user leaves out.
    """

    store: Store
    agent_id: str
    settings: Settings
    time_zone: str
    indexes: IndexSet
    models: CurrentModel
    cache: EntryCache
    limits: Limits
    accesses: AccessCounter
    telemetry: MemoryTelemetry
    user_hints: UserHints


class Part(NotPickled):
    """A part of a repository, which works on one agent's memories.

    Args:
        shared: What it shares with the others.
    """

    _not_pickled = (
        "what works on an open memory cannot be pickled or copied deeply; make another one where "
        "it is needed"
    )

    def __init__(self, shared: Shared) -> None:
        self._store = shared.store
        self._agent_id = shared.agent_id
        self._everyone = Scope(shared.agent_id, all_users=True)
        self._now = shared.settings.clock
        self._indexes = shared.indexes
        self._active = shared.indexes.active
        self._models = shared.models
        self._cache = shared.cache
        self._limits = shared.limits
        self._accesses = shared.accesses
        self._telemetry = shared.telemetry
        self._user_hints = shared.user_hints
