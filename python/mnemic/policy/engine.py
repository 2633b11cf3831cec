"""The engine of a retrieval policy: trigger, search, steps and payload, for both interfaces."""

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import msgspec

from mnemic.errors import EntryNotFoundError
from mnemic.model import Scope
from mnemic.model.deadline import TimeLimit
from mnemic.policy.breaker import CircuitBreaker, Timer
from mnemic.policy.conditions import MET, NO_MEMORIES, RATE_LIMITED, Trigger, unmet_condition
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.errors import RetrievalError
from mnemic.policy.guard import Guard, Outcome
from mnemic.policy.limits import RateLimiter
from mnemic.policy.payload import RetrievalMetadata, RetrievalPayload
from mnemic.policy.request import RetrievalRequest
from mnemic.policy.run import RetrievalOutcome, Retriever
from mnemic.policy.telemetry import PolicyTelemetry, RetrievalPolicyStats
from mnemic.protocols import TokenCounter
from mnemic.reporting.description import must_be
from mnemic.repository import Repository
from mnemic.threads.sync_bridge import run_blocking

Result = TypeVar("Result")


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


class PolicyEngine:
    """Runs requests over one agent's memories.

    Args:
        repository: The agent's memories.
        scope: No memory outside it is found.
        config: The configuration, with the administrator's settings.
        counter: Token counter; an estimate by script unless given.
        clock: Gives the seconds of durations and of the circuit breaker.
        limiter: Limits the searches of each user; None is no limit.
        breaker: Refuses searches after repeated failures; one of its own unless given.
    """

    def __init__(
        self,
        repository: Repository,
        scope: Scope,
        config: RetrievalConfig,
        *,
        counter: TokenCounter | None = None,
        clock: Timer = time.monotonic,
        limiter: RateLimiter | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.repository = repository
        self.scope = scope
        self.config = config
        self.lock = threading.Lock()
        self._clock = clock
        self._retriever = Retriever(repository, config, counter)
        self._telemetry = PolicyTelemetry(
            repository.agent_id,
            repository.events,
            repository.meter,
            repository.now,
            logs_content=repository.logs_content,
        )
        breaker = CircuitBreaker(clock=clock) if breaker is None else breaker
        self._guard = Guard(repository, config, self._telemetry, limiter=limiter, breaker=breaker)

    async def run(self, request: RetrievalRequest) -> RetrievalPayload:
        """Return the payload of a request."""
        run = self._started(request)
        unmet = unmet_condition(request)
        if unmet is not None:
            return self._without_memories(run, unmet)
        scope = self._search_scope(run)
        outcome = await self._guard.run(
            request, run.scope, lambda: self._search(run, scope), run.deadline
        )
        payload = self._payload_of(run, outcome)
        if outcome.trigger is not NO_MEMORIES:
            await self._telemetry.ran(request.message, payload.metadata)
        return payload

    def stats(self) -> RetrievalPolicyStats:
        """Return the statistics so far."""
        return self._telemetry.stats(self._guard.circuit)

    async def trigger(self, request: RetrievalRequest) -> Trigger:
        """Return whether retrieval would run for a request."""
        return await self._trigger(self._started(request))

    def _started(self, request: object) -> PolicyRun:
        if not isinstance(request, RetrievalRequest):
            raise must_be("request", "a RetrievalRequest", request)
        started = self._clock()
        deadline = TimeLimit.after(self.config.timeout, "raise").deadline
        scope = self.scope.narrowed(request.user_id, request.project_id)
        return PolicyRun(request, scope, started, deadline)

    async def _trigger(self, run: PolicyRun) -> Trigger:
        unmet = unmet_condition(run.request)
        if unmet is not None:
            return unmet
        self._search_scope(run)  # it refuses another session than a bound one
        if self._guard.is_limited(run.scope):
            return RATE_LIMITED
        has_memories = await self._work(
            lambda: self._retriever.has_memories(run.scope, run.deadline)
        )
        return MET if has_memories else NO_MEMORIES

    def _search(self, run: PolicyRun, scope: Scope) -> RetrievalPayload | None:
        """Search and pack, in the caller's thread; None if the user has no memories.

        Args:
            run: The run.
            scope: The memories that are ranked: those of a session, where only these are wanted.

        Raises:
            EntryNotFoundError: If the last of them was deleted meanwhile.
        """
        if not self._retriever.has_memories(run.scope, run.deadline):
            return None
        retrieved = self._retriever.retrieve(scope, run.request, run.deadline)
        if not retrieved.total and not self._retriever.has_memories(run.scope, run.deadline):
            raise EntryNotFoundError("the user's last memory was deleted during the search")
        return self._payload(retrieved)

    def _search_scope(self, run: PolicyRun) -> Scope:
        is_bound = self.config.same_session_only or run.scope.session_id is not None
        return run.scope.narrowed(session_id=run.request.session_id) if is_bound else run.scope

    def _payload(self, retrieved: RetrievalOutcome) -> RetrievalPayload:
        packed, found = retrieved.packed, retrieved.found
        metadata = RetrievalMetadata(
            trigger=MET,
            config=retrieved.config,
            total_results=retrieved.total,
            included_results=len(packed.kept),
            total_tokens=packed.tokens,
            applied_filters=packed.applied,
            dropped=packed.dropped,
            search_type=retrieved.search_type,
            degraded=found.degraded,
            partial=found.partial,
            approximate=found.approximate,
            stale_since=found.stale_since,
        )
        return RetrievalPayload(memories=packed.kept, metadata=metadata)

    def _payload_of(self, run: PolicyRun, outcome: Outcome) -> RetrievalPayload:
        """Return the payload of an outcome, with the figures of this run."""
        given = outcome.payload
        if given is None:
            return self._without_memories(run, outcome.trigger, outcome.error)
        metadata = msgspec.structs.replace(
            given.metadata,
            trigger=outcome.trigger,
            query_time=self._milliseconds(run),
            error=outcome.error,
            from_cache=outcome.age is not None,
            age=outcome.age,
        )
        return msgspec.structs.replace(given, metadata=metadata)

    def _without_memories(
        self, run: PolicyRun, trigger: Trigger, error: RetrievalError | None = None
    ) -> RetrievalPayload:
        metadata = RetrievalMetadata(
            trigger=trigger,
            config=self._retriever.active_config(),
            query_time=self._milliseconds(run),
            error=error,
            stale_since=self.repository.finder.stale_since if trigger is NO_MEMORIES else None,
        )
        return RetrievalPayload(memories=(), metadata=metadata)

    def _milliseconds(self, run: PolicyRun) -> float:
        return (self._clock() - run.started) * 1000

    async def _work(self, work: Callable[[], Result]) -> Result:
        return await run_blocking(work, self.repository)
