"""Writes over many entries find them by indexes that read no other entry."""

import pytest

from mnemic.model import Scope
from mnemic.model.filter import Criteria, parse_filter
from mnemic.store.row_codec import RowCodec
from mnemic.store.sql.lists import numbers_of, selected
from mnemic.store.sqlite.store import SqliteStore
from tests.store.contract import added
from tests.support.entries import numbered, uid


@pytest.fixture
def writer(tmp_path):
    store = SqliteStore(tmp_path / "a.db")
    added(store, "a", [numbered(number, user_id="alice") for number in range(20)])
    yield store._connections.writer
    store.close()


def plans(connection, statements):
    return [
        step
        for sql, values in statements
        for *_, step in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
        if "agent_memory_entries" in step
    ]


@pytest.mark.parametrize("scope", [Scope("a", "alice"), Scope("a", all_users=True)])
@pytest.mark.parametrize("where", [None, {"importance": 0.5}, {"content": {"contains": "1"}}])
def test_ids_are_looked_up_and_their_rows_are_read_by_number(writer, scope, where):
    executed = []
    writer.exec_trace = lambda _, sql, values: executed.append((sql, values)) or True
    criteria = Criteria([uid(1), uid(11)], where and parse_filter(where))
    rows = numbers_of(writer, selected(writer, RowCodec(), scope, criteria))
    writer.exec_trace = None
    assert len(rows) == 2
    first, *others = plans(writer, executed)
    assert "agent_memory_entries_by_id (agent_id=? AND id=?" in first
    assert others
    assert all("USING INTEGER PRIMARY KEY (rowid=?)" in step for step in others)
