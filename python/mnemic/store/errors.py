"""What an error of a database means: SQLite's result codes and PostgreSQL's SQLSTATEs in one table.

Neither library is imported here: a code is a number of SQLite or a text of PostgreSQL.
"""

from typing import Final, NamedTuple, TypeAlias

from mnemic.errors import (
    DeadlineExceededError,
    InvalidEntryError,
    MnemicError,
    OutOfMemoryError,
    ReadOnlyError,
    StoreBusyError,
    StoreCorruptError,
    StoreError,
    StoreFileError,
    StoreFullError,
    StoreReplacedError,
    StoreUnavailableError,
)
from mnemic.store.row_codec import UNREADABLE, LostContentError

Code: TypeAlias = int | str
"""A result code of SQLite, plain or extended, or a SQLSTATE of PostgreSQL."""

PATIENCE: Final = 10.0
"""Seconds that a call waits for others: for the lock of a file or of an agent, for a free
connection, or for a server to come back. A write holds a lock for milliseconds, and one of tens of
thousands of entries for seconds: whoever waits longer waits for a program that hangs."""

RESTORE: Final = (
    "keep it, and restore a backup (its -wal and -shm are not the backup's: move them away)"
)
"""Advice for a damaged file. A log left beside a restored backup would be mixed into it."""

NO_CONNECTION: Final = "08000"
"""The SQLSTATE of connections that libpq tells none of."""


class Failure(NamedTuple):
    """What an error of a database means.

    Attributes:
        error: Its class.
        found: What is wrong, and what to do.
        is_repeated: Whether a transaction that it ended is begun again.
    """

    error: type[MnemicError]
    found: str
    is_repeated: bool = False


_NOT_KEPT: Final = "nothing of this write was kept"

# A plain code stands for its extended ones, and two characters for a class of SQLSTATEs.
_TABLE: Final[dict[tuple[Code, ...], Failure]] = {
    (5, 6, 15, "40", "55P03"): Failure(
        StoreBusyError, f"other writers keep it locked; {_NOT_KEPT}; try again"
    ),
    ("40001", "40P01", "25P03"): Failure(
        StoreBusyError,
        f"other writers were in the way each time; {_NOT_KEPT}; try again",
        is_repeated=True,
    ),
    (9,): Failure(
        StoreCorruptError, f"its reading takes more work than its size can need; {RESTORE}"
    ),
    ("57014",): Failure(
        DeadlineExceededError,
        "the deadline passed during a statement; allow more time, or make the search smaller",
    ),
    ("08", "57"): Failure(
        StoreUnavailableError, "the server cannot be reached; try again", is_repeated=True
    ),
    ("55",): Failure(
        StoreUnavailableError, "the server does not serve this database now; try again later"
    ),
    ("3D000",): Failure(
        StoreUnavailableError,
        "there is no such database; create it, or correct its name in the URL",
    ),
    ("28",): Failure(
        StoreUnavailableError, "the server lets in no such connection; correct the role in the URL"
    ),
    ("28P01",): Failure(
        StoreUnavailableError,
        "the password is wrong or missing, or there is no such role; correct the URL or the "
        "passfile",
    ),
    ("53300",): Failure(
        StoreUnavailableError,
        "too many connections are open; close some, raise max_connections, or try again",
    ),
    ("57P03",): Failure(
        StoreUnavailableError, "the server is starting or stopping; try again", is_repeated=True
    ),
    ("26000", "42P05"): Failure(
        StoreError,
        "a pooler gives the statements of one connection to several sessions of the server; have "
        "it give them sessions",
        is_repeated=True,
    ),
    (7, 3082): Failure(OutOfMemoryError, f"memory for it cannot be had; {_NOT_KEPT}"),
    ("53",): Failure(
        StoreFullError, f"the server lacks memory or another resource; {_NOT_KEPT}; try again"
    ),
    (13, "53100"): Failure(StoreFullError, f"the disk is full; {_NOT_KEPT}; make space"),
    (10, "58"): Failure(
        StoreFullError, f"the disk is full, over a quota or a limit, or failing; {_NOT_KEPT}"
    ),
    (11, 8202, 8458): Failure(StoreCorruptError, f"it is damaged; {RESTORE}"),
    ("XX001", "XX002"): Failure(
        StoreCorruptError, "the server finds the database damaged; restore a backup"
    ),
    (26,): Failure(StoreFileError, "it is not a mnemic file; choose another path"),
    (14,): Failure(StoreFileError, "it cannot be opened; look at the path and its rights"),
    (3,): Failure(StoreFileError, "access is denied; look at its rights"),
    (8,): Failure(
        StoreFileError,
        "it cannot be written; look at its rights; if another program was killed while it wrote, "
        f"open the file once without read_only; if it is damaged, {RESTORE}",
    ),
    (1032,): Failure(
        StoreReplacedError, "the file was moved or deleted; put it back, and open it again"
    ),
    ("25006",): Failure(
        ReadOnlyError, "the database takes no writes; connect to the server that takes them"
    ),
    ("42501",): Failure(
        StoreError,
        "the role may not do this; it needs the right to create a schema and the extension "
        "vector, or rights on the schema mnemic",
    ),
    ("54",): Failure(
        InvalidEntryError,
        "an agent_id, user_id or idempotency_key is too long for an index of PostgreSQL, which "
        "takes about 2,600 bytes; shorten it",
    ),
}

FAILURES: Final = {code: failure for codes, failure in _TABLE.items() for code in codes}
"""What each code means, or each class of codes; what is missing is not expected."""

_UNEXPECTED: Final = {
    int: Failure(StoreError, f"SQLite refused the statement; if the file is damaged, {RESTORE}"),
    str: Failure(StoreError, "the server refused the statement; its log says why"),
}


def failure_of(code: Code) -> Failure:
    """Return what a code means, or else what its class does."""
    family = code[:2] if isinstance(code, str) else code & 0xFF
    return FAILURES.get(code) or FAILURES.get(family) or _UNEXPECTED[type(code)]


def typed_error(code: Code, place: str, said: str) -> MnemicError:
    """Return mnemic's error for one of a database.

    Args:
        code: The code.
        place: The file, or the database without a password.
        said: How the database names the error.
    """
    failure = failure_of(code)
    return failure.error(f"{place}: {failure.found} ({said})")


class ReadingStored:
    """Converts errors of decoding stored values to StoreCorruptError.

    A generator as context takes 2 µs, a fortieth of reading an entry.

    Args:
        what: Name of the value for the message, such as "a link".
        advice: What is wrong with the database then, and what to do.
    """

    __slots__ = "_advice", "_what"

    def __init__(self, what: str, advice: str) -> None:
        self._what = what
        self._advice = advice

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, MnemicError) or not isinstance(error, UNREADABLE):
            return
        problem = unreadable(self._what, error, self._advice)
        try:
            raise problem from None
        finally:
            problem.__context__ = None  # which may quote the value


def unreadable(what: str, error: Exception, advice: str) -> StoreCorruptError:
    """Return the error for a value that cannot be read; it does not quote the value."""
    if isinstance(error, LostContentError):
        return StoreCorruptError(f"{error}; {advice}")
    return StoreCorruptError(f"{what} cannot be read ({type(error).__name__}); {advice}")
