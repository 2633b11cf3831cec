"""What stores entries, in the stores in SQL."""

import sys
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from uuid import UUID

from mnemic.model import MemoryEntry, Scope
from mnemic.store.adding import Adding
from mnemic.store.changes import Change
from mnemic.store.eviction import Write
from mnemic.store.new_rows import (
    AddedRows,
    AddOptions,
    NewRow,
    Outcome,
    Overwrite,
    StoredRow,
    WrittenRows,
)
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    ENTRY_ID,
    UsedKey,
    encoded_row,
    fingerprint,
    uuid_of,
)
from mnemic.store.rules import id_in_use
from mnemic.store.sql.change_log import log_changes
from mnemic.store.sql.conditions import ENTRIES, IS_ACTIVE, in_scope
from mnemic.store.sql.deletes import SqlEviction, remove
from mnemic.store.sql.dialect import Dialect
from mnemic.store.sql.links import end_supersession, supersede
from mnemic.store.sql.lists import numbers_of, selected
from mnemic.store.sql.replacing import opened_rows, replace, stored_rows, with_owned_ids
from mnemic.store.sql.sealing import check_no_key, current_key
from mnemic.store.sql.session import Columns, SqlSession
from mnemic.store.sql.updates import write_merged
from mnemic.store.values import Model, Selection

_ID, _USER = map(COLUMN_NAMES.index, ("id", "user_id"))


class AddJob:
    """The job of storing entries, all or none, with their vectors.

    Args:
        rules: The options.
        dialect: Makes the rows of the entries.

    Attributes:
        agents: The agent, alone.
        rows: The entries.
        rules: The options.
        kind: Equal for jobs that `run_together` can join; None if the job must run alone.
        stored: What its last run stored; None if it has not run.
    """

    __slots__ = ("agents", "kind", "rows", "rules", "stored")

    def __init__(self, rules: AddOptions, dialect: Dialect) -> None:
        wanted, model = rules.wanted, rules.model
        rows = dialect.new_rows(rules.codec, wanted.entries, model and model[0])
        self.agents = (wanted.agent_id,)
        self.rows = rows
        self.rules = rules
        self.stored: AddedRows | None = None
        is_plain = wanted.on_conflict == "raise" and are_independent(rows, rules)
        # What a call deletes is its own.
        is_plain = is_plain and not (wanted.instead_of or wanted.quotas.entry_limits.evicts)
        self.kind = (wanted.agent_id, model, wanted.quotas, rules.key) if is_plain else None

    def __call__(self, on: SqlSession) -> AddedRows:
        """Store the entries."""
        (added,) = self.run_together(on, [self])
        return added

    @staticmethod
    def run_together(on: SqlSession, jobs: "Sequence[AddJob]") -> list[AddedRows]:
        """Run jobs of one kind as one; half the work where each has one entry."""
        for job in jobs:
            job.stored = None
        first = jobs[0]
        rows = first.rows if len(jobs) == 1 else [new for job in jobs for new in job.rows]
        if first.rules.key is not None or any(new.entry.sensitive for new in rows):
            _check_keys(on, jobs)
            rows = [new for job in jobs for new in job.rows]
        with on.dialect.adding(on, rows, first.rules):
            added = _SqlAdding(on, first.rules).add(rows)
        parts = [added] if len(jobs) == 1 else _split(added, [len(job.rows) for job in jobs])
        for job, part in zip(jobs, parts, strict=True):
            job.stored = part
        return parts


def _check_keys(on: SqlSession, jobs: Sequence[AddJob]) -> None:
    """Check the keys of what jobs of one kind seal, or store in plain though it is sensitive.

    What was sealed is sealed again if the agent has another key now.

    Raises:
        KeyUnavailableError: If sensitive entries are stored without a key beside sealed ones.
        WrongKeyError: If the agent has other keys now.
    """
    (agent_id,) = jobs[0].agents
    if jobs[0].rules.key is None:
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
            given = [new.given for new in job.rows]
            job.rows = on.dialect.new_rows(job.rules.codec, given, model)


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
    return rules.wanted.on_duplicate == "keep" and not any(
        new.more[1] is not None or new.entry.supersedes is not None for new in rows
    )


class _SqlAdding(Adding[SqlSession]):
    """Stores entries by statements; those that depend on no other one together."""

    def store(self, rows: Sequence[NewRow]) -> WrittenRows:
        """Store entries."""
        if not are_independent(rows, self.rules):
            return super().store(rows)
        if self.rules.wanted.on_conflict == "raise":
            is_refused = self.on.dialect.refuses_ids
            return self._insert(rows, ()) if is_refused else self._insert_free(rows)
        written = self._store_many(rows)
        return super().store(rows) if written is None else written

    def _store_many(self, rows: Sequence[NewRow]) -> WrittenRows | None:
        """Store entries that depend on no other, and whose ids may be stored already.

        Returns:
            None if they must be stored one by one: an id is repeated, or superseded.
        """
        places = {new.place: new for new in rows}
        if len(places) < len(rows):
            return None
        found, numbers = self._fetch_numbered(rows)
        ids = [new.owned_id for new in rows]
        known = opened_rows(self.on.dialect, self.rules.codec, self.agent_id, ids, found)
        if any(old.is_superseded for old in known.values()):
            return None
        fresh = [new for place, new in places.items() if place not in known]
        if len(fresh) == len(rows):
            return self._insert(rows, numbers)
        pairs = [(new, known[place]) for place, new in places.items() if place in known]
        written = self._replace_or_skip(pairs)
        if not fresh:
            return written
        inserted = self._insert(fresh, numbers[: len(fresh)])
        outcomes = iter(inserted.outcomes), iter(written.outcomes)
        return WrittenRows(
            [next(outcomes[place in known]) for place in places],
            [*inserted.changes, *written.changes],
        )

    def _replace_or_skip(self, pairs: Sequence[tuple[NewRow, StoredRow]]) -> WrittenRows:
        """Store entries over those with their ids, but over those that stay."""
        changed = [(new, old) for new, old in pairs if not self.rules.keeps(new, old.plain)]
        replaced = {each.old.row: each for each in replace(self.on, changed, self.rules)}
        return WrittenRows(
            [
                replaced[old.row].outcome
                if old.row in replaced
                else Outcome(old.row, new.columns[_ID], is_new=False)
                for new, old in pairs
            ],
            [each.change for each in replaced.values()],
        )

    def insert(self, new: NewRow) -> WrittenRows:
        """Insert an entry."""
        is_refused = self.on.dialect.refuses_ids
        return self._insert([new], ()) if is_refused else self._insert_free([new])

    def _insert_free(self, rows: Sequence[NewRow]) -> WrittenRows:
        """Insert entries, unless an id is in use."""
        found, numbers = self._fetch_numbered(rows)
        used = {(row[1 + _USER] or "", row[ENTRY_ID]) for row in found}
        for new in rows:
            if new.place in used:
                raise id_in_use(new.entry)
            used.add(new.place)
        return self._insert(rows, numbers)

    def _fetch_numbered(self, rows: Sequence[NewRow]) -> tuple[list[Columns], Sequence[int]]:
        """Return what is stored under the ids of entries, and numbers for new rows."""
        dialect, ids = self.on.dialect, [new.owned_id for new in rows]
        wanted = with_owned_ids(dialect, self.agent_id, ids)
        return dialect.fetch_numbered(self.on, wanted, len(rows))

    def _insert(self, rows: Sequence[NewRow], numbers: Sequence[int]) -> WrittenRows:
        on, model = self.on, self.rules.model
        numbers = on.dialect.insert_entries(on, self.agent_id, rows, model, numbers)
        numbered = list(zip(numbers, rows, strict=True))
        return WrittenRows(
            [Outcome(row, new.columns[_ID], is_new=True) for row, new in numbered],
            [
                Change(row, new.columns[_ID], "add", new.entry.user_id, new.size)
                for row, new in numbered
            ],
        )

    def with_key(self, new: NewRow) -> Iterator[tuple[int, UUID, UsedKey | None]]:
        """Yield row and id of the user's entry with the idempotency key of a new one, and its key.

        Stored keys have several forms.
        """
        dialect, user = self.on.dialect, new.entry.user_id or ""
        sql = _of_key(dialect.keyed_row, dialect.user_key)
        for stored_key in (new.more[1], *new.other_keys):
            for row in self.on.fetch(sql, (self.agent_id, user, stored_key)):
                with dialect.reading_stored("a memory's key"):
                    used = self.rules.codec.used_key(encoded_row(row))
                    existing = uuid_of(row[ENTRY_ID])
                yield row[0], existing, used

    def with_id(self, new: NewRow) -> StoredRow | None:
        """Return what is stored, in any state, under the id of an entry."""
        stored = stored_rows(self.on, self.rules.codec, self.agent_id, [new.owned_id])
        return stored.get(new.place)

    def with_text(self, new: NewRow) -> tuple[Columns, MemoryEntry] | None:
        """Return the oldest active entry of the user with the text of a new one."""
        dialect, scope = self.on.dialect, Scope(self.agent_id, new.entry.user_id)
        codec = self.rules.codec
        where, values = in_scope(scope)
        sql = _of_text(dialect.keyed_row, dialect.by_index("fingerprint"), where)
        bound = (*values, *codec.lookup(new.entry), self.rules.now)
        wanted = fingerprint(new.entry.content)
        for limit in (1, sys.maxsize):  # an earlier version may have stored other texts so
            rows = self.on.fetch_checked(sql, (*bound, limit))
            for row, entry in zip(rows, dialect.entries(codec, rows, scope), strict=True):
                if fingerprint(entry.content) == wanted:
                    return row, entry
            if not rows:
                break
        return None

    def replace(self, new: NewRow, old: StoredRow) -> Overwrite:
        """Store an entry over another one."""
        (done,) = replace(self.on, [(new, old)], self.rules)
        return done

    def merge(self, found: tuple[Columns, MemoryEntry], entry: MemoryEntry) -> int:
        """Write another state of a stored entry; return the bytes that it adds."""
        return write_merged(self.on, self.rules.codec, found[0], entry)

    def supersede(self, entry: MemoryEntry, row: int, at: int) -> Change | None:
        """Mark the entry that a stored one supersedes, and link the two."""
        return supersede(self.on, self.rules.codec, entry, row, at)

    def end_supersession(self, row: int) -> list[Change]:
        """Let the entries that superseded a row do so no more."""
        return end_supersession(self.on, self.agent_id, row, self.rules.now)

    def remove_others(self, which: Selection, kept: Collection[int]) -> list[Change]:
        """Delete the selected entries but those of some rows."""
        on, codec = self.on, self.rules.codec
        found = numbers_of(on, selected(on, codec, *which))
        return remove(on, codec, self.agent_id, [row for row in found if row not in kept])

    def evict(self, write: Write) -> list[Change]:
        """Delete entries so that the write keeps to its quotas."""
        return SqlEviction(self.on, self.rules.codec, write).changes()

    def log(self, changes: Sequence[Change], model: Model | None) -> int:
        """Log changes; return the number of the last one."""
        wanted = self.rules.wanted
        return log_changes(
            *(self.on, self.agent_id, changes, model, wanted.quotas), time_zone=wanted.time_zone
        )


@cache
def _of_key(columns: str, user_key: str) -> str:
    is_of_user = f"agent_id = ? AND {user_key} = ?"
    return f"SELECT {columns} FROM {ENTRIES} WHERE {is_of_user} AND idempotency_key = ?"


@cache
def _of_text(columns: str, hint: str, where: str) -> str:
    return (
        f"SELECT {columns} FROM {ENTRIES} {hint} "
        f"WHERE {where} AND fingerprint IN (?, ?) AND {IS_ACTIVE} ORDER BY created_at, row LIMIT ?"
    )
