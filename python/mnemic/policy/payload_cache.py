"""Cache of payloads: for identical requests within a minute, and for when the search fails."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from sys import getsizeof
from typing import Final, NamedTuple

from mnemic.model.payload import PayloadMemory
from mnemic.policy.payload import RetrievalPayload
from mnemic.reporting.description import hidden
from mnemic.store.changes import ChangedUser
from mnemic.threads.locks import InnerLock
from mnemic.threads.single_flight import Bounds, SingleFlightCache

NEVER: Final = datetime.max.replace(tzinfo=UTC)

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
        request: Everything else: project, session, message, filters, time zone and configuration.
    """

    user: ChangedUser
    request: tuple[str | None, ...]

    def __repr__(self) -> str:
        return f"PayloadKey({self.user!r}, {hidden(self.request)})"


class CachedPayload(NamedTuple):
    """A payload with its validity.

    Attributes:
        payload: The payload.
        revision: Number of the user's last change when the search began.
        computed_at: Time at which the search began.
        expires_at: Time at which the first memory of the user expires; None is never.
        size: Estimated bytes.
    """

    payload: RetrievalPayload
    revision: int
    computed_at: datetime
    expires_at: datetime | None
    size: int

    def age(self, now: datetime) -> float:
        """Return the seconds since the search began."""
        return (now - self.computed_at).total_seconds()

    def __repr__(self) -> str:
        return f"CachedPayload({self.size} bytes of {self.computed_at.isoformat()})"


class PayloadCache:
    """Caches payloads for a time, until any memory of their user is changed by this process.

    A change by this process drops the payloads of its user at once, also without a lookup, and
    keeps out those that are being computed. A change by another process is seen by its number, the
    revision, which takes a read of the store; a lookup without one may return a payload that
    another process has outdated, never one older than the time to live. A payload is dropped when
    a memory of its user expires. Safe for threads and event loops.

    Args:
        ttl: Maximum age.
        size: Maximum number of payloads.
        max_bytes: Maximum bytes of all payloads, by estimate; 0 keeps none.
    """

    def __init__(
        self, ttl: timedelta, size: int = CACHED_PAYLOADS, max_bytes: int = CACHED_BYTES
    ) -> None:
        of_user = max_bytes // USER_SHARE
        self._ttl = ttl
        self._payloads = SingleFlightCache[PayloadKey, CachedPayload](
            Bounds(max(1, size // USER_SHARE), of_user, of_user, size, max_bytes),
            lambda _, cached: cached.size,
            owner_of=attrgetter("user"),
            is_kept=lambda _: ttl > timedelta(),
        )
        self._lock = InnerLock()
        self._computing: dict[object, ChangedUser] = {}
        self._oldest = NEVER

    def __len__(self) -> int:
        """Return the number of cached payloads, outdated ones included."""
        return len(self._payloads)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} payloads, {self._payloads.used_bytes} bytes)"

    def get(
        self, key: PayloadKey, now: datetime, revision: int | None = None
    ) -> CachedPayload | None:
        """Return the payload of a key, if it is valid at a time.

        Args:
            key: The key.
            now: The time.
            revision: Number of the user's last change, if known; a payload of another one is
                dropped.
        """
        self._drop_old(now)
        cached = self._payloads.get(key)
        if cached is None:
            return None
        is_changed = revision is not None and cached.revision != revision
        if is_changed or not self._is_valid(cached, now):
            self._payloads.replace(key, cached, None)
            return None
        return cached

    @contextmanager
    def computing(self, user: ChangedUser) -> Generator[object, None, None]:
        """Track changes of a user's memories during a search, which begins after this call."""
        computation = object()
        self._computing[computation] = user
        try:
            yield computation
        finally:
            self._computing.pop(computation, None)

    def put(self, computation: object, key: PayloadKey, cached: CachedPayload) -> None:
        """Insert the payload of a search, unless a change has outdated it or it is too large."""
        self._drop_old(cached.computed_at)
        with self._lock:
            if computation in self._computing:
                self._payloads.put(key, cached)
                self._oldest = min(self._oldest, cached.computed_at)

    def drop_users(self, changed: Collection[ChangedUser]) -> None:
        """Drop the payloads of users whose memories have changed; a listener of the store."""
        with self._lock:
            for computation, user in list(self._computing.items()):
                if user in changed:
                    self._computing.pop(computation, None)
            for user in changed:
                self._payloads.drop_owner(user)

    def _is_valid(self, cached: CachedPayload, now: datetime) -> bool:
        is_young = timedelta() <= now - cached.computed_at <= self._ttl
        return is_young and (cached.expires_at is None or now < cached.expires_at)

    def _drop_old(self, now: datetime) -> None:
        """Drop payloads that are too old, so that no content stays for longer than it serves."""
        if now - self._oldest <= self._ttl:
            return
        with self._lock:
            times = {key: cached.computed_at for key, cached in self._payloads.items()}
            old = [key for key, at in times.items() if now - at > self._ttl]
            self._payloads.drop(old)
            self._oldest = min((times[key] for key in times.keys() - old), default=NEVER)


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
