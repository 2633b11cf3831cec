"""Entries of the change log."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from mnemic.arrays import Float32Array, Int64Array, np
from mnemic.model.rows import Link, Record, RowBatch
from mnemic.store.contract import BatchSink

MAX_CHANGES = 100_000
"""Number of last changes of an agent that a store keeps, at least."""

PRUNE_EVERY = 1024
"""Changes after which older ones are dropped, so that few writes do so."""

ChangeKind: TypeAlias = Literal[
    "add",
    "update",
    "replace",
    "embed",
    "forget",
    "restore",
    "delete",
    "supersede",
    "link",
    "switch",
]
"""Kind of a change, as stored. A link changes the entry it leads from.

An index keeps the accesses of a changed row, and its vectors if its content is the same; after
"replace" it must not, and drops the row before it reads it again: vectors were given, and a content
that was another one meanwhile may be the same again. After "switch", logged once for
each user, the agent's vectors are those of another model: all rows are read again.
"""


class Change(NamedTuple):
    """A changed entry.

    Attributes:
        row: Row of the entry.
        entry_id: Its id.
        kind: Kind of the change.
        user_id: The user whose revision the change raises.
        size: Bytes of content that the change adds; negative where it removes some.
    """

    row: int
    entry_id: bytes
    kind: ChangeKind
    user_id: str | None
    size: int = 0


class UserTotals(NamedTuple):
    """What changes add to the totals of one user.

    Attributes:
        user_id: The user; None stands for the entries without a user.
        steps: Number of changes.
        size: Bytes of content.
    """

    user_id: str | None
    steps: int
    size: int


def last_dropped(first: int, last: int) -> int | None:
    """Return the last change to drop after writing changes; None if none is due.

    Args:
        first: Number of the first change written.
        last: Number of the last one.
    """
    mark = last - MAX_CHANGES
    is_due = mark > 0 and last // PRUNE_EVERY != (first - 1) // PRUNE_EVERY
    return mark if is_due else None


def totals_by_user(changes: Sequence[Change]) -> list[UserTotals]:
    """Return what changes add to the totals of each user."""
    first = changes[0].user_id
    if len(changes) == 1 or all(change.user_id == first for change in changes):  # nearly always
        return [UserTotals(first, len(changes), sum([change.size for change in changes]))]
    steps: Counter[str | None] = Counter()
    sizes: Counter[str | None] = Counter()
    for change in changes:
        steps[change.user_id] += 1
        sizes[change.user_id] += change.size
    return [UserTotals(user_id, number, sizes[user_id]) for user_id, number in steps.items()]


class CollectedBatch:
    """A sink that collects everything."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget what came before."""
        self.records: list[Record] = []
        self.rows: list[Int64Array] = []
        self.vectors: list[Float32Array] = []

    def add_records(self, records: list[Record]) -> None:
        """Add records of rows."""
        self.records += records

    def add_vectors(self, rows: Int64Array, vectors: Float32Array) -> None:
        """Add vectors of rows."""
        self.rows.append(rows)
        self.vectors.append(vectors)


def full_batch(seq: int, sink: BatchSink, links: list[Link]) -> RowBatch:
    """Return the change to all rows, with those that a sink has collected.

    Args:
        seq: Number of the agent's last change.
        sink: Has got the rows; the batch has none of another than a `CollectedBatch`.
        links: Their links.
    """
    collected = sink if isinstance(sink, CollectedBatch) else CollectedBatch()
    return RowBatch(
        since=None,
        seq=seq,
        records=collected.records,
        embedded=[row for rows in collected.rows for row in rows.tolist()],
        vectors=np.concatenate(collected.vectors) if collected.vectors else None,
        removed=[],
        links=links,
    )
