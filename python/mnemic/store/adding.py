"""How entries are stored: what becomes of those whose key, id or text is there already."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from mnemic.errors import (
    DuplicateEntryError,
    EmbeddingModelMismatchError,
    EntryNotFoundError,
    InvalidEntryError,
)
from mnemic.model import MemoryEntry, MemoryEntryUpdate
from mnemic.model.new_entry import check_supersedes
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.records.lines import HIDDEN
from mnemic.reporting.description import quoted
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
from mnemic.store.operations import Add
from mnemic.store.row_codec import RowCodec, UsedKey, fingerprint, with_changed
from mnemic.store.values import Model, Selection

Session = TypeVar("Session")

Found: TypeAlias = tuple[tuple[Any, ...], MemoryEntry]
"""A stored entry, and its row, which begins with the number."""


class Adding(ABC, Generic[Session]):
    """Stores the entries of a call; see `Add`.

    Its methods read and write in one transaction of a store.

    Args:
        on: In the transaction.
        rules: How they are stored.
    """

    def __init__(self, on: Session, rules: AddOptions) -> None:
        self.on = on
        self.rules = rules
        self.agent_id = rules.wanted.agent_id

    def add(self, rows: Sequence[NewRow]) -> AddedRows:
        """Store entries with their vectors."""
        wanted = self.rules.wanted
        outcomes, changes = written = self.store(rows)
        has_vectors = any(
            new.vectors for new, outcome in zip(rows, outcomes, strict=True) if outcome.is_stored
        )
        stored = [outcome.row for outcome in outcomes]
        removed = list[Change]()
        if wanted.instead_of is not None:
            removed = self.remove_others(wanted.instead_of, set(stored))
        changes = [*changes, *removed]
        write = Write(self.agent_id, changes, wanted.quotas, self.rules.now, kept=stored)
        evicted = self.evict(write)
        logged = [*changes, *evicted]
        seq = self.log(logged, self.rules.model if has_vectors else None) if logged else 0
        gone, others = ([each.entry_id for each in some] for some in (evicted, removed))
        return AddedRows(seq, len(logged), outcomes, written.others, gone, others)

    def store(self, rows: Sequence[NewRow]) -> WrittenRows:
        """Store entries, one after the other."""
        return WrittenRows.joined(map(self.store_one, rows))

    def store_one(self, new: NewRow) -> WrittenRows:
        """Store an entry, unless one with its key, its id or its text stays in its place."""
        if new.more[1] is not None:
            for row, entry_id, used in self.with_key(new):
                _check_content(new, used, entry_id)
                return WrittenRows([Outcome(row, entry_id.bytes, is_new=False)], [])
        wanted = self.rules.wanted
        if wanted.on_conflict != "raise":
            old = self.with_id(new)
            if old is not None:
                return self._store_over(new, old)
        if wanted.on_duplicate != "keep" and new.entry.content:  # empty texts repeat no other
            found = self.with_text(new)
            if found is not None:
                return self._repeated(new, found)
        written = self.insert(new)
        return self._superseding(written, new.entry, new.entry.created_at)

    def _store_over(self, new: NewRow, old: StoredRow) -> WrittenRows:
        if self.rules.keeps(new, old.plain):
            return WrittenRows([Outcome(old.row, new.entry.id.bytes, is_new=False)], [])
        ended = self.end_supersession(old.row) if old.is_superseded else []
        done = self.replace(new, old)
        written = WrittenRows([done.outcome], [done.change, *ended])
        return self._superseding(written, done.entry, done.entry.updated_at)

    def _repeated(self, new: NewRow, found: Found) -> WrittenRows:
        """Merge an entry into one with the same text, if that is wanted."""
        (row, *_), old = found
        outcomes = [Outcome(row, old.id.bytes, is_new=False)]
        is_merged = self.rules.wanted.on_duplicate == "merge"
        changed = _merged(old, new.entry, self.rules.now) if is_merged else None
        if changed is None:
            return WrittenRows(outcomes, [])
        size = self.merge(found, with_changed(old, changed))
        return WrittenRows(outcomes, [Change(row, old.id.bytes, "update", old.user_id, size)])

    def _superseding(self, written: WrittenRows, entry: MemoryEntry, at: datetime) -> WrittenRows:
        """Mark the entry that a written one supersedes."""
        if entry.supersedes is None:
            return written
        superseded = self.supersede(entry, written.outcomes[0].row, to_microseconds(at))
        if superseded is not None:
            return WrittenRows(written.outcomes, [*written.changes, superseded])
        if self.rules.wanted.is_import:
            return written
        raise EntryNotFoundError(
            f"memory {entry.id} supersedes {entry.supersedes}, and there is no such "
            f"memory for agent {entry.agent_id!r}, user {entry.user_id!r}"
        )

    @abstractmethod
    def with_key(self, new: NewRow) -> Iterable[tuple[int, UUID, UsedKey | None]]:
        """Yield row and id of the user's entry with the idempotency key of a new one, and its key.

        The key is given with the content that it was used for.
        """

    @abstractmethod
    def with_id(self, new: NewRow) -> StoredRow | None:
        """Return what is stored, in any state, under the id of an entry."""

    @abstractmethod
    def with_text(self, new: NewRow) -> Found | None:
        """Return the oldest active entry of the user with the text of a new one."""

    @abstractmethod
    def insert(self, new: NewRow) -> WrittenRows:
        """Insert an entry.

        Raises:
            DuplicateEntryError: If its id is in use.
        """

    @abstractmethod
    def replace(self, new: NewRow, old: StoredRow) -> Overwrite:
        """Store an entry over another one.

        The row keeps its number, its time of creation and the links that lead to it. Its vectors
        stay if the content does and no others are given.
        """

    @abstractmethod
    def merge(self, found: Found, entry: MemoryEntry) -> int:
        """Write another state of a stored entry; return the bytes that it adds."""

    @abstractmethod
    def supersede(self, entry: MemoryEntry, row: int, at: int) -> Change | None:
        """Mark the entry that a stored one supersedes, and link the two.

        Args:
            entry: The stored entry.
            row: Its row.
            at: When it was stored, in microseconds since 1970 in UTC.

        Returns:
            The change; None if there is no such entry.
        """

    @abstractmethod
    def end_supersession(self, row: int) -> list[Change]:
        """Let the entries that superseded a row do so no more, before it is stored again.

        They superseded its old content. Otherwise an import, or a later reader, would take the new
        one for superseded.
        """

    @abstractmethod
    def remove_others(self, which: Selection, kept: Collection[int]) -> list[Change]:
        """Delete the selected entries but those of some rows."""

    @abstractmethod
    def evict(self, write: Write) -> list[Change]:
        """Delete entries so that the write keeps to its quotas; see `Eviction`."""

    @abstractmethod
    def log(self, changes: Sequence[Change], model: Model | None) -> int:
        """Log changes, with the model of new vectors; return the number of the last one."""


def add_options(codec: RowCodec, wanted: Add) -> AddOptions:
    """Return how entries are stored, which are checked.

    Raises:
        EmbeddingModelMismatchError: If embeddings come from several models.
        InvalidEntryError: If an entry is another agent's or supersedes itself, or an embedding
            names no model.
    """
    agent_id, models = wanted.agent_id, dict[tuple[str | None, int], None]()
    for new in wanted.entries:
        entry = new.entry
        if entry.agent_id != agent_id:
            raise InvalidEntryError(
                f"memory {entry.id} is agent {entry.agent_id!r}'s, not {agent_id!r}'s"
            )
        if entry.supersedes is not None:
            check_supersedes(entry)
        if entry.embedding is not None:
            models[entry.embedding_model, entry.embedding.size] = None
    key = codec.prepare(agent_id)
    if len(models) > 1:
        first, other, *_ = models
        raise EmbeddingModelMismatchError(
            f"one call brings vectors of several models: {first}, {other}"
        )
    name, dimensions = next(iter(models), ("", 0))
    if name is None:
        raise InvalidEntryError("an entry has an embedding without its embedding_model")
    model = (name, dimensions) if models else None
    return AddOptions(wanted, codec, to_microseconds(wanted.now), model, key)


def _check_content(new: NewRow, used: UsedKey | None, existing: UUID) -> None:
    """Raise DuplicateEntryError if an idempotency key was used for another content."""
    if used is None or used.fingerprint != fingerprint(new.entry.content):
        shown = HIDDEN if new.shown_key is None else quoted(new.shown_key)
        raise DuplicateEntryError(
            f"idempotency key {shown} was used for another content, that of "
            f"memory {existing}; a key belongs to one memory"
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
