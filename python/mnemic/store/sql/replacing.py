"""Entries that are stored over those with their ids, in the stores in SQL."""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import force_setattr

from mnemic.errors import StoreCorruptError
from mnemic.model import MemoryEntry, MemoryStatus
from mnemic.model.timestamps import from_microseconds
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.operations import NeedVectors
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENTRY_ID,
    EncodedRow,
    RowCodec,
    UsedKey,
    encoded_row,
    next_version,
)
from mnemic.store.sql.conditions import EMBEDDINGS, ENTRIES, LINKS, assigned
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.new_rows import NewRow, Outcome, Replacement, WrittenRows
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import Model, OwnedId, ReplacedEntry

Place: TypeAlias = tuple[str, bytes]
"""User, '' for none, and id of an entry of one agent."""

_ALL: Final = (*COLUMN_NAMES, "fingerprint", "idempotency_key", "key_fingerprint")
_KEPT: Final = frozenset({"agent_id", "id", "user_id", "created_at"})

WRITTEN: Final = tuple(name for name in _ALL if name not in _KEPT)
"""Columns that an entry in another one's place, or a change that seals it, writes."""

_INDEXED: Final = {
    name: _ALL.index(name)
    for name in (
        *("memory_type", "status", "forgotten_at", "expires_at"),
        *("fingerprint", "idempotency_key"),
    )
}
"""Columns of indexes: SQLite rewrites an index where a statement names one of its columns."""

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
        columns: Its columns, in the order of `COLUMN_NAMES`.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        plain: The columns in plain text.
        size: Bytes of the content that count in the quota.
    """

    row: int
    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
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


def with_owned_ids(dialect: Dialect, agent_id: str, wanted: Sequence[OwnedId]) -> Condition:
    """Return the statement that reads what is stored, in any state, under ids of users."""
    if len(wanted) == 1:
        ((user_id, entry_id),) = wanted
        return _of_id(dialect.keyed_row, dialect.user_key), [agent_id, user_id or "", entry_id]
    named, values = dialect.owned_ids(wanted)
    sql = (
        f"SELECT {dialect.keyed_row} FROM {named} {ENTRIES} "
        f"ON agent_id = ? AND id = wanted_id AND {dialect.user_key} = wanted_user"
    )
    return sql, [*values, agent_id]


@cache
def _of_id(columns: str, user_key: str) -> str:
    return f"SELECT {columns} FROM {ENTRIES} WHERE agent_id = ? AND {user_key} = ? AND id = ?"


def stored_rows(
    on: SqlSession, codec: RowCodec, agent_id: str, wanted: Sequence[OwnedId]
) -> dict[Place, StoredRow]:
    """Return what is stored, in any state, under the ids of users.

    Raises:
        MnemicError: As `opened_rows` does.
    """
    found = on.fetch_checked(*with_owned_ids(on.dialect, agent_id, wanted))
    return opened_rows(on.dialect, codec, agent_id, wanted, found)


def opened_rows(
    dialect: Dialect,
    codec: RowCodec,
    agent_id: str,
    wanted: Sequence[OwnedId],
    found: list[Columns],
) -> dict[Place, StoredRow]:
    """Return the rows of wanted ids, found by `with_owned_ids`.

    Raises:
        StoreCorruptError: If a row is damaged.
        KeyUnavailableError: If one is sealed, and there is no key.
        SealBrokenError: If one does not open.
    """
    if not found:
        return {}
    opened = dialect.records(codec, found)
    if len(opened) < len(found):
        lost = {row[0] for row in found} - {row[0] for row in opened}
        raise codec.unopened((agent_id, next(row[ENTRY_ID] for row in found if row[0] in lost)))
    stored: dict[Place, StoredRow] = {}
    for row, record in zip(found, opened, strict=True):
        columns, more, _ = encoded_row(row)
        plain = record[1 : 1 + len(COLUMN_NAMES)]
        size = codec.stored_content_size(columns[_CONTENT])
        stored[columns[_USER] or "", columns[_ID]] = StoredRow(row[0], columns, more, plain, size)
    is_own = all(old.columns[_AGENT] == agent_id for old in stored.values())
    if not is_own or not stored.keys() <= {(user or "", one.bytes) for user, one in wanted}:
        raise StoreCorruptError(f"an index leads to another memory; {dialect.damaged}")
    return stored


def needed_vectors(on: SqlSession, codec: RowCodec, wanted: NeedVectors) -> list[bool]:
    """Return for each entry whether storing it needs its vectors, in the current state."""
    agent_id, entries = wanted.agent_id, wanted.entries
    stored = stored_rows(on, codec, agent_id, [(entry.user_id, entry.id) for entry in entries])
    places = [(entry.user_id or "", entry.id.bytes) for entry in entries]
    if wanted.on_conflict == "skip" or not stored:
        return [place not in stored for place in places]
    embedded = _with_vectors(on, agent_id, [old.row for old in stored.values()], wanted.model)
    return [
        place not in stored
        or stored[place].row not in embedded
        or stored[place].content != entry.content
        or stored[place].is_sealed != entry.is_encrypted
        for place, entry in zip(places, entries, strict=True)
    ]


def _with_vectors(on: SqlSession, agent_id: str, rows: Sequence[int], model: str) -> set[int]:
    """Return those of these rows that have a vector of a model; zeros stand for no vector."""
    dialect = on.dialect
    lacks, of_model = dialect.lacks_vector(agent_id, model)
    is_owned, owner = dialect.owned("v", agent_id)
    sql = (
        f"SELECT row FROM {ENTRIES} {dialect.by_row} WHERE agent_id = ? AND {dialect.among('row')} "
        f"AND NOT ({lacks}) AND (SELECT true FROM {EMBEDDINGS} AS v WHERE {is_owned} "
        f"AND v.entry_row = row AND v.part = 0 AND {dialect.is_own_zero} LIMIT 1) IS NULL"
    )
    found = on.fetch(sql, (agent_id, list(rows), *of_model, *owner))
    return {row for (row,) in found}


class Overwrite(NamedTuple):
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
    more: tuple[bytes, str | None, bytes | None]

    @property
    def time(self) -> int:
        """When it is stored."""
        return int(self.columns[_UPDATED_AT])

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

    @property
    def outcome(self) -> Outcome:
        """What is told of it."""
        is_sealed_now = self.entry.is_encrypted and not self.old.is_sealed
        shown = ReplacedEntry(self.entry, self.changes_content, is_sealed_now)
        replacement = Replacement(shown, self.columns, self.clears_index)
        return Outcome(self.old.row, self.new.columns[_ID], is_new=False, replacement=replacement)

    @property
    def change(self) -> Change:
        """What is logged of it."""
        kind: ChangeKind = "replace" if self.clears_index or self.new.vectors else "update"
        size = self.new.size if not self.entry.is_encrypted else len(self.columns[_CONTENT])
        entry_id, user_id = self.new.columns[_ID], self.entry.user_id
        return Change(self.old.row, entry_id, kind, user_id, size - self.old.size)


def replace(
    on: SqlSession,
    codec: RowCodec,
    pairs: Iterable[tuple[NewRow, StoredRow]],
    now: int,
    model: Model | None,
) -> WrittenRows:
    """Store entries over others.

    A row keeps its number, its time of creation and the links that lead to it. Its vectors stay if
    the content does and no others are given. Its idempotency key stays unless another is given, so
    that a late repetition of the first call still finds what it stored.
    """
    overwrites = [_overwrite(on.dialect, codec, new, old, now) for new, old in pairs]
    if not overwrites:
        return WrittenRows([], [])
    agent_id = overwrites[0].entry.agent_id
    _update_rows(on, agent_id, overwrites)
    is_owned, owner = on.dialect.owned("l", agent_id)
    links = f"DELETE FROM {LINKS} AS l WHERE {is_owned} AND from_row = ?"
    on.run_all(links, [(*owner, overwrite.old.row) for overwrite in overwrites])
    on.dialect.overwrite_vectors(on, agent_id, model, overwrites)
    return WrittenRows(
        [overwrite.outcome for overwrite in overwrites],
        [overwrite.change for overwrite in overwrites],
    )


def _overwrite(
    dialect: Dialect, codec: RowCodec, new: NewRow, old: StoredRow, now: int
) -> Overwrite:
    with dialect.reading_stored("a memory"):
        created_at = from_microseconds(old.columns[_CREATED_AT])
        version = next_version(old.columns[_VERSION])
    updated_at = max(now, old.columns[_CREATED_AT])
    entry = copy.copy(new.entry)
    force_setattr(entry, "created_at", created_at)
    force_setattr(entry, "updated_at", from_microseconds(updated_at))
    force_setattr(entry, "version", version)
    is_key_given = new.more[1] is not None
    if entry.is_encrypted or (not is_key_given and old.more[1] is not None):
        # The time of creation is sealed too, and a kept key is known in plain text alone.
        kept = EncodedRow(old.columns, old.more)
        key = UsedKey(new.given_key) if is_key_given else codec.used_key(kept)
        (row,) = codec.rows([(entry, key)])
        return Overwrite(new, old, entry, row.columns, row.more)
    columns = list(new.columns)
    columns[_CREATED_AT] = old.columns[_CREATED_AT]
    columns[_UPDATED_AT], columns[_VERSION] = updated_at, version
    return Overwrite(new, old, entry, tuple(columns), new.more)


def _update_rows(on: SqlSession, agent_id: str, overwrites: Sequence[Overwrite]) -> None:
    """Write the rows, each by a statement that names no indexed column that stays as it is."""
    dialect = on.dialect
    groups: dict[frozenset[str], list[Columns]] = {}
    sums = dialect.sums_of(on, agent_id, overwrites)
    for overwrite, own in zip(overwrites, sums, strict=True):
        old, new = (
            (*overwrite.old.columns, *overwrite.old.more),
            (*overwrite.columns, *overwrite.more),
        )
        same = frozenset([name for name, at in _INDEXED.items() if old[at] == new[at]])
        statement = _statement(dialect.update, dialect.sum_columns, same)
        bound = dialect.bound(statement.pick(new), statement.names)
        groups.setdefault(same, []).append((*bound, *own, agent_id, overwrite.old.row))
    for same, values in groups.items():
        on.run_all(_statement(dialect.update, dialect.sum_columns, same).sql, values)


class _Statement(NamedTuple):
    """A statement that writes some columns of a row, and the choice of their values."""

    sql: str
    names: Sequence[str]
    pick: Callable[[Columns], Columns]


@cache
def _statement(update: str, sums: tuple[str, ...], same: frozenset[str]) -> _Statement:
    names = [name for name in WRITTEN if name not in same]
    values = assigned([*names, *sums])
    sql = f"{update} {ENTRIES} SET {values} WHERE agent_id = ? AND row = ?"
    return _Statement(sql, names, itemgetter(*map(_ALL.index, names)))
