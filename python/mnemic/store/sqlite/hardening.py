"""Guards against hostile files: no code in a file runs, and no statement runs without end."""

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any
from uuid import UUID

import apsw
import msgspec

from mnemic.errors import StoreCorruptError
from mnemic.model.deadline import check_deadline
from mnemic.store.sqlite.sql import Columns
from mnemic.store.sqlite.sqlite_errors import DAMAGED
from mnemic.store.sqlite.summed_rows import SummedRows

if TYPE_CHECKING:
    from mnemic.store.changes import ChangedUser
    from mnemic.store.sql.dialect import Dialect

STEPS_PER_CHECK = 1_000_000
"""Steps of a statement between two checks of its work; some 10 ms."""

STEPS_PER_LOOK = 10_000
"""Steps of a statement between two looks at its deadline; some 0.1 ms."""

FREE_STEPS = 200_000_000
"""Steps that any statement may take; some seconds."""

STEPS_PER_BYTE = 100
"""Further steps for each byte of the file: ten times the need of reading or deleting."""

_PART = 128
"""Rows that are held at once: the columns of a thousand would make Python collect garbage."""

MAX_VALUE_BYTES = 128 * 1024 * 1024
"""Maximum bytes of one value or row. A memory has at most 10 MB; lists of rows are bound as one
text."""

SCHEMA_STEPS = 2_000
"""Steps of reading a schema, some ten for a table or an index, of which mnemic makes 22."""

_SCHEMA_LIMITS = (
    (apsw.SQLITE_LIMIT_LENGTH, 100_000),
    (apsw.SQLITE_LIMIT_SQL_LENGTH, 5_000),
    (apsw.SQLITE_LIMIT_COLUMN, 100),
)
"""Bytes of a row and of a statement, and columns: several times those of mnemic's own schema."""

_SWITCHES = (
    (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
    (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
    # Otherwise a statement with ORDER BY is compiled anew for each value: 25 µs in place of 4.
    (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),
)


def bound_schema(connection: apsw.Connection) -> list[tuple[int, int]]:
    """Let a connection read no schema that is much larger than mnemic's; return former limits.

    SQLite's parser counts no steps: a schema of 20 MB takes it a second, each time it is tried.
    """
    connection.set_progress_handler(lambda: True, SCHEMA_STEPS)
    return [(limit, connection.limit(limit, value)) for limit, value in _SCHEMA_LIMITS]


class GuardedConnection(apsw.Connection):
    """A connection that runs no code of the file, checks its reads, and bounds its work.

    The steps of its statements between two calls of `renew` are bounded by the size of the file;
    statements of fewer than a million steps are not counted.

    Args:
        path: Path of the file.
        flags: SQLite's flags for opening it.
        dialect: How statements are written.

    Attributes:
        changed_users: Agents and users whose entries the current write has changed.
        summed_rows: Keeps the checksums, on a connection that writes.
    """

    def __init__(self, path: str, flags: int, dialect: "Dialect") -> None:
        super().__init__(path, flags=flags)
        self.dialect = dialect
        self.changed_users: set[ChangedUser] = set()
        self.summed_rows = SummedRows()
        for switch, value in _SWITCHES:
            self.config(switch, value)
        self.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        self.convert_binding = _bound
        self.execute("PRAGMA cell_size_check = ON")
        self._work = _Work(self.filename)
        self.set_progress_handler(self._work, STEPS_PER_CHECK)

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Columns]:
        """Run a statement; return all its rows."""
        try:
            return self.execute(_statement(sql), values).fetchall()
        except UnicodeDecodeError as error:
            problem = str(error)
        raise _not_utf8(problem)

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; return the first value of its only row."""
        ((value,),) = self.fetch(sql, values)
        return value

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of rows that it changed."""
        self.execute(_statement(sql), tuple(values))
        return self.changes()

    def run_all(self, sql: str, values: Sequence[Columns]) -> None:
        """Run a statement once for each of these values."""
        if len(values) == 1:  # the set-up for many takes longer than one
            self.execute(_statement(sql), values[0])
        else:
            self.executemany(_statement(sql), values)

    def batches(
        self, sql: str, values: Sequence[Any], size: int
    ) -> Generator[list[Columns], None, None]:
        """Run a statement; yield its rows in batches of `size`."""
        found = self.stream(sql, values)
        while part := list(islice(found, size)):
            yield part

    def parts(self, sql: str, values: Sequence[Any]) -> Generator[list[Columns], None, None]:
        """Run a statement; yield its rows in parts."""
        return self.batches(sql, values, _PART)

    def stream(self, sql: str, values: Sequence[Any]) -> Generator[Columns, None, None]:
        """Run a statement; yield its rows one by one."""
        try:
            yield from self.execute(_statement(sql), tuple(values))
        except UnicodeDecodeError as error:
            problem = str(error)
        else:
            return
        raise _not_utf8(problem)

    @contextmanager
    def one_moment(self) -> Generator[None, None, None]:
        """Let all statements see one state."""
        try:
            self.execute("BEGIN")
            yield
        finally:
            if self.in_transaction:  # a failing disk may have ended it
                self.execute("COMMIT")

    def savepoint(self) -> None:
        """Begin a part of the transaction that can be undone alone."""
        self.summed_rows.settle(self)
        self.execute("SAVEPOINT part")

    def release(self) -> None:
        """End that part, whose damage is its own."""
        self.summed_rows.settle(self)
        self.execute("RELEASE part")

    def undo(self) -> None:
        """Undo that part, and end it."""
        self.execute("ROLLBACK TO part")
        self.execute("RELEASE part")
        self.summed_rows.forget()

    def fetch_checked(self, sql: str, values: Sequence[Any]) -> list[Columns]:
        """Return rows that are compared with their sums, after the changes of this write."""
        self.summed_rows.settle_rows(self)
        return self.fetch(sql, values)

    def renew(self) -> None:
        """Reset the count of steps."""
        self._work.steps = 0

    @contextmanager
    def bounded_schema(self) -> Generator[None, None, None]:
        """Let SQLite read no schema that is much larger than mnemic's; see `bound_schema`."""
        before = bound_schema(self)
        try:
            yield
        finally:
            self.set_progress_handler(self._work, self._work.steps_per_check)
            for limit, value in before:
                self.limit(limit, value)

    def lift_deadline(self) -> None:
        """Let statements end, whatever the deadline of the read."""
        self.set_deadline(None)

    def set_deadline(self, deadline: float | None) -> None:
        """Let statements raise DeadlineExceededError after a deadline; None lets them end."""
        work, self._work.deadline = self._work, deadline
        work.steps_per_check = STEPS_PER_CHECK if deadline is None else STEPS_PER_LOOK
        self.set_progress_handler(work, work.steps_per_check)


def _not_utf8(problem: str) -> StoreCorruptError:
    """Return an error that is not chained to Python's own, which contains the whole text."""
    return StoreCorruptError(f"a stored text is not UTF-8 ({problem}); {DAMAGED}")


@lru_cache(1024)
def _statement(sql: str) -> str:
    """Return a statement as SQLite reads it, which knows no schema of this name."""
    return sql.replace("mnemic.", "")


def _bound(_: apsw.Cursor, number: int, value: object) -> bytes | str | float:
    """Return a value as it is bound that SQLite knows no type for."""
    if isinstance(value, UUID):
        return value.bytes
    if isinstance(value, list):
        return msgspec.json.encode(value).decode()
    if isinstance(value, Decimal):
        return float(value)
    raise TypeError(f"value {number} is a {type(value).__name__}, which cannot be bound")


class _Work:
    """Counts steps; SQLite's progress handler, which ends a statement by returning True.

    It counts steps, not seconds: without a deadline a slow disk or a busy machine ends nothing.
    """

    __slots__ = ("_path", "deadline", "steps", "steps_per_check")

    def __init__(self, path: str) -> None:
        self._path = path
        self.deadline: float | None = None
        self.steps = 0
        self.steps_per_check = STEPS_PER_CHECK

    def __call__(self) -> bool:
        check_deadline(self.deadline)  # its error ends the statement and reaches the caller
        self.steps += self.steps_per_check
        return self.steps > FREE_STEPS and self.steps > FREE_STEPS + self._allowed()

    def _allowed(self) -> int:
        return STEPS_PER_BYTE * sum(_size(f"{self._path}{part}") for part in ("", "-wal"))


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 - pathlib is slow to import
    except OSError:
        return 0
