"""Detects that an open file, or its log, was moved, deleted or replaced."""

from copy import copy
from typing import Self

from mnemic._core import file_id
from mnemic.errors import StoreReplacedError


class SameFiles:
    """Compares an open database and its log with the files that now have their names.

    SQLite keeps using the files that it opened, whatever their names refer to by now, but finds the
    log by its name: it would copy the log into another file, or delete another file's log.

    Args:
        path: The file; it and its log are open.
        is_log_used: Whether the file has a log.
    """

    def __init__(self, path: str, *, is_log_used: bool = True) -> None:
        self._path = path
        self._log = f"{path}-wal"
        self._file_is = file_id(path)
        self._log_is = file_id(self._log) if is_log_used else None

    def without_log(self) -> Self:
        """Return a copy that compares the database alone, for when it may not be open any more."""
        one = copy(self)
        one._log_is = None  # noqa: SLF001 - of the same class
        return one

    def check(self) -> None:
        """Raise StoreReplacedError if the database or its log is another file by now."""
        self.check_file()
        if self._log_is is not None and file_id(self._log) != self._log_is:
            raise self._error(self._log)

    def check_file(self) -> None:
        """Raise StoreReplacedError if the database is another file by now."""
        if file_id(self._path) != self._file_is:
            raise self._error(self._path)

    def are_same(self) -> bool:
        """Return whether database and log are still the files that were opened."""
        try:
            self.check()
        except StoreReplacedError:
            return False
        return True

    def _error(self, path: str) -> StoreReplacedError:
        return StoreReplacedError(
            f"{path}: it was moved, deleted or replaced while it was open, and nothing more is "
            f"written. Close this memory; put the file back together with its log, whose name ends "
            f"in -wal, or open what is there now"
        )
