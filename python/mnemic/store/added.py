"""What an addition gives back: outcomes for the caller, and a batch of rows for the index."""

from collections.abc import Sequence

from mnemic.arrays import Float32Array, np
from mnemic.model import MemoryEntry, MemoryStatus
from mnemic.model.new_entry import NewEntry
from mnemic.model.rows import Record, RowBatch
from mnemic.store.new_rows import AddedRows, NewRow, Outcome
from mnemic.store.row_codec import RowCodec, uuid_of
from mnemic.store.values import WriteResult


def stored_vectors(new: NewEntry) -> Sequence[Float32Array]:
    """Return vectors in their stored type; an entry's own never change, so none is copied."""
    first = new.entry.embedding
    if first is None:
        return ()
    return [vector.astype("<f4", copy=False) for vector in (first, *new.more)]


def vector_blobs(parts: Float32Array) -> list[bytes]:
    """Return vectors as they are stored."""
    return [vector.tobytes() for vector in parts.astype("<f4", copy=False)]


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
