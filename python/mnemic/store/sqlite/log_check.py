"""Detects commits lost to a damaged write-ahead log, which SQLite skips silently."""

import os

from mnemic._core import lost_in_log

_MAX_LOG_BYTES = 256 * 1024 * 1024
_HEADER = 32


def log_problem(path: str) -> str | None:
    """Return a description of the commits that a file's log has lost to damage, or None.

    SQLite reads a log up to the first invalid frame and drops the rest. A tail that was being
    written at a power cut is not damage. Logs larger than 256 MB are not checked.
    """
    try:
        with open(f"{path}-wal", "rb") as file:  # noqa: PTH123 - pathlib is slow to import
            if os.fstat(file.fileno()).st_size > _MAX_LOG_BYTES:
                return None
            log = file.read()
            file.seek(0)
            if file.read(_HEADER) != log[:_HEADER]:  # another process has begun it again
                return None
    except (OSError, ValueError):  # an invalid path is reported when it is opened
        return None
    lost = lost_in_log(log)
    if lost is None:
        return None
    frame, commits = lost
    return (
        f"frame {frame} of the log is damaged, and at least {commits} commits from there on cannot "
        "be read; keep copies of the file and its log, and restore a backup if they are needed"
    )
