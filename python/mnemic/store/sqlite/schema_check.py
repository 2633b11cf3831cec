"""Compares the schema of a file with the one that this package's migrations make."""

import re
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import apsw

from mnemic.errors import StoreCorruptError, StoreFileError
from mnemic.store.row_codec import exact_digest
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.schema import DIGEST, MIGRATIONS, register_functions
from mnemic.store.sqlite.sqlite_errors import DAMAGED

_SCHEMA = "SELECT type, name, tbl_name, sql, rootpage FROM sqlite_schema"
_KINDS = frozenset({"table", "index", "trigger", "view"})
# SQLite's own tables: the first is made by AUTOINCREMENT, the others by ANALYZE.
_OF_SQLITE = frozenset(
    {
        ("table", "sqlite_stat1", "sqlite_stat1", "CREATE TABLE sqlite_stat1(tbl,idx,stat)"),
        (
            "table",
            "sqlite_stat4",
            "sqlite_stat4",
            "CREATE TABLE sqlite_stat4(tbl,idx,neq,nlt,ndlt,sample)",
        ),
    }
)
_PART = r""""agent_memory_\w+"|"(?:[^"]|"")*"|'(?:[^']|'')*'|\w+|\S"""
_MAX_SHOWN = 60
_SMALL = 8 * 1024 * 1024

_Item: TypeAlias = tuple[Any, ...]
"""Type, name, table and statement of one table or index; in a hostile file anything."""


class _Schema(NamedTuple):
    """The schema of one version: its statements, as texts and as tokens."""

    items: frozenset[_Item]
    tokens: dict[_Item, tuple[str, ...]]


def check_schema(connection: GuardedConnection, path: str, version: int) -> None:
    """Check that a file holds the tables and indexes of a schema version, and nothing else.

    Triggers, views, generated columns and checks that were added would run with each read and
    write, and could give one user's memories to another.

    Raises:
        StoreFileError: If anything differs; the message names it.
    """
    found = connection.fetch(_SCHEMA)
    items = frozenset(tuple(row[:4]) for row in found)
    problem = _shared_page(found)
    # Making the schema, to compare with it, takes longer than all else of an opening.
    is_known = version == len(MIGRATIONS) and digest_of(items) == DIGEST
    if problem is None and not is_known:
        problem = _difference(items, made_schema(version))
    if problem is not None:
        raise StoreFileError(
            f"{path}: {problem}, which mnemic does not make; if you put it there, take it away "
            "with SQLite's own tools; otherwise do not trust the file, and restore a backup"
        )


def check_indexes(connection: GuardedConnection, path: str) -> None:
    """Compare the indexes of a small file with its tables.

    An entry of an index that is damaged hides a row from who looks for it by that index, and no
    checksum of rows shows that. Above 8 MB it would take too long for an opening.

    Raises:
        StoreCorruptError: If they differ.
    """
    pages, size = connection.pragma("page_count"), connection.pragma("page_size")
    if pages * size > _SMALL:
        return
    for table in ("agent_memory_entries", "agent_memory_links", "agent_memory_agents"):
        found = connection.fetch(f"PRAGMA integrity_check({table})")
        if found != [("ok",)]:
            raise StoreCorruptError(f"{path}: {found[0][0]}; {DAMAGED}")


def digest_of(items: frozenset[_Item]) -> str:
    """Return the digest of a schema, that of this version's being `DIGEST`."""
    return exact_digest("\n".join(sorted(map(ascii, items))).encode())


@cache
def made_schema(version: int) -> _Schema:
    """Return the schema that the migrations up to a version make."""
    connection = apsw.Connection(":memory:")
    try:
        register_functions(connection)
        for step in MIGRATIONS[:version]:
            connection.execute(step.up)
        items = frozenset(tuple(row[:4]) for row in connection.execute(_SCHEMA))
    finally:
        connection.close()
    return _Schema(items, {item[:3]: _tokens(item[3]) for item in items})


def _difference(found: frozenset[_Item], made: _Schema) -> str | None:
    """Return what is more, other or missing, in a fixed order; None if only the writing differs."""
    others = sorted(found - made.items - _OF_SQLITE, key=repr)
    for item in others:
        if item[:3] not in made.tokens:
            return f"it has {_shown(item)}"
    for item in others:
        if _tokens(item[3]) != made.tokens[item[:3]]:
            return f"{_shown(item)} is not defined as it should be"
    names = {item[:3] for item in found}
    missing = sorted(made.tokens.keys() - names)
    return f"{_shown(missing[0])} is missing" if missing else None


def _tokens(statement: object) -> tuple[str, ...]:
    """Return a statement without what SQLite itself changes in it.

    ALTER TABLE leaves other spaces where a column goes, and quotes the name of a table it renames.
    """
    if not isinstance(statement, str):
        return () if statement is None else (repr(statement),)
    return tuple(
        token.strip('"') if token.startswith('"agent_memory_') else token
        for token in re.findall(_PART, statement)
    )


def _shared_page(found: list[_Item]) -> str | None:
    """Return what lies where something else does; every table and index has a page of its own."""
    pages: set[object] = {1}
    for item in found:
        if item[0] in {"table", "index"}:
            page = item[4]
            if page in pages or not isinstance(page, int) or page < 1:
                return f"{_shown(item[:4])} begins at page {page!r}"
            pages.add(page)
    return None


def _shown(item: _Item) -> str:
    kind, name, table, *_ = item
    of = "" if name == table else f" on {_readable(table)}"
    return f"{kind if kind in _KINDS else 'something'} {_readable(name)}{of}"


def _readable(name: object) -> str:
    shown = repr(name)
    return shown if len(shown) <= _MAX_SHOWN else f"{shown[:_MAX_SHOWN]}…"
