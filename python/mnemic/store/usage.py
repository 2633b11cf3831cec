"""The part of the contract of stores that counts what agents and users store."""

from datetime import datetime
from typing import Protocol

from mnemic.model import LongTermMemoryStats, Scope, UserUsage


class UsageReads(Protocol):
    """Numbers of entries and their bytes; see `Store` for the promises."""

    def used_bytes(self, agent_id: str) -> int:
        """Return the bytes of the agent's contents, including deleted entries."""
        ...

    def used_by_user(self, agent_id: str, user_id: str | None) -> int:
        """Return the same for one user; None is the entries without a user."""
        ...

    def stored_entries(self, scope: Scope) -> int:
        """Return the number of entries of a scope in any state; deleted ones count until purged."""
        ...

    def users(
        self, agent_id: str, *, prefix: str | None, limit: int, offset: int, now: datetime
    ) -> list[UserUsage]:
        """Return the users who have entries in any state, no user first, then by code points.

        Args:
            agent_id: The agent.
            prefix: Only users whose ids begin with it; None is all.
            limit: Maximum number of users.
            offset: Number of first users to skip.
            now: Entries expired by now are not active.
        """
        ...

    def stats(
        self, scope: Scope, *, now: datetime, deadline: float | None = None
    ) -> LongTermMemoryStats:
        """Return statistics of a scope as of one moment, without quota and embedder figures."""
        ...
