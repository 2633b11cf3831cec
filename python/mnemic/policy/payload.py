"""RetrievalPayload: the memories for a prompt, the account of how they were chosen, and errors.

The table of errors has a code, a message and a fallback for each cause.
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Literal, TypeAlias

from mnemic import errors
from mnemic.context.prompt_block import format_for_system_prompt
from mnemic.model.payload import DroppedMemory, PayloadMemory
from mnemic.model.validation import query
from mnemic.policy.config import RetrievalConfig
from mnemic.policy.request import Trigger
from mnemic.records import Record
from mnemic.records.options import CamelCaseRecord

ErrorCode: TypeAlias = Literal[
    "ZEP_UNAVAILABLE", "COLLECTION_NOT_FOUND", "RATE_LIMITED", "INVALID_QUERY", "TIMEOUT"
]
"""Code of an error. "ZEP_UNAVAILABLE" means that the memory is; the name is the specification's."""

Fallback: TypeAlias = Literal["skip", "empty", "cache"]
"""What a run returns in place of a result: no block, an empty one, or an earlier payload."""


class RetrievalError(Record, frozen=True, kw_only=True):
    """Why a run has no result of its own. It is a value: a run returns it and raises nothing.

    Attributes:
        code: Names the cause.
        message: A sentence for logs, without content.
        fallback: What the run returns if no earlier payload of the same request may be returned.
    """

    code: ErrorCode
    message: str
    fallback: Fallback


UNAVAILABLE = RetrievalError(
    code="ZEP_UNAVAILABLE", message="Memory service temporarily unavailable", fallback="skip"
)
"""The store or the embedder failed, or the circuit breaker is open after such failures."""

COLLECTION_NOT_FOUND = RetrievalError(
    code="COLLECTION_NOT_FOUND",
    message="User memory collection does not exist",
    fallback="empty",
)
"""The user's last memory was deleted during the search."""

RATE_LIMITED = RetrievalError(
    code="RATE_LIMITED", message="Memory retrieval rate limit exceeded", fallback="cache"
)
"""The limiter refused the run; nothing was searched."""

INVALID_QUERY = RetrievalError(
    code="INVALID_QUERY", message="Query text invalid or too long", fallback="skip"
)
"""The message is blank, too long, or no text that can be encoded; nothing was searched."""

TIMEOUT = RetrievalError(
    code="TIMEOUT", message="Memory retrieval exceeded its time limit", fallback="skip"
)
"""The search was not done in time. It is not repeated."""

ERROR_POLICIES: Mapping[str, RetrievalError] = MappingProxyType(
    {
        error.code: error
        for error in (UNAVAILABLE, COLLECTION_NOT_FOUND, RATE_LIMITED, INVALID_QUERY, TIMEOUT)
    }
)
"""All errors by their codes."""

_ERRORS_OF_THE_PROGRAM = (
    errors.InvalidArgumentError,
    errors.ArrayTypeError,
    errors.EmbedderRequiredError,
    errors.KernelUnavailableError,
    errors.KeyUnavailableError,
    errors.LicenseRestrictionError,
    errors.MissingExtraError,
    errors.WrongKeyError,
)
"""Wrong arguments and a wrong set-up: the same call would fail for ever."""


def error_of(failure: Exception, timeout: float | None = None) -> RetrievalError | None:
    """Return the error of the table for an exception; None if the exception is to be raised.

    Wrong arguments and a wrong set-up (no embedder, no licence, a missing extra) are raised.
    Everything else is an error of the table: a passed deadline is `TIMEOUT`, a memory that is no
    more is `COLLECTION_NOT_FOUND`, and any other failure, expected or not, is `UNAVAILABLE`.

    Args:
        failure: What the search raised.
        timeout: The time limit in seconds, for the message.
    """
    if isinstance(failure, _ERRORS_OF_THE_PROGRAM):
        return None
    if isinstance(failure, errors.DeadlineExceededError):
        return timed_out(timeout)
    if isinstance(failure, errors.EntryNotFoundError):
        return COLLECTION_NOT_FOUND
    return UNAVAILABLE


def is_expected(failure: Exception) -> bool:
    """Return whether an exception is one of mnemic's or of the system, not an error in code."""
    return isinstance(failure, errors.MnemicError | OSError | MemoryError)


def timed_out(timeout: float | None) -> RetrievalError:
    """Return `TIMEOUT` with the time limit, in seconds, in its message."""
    if timeout is None:
        return TIMEOUT
    return RetrievalError(
        code=TIMEOUT.code, message=f"{TIMEOUT.message} of {timeout:g} s", fallback=TIMEOUT.fallback
    )


def query_error(message: str, max_length: int) -> RetrievalError | None:
    """Return `INVALID_QUERY` for a message that cannot be searched for; None for any other.

    Args:
        message: Longer ones are invalid, and what no search takes: blank texts, and texts with a
            NUL character or a lone surrogate.
        max_length: Maximum length in characters.
    """
    try:
        is_too_long = len(query(message)) > max_length
    except errors.InvalidArgumentError:
        return INVALID_QUERY
    return INVALID_QUERY if is_too_long else None


class RetrievalMetadata(Record, frozen=True, kw_only=True):
    """The account of one run.

    Attributes:
        trigger: Whether the search ran, and why.
        config: The active configuration, with the administrator's settings.
        query_time: Milliseconds that the run took.
        total_results: Memories found, before the steps.
        included_results: Memories in the payload.
        total_tokens: Tokens of the prompt block, by the policy's counter.
        applied_filters: Names of the steps that were applied, in their order.
        dropped: The memories that were found and are not in the payload.
        search_type: The search that was really made: "hybrid", "semantic" or "keyword"; "" if
            there was none.
        error: The error, if the run had no result of its own.
        from_cache: Whether the payload is an earlier one of an identical request.
        age: Seconds since the payload was made, if it is from the cache.
        degraded: Whether the embedder failed, so that the search was one by keywords.
        degraded_reason: Why the embedder failed, without a word of a memory; else None.
        partial: Whether the search was cut at its time limit.
        approximate: Whether an approximate index chose the memories that were ranked.
        stale_since: When the store's server last answered, if it is unreachable: changes made since
            by other processes may be missing. Else None.
        by_another: Whether the message names one speaker, and the best memory is by another, which
            the prompt block then says.
        time_zone: Name of the zone of the block's times; None is that of its form, or UTC.
    """

    trigger: Trigger
    config: RetrievalConfig
    query_time: float = 0.0
    total_results: int = 0
    included_results: int = 0
    total_tokens: int = 0
    applied_filters: tuple[str, ...] = ()
    dropped: tuple[DroppedMemory, ...] = ()
    search_type: str = ""
    error: RetrievalError | None = None
    from_cache: bool = False
    age: float | None = None
    degraded: bool = False
    degraded_reason: str | None = None
    partial: bool = False
    approximate: bool = False
    stale_since: datetime | None = None
    by_another: bool = False
    time_zone: str | None = None


class RetrievalPayload(CamelCaseRecord, frozen=True, kw_only=True):
    """The memories for a prompt.

    Attributes:
        memories: In the order of the prompt block's lines, before grouping.
        metadata: The account of the run.
    """

    memories: tuple[PayloadMemory, ...]
    metadata: RetrievalMetadata

    @property
    def prompt(self) -> str:
        """The prompt block, in the form that the configuration names; "" without memories."""
        return format_for_system_prompt(self)
