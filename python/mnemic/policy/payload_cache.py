"""Cache of payloads: for identical requests within a minute, and for when the search fails."""

from collections import OrderedDict
from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from sys import getsizeof
from typing import Generic, NamedTuple, TypeVar

from mnemic.model.payload import PayloadMemory
from mnemic.policy.payload import RetrievalPayload
from mnemic.reporting.description import hidden
from mnemic.store.change_listeners import ChangedUser
from mnemic.threads.locks import InnerLock

Payload = TypeVar("Payload")

CACHED_PAYLOADS = 1024
"""Maximum number of cached payloads."""

CACHED_BYTES = 16 * 1024 * 1024
"""Maximum bytes of all cached payloads."""

USER_SHARE = 8
"""One user's payloads are at most 1/n of all, in number and in bytes."""


class PayloadKey(NamedTuple):
    """Everything that determines a payload, beside the memories themselves.

    Attributes:
        user: Agent and user.
        request: Everything else: project, session, message, filters and configuration.
    """

    user: ChangedUser
    request: tuple[str | None, ...]

    def __repr__(self) -> str:
        return f"PayloadKey({self.user!r}, {hidden(self.request)})"


class CachedPayload(NamedTuple, Generic[Payload]):
    """A payload with its validity.

    Attributes:
        payload: The payload.
        revision: Number of the user's last change when the search began.
        computed_at: Time at which the search began.
        expires_at: Time at which the first memory of the user expires; None is never.
        size: Estimated bytes.
    """

    payload: Payload
    revision: int
    computed_at: datetime
    expires_at: datetime | None
    size: int

    def __repr__(self) -> str:
        return f"CachedPayload({self.size} bytes of {self.computed_at.isoformat()})"


class Computation:
    """A search in progress.

    Attributes:
        user: Agent and user.
        is_outdated: Whether the user's memories have changed since it began.
    """

    __slots__ = ("is_outdated", "user")

    def __init__(self, user: ChangedUser) -> None:
        self.user = user
        self.is_outdated = False


class PayloadCache(Generic[Payload]):
    """Caches payloads for a time, until any memory of their user is changed by this process.

    A change by this process drops the payloads of its user at once, also without a lookup, and
    keeps out those that are being computed. A change by another process is seen by its number, the
    revision, which takes a read of the store; a lookup without one may return a payload that
    another process has outdated, never one older than the time to live. A payload is dropped when
    a memory of its user expires.

    The oldest payloads make space. No user's are dropped for another's as long as they are less
    than the largest part. Safe for threads and event loops.

    Args:
        ttl: Maximum age.
        size: Maximum number of payloads.
        max_bytes: Maximum bytes of all payloads, by estimate; 0 keeps none.
    """

    def __init__(
        self, ttl: timedelta, size: int = CACHED_PAYLOADS, max_bytes: int = CACHED_BYTES
    ) -> None:
        self._ttl = ttl
        self._size = size
        self._max_bytes = max_bytes
        self._lock = InnerLock()
        self._entries: OrderedDict[PayloadKey, CachedPayload[Payload]] = OrderedDict()
        self._users: dict[ChangedUser, _Part] = {}
        self._bytes = 0
        self._computing: dict[ChangedUser, list[Computation]] = {}

    def __len__(self) -> int:
        """Return the number of cached payloads, outdated ones included."""
        return len(self._entries)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} payloads, {self._bytes} bytes)"

    @property
    def bytes(self) -> int:
        """Bytes of the cached payloads, by estimate."""
        return self._bytes

    def get(
        self, key: PayloadKey, now: datetime, revision: int | None = None
    ) -> CachedPayload[Payload] | None:
        """Return the payload of a key, if it is valid at a time.

        Args:
            key: The key.
            now: The time.
            revision: Number of the user's last change, if known; a payload of another one is
                dropped.
        """
        with self._lock:
            self._drop_old(now)
            cached = self._entries.get(key)
            if cached is None:
                return None
            is_changed = revision is not None and cached.revision != revision
            if is_changed or not self._is_valid(cached, now):
                self._drop(key)
                return None
            return cached

    @contextmanager
    def computing(self, user: ChangedUser) -> Generator[Computation, None, None]:
        """Track changes of a user's memories during a search, which begins after this call."""
        computation = Computation(user)
        with self._lock:
            self._computing.setdefault(user, []).append(computation)
        try:
            yield computation
        finally:
            with self._lock:
                left = [each for each in self._computing[user] if each is not computation]
                self._computing[user] = left
                if not left:
                    del self._computing[user]

    def put(
        self, computation: Computation, key: PayloadKey, cached: CachedPayload[Payload]
    ) -> None:
        """Insert the payload of a search, unless it is outdated or too large."""
        with self._lock:
            self._drop_old(cached.computed_at)
            is_too_large = cached.size > self._max_bytes // USER_SHARE
            if computation.is_outdated or is_too_large or self._ttl <= timedelta():
                return
            self._drop(key)
            self._entries[key] = cached
            part = self._users.setdefault(key.user, _Part())
            part.keys[key] = None
            part.bytes += cached.size
            self._bytes += cached.size
            self._evict_others(part)

    def drop_users(self, changed: Collection[ChangedUser]) -> None:
        """Drop the payloads of users whose memories have changed; a listener of the store."""
        with self._lock:
            for user in changed:
                for computation in self._computing.get(user, ()):
                    computation.is_outdated = True
                part = self._users.get(user)
                for key in [] if part is None else list(part.keys):
                    self._drop(key)

    def _is_valid(self, cached: CachedPayload[Payload], now: datetime) -> bool:
        is_young = timedelta() <= now - cached.computed_at <= self._ttl
        return is_young and (cached.expires_at is None or now < cached.expires_at)

    def _drop_old(self, now: datetime) -> None:
        """Drop payloads that are too old, so that no content stays for longer than it serves."""
        while self._entries:
            key, oldest = next(iter(self._entries.items()))
            if now - oldest.computed_at <= self._ttl:
                return
            self._drop(key)

    def _evict_others(self, part: "_Part") -> None:
        max_count, max_bytes = max(1, self._size // USER_SHARE), self._max_bytes // USER_SHARE
        while len(part.keys) > max_count or part.bytes > max_bytes:
            self._drop(next(iter(part.keys)))
        while len(self._entries) > self._size:
            self._drop_first(max(self._users.values(), key=lambda each: len(each.keys)))
        while self._bytes > self._max_bytes:
            self._drop_first(max(self._users.values(), key=lambda each: each.bytes))

    def _drop_first(self, part: "_Part") -> None:
        self._drop(next(iter(part.keys)))

    def _drop(self, key: PayloadKey) -> None:
        cached = self._entries.pop(key, None)
        if cached is None:
            return
        part = self._users[key.user]
        del part.keys[key]
        part.bytes -= cached.size
        self._bytes -= cached.size
        if not part.keys:
            del self._users[key.user]


class _Part:
    """The payloads of one user, oldest first."""

    __slots__ = ("bytes", "keys")

    def __init__(self) -> None:
        self.keys: OrderedDict[PayloadKey, None] = OrderedDict()
        self.bytes = 0


def bytes_of(payload: RetrievalPayload) -> int:
    """Return the estimated bytes of a payload; the configuration is shared by all."""
    memories, dropped = payload.memories, payload.metadata.dropped
    return (
        _PAYLOAD_BYTES
        + _MEMORY_BYTES * len(memories)
        + _DROPPED_BYTES * len(dropped)
        + sum(map(_text_bytes, memories))
    )


def _text_bytes(memory: PayloadMemory) -> int:
    texts = memory.content, memory.session_id, memory.message_id, memory.role, memory.speaker
    ids = len(memory.provenance.duplicate_ids)
    return sum(getsizeof(text) for text in texts if text is not None) + _ID_BYTES * ids


_PAYLOAD_BYTES = 1024
_MEMORY_BYTES = 1024
_DROPPED_BYTES = 512
_ID_BYTES = 128
"""Bytes of records beside their texts, with their ids, times and numbers; rounded up."""
