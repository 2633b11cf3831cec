"""What stores entries, in the stores in SQL."""

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from uuid import UUID

from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingModelMismatchError,
    EntryNotFoundError,
    InvalidEntryError,
)
from mnemic.model import MemoryEntry, MemoryEntryUpdate, Scope
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.records.lines import HIDDEN
from mnemic.reporting.description import quoted
from mnemic.store.changes import Change
from mnemic.store.operations import Add
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENTRY_ID,
    RowCodec,
    UsedKey,
    encoded_row,
    fingerprint,
    uuid_of,
    with_changed,
)
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, IS_ACTIVE, in_scope
from mnemic.store.sql.deletes import Write, evict_entries, remove_others
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.links import end_supersession, supersede
from mnemic.store.sql.new_rows import (
    AddedRows,
    AddOptions,
    NewRow,
    Outcome,
    WrittenRows,
    id_in_use,
    stored_vectors,
)
from mnemic.store.sql.replacing import (
    Place,
    StoredRow,
    opened_rows,
    place_of,
    replace,
    stored_rows,
    with_owned_ids,
)
from mnemic.store.sql.sealing import check_no_key, current_key
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.sql.updates import write_merged
from mnemic.store.values import Model

_ID, _USER, _CREATED_AT = map(COLUMN_NAMES.index, ("id", "user_id", "created_at"))


def _model_of(entries: Iterable[MemoryEntry]) -> Model | None:
    """Return the model of the entries' embeddings; None if there are none.

    Raises:
        EmbeddingModelMismatchError: If they come from several models.
        InvalidEntryError: If an embedding names no model.
    """
    first = None
    for entry in entries:
        if entry.embedding is None:
            continue
        model = entry.embedding_model, entry.embedding.size
        if first is not None and model != first:
            raise EmbeddingModelMismatchError(
                f"one call brings vectors of several models: {first}, {model}"
            )
        first = model
    if first is None:
        return None
    name, dimensions = first
    if name is None:
        raise InvalidEntryError("an entry has an embedding without its embedding_model")
    return name, dimensions


def add_job(codec: RowCodec, dialect: Dialect, wanted: Add) -> "AddJob":
    """Return the job of storing entries."""
    agent_id, entries = wanted.agent_id, wanted.entries
    for new in entries:
        if new.entry.agent_id != agent_id:
            raise InvalidEntryError(
                f"memory {new.entry.id} is agent {new.entry.agent_id!r}'s, not {agent_id!r}'s"
            )
    key = codec.prepare(agent_id)
    model = _model_of(new.entry for new in entries)
    vectors = list(map(stored_vectors, entries))
    rows = dialect.new_rows(codec, entries, vectors, model and model[0])
    rules = AddOptions(wanted, codec, to_microseconds(wanted.now), model, key)
    return AddJob(agent_id, rows, rules)


class AddJob:
    """The job of storing entries, all or none, with their vectors.

    Attributes:
        agents: The agent, alone.
        rows: The entries.
        rules: The options.
        kind: Equal for jobs that `run_together` can join; None if the job must run alone.
        stored: What its last run stored; None if it has not run.
    """

    __slots__ = ("agents", "kind", "rows", "rules", "stored")

    def __init__(self, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> None:
        self.agents = (agent_id,)
        self.rows = rows
        self.rules = rules
        self.stored: AddedRows | None = None
        is_plain = rules.wanted.on_conflict == "raise" and are_independent(rows, rules)
        # What a call deletes is its own.
        is_plain = is_plain and not (
            rules.wanted.instead_of or rules.wanted.quotas.entry_limits.evicts
        )
        self.kind = (agent_id, rules.model, rules.wanted.quotas, rules.key) if is_plain else None

    def __call__(self, on: SqlSession) -> AddedRows:
        """Store the entries."""
        (added,) = self.run_together(on, [self])
        return added

    @staticmethod
    def run_together(on: SqlSession, jobs: "Sequence[AddJob]") -> list[AddedRows]:
        """Run jobs of one kind as one; half the work where each has one entry."""
        for job in jobs:
            job.stored = None
        _check_keys(on, jobs)
        first = jobs[0]
        rows = first.rows if len(jobs) == 1 else [new for job in jobs for new in job.rows]
        added = add(on, first.agents[0], rows, first.rules)
        parts = [added] if len(jobs) == 1 else _split(added, [len(job.rows) for job in jobs])
        for job, part in zip(jobs, parts, strict=True):
            job.stored = part
        return parts


def _check_keys(on: SqlSession, jobs: Sequence[AddJob]) -> None:
    """Check the keys of what jobs of one kind store; reseal it if the agent has another now.

    Raises:
        KeyUnavailableError: If sensitive entries are stored without a key beside sealed ones.
        WrongKeyError: If the agent has other keys now.
    """
    (agent_id,), has_key = jobs[0].agents, jobs[0].rules.key is not None
    if not has_key:
        if any(new.entry.sensitive for job in jobs for new in job.rows):
            check_no_key(on, agent_id)
        return
    if not any(new.entry.is_encrypted for job in jobs for new in job.rows):
        return
    codecs = dict.fromkeys(job.rules.codec for job in jobs)
    keys = {codec: current_key(on, codec, agent_id) for codec in codecs}
    for job in jobs:
        key = keys[job.rules.codec]
        if job.rules.key != key:
            job.rules = job.rules._replace(key=key)
            model = None if job.rules.model is None else job.rules.model[0]
            given, vectors = [new.given for new in job.rows], [new.vectors for new in job.rows]
            job.rows = on.dialect.new_rows(job.rules.codec, given, vectors, model)


def _split(added: AddedRows, sizes: Sequence[int]) -> list[AddedRows]:
    """Return the result of each call, if all entries were stored."""
    parts: list[AddedRows] = []
    end, before = 0, added.seq - added.steps
    for size in sizes:
        begin, end = end, end + size
        parts.append(AddedRows(before + end, size, added.outcomes[begin:end], []))
    return parts


def are_independent(rows: Sequence[NewRow], rules: AddOptions) -> bool:
    """Return whether storing these entries reads no other entry."""
    return rules.wanted.on_duplicate == "keep" and all(map(_is_independent, rows))


def _is_independent(new: NewRow) -> bool:
    return new.more[1] is None and new.entry.supersedes is None


def add(on: SqlSession, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> AddedRows:
    """Store entries with their vectors."""
    with on.dialect.adding(on, rows, rules):
        written = _store(on, agent_id, rows, rules)
        outcomes, changes = written
        has_vectors = any(
            new.vectors for new, outcome in zip(rows, outcomes, strict=True) if outcome.is_stored
        )
        model = rules.model if has_vectors else None
        stored = [outcome.row for outcome in outcomes]
        removed = list[Change]()
        if rules.wanted.instead_of is not None:
            removed = remove_others(on, rules.codec, rules.wanted.instead_of, set(stored))
        changes = [*changes, *removed]
        quotas, zone = rules.wanted.quotas, rules.wanted.time_zone
        write = Write(agent_id, changes, quotas, rules.now, kept=stored)
        evicted = evict_entries(on, rules.codec, write)
        logged = [*changes, *evicted]
        seq = log_changes(on, agent_id, logged, model, quotas, time_zone=zone) if logged else 0
    gone, others = ([each.entry_id for each in some] for some in (evicted, removed))
    return AddedRows(seq, len(logged), outcomes, written.others, gone, others)


def _store(on: SqlSession, agent_id: str, rows: Sequence[NewRow], rules: AddOptions) -> WrittenRows:
    if are_independent(rows, rules):
        if rules.wanted.on_conflict == "raise":
            return _insert(on, agent_id, rows, rules)
        written = _store_many(on, agent_id, rows, rules)
        if written is not None:
            return written
    return WrittenRows.joined(_store_one(on, agent_id, new, rules) for new in rows)


def _insert(
    on: SqlSession,
    agent_id: str,
    rows: Sequence[NewRow],
    rules: AddOptions,
    numbers: Sequence[int] | None = None,
) -> WrittenRows:
    """Insert entries that depend on no other.

    Args:
        on: In the transaction.
        agent_id: The agent.
        rows: The entries.
        rules: The options.
        numbers: Numbers of new rows, if the ids are known to be free.

    Raises:
        DuplicateEntryError: If an id is in use.
    """
    dialect = on.dialect
    if numbers is None and not dialect.refuses_ids:
        wanted = with_owned_ids(dialect, agent_id, [new.owned_id for new in rows])
        found, numbers = dialect.fetch_numbered(on, wanted, len(rows))
        _check_free(agent_id, rows, {(row[1 + _USER] or "", row[ENTRY_ID]) for row in found})
    numbers = dialect.insert_entries(on, agent_id, rows, rules.model, numbers or ())
    numbered = list(zip(numbers, rows, strict=True))
    return WrittenRows(
        [Outcome(row, new.columns[_ID], is_new=True) for row, new in numbered],
        [
            Change(row, new.columns[_ID], "add", new.entry.user_id, new.size)
            for row, new in numbered
        ],
    )


def _check_free(agent_id: str, rows: Sequence[NewRow], used: set[Place]) -> None:
    for new in rows:
        place = place_of(new)
        if place in used:
            raise id_in_use(new.entry, agent_id)
        used.add(place)


def _store_many(
    on: SqlSession, agent_id: str, rows: Sequence[NewRow], rules: AddOptions
) -> WrittenRows | None:
    """Store entries that depend on no other, and whose ids may be stored already.

    Returns:
        None if they must be stored one by one: an id is repeated, or superseded.
    """
    places = {place_of(new): new for new in rows}
    if len(places) < len(rows):
        return None
    ids = [new.owned_id for new in rows]
    wanted = with_owned_ids(on.dialect, agent_id, ids)
    found, numbers = on.dialect.fetch_numbered(on, wanted, len(rows))
    known = opened_rows(on.dialect, rules.codec, agent_id, ids, found)
    if any(old.is_superseded for old in known.values()):
        return None
    fresh = [new for place, new in places.items() if place not in known]
    if len(fresh) == len(rows):
        return _insert(on, agent_id, rows, rules, numbers)
    pairs = [(new, known[place]) for place, new in places.items() if place in known]
    written = _replace_or_skip(on, pairs, rules)
    if not fresh:
        return written
    inserted = _insert(on, agent_id, fresh, rules, numbers[: len(fresh)])
    outcomes = iter(inserted.outcomes), iter(written.outcomes)
    return WrittenRows(
        [next(outcomes[place in known]) for place in places],
        [*inserted.changes, *written.changes],
    )


def _replace_or_skip(
    on: SqlSession, pairs: Sequence[tuple[NewRow, StoredRow]], rules: AddOptions
) -> WrittenRows:
    """Store entries over those with their ids, but over those that stay."""
    changed = [(new, old) for new, old in pairs if not rules.keeps(new, old.plain)]
    written = replace(on, rules.codec, changed, rules.now, rules.model)
    replaced = {outcome.row: outcome for outcome in written.outcomes}
    outcomes = [
        replaced.get(old.row) or Outcome(old.row, new.columns[_ID], is_new=False)
        for new, old in pairs
    ]
    return WrittenRows(outcomes, written.changes)


def _store_one(on: SqlSession, agent_id: str, new: NewRow, rules: AddOptions) -> WrittenRows:
    repeated = _repeated_key(on, rules.codec, agent_id, new)
    if repeated is not None:
        return repeated
    if rules.wanted.on_conflict != "raise":
        known = stored_rows(on, rules.codec, agent_id, [new.owned_id])
        if known:
            (old,) = known.values()
            return _store_over(on, agent_id, new, old, rules)
    repeated = _repeated_text(on, agent_id, new, rules)
    if repeated is not None:
        return repeated
    written = _insert(on, agent_id, [new], rules)
    return _superseding(on, written, new.entry, new.columns[_CREATED_AT], rules)


def _store_over(
    on: SqlSession, agent_id: str, new: NewRow, old: StoredRow, rules: AddOptions
) -> WrittenRows:
    ended = list[Change]()
    if old.is_superseded and not rules.keeps(new, old.plain):
        ended = end_supersession(on, agent_id, old.row, rules.now)
    written = _replace_or_skip(on, [(new, old)], rules)
    written = WrittenRows(written.outcomes, [*written.changes, *ended])
    replacement = written.outcomes[0].replacement
    if replacement is None:
        return written
    entry = replacement.shown.entry
    return _superseding(on, written, entry, to_microseconds(entry.updated_at), rules)


def _superseding(
    on: SqlSession, written: WrittenRows, entry: MemoryEntry, at: int, rules: AddOptions
) -> WrittenRows:
    """Mark the entry that a written one supersedes."""
    if entry.supersedes is None:
        return written
    superseded = supersede(on, rules.codec, entry, written.outcomes[0].row, at)
    if superseded is not None:
        return WrittenRows(written.outcomes, [*written.changes, superseded])
    if rules.wanted.is_import:
        return written
    raise EntryNotFoundError(
        f"memory {entry.id} supersedes {entry.supersedes}, and there is no such "
        f"memory for agent {entry.agent_id!r}, user {entry.user_id!r}"
    )


def _repeated_key(
    on: SqlSession, codec: RowCodec, agent_id: str, new: NewRow
) -> WrittenRows | None:
    """Find the entry of an earlier call with the same idempotency key.

    Raises:
        DuplicateEntryError: If it came with another content.
    """
    _, key, _ = new.more
    if key is None:
        return None
    dialect = on.dialect
    sql = _of_key(dialect.keyed_row, dialect.user_key)
    for stored_key in (key, *new.other_keys):
        for row in on.fetch(sql, (agent_id, new.entry.user_id or "", stored_key)):
            with dialect.reading_stored("a memory's key"):
                existing, used = uuid_of(row[ENTRY_ID]), codec.used_key(encoded_row(row))
            _check_content(new, used, existing)
            return WrittenRows([Outcome(row[0], row[ENTRY_ID], is_new=False)], [])
    return None


@cache
def _of_key(columns: str, user_key: str) -> str:
    is_of_user = f"agent_id = ? AND {user_key} = ?"
    return f"SELECT {columns} FROM {ENTRIES} WHERE {is_of_user} AND idempotency_key = ?"


def _check_content(new: NewRow, used: UsedKey | None, existing: UUID) -> None:
    """Raise DuplicateEntryError if an idempotency key was used for another content."""
    if used is None or used.fingerprint != fingerprint(new.entry.content):
        shown = HIDDEN if new.shown_key is None else quoted(new.shown_key)
        raise DuplicateEntryError(
            f"idempotency key {shown} was used for another content, that of "
            f"memory {existing}; a key belongs to one memory"
        )


def _repeated_text(
    on: SqlSession, agent_id: str, new: NewRow, rules: AddOptions
) -> WrittenRows | None:
    """Find an entry with the same text, and merge the new one into it if that is wanted."""
    if rules.wanted.on_duplicate == "keep" or not new.entry.content:  # empty texts repeat no other
        return None
    found = _first_with_text(on, agent_id, new, rules)
    if found is None:
        return None
    row, old = found
    outcomes = [Outcome(row[0], old.id.bytes, is_new=False)]
    changed = _merged(old, new.entry, rules.now) if rules.wanted.on_duplicate == "merge" else None
    if changed is None:
        return WrittenRows(outcomes, [])
    size = write_merged(on, rules.codec, row, with_changed(old, changed))
    return WrittenRows(outcomes, [Change(row[0], old.id.bytes, "update", old.user_id, size)])


def _first_with_text(
    on: SqlSession, agent_id: str, new: NewRow, rules: AddOptions
) -> tuple[Columns, MemoryEntry] | None:
    dialect, scope = on.dialect, Scope(agent_id, new.entry.user_id)
    where, values = in_scope(scope)
    sql = _of_text(dialect.keyed_row, dialect.by_index("fingerprint"), where)
    bound = (*values, *rules.codec.lookup(new.entry), rules.now)
    wanted = fingerprint(new.entry.content)
    for limit in (
        1,
        sys.maxsize,
    ):  # an earlier version may have stored other texts so
        rows = on.fetch_checked(sql, (*bound, limit))
        for row, entry in zip(rows, dialect.entries(rules.codec, rows, scope), strict=True):
            if fingerprint(entry.content) == wanted:
                return row, entry
        if not rows:
            break
    return None


@cache
def _of_text(columns: str, hint: str, where: str) -> str:
    return (
        f"SELECT {columns} FROM {ENTRIES} {hint} "
        f"WHERE {where} AND fingerprint IN (?, ?) AND {IS_ACTIVE} ORDER BY created_at, row LIMIT ?"
    )


def _merged(old: MemoryEntry, new: MemoryEntry, now: int) -> MemoryEntry | None:
    """Return an entry with the tags, the metadata and the higher importance of its duplicate.

    Returns:
        None if nothing changes.
    """
    update = MemoryEntryUpdate(
        importance=max(old.importance, new.importance), add_tags=new.tags, metadata=new.metadata
    )
    changed = update.applied_to(old, from_microseconds(now))
    before = old.importance, old.tags, old.metadata
    return None if (changed.importance, changed.tags, changed.metadata) == before else changed
