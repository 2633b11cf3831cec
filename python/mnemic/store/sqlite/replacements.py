"""SQL statements that store entries over those with their ids; each runs in a transaction."""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import force_setattr

from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, MemoryStatus, OnConflict
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.new_rows import NewRow, Outcome, Replacement
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENTRY_ID,
    EncodedRow,
    RowCodec,
    UsedKey,
    next_version,
)
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, KEY, check
from mnemic.store.sqlite.damage import DAMAGED, plain_records, reading_stored
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.new_rows import WrittenRows, fetch_checked, upsert_vectors
from mnemic.store.sqlite.shadow_vectors import DELETE_OF_ROW, IS_OWN
from mnemic.store.sqlite.sql import (
    USER_KEY,
    Columns,
    assigned,
    execute_all,
    fetch,
    json_array,
)
from mnemic.store.values import Model, ReplacedEntry

Place: TypeAlias = tuple[str, bytes]
"""User, '' for none, and id of an entry of one agent."""

_KEPT: Final = frozenset({"agent_id", "id", "user_id", "created_at"})
"""Columns that a replacement leaves as they are."""

_WRITTEN: Final = (*COLUMN_NAMES, "fingerprint", "idempotency_key", "key_fingerprint")
_INDEXED: Final = {
    name: _WRITTEN.index(name)
    for name in (
        *("memory_type", "status", "forgotten_at", "expires_at"),
        *("fingerprint", "idempotency_key"),
    )
}
"""Columns of indexes: SQLite rewrites an index where a statement names one of its columns."""

_OF_IDS: Final = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries "
    f"WHERE agent_id = ? AND {{among}} AND {USER_KEY} = ?"
)
_IS_ONE: Final = "id = ?"
_ARE_SOME: Final = "id IN (SELECT unhex(value) FROM json_each(?))"
_WITH_VECTORS: Final = (
    "SELECT entry_row FROM agent_memory_embeddings "
    "WHERE entry_row IN (SELECT value FROM json_each(?)) AND model = ? AND part = 0 "
    "AND embedding <> zeroblob(length(embedding))"  # which stands for no vector
)
_DELETE_VECTORS: Final = (
    "DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND (model <> ? OR part >= ?)"
)
_DELETE_OWN_VECTORS: Final = f"{_DELETE_VECTORS} AND {IS_OWN}"
_DELETE_LINKS: Final = "DELETE FROM agent_memory_links WHERE from_row = ?"

_AT: Final = {name: at for at, name in enumerate(COLUMN_NAMES)}
_AGENT, _ID, _USER = _AT["agent_id"], _AT["id"], _AT["user_id"]
_CREATED_AT, _UPDATED_AT, _VERSION = _AT["created_at"], _AT["updated_at"], _AT["version"]
_STATUS, _FORGOTTEN_AT = _AT["status"], _AT["forgotten_at"]
_CONTENT, _ACCESSES = _AT["content"], _AT["access_count"]
_ENCRYPTED: Final = _AT["is_encrypted"]


class StoredRow(NamedTuple):
    """A row that is stored already.

    Attributes:
        row: Its number.
        columns: Its columns, in the order of `COLUMNS`.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        plain: The columns in plain text.
        size: Bytes of the content that count in the quota.
    """

    row: int
    columns: Columns
    more: Columns
    plain: Columns
    size: int

    @property
    def content(self) -> str:
        """Its content."""
        return str(self.plain[_CONTENT])

    @property
    def is_superseded(self) -> bool:
        """Whether another entry superseded it."""
        return bool(self.columns[_STATUS] == MemoryStatus.SUPERSEDED)

    @property
    def is_sealed(self) -> bool:
        """Whether it is sealed."""
        return bool(self.columns[_ENCRYPTED])

    @property
    def was_active(self) -> bool:
        """Whether an index of active entries has it."""
        is_forgotten = self.columns[_FORGOTTEN_AT] is not None
        return self.columns[_STATUS] == MemoryStatus.ACTIVE and not is_forgotten

    @property
    def was_accessed(self) -> bool:
        """Whether accesses of it are stored."""
        return bool(self.columns[_ACCESSES])


def place_of(new: NewRow) -> Place:
    """Return user and id of an entry."""
    return new.entry.user_id or "", new.columns[_ID]


def stored_rows(
    connection: GuardedConnection, codec: RowCodec, agent_id: str, places: Sequence[Place]
) -> dict[Place, StoredRow]:
    """Return what is stored, in any state, under the ids of users.

    Raises:
        StoreCorruptError: If such a row is damaged.
    """
    ids: dict[str, list[bytes]] = {}
    for user, entry_id in places:
        ids.setdefault(user, []).append(entry_id)
    found = [row for user in ids for row in _rows_of_ids(connection, agent_id, user, ids[user])]
    if not found:
        return {}
    check(found)
    plain = _opened(codec, agent_id, [row[: KEY - 1] for row in found])
    stored = {
        (row[1 + _USER] or "", row[1 + _ID]): StoredRow(
            row=row[0],
            columns=row[1 : KEY - 1],
            more=row[KEY - 1 : KEY + 2],
            plain=record[1:],
            size=codec.stored_content_size(row[1 + _CONTENT]),
        )
        for row, record in zip(found, plain, strict=True)
    }
    is_own = all(row[1 + _AGENT] == agent_id for row in found)
    if not is_own or not stored.keys() <= set(places):
        raise StoreCorruptError(f"an index leads to another memory; {DAMAGED}")
    return stored


def _opened(codec: RowCodec, agent_id: str, rows: list[Columns]) -> list[Columns]:
    """Return rows in plain text.

    Raises:
        KeyUnavailableError: If one is sealed, and there is no key.
        SealBrokenError: If one does not open.
    """
    opened = plain_records(codec, rows)
    if len(opened) < len(rows):
        lost = {row[0] for row in rows} - {row[0] for row in opened}
        raise codec.unopened((agent_id, next(row[ENTRY_ID] for row in rows if row[0] in lost)))
    return opened


def need_vectors(
    connection: GuardedConnection,
    codec: RowCodec,
    agent_id: str,
    entries: Sequence[MemoryEntry],
    *,
    model: str,
    on_conflict: OnConflict,
) -> list[bool]:
    """Return for each entry whether storing it needs its vectors, in the current state."""
    places = [(entry.user_id or "", entry.id.bytes) for entry in entries]
    stored = stored_rows(connection, codec, agent_id, places)
    if on_conflict == "skip" or not stored:
        return [place not in stored for place in places]
    rows = json_array([old.row for old in stored.values()])
    embedded = {row for (row,) in fetch(connection, _WITH_VECTORS, (rows, model))}
    return [
        place not in stored
        or stored[place].row not in embedded
        or stored[place].content != entry.content
        or stored[place].is_sealed != entry.is_encrypted
        for place, entry in zip(places, entries, strict=True)
    ]


def _rows_of_ids(
    connection: GuardedConnection, agent_id: str, user: str, ids: Sequence[bytes]
) -> list[Columns]:
    if len(ids) == 1:
        return fetch_checked(connection, _OF_IDS.format(among=_IS_ONE), (agent_id, ids[0], user))
    listed = "[" + ",".join(f'"{entry_id.hex()}"' for entry_id in ids) + "]"
    return fetch_checked(connection, _OF_IDS.format(among=_ARE_SOME), (agent_id, listed, user))


class _Overwrite(NamedTuple):
    """An entry and the row that it takes the place of.

    Attributes:
        new: The entry, as it was given.
        old: The row.
        entry: The entry, as it is stored.
        columns: Its columns.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
    """

    new: NewRow
    old: StoredRow
    entry: MemoryEntry
    columns: Columns
    more: Columns

    @property
    def size(self) -> int:
        """Bytes of the content that count in the quota."""
        return self.new.size if not self.entry.is_encrypted else len(self.columns[_CONTENT])

    @property
    def changes_content(self) -> bool:
        """Whether the content is another one."""
        return self.entry.content != self.old.content

    @property
    def keeps_vectors(self) -> bool:
        """Whether the vectors stay; those of an entry that is sealed now do not."""
        is_sealed_alike = self.entry.is_encrypted == self.old.is_sealed
        return not self.changes_content and not self.new.vectors and is_sealed_alike

    @property
    def clears_index(self) -> bool:
        """Whether an index must forget the row first; see `changes.ChangeKind`.

        It then reads the row with its vectors, as it must where it lacks those that stay.
        """
        has_other_vectors = bool(self.new.vectors) and not self.changes_content
        lacks_vectors = self.keeps_vectors and not self.old.was_active
        return self.old.was_accessed or has_other_vectors or lacks_vectors


def replace(
    connection: GuardedConnection,
    codec: RowCodec,
    pairs: Sequence[tuple[NewRow, StoredRow]],
    now: int,
    model: Model | None,
) -> WrittenRows:
    """Store entries over others.

    A row keeps its number, its time of creation and the links that lead to it. Its vectors stay if
    the content does and no others are given. Its idempotency key stays unless another is given, so
    that a late repetition of the first call still finds what it stored.
    """
    overwrites = [_overwrite(codec, new, old, now) for new, old in pairs]
    _update_rows(connection, overwrites)
    execute_all(connection, _DELETE_LINKS, [(overwrite.old.row,) for overwrite in overwrites])
    _replace_vectors(connection, overwrites, model)
    return WrittenRows(
        [_outcome(overwrite) for overwrite in overwrites],
        [_change(overwrite) for overwrite in overwrites],
    )


def _overwrite(codec: RowCodec, new: NewRow, old: StoredRow, now: int) -> _Overwrite:
    with reading_stored("a memory"):
        created_at = from_microseconds(old.columns[_CREATED_AT])
        version = next_version(old.columns[_VERSION])
    updated_at = max(now, old.columns[_CREATED_AT])
    entry = copy.copy(new.entry)
    force_setattr(entry, "created_at", created_at)
    force_setattr(entry, "updated_at", from_microseconds(updated_at))
    force_setattr(entry, "version", version)
    if new.more[1] is None and (entry.is_encrypted or old.more[1] is not None):
        used = codec.used_key(EncodedRow(old.columns, old.more))
        ((columns, more, _),) = codec.rows([(entry, used)])
    else:
        more, columns = new.more, _columns(codec, new, entry)
    return _Overwrite(new, old, entry, columns, more)


def _columns(codec: RowCodec, new: NewRow, entry: MemoryEntry) -> Columns:
    """Return the columns of an entry as it is stored over another one."""
    if entry.is_encrypted:  # the time of creation is sealed too
        used = UsedKey(new.given_key) if new.more[1] is not None else None
        return codec.rows([(entry, used)])[0].columns
    columns = list(new.columns)
    columns[_CREATED_AT] = to_microseconds(entry.created_at)
    columns[_UPDATED_AT], columns[_VERSION] = to_microseconds(entry.updated_at), entry.version
    return tuple(columns)


def _update_rows(connection: GuardedConnection, overwrites: Iterable[_Overwrite]) -> None:
    """Write the rows, each by a statement that names no indexed column that stays as it is."""
    groups: dict[frozenset[str], list[Columns]] = {}
    for overwrite in overwrites:
        old, new = (
            (*overwrite.old.columns, *overwrite.old.more),
            (*overwrite.columns, *overwrite.more),
        )
        same = frozenset([name for name, at in _INDEXED.items() if old[at] == new[at]])
        groups.setdefault(same, []).append((*_statement(same).pick(new), overwrite.old.row))
    for same, values in groups.items():
        execute_all(connection, _statement(same).sql, values)


class _Statement(NamedTuple):
    """A statement that writes some columns of a row, and the choice of their values."""

    sql: str
    pick: Callable[[Columns], Columns]


@cache
def _statement(same: frozenset[str]) -> _Statement:
    names = [name for name in _WRITTEN if name not in _KEPT | same]
    # Where a constraint fails, the write ends: SQLite need not be able to undo this row alone.
    sql = f"UPDATE OR FAIL agent_memory_entries SET {assigned(names)} WHERE row = ?"
    return _Statement(sql, itemgetter(*map(_WRITTEN.index, names)))


def _replace_vectors(
    connection: GuardedConnection, overwrites: Sequence[_Overwrite], model: Model | None
) -> None:
    hidden = [(overwrite.old.row,) for overwrite in overwrites if overwrite.entry.hides_content]
    if hidden:
        execute_all(connection, DELETE_OF_ROW, hidden)
    outdated = [overwrite for overwrite in overwrites if not overwrite.keeps_vectors]
    if not outdated:
        return
    name = "" if model is None else model[0]
    for delete, is_of_new in ((_DELETE_VECTORS, True), (_DELETE_OWN_VECTORS, False)):
        surplus = [
            (overwrite.old.row, name, len(overwrite.new.vectors))
            for overwrite in outdated
            if overwrite.changes_content is is_of_new
        ]
        execute_all(connection, delete, surplus)
    rows = [
        (overwrite.old.row, overwrite.columns[_UPDATED_AT], overwrite.new) for overwrite in outdated
    ]
    upsert_vectors(connection, model, rows)


def _outcome(overwrite: _Overwrite) -> Outcome:
    is_sealed_now = overwrite.entry.is_encrypted and not overwrite.old.is_sealed
    shown = ReplacedEntry(overwrite.entry, overwrite.changes_content, is_sealed_now)
    replacement = Replacement(shown, overwrite.columns, overwrite.clears_index)
    return Outcome(
        overwrite.old.row, overwrite.new.columns[_ID], is_new=False, replacement=replacement
    )


def _change(overwrite: _Overwrite) -> Change:
    kind: ChangeKind = "replace" if overwrite.clears_index or overwrite.new.vectors else "update"
    size = overwrite.size - overwrite.old.size
    return Change(
        overwrite.old.row, overwrite.new.columns[_ID], kind, overwrite.entry.user_id, size
    )
