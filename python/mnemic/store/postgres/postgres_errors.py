"""PostgreSQL's errors as mnemic's. No message has a password, nor what a statement was about."""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import psycopg
from psycopg import errors

from mnemic.errors import (
    DeadlineExceededError,
    InvalidEntryError,
    MnemicError,
    ReadOnlyError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
)

Result = TypeVar("Result")

REPEATABLE: Final = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,
)
"""Errors after which a transaction is restarted."""

_FULL: Final = (errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources)


class FailedCall(NamedTuple):
    """The error of a call."""

    error: psycopg.Error


def attempted(call: Callable[[], Result]) -> Result | FailedCall:
    """Return the result of a call, or PostgreSQL's error.

    Whoever raises another error for it does so outside its `except` block: an error raised within
    has the first one as its context, also with `from None`, and that one may quote a row.
    """
    try:
        return call()
    except psycopg.Error as error:
        return FailedCall(error)


def with_typed_errors(call: Callable[[], Result], place: str) -> Result:
    """Return the result of a call; raise mnemic's error in place of PostgreSQL's."""
    done = attempted(call)
    if isinstance(done, FailedCall):
        raise typed(done.error, place)
    return done


def typed(error: psycopg.Error, place: str) -> MnemicError:  # noqa: PLR0911 - one for each kind
    """Return mnemic's error for one of PostgreSQL.

    Args:
        error: The error; its own message may quote values, and is not repeated.
        place: The database, without a password.
    """
    code = f"PostgreSQL error {error.sqlstate}, {type(error).__name__}" if error.sqlstate else ""
    if isinstance(error, errors.QueryCanceled):
        return DeadlineExceededError(f"{place}: the deadline passed during a statement")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        return ReadOnlyError(f"{place}: the database takes no writes ({code})")
    if isinstance(error, (errors.LockNotAvailable, *REPEATABLE)):
        return StoreBusyError(f"{place}: other writers held the memories too long ({code}); retry")
    if isinstance(error, _FULL):
        return StoreFullError(f"{place}: the server's disk or memory is full ({code})")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(
            f"{place}: the role may not do this ({code}); it needs the right to create a schema "
            "and the extension vector, or rights on the schema mnemic"
        )
    if isinstance(error, errors.ProgramLimitExceeded):
        return InvalidEntryError(
            f"{place}: an agent_id, user_id or idempotency_key is too long for an index of "
            f"PostgreSQL, which takes about 2,600 bytes ({code})"
        )
    if isinstance(error, psycopg.OperationalError):
        reason = code or "no connection"
        return StoreUnavailableError(f"{place}: the server cannot be reached ({reason}); try again")
    return StoreError(f"{place}: {code or type(error).__name__}")
