"""The links of the PostgreSQL store."""

from collections.abc import Collection, Sequence
from concurrent.futures import Future
from datetime import datetime
from operator import attrgetter
from typing import Any, Final
from uuid import UUID

from mnemic.model import LinkType, MemoryEntry, MemoryLink, Scope
from mnemic.model.link import Direction
from mnemic.model.scope import not_found
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change
from mnemic.store.duplicates import check_one_user, single
from mnemic.store.filter_sql import Condition
from mnemic.store.links import LinkedEntry, ReadLink, ends_of
from mnemic.store.postgres.change_log import log_changes
from mnemic.store.postgres.opened_database import OpenedDatabase
from mnemic.store.postgres.reads import entries_of_rows
from mnemic.store.postgres.session import Session
from mnemic.store.postgres.sql import ENTRIES, IS_PRESENT, LINKS, visible, visible_in, with_id
from mnemic.store.postgres.stored import reading_stored
from mnemic.store.postgres.supersession import INSERT_LINK, PUT_LINK
from mnemic.store.row_codec import RowCodec
from mnemic.store.values import LinkEnd, StoredLink

_READ: Final = (
    "SELECT f.row, t.row, f.user_id, f.id, t.id, l.type, l.strength, l.created_at "
    f"FROM {LINKS} AS l "
    f"JOIN {ENTRIES} AS f ON f.agent_id = l.agent_id AND f.row = l.from_row "
    f"JOIN {ENTRIES} AS t ON t.agent_id = l.agent_id AND t.row = l.to_row "
)


class PostgresLinks(OpenedDatabase):
    """Reads and writes links; see `Store`."""

    def link(self, scope: Scope, wanted: MemoryLink, *, now: datetime) -> Future[MemoryLink]:
        """Write a link between two entries of a scope; return its new state."""
        time, made_at = to_microseconds(now), to_microseconds(wanted.created_at)

        def work(on: Session) -> MemoryLink:
            source, target = (
                _present_end(on, self._codec, scope, entry_id, time)
                for entry_id in (wanted.from_id, wanted.to_id)
            )
            check_one_user(source.user_id, target.user_id)
            place = scope.agent_id, source.row, target.row, int(wanted.type)
            created_at = from_microseconds(on.value(PUT_LINK, (*place, wanted.strength, made_at)))
            changed = Change(source.row, wanted.from_id.bytes, "link", source.user_id)
            log_changes(on, scope.agent_id, [changed])
            return MemoryLink(
                wanted.from_id, wanted.to_id, wanted.type, wanted.strength, created_at
            )

        return self._write(scope.agent_id, work)

    def unlink(
        self, scope: Scope, from_id: UUID, to_id: UUID, kind: LinkType | None
    ) -> Future[int]:
        """Delete the links from one entry of a scope to another; return their number."""
        types, bound = _among_types(None if kind is None else [kind])
        sql = (
            f"DELETE FROM {LINKS} AS l WHERE agent_id = %s AND from_row = %s AND to_row = %s "
            f"AND type <> %s {types}"
        )

        def work(on: Session) -> int:
            source, target = (_end(on, self._codec, scope, one) for one in (from_id, to_id))
            if source is None or target is None:
                return 0
            place = scope.agent_id, source.row, target.row, int(LinkType.SUPERSEDES)
            deleted = on.run(sql, (*place, *bound))
            if deleted:
                changed = Change(source.row, from_id.bytes, "link", source.user_id)
                log_changes(on, scope.agent_id, [changed])
            return deleted

        return self._write(scope.agent_id, work)

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

        def work(on: Session) -> list[ReadLink]:
            own = _end(on, self._codec, scope, entry_id, present_at=time)
            if own is None:
                return []
            return _links_at(on, self._codec, scope, own.row, direction, kinds=kinds, now=time)

        return [read.link for read in self._read(scope.agent_id, work, one_moment=True)]

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
        found = self._read(
            scope.agent_id,
            lambda on: _links_at(on, self._codec, scope, row, direction, kinds=kinds, now=time),
            one_moment=True,
        )
        return ends_of(row, found)

    def successors(
        self, scope: Scope, rows: Sequence[int], *, now: datetime, deadline: float | None = None
    ) -> dict[int, MemoryEntry]:
        """Return the entries of a scope that supersede one of these rows, by their own rows."""
        sql = (
            f"SELECT DISTINCT from_row FROM {LINKS} "
            "WHERE agent_id = %s AND to_row = ANY(%s) AND type = %s ORDER BY from_row"
        )
        values = (scope.agent_id, [int(row) for row in rows], int(LinkType.SUPERSEDES))

        def work(on: Session) -> dict[int, MemoryEntry]:
            newer, time = [row for (row,) in on.fetch(sql, values)], to_microseconds(now)
            return entries_of_rows(on, self._codec, scope, newer, time, include_deleted=True)

        found = self._read(scope.agent_id, work, deadline=deadline, one_moment=True)
        return {row: entry for row, entry in found.items() if entry.is_present(now)}

    def links_within(
        self, scope: Scope, *, now: datetime, include_deleted: bool, deadline: float | None = None
    ) -> list[StoredLink]:
        """Return the links between entries of one user that `stored_after` returns."""
        where, values = visible_in(scope, self._codec)
        if not include_deleted:
            where, values = f"{where} AND {IS_PRESENT}", [*values, to_microseconds(now)]
        is_of_one_user = "f.user_id IS NOT DISTINCT FROM t.user_id"
        sql = f"{_READ} WHERE l.agent_id = %s {_of(where)} AND {is_of_one_user}"
        found = self._read(
            scope.agent_id,
            lambda on: _links(on, sql, [scope.agent_id, *values, *values]),
            deadline=deadline,
        )
        return [StoredLink(read.link, read.user_id) for read in found]

    def add_links(self, scope: Scope, new: Sequence[StoredLink]) -> Future[int]:
        """Write links of any type between entries of a scope; return how many are new."""

        def work(on: Session) -> int:
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

        return self._write(scope.agent_id, work)


def _links_at(
    session: Session,
    codec: RowCodec,
    scope: Scope,
    row: int,
    direction: Direction,
    *,
    kinds: Collection[LinkType] | None,
    now: int,
) -> list[ReadLink]:
    where, values = visible_in(scope, codec)
    present = _of(f"{where} AND {IS_PRESENT}"), [*values, now]
    types, bound = _among_types(kinds)
    found: list[ReadLink] = []
    for side in ("from_row", "to_row"):
        if (side, direction) in (("from_row", "in"), ("to_row", "out")):
            continue
        sql = f"{_READ} WHERE l.agent_id = %s AND l.{side} = %s {present[0]} {types}"
        found += _links(session, sql, (scope.agent_id, row, *present[1], *present[1], *bound))
    return sorted(found, key=attrgetter("place"))


def _of(where: str) -> str:
    """Return a condition on both ends of a link."""
    return "".join(
        f" AND EXISTS (SELECT 1 FROM {ENTRIES} AS e WHERE e.row = l.{end} AND {where})"
        for end in ("from_row", "to_row")
    )


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
    if session.run(f"{INSERT_LINK} DO NOTHING", values) == 0:
        return []
    return [Change(source.row, wanted.from_id.bytes, "link", source.user_id)]


def _links(session: Session, sql: str, parameters: Sequence[Any]) -> list[ReadLink]:
    """Return the links that a statement reads, in their order."""
    with reading_stored("a link"):
        found = map(ReadLink.of, session.fetch(sql, parameters))
        return sorted(found, key=attrgetter("place"))


def _among_types(kinds: Collection[LinkType] | None) -> Condition:
    if kinds is None:
        return "", []
    return "AND l.type = ANY(%s)", [[int(kind) for kind in kinds]]


def _end(
    session: Session, codec: RowCodec, scope: Scope, entry_id: UUID, present_at: int | None = None
) -> LinkedEntry | None:
    """Return the entry with an id in a scope, in any state if no time is given."""
    where, values = with_id(scope, entry_id)
    where = f"{where} AND {visible(codec)}"
    if present_at is not None:
        where, values = f"{where} AND {IS_PRESENT}", [*values, present_at]
    sql = f"SELECT row, user_id, supersedes FROM {ENTRIES} WHERE {where}"
    found = single(session.fetch(sql, values), scope, entry_id)
    return None if found is None else LinkedEntry(*found)


def _present_end(
    session: Session, codec: RowCodec, scope: Scope, entry_id: UUID, now: int
) -> LinkedEntry:
    end = _end(session, codec, scope, entry_id, now)
    if end is None:
        raise not_found(entry_id, scope)
    return end
