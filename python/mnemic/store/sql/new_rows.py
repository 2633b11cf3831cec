"""What storing entries takes and gives: encoded rows, options, results."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from mnemic.arrays import Float32Array, np
from mnemic.errors import DuplicateEntryError
from mnemic.model import MemoryEntry, MemoryStatus
from mnemic.model.new_entry import NewEntry
from mnemic.model.rows import Record, RowBatch
from mnemic.store.changes import Change
from mnemic.store.operations import Add
from mnemic.store.row_codec import COLUMN_NAMES, Columns, RowCodec, UsedKey, uuid_of
from mnemic.store.values import (
    Model,
    OwnedId,
    ReplacedEntry,
    StoredKey,
    WriteResult,
)

_CONTENT: Final = COLUMN_NAMES.index("content")
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
    def given(self) -> NewEntry:
        """The entry with its key, as it was given."""
        return NewEntry(self.entry, None if self.more[1] is None else self.given_key)

    @property
    def shown_key(self) -> str | None:
        """The given key for a message; None for an entry whose texts are hidden."""
        return None if self.entry.hides_content else self.given_key


def id_in_use(entry: MemoryEntry, agent_id: str) -> DuplicateEntryError:
    """Return the error for an id that the user has already."""
    return DuplicateEntryError(
        f"a memory with id {entry.id} is already stored for agent {agent_id!r}, "
        f"user {entry.user_id!r}"
    )


def stored_vectors(new: NewEntry) -> Sequence[Float32Array]:
    """Return vectors in their stored type; an entry's own never change, so none is copied."""
    first = new.entry.embedding
    if first is None:
        return ()
    return [vector.astype("<f4", copy=False) for vector in (first, *new.more)]


def vector_blobs(parts: Float32Array) -> list[bytes]:
    """Return vectors as they are stored."""
    return [vector.tobytes() for vector in parts.astype("<f4", copy=False)]


def encoded(
    codec: RowCodec,
    entries: Sequence[NewEntry],
    vectors: Sequence[Sequence[Float32Array]],
    model: str | None,
) -> list[NewRow]:
    """Return entries as a codec stores them, with the vectors of each, which are of a model."""
    stored = codec.rows(
        [(new.entry, None if new.key is None else UsedKey(new.key)) for new in entries]
    )
    return [
        NewRow(
            new.entry,
            codec.stored_content_size(row.columns[_CONTENT]),
            row.columns,
            row.more,
            parts,
            _stored_parts(codec, new.entry, model, parts),
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


def _stored_parts(
    codec: RowCodec, entry: MemoryEntry, model: str | None, parts: Sequence[Float32Array]
) -> Sequence[Float32Array | bytes]:
    if model is None or not entry.is_encrypted:
        return parts
    return as_stored(codec, entry, model, parts)


class NewVectors(NamedTuple):
    """The vectors of a row's chunks, sealed or not, and when they were stored."""

    row: int
    time: int
    vectors: Sequence[Float32Array | bytes]


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
