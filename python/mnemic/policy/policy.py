"""The retrieval policy: `RetrievalPolicy`, and its awaited form."""

import time

from mnemic.model import validation
from mnemic.policy.breaker import CircuitBreaker, Timer
from mnemic.policy.conditions import Trigger
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.engine import PolicyEngine
from mnemic.policy.limits import RateLimiter
from mnemic.policy.payload import RetrievalPayload
from mnemic.policy.request import RetrievalRequest
from mnemic.policy.settings import AdminMemorySettings
from mnemic.policy.telemetry import RetrievalPolicyStats
from mnemic.protocols import TokenCounter
from mnemic.reporting.description import must_be
from mnemic.reporting.near_names import names_arguments
from mnemic.repository import Searchable, checked_memory
from mnemic.threads.sync_bridge import sync_method
from mnemic.threads.twins import Twin


@names_arguments
class PolicyBase(Twin):
    """The parts of both forms; for the arguments see `RetrievalPolicy`."""

    def __init__(
        self,
        memory: Searchable,
        config: RetrievalConfig = RetrievalConfig(),  # noqa: B008 # pyright: ignore[reportCallInDefaultInitializer] - it is immutable
        *,
        settings: AdminMemorySettings | None = None,
        counter: TokenCounter | None = None,
        limiter: RateLimiter | None = None,
        breaker: CircuitBreaker | None = None,
        clock: Timer | None = None,
    ) -> None:
        memory = checked_memory(memory)
        validation.optional_function("clock", clock)
        self._engine = PolicyEngine(
            memory.repository,
            memory.scope,
            _active(config, settings),
            counter=None if counter is None else validation.capable("counter", counter, "count"),
            clock=time.monotonic if clock is None else clock,
            limiter=None if limiter is None else validation.capable("limiter", limiter, "acquire"),
            breaker=_checked_breaker(breaker),
        )

    @property
    def config(self) -> RetrievalConfig:
        """The configuration, with the administrator's settings."""
        return self._engine.config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._engine.scope})"


@names_arguments
class AsyncRetrievalPolicy(PolicyBase):
    """The awaited form of `RetrievalPolicy`, for any event loop; for the arguments see there."""

    @property
    def sync(self) -> "RetrievalPolicy":
        """The same policy with plain methods; the same object each time."""
        return self._other_form(RetrievalPolicy)

    async def run(self, request: RetrievalRequest) -> RetrievalPayload:
        """Return the memories that belong to a message, as a payload for a prompt.

        The order of the steps: trigger, search, threshold, redaction, deduplication, interleaving,
        clipping, budget. Values that come from the chat raise nothing: the metadata of the payload
        has the reason where there are no memories.

        Args:
            request: The message, and whose memories may belong to it.

        Returns:
            The payload; `payload.prompt` is the text for the system prompt.

        Raises:
            InvalidArgumentError: If it is no `RetrievalRequest`, or names another user, project or
                session than the policy's memory is bound to.
            FilterError: If its filter is invalid.
            EmbedderRequiredError: If the configuration searches by meaning alone, and there is no
                embedder.
            LicenseRestrictionError: If the license policy does not allow it.
        """
        return await self._engine.run(request)

    async def trigger(self, request: RetrievalRequest) -> Trigger:
        """Return whether `run` would search for a request, and why; nothing is searched."""
        return await self._engine.trigger(request)

    async def stats(self) -> RetrievalPolicyStats:
        """Return statistics since construction, over both forms."""
        return self._engine.stats()


class RetrievalPolicy(PolicyBase):
    """Turns a message of a chat into a bounded block of memories for the system prompt.

    Example:
        >>> from mnemic import Memory
        >>> from mnemic.policy import RetrievalPolicy, RetrievalRequest
        >>> memory = Memory(":memory:", embedder=None)
        >>> added = memory.add("Alice cycles to work on a red bike.", user_id="alice")
        >>> policy = RetrievalPolicy(memory)
        >>> request = RetrievalRequest("Which bike?", user_id="alice", session_id="monday")
        >>> policy.run(request).prompt.splitlines()[3]
        '- Alice cycles to work on a red bike. (confidence: 0.30)'

    Nothing is stored, no access is counted, and no language model is called. Methods may be called
    from several threads at once, and run in the caller's thread.

    Args:
        memory: A memory, by any interface, or a scoped one; its scope applies to every run.
        config: The configuration.
        settings: An administrator's settings, which override the configuration.
        counter: Token counter; an estimate by script unless given.
        limiter: Limits the searches of each user, such as `FixedWindow` or `TokenBucket`; no limit
            unless given.
        breaker: Refuses searches after repeated failures; a `CircuitBreaker` of the policy's own
            unless given.
        clock: Gives the seconds of durations and of the policy's own circuit breaker.

    Raises:
        InvalidArgumentError: If an argument is not of its type, or the settings do not go with the
            configuration.
    """

    @property
    def aio(self) -> AsyncRetrievalPolicy:
        """The same policy with coroutine methods; the same object each time."""
        return self._other_form(AsyncRetrievalPolicy)

    run = sync_method(AsyncRetrievalPolicy.run)
    trigger = sync_method(AsyncRetrievalPolicy.trigger)
    stats = sync_method(AsyncRetrievalPolicy.stats)


def _checked_breaker(breaker: object) -> CircuitBreaker | None:
    if breaker is None or isinstance(breaker, CircuitBreaker):
        return breaker
    raise must_be("breaker", "a mnemic.policy.CircuitBreaker or None", breaker)


def _active(config: object, settings: object) -> RetrievalConfig:
    if not isinstance(config, RetrievalConfig):
        raise must_be("config", "a mnemic.policy.RetrievalConfig", config)
    if settings is None:
        return config
    if not isinstance(settings, AdminMemorySettings):
        raise must_be("settings", "mnemic.policy.AdminMemorySettings or None", settings)
    return settings.applied_to(config)
