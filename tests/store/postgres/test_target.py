"""URLs of databases: settings, options that cannot be, and passwords that never show."""

from urllib.parse import quote

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import StoreError
from tests.support.embedders import WordEmbedder

PASSWORD = "hunter2"  # noqa: S105 - of nobody


def opened(place, **options):
    return Memory(place, **{"embedder": WordEmbedder(), **options})


def run(url, *statements):
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


SETTINGS = (
    "options=" + quote("-c client_encoding=LATIN1"),
    "client_encoding=SQL_ASCII",
    "options=" + quote("-c search_path=nowhere"),
    "options=" + quote("-c standard_conforming_strings=off"),
    "options=" + quote("-c DateStyle=German -c TimeZone=Asia/Tokyo -c IntervalStyle=iso_8601"),
    "options=" + quote("-c extra_float_digits=-15 -c bytea_output=escape"),
    "options=" + quote("-c default_transaction_isolation=serializable"),
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_a_url_change_no_answer(database, setting):
    with opened(f"{database}&{setting}") as memory:
        one = memory.add("日本 apple", tags=["é"], importance=0.1, metadata={"a": 0.1})
    with opened(database) as memory:
        (hit,) = memory.search("apple")
        assert (hit.id, hit.content) == (one.id, "日本 apple")
        found = memory.get(one.id)
        assert (found.tags, found.importance, found.metadata) == (one.tags, 0.1, {"a": 0.1})
        assert found.created_at == one.created_at


ISOLATED = [setting for setting in SETTINGS if "isolation" in setting or "search_path" in setting]


@pytest.mark.parametrize("setting", ISOLATED)
def test_settings_of_a_url_keep_no_index_of_vectors_from_being_built_and_used(
    empty_database, setting
):
    run(empty_database, "CREATE SCHEMA elsewhere", "CREATE EXTENSION vector SCHEMA elsewhere")
    in_database = {"search_in": "database", "exact_limit": 1}
    with opened(f"{empty_database}&{setting}", **in_database) as memory:
        memory.add_many([f"apple {at}" for at in range(300)])
        assert memory.search("apple", search_type="semantic")
        assert memory.index.create()
        assert memory.search("apple", search_type="semantic").approximate
        assert memory.verify().ok


BAD = (
    "options=" + quote("-c nonsense=1"),
    "sslmode=bogus",
    "target_session_attrs=bogus",
    "service=nobody_has_it",
    "connect_timeout=soon",
    f"sslmode=verify-full&host=127.0.0.1&port=1&password={PASSWORD}",
)


@pytest.mark.parametrize("bad", BAD)
def test_options_that_cannot_be_are_typed_errors_without_the_password(database, bad):
    secret = database.replace("mnemic@", f"mnemic:{PASSWORD}@", 1)
    with pytest.raises(StoreError) as raised:
        opened(f"{secret}&{bad}")
    shown(raised.value)


def shown(error):
    """Check that an error and what caused it shows no password."""
    seen = []
    while error is not None:
        seen += str(error), repr(error), repr(vars(error))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert PASSWORD not in "".join(seen)


def test_no_error_of_an_open_memory_shows_the_password(database):
    memory = opened(database.replace("mnemic@", f"mnemic:{PASSWORD}@", 1))
    one = memory.add("an apple")
    run(database, "ALTER TABLE mnemic.agent_memory_entries RENAME TO gone")
    calls = [
        lambda: memory.get(one.id),
        lambda: memory.add("bread"),
        lambda: memory.update(one.id, content="bread"),
        lambda: memory.delete(one.id),
        lambda: memory.backup(f"postgresql://me:{PASSWORD}@127.0.0.1:1/none?connect_timeout=1"),
        lambda: memory.backup(f"postgresql://me:{PASSWORD}@[::1/none"),
    ]
    for call in calls:
        with pytest.raises(StoreError) as raised:
            call()
        shown(raised.value)
    memory.close()
    with pytest.raises(StoreError) as raised:
        memory.get(one.id)
    shown(raised.value)
