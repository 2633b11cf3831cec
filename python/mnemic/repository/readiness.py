"""Readiness and freshness of an agent's index, for services that keep what it found."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeAlias
from uuid import UUID

import msgspec

from mnemic.embed.validated import ValidatedEmbedder
from mnemic.errors import (
    DeadlineExceededError,
    EmbeddingError,
    EmbeddingModelMismatchError,
    StoreUnavailableError,
)
from mnemic.model import MemoryEntry, Scope
from mnemic.model.filter import Field, Op, Test
from mnemic.model.ranking import MOST_IMPORTANT
from mnemic.model.rows import State
from mnemic.model.search import Search
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.repository.find import Finder
from mnemic.repository.parts import Part, Shared
from mnemic.store import LogPosition
from mnemic.store.operations import EntriesById, PositionAndRevision
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


class Readiness(Part):
    """Builds the index of one agent's active memories ahead of a search.

    Args:
        shared: What it shares with the others.
        finder: Counts them.
    """

    def __init__(self, shared: Shared, finder: Finder) -> None:
        super().__init__(shared)
        self._finder = finder

    @property
    def embedder(self) -> ValidatedEmbedder | None:
        """The memory's embedder, whose vectors it may still wait for; None without one."""
        return self._models.embedder

    def check_model(self, name: str) -> None:
        """Raise EmbeddingModelMismatchError if a model is not that of the memories' vectors."""
        own = self.embedder
        mine = self._models.now.name if own is None else own.model
        if name == mine:
            return
        opened = "" if own is not None else " (it was opened without an embedder)"
        raise EmbeddingModelMismatchError(
            f"the embedder is of {name!r}, and the memory's vectors are of {mine!r}{opened}; give "
            f"an embedder of {mine!r}, such as memory.embedder, or embed all memories again first, "
            "with memory.reembed(embedder), or Memory(..., embedder=embedder, reembed=True)"
        )

    def build(self, embedder: ValidatedEmbedder) -> int:
        """Apply all changes to the index, and embed all memories without a vector.

        The index of superseded memories, which lead to others, is built too.

        Args:
            embedder: Embeds them if the memory has no embedder.

        Returns:
            The number of memories that still lack a vector.

        Raises:
            EmbeddingError: If there are memories, and none of them has a vector.
            StoreError: If the store cannot be read.
        """
        missing = self._active.embed_all(embedder)
        self._indexes.of(State.INACTIVE).catch_up()
        if not self._has_any_vector() and self._finder.has_memories(self._everyone):
            raise EmbeddingError("no memory has a vector, and the embedder gives none")
        return missing

    def has_vectors(self, scope: Scope, deadline: float | None = None) -> bool:
        """Return whether a scope has active memories, and the agent any vectors.

        Raises:
            DeadlineExceededError: If the deadline passes while changes are read.
        """
        return self._finder.has_memories(scope, deadline) and self._has_any_vector()

    def _has_any_vector(self) -> bool:
        if self._active.own.model.known is None:
            return False
        missing = len(self._active.index.summary().unembedded)
        return not missing or missing < self._finder.active_count(self._everyone)

    def present(
        self, scope: Scope, entries: Iterable[MemoryEntry], now: datetime
    ) -> dict[tuple[str | None, UUID], MemoryEntry]:
        """Return the present state of memories that are neither deleted nor expired.

        While the store cannot be read these are active memories, as the index knows them.

        Returns:
            By user and id, which name a memory in a scope of all users.
        """
        by_user: defaultdict[str | None, list[UUID]] = defaultdict(list)
        for entry in entries:
            by_user[entry.user_id].append(entry.id)
        found: dict[tuple[str | None, UUID], MemoryEntry] = {}
        for user, ids in by_user.items():
            of_user = msgspec.structs.replace(scope, user_id=user, all_users=False)
            read = self._known(of_user, ids) if self._is_stale else self._read(of_user, ids, now)
            found |= {(user, entry.id): entry for entry in read if entry.is_present(now)}
        return found

    @property
    def _is_stale(self) -> bool:
        return self._store.stale_since(self._agent_id) is not None

    def _read(self, scope: Scope, ids: list[UUID], now: datetime) -> list[MemoryEntry]:
        located = self._store.read(EntriesById(scope, ids, now=now, include_deleted=True))
        return [entry for _, entry in located.values()]

    def _known(self, scope: Scope, ids: list[UUID]) -> list[MemoryEntry]:
        among = Test(Field("id"), Op.IN, tuple(ids))
        search = Search(text=None, limit=len(ids), ranking=MOST_IMPORTANT, filters=among)
        return [*self._finder.find(scope, search, is_returned=False).entries.values()]
