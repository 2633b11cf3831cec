"""Entries of the change log."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias

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


def steps_by_user(changes: Sequence[Change]) -> Iterable[tuple[str | None, int]]:
    """Return how much the revision of each user rises."""
    first = changes[0].user_id
    if len(changes) == 1 or all(change.user_id == first for change in changes):  # as nearly always
        return [(first, len(changes))]
    return Counter(change.user_id for change in changes).items()
