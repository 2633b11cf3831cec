"""A PgBouncer in transaction mode before the tests' server, where its program is installed."""

import os
import shutil
import signal
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from tests.support.postgres_server import NOBODY, OWNER, answers, free_port, options_of
from tests.support.waiting import until

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
MISSING = "PgBouncer is not installed (Debian: apt-get install pgbouncer)"

SETTINGS = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = {sessions}
max_client_conn = 500
server_login_retry = 1
logfile = {folder}/log
pidfile = {folder}/pid
"""


class PgBouncer:
    """A pooler, started when its first URL is asked for; it ends with `close`.

    Args:
        server: The server of the tests.
        sessions: Sessions of the server for each database and role.
    """

    def __init__(self, server, sessions=3):
        self._server = server
        self._sessions = sessions
        self._process = None

    def url(self, url):
        """Return the URL by which a database of the server is reached through the pooler."""
        options = options_of(url)
        role, database = quote(options["user"]), quote(options["dbname"])
        return f"postgresql://{role}@127.0.0.1:{self._port}/{database}"

    @cached_property
    def _port(self):
        self._folder = Path(tempfile.mkdtemp(prefix="mnemic-pgbouncer-"))
        port, place = free_port(), options_of(self._server.url)
        settings = SETTINGS.format(
            host=place.get("host", "127.0.0.1"),
            port=place.get("port", 5432),
            own_port=port,
            folder=self._folder,
            sessions=self._sessions,
        )
        (self._folder / "settings").write_text(settings)
        roles = [place["user"], OWNER, "mnemic_app"]
        (self._folder / "users").write_text("".join(f'"{role}" ""\n' for role in roles))
        for path in [self._folder, *self._folder.iterdir()]:
            if os.getuid() == 0:  # whom it refuses
                os.chown(path, NOBODY, NOBODY)
        self._own_url = f"postgresql://{place['user']}@127.0.0.1:{port}/{place['dbname']}"
        self.start()
        return port

    def start(self):
        """Start it, again after `kill`."""
        user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        command = [PROGRAM, "--quiet", self._folder / "settings"]
        null = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdin=null, stdout=null, stderr=null, **user)
        until(lambda: answers(self._own_url))

    def kill(self):
        """End it at once, as a crash does."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        (self._folder / "pid").unlink(missing_ok=True)

    def close(self):
        """End it, if it was started; again, do nothing."""
        if self._process is not None:
            self.kill()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._process = None
            del self._port
