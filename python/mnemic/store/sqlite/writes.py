"""SQL statements that store entries; each runs on a given connection, in a transaction."""

from collections.abc import Mapping, Sequence
from functools import partial

import apsw

from mnemic.model import MemoryEntry
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.add_job import are_independent
from mnemic.store.changes import Change
from mnemic.store.duplicates import (
    check_idempotency_key,
    first_with_text,
    id_in_use,
    merged,
    superseded_missing,
)
from mnemic.store.new_rows import AddedRows, AddOptions, NewRow, Outcome
from mnemic.store.row_codec import COLUMN_NAMES, ENTRY_ID, RowCodec, encoded_row, with_changed
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import IS_ACTIVE, visible
from mnemic.store.sql.eviction import Write, evict_entries, remove_others
from mnemic.store.sql.links import end_supersession, supersede
from mnemic.store.sql.sealing import check_no_key, current_key
from mnemic.store.sql.updates import write_merged
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS, entries_of
from mnemic.store.sqlite.damage import reading_stored, uuids_of
from mnemic.store.sqlite.hardening import GuardedConnection
from mnemic.store.sqlite.new_rows import (
    WrittenRows,
    fetch_checked,
    insert_rows,
    insert_vectors,
    new_rows,
    write_vectors,
)
from mnemic.store.sqlite.replacements import Place, StoredRow, place_of, replace, stored_rows
from mnemic.store.sqlite.sql import AMONG, BY_ROW, fetch, json_array
from mnemic.store.values import Model

_ID, _CREATED_AT = map(COLUMN_NAMES.index, ("id", "created_at"))


_OF_KEY = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries "
    "WHERE agent_id = ? AND ifnull(user_id, '') = ? AND idempotency_key = ?"
)
_OF_FINGERPRINT = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries "
    "INDEXED BY agent_memory_entries_by_fingerprint "
    f"WHERE agent_id = ? AND fingerprint IN (?, ?) AND user_id IS ? AND {IS_ACTIVE} "
    "ORDER BY created_at, row LIMIT ?"
)


def add(
    connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> AddedRows:
    """Store entries with their vectors."""
    rows, rules = _under_current_key(connection, agent_id, rows, rules)
    if rules.on_conflict != "raise":
        written = _store_all(connection, agent_id, rows, rules)
    elif are_independent(rows, rules):
        written = _insert_many(connection, agent_id, rows, rules)
    else:
        written = _insert_each(connection, agent_id, rows, rules)
    outcomes, changes = written
    has_vectors = any(
        new.vectors for new, outcome in zip(rows, outcomes, strict=True) if outcome.is_stored
    )
    model = rules.model if has_vectors else None
    stored = [outcome.row for outcome in outcomes]
    removed = list[Change]()
    if rules.instead_of is not None:
        removed = remove_others(connection, rules.codec, rules.instead_of, set(stored))
    changes = [*changes, *removed]
    write = Write(agent_id, changes, rules.quotas, rules.now, kept=stored)
    evicted = evict_entries(connection, rules.codec, write)
    logged, quotas, zone = [*changes, *evicted], rules.quotas, rules.time_zone
    seq = log_changes(connection, agent_id, logged, model, quotas, time_zone=zone) if logged else 0
    gone, others = ([each.entry_id for each in some] for some in (evicted, removed))
    return AddedRows(seq, len(logged), outcomes, _others_changed(written), gone, others)


def _under_current_key(
    connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> tuple[Sequence[NewRow], AddOptions]:
    """Return entries, resealed if another process replaced the key that sealed them.

    Raises:
        KeyUnavailableError: If sensitive ones are stored without a key beside sealed ones.
        MnemicError: As `current_key` does.
    """
    if rules.key is None:
        if any(new.entry.sensitive for new in rows):
            check_no_key(connection, agent_id)
        return rows, rules
    if not any(new.entry.is_encrypted for new in rows):
        return rows, rules
    key = current_key(connection, rules.codec, agent_id)
    if rules.key == key:
        return rows, rules
    rules = rules._replace(key=key)
    model = None if rules.model is None else rules.model[0]
    given, vectors = [new.given for new in rows], [new.vectors for new in rows]
    return new_rows(rules.codec, given, vectors, model), rules


def _others_changed(written: WrittenRows) -> list[int]:
    """Return the rows that changed because others were stored."""
    if all(change.kind == "add" for change in written.changes):
        return []
    replaced = {outcome.row for outcome in written.outcomes if outcome.replacement}
    return [
        change.row
        for change in written.changes
        if change.kind == "supersede" or (change.kind != "add" and change.row not in replaced)
    ]


def _insert_many(
    connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> WrittenRows:
    """Insert entries that depend on no other; twice as fast as one by one."""
    before = connection.total_changes()
    try:
        first = insert_rows(connection, agent_id, rows)
    except apsw.ConstraintError:
        stored = connection.total_changes() - before
        raise id_in_use(rows[stored].entry, agent_id) from None
    return _inserted(connection, rows, first, rules)


def _inserted(
    connection: GuardedConnection, rows: Sequence[NewRow], first: int, rules: AddOptions
) -> WrittenRows:
    """Insert the vectors of entries that were inserted in rows from a first one on."""
    numbered = list(enumerate(rows, start=first))
    vectors = [(row, new.columns[_CREATED_AT], new) for row, new in numbered]
    insert_vectors(connection, rules.model, vectors)
    return WrittenRows(
        [Outcome(row, new.columns[_ID], is_new=True) for row, new in numbered],
        [
            Change(row, new.columns[_ID], "add", new.entry.user_id, new.size)
            for row, new in numbered
        ],
    )


def _insert_each(
    connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> WrittenRows:
    return WrittenRows.joined(
        _found_by_key(connection, rules.codec, agent_id, new)
        or _insert_or_merge(connection, agent_id, new, rules)
        for new in rows
    )


def _insert_or_merge(
    connection: GuardedConnection, agent_id: str, new: NewRow, rules: AddOptions
) -> WrittenRows:
    known = _found_by_text(connection, agent_id, new, rules)
    if known is not None:
        return known
    try:
        row = insert_rows(connection, agent_id, [new])
    except apsw.ConstraintError:
        raise id_in_use(new.entry, agent_id) from None
    written = _inserted(connection, [new], row, rules)
    return _superseding(connection, written, new.entry, new.columns[_CREATED_AT], rules)


def _superseding(
    connection: GuardedConnection,
    written: WrittenRows,
    entry: MemoryEntry,
    at: int,
    rules: AddOptions,
) -> WrittenRows:
    """Mark the entry that a written one supersedes."""
    if entry.supersedes is None:
        return written
    superseded = supersede(connection, rules.codec, entry, written.outcomes[0].row, at)
    if superseded is None:
        if rules.is_import:
            return written
        raise superseded_missing(entry, entry.agent_id)
    return WrittenRows.joined([written, WrittenRows([], [superseded])])


def _found_by_key(
    connection: GuardedConnection, codec: RowCodec, agent_id: str, new: NewRow
) -> WrittenRows | None:
    """Find the entry of an earlier call with the same idempotency key."""
    _, key, _ = new.more
    if key is None:
        return None
    for stored_key in (key, *new.other_keys):
        for row in fetch(connection, _OF_KEY, (agent_id, new.entry.user_id or "", stored_key)):
            (existing,) = uuids_of([row[ENTRY_ID]])
            with reading_stored("a memory's key"):
                used = codec.used_key(encoded_row(row))
            check_idempotency_key(new.shown_key, used, new.entry.content, existing)
            return WrittenRows([Outcome(row[0], row[ENTRY_ID], is_new=False)], [])
    return None


def _found_by_text(
    connection: GuardedConnection, agent_id: str, new: NewRow, rules: AddOptions
) -> WrittenRows | None:
    """Find an entry with the same text, and merge the new one into it if that is wanted."""
    if rules.on_duplicate == "keep" or not new.entry.content:  # empty texts repeat no other
        return None
    values = (agent_id, *rules.codec.lookup(new.entry), new.entry.user_id, rules.now)
    found = first_with_text(
        new.entry.content,
        lambda limit: fetch_checked(connection, _OF_FINGERPRINT, (*values, limit or -1)),
        partial(entries_of, rules.codec),
    )
    if found is None:
        return None
    row, old = found
    outcomes = [Outcome(row[0], old.id.bytes, is_new=False)]
    if rules.on_duplicate != "merge":
        return WrittenRows(outcomes, [])
    changed = merged(old, new.entry, from_microseconds(rules.now))
    if changed is None:
        return WrittenRows(outcomes, [])
    size = write_merged(connection, rules.codec, row, with_changed(old, changed))
    return WrittenRows(outcomes, [Change(row[0], old.id.bytes, "update", old.user_id, size)])


def _store_all(
    connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> WrittenRows:
    """Store entries whose ids may be stored already."""
    if not are_independent(rows, rules) or len(set(map(place_of, rows))) < len(rows):
        return _store_each(connection, agent_id, rows, rules)
    known = stored_rows(connection, rules.codec, agent_id, list(map(place_of, rows)))
    if any(old.is_superseded for old in known.values()):
        return _store_each(connection, agent_id, rows, rules)
    return _store_many(connection, agent_id, rows, rules, known)


def _store_many(
    connection: GuardedConnection,
    agent_id: str,
    rows: Sequence[NewRow],
    rules: AddOptions,
    known: Mapping[Place, StoredRow],
) -> WrittenRows:
    """Store entries that depend on no other, each with an id of its own."""
    fresh = [new for new in rows if place_of(new) not in known]
    pairs = [(new, known[place_of(new)]) for new in rows if place_of(new) in known]
    if not pairs:
        return _insert_many(connection, agent_id, fresh, rules)
    written = _replace_or_skip(connection, pairs, rules)
    if not fresh:
        return written
    written = WrittenRows.joined([_insert_many(connection, agent_id, fresh, rules), written])
    ordered = [*fresh, *(new for new, _ in pairs)]
    by_place = dict(zip(map(place_of, ordered), written.outcomes, strict=True))
    return written._replace(outcomes=[by_place[place_of(new)] for new in rows])


def _replace_or_skip(
    connection: GuardedConnection, pairs: Sequence[tuple[NewRow, StoredRow]], rules: AddOptions
) -> WrittenRows:
    changed = [(new, old) for new, old in pairs if not rules.keeps(new, old.plain)]
    written = WrittenRows([], [])
    if changed:
        written = replace(connection, rules.codec, changed, rules.now, rules.model)
    replaced = {outcome.row: outcome for outcome in written.outcomes}
    outcomes = [
        replaced.get(old.row) or Outcome(old.row, new.columns[_ID], is_new=False)
        for new, old in pairs
    ]
    return written._replace(outcomes=outcomes)


def _store_each(
    connection: GuardedConnection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> WrittenRows:
    return WrittenRows.joined(
        _found_by_key(connection, rules.codec, agent_id, new)
        or _store_one(connection, agent_id, new, rules)
        for new in rows
    )


def _store_one(
    connection: GuardedConnection, agent_id: str, new: NewRow, rules: AddOptions
) -> WrittenRows:
    place = place_of(new)
    old = stored_rows(connection, rules.codec, agent_id, [place]).get(place)
    if old is None:
        return _insert_or_merge(connection, agent_id, new, rules)
    if rules.on_conflict == "skip" or not old.is_superseded:
        written = _replace_or_skip(connection, [(new, old)], rules)
    else:
        ended = end_supersession(connection, agent_id, old.row, rules.now)
        written = _replace_or_skip(connection, [(new, old)], rules)
        written = WrittenRows.joined([written, WrittenRows([], ended)])
    replacement = written.outcomes[0].replacement
    if replacement is None:
        return written
    entry = replacement.shown.entry
    return _superseding(connection, written, entry, to_microseconds(entry.updated_at), rules)


def add_embeddings(
    connection: GuardedConnection,
    codec: RowCodec,
    agent_id: str,
    vectors: Mapping[int, tuple[str, Sequence[bytes]]],
    model: Model,
) -> None:
    """Insert the vectors of those of these rows without any and with the same content."""
    sql = (
        f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
        f"WHERE agent_id = ? AND {AMONG} AND {visible(codec)} "
        "AND NOT EXISTS (SELECT 1 FROM agent_memory_embeddings "
        "WHERE entry_row = row AND model = ? AND part = 0)"
    )
    values = (agent_id, json_array(list(vectors)), model[0])
    stored = fetch_checked(connection, sql, values)
    found = [
        (columns[0], entry)
        for columns, entry in zip(stored, entries_of(codec, stored), strict=True)
        if entry.content == vectors[columns[0]][0]
    ]
    if not found:
        return
    blobs = [
        [
            codec.seal_vector(entry, model[0], part, each)
            for part, each in enumerate(vectors[row][1])
        ]
        for row, entry in found
    ]
    write_vectors(
        connection,
        [
            (row, model[0], part, to_microseconds(entry.created_at), blob)
            for (row, entry), of_row in zip(found, blobs, strict=True)
            for part, blob in enumerate(of_row)
        ],
    )
    changes = [Change(row, entry.id.bytes, "embed", entry.user_id) for row, entry in found]
    log_changes(connection, agent_id, changes, model)
