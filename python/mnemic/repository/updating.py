"""Changes many memories at once: embed a new content once, write, index, publish."""

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.model import MemoryEntryUpdate, Scope
from mnemic.model.filter import references
from mnemic.observability.telemetry import Telemetry
from mnemic.protocols import Clock
from mnemic.repository.accesses import AccessCounter
from mnemic.repository.index_set import IndexSet
from mnemic.repository.limits import Limits
from mnemic.store import Store
from mnemic.store.values import Selection
from mnemic.sync_bridge import arrived, run_blocking


class Updater:
    """Changes many memories of one agent.

    Args:
        store: Where the memories are.
        embedder: Embeds a new content; None embeds none.
        indexes: Follow the store.
        limits: Check the license and the quota.
        clock: Gives the time.
        telemetry: Reports changes.
        accesses: Are written before a filter tests them.
    """

    def __init__(
        self,
        store: Store,
        embedder: ValidatedEmbedder | None,
        *,
        indexes: IndexSet,
        limits: Limits,
        clock: Clock,
        telemetry: Telemetry,
        accesses: AccessCounter,
    ) -> None:
        self._store = store
        self._embedder = embedder
        self._indexes = indexes
        self._limits = limits
        self._now = clock
        self._telemetry = telemetry
        self._accesses = accesses

    async def update_all(
        self, scope: Scope, selection: Selection, update: MemoryEntryUpdate
    ) -> int:
        """Change the selected memories of a scope, all or none; return their number."""
        self._limits.require_storing()
        if update.is_empty:
            return 0
        await self._accesses.write_for(selection)
        content, embedder, embedded = update.content, self._embedder, None
        if content is not None and embedder is not None:
            (chunks,) = await run_blocking(lambda: embedder.embed_chunked([content]), self._store)
            embedded = embedder.model, chunks
        now = self._now()
        tests_status = selection.expression is not None and references(
            selection.expression, "status"
        )
        written = self._store.update_all(
            scope,
            selection,
            lambda stored: update.applied_to(stored, now),
            embedded,
            now=now,
            quota=self._limits.quota,
            include_archived=update.status is not None or tests_status,
        )
        updated = await arrived(written)
        await self._indexes.active.refresh()
        await self._telemetry.updated_all(updated, content_changed=content is not None)
        await self._limits.warn()
        return len(updated)
