"""PostgreSQL's errors as mnemic's. No message has a password, nor what a statement was about."""

import re
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

LOST_STATEMENT: Final = (errors.InvalidSqlStatementName, errors.DuplicatePreparedStatement)
"""Errors of a prepared statement that the server does not know, or another program prepared."""

_CONFLICTS: Final = (
    errors.SerializationFailure,
    errors.DeadlockDetected,
    errors.IdleInTransactionSessionTimeout,
)
"""Errors for the sake of other writers."""

REPEATABLE: Final = (*LOST_STATEMENT, *_CONFLICTS)
"""Errors after which a transaction is restarted."""

_FULL: Final = (errors.DiskFull, errors.OutOfMemory, errors.InsufficientResources)


# libpq does not tell the SQLSTATE of a refused connection, only the text: PostgreSQL's (the first
# pattern) or PgBouncer's. Of one in another language the last pattern shows that a server wrote it:
# libpq puts two spaces behind its severity, and one behind any word of its own.
_REFUSALS: Final = {
    r'database ".*" does not exist|no such database': (
        "there is no such database (3D000); create it, or correct its name in the URL"
    ),
    r'role ".*" does not exist|no such user': (
        "there is no such role (28000); create it, or correct its name in the URL"
    ),
    r"not permitted to log in": "the role may not log in (28000); ALTER ROLE ... LOGIN lets it",
    r"pg_hba\.conf": (
        "the server lets in no such connection (28000): its pg_hba.conf has no line for this "
        "role, database, address and encryption"
    ),
    r"authentication failed|no password supplied": (
        "the password is wrong or missing, or there is no such role (28P01); correct the URL or "
        "the passfile"
    ),
    r"permission denied for database": (
        "the role may not connect to this database (42501); GRANT CONNECT ON DATABASE lets it"
    ),
    r"not currently accepting connections": (
        "the database takes no connections (55000); ALTER DATABASE ... ALLOW_CONNECTIONS lets it"
    ),
    r"too many (clients|connections)|connection slots|no more connections": (
        "too many connections are open (53300); close some, raise max_connections, or try again"
    ),
    r"starting up|shutting down|recovery mode|not yet accepting": (
        "the server is starting or stopping (57P03); try again"
    ),
    r"unsupported startup parameter": (
        "the pooler takes no `options` in a URL (08P01); leave them out, set them for the role, "
        "or have the pooler ignore them (ignore_startup_parameters)"
    ),
    r"does not support SSL|certificate|SSL error": (
        "the encryption that the URL asks for fails; see sslmode and sslrootcert"
    ),
    r"resolve host|translate host": (
        "there is no host of this name; correct the URL, or try again once it can be looked up"
    ),
    r"connection failed: .*:  ": (
        "the server refuses the connection; psql with the same URL, or the server's log, says why"
    ),
}
"""Texts of connections that are refused, and what mnemic says of them."""


def reason_of(error: psycopg.Error) -> str | None:
    """Return why a connection was refused; None if that is not known."""
    text = str(error)
    return next((reason for pattern, reason in _REFUSALS.items() if re.search(pattern, text)), None)


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
    if isinstance(error, (errors.LockNotAvailable, *_CONFLICTS)):
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
        reason = None if code else reason_of(error)
        if reason is not None:
            return StoreUnavailableError(f"{place}: {reason}")
        return StoreUnavailableError(
            f"{place}: the server cannot be reached ({code or 'no connection'}); try again"
        )
    return StoreError(f"{place}: {code or type(error).__name__}")
