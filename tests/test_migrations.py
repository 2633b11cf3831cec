"""Files of earlier versions open in this one, and can be brought back."""

import math
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import apsw
import pytest
from word_embedder import WordEmbedder

from mnemic.memory import Memory
from mnemic.store.connections import downgrade
from mnemic.store.schema import MIGRATIONS

FIXTURES = Path(__file__).parent / "fixtures"
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def opened(path):
    return Memory(path, "aide", embedder=WordEmbedder(dimensions=8))


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
        by_access = {"user_id": "alice", "weights": {"access": 1}}
        assert kept.access_count == int(version > 2)  # and getting it counts
        for count in (kept.access_count + 2, kept.access_count + 3):
            memory.touch([kept.id], user_id="alice")
            (hit,) = memory.search("dark mode", **by_access)
            assert hit.score == pytest.approx(math.log10(count + 1) / 3)
        assert memory.get(UUID(int=2)).created_at == NOON - timedelta(days=3)
        stats = memory.stats()
        assert (stats.active_entries, stats.forgotten_entries) == (2, 1)
        contents = ("the user prefers dark mode", "die Fähre fährt um zwölf", "a forgotten thing")
        assert stats.storage_bytes_used == sum(len(text.encode()) for text in contents)
    assert tables(path)[1] == len(MIGRATIONS)


def test_every_step_leads_back_to_where_it_came_from(tmp_path):
    path = tmp_path / "a.db"
    shutil.copy(FIXTURES / "store_v1.db", path)
    before, _ = tables(path)
    opened(path).close()
    downgrade(str(path), 1)
    assert tables(path) == (before, 1)
    with opened(path) as memory:
        assert memory.count(user_id="alice") == 1
    downgrade(str(path), 0)
    assert tables(path) == ([], 0)
