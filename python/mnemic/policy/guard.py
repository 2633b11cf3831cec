"""The guard around a search: rate limit, circuit breaker, cache, errors and their fallbacks."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from sys import getsizeof
from typing import NamedTuple

from mnemic.model import Scope
from mnemic.model.canonical_filter import canonical
from mnemic.model.filter import references
from mnemic.model.marks import Marks
from mnemic.policy.breaker import CircuitBreaker, CircuitState, Permit
from mnemic.policy.conditions import MET, NO_MEMORIES, Trigger
from mnemic.policy.conditions import RATE_LIMITED as IS_LIMITED
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.errors import (
    COLLECTION_NOT_FOUND,
    RATE_LIMITED,
    UNAVAILABLE,
    RetrievalError,
    error_of,
    query_error,
)
from mnemic.policy.limits import RateLimiter
from mnemic.policy.payload import RetrievalPayload
from mnemic.policy.payload_cache import (
    CachedPayload,
    PayloadCache,
    PayloadKey,
    bytes_of,
)
from mnemic.policy.request import RetrievalRequest
from mnemic.policy.telemetry import PolicyTelemetry
from mnemic.repository import Repository, Service
from mnemic.threads.sync_bridge import run_blocking

SearchCall = Callable[[], RetrievalPayload | None]
"""Searches and packs, in the caller's thread; None if the user has no memories."""


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


class _Validity(NamedTuple):
    """Of when a payload is.

    Attributes:
        revision: Number of the user's last change then; None if the store could not be read.
        began: The time before anything was read.
        expires_at: Time at which a memory of the user expires next.
    """

    revision: int | None
    began: datetime
    expires_at: datetime | None


class Guard(Service):
    """Admits searches, and returns a fallback for those that fail or are not admitted.

    The steps: query, rate limit, circuit breaker, cache, search. A failure is an error of the
    table, and the fallback is an earlier payload of the identical request, at most as old as the
    configuration permits; without one it is the error's own. Payloads with sensitive memories are
    not cached, nor are degraded, partial and stale ones; while the store cannot be read, earlier
    ones are a fallback alone. A cancelled search changes nothing here but the allowance that it
    took.

    Args:
        repository: The agent's memories.
        config: The configuration.
        telemetry: Reports causes of errors, and changes of the circuit breaker.
        limiter: Limits the searches of each user; None is no limit.
        breaker: Refuses searches after repeated failures.
    """

    def __init__(
        self,
        repository: Repository,
        config: RetrievalConfig,
        telemetry: PolicyTelemetry,
        *,
        limiter: RateLimiter | None,
        breaker: CircuitBreaker,
    ) -> None:
        super().__init__(repository)
        self._config = config
        self._telemetry = telemetry
        self._limiter = limiter
        self._breaker = breaker
        self._cache = PayloadCache(timedelta(seconds=config.cache_ttl))
        repository.watch(self._cache.drop_users)
        breaker.watch(telemetry.circuit_changed)

    @property
    def circuit(self) -> CircuitState:
        """State of the circuit breaker."""
        return self._breaker.state

    def is_limited(self, scope: Scope) -> bool:
        """Return whether the limiter would refuse a search now; False if it has no `check`."""
        check = getattr(self._limiter, "check", None)
        return check is not None and not check(scope.user_id)

    async def run(
        self,
        request: RetrievalRequest,
        scope: Scope,
        search: SearchCall,
        deadline: float | None = None,
    ) -> Outcome:
        """Return the outcome of a search.

        Args:
            request: The request.
            scope: The scope of its user and project.
            search: Searches for it.
            deadline: Time limit of the reads before the search, in seconds of `time.monotonic()`;
                None is no limit.

        Raises:
            InvalidArgumentError: If an argument of the program is wrong; see `error_of`.
        """
        error = query_error(request.message, self._config.max_query_length)
        if error is not None:
            self._telemetry.failed(error, None)
            return Outcome(error=error)
        key = self._key(request, scope)
        error = self._limit_error(scope)
        if error is not None:
            return self._fallback(key, error)
        permit = self._breaker.admit()
        if permit is None:
            self._telemetry.failed(UNAVAILABLE, None)
            return self._fallback(key, UNAVAILABLE)
        user = (scope.agent_id, scope.user_id)
        with permit, self._cache.computing(user) as computation:
            work = partial(self._attempt, key, scope, search, deadline)
            return await self._search(key, work, permit, computation)

    async def _search(
        self,
        key: PayloadKey | None,
        work: Callable[[], tuple[Outcome, _Validity | None]],
        permit: Permit,
        computation: object,
    ) -> Outcome:
        try:
            outcome, validity = await run_blocking(work, self.repository)
        except Exception as failure:
            error = error_of(failure, self._config.timeout)
            if error is None:
                raise
            self._telemetry.failed(error, failure)
            if error is COLLECTION_NOT_FOUND:
                permit.succeeded()
            else:
                permit.failed()
            return self._fallback(key, error)
        if outcome.payload is not None and validity is not None:
            permit.succeeded()  # else the embedder was not called, and may be down still
            self._keep(computation, key, outcome.payload, validity)
        return outcome

    def _attempt(
        self, key: PayloadKey | None, scope: Scope, search: SearchCall, deadline: float | None
    ) -> tuple[Outcome, _Validity | None]:
        """Read the cache, then search; runs in the caller's thread.

        Returns:
            The outcome, and of when it is if a search was made.
        """
        by_meaning = self._config.search_type != "keyword"
        self._require(by_meaning=by_meaning and self.repository.embedder is not None)
        finder, now = self.repository.finder, self.repository.now()
        stands = finder.position_and_revision(scope, deadline)
        revision = None if stands is None else stands[1]
        if key is not None and revision is not None:
            cached = self._cache.get(key, now, revision)
            if cached is not None:
                return Outcome(cached.payload, age=cached.age(now)), None
        payload = search()
        # Only now the index contains all the memories of the payload.
        validity = _Validity(revision, now, finder.next_expiry(scope, now))
        return Outcome(payload, NO_MEMORIES if payload is None else MET), validity

    def _keep(
        self,
        computation: object,
        key: PayloadKey | None,
        payload: RetrievalPayload,
        validity: _Validity,
    ) -> None:
        revision, began, expires_at = validity
        if key is not None and revision is not None and Marks.read(payload.metadata).is_lasting:
            size = bytes_of(payload) + sum(map(getsizeof, key.request))
            cached = CachedPayload(payload, revision, began, expires_at, size)
            self._cache.put(computation, key, cached)

    def _fallback(self, key: PayloadKey | None, error: RetrievalError) -> Outcome:
        """Return an earlier payload of the identical request; the error alone if there is none.

        Nothing is read but memory. A collection that is gone has no earlier payload.
        """
        trigger = IS_LIMITED if error is RATE_LIMITED else MET
        now = self.repository.now()
        is_gone = key is None or error is COLLECTION_NOT_FOUND
        cached = None if key is None or is_gone else self._cache.get(key, now)
        if cached is None:
            return Outcome(trigger=trigger, error=error)
        return Outcome(cached.payload, trigger, error, cached.age(now))

    def _limit_error(self, scope: Scope) -> RetrievalError | None:
        if self._limiter is None:
            return None
        try:
            if self._limiter.acquire(scope.user_id):
                return None
        except Exception as failure:
            error = error_of(failure)
            if error is None:
                raise
            self._telemetry.failed(error, failure)
            return error
        self._telemetry.failed(RATE_LIMITED, None)
        return RATE_LIMITED

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
        )
        return PayloadKey((scope.agent_id, scope.user_id), key_fields)
