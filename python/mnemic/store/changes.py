"""Entries of the change log."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

MAX_CHANGES = 100_000
"""Number of last changes of an agent that a store keeps, at least."""

PRUNE_EVERY = 1024
"""Changes after which older ones are dropped, so that few writes do so."""

ChangeKind: TypeAlias = Literal[
    "add", "update", "embed", "forget", "restore", "delete", "supersede", "link"
]
"""Kind of a change, as stored. A link changes the entry it leads from."""


class Change(NamedTuple):
    """A changed entry, the kind of change, and the user whose revision it raises."""

    row: int
    entry_id: bytes
    kind: ChangeKind
    user_id: str | None


def last_dropped(first: int, last: int) -> int | None:
    """Return the last change to drop after writing changes; None if none is due.

    Args:
        first: Number of the first change written.
        last: Number of the last one.
    """
    mark = last - MAX_CHANGES
    is_due = mark > 0 and last // PRUNE_EVERY != (first - 1) // PRUNE_EVERY
    return mark if is_due else None


def steps_by_user(changes: Sequence[Change]) -> Iterable[tuple[str | None, int]]:
    """Return how much the revision of each user rises."""
    first = changes[0].user_id
    if len(changes) == 1 or all(change.user_id == first for change in changes):  # as nearly always
        return [(first, len(changes))]
    return Counter(change.user_id for change in changes).items()
