"""The links of the stores in SQL."""

from collections.abc import Collection, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple
from uuid import UUID

from mnemic.errors import InvalidEntryError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, Scope
from mnemic.model.link import Direction
from mnemic.model.scope import not_found
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change
from mnemic.store.operations import (
    AddLinks,
    Link,
    Links,
    Successors,
    Unlink,
)
from mnemic.store.row_codec import RowCodec, next_version, uuid_of
from mnemic.store.rules import check_one_user, single, superseded_version
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, IS_PRESENT, LINKS, visible, visible_in, with_id
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.reads import entries_of_rows
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import LinkedRows

_READ: Final = (
    "SELECT f.row, t.row, f.user_id, f.id, t.id, l.type, l.strength, l.created_at "
    f"FROM {LINKS} AS l "
    f"JOIN {ENTRIES} AS f ON f.agent_id = ? AND f.row = l.from_row "
    f"JOIN {ENTRIES} AS t ON t.agent_id = ? AND t.row = l.to_row "
)
_SUPERSEDE: Final = (
    f"UPDATE {ENTRIES} SET status = ?, updated_at = ?, version = ? WHERE agent_id = ? AND row = ?"
)
_END_SUPERSESSION: Final = (
    f"UPDATE {ENTRIES} SET supersedes = NULL, updated_at = ?, version = ? "
    "WHERE agent_id = ? AND row = ?"
)


class _LinkedEntry(NamedTuple):
    """One end of a link: row and user of an entry, and the entry that it supersedes."""

    row: int
    user_id: str | None
    supersedes: bytes | None


def link(on: SqlSession, codec: RowCodec, wanted: Link) -> MemoryLink:
    """Write a link between two entries of a scope; return its new state."""
    new, agent_id, time = wanted.link, wanted.agent_id, to_microseconds(wanted.now)
    source, target = (
        _present_end(on, codec, wanted.scope, entry_id, time)
        for entry_id in (new.from_id, new.to_id)
    )
    check_one_user(source.user_id, target.user_id)
    place = agent_id, source.row, target.row, int(new.type)
    with on.dialect.reading_stored("a link"):
        stored_at = _put_link(on, (*place, new.strength, to_microseconds(new.created_at)))
        created_at = from_microseconds(stored_at)
    log_changes(on, agent_id, [Change(source.row, new.from_id.bytes, "link", source.user_id)])
    return MemoryLink(new.from_id, new.to_id, new.type, new.strength, created_at)


def unlink(on: SqlSession, codec: RowCodec, wanted: Unlink) -> int:
    """Delete the links from one entry of a scope to another; return their number."""
    ends = wanted.from_id, wanted.to_id
    source, target = (_end(on, codec, wanted.scope, one) for one in ends)
    if source is None or target is None:
        return 0
    types, bound = _among_types(on.dialect, None if wanted.kind is None else [wanted.kind])
    is_owned, owner = on.dialect.owned("l", wanted.agent_id)
    sql = (
        f"DELETE FROM {LINKS} AS l WHERE {is_owned} AND from_row = ? AND to_row = ? "
        f"AND type <> ? {types}"
    )
    between = source.row, target.row, int(LinkType.SUPERSEDES)
    deleted = on.run(sql, (*owner, *between, *bound))
    if deleted:
        changed = Change(source.row, wanted.from_id.bytes, "link", source.user_id)
        log_changes(on, wanted.agent_id, [changed])
    return deleted


def add_links(on: SqlSession, codec: RowCodec, wanted: AddLinks) -> int:
    """Write links of any type between entries of a scope; return how many are new."""
    scope = wanted.scope
    changes = [
        change
        for new, user_id in wanted.links
        if scope.all_users or scope.user_id == user_id
        for change in _add_link(
            on, codec, Scope(scope.agent_id, user_id, scope.project_id, scope.session_id), new
        )
    ]
    if changes:
        log_changes(on, scope.agent_id, changes)
    return len(changes)


def links(on: SqlSession, codec: RowCodec, wanted: Links) -> list[LinkedRows]:
    """Return the links whose ends both exist, of an entry or all."""
    row, time = wanted.entry, to_microseconds(wanted.now)
    if isinstance(row, UUID):
        own = _end(on, codec, wanted.scope, row, present_at=time)
        if own is None:
            return []
        row = own.row
    where, values = visible_in(wanted.scope, codec)
    if not wanted.include_deleted:
        where, values = f"{where} AND {IS_PRESENT}", [*values, time]
    is_owned, owner = on.dialect.owned("l", wanted.agent_id)
    types, bound = _among_types(on.dialect, wanted.kinds)
    found: list[LinkedRows] = []
    for is_wanted, rows in _ends_at(row, wanted.direction):
        sql = f"{_READ} WHERE {is_owned} AND {is_wanted} {_both_ends(where)} {types}"
        agents = wanted.agent_id, wanted.agent_id
        found += _links(on, sql, (*agents, *owner, *rows, *values, *values, *bound))
    if row is not None:
        on.dialect.check_links(on, [row])
    return sorted(found, key=attrgetter("place"))


def _ends_at(row: int | None, direction: Direction) -> Iterator[Condition]:
    """Yield conditions of links at a row, or of all that are of one user."""
    if row is None:
        yield "f.user_id IS NOT DISTINCT FROM t.user_id", []
        return
    if direction != "in":
        yield "l.from_row = ?", [row]
    if direction != "out":
        yield "l.to_row = ?", [row]


def successors(on: SqlSession, codec: RowCodec, wanted: Successors) -> dict[int, MemoryEntry]:
    """Return the entries that supersede one of some rows."""
    scope = wanted.scope
    is_owned, owner = on.dialect.owned("l", scope.agent_id)
    sql = (
        f"SELECT DISTINCT from_row FROM {LINKS} AS l "
        f"WHERE {is_owned} AND {on.dialect.among('to_row')} AND type = ? ORDER BY from_row"
    )
    values = (*owner, [int(row) for row in wanted.rows], int(LinkType.SUPERSEDES))
    newer, time = [row for (row,) in on.fetch(sql, values)], to_microseconds(wanted.now)
    found = entries_of_rows(on, codec, scope, newer, time, include_deleted=True)
    return {row: entry for row, entry in found.items() if entry.is_present(wanted.now)}


def supersede(
    on: SqlSession, codec: RowCodec, entry: MemoryEntry, row: int, at: int
) -> Change | None:
    """Mark the entry that a stored entry supersedes, and link the two.

    Args:
        on: In the transaction that stores the entry.
        codec: Codec of the entries; one that it cannot read is superseded by none.
        entry: The stored entry.
        row: Its row.
        at: When it was stored, in microseconds since 1970 in UTC.

    Returns:
        The change; None if there is no such entry.
    """
    if entry.supersedes is None:
        return None
    where, values = with_id(on.dialect, Scope(entry.agent_id, entry.user_id), entry.supersedes)
    sql = f"SELECT row, status, updated_at, version FROM {ENTRIES} WHERE {where}"
    found = on.fetch(f"{sql} AND {visible(codec)}", values)
    if not found:
        return None
    superseded, status, updated_at, version = found[0]
    with on.dialect.reading_stored("a memory"):
        version = superseded_version(status, version)
        new = int(MemoryStatus.SUPERSEDED), max(updated_at, at), version
    on.run(_SUPERSEDE, (*new, entry.agent_id, superseded))
    _put_link(on, (entry.agent_id, row, superseded, int(LinkType.SUPERSEDES), 1.0, at))
    return Change(superseded, entry.supersedes.bytes, "supersede", entry.user_id)


def end_supersession(on: SqlSession, agent_id: str, row: int, at: int) -> list[Change]:
    """Let the entries that superseded a row do so no more, before the row is stored again.

    They superseded its old content. Otherwise an import, or a later reader, would take the new one
    for superseded.

    Args:
        on: In the transaction that stores the row again.
        agent_id: The agent.
        row: The row.
        at: The time now, in microseconds since 1970 in UTC.

    Returns:
        The changes.
    """
    is_owned, owner = on.dialect.owned("l", agent_id)
    links = f"FROM {LINKS} AS l WHERE {is_owned} AND to_row = ? AND type = ?"
    to_row = (*owner, row, int(LinkType.SUPERSEDES))
    sql = (
        f"SELECT row, id, user_id, updated_at, version FROM {ENTRIES} {on.dialect.by_row} "
        f"WHERE agent_id = ? AND row IN (SELECT from_row {links}) ORDER BY row"
    )
    changes: list[Change] = []
    for source, entry_id, user_id, updated_at, version in on.fetch(sql, (agent_id, *to_row)):
        with on.dialect.reading_stored("a memory"):
            new = max(updated_at, at), next_version(version)
        on.run(_END_SUPERSESSION, (*new, agent_id, source))
        changes.append(Change(source, entry_id, "update", user_id))
    if changes:
        on.run(f"DELETE {links}", to_row)
    return changes


def _linked_rows(columns: Columns) -> LinkedRows:
    """Return the link of columns: rows, user, ids, type, strength, time.

    Raises:
        ValueError: If it cannot have been stored.
    """
    from_row, to_row, user_id, from_id, to_id, kind, strength, created_at = columns
    ends, time = (uuid_of(from_id), uuid_of(to_id)), from_microseconds(created_at)
    try:
        link = MemoryLink(*ends, LinkType.numbered(kind), strength, time)
    except InvalidEntryError as error:
        raise ValueError(str(error)) from error
    return LinkedRows(from_row, to_row, user_id, link)


def _put_link(on: SqlSession, link: Columns) -> int:
    """Write a link, or the new strength of one that is there; return when it was made.

    Args:
        on: In a transaction.
        link: Agent, rows of the ends, type, strength, time.
    """
    put = "DO UPDATE SET strength = excluded.strength RETURNING created_at"
    return int(on.value(f"{on.dialect.insert_link} {put}", link))


def _both_ends(where: str) -> str:
    """Return a condition on both ends of a link."""
    return "".join(
        f" AND EXISTS (SELECT 1 FROM {ENTRIES} AS e WHERE e.row = l.{end} AND {where})"
        for end in ("from_row", "to_row")
    )


def _add_link(on: SqlSession, codec: RowCodec, scope: Scope, wanted: MemoryLink) -> list[Change]:
    source, target = (
        _end(on, codec, scope, wanted.from_id),
        _end(on, codec, scope, wanted.to_id),
    )
    if source is None or target is None:
        return []
    if wanted.type is LinkType.SUPERSEDES and source.supersedes != wanted.to_id.bytes:
        return []
    time = to_microseconds(wanted.created_at)
    link = (scope.agent_id, source.row, target.row, int(wanted.type), wanted.strength, time)
    if on.run(f"{on.dialect.insert_link} DO NOTHING", link) == 0:
        return []
    return [Change(source.row, wanted.from_id.bytes, "link", source.user_id)]


def _links(on: SqlSession, sql: str, values: Sequence[object]) -> list[LinkedRows]:
    """Return the links that a statement reads."""
    found = on.fetch(sql, values)
    with on.dialect.reading_stored("a link"):
        return [_linked_rows(columns) for columns in found]


def _among_types(dialect: Dialect, kinds: Collection[LinkType] | None) -> Condition:
    if kinds is None:
        return "", []
    return f"AND {dialect.among('l.type')}", [[int(kind) for kind in kinds]]


def _end(
    on: SqlSession,
    codec: RowCodec,
    scope: Scope,
    entry_id: UUID,
    present_at: int | None = None,
) -> _LinkedEntry | None:
    """Return the entry with an id in a scope, in any state if no time is given."""
    where, values = with_id(on.dialect, scope, entry_id)
    where = f"{where} AND {visible(codec)}"
    if present_at is not None:
        where, values = f"{where} AND {IS_PRESENT}", [*values, present_at]
    sql = f"SELECT row, user_id, supersedes FROM {ENTRIES} WHERE {where}"
    found = single(on.fetch(sql, values), scope, entry_id)
    return None if found is None else _LinkedEntry(*found)


def _present_end(
    on: SqlSession, codec: RowCodec, scope: Scope, entry_id: UUID, now: int
) -> _LinkedEntry:
    end = _end(on, codec, scope, entry_id, now)
    if end is None:
        raise not_found(entry_id, scope)
    return end
