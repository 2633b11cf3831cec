"""Opens the store that a URL names; nothing else in the package names an implementation."""

import os
from typing import TYPE_CHECKING, Final

from mnemic.errors import InvalidArgumentError, MissingExtraError

if TYPE_CHECKING:
    from mnemic.crypto import Encryption
    from mnemic.store.base import Store

_POSTGRES = ("postgresql://", "postgres://")


MAX_STALE: Final = 60.0
"""Default of `max_stale`."""


def open_store(
    url: str | os.PathLike[str],
    *,
    read_only: bool = False,
    max_stale: float = MAX_STALE,
    row_security: bool = False,
    encryption: "Encryption | None" = None,
) -> "Store":
    """Open a store.

    Args:
        url: A path, ":memory:", `sqlite:///` followed by either, or `postgresql://`; see
            `mnemic.store.url` and `mnemic.store.postgres.target`.
        read_only: Whether to open an existing store without changing it.
        max_stale: Maximum seconds since the last sign of an unreachable server for which positions
            are given from memory.
        row_security: Whether policies of the database must keep agents apart; they are put in force
            unless they are.
        encryption: Seals sensitive entries; None seals none, and cannot read those that are.

    Raises:
        InvalidArgumentError: If a file is to have row-level security.
        StoreError: If the URL is not supported, or what it names cannot be opened.
        MissingExtraError: If the libraries for it are not installed.
    """
    text = os.fsdecode(url)
    if text.startswith(_POSTGRES):
        return _open_postgres(
            text,
            read_only=read_only,
            max_stale=max_stale,
            row_security=row_security,
            encryption=encryption,
        )
    if row_security:
        raise InvalidArgumentError(
            "row_security: a file has no policies; only memories in PostgreSQL can have them"
        )
    from mnemic.store.sqlite.store import SqliteStore  # noqa: PLC0415 - loaded where a file is opened

    return SqliteStore(url, read_only=read_only, encryption=encryption)


def _open_postgres(
    url: str,
    *,
    read_only: bool,
    max_stale: float,
    row_security: bool,
    encryption: "Encryption | None",
) -> "Store":
    try:
        from mnemic.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtraError(
            "memories in PostgreSQL need the extra 'postgres': pip install 'mnemic[postgres]'"
        ) from error
    return PostgresStore(
        url,
        read_only=read_only,
        max_stale=max_stale,
        row_security=row_security,
        encryption=encryption,
    )
