"""How fresh the memories are that a search sees, for those that keep what they found."""

import time
from collections import OrderedDict
from datetime import datetime
from typing import Final, TypeAlias

from mnemic.errors import DeadlineExceededError, StoreUnavailableError
from mnemic.model import Scope
from mnemic.model.rows import State
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.repository.parts import Part, Shared
from mnemic.store import LogPosition
from mnemic.store.operations import PositionAndRevision
from mnemic.threads.locks import InnerLock

KEPT_USERS: Final = 1024
"""Users whose revisions are kept."""

_User: TypeAlias = tuple[str | None, bool]
"""User and `all_users` of a scope."""


class Freshness(Part):
    """Where one agent's store stands, and the revisions of its users. Thread-safe.

    A remote store is asked for the agent's position each time, and for the revision once for each
    user and change of the agent.

    Args:
        shared: What it shares with the others.
    """

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._lock = InnerLock()
        # By user: number of the change, and revision.
        self._revisions = OrderedDict[_User, tuple[int, int]]()

    @property
    def is_remote(self) -> bool:
        """Whether a look at the latest position is a round trip to a server."""
        return self._store.is_remote

    @property
    def stale_since(self) -> datetime | None:
        """Since when changes may be missing, because the store cannot be read; else None."""
        return self._store.stale_since(self._agent_id)

    def position(self) -> LogPosition:
        """Return the agent's position in its logs, as far as the store has asked."""
        return self._store.known_position(self._agent_id)

    def latest_position(self) -> LogPosition:
        """Return the agent's position in its logs, which a remote store asks its server for."""
        return self._store.latest_position(self._agent_id)

    def next_expiry(
        self, scope: Scope, since: datetime, states: tuple[State, ...] = (State.ACTIVE,)
    ) -> datetime | None:
        """Return when the first memory of a scope's user and of some states expires."""
        now = to_microseconds(since)
        found = [self._indexes.of(state).index.core.next_expiry(scope, now) for state in states]
        first = min((time for time in found if time is not None), default=None)
        return None if first is None else from_microseconds(first)

    def position_and_revision(
        self, scope: Scope, deadline: float | None = None
    ) -> tuple[LogPosition, int] | None:
        """Return the agent's position, and the revision of the scope's user.

        Args:
            scope: The scope.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Returns:
            None where a search may find an older state: while the store cannot be read, or the
            model changes. What is found then must not be cached. Also once the deadline has passed:
            the search that follows decides what becomes of it.

        Raises:
            StoreUnavailableError: If the store cannot be read for longer than searches may be
                stale.
        """
        if self._indexes.is_switching:
            return None  # what is found now is ranked by the old vectors
        if not self._store.is_remote:  # a kept answer is given at any time
            return self._store.read(PositionAndRevision(scope))
        try:
            return self._remote(scope, deadline)
        except DeadlineExceededError:
            return None

    def _remote(self, scope: Scope, deadline: float | None) -> tuple[LogPosition, int] | None:
        begun = time.monotonic()
        latest = self._store.latest_position(self._agent_id, deadline=deadline)
        if self._store.stale_since(self._agent_id, begun) is not None:
            return None
        user = scope.user_id, scope.all_users
        with self._lock:
            at, revision = self._revisions.get(user, (None, 0))
        if at == latest.seq:
            return latest, revision
        try:
            position, revision = self._store.read(PositionAndRevision(scope), deadline=deadline)
        except StoreUnavailableError:
            if self.stale_since is not None:
                return None
            raise
        with self._lock:
            self._revisions[user] = position.seq, revision
            self._revisions.move_to_end(user)
            if len(self._revisions) > KEPT_USERS:
                self._revisions.popitem(last=False)
        return position, revision
