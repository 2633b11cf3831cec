"""The retrieval policy: `RetrievalPolicy`, and its awaited form."""

import time
from typing import ClassVar, Literal, TypeVar, cast

import msgspec
from msgspec.structs import force_setattr

from mnemic.context.budget import InterleavingStrategy, check_ratio
from mnemic.context.redaction import Redaction
from mnemic.errors import InvalidArgumentError
from mnemic.model import validation
from mnemic.model.ranking import SearchType
from mnemic.model.timestamps import checked_timer
from mnemic.policy.config import RetrievalConfig, checked, warn_outside_recommended
from mnemic.policy.guard import Guard, Outcome, PolicyRun
from mnemic.policy.limits import CircuitBreaker, RateLimiter, Timer
from mnemic.policy.payload import RetrievalMetadata, RetrievalPayload
from mnemic.policy.request import (
    MET,
    NO_MEMORIES,
    RATE_LIMITED,
    RetrievalRequest,
    Trigger,
    unmet_condition,
)
from mnemic.policy.telemetry import RetrievalPolicyStats
from mnemic.protocols import TokenCounter
from mnemic.records import NamedFields, Record, with_checked
from mnemic.records.options import OptionsRecord, fields_of
from mnemic.reporting.near_names import names_arguments
from mnemic.repository import Searchable, checked_memory
from mnemic.threads.sync_bridge import Twin, run_blocking, sync_method

Part = TypeVar("Part", bound="_Part")


class _Part(Record, frozen=True, kw_only=True):
    """A part of the settings; options that are None leave the configuration's."""

    _path: ClassVar[str]

    def _check_options(self) -> None:
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        for name, value in given.items():
            if value is not None:
                force_setattr(self, name, checked(f"{self._path}.{name}", value))
        warn_outside_recommended((f"{self._path}.{name}", value) for name, value in given.items())


class RetrievalSettings(_Part, frozen=True, kw_only=True, metaclass=NamedFields):
    """An administrator's settings of the search; None leaves the configuration's.

    Attributes:
        top_k: 1 to 20; see `RetrievalConfig`, also for those that follow.
        clip_sentences: 1 to 5.
        max_tokens: 100 to 3,000.
        search_type: "hybrid", "semantic" or "keyword".
        min_score: 0 to 1, or "auto".
        enable_redaction: Whether texts are redacted.
        custom_redaction_patterns: Regular expressions, or names of known patterns, which are added
            to those of the configuration.

    Raises:
        InvalidArgumentError: If an option is out of range, or a pattern is refused.
    """

    _path: ClassVar[str] = "retrieval"

    top_k: int | None = None
    clip_sentences: int | None = None
    max_tokens: int | None = None
    search_type: SearchType | None = None
    min_score: float | Literal["auto"] | None = None
    enable_redaction: bool | None = None
    custom_redaction_patterns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check every option, and compile the patterns."""
        self._check_options()
        path = f"{self._path}.custom_redaction_patterns"
        given = cast("object", self.custom_redaction_patterns)  # null in JSON is none
        listed = [] if given is None else given
        patterns = tuple(validation.items(path, listed, str, "a regular expression as a str"))
        force_setattr(self, "custom_redaction_patterns", patterns)
        if patterns:
            try:
                Redaction(patterns=patterns)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{path}: {error}") from error

    def redaction(self, given: Redaction) -> Redaction:
        """Return the redaction of a configuration with these settings."""
        is_enabled = given.enabled if self.enable_redaction is None else self.enable_redaction
        new = tuple(each for each in self.custom_redaction_patterns if each not in given.patterns)
        if is_enabled == given.enabled and not new:
            return given
        patterns = (*given.patterns, *new)
        return msgspec.structs.replace(given, enabled=is_enabled, patterns=patterns)


class InterleavingSettings(_Part, frozen=True, kw_only=True, metaclass=NamedFields):
    """An administrator's settings of the order; None leaves the configuration's.

    Attributes:
        strategy: "alternate", "score_first" or "recency_first".
        ratio: Share of the places for the first list, 0 to 1. A strategy without a ratio replaces
            the configuration's ratio too.

    Raises:
        InvalidArgumentError: If an option is out of range.
    """

    _path: ClassVar[str] = "interleaving"

    strategy: InterleavingStrategy | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        """Check both options."""
        self._check_options()
        check_ratio(f"{self._path}.ratio", self.strategy, self.ratio)


class AdminMemorySettings(OptionsRecord, frozen=True, kw_only=True, metaclass=NamedFields):
    """An administrator's settings, which override the configuration of a program.

    Example:
        >>> from mnemic.policy import AdminMemorySettings, RetrievalConfig
        >>> settings = AdminMemorySettings.from_dict({"retrieval": {"topK": 6}})
        >>> settings.applied_to(RetrievalConfig()).top_k
        6

    Attributes:
        retrieval: Settings of the search; a mapping is converted.
        interleaving: Settings of the order; a mapping is converted.

    Raises:
        InvalidArgumentError: If a setting is unknown or out of range; the message has its path,
            such as `retrieval.top_k`, and the range.
    """

    retrieval: RetrievalSettings = RetrievalSettings()
    interleaving: InterleavingSettings = InterleavingSettings()

    def __post_init__(self) -> None:
        """Convert mappings."""
        force_setattr(self, "retrieval", _part(RetrievalSettings, self.retrieval))
        force_setattr(self, "interleaving", _part(InterleavingSettings, self.interleaving))

    def applied_to(self, config: RetrievalConfig) -> RetrievalConfig:
        """Return a configuration with these settings in place of its own.

        Args:
            config: The configuration; it is not changed.

        Raises:
            InvalidArgumentError: If a ratio does not go with the strategy of the other one.
        """
        retrieval, interleaving = self.retrieval, self.interleaving
        names = (name for name in RetrievalSettings.__struct_fields__ if name in _SHARED)
        given = {name: getattr(retrieval, name) for name in names}
        options = {name: value for name, value in given.items() if value is not None}
        if interleaving.strategy is not None:
            options |= {"strategy": interleaving.strategy, "ratio": interleaving.ratio}
        elif interleaving.ratio is not None:
            check_ratio("interleaving.ratio", config.strategy, interleaving.ratio)
            options["ratio"] = interleaving.ratio
        redaction = retrieval.redaction(config.redaction)
        return config.overridden(redaction=redaction, **options)


_SHARED = frozenset(RetrievalConfig.__struct_fields__)


def _part(kind: type[Part], given: object) -> Part:
    return given if isinstance(given, kind) else kind(**fields_of(kind, given, kind._path))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - of this module


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
        if counter is not None:
            validation.capable("counter", counter, "count")
        if limiter is not None:
            validation.capable("limiter", limiter, "acquire")
        if breaker is not None:
            wanted = "a mnemic.policy.CircuitBreaker or None"
            validation.of_kind("breaker", CircuitBreaker, wanted, breaker)
        self._scope, self._time_zone = memory.scope, memory.time_zone
        self._config = _active(config, settings)
        self._clock = time.monotonic if clock is None else checked_timer(clock)
        chosen = CircuitBreaker(clock=self._clock) if breaker is None else breaker
        self._guard = Guard(memory.repository, self._config, counter, limiter, chosen)

    @property
    def config(self) -> RetrievalConfig:
        """The configuration, with the administrator's settings."""
        return self._config

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._scope})"

    def _started(self, given: object) -> PolicyRun:
        request = validation.of_kind("request", RetrievalRequest, "a RetrievalRequest", given)
        if not request.time_zone:
            request = with_checked(request, "time_zone", self._time_zone)
        started, timeout = self._clock(), self._config.timeout
        deadline = None if timeout is None else time.monotonic() + timeout
        scope = self._scope.narrowed(request.user_id, request.project_id)
        return PolicyRun(request, scope, started, deadline)

    def _payload_of(self, run: PolicyRun, outcome: Outcome) -> RetrievalPayload:
        """Return the payload of an outcome, or an empty one, with the figures of this run."""
        payload = outcome.payload
        if payload is None:
            freshness = self._guard.repository.freshness
            metadata = RetrievalMetadata(
                trigger=outcome.trigger,
                config=self._config,
                stale_since=freshness.stale_since if outcome.trigger is NO_MEMORIES else None,
            )
            payload = RetrievalPayload(memories=(), metadata=metadata)
        metadata = msgspec.structs.replace(
            payload.metadata,
            trigger=outcome.trigger,
            query_time=(self._clock() - run.started) * 1000,
            error=outcome.error,
            from_cache=outcome.age is not None,
            age=outcome.age,
        )
        return msgspec.structs.replace(payload, metadata=metadata)


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
        run = self._started(request)
        unmet = unmet_condition(request)
        if unmet is not None:
            return self._payload_of(run, Outcome(trigger=unmet))
        outcome = await self._guard.run(run)
        payload = self._payload_of(run, outcome)
        if outcome.trigger is not NO_MEMORIES:
            await self._guard.telemetry.ran(request.message, payload.metadata)
        return payload

    async def trigger(self, request: RetrievalRequest) -> Trigger:
        """Return whether `run` would search for a request, and why; nothing is searched."""
        run = self._started(request)
        unmet = unmet_condition(run.request)
        if unmet is not None:
            return unmet
        self._guard.search_scope(run)  # it refuses another session than a bound one
        if self._guard.is_limited(run.scope):
            return RATE_LIMITED
        repository = self._guard.repository
        has_memories = await run_blocking(
            lambda: repository.finder.has_memories(run.scope, run.deadline), repository
        )
        return MET if has_memories else NO_MEMORIES

    async def stats(self) -> RetrievalPolicyStats:
        """Return statistics since construction, over both forms."""
        return self._guard.telemetry.stats(self._guard.breaker.state)


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
        '- Alice cycles to work on a red bike.'

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


def _active(config: object, settings: object) -> RetrievalConfig:
    checked = validation.of_kind(
        "config", RetrievalConfig, "a mnemic.policy.RetrievalConfig", config
    )
    if settings is None:
        return checked
    wanted = "mnemic.policy.AdminMemorySettings or None"
    return validation.of_kind("settings", AdminMemorySettings, wanted, settings).applied_to(checked)
