"""SQL statements that store entries; each runs on a given connection, in a transaction."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from mnemic._core import row_sums, vector_sums
from mnemic.licensing import Quota
from mnemic.model import MemoryEntry, NewEntry, OnDuplicate
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change
from mnemic.store.duplicates import check_key, id_in_use, merged, superseded_missing
from mnemic.store.row_codec import COLUMN_NAMES, RowCodec
from mnemic.store.sqlite.change_log import Charge, log_changes
from mnemic.store.sqlite.checksums import (
    CHECKED_COLUMNS,
    NO_SUMS,
    SET_VECTOR_SUM,
    Sums,
    added,
    difference,
    entries_of,
    rows_with_sums,
)
from mnemic.store.sqlite.damage import uuids_of
from mnemic.store.sqlite.links import supersede
from mnemic.store.sqlite.sql import (
    AMONG,
    BY_ROW,
    COLUMNS,
    IS_ACTIVE,
    Columns,
    execute_all,
    fetch,
    json_array,
)
from mnemic.store.sqlite.updates import INSERT_VECTOR, write_changed
from mnemic.store.values import Model

_PLACES = ", ".join("?" * (len(COLUMN_NAMES) + 5))
_ID, _STATUS, _FORGOTTEN_AT, _CREATED_AT = map(
    COLUMN_NAMES.index, ("id", "status", "forgotten_at", "created_at")
)

_INSERT_ENTRY = (
    f"INSERT INTO agent_memory_entries ({COLUMNS}, fingerprint, "
    f"idempotency_key, key_fingerprint, row_sum, vector_sum) "
    f"VALUES ({_PLACES})"
)
_OF_KEY = (
    "SELECT row, id, key_fingerprint FROM agent_memory_entries "
    "WHERE agent_id = ? AND ifnull(user_id, '') = ? AND idempotency_key = ?"
)
_OF_FINGERPRINT = (
    f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries "
    "INDEXED BY agent_memory_entries_by_fingerprint "
    f"WHERE agent_id = ? AND fingerprint = ? AND user_id IS ? AND {IS_ACTIVE} "
    "ORDER BY created_at, row LIMIT 1"
)


class NewRow(NamedTuple):
    """An entry to store, in the form of the statements.

    Attributes:
        entry: The entry.
        size: Bytes of its content that count in the quota.
        columns: Its columns, in the order of `COLUMNS`.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        sums: Sum of its columns, and sum of its vectors.
        vectors: One for each chunk.
    """

    entry: MemoryEntry
    size: int
    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
    sums: tuple[int, int | None]
    vectors: Sequence[NDArray[np.float32]]


def new_rows(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    vectors: Sequence[Sequence[NDArray[np.float32]]],
    model: str | None,
) -> list[NewRow]:
    """Return entries, with the vectors of each, in the form of the statements."""
    columns = [codec.encode(new.entry) for new in entries]
    found = codec.fingerprints([new.entry.content for new in entries])
    more = [
        (fingerprint, new.key, None if new.key is None else fingerprint)
        for fingerprint, new in zip(found, entries, strict=True)
    ]
    of_rows = row_sums([(*own, *others) for own, others in zip(columns, more, strict=True)])
    of_vectors: Sequence[int | None] = [None] * len(entries)
    if model is not None:
        sums = vector_sums(model, vectors)
        of_vectors = [
            of_row if parts else None for of_row, parts in zip(sums, vectors, strict=True)
        ]
    return [
        NewRow(new.entry, codec.content_size(new.entry), *row)
        for new, row in zip(
            entries,
            zip(columns, more, zip(of_rows, of_vectors, strict=True), vectors, strict=True),
            strict=True,
        )
    ]


class AddOptions(NamedTuple):
    """Options of storing entries.

    Attributes:
        codec: Codec of the entries.
        now: Microseconds since 1970 in UTC.
        model: Model of the given vectors; None if there are none.
        quota: Maximum bytes of content of the agent; None is no limit.
        on_duplicate: Treatment of a text that the user already has.
        is_import: Whether a superseded entry may be missing.
    """

    codec: RowCodec
    now: int
    model: Model | None = None
    quota: Quota | None = None
    on_duplicate: OnDuplicate = "keep"
    is_import: bool = False


class Outcome(NamedTuple):
    """Result for one entry: its row and id, or those of the existing entry it repeats."""

    row: int
    entry_id: bytes
    is_new: bool


class AddedRows(NamedTuple):
    """Results for the entries of one call, in their order.

    Attributes:
        seq: Number of the agent's last change.
        steps: Number of changes.
        outcomes: One for each entry.
        changed: Existing rows that were merged into or superseded.
    """

    seq: int
    steps: int
    outcomes: list[Outcome]
    changed: list[int]


class AddJob:
    """The job of storing entries, all or none, with their vectors.

    Attributes:
        agent_id: The agent.
        rows: The entries.
        rules: The options.
        kind: Equal for jobs that `run_together` can join; None if the job must run alone.
    """

    __slots__ = ("agent_id", "kind", "rows", "rules")

    def __init__(self, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> None:
        self.agent_id = agent_id
        self.rows = rows
        self.rules = rules
        is_plain = _are_independent(rows, rules)
        self.kind = (agent_id, rules.model, rules.quota) if is_plain else None

    def __call__(self, connection: apsw.Connection) -> AddedRows:
        """Store the entries."""
        return add(connection, self.agent_id, self.rows, self.rules)

    @staticmethod
    def run_together(connection: apsw.Connection, jobs: "Sequence[AddJob]") -> list[AddedRows]:
        """Run jobs of one kind as one; half the work where each has one entry."""
        rows = [new for job in jobs for new in job.rows]
        added = add(connection, jobs[0].agent_id, rows, jobs[0].rules)
        return _split_result(added, [len(job.rows) for job in jobs])


def _split_result(added: AddedRows, sizes: Sequence[int]) -> list[AddedRows]:
    """Return the result of each call, if all entries were stored."""
    parts: list[AddedRows] = []
    end, before = 0, added.seq - added.steps
    for size in sizes:
        begin, end = end, end + size
        parts.append(AddedRows(before + end, size, added.outcomes[begin:end], []))
    return parts


def add(
    connection: apsw.Connection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> AddedRows:
    """Store entries with their vectors."""
    if _are_independent(rows, rules):
        outcomes, changes, sums = _insert_many(connection, agent_id, rows)
    else:
        outcomes, changes, sums = _insert_each(connection, agent_id, rows, rules)
    stored = [(new, outcome) for new, outcome in zip(rows, outcomes, strict=True) if outcome.is_new]
    model = rules.model if any(new.vectors for new, _ in stored) else None
    if model is not None:
        vectors = [
            (outcome.row, model[0], part, new.columns[_CREATED_AT], vector)
            for new, outcome in stored
            for part, vector in enumerate(new.vectors)
        ]
        execute_all(connection, INSERT_VECTOR, vectors)
    charge = Charge(rules.quota, sums)
    seq = log_changes(connection, agent_id, changes, model, charge) if changes else 0
    changed = [change.row for change in changes if change.kind != "add"]
    return AddedRows(seq, len(changes), outcomes, changed)


def _are_independent(rows: Sequence[NewRow], rules: AddOptions) -> bool:
    """Return whether storing these entries reads no other entry."""
    if rules.on_duplicate != "keep":
        return False
    return all(map(_is_independent, rows))


def _is_independent(new: NewRow) -> bool:
    return new.more[1] is None and new.entry.supersedes is None


def _insert_many(
    connection: apsw.Connection, agent_id: str, rows: Sequence[NewRow]
) -> tuple[list[Outcome], list[Change], Sums]:
    """Insert entries that depend on no other; twice as fast as one by one."""
    before = connection.total_changes()
    try:
        execute_all(connection, _INSERT_ENTRY, [_insert_values(new) for new in rows])
    except apsw.ConstraintError:
        stored = connection.total_changes() - before
        raise id_in_use(rows[stored].entry, agent_id) from None
    first = connection.last_insert_rowid() - len(rows) + 1  # AUTOINCREMENT leaves no gaps
    outcomes = [
        Outcome(row, new.columns[_ID], is_new=True) for row, new in enumerate(rows, start=first)
    ]
    changes = [
        Change(outcome.row, outcome.entry_id, "add", new.entry.user_id, new.size)
        for outcome, new in zip(outcomes, rows, strict=True)
    ]
    sums = added(
        [_row_with_sums(outcome.row, new) for outcome, new in zip(outcomes, rows, strict=True)]
    )
    return outcomes, changes, sums


def _row_with_sums(row: int, new: NewRow) -> Columns:
    return (row, *new.sums, None, new.columns[_STATUS], new.columns[_FORGOTTEN_AT])


def _insert_each(
    connection: apsw.Connection, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> tuple[list[Outcome], list[Change], Sums]:
    outcomes: list[Outcome] = []
    changes: list[Change] = []
    sums = NO_SUMS
    for new in rows:
        outcome, change, difference = _find_duplicate(connection, agent_id, new, rules)
        if outcome is None:
            outcome, change, difference = _insert(connection, agent_id, new, rules)
        outcomes.append(outcome)
        changes += change
        sums = sums.plus(difference)
    return outcomes, changes, sums


def _insert_values(new: NewRow) -> Columns:
    return (*new.columns, *new.more, *new.sums)


def _insert(
    connection: apsw.Connection, agent_id: str, new: NewRow, rules: AddOptions
) -> tuple[Outcome, list[Change], Sums]:
    try:
        connection.execute(_INSERT_ENTRY, _insert_values(new))
    except apsw.ConstraintError:
        raise id_in_use(new.entry, agent_id) from None
    row, entry_id = connection.last_insert_rowid(), new.columns[_ID]
    changes = [Change(row, entry_id, "add", new.entry.user_id, new.size)]
    sums = added([_row_with_sums(row, new)])
    if new.entry.supersedes is not None:
        superseded = supersede(connection, new.entry, row)
        if superseded is not None:
            changes.append(superseded[0])
            sums = sums.plus(superseded[1])
        elif not rules.is_import:
            raise superseded_missing(new.entry, agent_id)
    return Outcome(row, entry_id, is_new=True), changes, sums


def _find_duplicate(
    connection: apsw.Connection, agent_id: str, new: NewRow, rules: AddOptions
) -> tuple[Outcome | None, list[Change], Sums]:
    """Find what an entry repeats: an earlier call with its key, or a memory with its text."""
    user_id = new.entry.user_id
    fingerprint, key, _ = new.more
    if key is not None:
        found = fetch(connection, _OF_KEY, (agent_id, user_id or "", key))
        if found:
            row, entry_id, known = found[0]
            check_key(key, known, fingerprint, uuids_of([entry_id])[0])
            return Outcome(row, entry_id, is_new=False), [], NO_SUMS
    if rules.on_duplicate != "keep":
        values = (agent_id, fingerprint, user_id, rules.now)
        found = fetch(connection, _OF_FINGERPRINT, values)
        if found:
            (old,) = entries_of(rules.codec, found)
            outcome = Outcome(found[0][0], old.id.bytes, is_new=False)
            if rules.on_duplicate == "merge":
                return outcome, *_merge(connection, found[0], old, new.entry, rules)
            return outcome, [], NO_SUMS
    return None, [], NO_SUMS


def _merge(
    connection: apsw.Connection,
    row: Columns,
    old: MemoryEntry,
    new: MemoryEntry,
    rules: AddOptions,
) -> tuple[list[Change], Sums]:
    changed = merged(old, new, from_microseconds(rules.now))
    if changed is None:
        return [], NO_SUMS
    sums = write_changed(connection, rules.codec, row, changed)
    return [Change(row[0], old.id.bytes, "update", old.user_id)], sums


def add_embeddings(
    connection: apsw.Connection,
    codec: RowCodec,
    agent_id: str,
    vectors: Mapping[int, tuple[str, Sequence[bytes]]],
    model: Model,
) -> None:
    """Insert the vectors of those of these rows without any and with the same content."""
    sql = (
        f"SELECT {CHECKED_COLUMNS} FROM agent_memory_entries {BY_ROW} "
        f"WHERE agent_id = ? AND {AMONG} AND NOT EXISTS (SELECT 1 FROM agent_memory_embeddings "
        "WHERE entry_row = row AND model = ? AND part = 0)"
    )
    values = (agent_id, json_array(list(vectors)), model[0])
    stored = fetch(connection, sql, values)
    found = [
        (columns[0], entry)
        for columns, entry in zip(stored, entries_of(codec, stored), strict=True)
        if entry.content == vectors[columns[0]][0]
    ]
    if not found:
        return
    rows = [row for row, _ in found]
    before = rows_with_sums(connection, rows)
    of_vectors = vector_sums(model[0], [vectors[row][1] for row in rows])
    connection.executemany(SET_VECTOR_SUM, list(zip(of_vectors, rows, strict=True)))
    connection.executemany(
        INSERT_VECTOR,
        [
            (row, model[0], part, to_microseconds(entry.created_at), blob)
            for row, entry in found
            for part, blob in enumerate(vectors[row][1])
        ],
    )
    changes = [Change(row, entry.id.bytes, "embed", entry.user_id) for row, entry in found]
    sums = difference(before, rows_with_sums(connection, rows))
    log_changes(connection, agent_id, changes, model, Charge(sums=sums))
