"""Files of earlier versions open in this one, and can be brought back."""

import math
import shutil
from datetime import timedelta
from uuid import UUID

import apsw
import pytest

from mnemic import MemoryEntry
from mnemic._core import placed_sums
from mnemic.errors import SchemaVersionError, StoreCorruptError
from mnemic.memory import Memory
from mnemic.model.fields import Kind
from mnemic.store.row_codec import FIELDS
from mnemic.store.sqlite.checksums import SUM_COLUMNS
from mnemic.store.sqlite.opening import migrate
from mnemic.store.sqlite.schema import MIGRATIONS, _added_column, register_functions
from tests.support.clock import NOON
from tests.support.embedders import WordEmbedder
from tests.support.paths import FIXTURES


def opened(path):
    return Memory(path, "aide", embedder=WordEmbedder(dimensions=8))


def is_damaged(path):
    try:
        with opened(path) as memory:
            return not memory.verify().ok
    except StoreCorruptError:
        return True


def tables(path):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        columns = connection.execute(
            "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c "
            "WHERE t.type = 'table' AND t.name LIKE 'agent_%' UNION ALL "
            "SELECT tbl_name, name FROM sqlite_schema WHERE type = 'index' ORDER BY 1, 2"
        ).fetchall()
        return columns, connection.pragma("user_version")
    finally:
        connection.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_file_of_an_earlier_version_opens_with_all_it_held(version, tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / f"store_v{version}.db", path)
    assert tables(path)[1] == version
    with opened(path) as memory:
        kept = memory.get(UUID(int=1), user_id="alice")
        assert (kept.content, kept.tags, kept.metadata, kept.created_at) == (
            "the user prefers dark mode",
            ("ui",),
            {"source": "chat"},
            NOON,
        )
        assert memory.search("dark mode", user_id="alice")[0].entry == kept
        by_access = {"user_id": "alice", "ranking": {"access": 1}}
        assert kept.access_count == int(version > 2)  # and getting it counts
        for count in (kept.access_count + 2, kept.access_count + 3):
            memory.touch([kept.id], user_id="alice")
            (hit,) = memory.search("dark mode", **by_access)
            assert hit.score == pytest.approx(math.log10(count + 1) / 3)
        assert memory.get(UUID(int=2)).created_at == NOON - timedelta(days=3)
        stats = memory.stats(all_users=True)
        assert (stats.active_entries, stats.forgotten_entries) == (2, 1)
        contents = ("the user prefers dark mode", "die Fähre fährt um zwölf", "a forgotten thing")
        assert stats.storage_bytes_used == sum(len(text.encode()) for text in contents)
    assert tables(path)[1] == len(MIGRATIONS)


def test_every_step_leads_back_to_where_it_came_from(tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v1.db", path)
    before, _ = tables(path)
    opened(path).close()
    migrate(str(path), 1)
    assert tables(path) == (before, 1)
    with opened(path) as memory:
        assert memory.count(user_id="alice") == 1
    with pytest.raises(SchemaVersionError, match="there are memories"):
        migrate(str(path), 0)
    run(path, "DELETE FROM agent_memory_entries")
    migrate(str(path), 0)
    assert tables(path) == ([], 0)


_PLACED = f"SELECT {SUM_COLUMNS} FROM agent_memory_entries"  # noqa: S608 - of names

SQL_TYPES = {
    Kind.UUID: "BLOB",
    Kind.TIME: "INTEGER",
    Kind.WHOLE: "INTEGER",
    Kind.FLAG: "INTEGER",
    Kind.TYPE: "INTEGER",
    Kind.STATUS: "INTEGER",
    Kind.FRACTION: "REAL",
}


def test_each_declared_field_has_a_column_of_its_type(tmp_path):
    path = tmp_path / "a.db"
    opened(path).close()
    found = run(path, "SELECT name, type, [notnull] FROM pragma_table_info('agent_memory_entries')")
    columns = {name: (kind, bool(is_required)) for name, kind, is_required in found}
    for field in FIELDS:
        may_lack = field.is_optional or field.kind in {Kind.TAGS, Kind.METADATA}
        assert columns.pop(field.column) == (SQL_TYPES.get(field.kind, "TEXT"), not may_lack)
    own = {"row", "fingerprint", "idempotency_key", "key_fingerprint", "access_seq"}
    assert columns.keys() == own | {"row_sum", "vector_sum", "link_sum"}


def test_a_column_that_goes_takes_its_part_of_the_sums_along(tmp_path):
    """Shown by a step that takes a column away which an earlier step made."""
    path = tmp_path / "a.db"
    with opened(path) as memory:
        for number in range(1, 4):
            role = "user" if number > 1 else None
            memory.add(f"memory {number}", id=UUID(int=number), role=role, type="event")
        memory.delete(UUID(int=3))
    step = _added_column("role", "TEXT")
    sums = "SELECT mnemic_column_sum('role', role), row_sum FROM agent_memory_entries ORDER BY row"
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    register_functions(connection)
    before = connection.execute(sums).fetchall()
    connection.execute(step.down)
    connection.execute(step.up)
    after = connection.execute(sums).fetchall()
    placed = connection.execute(_PLACED).fetchall()
    of_agent = connection.execute("SELECT summed_rows, rows_sum FROM agent_memory_agents").get
    connection.close()
    assert [row_sum for _, row_sum in after] == [(own - of_role) % 2**62 for of_role, own in before]
    assert before[0][0] == 0 != before[1][0]
    assert of_agent == placed_sums(placed)


def test_an_earlier_version_reads_a_file_that_had_sources(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        for number, source in enumerate(("notes/tea.md", None, "https://example.org/a?b=c")):
            memory.add(MemoryEntry(f"memory {number}", id=UUID(int=number), source=source))
    migrate(str(path), 6)
    assert tables(path) == tables(FIXTURES / "store_v6.db")
    with opened(path) as memory:  # an earlier one would compare the same sums
        report = memory.verify()
        assert (report.memories, report.without_sums, report.problems) == (3, 0, ())
        assert [memory.get(UUID(int=number)).source for number in range(3)] == [None] * 3
        memory.add(MemoryEntry("one more", id=UUID(int=3), source="notes/tea.md"))
        assert memory.get(UUID(int=3)).source == "notes/tea.md"
        assert memory.verify().problems == ()


@pytest.mark.parametrize(
    "damage", ["source = CAST(x'ff41' AS TEXT)", "row_sum = -5", "status = -1", "forgotten_at = -1"]
)
def test_a_damaged_row_is_an_error_on_the_way_back_or_still_detected_after_it(tmp_path, damage):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        for number in range(3):
            memory.add(MemoryEntry(f"memory {number}", source="notes/tea.md"))
    run(path, f"UPDATE agent_memory_entries SET {damage} WHERE row = 2")  # noqa: S608
    before = tables(path)
    try:
        migrate(str(path), 6)
    except StoreCorruptError:
        assert tables(path) == before
    assert is_damaged(path)


def test_a_damaged_text_is_an_error_on_the_way_up(tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v1.db", path)
    run(path, "UPDATE agent_memory_entries SET content = CAST(x'ff41' AS TEXT)")
    before = tables(path)
    with pytest.raises(StoreCorruptError):
        opened(path)
    assert tables(path) == before


def test_a_file_of_before_sources_keeps_its_sums(tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v6.db", path)
    sums = "SELECT row_sum, vector_sum FROM agent_memory_entries ORDER BY row"
    before = run(path, sums)
    with opened(path) as memory:
        assert memory.verify().without_sums == 0
        assert memory.verify().problems == ()
    assert run(path, sums) == before
    run(path, "UPDATE agent_memory_entries SET source = 'elsewhere' WHERE row = 1")
    with pytest.raises(StoreCorruptError, match="not as it was stored"):
        opened(path).close()


BYTES = "SELECT agent_id, user_key, revision, used_bytes FROM agent_memory_walls ORDER BY 1, 2"


def test_a_file_of_before_user_quotas_gets_the_bytes_of_each_user(tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v4.db", path)
    opened(path).close()
    sizes = [("aide", "", 0, 44), ("aide", "alice", 0, 26)]  # deleted memories included
    assert run(path, BYTES) == sizes
    with opened(path) as memory:
        assert [user.storage_bytes_used for user in memory.users()] == [44, 26]
        assert memory.verify().problems == ()
        memory.add("tea", user_id="bob")
    assert run(path, BYTES) == [*sizes, ("aide", "bob", 1, 3)]
    migrate(str(path), 7)
    assert tables(path) == tables(FIXTURES / "store_v7.db")
    assert run(path, "SELECT * FROM agent_memory_walls") == [("aide", "bob", 1)]
    with opened(path) as memory:
        assert run(path, BYTES) == [*sizes, ("aide", "bob", 1, 3)]
        assert memory.verify().problems == ()


NONCES = "SELECT nonce FROM agent_memory_changes ORDER BY seq"


def test_changes_of_before_nonces_get_random_ones(tmp_path):
    paths = [tmp_path / "a.db", tmp_path / "b.db"]
    for path in paths:
        shutil.copy(FIXTURES / "store_v8.db", path)
        opened(path).close()
    nonces = [nonce for path in paths for (nonce,) in run(path, NONCES)]
    assert len(set(nonces)) == len(nonces) == 12
    assert all(0 <= nonce < 2**63 for nonce in nonces)
    with opened(paths[0]) as memory:
        memory.add("tea")
    assert [nonce for (nonce,) in run(paths[0], NONCES)][:6] == nonces[:6]
    migrate(str(paths[1]), 8)
    assert tables(paths[1]) == tables(FIXTURES / "store_v8.db")
    with opened(paths[1]) as memory:
        assert memory.verify().problems == ()
    assert not {nonce for (nonce,) in run(paths[1], NONCES)} & set(nonces)


def run(path, sql, *values):
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


KEPT = """
SELECT e.row, e.id, e.user_id, e.content, v.embedding, l.to_row, l.type
FROM agent_memory_entries AS e LEFT JOIN agent_memory_embeddings AS v ON v.entry_row = e.row
LEFT JOIN agent_memory_links AS l ON l.from_row = e.row ORDER BY e.row
"""


def test_the_fifth_version_moves_entries_and_keeps_all_that_refers_to_their_rows(tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v4.db", path)
    run(path, "INSERT INTO agent_memory_links VALUES (2, 3, 0, 0.5, 0), (3, 1, 1, 0.5, 0)")
    kept = run(path, KEPT)
    sequence = run(path, "SELECT name, seq FROM sqlite_sequence")
    assert sequence == [("agent_memory_entries", 4)]  # the fourth row was deleted
    opened(path).close()
    assert run(path, KEPT) == kept
    assert run(path, "SELECT name, seq FROM sqlite_sequence") == sequence
    users = run(path, "SELECT entry_row, user_id FROM agent_memory_changes ORDER BY seq")
    assert users == [(1, "alice"), *((row, None) for row in (2, 3, 3, 4, 4))]
    assert run(path, "PRAGMA foreign_key_check") == []
    assert run(path, "PRAGMA integrity_check") == [("ok",)]
    with opened(path) as memory:
        memory.add("a fifth", id=UUID(int=5))
        assert run(path, "SELECT max(row) FROM agent_memory_entries") == [(5,)]
        memory.delete(UUID(int=3), permanent=True)
        assert run(path, "SELECT count(*) FROM agent_memory_links") == [(0,)]
    migrate(str(path), 4)
    assert tables(path) == tables(FIXTURES / "store_v4.db")
    assert [row[:4] for row in run(path, KEPT)] == [
        *(row[:4] for row in kept if row[0] != 3),
        (5, UUID(int=5).bytes, None, "a fifth"),
    ]


def test_a_file_whose_users_share_an_id_cannot_go_back(tmp_path):
    path = tmp_path / "a.db"
    with opened(path) as memory:
        for user_id in ("alice", "bob"):
            memory.add("something", id=UUID(int=7), user_id=user_id)
    before = tables(path)
    with pytest.raises(SchemaVersionError, match=f"share the id {UUID(int=7).hex}"):
        migrate(str(path), 4)
    assert tables(path) == before
    with opened(path) as memory:
        assert memory.get(UUID(int=7), user_id="bob").content == "something"
