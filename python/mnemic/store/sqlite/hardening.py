"""Guards against hostile files: no code in a file runs, and no statement runs without end."""

import os

import apsw

STEPS_PER_CHECK = 1_000_000
"""Steps of a statement between two checks of its work; some 10 ms."""

FREE_STEPS = 200_000_000
"""Steps that any statement may take; some seconds."""

STEPS_PER_BYTE = 100
"""Further steps for each byte of the file: ten times the need of reading or deleting."""

MAX_VALUE_BYTES = 128 * 1024 * 1024
"""Maximum bytes of one value or row. A memory has at most 10 MB; lists of rows are bound as one
text."""

_SWITCHES = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
)


class GuardedConnection(apsw.Connection):
    """A connection that runs no code of the file, checks its reads, and bounds its work.

    The steps of its statements between two calls of `renew` are bounded by the size of the file;
    statements of fewer than a million steps are not counted.

    Args:
        path: Path of the file.
        flags: SQLite's flags for opening it.
    """

    def __init__(self, path: str, flags: int) -> None:
        super().__init__(path, flags=flags)
        for switch, value in _SWITCHES:
            self.config(switch, value)
        self.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        self.execute("PRAGMA cell_size_check = ON")
        self._work = _Work(self.filename)
        self.set_progress_handler(self._work, STEPS_PER_CHECK)

    def renew(self) -> None:
        """Reset the count of steps."""
        self._work.steps = 0


class _Work:
    """Counts steps; SQLite's progress handler, which ends a statement by returning True.

    It counts steps, not seconds: a slow disk or a busy machine ends nothing.
    """

    __slots__ = ("_path", "steps")

    def __init__(self, path: str) -> None:
        self._path = path
        self.steps = 0

    def __call__(self) -> bool:
        self.steps += STEPS_PER_CHECK
        return self.steps > FREE_STEPS and self.steps > FREE_STEPS + self._allowed()

    def _allowed(self) -> int:
        return STEPS_PER_BYTE * sum(_size(f"{self._path}{part}") for part in ("", "-wal"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - pathlib is slow to import
    except OSError:
        return 0
