"""The links of the SQLite store."""

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from datetime import datetime
from operator import attrgetter
from uuid import UUID

import apsw

from mnemic.model import LinkType, MemoryEntry, MemoryLink, MemoryStatus, Scope
from mnemic.model.link import Direction
from mnemic.model.scope import not_found
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change
from mnemic.store.duplicates import check_one_user, single
from mnemic.store.filter_sql import Condition
from mnemic.store.links import LinkedEntry, ReadLink, ends_of
from mnemic.store.row_codec import RowCodec, next_version
from mnemic.store.sqlite.change_log import log_changes
from mnemic.store.sqlite.checksums import check_links_of
from mnemic.store.sqlite.damage import reading_stored
from mnemic.store.sqlite.file import SqliteFile
from mnemic.store.sqlite.reads import entries_of_rows
from mnemic.store.sqlite.sql import (
    IS_PRESENT,
    fetch,
    integers,
    json_array,
    one_moment,
    visible_in,
    with_id,
)
from mnemic.store.values import LinkEnd, StoredLink

_WRITE = (
    "INSERT INTO agent_memory_links (from_row, to_row, type, strength, created_at) "
    "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET strength = excluded.strength "
    "RETURNING created_at"
)
_READ = (
    "SELECT f.row, t.row, f.user_id, f.id, t.id, l.type, l.strength, l.created_at "
    "FROM agent_memory_links AS l "
    "JOIN agent_memory_entries AS f ON f.row = l.from_row "
    "JOIN agent_memory_entries AS t ON t.row = l.to_row "
)
_COPY = (
    "INSERT OR IGNORE INTO agent_memory_links (from_row, to_row, type, strength, created_at) "
    "VALUES (?, ?, ?, ?, ?)"
)
_SUPERSEDE = "UPDATE agent_memory_entries SET status = ?, updated_at = ?, version = ? WHERE row = ?"
_SUPERSEDING = (
    "SELECT row, id, user_id, updated_at, version FROM agent_memory_links "
    "JOIN agent_memory_entries ON row = from_row WHERE to_row = ? AND type = ?"
)
_END_SUPERSESSION = (
    "UPDATE agent_memory_entries SET supersedes = NULL, updated_at = ?, version = ? WHERE row = ?"
)
_UNLINK = "DELETE FROM agent_memory_links WHERE from_row = ? AND to_row = ? AND type = ?"


class SqliteLinks(SqliteFile):
    """Reads and writes links; see `Store`."""

    def link(self, scope: Scope, wanted: MemoryLink, *, now: datetime) -> Future[MemoryLink]:
        """Write a link between two entries of a scope; return its new state."""
        time, made_at = to_microseconds(now), to_microseconds(wanted.created_at)

        def work(on: apsw.Connection) -> MemoryLink:
            source, target = (
                _present_end(on, self._codec, scope, entry_id, time)
                for entry_id in (wanted.from_id, wanted.to_id)
            )
            check_one_user(source.user_id, target.user_id)
            link = (source.row, target.row, int(wanted.type), wanted.strength, made_at)
            with reading_stored("a link"):
                ((created_at,),) = fetch(on, _WRITE, link)
                created_at = from_microseconds(created_at)
            changed = Change(source.row, wanted.from_id.bytes, "link", source.user_id)
            log_changes(on, scope.agent_id, [changed])
            return MemoryLink(
                wanted.from_id, wanted.to_id, wanted.type, wanted.strength, created_at
            )

        return self._write(work)

    def unlink(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | None
    ) -> Future[int]:
        """Delete the links from one entry of a scope to another; return their number."""
        types, bound = _among_types(None if kind is None else [kind])
        sql = (
            "DELETE FROM agent_memory_links WHERE from_row = ? AND to_row = ? "
            f"AND type <> ? {types}"
        )

        def work(on: apsw.Connection) -> int:
            source, target = (_end(on, self._codec, scope, one) for one in (from_id, to_id))
            if source is None or target is None:
                return 0
            values = (source.row, target.row, int(LinkType.SUPERSEDES), *bound)
            on.execute(sql, values)
            deleted = on.changes()
            if deleted:
                changed = Change(source.row, from_id.bytes, "link", source.user_id)
                log_changes(on, scope.agent_id, [changed])
            return deleted

        return self._write(work)

    def links(
        self,
        scope: Scope,
        entry_id: UUID,
        direction: Direction,
        kinds: Collection[LinkType] | None,
        *,
        now: datetime,
    ) -> list[MemoryLink]:
        """Return the links of an entry whose ends both exist."""
        time = to_microseconds(now)
        with self._reading() as connection, one_moment(connection):
            own = _end(connection, self._codec, scope, entry_id, present_at=time)
            if own is None:
                return []
            found = _links_at(
                connection, self._codec, scope, own.row, direction, kinds=kinds, now=time
            )
        return [read.link for read in found]

    def link_ends(
        self,
        scope: Scope,
        row: int,
        direction: Direction,
        kinds: Collection[LinkType] | None,
        *,
        now: datetime,
    ) -> list[LinkEnd]:
        """Return the other ends of the links of a row's entry, in the order of `links`."""
        time = to_microseconds(now)
        with self._reading() as connection, one_moment(connection):
            found = _links_at(connection, self._codec, scope, row, direction, kinds=kinds, now=time)
        return ends_of(row, found)

    def successors(
        self, scope: Scope, rows: Sequence[int], *, now: datetime, deadline: float | None = None
    ) -> dict[int, MemoryEntry]:
        """Return the entries of a scope that supersede one of these rows, by their own rows."""
        sql = (
            "SELECT DISTINCT from_row FROM agent_memory_links "
            "WHERE to_row IN (SELECT value FROM json_each(?)) AND type = ? ORDER BY from_row"
        )
        values = (json_array(rows), int(LinkType.SUPERSEDES))
        with self._reading(deadline) as connection, one_moment(connection):
            newer = integers([row for (row,) in fetch(connection, sql, values)])
            found = entries_of_rows(
                connection, self._codec, scope, newer, to_microseconds(now), include_deleted=True
            )
        return {row: entry for row, entry in found.items() if entry.is_present(now)}

    def links_within(
        self, scope: Scope, *, now: datetime, include_deleted: bool, deadline: float | None = None
    ) -> list[StoredLink]:
        """Return the links between entries of one user that `stored_after` returns."""
        where, values = visible_in(scope, self._codec)
        if not include_deleted:
            where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(now)]
        ends = [
            f"(SELECT row FROM agent_memory_entries WHERE {where} AND row = l.{end})"
            for end in ("from_row", "to_row")
        ]
        sql = (
            f"{_READ} WHERE l.from_row IN {ends[0]} AND l.to_row IN {ends[1]} "
            "AND f.user_id IS t.user_id"
        )
        with self._reading(deadline) as connection, one_moment(connection):
            found = _links(connection, sql, [*values, *values])
        return [StoredLink(read.link, read.user_id) for read in found]

    def add_links(self, scope: Scope, new: Sequence[StoredLink]) -> Future[int]:
        """Write links of any type between entries of a scope; return how many are new."""

        def work(on: apsw.Connection) -> int:
            changes = [
                change
                for wanted, user_id in new
                if scope.all_users or scope.user_id == user_id
                for change in _add_link(
                    on,
                    self._codec,
                    Scope(scope.agent_id, user_id, scope.project_id, scope.session_id),
                    wanted,
                )
            ]
            if changes:
                log_changes(on, scope.agent_id, changes)
            return len(changes)

        return self._write(work)


def supersede(
    connection: apsw.Connection, codec: RowCodec, entry: MemoryEntry, row: int, at: int
) -> Change | None:
    """Mark the entry that a stored entry supersedes, and link the two.

    Args:
        connection: In the transaction that stores the entry.
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
    where = f"{where} AND {codec.is_visible_sql}"
    sql = f"SELECT row, status, updated_at, version FROM agent_memory_entries WHERE {where}"
    found = fetch(connection, sql, values)
    if not found:
        return None
    superseded, status, updated_at, version = integers(found[0])
    if status != MemoryStatus.SUPERSEDED:
        version = next_version(version)
    new = int(MemoryStatus.SUPERSEDED), max(updated_at, at), version
    connection.execute(_SUPERSEDE, (*new, superseded))
    fetch(connection, _WRITE, (row, superseded, int(LinkType.SUPERSEDES), 1.0, at))
    return Change(superseded, entry.supersedes.bytes, "supersede", entry.user_id)


def end_supersession(connection: apsw.Connection, row: int, at: int) -> list[Change]:
    """Let the entries that superseded a row do so no more, before the row is stored again.

    They superseded its old content. Otherwise an import, or a later reader, would take the new one
    for superseded.

    Args:
        connection: In the transaction that stores the row again.
        row: The row.
        at: The time now, in microseconds since 1970 in UTC.

    Returns:
        The changes.
    """
    kind = int(LinkType.SUPERSEDES)
    changes: list[Change] = []
    for source, entry_id, user_id, *old in fetch(connection, _SUPERSEDING, (row, kind)):
        updated_at, version = integers(old)
        new = max(updated_at, at), next_version(version)
        connection.execute(_END_SUPERSESSION, (*new, source))
        connection.execute(_UNLINK, (source, row, kind))
        changes.append(Change(source, entry_id, "update", user_id))
    return changes


def _links_at(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    row: int,
    direction: Direction,
    *,
    kinds: Collection[LinkType] | None,
    now: int,
) -> list[ReadLink]:
    where, values = visible_in(scope, codec)
    present = f"SELECT row FROM agent_memory_entries WHERE {where} AND {IS_PRESENT}"
    types, bound = _among_types(kinds)
    found: list[ReadLink] = []
    for side in ("from_row", "to_row"):
        if (side, direction) in (("from_row", "in"), ("to_row", "out")):
            continue
        ends = " AND ".join(
            f"l.{end} IN ({present} AND row = l.{end})" for end in ("from_row", "to_row")
        )
        sql = f"{_READ} WHERE l.{side} = ? AND {ends} {types}"
        found += _links(connection, sql, (row, *values, now, *values, now, *bound))
    check_links_of(connection, [row])
    return sorted(found, key=attrgetter("place"))


def _add_link(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, wanted: MemoryLink
) -> list[Change]:
    source, target = (
        _end(connection, codec, scope, wanted.from_id),
        _end(connection, codec, scope, wanted.to_id),
    )
    if source is None or target is None:
        return []
    if wanted.type is LinkType.SUPERSEDES and source.supersedes != wanted.to_id.bytes:
        return []
    time = to_microseconds(wanted.created_at)
    values = (source.row, target.row, int(wanted.type), wanted.strength, time)
    connection.execute(_COPY, values)
    if connection.changes() == 0:
        return []
    return [Change(source.row, wanted.from_id.bytes, "link", source.user_id)]


def _links(connection: apsw.Connection, sql: str, parameters: Sequence[object]) -> list[ReadLink]:
    """Return the links that a statement reads, in their order."""
    found = fetch(connection, sql, parameters)
    with reading_stored("a link"):
        return sorted(map(ReadLink.of, found), key=attrgetter("place"))


def _among_types(kinds: Collection[LinkType] | None) -> Condition:
    if kinds is None:
        return "", []
    return f"AND type IN ({', '.join('?' * len(kinds))})", [int(kind) for kind in kinds]


def _end(
    connection: apsw.Connection,
    codec: RowCodec,
    scope: Scope,
    entry_id: UUID,
    present_at: int | None = None,
) -> LinkedEntry | None:
    """Return the entry with an id in a scope, in any state if no time is given."""
    where, values = with_id(scope, entry_id)
    where = f"{where} AND {codec.is_visible_sql}"
    if present_at is not None:
        where, values = f"{where} AND {IS_PRESENT}", [*values, present_at]
    sql = f"SELECT row, user_id, supersedes FROM agent_memory_entries WHERE {where}"
    found = single(fetch(connection, sql, values), scope, entry_id)
    return None if found is None else LinkedEntry(*found)


def _present_end(
    connection: apsw.Connection, codec: RowCodec, scope: Scope, entry_id: UUID, now: int
) -> LinkedEntry:
    end = _end(connection, codec, scope, entry_id, now)
    if end is None:
        raise not_found(entry_id, scope)
    return end
