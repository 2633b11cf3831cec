"""Revisions of users, by which a cached answer is known to be current."""

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

    A store that is notified of changes is asked once for each user and change of the agent.

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
            None where a search may find an older state: while the store cannot be read, and for the
            moment in which it has not received a change yet. What is found then must not be cached.

        Raises:
            DeadlineExceededError: If the deadline passes.
            StoreUnavailableError: If the store cannot be read for longer than searches may be
                stale.
        """
        if not self._store.notifies_changes:
            return self._store.position_and_revision(scope)  # a kept answer is given at any time
        if self._is_stale:  # at once: the search that follows waits for a lost connection
            return None
        known = self._known_position()
        revision = self._revision_at(known.seq, scope)
        return self._read(scope, deadline) if revision is None else (known, revision)

    def _read(self, scope: Scope, deadline: float | None) -> tuple[LogPosition, int] | None:
        try:
            position, revision = self._store.position_and_revision(scope, deadline=deadline)
        except StoreUnavailableError:
            self._known_position()  # which raises once it is too old
            if self._is_stale:
                return None
            raise
        with self._lock:
            self._revisions[_user(scope)] = position.seq, revision
            self._revisions.move_to_end(_user(scope))
            if len(self._revisions) > self._size:
                self._revisions.popitem(last=False)
        is_heard_of = self._known_position().seq >= position.seq
        return (position, revision) if is_heard_of else None

    def _revision_at(self, seq: int, scope: Scope) -> int | None:
        """Return the revision of a user after a change of the agent, if it is kept."""
        with self._lock:
            at, revision = self._revisions.get(_user(scope), (None, 0))
        return revision if at == seq else None

    def _known_position(self) -> LogPosition:
        return self._store.known_position(self._agent_id)

    @property
    def _is_stale(self) -> bool:
        return self._store.stale_since is not None


def _user(scope: Scope) -> _User:
    return scope.user_id, scope.all_users
