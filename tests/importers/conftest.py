import json
import sqlite3
import zipfile
from pathlib import Path

import pytest

from mnemic import Memory
from mnemic.importers.importing import Import
from mnemic.importers.record import Chosen
from mnemic.reporting.progress import silent

FIXTURES = Path(__file__).parents[1] / "fixtures" / "importers"


@pytest.fixture
def fixtures():
    """Files that the libraries wrote; `write_fixtures.py` names their versions."""
    return FIXTURES


@pytest.fixture
def memory(tmp_path):
    with Memory(tmp_path / "memory.db", embedder=None, track_access=False) as memory:
        yield memory


@pytest.fixture
def bring(memory):
    """Import a source; return the report, and the memories by their texts."""

    def bring(kind, source, user=None, **chosen):
        report = Import(kind, Path(source), Chosen(**chosen, user_id=user)).store(memory, silent)
        stored = memory.list(limit=1000, all_users=True)
        return report, {entry.content: entry for entry in stored}

    return bring


@pytest.fixture
def check():
    """Read a source without storing it; return the report."""

    def check(kind, source, user=None, **chosen):
        return Import(kind, Path(source), Chosen(**chosen, user_id=user)).check(silent)

    return check


@pytest.fixture
def lines(tmp_path):
    """Write JSON lines."""

    def lines(*values):
        path = tmp_path / "rows.jsonl"
        path.write_text("\n".join(map(json.dumps, values)) + "\n")
        return path

    return lines


@pytest.fixture
def written(tmp_path):
    """Write an export as conversations.json, or as a zip with it."""

    def written(conversations, name="conversations.json", others=()):
        path = tmp_path / name
        text = json.dumps(conversations)
        if not name.endswith(".zip"):
            path.write_text(text, encoding="utf-8")
            return path
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for other in others:
                archive.writestr(other, "x")
            archive.writestr("conversations.json", text)
        return path

    return written


@pytest.fixture
def points(tmp_path):
    """Write a store of Qdrant with a blob for each point."""

    def points(*blobs):
        path = tmp_path / "storage.sqlite"
        with sqlite3.connect(path) as database:
            database.execute("CREATE TABLE points (id TEXT PRIMARY KEY, point BLOB)")
            database.executemany("INSERT INTO points VALUES (?, ?)", enumerate(blobs))
        database.close()
        return path

    return points
