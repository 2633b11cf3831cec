"""URLs of databases, and connections that are refused."""

import gc
import subprocess
import sys
from urllib.parse import quote

import psycopg
import pytest

from mnemic import Memory
from mnemic.errors import InvalidArgumentError, StoreError, StoreFileError, StoreUnavailableError
from mnemic.store.postgres.dialect import POSTGRES
from mnemic.store.postgres.postgres_errors import typed
from mnemic.store.postgres.session import Connection, Session, prepare
from tests.support.embedders import WordEmbedder
from tests.support.postgres_server import Server, as_role, free_port
from tests.support.processes import ENVIRONMENT
from tests.support.silence import said_by

PASSWORD = "hunter2hunter2"  # noqa: S105 - of nobody

ROLES = f"""
CREATE ROLE knocking LOGIN PASSWORD '{PASSWORD}';
CREATE ROLE rejected LOGIN;
CREATE ROLE silent;
CREATE ROLE crowded LOGIN CONNECTION LIMIT 0;
CREATE ROLE outside LOGIN;
"""
RULES = "local all knocking scram-sha-256\nlocal all rejected reject\n"

REFUSED = {
    "database": (lambda url: url.replace("/mnemic_test", "/nodb"), "no such database; .*3D000"),
    "role": (lambda url: as_role("nobody", url), "no such role .28000"),
    "password": (lambda url: with_password("wrong" + PASSWORD, url), "password is wrong .*28P01"),
    "no password": (lambda url: as_role("knocking", url), "password is wrong or missing"),
    "rule": (lambda url: as_role("rejected", url), r"28000.: its pg_hba\.conf"),
    "login": (lambda url: as_role("silent", url), "may not log in .28000"),
    "limit": (lambda url: as_role("crowded", url), "too many connections are open; .*53300"),
    "right": (lambda url: as_role("outside", url), "may not connect to this database .42501"),
    "encryption": (
        lambda url: f"postgresql://mnemic@127.0.0.1:{port_of(url)}/postgres?sslmode=require",
        "encryption that the URL asks for",
    ),
    "host": (lambda _: "postgresql://mnemic@host.invalid/postgres", "no host of this name"),
}


def with_password(password, url):
    return as_role(f"knocking:{password}", url)


def port_of(url):
    return url.rpartition("port=")[2]


@pytest.fixture(scope="module")
def strict():
    """Return the URL of a database whose server asks for passwords and rejects."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MNEMIC_TEST_POSTGRES", raising=False)
        own = Server(listen_addresses="127.0.0.1", port=free_port())
        url = own.new_database()
    rules = own._data / "pg_hba.conf"
    rules.write_text(RULES + rules.read_text())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(ROLES)
        connection.execute(f"REVOKE CONNECT ON DATABASE {connection.info.dbname} FROM PUBLIC")
        connection.execute(f"GRANT CONNECT ON DATABASE {connection.info.dbname} TO knocking")
        connection.execute("SELECT pg_reload_conf()")
    yield url
    own.close()


@pytest.mark.parametrize("reason", REFUSED)
def test_the_reason_of_a_refused_connection_is_in_the_error(strict, reason):
    change, expected = REFUSED[reason]
    with pytest.raises(StoreUnavailableError, match=expected) as raised:
        Memory(change(strict), embedder=None)
    assert not [said for said in said_by(raised.value) if PASSWORD in said]


def test_a_reason_that_comes_later_is_in_the_error_too(server):
    url = server.new_database()
    with Memory(url, embedder=None) as memory:
        memory.add("an apple")
        name = url.partition("?")[0].rpartition("/")[2]
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (name,)
            )
        with pytest.raises(StoreUnavailableError, match="takes no connections"):
            memory.list()


FOREIGN = [
    "FATAL:  Datenbank »nodb« existiert nicht",
    "FATAL:  la base de données « nodb » n'existe pas",
    'ВАЖНО:  роль "nobody" не существует',
    '致命的エラー:  データベース"nodb"は存在しません',
    "FATAL:  a reason of a later PostgreSQL",
]


@pytest.mark.parametrize("said", FOREIGN)
def test_a_reason_in_other_words_is_no_server_that_cannot_be_reached(said):
    place = 'connection failed: connection to server at "10.0.0.7", port 5432 failed: '
    refused = typed(psycopg.OperationalError(place + said), "postgresql:///nodb")
    assert "refuses the connection; psql" in str(refused)
    absent = psycopg.OperationalError(f"{place}Connection refused\n\tIs the server running?")
    assert "cannot be reached" in str(typed(absent, "postgresql:///nodb"))


UNREADABLE = [
    f"postgresql://me:{PASSWORD}/x@host/db",
    f"postgresql://me:{PASSWORD}@host:port/db",
    f"postgresql://me:{PASSWORD}@host/db?nothing=1",
    f"postgresql://me:{PASSWORD}@[::1/db",
    f"postgresql://me:{PASSWORD}%@host/db",
    f"postgresql://me:{PASSWORD}%zz@host/db",
    f"postgresql://me:{PASSWORD}%00@host/db",
    f"postgresql://me:{PASSWORD}%ff@host/db",
    f"postgresql://me:{PASSWORD}\ud800@host/db",
    f"postgresql://me:{PASSWORD}@host/d\udfffb",
    f"postgresql://me:{PASSWORD}@host/db?application_name=\ud83d",
    f"postgresql://me:{PASSWORD}\0@host/db",
    f"postgresql://me:{PASSWORD} x@host:port/db",
    f"postgresql://me:{PASSWORD}\n@host:port/db",
    f"postgresql://me:x\t{PASSWORD}@host/db?nothing=1",
    f"postgresql://me:\u2028{PASSWORD}@host/db?nothing=1",
    f"postgresql://host:port/db?password={PASSWORD}",
    f"postgresql://host/db?nothing=1&password=x {PASSWORD}",
    f"postgresql://me@host/db?password={PASSWORD}%ed%a0%80",
    f"postgresql:///db?user=me&password={PASSWORD}&connect_timeout=\ud800",
]


@pytest.mark.parametrize("url", UNREADABLE, ids=range(len(UNREADABLE)))
def test_a_url_that_cannot_be_read_is_a_typed_error_that_nowhere_has_the_password(url):
    with pytest.raises((StoreFileError, StoreUnavailableError, InvalidArgumentError)) as raised:
        Memory(url, embedder=None)
    said = said_by(raised.value)
    assert not [one for one in said if PASSWORD in one]
    "".join(said).encode()


PROGRAM = """
import asyncio, sys
from mnemic import AsyncMemory, Memory
from mnemic.errors import StoreUnavailableError

async def cancelled(url):
    async with AsyncMemory(url, embedder=None) as memory:
        for delay in (0.0005, 0.001, 0.002, 0.004, 0.008) * 4:
            task = asyncio.create_task(memory.list(limit=1000))
            await asyncio.sleep(delay)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

url = sys.argv[1]
asyncio.run(cancelled(url))
with Memory(url, embedder=None) as memory:
    memory.search("apple")
    print("open", flush=True)
    input()
    for call in (memory.list, lambda: memory.search("apple"), lambda: memory.add("a pear")):
        try:
            call()
        except StoreUnavailableError:
            pass
try:
    Memory(url, embedder=None)
except StoreUnavailableError:
    print("away", flush=True)
"""


def test_a_program_that_sets_up_no_logging_prints_nothing(server):
    url = server.new_database()
    with Memory(url, embedder=None) as memory:
        memory.add_many([f"an apple {at}" for at in range(2_000)])
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", PROGRAM, url]
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=ENVIRONMENT
    ) as program:
        assert program.stdout.readline() == "open\n"
        server.stop("immediate")
        said, errors = program.communicate("\n", timeout=120)
    server.start()
    assert (said, errors) == ("away\n", "")


def test_a_connection_that_is_lost_amid_a_long_list_leaves_nothing_that_warns(database):
    with Connection.connect(database, autocommit=True) as connection:
        prepare(connection)
        session = Session(connection, POSTGRES)
        session.script("BEGIN")
        batches = session.batches("SELECT generate_series(1, 100)", (), 10)
        next(batches)
        with psycopg.connect(database, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
        with pytest.raises(psycopg.OperationalError):
            batches.close()
        del batches
        gc.collect()  # of what is left open, pytest makes a warning, and so an error


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
