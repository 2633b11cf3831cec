"""SQL statements that store entries; each runs in a transaction that holds the agent's lock."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from mnemic.model import MemoryEntry, MemoryStatus, OnConflict, Scope
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.add_job import are_independent
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.duplicates import (
    check_idempotency_key,
    first_with_text,
    id_in_use,
    merged,
    superseded_missing,
)
from mnemic.store.new_rows import AddedRows, AddOptions, NewRow, Outcome, Replacement
from mnemic.store.postgres.session import Columns, Session
from mnemic.store.postgres.sql import (
    AMONG,
    EMBEDDINGS,
    HAS_NO_VECTOR,
    MORE,
    ROW,
    SEALED_VECTORS,
    STORED_ROW,
    USER_KEY,
    bound,
)
from mnemic.store.postgres.stored import entries_of, reading_stored, records_of
from mnemic.store.postgres.vectors import (
    COPIED,
    NewVectors,
    as_stored,
    delete_own_vectors,
    delete_shadow_vectors,
    upsert_vectors,
)
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENTRY_ID,
    EncodedRow,
    RowCodec,
    UsedKey,
    next_version,
    uuid_of,
    with_changed,
)
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, IS_ACTIVE, LINKS, in_scope, visible
from mnemic.store.sql.eviction import Write, evict_entries, remove_others
from mnemic.store.sql.links import end_supersession, supersede
from mnemic.store.sql.sealing import current_key
from mnemic.store.sql.updates import write_merged
from mnemic.store.values import Model, ReplacedEntry

Place: TypeAlias = tuple[str, bytes]
"""User, '' for none, and id of an entry of one agent."""

_INSERT: Final = f"COPY {ENTRIES} (row, {', '.join(COLUMN_NAMES)}, {', '.join(MORE)}) FROM STDIN"
_INSERT_ONE: Final = (
    f"INSERT INTO {ENTRIES} (row, {', '.join(COLUMN_NAMES)}, {', '.join(MORE)}) "
    f"VALUES ({', '.join(['%s'] * (1 + len(COLUMN_NAMES) + len(MORE)))})"
)
_NEW_ROWS: Final = "SELECT nextval('mnemic.agent_memory_rows') FROM generate_series(1, %s)"
_OF_KEY: Final = (
    f"SELECT {STORED_ROW} FROM {ENTRIES} "
    f"WHERE agent_id = %s AND {USER_KEY} = %s AND idempotency_key = %s"
)
_STORED: Final = (
    f"SELECT {STORED_ROW} FROM {ENTRIES} "
    "JOIN unnest(%s::text[], %s::uuid[]) AS wanted (wanted_user, wanted_id) "
    f"ON id = wanted_id AND {USER_KEY} = wanted_user WHERE agent_id = %s"
)
_WITHOUT_VECTORS: Final = (
    f"SELECT {ROW} FROM {ENTRIES} WHERE agent_id = %s AND {AMONG} AND {{visible}} "
    f"AND {HAS_NO_VECTOR} ORDER BY row"
)
_KEPT: Final = frozenset({"agent_id", "id", "user_id", "created_at"})
"""Columns that a replacement leaves as they are."""

_REPLACED: Final = tuple(name for name in (*COLUMN_NAMES, *MORE) if name not in _KEPT)
_REPLACE: Final = (
    f"UPDATE {ENTRIES} SET {', '.join(f'{name} = %s' for name in _REPLACED)} "
    "WHERE agent_id = %s AND row = %s"
)
_AT: Final = {name: at for at, name in enumerate(COLUMN_NAMES)}


class _WrittenRows(NamedTuple):
    """What a part of storing entries wrote: an outcome for each entry, and changes to log."""

    outcomes: list[Outcome]
    changes: list[Change]


def _joined(parts: Iterable[_WrittenRows]) -> _WrittenRows:
    outcomes: list[Outcome] = []
    changes: list[Change] = []
    for part in parts:
        outcomes += part.outcomes
        changes += part.changes
    return _WrittenRows(outcomes, changes)


def add(session: Session, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> AddedRows:
    """Store entries with their vectors."""
    # Neither COPY nor the batches of a filter run in a pipeline.
    is_apart = rules.instead_of is not None or _is_copied(session, rows)
    with nullcontext() if is_apart else session.pipeline():
        return _add(session, agent_id, rows, rules)


def _is_copied(session: Session, rows: Sequence[NewRow]) -> bool:
    """Return whether entries or vectors are inserted by COPY."""
    return session.can_copy and max(len(rows), sum(len(new.vectors) for new in rows)) >= COPIED


def _add(session: Session, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> AddedRows:
    if are_independent(rows, rules):
        written = _store_many(session, agent_id, rows, rules)
    else:
        written = _joined(_store_one(session, agent_id, new, rules) for new in rows)
    outcomes, changes = written
    has_vectors = any(
        new.vectors for new, outcome in zip(rows, outcomes, strict=True) if outcome.is_stored
    )
    model = rules.model if has_vectors else None
    stored = [outcome.row for outcome in outcomes]
    removed = []
    if rules.instead_of is not None:
        removed = remove_others(session, rules.codec, rules.instead_of, set(stored))
    changes = [*changes, *removed]
    write = Write(agent_id, changes, rules.quotas, rules.now, kept=stored)
    evicted = evict_entries(session, rules.codec, write)
    logged = [*changes, *evicted]
    quotas, zone = rules.quotas, rules.time_zone
    seq = log_changes(session, agent_id, logged, model, quotas, time_zone=zone) if logged else 0
    gone, others = ([each.entry_id for each in some] for some in (evicted, removed))
    return AddedRows(seq, len(logged), outcomes, _others_changed(written), gone, others)


def _others_changed(written: _WrittenRows) -> list[int]:
    """Return the rows that changed because others were stored."""
    stored = {outcome.row for outcome in written.outcomes if outcome.is_stored}
    return [
        change.row
        for change in written.changes
        if change.kind == "supersede" or (change.kind != "add" and change.row not in stored)
    ]


def place_of(new: NewRow) -> Place:
    """Return user and id of an entry."""
    return new.entry.user_id or "", new.columns[_AT["id"]]


def _store_many(
    session: Session, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> _WrittenRows:
    """Store entries that read no other; one by one only where ids are stored or repeated."""
    places = list(map(place_of, rows))
    stored, new_rows = session.fetch_each(
        _stored_statement(agent_id, places), (_NEW_ROWS, (len(rows),))
    )
    if not stored and len(set(places)) == len(rows):
        return _insert(session, agent_id, rows, rules, sorted(row for (row,) in new_rows))
    return _joined(_store_one(session, agent_id, new, rules) for new in rows)


def _insert(
    session: Session,
    agent_id: str,
    rows: Sequence[NewRow],
    rules: AddOptions,
    numbers: Sequence[int],
) -> _WrittenRows:
    """Insert entries as the rows of these numbers, ascending."""
    values = [(row, *bound(new.columns), *new.more) for row, new in zip(numbers, rows, strict=True)]
    is_copied = session.can_copy and len(values) >= COPIED
    session.insert(_INSERT if is_copied else _INSERT_ONE, values)
    upsert_vectors(
        session,
        agent_id,
        rules.model,
        [
            NewVectors(row, new.columns[_AT["created_at"]], new.stored_vectors)
            for row, new in zip(numbers, rows, strict=True)
        ],
    )
    ids = [new.columns[_AT["id"]] for new in rows]
    return _WrittenRows(
        [Outcome(row, own, is_new=True) for row, own in zip(numbers, ids, strict=True)],
        [
            Change(row, own, "add", new.entry.user_id, new.size)
            for row, own, new in zip(numbers, ids, rows, strict=True)
        ],
    )


def _store_one(session: Session, agent_id: str, new: NewRow, rules: AddOptions) -> _WrittenRows:
    repeated = _found_by_key(session, rules.codec, agent_id, new)
    if repeated is not None:
        return repeated
    place = place_of(new)
    if rules.on_conflict == "raise":  # without opening what is stored
        if session.fetch(*_stored_statement(agent_id, [place])):
            return _found_by_text(session, agent_id, new, rules) or _refused(new, agent_id)
        return _insert_or_merge(session, agent_id, new, rules)
    old = stored_rows(session, rules.codec, agent_id, [place]).get(place)
    if old is None:
        return _insert_or_merge(session, agent_id, new, rules)
    if rules.keeps(new, old.plain):
        return _WrittenRows([Outcome(old.row, place[1], is_new=False)], [])
    ended = []
    if old.columns[_AT["status"]] == MemoryStatus.SUPERSEDED:
        ended = end_supersession(session, agent_id, old.row, rules.now)
    written = _replace(session, agent_id, new, old, rules)
    written = _WrittenRows(written.outcomes, [*written.changes, *ended])
    replacement = written.outcomes[0].replacement
    entry = new.entry if replacement is None else replacement.shown.entry
    return _superseding(session, written, entry, to_microseconds(entry.updated_at), rules)


def _refused(new: NewRow, agent_id: str) -> _WrittenRows:
    raise id_in_use(new.entry, agent_id)


def _insert_or_merge(
    session: Session, agent_id: str, new: NewRow, rules: AddOptions
) -> _WrittenRows:
    known = _found_by_text(session, agent_id, new, rules)
    if known is not None:
        return known
    number = session.value(_NEW_ROWS, (1,))
    written = _insert(session, agent_id, [new], rules, [number])
    return _superseding(session, written, new.entry, new.columns[_AT["created_at"]], rules)


def _superseding(
    session: Session, written: _WrittenRows, entry: MemoryEntry, at: int, rules: AddOptions
) -> _WrittenRows:
    """Mark the entry that a written one supersedes."""
    if entry.supersedes is None:
        return written
    superseded = supersede(session, rules.codec, entry, written.outcomes[0].row, at)
    if superseded is not None:
        return _WrittenRows(written.outcomes, [*written.changes, superseded])
    if rules.is_import:
        return written
    raise superseded_missing(entry, entry.agent_id)


def _found_by_key(
    session: Session, codec: RowCodec, agent_id: str, new: NewRow
) -> _WrittenRows | None:
    """Find the entry of an earlier call with the same idempotency key."""
    _, key, _ = new.more
    if key is None:
        return None
    for stored_key in (key, *new.other_keys):
        for row in session.fetch(_OF_KEY, (agent_id, new.entry.user_id or "", stored_key)):
            entry_id = row[ENTRY_ID]
            with reading_stored("a memory's key"):
                used = codec.used_key(_encoded(row))
            check_idempotency_key(new.shown_key, used, new.entry.content, uuid_of(entry_id))
            return _WrittenRows([Outcome(row[0], entry_id, is_new=False)], [])
    return None


def _found_by_text(
    session: Session, agent_id: str, new: NewRow, rules: AddOptions
) -> _WrittenRows | None:
    """Find an entry with the same text, and merge the new one into it if that is wanted."""
    if rules.on_duplicate == "keep" or not new.entry.content:  # empty texts repeat no other
        return None
    scope = Scope(agent_id, new.entry.user_id)
    where, values = in_scope(scope)
    sql = (
        f"SELECT {STORED_ROW} FROM {ENTRIES} "
        f"WHERE {where} AND fingerprint = ANY(%s) AND {IS_ACTIVE} ORDER BY created_at, row LIMIT %s"
    )
    digests = rules.codec.lookup(new.entry)
    found = first_with_text(
        new.entry.content,
        lambda limit: session.fetch(sql, (*values, digests, rules.now, limit)),
        lambda rows: entries_of(rules.codec, rows, scope),
    )
    if found is None:
        return None
    row, old = found
    outcomes = [Outcome(row[0], old.id.bytes, is_new=False)]
    if rules.on_duplicate != "merge":
        return _WrittenRows(outcomes, [])
    changed = merged(old, new.entry, from_microseconds(rules.now))
    if changed is None:
        return _WrittenRows(outcomes, [])
    size = write_merged(session, rules.codec, row, with_changed(old, changed))
    return _WrittenRows(outcomes, [Change(row[0], old.id.bytes, "update", old.user_id, size)])


def _encoded(row: Columns) -> EncodedRow:
    """Return a row, all of `STORED_ROW`, as a codec made it."""
    return EncodedRow(row[1 : -len(MORE)], row[-len(MORE) :])


def _replaced(row: EncodedRow) -> Columns:
    named = dict(zip((*COLUMN_NAMES, *MORE), (*bound(row.columns), *row.more), strict=True))
    return tuple(named[name] for name in _REPLACED)


class _StoredRow(NamedTuple):
    """A row that is stored already: number, columns, fingerprint and key, columns in plain text."""

    row: int
    columns: Columns
    more: Columns
    plain: Columns
    size: int

    @property
    def content(self) -> str:
        """Its content."""
        return str(self.plain[_AT["content"]])

    @property
    def is_sealed(self) -> bool:
        """Whether it is sealed."""
        return bool(self.columns[_AT["is_encrypted"]])

    @property
    def was_active(self) -> bool:
        """Whether an index of active entries has it."""
        is_forgotten = self.columns[_AT["forgotten_at"]] is not None
        return self.columns[_AT["status"]] == MemoryStatus.ACTIVE and not is_forgotten


def _stored_statement(agent_id: str, places: Sequence[Place]) -> tuple[str, Columns]:
    users, ids = [user for user, _ in places], [uuid_of(entry_id) for _, entry_id in places]
    return _STORED, (users, ids, agent_id)


def stored_rows(
    session: Session, codec: RowCodec, agent_id: str, places: Sequence[Place]
) -> dict[Place, _StoredRow]:
    """Return what is stored, in any state, under the ids of users.

    Raises:
        KeyUnavailableError: If a row is sealed, and there is no key.
        SealBrokenError: If one does not open.
    """
    found = session.fetch(*_stored_statement(agent_id, places))
    plain = records_of(codec, [columns[: -len(MORE)] for columns in found])
    if len(plain) < len(found):
        opened = {record[0] for record in plain}
        lost = next(columns[ENTRY_ID] for columns in found if columns[0] not in opened)
        raise codec.unopened((agent_id, lost))
    return {
        (columns[1 + _AT["user_id"]] or "", columns[1 + _AT["id"]]): _StoredRow(
            row=columns[0],
            columns=columns[1 : -len(MORE)],
            more=columns[-len(MORE) :],
            plain=record[1:],
            size=codec.stored_content_size(columns[1 + _AT["content"]]),
        )
        for columns, record in zip(found, plain, strict=True)
    }


def need_vectors(
    session: Session,
    codec: RowCodec,
    agent_id: str,
    entries: Sequence[MemoryEntry],
    *,
    model: str,
    on_conflict: OnConflict,
) -> list[bool]:
    """Return for each entry whether storing it needs its vectors, in the current state."""
    places = [(entry.user_id or "", entry.id.bytes) for entry in entries]
    stored = stored_rows(session, codec, agent_id, places)
    if on_conflict == "skip" or not stored:
        return [place not in stored for place in places]
    rows = [old.row for old in stored.values()]
    embedded = _rows_with_vectors(session, agent_id, rows, model)
    return [
        place not in stored
        or stored[place].row not in embedded
        or stored[place].content != entry.content
        or stored[place].is_sealed != entry.is_encrypted
        for place, entry in zip(places, entries, strict=True)
    ]


def _replace(
    session: Session, agent_id: str, new: NewRow, old: _StoredRow, rules: AddOptions
) -> _WrittenRows:
    """Store an entry over another one.

    The row keeps its number, its time of creation and the links that lead to it. Its vectors stay
    if the content does and no others are given. Its idempotency key stays unless another is given,
    so that a late repetition of the first call still finds what it stored.
    """
    entry, row = _replacing(rules.codec, new, old, rules.now)
    changes_content = entry.content != old.content
    session.run(_REPLACE, (*_replaced(row), agent_id, old.row))
    session.run(f"DELETE FROM {LINKS} WHERE agent_id = %s AND from_row = %s", (agent_id, old.row))
    is_sealed_alike = entry.is_encrypted == old.is_sealed
    keeps_vectors = not changes_content and not new.vectors and is_sealed_alike
    if changes_content or entry.hides_content:
        delete_shadow_vectors(session, agent_id, old.row)
    if not keeps_vectors:
        delete_own_vectors(session, agent_id, old.row, is_sealed=old.is_sealed)
        vectors = NewVectors(old.row, row.columns[_AT["updated_at"]], new.stored_vectors)
        upsert_vectors(session, agent_id, rules.model, [vectors])
    clears_index = (
        bool(old.columns[_AT["access_count"]])
        or (bool(new.vectors) and not changes_content)
        or (keeps_vectors and not old.was_active)
    )
    shown = ReplacedEntry(entry, changes_content, entry.is_encrypted and not old.is_sealed)
    replacement = Replacement(shown, row.columns, clears_index)
    kind: ChangeKind = "replace" if clears_index or new.vectors else "update"
    entry_id = new.columns[_AT["id"]]
    size = rules.codec.stored_content_size(row.columns[_AT["content"]]) - old.size
    return _WrittenRows(
        [Outcome(old.row, entry_id, is_new=False, replacement=replacement)],
        [Change(old.row, entry_id, kind, entry.user_id, size)],
    )


def _replacing(
    codec: RowCodec, new: NewRow, old: _StoredRow, now: int
) -> tuple[MemoryEntry, EncodedRow]:
    """Return an entry that takes another one's place, and how it is stored."""
    created_at = old.columns[_AT["created_at"]]
    updated_at, version = max(now, created_at), next_version(old.columns[_AT["version"]])
    entry = copy.copy(new.entry)
    force_setattr(entry, "created_at", from_microseconds(created_at))
    force_setattr(entry, "updated_at", from_microseconds(updated_at))
    force_setattr(entry, "version", version)
    is_key_given = new.more[1] is not None
    if entry.is_encrypted or (not is_key_given and old.more[1] is not None):
        # The time of creation is sealed too, and a kept key is known in plain text alone.
        kept = None if is_key_given else codec.used_key(EncodedRow(old.columns, old.more))
        return entry, codec.rows([(entry, UsedKey(new.given_key) if is_key_given else kept)])[0]
    columns = list(new.columns)
    columns[_AT["created_at"]], columns[_AT["updated_at"]] = created_at, updated_at
    columns[_AT["version"]] = version
    return entry, EncodedRow(tuple(columns), new.more)


def add_embeddings(
    session: Session,
    codec: RowCodec,
    agent_id: str,
    vectors: Mapping[int, tuple[str, NDArray[np.float32]]],
    model: Model,
) -> None:
    """Insert the vectors of those of these rows without any and with the same content."""
    stored = session.fetch(
        _WITHOUT_VECTORS.format(visible=visible(codec)),
        (agent_id, list(vectors), agent_id, model[0], agent_id, model[0]),
    )
    entries = entries_of(codec, stored, Scope(agent_id, all_users=True))
    found = [
        (columns[0], entry)
        for columns, entry in zip(stored, entries, strict=True)
        if entry.content == vectors[columns[0]][0]
    ]
    if not found:
        return
    if any(entry.is_encrypted for _, entry in found):
        current_key(session, codec, agent_id)
    new = [
        NewVectors(
            row,
            to_microseconds(entry.created_at),
            as_stored(codec, entry, model[0], vectors[row][1]),
        )
        for row, entry in found
    ]
    upsert_vectors(session, agent_id, model, new)
    changes = [Change(row, entry.id.bytes, "embed", entry.user_id) for row, entry in found]
    log_changes(session, agent_id, changes, model)


def _rows_with_vectors(
    session: Session, agent_id: str, rows: Sequence[int], model: str
) -> set[int]:
    """Return those of these rows that have a vector of a model; zeros stand for no vector."""
    sql = (
        f"SELECT entry_row FROM {EMBEDDINGS} WHERE agent_id = %s AND entry_row = ANY(%s) "
        "AND model = %s AND NOT is_companion AND part = 0 "
        f"AND {session.pgvector}.vector_norm(embedding) > 0 "
        f"UNION SELECT entry_row FROM {SEALED_VECTORS} WHERE agent_id = %s AND entry_row = ANY(%s) "
        "AND model = %s AND part = 0"
    )
    some = agent_id, list(rows), model
    return {row for (row,) in session.fetch(sql, (*some, *some))}
