"""Statistics of memories, and the users of an agent."""

import msgspec

from mnemic.model import LongTermMemoryStats, Scope, UserUsage, validation
from mnemic.repository.parts import Part
from mnemic.store.operations import ScopeStatistics, Users
from mnemic.threads.sync_bridge import run_blocking


class Statistics(Part):
    """Counts the memories of one agent."""

    async def stats(self, scope: Scope) -> LongTermMemoryStats:
        """Return statistics of a scope; figures of the embedder with all users alone."""
        self._limits.require_storing()
        now = self._now()
        stored = await run_blocking(
            lambda: self._store.read(ScopeStatistics(scope, now=now)), self._store
        )
        if not stored.stored_entries:
            hint = await self._user_hints.of("stats", scope)
            stored = msgspec.structs.replace(stored, hint=hint)
        used = self._limits.usage(scope)
        if used is not None:
            stored = msgspec.structs.replace(
                stored, storage_bytes_used=used.size, storage_bytes_limit=used.limit
            )
        embedder = self._models.embedder
        if embedder is None or not scope.all_users:
            return stored
        return msgspec.structs.replace(
            stored,
            average_embedding_time_ms=embedder.calls.average_ms,
            total_embeddings_generated=embedder.calls.embedded,
        )

    async def users(self, limit: int, offset: int, prefix: str | None) -> list[UserUsage]:
        """Return the users of the agent who have memories; see `Store.users`."""
        self._limits.require_storing()
        validation.limit("limit", limit)
        validation.whole("offset", offset)
        if prefix is not None:
            validation.text("prefix", prefix)
        now, agent_id = self._now(), self._agent_id
        return await run_blocking(
            lambda: self._store.read(
                Users(agent_id, now=now, limit=limit, offset=offset, prefix=prefix)
            ),
            self._store,
        )
