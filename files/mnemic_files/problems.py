"""FileProblem, a file of a directory that was left out, or taken with a reservation."""

from mnemic.records import Record
from mnemic_files.ids import file_name, shown_id


class FileProblem(Record, frozen=True, kw_only=True):
    """A file of a directory that was left out, or taken with a reservation.

    Attributes:
        name: Its name.
        scope: The directory's scope.
        reason: The problem, without any of the file's content.
        is_left_out: Whether the file was left out; otherwise a part of it was.
    """

    name: str
    scope: str
    reason: str
    is_left_out: bool = True


def shadowed(scope: str, file_id: str) -> FileProblem:
    """Return the problem of a file that another directory's stands for."""
    reason = "the repository has a file with this id, which counts in its place"
    return FileProblem(name=shown_id(file_name(file_id)), scope=scope, reason=reason)
