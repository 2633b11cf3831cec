"""Parses the URL of a database, and names it without a password."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mnemic.errors import StoreFileError
from mnemic.records.secrets import without_passwords

_PLACE: Final = ("host", "port", "dbname")

_TIMEOUTS: Final = {
    "connect_timeout": "10",  # seconds; libpq's own is that of the network, about two minutes
    "tcp_user_timeout": "10000",  # milliseconds; the system's own is about a quarter of an hour
    "keepalives_idle": "10",  # seconds, and not two hours, while the server works on a statement
    "keepalives_interval": "5",
    "keepalives_count": "2",
}
"""After these times a server that has gone without a word counts as lost."""


class Target(NamedTuple):
    """A database.

    Attributes:
        conninfo: What libpq connects with, passwords included.
        shown: The same for messages, without any.
    """

    conninfo: str
    shown: str

    def __repr__(self) -> str:
        """Return the representation without the password."""
        return f"Target({self.shown!r})"


def target_of(url: str) -> Target:
    """Return the database of a URL.

    Args:
        url: `postgresql://` or `postgres://`, with the options of libpq: `sslmode`, `service`,
            `passfile`, `connect_timeout` and others.

    Raises:
        StoreFileError: If libpq cannot read the URL; the message has no password.
    """
    read = _read(url)
    if read is None:  # not within the `except`, for libpq's error may quote the password
        raise _unreadable(url)
    options, conninfo = read
    named = {name: str(value) for name, value in options.items() if value is not None}
    # libpq reads a password with an unquoted slash as parts of a place, which messages name.
    if any("@" in named.get(name, "") for name in _PLACE):
        raise _unreadable(url)
    return Target(conninfo, _shown(named))


def _read(url: str) -> tuple[dict[str, Any], str] | None:
    """Return the options of a URL, and what libpq connects with; None if it cannot read the URL."""
    if "\0" in url:  # libpq would read the URL up to it
        return None
    try:
        options = conninfo_to_dict(url)
        return options, make_conninfo(url, **_unless_given(options), client_encoding="UTF8")
    except (psycopg.ProgrammingError, ValueError):  # or it has what is no UTF-8
        return None


def _unless_given(options: Mapping[str, object]) -> dict[str, str]:
    name = {"application_name": str(options.get("application_name") or "mnemic")}
    if "service" in options:  # its file may have others
        return name
    return name | {key: value for key, value in _TIMEOUTS.items() if key not in options}


def _shown(named: Mapping[str, str]) -> str:
    user = f"{named['user']}@" if "user" in named else ""
    port = f":{named['port']}" if "port" in named else ""
    service = f"?service={named['service']}" if "service" in named else ""
    return f"postgresql://{user}{named.get('host', '')}{port}/{named.get('dbname', '')}{service}"


def _unreadable(url: str) -> StoreFileError:
    in_one_piece = "".join("%20" if each.isspace() else each for each in url)
    shown = without_passwords(in_one_piece).encode(errors="backslashreplace").decode()
    return StoreFileError(
        f"{shown}: no URL of a PostgreSQL database; write "
        "postgresql://user@host:port/database?option=value, with %2F for '/' and %40 for '@' in a "
        "password"
    )
