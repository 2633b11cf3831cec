"""What the parts of a repository share."""

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

import msgspec

from mnemic.errors import MnemicError
from mnemic.index import ListRequest
from mnemic.model import Scope
from mnemic.model.filter import All
from mnemic.model.scope import NO_USER
from mnemic.model.timestamps import to_microseconds
from mnemic.observability.table import HINTED
from mnemic.observability.telemetry import MemoryTelemetry, Telemetry
from mnemic.protocols import Clock
from mnemic.reporting.habits import NotPickled
from mnemic.repository.accesses import AccessCounter
from mnemic.repository.entry_cache import EntryCache
from mnemic.repository.index_sync import IndexSet, IndexSync
from mnemic.repository.limits import Limits
from mnemic.repository.settings import Settings
from mnemic.repository.vector_model import CurrentModel
from mnemic.store import Store
from mnemic.store.operations import EntryCount, Write
from mnemic.threads.sync_bridge import arrived, run_blocking

Result = TypeVar("Result")


class UserHints:
    """Hints for calls of one agent that leave out the memories of users.

    They have neither names nor numbers, and no call with a user gets one.

    Args:
        store: Counts the memories while the index is not loaded.
        active: The index of active memories.
        telemetry: Logs the first hint of each call.
        clock: Gives the time.
    """

    def __init__(self, store: Store, active: IndexSync, telemetry: Telemetry, clock: Clock) -> None:
        self._store = store
        self._active = active
        self._telemetry = telemetry
        self._now = clock
        self._logged: set[str] = set()

    async def of(self, call: str, scope: Scope) -> str | None:
        """Return a hint if a scope has no user, and users have active memories; else None.

        Only those of its project and session count. The index is not brought up to date.

        Args:
            call: Name of the call, for the log.
            scope: Its scope.
        """
        if scope.user_id is not None or scope.all_users:
            return None
        if not await run_blocking(lambda: self._leaves_out(scope), self._store):
            return None
        if call not in self._logged:
            self._logged.add(call)
            self._telemetry.record(HINTED, call=call, hint=NO_USER)
        return NO_USER

    def _leaves_out(self, scope: Scope) -> bool:
        everybody = msgspec.structs.replace(scope, all_users=True)
        return self._count(everybody) > self._count(scope)

    def _count(self, scope: Scope) -> int:
        now = self._now()
        if not self._active.is_loaded:
            return self._store.read(EntryCount(scope, now=now))
        wanted = ListRequest(scope=scope, now=to_microseconds(now), filters=All(()), limit=0)
        return self._active.index.counted(wanted)


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

    @property
    def store_id(self) -> str:
        """What spans call the memory: its agent."""
        return self._agent_id

    async def _write(self, wanted: Write[Result]) -> Result:
        """Carry out a write, and let the index follow."""
        result = await arrived(self._store.write(wanted))
        await self._active.refresh()
        return result


class Erasure(Generic[Result]):
    """The erasure after one write, which begins as soon as it is durable.

    It begins whatever becomes of the caller then: one that is cancelled does not leave plain bytes.

    Args:
        store: Erases them.
        written: The result of the write.
        is_due: Returns for the result whether the write left such bytes.
        is_due_soon: The same of bytes that nobody waits for; None is none.
    """

    def __init__(
        self,
        store: Store,
        written: Future[Result],
        is_due: Callable[[Result], bool],
        is_due_soon: Callable[[Result], bool] | None = None,
    ) -> None:
        self._store = store
        self._written = written
        self._is_due = is_due
        self._is_due_soon = is_due_soon
        self._erased: Future[bool | None] | None = None
        written.add_done_callback(self._begin)

    def _begin(self, written: Future[Result]) -> None:
        if written.cancelled() or written.exception() is not None:
            return
        result = written.result()
        with suppress(MnemicError):  # of a memory that was closed: the last one erases
            if self._is_due(result):
                self._erased = self._store.erase()
            elif self._is_due_soon is not None and self._is_due_soon(result):
                self._store.erase(soon=True)

    async def finish(self) -> None:
        """Wait for the erasure after a write that has succeeded, if there is one."""
        if self._is_due(self._written.result()):  # the callback may not have run yet
            await arrived(self._erased or self._store.erase())
