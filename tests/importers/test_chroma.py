"""Chroma's folder, as it wrote it."""

import shutil
import sqlite3

from mnemic.importers.cleaning import NO_TEXT
from mnemic.importers.record import VECTORS


def test_chroma_keeps_documents_metadata_and_collections(bring, fixtures):
    report, stored = bring("chroma", fixtures / "chroma")
    assert set(stored) == {"Ana moved to Oslo in May", "Prefers green tea", "A cabin by the fjord"}
    assert report.lost == {VECTORS: 4, NO_TEXT: 1}
    oslo = stored["Ana moved to Oslo in May"]
    assert (oslo.user_id, f"{oslo.created_at:%F}") == ("ana", "2026-05-03")
    assert oslo.metadata == {"collection": "notes", "id": "n1", "sure": 0.5}
    tea = stored["Prefers green tea"].metadata
    assert (tea["cups"], tea["is_hot"]) == (3, True)


def test_lists_and_values_of_all_kinds_are_metadata(bring, fixtures, tmp_path):
    path = tmp_path / "chroma.sqlite3"
    shutil.copyfile(fixtures / "chroma" / "chroma.sqlite3", path)
    with sqlite3.connect(path) as database:
        rows = [("tags", "home", None), ("tags", "cold", None), ("is_true", None, 1)]
        database.executemany(
            "INSERT INTO embedding_metadata_array (id, key, string_value, bool_value) "
            "SELECT id, ?, ?, ? FROM embeddings WHERE embedding_id = 'n1'",
            rows,
        )
        database.executemany(
            "INSERT INTO embedding_metadata (id, key, string_value, float_value) "
            "SELECT id, ?, ?, ? FROM embeddings WHERE embedding_id = 'n1'",
            [("much", None, float("inf")), ("odd", b"\xff", None), ("\0", "\0", None)],
        )
    database.close()
    stored = bring("chroma", path)[1]["Ana moved to Oslo in May"]
    assert stored.tags == ("home", "cold")
    expected = {"collection": "notes", "id": "n1", "sure": 0.5, "is_true": [True]}
    assert {name: stored.metadata.get(name) for name in expected} == expected
