"""Texts, databases, roles and processes that a PostgreSQL store has to get on with."""

import subprocess
import sys
from random import Random
from urllib.parse import quote

import psycopg
import pytest

from mnemic import Memory, MemoryEntry
from mnemic.errors import InvalidEntryError, MnemicError, ReadOnlyError, StoreError, StoreFileError
from mnemic.store.postgres.target import target_of
from tests.store.postgres.test_connections import run
from tests.support.embedders import WordEmbedder
from tests.support.postgres_server import SERVER
from tests.support.processes import ENVIRONMENT


def opened(place, **options):
    return Memory(place, **{"embedder": WordEmbedder(), **options})


def by(role, url):
    return url.replace("mnemic@", f"{role}@", 1)


@pytest.fixture
def role(database):
    """Return the name of a new role without any right, which the server trusts."""
    name = f"guest_{database.partition('?')[0].rpartition('/')[2]}"
    run(database, f"CREATE ROLE {name} LOGIN")
    yield name
    run(database, f"DROP OWNED BY {name}", f"DROP ROLE {name}")


TEXTS = {
    "content": {"content": "a\0b"},
    "tag": {"content": "a", "tags": ["b\0"]},
    "key of metadata": {"content": "a", "metadata": {"k\0": 1}},
    "metadata": {"content": "a", "metadata": {"k": "v\0"}},
    "user": {"content": "a", "user_id": "u\0"},
    "key": {"content": "a", "idempotency_key": "k\0"},
    "surrogate": {"content": "a\ud800"},
    "surrogate in metadata": {"content": "a", "metadata": {"k": ["\udfff"]}},
}


def outcome(call):
    """Return what a call returns, or the type and the message of its error."""
    try:
        return call()
    except MnemicError as error:
        return type(error), str(error)


@pytest.mark.parametrize("given", TEXTS.values(), ids=TEXTS)
def test_texts_that_postgresql_cannot_hold_are_refused_as_for_a_file(database, given):
    with opened(database) as postgres, opened(":memory:") as sqlite:
        refused = outcome(lambda: postgres.add(**given))
        assert refused == outcome(lambda: sqlite.add(**given))
        assert refused[0] is InvalidEntryError
        assert postgres.count(all_users=True) == 0


@pytest.mark.parametrize(
    "where",
    [{"content": {"contains": "a\0"}}, {"metadata": {"k\0": "v\0"}}, {"category": "c\0"}],
)
def test_filters_by_texts_that_no_memory_has_find_nothing(database, where):
    with opened(database) as memory:
        memory.add(MemoryEntry("a", category="c", metadata={"k": "v"}))
        assert not memory.list(filters=where)
        assert memory.count(filters=where) == 0
        assert not memory.search("a", filters=where)


def test_contents_and_metadata_of_megabytes_come_back_as_they_were(database):
    content = "ä日\U0001f34e \"'\\%s{}" * 100_000
    metadata = {"text": 'é\n\t"\\u0000\\' * 200_000, "list": list(range(50_000))}
    with opened(database, embedder=None) as memory:
        one = memory.add(content, metadata=metadata)
        many = memory.add_many([{"content": content, "metadata": metadata}] * 33)  # by a COPY
    with opened(database, embedder=None) as memory:
        for each in (one, many[-1]):
            found = memory.get(each.id)
            assert found.content == content
            assert found.metadata == metadata


@pytest.mark.parametrize("field", ["user_id", "idempotency_key"])
def test_a_name_that_is_too_long_for_an_index_is_refused_as_such(database, field):
    name = Random(1).randbytes(4_000).hex()  # noqa: S311 - no secret
    with opened(database) as memory:
        with pytest.raises(InvalidEntryError, match="too long for an index"):
            memory.add("an apple", **{field: name})
        assert memory.count(all_users=True) == 0
        assert memory.add("an apple", **{field: name[:2_000]})


@pytest.mark.parametrize("is_read_only", [False, True])
@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_that_is_not_in_utf8_is_refused_with_what_to_do(
    database, encoding, is_read_only
):
    name = f"other_{database.partition('?')[0].rpartition('/')[2]}"
    make = f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0"
    run(database, make)
    url = SERVER.url_of(name)
    with pytest.raises(StoreFileError, match=f"{encoding}.*ENCODING 'UTF8'"):
        opened(url, read_only=is_read_only)
    with psycopg.connect(url) as connection:
        left = connection.execute("SELECT to_regnamespace('mnemic') IS NULL").fetchone()
    assert left == (True,)
    SERVER.drop(url)


def test_a_role_without_rights_is_told_which_it_needs(database, empty_database, role):
    with opened(database) as memory:
        memory.add("an apple")
    for url in (database, empty_database):
        for is_read_only in (False, True) if url == database else (False,):
            with pytest.raises(StoreError, match=r"may not do this; .*rights on the schema mnemic"):
                opened(by(role, url), read_only=is_read_only)


def test_a_role_that_may_only_read_reads_and_is_refused_to_write(database, role):
    with opened(database) as memory:
        memory.add("an apple")
    run(
        database,
        f"GRANT USAGE ON SCHEMA mnemic TO {role}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA mnemic TO {role}",
    )
    with opened(by(role, database), read_only=True) as memory:
        assert [hit.content for hit in memory.search("apple")] == ["an apple"]
        with pytest.raises(ReadOnlyError):
            memory.add("bread")


def test_pgvector_is_found_in_whatever_schema_it_was_installed(empty_database):
    run(
        empty_database,
        'CREATE SCHEMA "Extensions of ours"',
        'CREATE EXTENSION vector SCHEMA "Extensions of ours"',
    )
    elsewhere = f"{empty_database}&options={quote('-c search_path=nowhere')}"
    for url in (empty_database, elsewhere):
        with opened(url) as memory:
            one = memory.add("an apple")
            assert memory.search("apple", search_type="semantic")[0].id == one.id
            assert memory.delete(one.id, permanent=True)


FORKED = """
import os, sys
from mnemic import Memory
from mnemic.errors import StoreError
from tests.support.embedders import WordEmbedder

memory = Memory(sys.argv[1], embedder=WordEmbedder())
one = memory.add("an apple")
child = os.fork()
if child == 0:
    calls = [
        lambda: memory.add("bread"),
        lambda: memory.add_many(["bread", "cheese"]),
        lambda: memory.get(one.id),
        lambda: memory.update(one.id, content="bread"),
        lambda: memory.delete(one.id),
        lambda: memory.search("apple"),
        lambda: memory.count(),
    ]
    refused = 0
    for call in calls:
        try:
            call()
        except StoreError as error:
            refused += "fork" in str(error)
    memory.close()
    with Memory(sys.argv[1], embedder=WordEmbedder()) as own:
        own.add("of the child")
    os._exit(0 if refused == len(calls) else 3)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
memory.add("of the parent")
assert sorted(entry.content for entry in memory.list()) == [
    "an apple", "of the child", "of the parent"
]
assert memory.search("child", search_type="keyword")[0].content == "of the child"
memory.close()
"""


def test_a_forked_process_is_refused_the_connections_and_the_parent_goes_on(database):
    # A fork beside the pool's threads is what is tested, and what Python 3.12 warns of.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, database]
    subprocess.run(command, env=ENVIRONMENT, check=True, timeout=60)


def test_a_server_that_has_gone_without_a_word_is_given_up_unless_the_url_says_otherwise():
    plain = psycopg.conninfo.conninfo_to_dict(target_of("postgresql://me@host/a").conninfo)
    assert (plain["connect_timeout"], plain["tcp_user_timeout"]) == ("10", "10000")
    url = "postgresql://me@host/a?connect_timeout=3&tcp_user_timeout=0&keepalives_idle=60"
    own = psycopg.conninfo.conninfo_to_dict(target_of(url).conninfo)
    assert (own["connect_timeout"], own["tcp_user_timeout"]) == ("3", "0")
    assert own["keepalives_idle"] == "60"
    service = psycopg.conninfo.conninfo_to_dict(target_of("postgresql:///?service=a").conninfo)
    assert "connect_timeout" not in service
