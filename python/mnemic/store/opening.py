"""Opens the store that a URL names; nothing else in the package names an implementation."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mnemic.errors import InvalidArgumentError, MissingExtraError
from mnemic.model import SchemaVersions
from mnemic.reporting.near_names import checks_arguments
from mnemic.store.url import path_of

if TYPE_CHECKING:
    from mnemic.crypto import Encryption
    from mnemic.store.contract import Store

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
        with _postgres_extra():
            from mnemic.store.postgres.store import PostgresStore  # noqa: PLC0415 - an extra
        return PostgresStore(
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


@checks_arguments
def migrate(
    url: str | os.PathLike[str], version: int | None = None, *, dry_run: bool = False
) -> SchemaVersions:
    """Bring the tables of a memory to another version, up or down.

    Opening a memory brings its tables up to date by itself. Going down is for a program with an
    earlier mnemic, which refuses newer tables. Memories, vectors and links stay; fields that the
    earlier version does not know go. Close the memory everywhere first: a file that is open is
    refused, the tables of a database are changed under whoever uses them.

    Args:
        url: A path or URL, as of `Memory`.
        version: Number of the version; None is the newest, 0 no tables.
        dry_run: Take the steps and undo them: what would stop them is raised, and nothing stays
            changed. It takes as long as the steps.

    Raises:
        InvalidArgumentError: If there is no such version.
        SchemaVersionError: If the tables are newer than this mnemic, or there are memories that the
            earlier version cannot hold; the message says which.
        StoreError: If the place cannot be opened, or the file is open.
        MissingExtraError: If the libraries for it are not installed.
    """
    text = os.fsdecode(url)
    if text.startswith(_POSTGRES):
        with _postgres_extra():
            from mnemic.store.postgres.maintenance import migrate_database  # noqa: PLC0415 - an extra
        return migrate_database(text, version, dry_run=dry_run)
    from mnemic.store.sqlite import opening  # noqa: PLC0415 - loaded where a file is opened

    return opening.migrate(path_of(text), version, dry_run=dry_run)


@contextmanager
def _postgres_extra() -> Generator[None, None, None]:
    """Import what an extra has; say so where it is not installed."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError(
            "memories in PostgreSQL need the extra 'postgres': pip install 'mnemic[postgres]'"
        ) from error
