"""The checksums of a file follow whatever a statement of its writing connection changes."""

from contextlib import closing
from datetime import UTC, datetime

import apsw
import pytest

from mnemic._core import SUMMED_COLUMNS
from mnemic.errors import StoreCorruptError
from mnemic.model import Scope
from mnemic.model.filter import EVERY_ENTRY
from mnemic.store.operations import SoftDelete
from mnemic.store.sqlite.opening import open_writer
from mnemic.store.sqlite.store import SqliteStore
from tests.store.sqlite.test_checksums import ALICE, opened

VALUES = {
    "id": b"another id of 16",
    "supersedes": b"another id of 16",
    "fingerprint": b"another print 16",
    "key_fingerprint": b"another print 16",
    "created_at": 2**40,
    "updated_at": 2**40,
    "forgotten_at": 2**40,
    "expires_at": 2**40,
    "version": 8,
    "memory_type": 3,
    "status": 1,
    "importance": 0.125,
    "position": 4,
    "is_sensitive": 1,
    "tags": '["u"]',
    "metadata": '{"n":5}',
}
"""Values of columns that hold no text."""

FIXED = {"agent_id", "is_encrypted", "last_accessed_at", "access_count"}
"""Columns that no statement changes alone, and those that no sum covers."""

STATEMENTS = [
    "UPDATE agent_memory_links SET strength = 0.25",
    "UPDATE agent_memory_links SET to_row = 3, created_at = 5 WHERE from_row = 1",
    "DELETE FROM agent_memory_links WHERE from_row = 1",
    "INSERT INTO agent_memory_links VALUES (3, 1, 1, 0.5, 9), (3, 2, 1, 0.5, 9)",
    "INSERT OR IGNORE INTO agent_memory_links SELECT * FROM agent_memory_links",
    (
        "INSERT INTO agent_memory_links SELECT * FROM agent_memory_links WHERE TRUE "
        "ON CONFLICT DO UPDATE SET strength = 0.75"
    ),
    "DELETE FROM agent_memory_embeddings WHERE entry_row = 2",
    "DELETE FROM agent_memory_entries WHERE row = 2",
    "DELETE FROM agent_memory_entries",
    (
        "UPDATE agent_memory_entries SET status = 1; "
        "UPDATE agent_memory_entries SET status = 2, forgotten_at = 7"
    ),
    "UPDATE agent_memory_entries SET status = 1; DELETE FROM agent_memory_entries WHERE row = 1",
    "UPDATE agent_memory_entries SET access_count = 8, last_accessed_at = 9, access_seq = 2",
]


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.db"
    with opened(made) as memory:
        stored = memory.add_many(["Likes tea", "Lives in Oslo", "Has a dog"], **ALICE)
        memory.link(stored[0].id, stored[1].id, **ALICE)
        memory.link(stored[1].id, stored[0].id, "refines", **ALICE)
    return made


def write(path, *statements, undone=None):
    with closing(open_writer(str(path))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.summed_rows.begin(connection)
        for statement in statements:
            connection.execute(statement)
        if undone is not None:
            connection.savepoint()
            connection.execute(undone)
            connection.undo()
        connection.summed_rows.settle(connection)
        connection.execute("COMMIT")


def wrong_sums(path):
    """Return what differs from a checksum; a statement counts no bytes of contents."""
    with closing(SqliteStore(path)) as store:
        report = store.verify()
    assert report.without_sums == 0
    return [problem.what for problem in report.problems if "bytes" not in problem.what]


@pytest.mark.parametrize("name", sorted(set(SUMMED_COLUMNS) - FIXED))
def test_a_statement_changes_any_column(path, name):
    value = apsw.format_sql_value(VALUES.get(name, "other"))
    write(path, f"UPDATE agent_memory_entries SET {name} = {value} WHERE row = 2")  # noqa: S608
    assert not wrong_sums(path)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_statements_of_any_kind_keep_the_sums(path, statement):
    write(path, statement)
    assert not wrong_sums(path)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_what_is_undone_leaves_nothing_in_the_sums(path, statement):
    write(path, "UPDATE agent_memory_entries SET version = 9 WHERE row = 3", undone=statement)
    assert not wrong_sums(path)


def test_what_is_damaged_stays_so_when_more_changes(path):
    with closing(apsw.Connection(str(path))) as other:  # which no trigger watches
        other.execute("UPDATE agent_memory_entries SET content = 'Likes cat' WHERE row = 1")
        other.execute("UPDATE agent_memory_links SET strength = 0.125 WHERE from_row = 2")
    damage = wrong_sums(path)
    assert len(damage) == 2
    write(
        path,
        "UPDATE agent_memory_entries SET version = 4, status = 1",
        "INSERT INTO agent_memory_links VALUES (2, 3, 1, 0.5, 9)",
    )
    assert wrong_sums(path) == damage


def test_a_write_that_failed_in_its_midst_leaves_nothing_for_the_next(path):
    with opened(path) as memory:
        first, second = (entry.id for entry in memory.list(**ALICE, limit=2))
        taken = {"id": first, "content": "taken", **ALICE}
        with pytest.raises(ValueError, match="id"):
            memory.add_many([{"content": "new", **ALICE}, taken])
        memory.update(second, content="Lives in Rome", **ALICE)
    assert not wrong_sums(path)


def test_a_text_that_is_none_ends_a_write_over_it_in_a_typed_error(path):
    with closing(apsw.Connection(str(path))) as other:
        other.execute("UPDATE agent_memory_entries SET role = CAST(x'FF' AS TEXT)")
    change = "UPDATE agent_memory_entries SET role = 'user'"
    with closing(SqliteStore(path)) as store, pytest.raises(StoreCorruptError, match="not UTF-8"):
        store._submit(None, lambda on: on.execute(change)).result()


def ids_of(memory):
    return [entry.id for entry in memory.list(**ALICE)]


def replace_all(memory, ids):
    over = [{"id": each, "content": f"Anew {each}", **ALICE} for each in ids]
    memory.add_many(over, on_conflict="replace")


def test_a_damaged_memory_that_is_deleted_with_others_stays_damaged(path):
    with closing(apsw.Connection(str(path))) as other:
        other.execute("UPDATE agent_memory_entries SET content = 'Likes cat' WHERE row = 1")
    damage = wrong_sums(path)
    assert damage
    with closing(SqliteStore(path)) as store:
        everyone = Scope("default", all_users=True)
        assert len(store.write(SoftDelete(everyone, EVERY_ENTRY, datetime.now(UTC))).result()) == 3
    assert wrong_sums(path) == damage


def test_memories_without_sums_have_some_once_they_are_replaced_and_none_while_deleted(path):
    with opened(path) as memory:
        ids = ids_of(memory)
    with closing(apsw.Connection(str(path))) as other:  # as an earlier version wrote them
        other.execute(
            "UPDATE agent_memory_entries SET row_sum = NULL, vector_sum = NULL, link_sum = NULL;"
            "UPDATE agent_memory_agents SET summed_rows = 0, rows_sum = 0"
        )
    with opened(path) as memory:
        replace_all(memory, ids[:1])
        memory.delete_many(ids[1:], **ALICE)
    with closing(SqliteStore(path)) as store:
        report = store.verify()
    assert (report.without_sums, report.problems) == (2, ())


def test_a_first_write_that_is_undone_leaves_the_next_one_watched(path):
    change = "UPDATE agent_memory_entries SET version = 7"

    def fail(connection):
        connection.execute(change)
        raise ZeroDivisionError

    with closing(SqliteStore(path)) as store:
        with pytest.raises(ZeroDivisionError):
            store._submit(None, fail).result()
        store._submit(None, lambda on: on.execute(change)).result()
    assert not wrong_sums(path)


CHANGES = [
    f"UPDATE agent_memory_entries SET {', '.join(f'{name} = ?' for name in SUMMED_COLUMNS)}",  # noqa: S608
    "DELETE FROM agent_memory_links",
    "DELETE FROM agent_memory_embeddings",
    "UPDATE agent_memory_links SET strength = ?",
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_trigger_calls_a_function_for_it_could_fail_and_be_undone(path, change):
    with closing(open_writer(str(path))) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.summed_rows.begin(connection)
        steps = connection.execute(f"EXPLAIN {change}", [None] * change.count("?")).fetchall()
        connection.execute("ROLLBACK")
    names = {name for _, name, *_ in steps}
    assert "Program" in names, "a trigger runs"
    assert not names & {"Function", "PureFunc"}
