"""FileProblem, a file of a directory that was left out, or taken with a reservation."""

from mnemic.records import Record


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
