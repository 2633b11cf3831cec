"""Statements on links; each runs on a connection it is lent."""

from collections.abc import Collection, Sequence
from typing import NamedTuple
from uuid import UUID

import apsw

from mnemic.errors import EntryNotFoundError, InvalidEntryError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, Scope
from mnemic.store.base import Direction
from mnemic.store.changes import Change, log_changes
from mnemic.store.records import from_microseconds, reading_stored, to_microseconds, uuid_of
from mnemic.store.sql import PRESENT, Columns, Condition, fetched, inside, of_id, the_only

_WRITE = (
    "INSERT INTO agent_memory_links (from_row, to_row, type, strength, created_at) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET strength = excluded.strength "
    "RETURNING created_at"
)
_READ = (
    "SELECT f.id, t.id, l.type, l.strength, l.created_at FROM agent_memory_links AS l "
    "JOIN agent_memory_entries AS f ON f.row = l.from_row "
    "JOIN agent_memory_entries AS t ON t.row = l.to_row "
)
_COPY = (
    "INSERT OR IGNORE INTO agent_memory_links (from_row, to_row, type, strength, created_at) "
    "SELECT f.row, t.row, ?, ?, ? FROM ({end}) AS f, ({end}) AS t "
    "WHERE f.user_id IS t.user_id AND (? OR f.supersedes IS t.id) RETURNING from_row, "
    "(SELECT user_id FROM agent_memory_entries WHERE row = from_row)"
)
_SUPERSEDE = (
    "UPDATE agent_memory_entries SET status = ?, updated_at = max(updated_at, ?) "
    "WHERE {where} RETURNING row"
)


def supersede(connection: apsw.Connection, entry: MemoryEntry, row: int) -> Change | None:
    """Mark what a new entry replaces, and link the two (C161); return None if it is not there."""
    if entry.supersedes is None:
        return None
    created_at = to_microseconds(entry.created_at)
    where, values = of_id(Scope(entry.agent_id, entry.user_id), entry.supersedes)
    values = [int(MemoryStatus.SUPERSEDED), created_at, *values]
    found = fetched(connection, _SUPERSEDE.format(where=where), values)
    if not found:
        return None
    replaced = found[0][0]
    connection.execute(_WRITE, (row, replaced, int(LinkType.SUPERSEDES), 1.0, created_at))
    return Change(replaced, entry.supersedes.bytes, "supersede", entry.user_id)


def link(connection: apsw.Connection, scope: Scope, wanted: MemoryLink, now: int) -> MemoryLink:
    """Write a link between two present entries of a scope; return it as it is then.

    Raises:
        EntryNotFoundError: If one of them is not there.
    """
    source, target = (
        _present_end(connection, scope, entry_id, now)
        for entry_id in (wanted.from_id, wanted.to_id)
    )
    time = to_microseconds(wanted.created_at)
    values = (source.row, target.row, int(wanted.type), wanted.strength, time)
    with reading_stored("a link"):
        created_at = from_microseconds(fetched(connection, _WRITE, values)[0][0])
    changed = Change(source.row, wanted.from_id.bytes, "link", source.user_id)
    log_changes(connection, scope.agent_id, [changed])
    return MemoryLink(wanted.from_id, wanted.to_id, wanted.type, wanted.strength, created_at)


def unlink(
    connection: apsw.Connection, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | None
) -> int:
    """Delete the links from one entry of a scope to another; return how many."""
    source, target = _end(connection, scope, from_id), _end(connection, scope, to_id)
    if source is None or target is None:
        return 0
    types, bound = _among_types(None if kind is None else [kind])
    deleted = fetched(
        connection,
        "DELETE FROM agent_memory_links WHERE from_row = ? AND to_row = ? "
        f"AND type <> ? {types} RETURNING from_row",
        (source.row, target.row, int(LinkType.SUPERSEDES), *bound),
    )
    if deleted:
        changed = Change(source.row, from_id.bytes, "link", source.user_id)
        log_changes(connection, scope.agent_id, [changed])
    return len(deleted)


def links(
    connection: apsw.Connection,
    scope: Scope,
    entry_id: UUID,
    direction: Direction,
    kinds: Collection[LinkType] | None,
    *,
    now: int,
) -> list[MemoryLink]:
    """Return the links of an entry whose ends are both present in the scope."""
    own = _end(connection, scope, entry_id, present_at=now)
    if own is None:
        return []
    where, values = inside(scope)
    types, bound = _among_types(kinds)
    found = set()
    for side, other in (("from_row", "to_row"), ("to_row", "from_row")):
        if (side, direction) in (("from_row", "in"), ("to_row", "out")):
            continue
        present = f"SELECT row FROM agent_memory_entries WHERE {where} AND {PRESENT}"
        sql = f"{_READ} WHERE l.{side} = ? AND l.{other} IN ({present} AND row = l.{other}) {types}"
        found.update(_links(connection, sql, (own.row, *values, now, *bound)))
    return sorted(found, key=_order)


def links_within(
    connection: apsw.Connection, scope: Scope, present_at: int | None
) -> list[MemoryLink]:
    """Return the links between entries of a scope; between all states if no time is given."""
    where, values = inside(scope)
    if present_at is not None:
        where, values = f"{where} AND {PRESENT}", [*values, present_at]
    ends = [
        f"(SELECT row FROM agent_memory_entries WHERE {where} AND row = l.{end})"
        for end in ("from_row", "to_row")
    ]
    sql = f"{_READ} WHERE l.from_row IN {ends[0]} AND l.to_row IN {ends[1]}"
    return sorted(_links(connection, sql, [*values, *values]), key=_order)


def add_links(connection: apsw.Connection, scope: Scope, new: Sequence[MemoryLink]) -> int:
    """Write links whose ends are in a scope and of one user, unless they are; return how many."""
    where, bound = inside(scope)
    end = f"SELECT row, id, user_id, supersedes FROM agent_memory_entries WHERE {where} AND id = ?"
    sql = _COPY.format(end=end)
    changes = []
    for wanted in new:
        values = (
            int(wanted.type),
            wanted.strength,
            to_microseconds(wanted.created_at),
            *(*bound, wanted.from_id.bytes, *bound, wanted.to_id.bytes),
            wanted.type is not LinkType.SUPERSEDES,
        )
        changes += [
            Change(row, wanted.from_id.bytes, "link", user_id)
            for row, user_id in fetched(connection, sql, values)
        ]
    if changes:
        log_changes(connection, scope.agent_id, changes)
    return len(changes)


def _links(connection: apsw.Connection, sql: str, parameters: Sequence[object]) -> list[MemoryLink]:
    found = fetched(connection, sql, parameters)
    with reading_stored("a link"):
        return [_link(columns) for columns in found]


def _link(columns: Columns) -> MemoryLink:
    from_id, to_id, kind, strength, created_at = columns
    ends = uuid_of(from_id), uuid_of(to_id)
    try:
        return MemoryLink(*ends, LinkType(kind), strength, from_microseconds(created_at))
    except InvalidEntryError as error:
        raise ValueError(str(error)) from error


def _order(link: MemoryLink) -> tuple[object, ...]:
    return link.created_at, link.from_id, link.to_id, link.type


def _among_types(kinds: Collection[LinkType] | None) -> Condition:
    if kinds is None:
        return "", []
    return f"AND type IN ({', '.join('?' * len(kinds))})", [int(kind) for kind in kinds]


class _End(NamedTuple):
    """One end of a link: the row of an entry, and whose it is."""

    row: int
    user_id: str | None


def _end(
    connection: apsw.Connection, scope: Scope, entry_id: UUID, present_at: int | None = None
) -> _End | None:
    """Return the entry of an id that a scope has, of any state if no time is given."""
    where, values = of_id(scope, entry_id)
    if present_at is not None:
        where, values = f"{where} AND {PRESENT}", [*values, present_at]
    sql = f"SELECT row, user_id FROM agent_memory_entries WHERE {where}"
    found = the_only(fetched(connection, sql, values), scope, entry_id)
    return None if found is None else _End(*found)


def _present_end(connection: apsw.Connection, scope: Scope, entry_id: UUID, now: int) -> _End:
    end = _end(connection, scope, entry_id, now)
    if end is None:
        raise EntryNotFoundError(f"no memory with id {entry_id} for {scope}")
    return end
