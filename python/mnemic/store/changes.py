"""Changes of entries: what a log keeps of them, and who is told of those of this process."""

import weakref
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Literal, NamedTuple, TypeAlias

from mnemic.threads.locks import InnerLock

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


ChangedUser: TypeAlias = tuple[str, str | None]
"""Agent and user of a changed entry; None stands for the entries without a user."""

ChangeListener: TypeAlias = Callable[[Collection[ChangedUser]], object]
"""Receives the agents and users whose entries a commit changed: a method, which is held weakly.

Commits of other stores of this process to the same place are included, those of other processes are
not; accesses and expiry are no changes. It is called once for each commit, after it and before the
Future of a write is done, in the writing thread, and at times for writes that failed. It must be
short, must not use a store and must not raise.
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


class ChangeListeners:
    """Calls listeners for each commit of a file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = InnerLock()
        self._methods: dict[Hashable, tuple[weakref.WeakMethod[ChangeListener], ...]] = {}

    def add(self, file: Hashable, listener: ChangeListener) -> None:
        """Call a method with every change of a file from now on, for as long as its object lives.

        Args:
            file: Names the file in this process.
            listener: The method.
        """
        method = weakref.WeakMethod(listener)
        with self._lock:
            for known, methods in list(self._methods.items()):
                alive = tuple(each for each in methods if each() is not None)
                if alive:
                    self._methods[known] = alive
                else:
                    del self._methods[known]
            self._methods[file] = (*self._methods.get(file, ()), method)

    def notify(self, file: Hashable, changed: Collection[ChangedUser]) -> None:
        """Call the listeners of a file."""
        for method in self._methods.get(file, ()):
            listener = method()
            if listener is not None:
                listener(changed)


COMMITTED = ChangeListeners()
"""The listeners of this process."""
