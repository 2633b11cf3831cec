"""The trigger: the conditions under which a request causes a search."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

from mnemic.model import validation
from mnemic.policy.request import RetrievalRequest
from mnemic.records import Record

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
