"""PostgreSQL's errors as mnemic's. No message has a password, nor what a statement was about."""

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

import psycopg

from mnemic.errors import MnemicError, StoreError, StoreUnavailableError
from mnemic.store.errors import FAILURES, NO_CONNECTION, typed_error

Result = TypeVar("Result")

# libpq does not tell the SQLSTATE of a refused connection, only the text: PostgreSQL's (the first
# pattern) or PgBouncer's. Of one in another language the last pattern shows that a server wrote it:
# libpq puts two spaces behind its severity, and one behind any word of its own.
_REFUSALS: Final = {
    r'database ".*" does not exist|no such database': "3D000",
    r'role ".*" does not exist|no such user': (
        "there is no such role (28000); create it, or correct its name in the URL"
    ),
    r"not permitted to log in": "the role may not log in (28000); ALTER ROLE ... LOGIN lets it",
    r"pg_hba\.conf": (
        "the server lets in no such connection (28000): its pg_hba.conf has no line for this "
        "role, database, address and encryption"
    ),
    r"authentication failed|no password supplied": "28P01",
    r"permission denied for database": (
        "the role may not connect to this database (42501); GRANT CONNECT ON DATABASE lets it"
    ),
    r"not currently accepting connections": (
        "the database takes no connections (55000); ALTER DATABASE ... ALLOW_CONNECTIONS lets it"
    ),
    r"too many (clients|connections)|connection slots|no more connections": "53300",
    r"starting up|shutting down|recovery mode|not yet accepting": "57P03",
    r"unsupported startup parameter": (
        "the pooler takes no `options` in a URL (08P01); leave them out, set them for the role, "
        "or have the pooler ignore them (ignore_startup_parameters)"
    ),
    r"server_login_retry|cannot connect to server": (
        "the pooler could not reach the server, and waits before it tries again "
        "(server_login_retry); try again"
    ),
    r"query_wait_timeout": (
        "the pooler had no session of the server for too long (query_wait_timeout); try again, or "
        "give it more (default_pool_size)"
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
"""Texts of refusals, and their SQLSTATE or, where that says less, the reason."""


def reason_of(error: psycopg.Error) -> str | None:
    """Return why a connection was refused, or a statement by a pooler; None if it is not known."""
    text = str(error)
    reason = next((reason for said, reason in _REFUSALS.items() if re.search(said, text)), None)
    failure = None if reason is None else FAILURES.get(reason)
    return reason if failure is None else f"{failure.found} ({reason})"


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


def code_of(error: psycopg.Error) -> str | None:
    """Return the SQLSTATE of an error, also of a lost connection; None for errors without any."""
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        return NO_CONNECTION
    return error.sqlstate


def typed(error: psycopg.Error, place: str) -> MnemicError:
    """Return mnemic's error for one of PostgreSQL.

    Args:
        error: The error; its own message may quote values, and is not repeated.
        place: The database, without a password.
    """
    name, code = type(error).__name__, code_of(error)
    if code is None:
        return StoreError(f"{place}: {name}")
    # A pooler says by a protocol violation that it has no server for a connection that stands.
    is_refused = error.sqlstate in {None, "08P01"}
    reason = reason_of(error) if is_refused else None
    if reason is not None:
        return StoreUnavailableError(f"{place}: {reason}")
    return typed_error(code, place, f"PostgreSQL error {code}, {name}")
