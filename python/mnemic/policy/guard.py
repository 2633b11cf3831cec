"""The guard around a search: rate limit, circuit breaker, cache, errors and their fallbacks.

The cache of payloads serves identical requests within a minute, and searches that fail.
"""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import attrgetter
from sys import getsizeof
from typing import Final, NamedTuple

from mnemic.errors import EntryNotFoundError
from mnemic.model import Scope
from mnemic.model.filter import canonical, references
from mnemic.model.marks import Marks
from mnemic.model.payload import PayloadMemory
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.limits import CircuitBreaker, RateLimiter
from mnemic.policy.payload import (
    COLLECTION_NOT_FOUND,
    RATE_LIMITED,
    UNAVAILABLE,
    RetrievalError,
    RetrievalPayload,
    error_of,
    query_error,
)
from mnemic.policy.request import MET, NO_MEMORIES, RetrievalRequest, Trigger
from mnemic.policy.request import RATE_LIMITED as IS_LIMITED
from mnemic.policy.run import Retriever
from mnemic.policy.telemetry import PolicyTelemetry
from mnemic.protocols import TokenCounter
from mnemic.reporting.description import hidden
from mnemic.repository import Repository
from mnemic.store.changes import ChangedUser
from mnemic.threads.locks import InnerLock
from mnemic.threads.single_flight import Bounds, SingleFlightCache
from mnemic.threads.sync_bridge import run_blocking

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
        if now - self._oldest > self._ttl:
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
        if cached.computed_at - self._oldest > self._ttl:
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


class PolicyRun(NamedTuple):
    """One request on its way.

    Attributes:
        request: The request.
        scope: The scope of its user and project, within that of the policy.
        started: When it began, by the policy's timer.
        deadline: When its search gives up, in seconds of `time.monotonic()`; None is never.
    """

    request: RetrievalRequest
    scope: Scope
    started: float
    deadline: float | None


class Outcome(NamedTuple):
    """The outcome of a guarded search.

    Attributes:
        payload: What was found, or an earlier payload of an identical request; None if neither.
        trigger: Whether the search was to be made.
        error: Why there is no result of its own.
        age: Seconds since the payload was made, if it is an earlier one.
    """

    payload: RetrievalPayload | None = None
    trigger: Trigger = MET
    error: RetrievalError | None = None
    age: float | None = None


class Guard(Retriever):
    """Admits searches, and returns a fallback for those that fail or are not admitted.

    The steps: query, rate limit, circuit breaker, cache, search. A failure is an error of the
    table, and the fallback is an earlier payload of the identical request, at most as old as the
    configuration permits; without one it is the error's own. Payloads with sensitive memories are
    not cached, nor are degraded, partial and stale ones; while the store cannot be read, earlier
    ones are a fallback alone. A cancelled search changes nothing here but the allowance that it
    took.

    Args:
        repository: The agent's memories.
        config: The configuration, with the administrator's settings.
        counter: Token counter; an estimate by script unless given.
        limiter: Limits the searches of each user; None is no limit.
        breaker: Refuses searches after repeated failures; an attribute too.

    Attributes:
        telemetry: Reports runs, causes of errors, and changes of the circuit breaker.
    """

    def __init__(
        self,
        repository: Repository,
        config: RetrievalConfig,
        counter: TokenCounter | None,
        limiter: RateLimiter | None,
        breaker: CircuitBreaker,
    ) -> None:
        super().__init__(repository, config, counter)
        self.telemetry = PolicyTelemetry(repository)
        self.breaker = breaker
        self._limiter = limiter
        self._cache = PayloadCache(timedelta(seconds=config.cache_ttl))
        repository.shared.store.watch(self._cache.drop_users)
        breaker.watch(self.telemetry.circuit_changes.append)

    def is_limited(self, scope: Scope) -> bool:
        """Return whether the limiter would refuse a search now; False if it has no `check`."""
        check = getattr(self._limiter, "check", None)
        return check is not None and not check(scope.user_id)

    def search_scope(self, run: PolicyRun) -> Scope:
        """Return the memories that are ranked: those of a session, where only these are wanted."""
        is_bound = self._config.same_session_only or run.scope.session_id is not None
        return run.scope.narrowed(session_id=run.request.session_id) if is_bound else run.scope

    async def run(self, run: PolicyRun) -> Outcome:
        """Return the outcome of a search.

        Args:
            run: The request, with the scope of its user and project.

        Raises:
            InvalidArgumentError: If an argument of the program is wrong; see `error_of`.
        """
        ranked = self.search_scope(run)
        error = query_error(run.request.message, self._config.max_query_length)
        if error is not None:
            return self._fallback(None, error)
        key = self._key(run.request, run.scope)
        limited = None if self._limiter is None else self._limited(self._limiter, key, run.scope)
        if limited is not None:
            return limited
        permit = self.breaker.admit()
        if permit is None:
            return self._fallback(key, UNAVAILABLE)
        with permit, self._cache.computing((run.scope.agent_id, run.scope.user_id)) as computation:
            work = partial(self._attempt, computation, key, run, ranked)
            try:
                outcome = await run_blocking(work, self.repository)
            except Exception as failure:
                error = error_of(failure, self._config.timeout)
                if error is None:
                    raise
                if error is COLLECTION_NOT_FOUND:
                    permit.succeeded()
                else:
                    permit.failed()
                return self._fallback(key, error, failure)
            if outcome.payload is not None and outcome.age is None:
                permit.succeeded()  # else the embedder was not called, and may be down still
            return outcome

    def _attempt(
        self, computation: object, key: PayloadKey | None, run: PolicyRun, ranked: Scope
    ) -> Outcome:
        """Read the cache, then search, and keep what is found; runs in the caller's thread."""
        by_meaning = self._config.search_type != "keyword"
        has_embedder = self.repository.shared.models.embedder is not None
        self.begin(by_meaning=by_meaning and has_embedder)
        freshness, now = self.repository.freshness, self.repository.now()
        stands = freshness.position_and_revision(run.scope, run.deadline)
        revision = None if stands is None else stands[1]
        if key is not None and revision is not None:
            cached = self._cache.get(key, now, revision)
            if cached is not None:
                return Outcome(cached.payload, age=cached.age(now))
        payload = self._searched(run, ranked)
        if payload is None:
            return Outcome(trigger=NO_MEMORIES)
        # Only now the index contains all the memories of the payload.
        expires_at = freshness.next_expiry(run.scope, now)
        if key is not None and revision is not None and Marks.read(payload.metadata).is_lasting:
            size = bytes_of(payload) + sum(map(getsizeof, key.request))
            made = CachedPayload(payload, revision, now, expires_at, size)
            self._cache.put(computation, key, made)
        return Outcome(payload)

    def _searched(self, run: PolicyRun, ranked: Scope) -> RetrievalPayload | None:
        """Search and pack; None if the user has no memories.

        Raises:
            EntryNotFoundError: If the last of them was deleted meanwhile.
        """
        finder = self.repository.finder
        if not finder.has_memories(run.scope, run.deadline):
            return None
        payload = self.retrieve(ranked, run.request, run.deadline)
        is_empty = not payload.metadata.total_results
        if is_empty and not finder.has_memories(run.scope, run.deadline):
            raise EntryNotFoundError("the user's last memory was deleted during the search")
        return payload

    def _fallback(
        self, key: PayloadKey | None, error: RetrievalError, cause: Exception | None = None
    ) -> Outcome:
        """Report an error; return an earlier payload of the identical request, or the error alone.

        Nothing is read but memory. A collection that is gone has no earlier payload.
        """
        self.telemetry.failed(error, cause)
        trigger = IS_LIMITED if error is RATE_LIMITED else MET
        now = self.repository.now()
        has_none = key is None or error is COLLECTION_NOT_FOUND
        cached = None if key is None or has_none else self._cache.get(key, now)
        if cached is None:
            return Outcome(trigger=trigger, error=error)
        return Outcome(cached.payload, trigger, error, cached.age(now))

    def _limited(
        self, limiter: RateLimiter, key: PayloadKey | None, scope: Scope
    ) -> Outcome | None:
        """Return the fallback of a search that the limiter refuses."""
        try:
            if limiter.acquire(scope.user_id):
                return None
        except Exception as failure:
            error = error_of(failure)
            if error is None:
                raise
            return self._fallback(key, error, failure)
        return self._fallback(key, RATE_LIMITED)

    def _key(self, request: RetrievalRequest, scope: Scope) -> PayloadKey | None:
        """Return the key of a request; None if its payload must not be cached.

        Sensitive memories are in no cache. Accesses are in no revision, so a payload whose filter
        tests them could be outdated unnoticed.
        """
        config = self._config
        expression = request.expression(include_sensitive=config.include_sensitive)
        by_access = expression is not None and references(
            expression, "access_count", "last_accessed_at"
        )
        if config.include_sensitive or by_access or not config.cache_ttl:
            return None
        is_by_session = config.same_session_only or config.session_boost != 1
        is_bound = scope.session_id is not None
        key_fields = (
            scope.project_id,
            request.session_id if is_by_session or is_bound else None,
            request.message,
            None if expression is None else canonical(expression),
            request.time_zone,
        )
        return PayloadKey((scope.agent_id, scope.user_id), key_fields)
