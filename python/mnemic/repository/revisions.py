"""Revisions of users, by which a cached answer is known to be current."""

import time
from collections import OrderedDict
from typing import Final, TypeAlias

from mnemic.errors import StoreUnavailableError
from mnemic.model import Scope
from mnemic.store import LogPosition, Store
from mnemic.threads.locks import InnerLock

KEPT_USERS: Final = 1024

_User: TypeAlias = tuple[str | None, bool]
"""User and `all_users` of a scope."""


class Revisions:
    """The revisions of one agent's users. Thread-safe.

    A remote store is asked for the agent's position each time, and for the revision once for each
    user and change of the agent.

    Args:
        store: Where the memories are.
        agent_id: Whose memories.
        size: Maximum number of users whose revisions are kept.
    """

    def __init__(self, store: Store, agent_id: str, size: int = KEPT_USERS) -> None:
        self._store = store
        self._agent_id = agent_id
        self._size = size
        self._lock = InnerLock()
        # By user: number of the change, and revision.
        self._revisions = OrderedDict[_User, tuple[int, int]]()

    def of(self, scope: Scope, deadline: float | None = None) -> tuple[LogPosition, int] | None:
        """Return the agent's position, and the revision of the scope's user.

        Args:
            scope: The scope.
            deadline: Time limit, in seconds of `time.monotonic()`; None is no limit.

        Returns:
            None where a search may find an older state: while the store cannot be read. What is
            found then must not be cached.

        Raises:
            DeadlineExceededError: If the deadline passes.
            StoreUnavailableError: If the store cannot be read for longer than searches may be
                stale.
        """
        if not self._store.is_remote:
            return self._store.position_and_revision(scope)  # a kept answer is given at any time
        begun = time.monotonic()
        latest = self._store.latest_position(self._agent_id, deadline=deadline)
        if self._store.stale_since(self._agent_id, begun) is not None:
            return None
        revision = self._revision_at(latest.seq, scope)
        return self._read(scope, deadline) if revision is None else (latest, revision)

    def _read(self, scope: Scope, deadline: float | None) -> tuple[LogPosition, int] | None:
        try:
            position, revision = self._store.position_and_revision(scope, deadline=deadline)
        except StoreUnavailableError:
            if self._store.stale_since(self._agent_id) is not None:
                return None
            raise
        with self._lock:
            self._revisions[_user(scope)] = position.seq, revision
            self._revisions.move_to_end(_user(scope))
            if len(self._revisions) > self._size:
                self._revisions.popitem(last=False)
        return position, revision

    def _revision_at(self, seq: int, scope: Scope) -> int | None:
        """Return the revision of a user after a change of the agent, if it is kept."""
        with self._lock:
            at, revision = self._revisions.get(_user(scope), (None, 0))
        return revision if at == seq else None


def _user(scope: Scope) -> _User:
    return scope.user_id, scope.all_users
