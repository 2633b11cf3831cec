"""The guard around a search: rate limit, circuit breaker, cache, errors and their fallbacks."""

from datetime import timedelta
from functools import partial
from sys import getsizeof
from typing import NamedTuple

from mnemic.errors import EntryNotFoundError
from mnemic.model import Scope
from mnemic.model.canonical_filter import canonical
from mnemic.model.filter import references
from mnemic.model.marks import Marks
from mnemic.policy.breaker import CircuitBreaker, CircuitState
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
from mnemic.policy.run import Retriever
from mnemic.policy.telemetry import PolicyTelemetry
from mnemic.protocols import TokenCounter
from mnemic.repository import Repository
from mnemic.threads.sync_bridge import run_blocking


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
        telemetry: Reports causes of errors, and changes of the circuit breaker.
        limiter: Limits the searches of each user; None is no limit.
        breaker: Refuses searches after repeated failures.
    """

    def __init__(
        self,
        repository: Repository,
        config: RetrievalConfig,
        counter: TokenCounter | None,
        telemetry: PolicyTelemetry,
        *,
        limiter: RateLimiter | None,
        breaker: CircuitBreaker,
    ) -> None:
        super().__init__(repository, config, counter)
        self._telemetry = telemetry
        self._limiter = limiter
        self._breaker = breaker
        self._cache = PayloadCache(timedelta(seconds=config.cache_ttl))
        repository.shared.store.watch(self._cache.drop_users)
        breaker.watch(telemetry.circuit_changes.append)

    @property
    def circuit(self) -> CircuitState:
        """State of the circuit breaker."""
        return self._breaker.state

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
        limited = self._limited(key, run.scope)
        if limited is not None:
            return limited
        permit = self._breaker.admit()
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
        self._telemetry.failed(error, cause)
        trigger = IS_LIMITED if error is RATE_LIMITED else MET
        now = self.repository.now()
        has_none = key is None or error is COLLECTION_NOT_FOUND
        cached = None if key is None or has_none else self._cache.get(key, now)
        if cached is None:
            return Outcome(trigger=trigger, error=error)
        return Outcome(cached.payload, trigger, error, cached.age(now))

    def _limited(self, key: PayloadKey | None, scope: Scope) -> Outcome | None:
        """Return the fallback of a search that the limiter refuses."""
        try:
            if self._limiter is None or self._limiter.acquire(scope.user_id):
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
