"""Rows of entries to store and of those in whose places they go; what storing them gives."""

import copy
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

from msgspec.structs import force_setattr

from mnemic.arrays import Float32Array, np
from mnemic.model import MemoryEntry, MemoryStatus
from mnemic.model.new_entry import NewEntry
from mnemic.model.rows import Record, RowBatch
from mnemic.model.timestamps import from_microseconds, to_microseconds
from mnemic.store.changes import Change, ChangeKind
from mnemic.store.operations import Add
from mnemic.store.row_codec import (
    COLUMN_NAMES,
    Columns,
    EncodedRow,
    RowCodec,
    UsedKey,
    next_version,
    uuid_of,
)
from mnemic.store.values import (
    Model,
    OwnedId,
    ReplacedEntry,
    StoredKey,
    WriteResult,
)

Place: TypeAlias = tuple[str, bytes]
"""User, '' for none, and id of an entry of one agent."""

_AT: Final = {name: at for at, name in enumerate(COLUMN_NAMES)}
_ID, _CONTENT, _ACCESS_COUNT = _AT["id"], _AT["content"], _AT["access_count"]
_CREATED_AT, _UPDATED_AT, _VERSION = _AT["created_at"], _AT["updated_at"], _AT["version"]
_STATUS, _FORGOTTEN_AT, _ENCRYPTED = _AT["status"], _AT["forgotten_at"], _AT["is_encrypted"]
_ACCESSES: Final = frozenset({"last_accessed_at", "access_count"})


class NewRow(NamedTuple):
    """An entry to store, in the form of the statements.

    Attributes:
        entry: The entry.
        size: Bytes of its content that count in the quota.
        columns: Its columns, in the order of a codec.
        more: Its fingerprint, its idempotency key, and the fingerprint that the key came with.
        vectors: One for each chunk.
        stored_vectors: The same, as they are stored.
        sums: Checksums of its columns and of its vectors, in a store that keeps some.
        given_key: Its idempotency key, as it was given.
        other_keys: The forms in which an entry that was sealed later, or was not sealed, has the
            key.
        plain: The columns in plain text.
    """

    entry: MemoryEntry
    size: int
    columns: Columns
    more: tuple[bytes, str | None, bytes | None]
    vectors: Sequence[Float32Array]
    stored_vectors: Sequence[Float32Array | bytes]
    sums: tuple[int | None, int | None] = (None, None)
    given_key: str = ""
    other_keys: Sequence[str] = ()
    plain: Columns = ()

    @property
    def owned_id(self) -> OwnedId:
        """Its user and id."""
        return self.entry.user_id, self.entry.id

    @property
    def place(self) -> Place:
        """Its user and id, as stored rows are known by."""
        return self.entry.user_id or "", self.columns[_ID]

    @property
    def given(self) -> NewEntry:
        """The entry with its key and its vectors, as it was given."""
        key = None if self.more[1] is None else self.given_key
        return NewEntry(self.entry, key, tuple(self.vectors[1:]))

    @property
    def shown_key(self) -> str | None:
        """The given key for a message; None for an entry whose texts are hidden."""
        return None if self.entry.hides_content else self.given_key


def vector_blobs(parts: Float32Array) -> list[bytes]:
    """Return vectors as they are stored."""
    return [vector.tobytes() for vector in parts.astype("<f4", copy=False)]


def encoded(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    model: str | None,
) -> list[NewRow]:
    """Return entries as a codec stores them, with their vectors, which are of a model."""
    stored = codec.rows(
        [(new.entry, None if new.key is None else UsedKey(new.key)) for new in entries]
    )
    # An entry's own vectors never change, so none is copied.
    vectors = [
        []
        if new.entry.embedding is None
        else [vector.astype("<f4", copy=False) for vector in (new.entry.embedding, *new.more)]
        for new in entries
    ]
    return [
        NewRow(
            new.entry,
            codec.stored_content_size(row.columns[_CONTENT]),
            row.columns,
            row.more,
            parts,
            as_stored(codec, new.entry, model, parts)
            if model is not None and new.entry.is_encrypted
            else parts,
            given_key=new.key or "",
            other_keys=() if new.key is None else codec.other_keys(new.entry, new.key),
            plain=row.plain,
        )
        for new, row, parts in zip(entries, stored, vectors, strict=True)
    ]


def as_stored(
    codec: RowCodec, entry: MemoryEntry, model: str, parts: Iterable[Float32Array]
) -> list[Float32Array | bytes]:
    """Return the vectors of an entry's chunks as they are stored."""
    return [
        codec.seal_vector(entry, model, part, np.ascontiguousarray(each, dtype="<f4"))
        for part, each in enumerate(parts)
    ]


class NewVectors(NamedTuple):
    """The vectors of a row's chunks, sealed or not, and when they were stored."""

    row: int
    time: int
    vectors: Sequence[Float32Array | bytes]


def new_vectors(
    codec: RowCodec, row: int, entry: MemoryEntry, model: str, parts: Iterable[Float32Array]
) -> NewVectors:
    """Return the vectors of a stored entry's chunks, as they are stored."""
    time = to_microseconds(entry.updated_at)
    return NewVectors(row, time, as_stored(codec, entry, model, parts))


class AddOptions(NamedTuple):
    """How entries are stored.

    Attributes:
        wanted: The operation, with the options that were given.
        codec: Codec of the entries.
        now: Its time, in microseconds since 1970 in UTC.
        model: Model of the given vectors; None if there are none.
        key: The agent's key that sealed entries; None if none can be sealed.
    """

    wanted: Add
    codec: RowCodec
    now: int
    model: Model | None
    key: StoredKey | None

    def keeps(self, new: NewRow, old: Columns) -> bool:
        """Return whether a stored entry stays as it is, given its columns in plain text."""
        if self.wanted.on_conflict == "skip" or self.wanted.instead_of is None or new.vectors:
            return self.wanted.on_conflict == "skip"
        return _stated(new.plain) == _stated(old)


def _stated(columns: Columns) -> Columns:
    """Return the columns of an entry but its accesses."""
    return tuple(
        column for name, column in zip(COLUMN_NAMES, columns, strict=True) if name not in _ACCESSES
    )


class Replacement(NamedTuple):
    """An entry that was stored over another one.

    Attributes:
        shown: The entry, as the store returns it.
        columns: Its columns, as they are stored.
        clears_index: Whether an index must not keep anything of the old one; see `changes`.
    """

    shown: ReplacedEntry
    columns: Columns
    clears_index: bool


class Outcome(NamedTuple):
    """Result for one entry: its row and id, or those of the existing entry it repeats.

    Attributes:
        row: The row.
        entry_id: The id.
        is_new: Whether the row is new.
        replacement: The entry, if it took the place of the row's earlier one.
    """

    row: int
    entry_id: bytes
    is_new: bool
    replacement: Replacement | None = None

    @property
    def is_stored(self) -> bool:
        """Whether the entry was stored, in a new row or over another entry."""
        return self.is_new or self.replacement is not None


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
        return bool(self.columns[_ACCESS_COUNT])

    @property
    def successor(self) -> tuple[datetime, int]:
        """When it was created, and its next version: those of an entry that takes its place.

        Raises:
            ValueError: If they cannot have been stored.
        """
        return from_microseconds(self.columns[_CREATED_AT]), next_version(self.columns[_VERSION])


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


def overwrite(
    codec: RowCodec, new: NewRow, old: StoredRow, successor: tuple[datetime, int], now: int
) -> Overwrite:
    """Return an entry as it is stored over another one.

    Its idempotency key stays unless another is given, so that a late repetition of the first call
    still finds what it stored.

    Args:
        codec: Codec of the entries.
        new: The entry.
        old: The row that it takes the place of.
        successor: That of the row.
        now: The time now, in microseconds since 1970 in UTC.
    """
    created_at, version = successor
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


class AddedRows(NamedTuple):
    """Results for the entries of one call, in their order.

    Attributes:
        seq: Number of the agent's last change.
        steps: Number of changes.
        outcomes: One for each entry.
        changed: Other existing rows that changed.
        evicted: Ids of the entries that were deleted to make space.
        removed: Ids of those that were deleted because others took their place.
    """

    seq: int
    steps: int
    outcomes: list[Outcome]
    changed: list[int]
    evicted: Sequence[bytes] = ()
    removed: Sequence[bytes] = ()


class WrittenRows(NamedTuple):
    """What a part of storing entries wrote.

    Attributes:
        outcomes: One for each entry.
        changes: For the change log.
    """

    outcomes: list[Outcome]
    changes: list[Change]

    @classmethod
    def joined(cls, parts: Iterable["WrittenRows"]) -> "WrittenRows":
        """Return what all parts wrote, in their order."""
        outcomes: list[Outcome] = []
        changes: list[Change] = []
        for part in parts:
            outcomes += part.outcomes
            changes += part.changes
        return cls(outcomes, changes)

    @property
    def others(self) -> list[int]:
        """The rows that changed because others were stored."""
        if all(change.kind == "add" for change in self.changes):
            return []
        replaced = {outcome.row for outcome in self.outcomes if outcome.replacement}
        return [
            change.row
            for change in self.changes
            if change.kind == "supersede" or (change.kind != "add" and change.row not in replaced)
        ]


def stored_of(codec: RowCodec, added: AddedRows, rows: Sequence[NewRow]) -> WriteResult:
    """Return what an addition stored: its outcomes, and the change for an index."""
    return WriteResult(
        ids=[
            new.entry.id if outcome.is_new else uuid_of(outcome.entry_id)
            for new, outcome in zip(rows, added.outcomes, strict=True)
        ],
        rows=[outcome.row for outcome in added.outcomes],
        is_new=[outcome.is_new for outcome in added.outcomes],
        changed=added.changed,
        batch=_batch(codec, added, rows),
        replaced={
            at: outcome.replacement.shown
            for at, outcome in enumerate(added.outcomes)
            if outcome.replacement is not None
        },
        evicted=tuple(map(uuid_of, added.evicted)),
        removed=tuple(map(uuid_of, added.removed)),
    )


def _batch(codec: RowCodec, added: AddedRows, rows: Sequence[NewRow]) -> RowBatch | None:
    """Return the change for an index; None if it needs more than the stored entries."""
    stored = [pair for pair in zip(added.outcomes, rows, strict=True) if pair[0].is_stored]
    if not _are_all_changes(added, [outcome for outcome, _ in stored]):
        return None
    records: list[Record] = []
    embedded: list[int] = []
    vectors: list[Float32Array] = []
    removed: list[int] = []
    linked: list[int] = []
    for outcome, new in stored:
        row, replacement = outcome.row, outcome.replacement
        is_active, own = _is_active(new.entry), [(row, *new.plain)]
        if replacement is not None:
            linked.append(row)
            removed += [row] if new.vectors or not is_active else []
            own = codec.records([(row, *replacement.columns)])
        if is_active:
            records += own
            embedded += [row] * len(new.vectors)
            vectors += new.vectors
    return RowBatch(
        since=added.seq - added.steps,
        seq=added.seq,
        records=records,
        embedded=embedded,
        vectors=_stacked(vectors),
        removed=removed,
        linked=linked,
    )


def _are_all_changes(added: AddedRows, stored: Sequence[Outcome]) -> bool:
    """Return whether the change log got nothing but stored entries, of a row each."""
    if not added.steps or added.steps != len(stored):
        return False
    replacements = [outcome.replacement for outcome in stored if outcome.replacement is not None]
    if not replacements:
        return True
    has_repeated = len({outcome.row for outcome in stored}) < len(stored)
    return not has_repeated and not any(one.clears_index for one in replacements)


def _is_active(entry: MemoryEntry) -> bool:
    return entry.forgotten_at is None and entry.status is MemoryStatus.ACTIVE


def _stacked(vectors: list[Float32Array]) -> Float32Array | None:
    if len(vectors) == 1:
        return vectors[0][np.newaxis]  # np.stack takes 10 µs
    return np.stack(vectors) if vectors else None
