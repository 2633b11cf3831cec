"""RetrievalRequest: a message, whose memories may answer it, and whether these are searched."""

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal, TypeAlias

from msgspec.structs import force_setattr

from mnemic.errors import InvalidEntryError
from mnemic.model import Expression, validation
from mnemic.model.filter import IS_NOT_SENSITIVE, All, copied_filter, parse_filter
from mnemic.model.query import Filters
from mnemic.model.time_zones import checked_time_zone, naive_times_in
from mnemic.records import NamedFields, Record, Redacted
from mnemic.reporting.description import must_be


class RetrievalRequest(Redacted, frozen=True, metaclass=NamedFields):
    """A request for memories that belong to a message.

    Values that come from the chat are judged by `run`, which raises nothing for them: a blank or
    too long message, and a missing or blank session. Wrong types are errors of the program.

    Attributes:
        message: The message; `repr` hides it.
        user_id: The user; None is the memories without a user.
        session_id: The session of the chat. Memories of all sessions are found unless the
            configuration says otherwise.
        use_memory: Whether memories are wanted at all.
        project_id: Only memories of this project.
        filters: Only memories that match; see docs/tune/filters.md.
        time_zone: Name of the zone of days that the message names, of times in the filter that name
            none, and of times in the prompt block; None is the memory's.

    Raises:
        InvalidArgumentError: If a field has a wrong type, or the name of a user or a project is
            invalid.
        FilterError: If the filter is invalid.
    """

    _hidden: ClassVar[frozenset[str]] = frozenset({"message", "filters"})

    message: str
    user_id: str | None
    session_id: str | None
    use_memory: bool = True
    project_id: str | None = None
    filters: Filters = None
    time_zone: str | None = None

    def __post_init__(self) -> None:
        """Check the types of all fields."""
        for name in ("message", "session_id"):
            given = getattr(self, name)
            if not isinstance(given, str) and (name == "message" or given is not None):
                kinds = "a str" if name == "message" else "a str or None"
                raise must_be(name, kinds, given)
        validation.optional_name("user_id", self.user_id)
        validation.optional_name("project_id", self.project_id)
        validation.flag("use_memory", self.use_memory)
        force_setattr(self, "filters", copied_filter(self.filters))
        force_setattr(self, "time_zone", checked_time_zone(self.time_zone))

    @property
    def has_valid_session(self) -> bool:
        """Whether the session is a name: not blank, and without control characters."""
        if self.session_id is None or not self.session_id.strip():
            return False
        try:
            validation.name("session_id", self.session_id)
        except InvalidEntryError:
            return False
        return True

    def expression(self, *, include_sensitive: bool) -> Expression | None:
        """Return the parsed filter; None excludes nothing."""
        parts: list[Expression] = [] if include_sensitive else [IS_NOT_SENSITIVE]
        if self.filters is not None:
            with naive_times_in(self.time_zone):
                parts.append(parse_filter(self.filters))
        return All(tuple(parts)) if parts else None


TriggerReason: TypeAlias = Literal[
    "met", "memory_off", "no_valid_session", "no_memories", "rate_limited"
]
"""Why retrieval runs, or the first condition that is not met."""

_SENTENCES: Mapping[str, str] = {
    "met": "All conditions are met.",
    "memory_off": "The request has use_memory=False.",
    "no_valid_session": "The request names no session, or one that is no name.",
    "no_memories": "The user has no memories.",
    "rate_limited": "The user has reached the rate limit.",
}


class Trigger(Record, frozen=True):
    """Whether retrieval runs for a request, and why.

    Attributes:
        should_retrieve: Whether it runs.
        reason: "met"; or the first condition that is not met, in this order: "memory_off",
            "no_valid_session", "rate_limited", "no_memories". The last one needs the
            index, which a rate limit spares.
    """

    should_retrieve: bool
    reason: TriggerReason

    def __bool__(self) -> bool:
        return self.should_retrieve

    @property
    def sentence(self) -> str:
        """The reason as a sentence, without names."""
        return _SENTENCES[self.reason]


MET = Trigger(should_retrieve=True, reason="met")
MEMORY_OFF = Trigger(should_retrieve=False, reason="memory_off")
NO_VALID_SESSION = Trigger(should_retrieve=False, reason="no_valid_session")
NO_MEMORIES = Trigger(should_retrieve=False, reason="no_memories")
RATE_LIMITED = Trigger(should_retrieve=False, reason="rate_limited")


def trigger(
    request: RetrievalRequest,
    *,
    has_memories: bool | Callable[[], bool] = True,
    is_rate_limited: bool | Callable[[], bool] = False,
) -> Trigger:
    """Return whether retrieval runs for a request, by the conditions in their order.

    Args:
        request: The request.
        has_memories: Whether the user has any memory, or a function that returns it; it is called
            only if the conditions before it are met.
        is_rate_limited: Whether the user has reached a rate limit; likewise.

    Example:
        >>> from mnemic.policy import RetrievalRequest, trigger
        >>> request = RetrievalRequest("Where is my bike?", "alice", session_id=None)
        >>> trigger(request).reason
        'no_valid_session'
    """
    validation.of_kind("request", RetrievalRequest, "a RetrievalRequest", request)
    unmet = unmet_condition(request)
    if unmet is not None:
        return unmet
    if is_rate_limited() if callable(is_rate_limited) else is_rate_limited:
        return RATE_LIMITED
    if not (has_memories() if callable(has_memories) else has_memories):
        return NO_MEMORIES
    return MET


def unmet_condition(request: RetrievalRequest) -> Trigger | None:
    """Return the condition that a request by itself does not meet; None if there is none."""
    if not request.use_memory:
        return MEMORY_OFF
    return None if request.has_valid_session else NO_VALID_SESSION
