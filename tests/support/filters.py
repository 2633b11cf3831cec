"""Entries of a real file, filtered by SQL."""
# ruff: noqa: S608 - texts in many scripts are the point; conditions are under test

from uuid import UUID

import apsw

from mnemic.model import (
    MemorySortOrder,
    NewEntry,
    parse_filter,
)
from mnemic.store.sqlite.filter_sql import compiled, order_by, register
from mnemic.sync_bridge import run_sync
from tests.support.clock import NOON

ABSENT = "absent"
"""The entry without the value that a test looks at."""


def keep(store, entries):
    new = [NewEntry(entry) for entry in entries]
    run_sync(store.add("a", new, now=NOON, is_import=True))


def numbers_found(path, asked, order=MemorySortOrder.CREATED_DESCENDING):
    condition, values = compiled(parse_filter(asked))
    connection = apsw.Connection(path)
    register(connection)
    try:
        truths = connection.execute(f"SELECT {condition} FROM agent_memory_entries", values)
        assert {truth for (truth,) in truths} <= {0, 1}
        rows = connection.execute(
            "SELECT id FROM agent_memory_entries WHERE agent_id = ? "
            f"AND ({condition}) ORDER BY {order_by(order)}",
            ["a", *values],
        )
        return [UUID(bytes=blob).int for (blob,) in rows]
    finally:
        connection.close()


def metadata(**values):
    """One entry for each value under the key k, and one that is `ABSENT`."""
    entries = {name: {"metadata": {"k": value}} for name, value in values.items()}
    return {**entries, ABSENT: {}}
