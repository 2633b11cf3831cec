"""Building blocks of all SQL statements of the store.

Every statement that touches an agent's data names the agent. Values are always bound; only
constants of this package are concatenated.
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeAlias

import apsw
import msgspec

from mnemic.errors import StoreCorruptError
from mnemic.store.row_codec import COLUMN_NAMES
from mnemic.store.sql.session import Condition
from mnemic.store.sqlite.damage import DAMAGED

Columns: TypeAlias = tuple[Any, ...]

COLUMNS = ", ".join(COLUMN_NAMES)
"""The columns of an entry, in the order of its codec."""


def read_columns(table: str = "") -> str:
    """Return `COLUMNS` to be read; the content of sealed rows as bytes, which always can be."""
    return ", ".join(read_column(name, table) for name in COLUMN_NAMES)


def read_column(name: str, table: str = "") -> str:
    """Return a column to be read; see `read_columns`."""
    column = f"{table}{name}"
    if name != "content":
        return column
    return f"CASE WHEN {table}is_encrypted THEN CAST({column} AS BLOB) ELSE {column} END"


def mark_of(name: str) -> str:
    """Return the placeholder of a column's value: that of sealed contents is bytes."""
    return "CAST(? AS TEXT)" if name == "content" else "?"


def assigned(names: Iterable[str]) -> str:
    """Return assignments of columns, in an UPDATE."""
    return ", ".join(f"{name} = {mark_of(name)}" for name in names)


INSERT_VECTOR = (
    "INSERT OR IGNORE INTO agent_memory_embeddings "
    "(entry_row, model, part, created_at, embedding) VALUES (?, ?, ?, ?, ?)"
)

MARK: Final = "\x1f"
"""First character of a shadow model's stored name; names have no control characters."""


def is_own(table: str = "") -> str:
    """Return the condition of the vectors of an agent's own model."""
    return f"(({table}model >= '{MARK}') = ({table}model >= ' '))"


IS_OWN: Final = is_own()

DELETE_SHADOW_VECTORS: Final = (
    f"DELETE FROM agent_memory_embeddings WHERE entry_row = ? AND NOT {IS_OWN}"
)

AMONG = "row IN (SELECT value FROM json_each(?))"
BY_ROW = "NOT INDEXED"
"""Forces access by row, because the planner would read all rows of an agent to find a few."""


USER_KEY = "ifnull(user_id, '')"
"""As in the unique index of ids, which the planner chooses by this very text."""

_WHOLE = frozenset({int})
_FEW_ROWS = 16  # each number of rows is a statement of its own, and 100 are kept prepared


def among(rows: Sequence[int], column: str = "row") -> Condition:
    """Return the condition that a column is one of these numbers, in a faster form for a few."""
    if len(rows) > _FEW_ROWS:
        return f"{column} IN (SELECT value FROM json_each(?))", [json_array(rows)]
    return f"{column} IN ({', '.join('?' * len(rows))})", [int(row) for row in rows]


def json_array(rows: Sequence[int]) -> str:
    """Return rows as one value to bind to `AMONG`."""
    return msgspec.json.encode([int(row) for row in rows]).decode()


def fetch(connection: apsw.Connection, sql: str, values: Sequence[Any]) -> list[Columns]:
    """Run a statement; return all its rows."""
    try:
        return connection.execute(sql, tuple(values)).fetchall()
    except UnicodeDecodeError as error:
        problem = str(error)
    raise not_utf8(problem)


def fetch_batches(
    connection: apsw.Connection, sql: str, values: Sequence[Any], size: int
) -> Generator[list[Columns], None, None]:
    """Run a statement; yield its rows in batches of `size`."""
    try:
        found = connection.execute(sql, tuple(values))
        while part := list(islice(found, size)):
            yield part
    except UnicodeDecodeError as error:
        problem = str(error)
    else:
        return
    raise not_utf8(problem)


@contextmanager
def one_moment(connection: apsw.Connection) -> Generator[None, None, None]:
    """Run several reads on one state."""
    try:
        connection.execute("BEGIN")
        yield
    finally:
        if connection.in_transaction:  # a failing disk may have ended it
            connection.execute("COMMIT")


def stream(
    connection: apsw.Connection, sql: str, values: Sequence[Any]
) -> Generator[Columns, None, None]:
    """Run a statement; yield its rows one by one."""
    try:
        yield from connection.execute(sql, tuple(values))
    except UnicodeDecodeError as error:
        problem = str(error)
    else:
        return
    raise not_utf8(problem)


def integers(values: Sequence[Any]) -> list[int]:
    """Return stored integers; in a damaged file they may be anything.

    Raises:
        StoreCorruptError: If one is not an integer.
    """
    if not _WHOLE.issuperset(map(type, values)):
        raise StoreCorruptError(f"a stored number is not whole; {DAMAGED}")
    return list(values)


def not_utf8(problem: str) -> StoreCorruptError:
    """Return an error that is not chained to Python's own, which contains the whole text."""
    return StoreCorruptError(f"a stored text is not UTF-8 ({problem}); {DAMAGED}")


def execute_all(connection: apsw.Connection, sql: str, values: Sequence[Columns]) -> None:
    """Run a statement once for each of these values."""
    if len(values) == 1:  # the set-up for many takes longer than one
        connection.execute(sql, values[0])
    else:
        connection.executemany(sql, values)
