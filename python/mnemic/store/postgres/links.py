"""SQL statements on links; each runs on a given connection."""

from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from mnemic.errors import InvalidEntryError
from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, Scope
from mnemic.model.link import Direction
from mnemic.model.scope import not_found
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change
from mnemic.store.duplicates import check_one_user, single
from mnemic.store.filter_sql import Condition
from mnemic.store.postgres.change_log import log_changes
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import ENTRIES, IS_PRESENT, LINKS, visible, visible_in, with_id
from mnemic.store.postgres.stored import reading_stored
from mnemic.store.row_codec import RowCodec, next_version, uuid_of
from mnemic.store.values import LinkEnd, StoredLink

_INSERT: Final = (
    f"INSERT INTO {LINKS} (agent_id, from_row, to_row, type, strength, created_at) "
    "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (agent_id, from_row, to_row, type)"
)
_PUT: Final = f"{_INSERT} DO UPDATE SET strength = excluded.strength RETURNING created_at"
_READ: Final = (
    "SELECT f.row, t.row, f.user_id, f.id, t.id, l.type, l.strength, l.created_at "
    f"FROM {LINKS} AS l "
    f"JOIN {ENTRIES} AS f ON f.agent_id = l.agent_id AND f.row = l.from_row "
    f"JOIN {ENTRIES} AS t ON t.agent_id = l.agent_id AND t.row = l.to_row "
)


def supersede(
    session: Session, codec: RowCodec, entry: MemoryEntry, row: int, at: int
) -> Change | None:
    """Mark the entry that a stored entry supersedes, and link the two.

    Args:
        session: In the transaction that stores the entry.
        codec: Codec of the entries; one that it cannot read is superseded by none.
        entry: The stored entry.
        row: Its row.
        at: When it was stored, in microseconds since 1970 in UTC.

    Returns:
        The change; None if there is no such entry.
    """
    if entry.supersedes is None:
        return None
    where, values = with_id(Scope(entry.agent_id, entry.user_id), entry.supersedes)
    where = f"{where} AND {visible(codec)}"
    sql = f"SELECT row, status, updated_at, version FROM {ENTRIES} WHERE {where}"
    found = session.fetch(sql, values)
    if not found:
        return None
    superseded, status, updated_at, version = found[0]
    if status != MemoryStatus.SUPERSEDED:
        version = next_version(version)
    session.run(
        f"UPDATE {ENTRIES} SET status = %s, updated_at = %s, version = %s "
        "WHERE agent_id = %s AND row = %s",
        (int(MemoryStatus.SUPERSEDED), max(updated_at, at), version, entry.agent_id, superseded),
    )
    link = (entry.agent_id, row, superseded, int(LinkType.SUPERSEDES), 1.0, at)
    session.fetch(_PUT, link)
    return Change(superseded, entry.supersedes.bytes, "supersede", entry.user_id)


def end_supersession(session: Session, agent_id: str, row: int, at: int) -> list[Change]:
    """Let the entries that superseded a row do so no more, before the row is stored again.

    They superseded its old content. Otherwise an import, or a later reader, would take the new one
    for superseded.

    Args:
        session: In the transaction that stores the row again.
        agent_id: The agent.
        row: The row.
        at: The time now, in microseconds since 1970 in UTC.
    """
    sql = (
        f"DELETE FROM {LINKS} WHERE agent_id = %s AND to_row = %s AND type = %s RETURNING from_row"
    )
    sources = session.fetch(sql, (agent_id, row, int(LinkType.SUPERSEDES)))
    sql = (
        f"SELECT row, id, user_id, updated_at, version FROM {ENTRIES} "
        "WHERE agent_id = %s AND row = ANY(%s) ORDER BY row"
    )
    changes = []
    for source, entry_id, user_id, updated_at, version in session.fetch(
        sql, (agent_id, [source for (source,) in sources])
    ):
        session.run(
            f"UPDATE {ENTRIES} SET supersedes = NULL, updated_at = %s, version = %s "
            "WHERE agent_id = %s AND row = %s",
            (max(updated_at, at), next_version(version), agent_id, source),
        )
        changes.append(Change(source, entry_id, "update", user_id))
    return changes


def link(
    session: Session, codec: RowCodec, scope: Scope, wanted: MemoryLink, now: int
) -> MemoryLink:
    """Write a link between two present entries of a scope; return it as it is then.

    Raises:
        EntryNotFoundError: If one of them is not there.
        LinkAcrossUsersError: If they are of different users.
    """
    source, target = (
        _present_end(session, codec, scope, entry_id, now)
        for entry_id in (wanted.from_id, wanted.to_id)
    )
    check_one_user(source.user_id, target.user_id)
    time = to_microseconds(wanted.created_at)
    values = (scope.agent_id, source.row, target.row, int(wanted.type), wanted.strength, time)
    created_at = from_microseconds(session.value(_PUT, values))
    changed = Change(source.row, wanted.from_id.bytes, "link", source.user_id)
    log_changes(session, scope.agent_id, [changed])
    return MemoryLink(wanted.from_id, wanted.to_id, wanted.type, wanted.strength, created_at)


def unlink(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    from_id: UUID,
    to_id: UUID,
    *,
    kind: LinkType | None,
) -> int:
    """Delete the links from one entry of a scope to another; return how many."""
    source, target = _end(session, codec, scope, from_id), _end(session, codec, scope, to_id)
    if source is None or target is None:
        return 0
    types, bound = _among_types(None if kind is None else [kind])
    deleted = session.run(
        f"DELETE FROM {LINKS} AS l WHERE agent_id = %s AND from_row = %s AND to_row = %s "
        f"AND type <> %s {types}",
        (scope.agent_id, source.row, target.row, int(LinkType.SUPERSEDES), *bound),
    )
    if deleted:
        changed = Change(source.row, from_id.bytes, "link", source.user_id)
        log_changes(session, scope.agent_id, [changed])
    return deleted


def links(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    entry_id: UUID,
    direction: Direction,
    *,
    kinds: Collection[LinkType] | None,
    now: int,
) -> list[MemoryLink]:
    """Return the links of an entry whose ends are both present in the scope."""
    own = _end(session, codec, scope, entry_id, present_at=now)
    if own is None:
        return []
    return [
        read.link
        for read in _links_at(session, codec, scope, own.row, direction, kinds=kinds, now=now)
    ]


def link_ends(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    row: int,
    direction: Direction,
    *,
    kinds: Collection[LinkType] | None,
    now: int,
) -> list[LinkEnd]:
    """Return what the links of a row's entry lead to; both ends present in the scope."""
    return [
        LinkEnd(
            read.to_row if read.from_row == row else read.from_row,
            read.link.type,
            read.link.strength,
        )
        for read in _links_at(session, codec, scope, row, direction, kinds=kinds, now=now)
    ]


def successor_rows(session: Session, agent_id: str, rows: Sequence[int]) -> list[int]:
    """Return the rows of the entries that supersede one of these, in any state, ascending."""
    sql = (
        f"SELECT DISTINCT from_row FROM {LINKS} "
        "WHERE agent_id = %s AND to_row = ANY(%s) AND type = %s ORDER BY from_row"
    )
    values = (agent_id, [int(row) for row in rows], int(LinkType.SUPERSEDES))
    return [row for (row,) in session.fetch(sql, values)]


def _links_at(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    row: int,
    direction: Direction,
    *,
    kinds: Collection[LinkType] | None,
    now: int,
) -> "list[_Link]":
    where, values = visible_in(scope, codec)
    present = _of(f"{where} AND {IS_PRESENT}"), [*values, now]
    types, bound = _among_types(kinds)
    found: list[_Link] = []
    for side in ("from_row", "to_row"):
        if (side, direction) in (("from_row", "in"), ("to_row", "out")):
            continue
        sql = f"{_READ} WHERE l.agent_id = %s AND l.{side} = %s {present[0]} {types}"
        found += _links(session, sql, (scope.agent_id, row, *present[1], *present[1], *bound))
    return sorted(found, key=_order)


def _of(where: str) -> str:
    """Return a condition on both ends of a link."""
    return "".join(
        f" AND EXISTS (SELECT 1 FROM {ENTRIES} AS e WHERE e.row = l.{end} AND {where})"
        for end in ("from_row", "to_row")
    )


def links_within(
    session: Session, codec: RowCodec, scope: Scope, present_at: int | None
) -> list[StoredLink]:
    """Return the links between entries of one user; between all states if no time is given."""
    where, values = visible_in(scope, codec)
    if present_at is not None:
        where, values = f"{where} AND {IS_PRESENT}", [*values, present_at]
    sql = f"{_READ} WHERE l.agent_id = %s {_of(where)} AND f.user_id IS NOT DISTINCT FROM t.user_id"
    found = sorted(_links(session, sql, [scope.agent_id, *values, *values]), key=_order)
    return [StoredLink(read.link, read.user_id) for read in found]


def add_links(session: Session, codec: RowCodec, scope: Scope, new: Sequence[StoredLink]) -> int:
    """Write missing links whose ends are in a scope and of one user; return how many are new."""
    changes = [
        change
        for wanted, user_id in new
        if scope.all_users or scope.user_id == user_id
        for change in _add_link(
            session,
            codec,
            Scope(scope.agent_id, user_id, scope.project_id, scope.session_id),
            wanted,
        )
    ]
    if changes:
        log_changes(session, scope.agent_id, changes)
    return len(changes)


def _add_link(session: Session, codec: RowCodec, scope: Scope, wanted: MemoryLink) -> list[Change]:
    source, target = (
        _end(session, codec, scope, wanted.from_id),
        _end(session, codec, scope, wanted.to_id),
    )
    if source is None or target is None:
        return []
    if wanted.type is LinkType.SUPERSEDES and source.supersedes != wanted.to_id.bytes:
        return []
    time = to_microseconds(wanted.created_at)
    values = (scope.agent_id, source.row, target.row, int(wanted.type), wanted.strength, time)
    if session.run(f"{_INSERT} DO NOTHING", values) == 0:
        return []
    return [Change(source.row, wanted.from_id.bytes, "link", source.user_id)]


class _Link(NamedTuple):
    """A link with the rows of its ends and the user of its source."""

    from_row: int
    to_row: int
    user_id: str | None
    link: MemoryLink


def _links(session: Session, sql: str, parameters: Sequence[Any]) -> list[_Link]:
    with reading_stored("a link"):
        return [_link(columns) for columns in session.fetch(sql, parameters)]


def _link(columns: Columns) -> _Link:
    from_row, to_row, user_id, from_id, to_id, kind, strength, created_at = columns
    ends = uuid_of(from_id), uuid_of(to_id)
    try:
        link = MemoryLink(*ends, LinkType.numbered(kind), strength, from_microseconds(created_at))
    except InvalidEntryError as error:
        raise ValueError(str(error)) from error
    return _Link(from_row, to_row, user_id, link)


def _order(read: _Link) -> tuple[object, ...]:
    link = read.link
    return link.created_at, link.from_id, link.to_id, link.type, read.user_id or ""


def _among_types(kinds: Collection[LinkType] | None) -> Condition:
    if kinds is None:
        return "", []
    return "AND l.type = ANY(%s)", [[int(kind) for kind in kinds]]


class _End(NamedTuple):
    """One end of a link: row and user of an entry, and the entry that it supersedes."""

    row: int
    user_id: str | None
    supersedes: bytes | None


def _end(
    session: Session, codec: RowCodec, scope: Scope, entry_id: UUID, present_at: int | None = None
) -> _End | None:
    """Return the entry with an id in a scope, in any state if no time is given."""
    where, values = with_id(scope, entry_id)
    where = f"{where} AND {visible(codec)}"
    if present_at is not None:
        where, values = f"{where} AND {IS_PRESENT}", [*values, present_at]
    sql = f"SELECT row, user_id, supersedes FROM {ENTRIES} WHERE {where}"
    found = single(session.fetch(sql, values), scope, entry_id)
    return None if found is None else _End(*found)


def _present_end(session: Session, codec: RowCodec, scope: Scope, entry_id: UUID, now: int) -> _End:
    end = _end(session, codec, scope, entry_id, now)
    if end is None:
        raise not_found(entry_id, scope)
    return end
