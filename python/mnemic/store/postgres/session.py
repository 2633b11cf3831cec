"""One connection to PostgreSQL: statements, their values, and values as the codec stores them."""

import time
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.types import TypeInfo
from psycopg.types.string import ByteaBinaryLoader, TextBinaryLoader

from mnemic.threads.background import start_thread, thread_of
from mnemic.threads.calls import on_cancellation
from mnemic.threads.locks import Lock

if TYPE_CHECKING:
    from psycopg.abc import Buffer

    from mnemic.store.changes import ChangedUser
    from mnemic.store.sql.dialect import Dialect
    from mnemic.store.values import LogPosition

Columns: TypeAlias = tuple[Any, ...]

CANCEL_SECONDS: Final = 5.0
"""Seconds that a request to cancel may take."""

COPIED: Final = 32
"""Rows from which on a COPY is faster than statements."""

_STREAMED_AT_ONCE: Final = 512
_PREPARED_AFTER: Final = 5
"""Uses of a statement after which the server keeps its plan."""


class Connection(psycopg.Connection[Columns]):
    """A connection to a server, and what `prepare` finds out about it.

    Attributes:
        pgvector: The schema of pgvector, as statements name it.
        is_pooled: Whether something between may run each transaction in another session of the
            server. Then no state of a session is used: no setting and no prepared statement.
    """

    pgvector: str = "public"
    is_pooled: bool = False

    def distrust_statements(self) -> None:
        """Use no prepared statement until `renew_statements`.

        After an error in a pipeline, the server skips what is behind it, and psycopg takes for
        prepared what was to be.
        """
        self.prepare_threshold = None

    def renew_statements(self) -> None:
        """Use prepared statements again, if they were distrusted; in no transaction.

        A connection that is lost meanwhile raises nothing: what it did before is done.
        """
        if self.prepare_threshold is None and not self.is_pooled:
            with suppress(psycopg.OperationalError):
                self.execute(b"BEGIN")
                self.rollback()  # by which psycopg forgets them, and has the server forget them
                self.prepare_threshold = _PREPARED_AFTER

    def pool_sessions(self) -> None:
        """Use no state of a session from now on."""
        self.is_pooled = True
        self.prepare_threshold = None


_VECTOR_HEADER: Final = 4
"""Bytes before the numbers of a vector: its dimension, and two without a meaning."""


class Vector(NamedTuple):
    """A vector as it is bound."""

    components: NDArray[np.float32]


class _VectorDumper(Dumper):
    """Writes a vector as pgvector sends and receives it."""

    format = Format.BINARY

    def dump(self, obj: Vector) -> bytes:
        header = len(obj.components).to_bytes(2, "big") + b"\0\0"
        return header + obj.components.astype(">f4").tobytes()


class _VectorLoader(Loader):
    """Reads a vector as an array."""

    format = Format.BINARY

    def load(self, data: "Buffer") -> NDArray[np.float32]:
        return np.frombuffer(data, ">f4", offset=_VECTOR_HEADER).astype(np.float32)


_ABOUT: Final = b"""
SELECT pg_catalog.pg_backend_pid(), pg_catalog.quote_ident(n.nspname), t.oid, t.typarray
FROM (VALUES (1)) AS one LEFT JOIN (
    pg_catalog.pg_extension AS e JOIN pg_catalog.pg_namespace AS n ON n.oid = e.extnamespace
    JOIN pg_catalog.pg_type AS t ON t.typnamespace = n.oid AND t.typname = 'vector'
) ON e.extname = 'vector'
"""
"""Finds pgvector wherever it was installed: statements name its schema, as that of the tables."""


def prepare(connection: Connection) -> None:
    """Register how values are read, and find out what the connection leads to.

    A pooler answers with a process number of its own making, which is not that of the server's
    process: it cannot know which one a later transaction gets.

    Its statements commit on their own, unless a transaction was begun.

    Args:
        connection: The connection, in no transaction.
    """
    connection.autocommit = True
    ((process, schema, oid, array_oid),) = connection.execute(_ABOUT).fetchall()
    if process != connection.info.backend_pid:
        connection.pool_sessions()
    connection.adapters.register_loader("uuid", ByteaBinaryLoader)  # what a codec stores
    connection.adapters.register_loader("json", TextBinaryLoader)
    if oid is not None:  # not before the first migration
        connection.pgvector = schema
        TypeInfo("vector", oid, array_oid).register(connection)
        connection.adapters.register_loader(oid, _VectorLoader)
        of_this_oid = type("_VectorDumper", (_VectorDumper,), {"oid": oid})
        connection.adapters.register_dumper(Vector, of_this_oid)


class Insertion(NamedTuple):
    """How rows are inserted.

    Attributes:
        insert: The statement for one of them.
        copy: The COPY of all.
        types: Names of the columns' types, of which COPY takes the binary form; none for a text.
    """

    insert: str
    copy: str
    types: tuple[str, ...]

    @classmethod
    def into(cls, table: str, columns: str, types: tuple[str, ...] = ()) -> "Insertion":
        """Return the statements for columns of a table."""
        marks = ", ".join("?" * len(columns.split(",")))
        form = " (FORMAT BINARY)" if types else ""
        return cls(
            f"INSERT INTO {table} ({columns}) VALUES ({marks})",
            f"COPY {table} ({columns}) FROM STDIN{form}",
            types,
        )


@lru_cache(1024)
def _statement(sql: str, pgvector: str) -> bytes:
    """Return a statement with the placeholders of psycopg, and the schema where pgvector is."""
    return sql.replace("?", "%s").replace("pgvector.", f"{pgvector}.").encode()


class Session:
    """A connection leased to one thread.

    Args:
        connection: The connection, after `prepare`.
        dialect: How statements are written.
        can_copy: Whether rows may be inserted by COPY, which row-level security does not allow.

    Attributes:
        deadline: When statements of the current transaction must have ended; None is never.
        changed_users: Agents and users whose entries the current write has changed.
        positions: Positions of agents that the current write has advanced, after it.
    """

    _names: Final = count()

    def __init__(
        self, connection: Connection, dialect: "Dialect", *, can_copy: bool = True
    ) -> None:
        self.connection = connection
        self.dialect = dialect
        self.can_copy = can_copy
        self.deadline: float | None = None
        self.changed_users: set[ChangedUser] = set()
        self.positions: dict[str, LogPosition] = {}
        self._earlier_positions: dict[str, LogPosition] = {}

    def fetch(self, sql: str, values: Sequence[Any] = ()) -> list[Columns]:
        """Run a statement; return all its rows."""
        return self.connection.execute(self._statement(sql), tuple(values), binary=True).fetchall()

    def fetch_checked(self, sql: str, values: Sequence[Any]) -> list[Columns]:
        """Return the same: the server has checksums of its pages."""
        return self.fetch(sql, values)

    def fetch_each(self, *statements: tuple[str, Sequence[Any]]) -> list[list[Columns]]:
        """Run statements, given with their values; return the rows of each.

        In a pipeline they take one round trip.
        """
        cursors = [
            self.connection.execute(self._statement(sql), tuple(values), binary=True)
            for sql, values in statements
        ]
        return [cursor.fetchall() for cursor in cursors]

    @contextmanager
    def pipeline(self) -> Generator[None, None, None]:
        """Send statements without waiting for those before; a fetch waits for all before it.

        An error of a statement is raised by the next fetch, or at the end. COPY is not possible.
        """
        with self.connection.pipeline() as pipeline:
            try:
                yield
            except Exception:
                with suppress(psycopg.Error):  # psycopg would log those of later statements
                    pipeline.sync()
                raise
            except BaseException:  # a KeyboardInterrupt may have cut a message to the server short
                self.connection.close()
                raise

    def value(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """Run a statement; return the first value of its only row."""
        ((value,),) = self.fetch(sql, values)
        return value

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return the number of rows that it changed."""
        return self.connection.execute(self._statement(sql), tuple(values)).rowcount

    def run_all(self, sql: str, values: Sequence[Columns]) -> None:
        """Run a statement once for each of these values, without waiting for each."""
        if len(values) == 1:
            self.run(sql, values[0])
        elif values:
            with self.connection.cursor() as cursor:
                cursor.executemany(self._statement(sql), values)

    def insert(self, into: Insertion, values: Sequence[Columns]) -> None:
        """Insert rows by a statement for each of them, or by a COPY of all."""
        if len(values) < COPIED or not self.can_copy:
            self.run_all(into.insert, values)
            return
        with self.connection.cursor() as cursor, cursor.copy(into.copy.encode()) as rows:
            if into.types:
                rows.set_types(into.types)
            for columns in values:
                rows.write_row(columns)

    def script(self, sql: str) -> None:
        """Run several statements without values."""
        self.connection.execute(self._statement(sql), prepare=False)

    def batches(
        self, sql: str, values: Sequence[Any], size: int
    ) -> Generator[list[Columns], None, None]:
        """Run a statement in a transaction; yield its rows in batches of `size`."""
        name = f"mnemic_{next(self._names)}"
        # Closed twice, for the first time fails where the connection is lost.
        with closing(self.connection.cursor(name, binary=True)) as cursor, cursor:
            cursor.execute(self._statement(sql), tuple(values))
            while part := cursor.fetchmany(size):
                yield part

    def stream(self, sql: str, values: Sequence[Any]) -> Generator[Columns, None, None]:
        """Run a statement in a transaction; yield its rows one by one."""
        for batch in self.batches(sql, values, _STREAMED_AT_ONCE):
            yield from batch

    def parts(self, sql: str, values: Sequence[Any]) -> Generator[list[Columns], None, None]:
        """Run a statement; yield its rows, all at once: they came in one message."""
        yield self.fetch(sql, values)

    def set_deadline(self, deadline: float) -> None:
        """Let statements of a transaction that has begun raise an error after a deadline."""
        self.deadline = deadline
        left = max(1, int((deadline - time.monotonic()) * 1000))
        self._set_timeout(left)

    def lift_deadline(self) -> None:
        """Let statements of the transaction run to their end, if there was a deadline."""
        if self.deadline is not None:
            self.deadline = None
            self._set_timeout(0)  # which is none

    def _set_timeout(self, milliseconds: int) -> None:
        self.run("SELECT set_config('statement_timeout', ?, true)", (str(milliseconds),))

    def copied(self, sql: str, values: Sequence[Any]) -> bytes:
        """Return the rows of a statement in PostgreSQL's binary format of COPY."""
        copy = self._statement(f"COPY ({sql}) TO STDOUT (FORMAT BINARY)")
        with self.connection.cursor() as cursor, cursor.copy(copy, tuple(values)) as rows:
            return b"".join(rows)

    def savepoint(self) -> None:
        """Begin a part of the transaction that can be undone alone."""
        self._earlier_positions = dict(self.positions)
        self.run("SAVEPOINT part")

    def release(self) -> None:
        """End that part."""
        self.run("RELEASE part")

    def undo(self) -> None:
        """Undo that part, and end it."""
        self.positions = self._earlier_positions
        self.connection.distrust_statements()
        self.script("ROLLBACK TO part; RELEASE part")

    @contextmanager
    def one_moment(self, first: str | None = None) -> Generator[None, None, None]:
        """Run several reads on one state, after a first statement without values.

        In a transaction they do already. After an error it is left to whoever lent the connection.
        """
        if self.connection.info.transaction_status is TransactionStatus.INTRANS:
            yield
            return
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        self.script(begin if first is None else f"{begin}; {first}")
        yield
        with suppress(psycopg.OperationalError):  # the connection is gone, and the state with it
            self.run("COMMIT")

    def _statement(self, sql: str) -> bytes:
        return _statement(sql, self.connection.pgvector)


class _CancelRequest:
    """At most one request to cancel what a connection does, until `end`.

    Args:
        connection: The connection.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = Lock()
        self._has_ended = False
        self._is_sent = False

    def send_soon(self) -> None:
        """Send it from another thread, for it takes a connection of its own to the server."""
        start_thread(thread_of("cancel", self._send))

    def _send(self) -> None:
        # An error is that of an unreachable server: its statement ends too.
        with self._lock, suppress(psycopg.Error):
            if not self._has_ended:
                self._is_sent = True
                self._connection.cancel_safe(timeout=CANCEL_SECONDS)

    def end(self) -> None:
        """Send none from now on; close a connection on which one may still arrive."""
        with self._lock:
            self._has_ended = True
        if self._is_sent:
            self._connection.close()


@contextmanager
def cancelled_with_task(connection: Connection) -> Generator[None, None, None]:
    """Have the server end the statement of this block if the task that waits for it is cancelled.

    A block that no task waits for is not affected.
    """
    request = _CancelRequest(connection)
    try:
        with on_cancellation(request.send_soon):
            yield
    finally:
        request.end()
