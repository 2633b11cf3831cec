"""Entries of a real store, narrowed by SQL and decided by the core."""
# ruff: noqa: S608 - texts in many scripts are the point; conditions are under test

from uuid import UUID

import apsw

from mnemic._core import matches
from mnemic.model import MemorySortOrder
from mnemic.model.filter import parse_filter
from mnemic.model.new_entry import NewEntry
from mnemic.store.operations import Add
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.stored import records_of
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.conditions import ENTRIES, narrowed, order_by
from mnemic.store.sqlite.checksums import CHECKED_COLUMNS
from mnemic.store.sqlite.dialect import SQLITE
from mnemic.store.sqlite.hardening import GuardedConnection
from tests.support.clock import NOON

ABSENT = "absent"
"""The entry without the value that a test looks at."""


def keep(store, entries):
    """Store entries of one agent."""
    new = [NewEntry(entry) for entry in entries]
    store.write(Add(entries[0].agent_id, new, now=NOON, is_import=True)).result()


def numbers_found(path, asked, order=MemorySortOrder.CREATED_DESCENDING):
    expression = parse_filter(asked)
    connection = GuardedConnection(path, apsw.SQLITE_OPEN_READONLY, SQLITE)
    try:
        found = narrowed_and_decided(connection, "a", expression, order)
        return [UUID(bytes=row[2]).int for row in found]
    finally:
        connection.close()


def narrowed_and_decided(connection, agent, expression, order=MemorySortOrder.CREATED_DESCENDING):
    """Return the rows of an agent that pass, after a check of what SQL narrows them to."""
    sql, values, is_exact = narrowed(SQLITE, expression)
    truths = connection.execute(
        f"SELECT {CHECKED_COLUMNS}, {sql} FROM agent_memory_entries WHERE agent_id = ? "
        f"ORDER BY {order_by(order)}",
        [*values, agent],
    ).fetchall()
    narrow = [row[-1] for row in truths]
    return decided([row[:-1] for row in truths], narrow, expression, is_exact=is_exact)


def narrowed_and_decided_in_postgres(store, agent, expression, order):
    """Return the same of a store in PostgreSQL."""
    sql, values, is_exact = narrowed(POSTGRES, expression)
    statement = (
        f"SELECT {POSTGRES.row}, {sql} FROM {ENTRIES} WHERE agent_id = %s "
        f"ORDER BY {order_by(order)}"
    )
    connections = store._database.connections
    truths = connections.read([agent], lambda on: on.fetch(statement, [*values, agent]))
    rows = records_of(RowCodec(), [row[:-1] for row in truths])
    return decided(rows, [row[-1] for row in truths], expression, is_exact=is_exact)


def decided(rows, narrow, expression, *, is_exact):
    """Return the rows that pass, after a check of those that SQL narrowed them to."""
    assert set(narrow) <= {0, 1}
    passing = matches(expression, rows)
    for is_near, passes in zip(narrow, passing, strict=True):
        assert is_near == passes if is_exact else is_near >= passes
    return [row for row, passes in zip(rows, passing, strict=True) if passes]


def metadata(**values):
    """One entry for each value under the key k, and one that is `ABSENT`."""
    entries = {name: {"metadata": {"k": value}} for name, value in values.items()}
    return {**entries, ABSENT: {}}
