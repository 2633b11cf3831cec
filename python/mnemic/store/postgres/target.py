"""Parses the URL of a database, and names it without a password."""

from typing import Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mnemic.errors import StoreFileError
from mnemic.records.secrets import without_passwords

_SHOWN: Final = ("service", "user", "host", "port", "dbname")


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
    try:
        options = conninfo_to_dict(url)
        conninfo = make_conninfo(url, application_name=options.get("application_name") or "mnemic")
    except psycopg.ProgrammingError:
        raise StoreFileError(
            f"{without_passwords(url)}: no URL of a PostgreSQL database; write "
            "postgresql://user@host:port/database?option=value"
        ) from None
    shown = " ".join(f"{name}={options[name]}" for name in _SHOWN if options.get(name))
    return Target(conninfo, f"postgresql {shown}".strip())
