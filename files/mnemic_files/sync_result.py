"""SyncResult, the outcome of a synchronisation."""

from mnemic.records import Record
from mnemic_files.problems import FileProblem


class SyncResult(Record, frozen=True, kw_only=True):
    """The outcome of a synchronisation. It is true if a memory changed.

    Attributes:
        added: Ids of files whose memories were added, or restored.
        changed: Ids of files whose memories were changed.
        removed: Ids of files that are gone, whose memories were deleted.
        unchanged: Number of files whose memories are as they were.
        problems: Files and edges that were left out, by scope and name.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: int = 0
    problems: tuple[FileProblem, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)
