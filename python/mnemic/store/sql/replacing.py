"""Entries that are stored over those with their ids, in the stores in SQL."""

from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Final, NamedTuple

from mnemic.errors import StoreCorruptError
from mnemic.store.new_rows import (
    AddOptions,
    NewRow,
    Overwrite,
    Place,
    StoredRow,
    overwrite,
)
from mnemic.store.operations import NeedVectors
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENTRY_ID,
    RowCodec,
    encoded_row,
)
from mnemic.store.sql.conditions import EMBEDDINGS, ENTRIES, LINKS, assigned
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.session import Columns, Condition, SqlSession
from mnemic.store.values import OwnedId

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

_AGENT, _ID, _USER, _CONTENT = map(COLUMN_NAMES.index, ("agent_id", "id", "user_id", "content"))


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


def replace(
    on: SqlSession, pairs: Sequence[tuple[NewRow, StoredRow]], rules: AddOptions
) -> list[Overwrite]:
    """Store entries over others; see `Adding.replace`."""
    if not pairs:
        return []
    with on.dialect.reading_stored("a memory"):
        successors = [old.successor for _, old in pairs]
    overwrites = [
        overwrite(rules.codec, new, old, successor, rules.now)
        for (new, old), successor in zip(pairs, successors, strict=True)
    ]
    agent_id = overwrites[0].entry.agent_id
    _update_rows(on, agent_id, overwrites)
    is_owned, owner = on.dialect.owned("l", agent_id)
    links = f"DELETE FROM {LINKS} AS l WHERE {is_owned} AND from_row = ?"
    on.run_all(links, [(*owner, each.old.row) for each in overwrites])
    on.dialect.overwrite_vectors(on, agent_id, rules.model, overwrites)
    return overwrites


def _update_rows(on: SqlSession, agent_id: str, overwrites: Sequence[Overwrite]) -> None:
    """Write the rows, each by a statement that names no indexed column that stays as it is."""
    dialect = on.dialect
    groups: dict[frozenset[str], list[Columns]] = {}
    sums = dialect.sums_of(on, agent_id, overwrites)
    for each, own in zip(overwrites, sums, strict=True):
        old, new = (
            (*each.old.columns, *each.old.more),
            (*each.columns, *each.more),
        )
        same = frozenset([name for name, at in _INDEXED.items() if old[at] == new[at]])
        statement = _statement(dialect.update, dialect.sum_columns, same)
        bound = dialect.bound(statement.pick(new), statement.names)
        groups.setdefault(same, []).append((*bound, *own, agent_id, each.old.row))
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
