"""LangGraph's store, as it wrote it."""

import shutil
import sqlite3

from mnemic.errors import SourceError
from mnemic.importers.record import VECTORS


def test_langgraph_keeps_namespaces_keys_values_and_expiry(bring, fixtures):
    report, stored = bring("langgraph", fixtures / "langgraph" / "store.db")
    assert (report.found, report.lost) == (6, {VECTORS: 6})
    oslo = stored["Ana moved to Oslo in May"]
    assert oslo.metadata == {"namespace": ["memories", "ana"], "key": "home", "sure": 0.9}
    assert stored["Prefers tea"].tags == ("drinks",)
    assert stored["Ben is allergic to peanuts"].metadata["kind"] == "Memory"
    assert stored["A guest stays"].expires_at.year == 2036
    settings = stored['{"theme": "dark", "sizes": [1, 2]}']  # without a text of its own
    assert settings.metadata["theme"] == "dark"


def test_a_label_of_a_namespace_may_be_the_user(check, fixtures):
    report = check("langgraph", fixtures / "langgraph" / "store.db", user_field="namespace.1")
    assert report.users == {"ana": 2, "ben": 3, "": 1}


def test_values_of_any_kind_in_a_database_are_read_or_named(check, fixtures, tmp_path):
    path = tmp_path / "store.db"
    for value in (
        "{",
        "[1]",
        "3",
        b"\xff\xfe",
        None,
        3.5,
        '{"text": 3, "user_id": []}',
        "[" * 9999,
    ):
        shutil.copyfile(fixtures / "langgraph" / "store.db", path)
        with sqlite3.connect(path) as database:
            database.execute("DROP TABLE store")
            database.execute(
                "CREATE TABLE store (prefix, key, value, created_at, updated_at, expires_at)"
            )
            row = (b"\xff", 3, value, "x" * 100, b"", -1e300)
            database.execute("INSERT INTO store VALUES (?, ?, ?, ?, ?, ?)", row)
        database.close()
        try:
            assert check("langgraph", path).found <= 1
        except SourceError as error:
            assert "it is no JSON" in str(error)  # noqa: PT017 - either may be
