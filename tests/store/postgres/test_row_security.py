"""Row-level security: a second isolation of agents, which no statement of mnemic's can pass."""

import time

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError, StoreError
from mnemic.store.postgres.connections import Connections
from mnemic.store.postgres.target import target_of
from tests.support.embedders import WordEmbedder
from tests.support.postgres_server import OWNER, SERVER, as_role

TABLES = ("agents", "walls", "entries", "embeddings", "links", "changes")
GUEST = "mnemic_guest"
"""A role that may read and write the tables, and does not own them."""


@pytest.fixture
def guarded():
    """Return the URL of a new database with policies, for the owner of its tables."""
    url = SERVER.new_guarded_database()
    yield url
    SERVER.drop(url)


@pytest.fixture
def guest(guarded):
    """Return the URL of the same database for another role, with rights on the tables."""
    with psycopg.connect(superuser(guarded), autocommit=True) as connection:
        connection.execute(
            f"DO $$ BEGIN CREATE ROLE {GUEST} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
        )
        connection.execute(f"GRANT USAGE ON SCHEMA mnemic TO {GUEST}")
        connection.execute(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mnemic TO {GUEST}"
        )
        connection.execute(f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA mnemic TO {GUEST}")
    return guarded.replace(f"{OWNER}@", f"{GUEST}@", 1)


def superuser(url):
    return url.replace(f"{OWNER}@", "mnemic@", 1)


def opened(url, agent="ann", **options):
    embedder = WordEmbedder(dimensions=8)
    return Memory(url, agent, embedder=embedder, **options)


def filled(url):
    for agent in ("ann", "bob"):
        with opened(url, agent) as memory:
            memory.add_many([f"{agent} sails boat {at}" for at in range(40)])
    return url


def agents_seen(session, table):
    rows = session.fetch(f"SELECT DISTINCT agent_id FROM mnemic.agent_memory_{table}")  # noqa: S608
    return {agent for (agent,) in rows}


@pytest.mark.parametrize("role", ["guarded", "guest"])
def test_a_statement_that_forgets_the_agent_sees_only_the_rows_of_its_own(role, guarded, request):
    url = request.getfixturevalue(role)
    filled(guarded)
    connections = Connections(target_of(url))
    for table in set(TABLES) - {"links"}:
        assert connections.read(["ann"], lambda on, at=table: agents_seen(on, at)) == {"ann"}
        partition = f"{table}_{3}" if table in {"entries", "embeddings", "changes"} else table
        assert connections.read(["eve"], lambda on, at=partition: agents_seen(on, at)) == set()
        assert connections.read(None, lambda on, at=table: agents_seen(on, at)) == {"ann", "bob"}
    connections.close()


@pytest.mark.parametrize("role", ["guarded", "guest"])
def test_no_row_is_given_to_another_agent_nor_taken_from_one(role, guarded, request):
    url = request.getfixturevalue(role)
    filled(guarded)
    connections = Connections(target_of(url))
    steal = "UPDATE mnemic.agent_memory_walls SET agent_id = 'ann' WHERE agent_id = 'bob'"
    assert connections.write(["ann"], lambda on: on.run(steal)) == 0
    give = "UPDATE mnemic.agent_memory_walls SET agent_id = 'bob' WHERE agent_id = 'ann'"
    with pytest.raises(StoreError, match="42501"):
        connections.write(["ann"], lambda on: on.run(give))
    insert = "INSERT INTO mnemic.agent_memory_walls VALUES ('bob', 'x', 0, 0)"
    with pytest.raises(StoreError, match="42501"):
        connections.write(["ann"], lambda on: on.run(insert))
    delete = "DELETE FROM mnemic.agent_memory_entries"
    assert connections.write(["ann"], lambda on: on.run(delete)) == 40
    connections.close()
    with opened(guarded, "bob") as memory:
        assert memory.count() == 40


def test_a_session_that_names_no_agent_gets_an_error_and_no_empty_answer(guarded):
    filled(guarded)
    with psycopg.connect(guarded, autocommit=True) as connection:
        for table in set(TABLES) - {"links"}:  # which is empty
            with pytest.raises(psycopg.errors.UndefinedObject):
                connection.execute(f"SELECT * FROM mnemic.agent_memory_{table}")  # noqa: S608


@pytest.mark.parametrize("role", ["guarded", "guest"])
def test_a_memory_works_under_policies(role, request, tmp_path):
    url = request.getfixturevalue(role)
    options = {"row_security": role == "guarded"}
    odd = 'a "b" \\ {c}, d%s *'
    with opened(url, odd, **options) as memory, opened(url, "*") as other:
        memory.add_many([f"note {at} of pears" for at in range(100)], user_id="zoe")
        first = memory.add("the boat is red", user_id="zoe")
        second = memory.add("the boat is blue", user_id="zoe", supersedes=first.id)
        assert other.count() == 0
        assert other.search("boat").hits == ()
        for search_in in ("memory", "database"):
            with opened(url, odd, search_in=search_in) as again:
                found = again.search(
                    "the boat is blue", user_id="zoe", limit=1, search_type="semantic"
                )
                assert found.hits[0].id == second.id
                assert again.search("boat", user_id="zoe", limit=1).hits[0].id == second.id
        memory.update(second.id, content="the boat is green", user_id="zoe")
        with opened(url, odd) as again:
            assert again.get(second.id, user_id="zoe").content == "the boat is green"
        assert memory.export(tmp_path / "a.jsonl", all_users=True) == 102
        assert other.import_(tmp_path / "a.jsonl").stored == 102
        assert memory.delete(second.id, user_id="zoe", permanent=True)
        assert memory.count(user_id="zoe") == 100
        assert other.count(user_id="zoe") == 101
        assert memory.verify().ok
        target = SERVER.new_database(has_tables=False)
        memory.backup(target)
    with opened(target, "*") as copy:
        assert copy.count(user_id="zoe") == 101
    SERVER.drop(target)


def test_processes_that_are_running_take_notice_when_policies_come_into_force():
    url = SERVER.new_guarded_database()
    with psycopg.connect(superuser(url), autocommit=True) as connection:
        for (table,) in connection.execute(
            "SELECT oid::regclass::text FROM pg_class WHERE relforcerowsecurity"
        ).fetchall():
            connection.execute(
                f"DROP POLICY mnemic_agents ON {table}; ALTER TABLE {table} "
                "NO FORCE ROW LEVEL SECURITY, DISABLE ROW LEVEL SECURITY"
            )
    with opened(url) as running:
        running.add("the boat is red")
        other = url + "&application_name=other"
        with opened(other, "bob", row_security=True) as second:
            second.add("the boat is blue")
        running.add("the boat is green")
        assert {entry.content for entry in running.list()} == {
            "the boat is red",
            "the boat is green",
        }
    SERVER.drop(url)


def test_policies_that_would_not_hold_are_refused(database, tmp_path):
    with pytest.raises(StoreError, match="superuser"):
        opened(database, row_security=True)
    with pytest.raises(InvalidArgumentError, match="a file has no policies"):
        opened(tmp_path / "a.db", row_security=True)


def test_a_role_that_owns_no_tables_cannot_put_policies_in_force(database):
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            f"DO $$ BEGIN CREATE ROLE {GUEST} LOGIN; EXCEPTION WHEN duplicate_object THEN END $$"
        )
        connection.execute(f"GRANT USAGE, CREATE ON SCHEMA mnemic TO {GUEST}")
        connection.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA mnemic TO {GUEST}")
    with pytest.raises(StoreError, match="42501"):
        opened(as_role(GUEST, database), row_security=True)


def test_positions_are_asked_for_after_policies_were_put_in_force(guarded):
    with Memory(guarded, "ann", embedder=None) as memory:
        memory.add("an apple")
        assert memory.search("apple", search_type="keyword")
        database = memory.repository._store._database
        database.connections.has_row_security = False  # as of a process that has not heard of it
        with psycopg.connect(superuser(guarded), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        ends = time.monotonic() + 20
        while (
            memory.search("apple", search_type="keyword").stale_since
            or not database.positions._connection
        ):
            assert time.monotonic() < ends
            time.sleep(0.05)
