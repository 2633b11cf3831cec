"""Databases of other programs: not written, whatever is in them, and never endless."""

import os
import random
import shutil
import sqlite3
import sys

import pytest

from mnemic.errors import SourceError
from tests.importers.sources import SOURCES


@pytest.mark.parametrize(("kind", "file"), SOURCES)
def test_a_source_is_not_written_not_even_its_log(check, fixtures, tmp_path, kind, file):
    folder = tmp_path / "source"
    shutil.copytree((fixtures / file).parent, folder)
    path = folder / (fixtures / file).name
    expected = check(kind, path).found
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("CREATE TABLE another (x)")
    writer.execute("INSERT INTO another VALUES (1)")
    writer.commit()
    before = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    assert f"{path.name}-wal" in before
    assert check(kind, path).found == expected
    after = {each.name: each.read_bytes() for each in folder.iterdir() if each.is_file()}
    assert after == before
    writer.close()


def test_what_stands_in_the_log_alone_is_read(check, fixtures, tmp_path):
    path = tmp_path / "store.db"
    shutil.copyfile(fixtures / "langgraph" / "store.db", path)
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute(
        "INSERT INTO store (prefix, key, value) VALUES ('a', 'b', '{\"text\": \"new\"}')"
    )
    writer.commit()
    assert check("langgraph", path).found == 7
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(path)
    assert check("langgraph", link).found == 7
    writer.close()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("seed", range(25))
def test_a_damaged_database_is_an_error_or_is_read(check, fixtures, tmp_path, source, seed):
    (kind, file), numbers = source, random.Random(seed)  # noqa: S311 - repeatable
    whole = bytearray((fixtures / file).read_bytes())
    if seed % 3 == 0:
        del whole[numbers.randrange(len(whole)) :]
    for _ in range(numbers.choice([1, 10, 1000])):
        if whole:
            whole[numbers.randrange(len(whole))] = numbers.randrange(256)
    path = tmp_path / (fixtures / file).name
    path.write_bytes(whole)
    try:
        assert check(kind, path).found <= 12
    except SourceError as error:
        assert str(path) in str(error)  # noqa: PT017 - either may be


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("twentieths", range(20))
def test_a_database_that_is_cut_off_is_one_sentence_or_is_read(
    check, fixtures, tmp_path, source, twentieths
):
    kind, file = source
    whole = (fixtures / file).read_bytes()
    path = tmp_path / (fixtures / file).name
    path.write_bytes(whole[: len(whole) * twentieths // 20])
    try:
        assert check(kind, path).found <= 6
    except SourceError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either may be
        assert len(str(error)) < 500  # noqa: PT017 - as above
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", ["DELETE", "WAL", "PERSIST"])
def test_a_database_that_is_locked_is_read_as_it_was(check, fixtures, tmp_path, mode):
    path = tmp_path / "store.db"
    shutil.copyfile(fixtures / "langgraph" / "store.db", path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute(f"PRAGMA journal_mode = {mode}")
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("DELETE FROM store")
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert check("langgraph", path).found == 6
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before
    writer.close()


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such devices")
@pytest.mark.parametrize("end", ["-wal", "-journal"])
@pytest.mark.parametrize("kind", ["device", "pipe", "folder", "nothing", "noise"])
def test_a_log_that_is_none_is_not_read(check, fixtures, tmp_path, kind, end):
    path = tmp_path / "store.db"
    shutil.copyfile(fixtures / "langgraph" / "store.db", path)
    log = tmp_path / f"store.db{end}"
    if kind == "pipe":
        os.mkfifo(log)
    elif kind == "folder":
        log.mkdir()
    elif kind == "noise":
        log.write_bytes(random.Random(1).randbytes(50_000))  # noqa: S311 - repeatable
    else:
        log.symlink_to("/dev/zero" if kind == "device" else "nowhere")
    assert check("langgraph", path).found == 6


@pytest.mark.parametrize(("kind", "file"), SOURCES)
def test_another_program_s_database_is_named(check, tmp_path, kind, file):
    path = tmp_path / file.rpartition("/")[2]
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE something (x)")
    database.close()
    with pytest.raises(SourceError, match="it has no table"):
        check(kind, path)
    path.write_text("text")
    with pytest.raises(SourceError, match="no SQLite database"):
        check(kind, path)
    path.write_bytes(b"")
    with pytest.raises(SourceError, match="no SQLite database"):
        check(kind, path)


def test_a_view_in_the_place_of_a_table_is_not_run(check, tmp_path):
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE VIEW store AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            "SELECT x AS prefix, x AS key, '{}' AS value, 0 AS created_at, 0 AS updated_at FROM n"
        )
    database.close()
    with pytest.raises(SourceError, match="it has no table store"):
        check("langgraph", path)


def test_a_view_that_a_false_schema_calls_a_table_is_not_run(check, tmp_path):
    path = tmp_path / "store.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE other (x)")
        database.execute(
            "CREATE VIEW hidden AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
            "SELECT x AS prefix, x AS key, '{}' AS value, 0 AS created_at, 0 AS updated_at, "
            "0 AS expires_at FROM n WHERE x < 0"
        )
        database.execute("PRAGMA writable_schema = ON")
        database.execute("UPDATE sqlite_schema SET name = 'store' WHERE name = 'other'")
        database.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'VIEW hidden', 'VIEW store') "
            "WHERE name = 'hidden'"
        )
    database.close()
    with pytest.raises(SourceError, match="cannot be read"):
        check("langgraph", path)


def test_a_table_whose_pages_lead_to_themselves_ends(check, fixtures, tmp_path):
    path = tmp_path / "store.db"
    shutil.copyfile(fixtures / "langgraph" / "store.db", path)
    with sqlite3.connect(path) as database:
        rows = ((f"a.{number}", "k", '{"text": "' + "x" * 500 + '"}') for number in range(3000))
        database.executemany("INSERT INTO store (prefix, key, value) VALUES (?, ?, ?)", rows)
        (root,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'store'")
    database.close()
    whole = bytearray(path.read_bytes())
    page = (root[0] - 1) * 4096
    assert whole[page] == 5  # the page of a table that leads to others
    pointers = page + 12
    first = int.from_bytes(whole[pointers : pointers + 2], "big")
    whole[page + first : page + first + 4] = root[0].to_bytes(4, "big")
    path.write_bytes(whole)
    with pytest.raises(SourceError, match="cannot be read"):
        check("langgraph", path)
